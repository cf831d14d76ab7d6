"""Images of every kind, sound and broken, on every page that takes them: right, or one sentence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw

from scant.errors import BadInput
from scant.studies.clamp.table import TABLE as CLAMP
from scant.studies.clamp.table import PatchPool
from scant.studies.mitosis.table import TABLE as MITOSIS
from scant.studies.omniglot.table import TABLE as OMNIGLOT
from scant.tables.images.archives import read_image
from scant.tables.images.decoding import DEEP, decoded
from scant.tables.images.image_table import read_image_table
from scant.tables.images.pixels import pixels
from scant.tables.schema import Table, TableSchema
from tests.engine.files import image as file
from tests.engine.files import packed

PAGES = pytest.mark.parametrize("schema", [CLAMP, MITOSIS, OMNIGLOT], ids=["c", "m", "o"])
SIDE = 8


def drawing(width: int = 600, height: int = 400, mode: str = "RGB") -> Image.Image:
    """Light, with a dark square in its upper left quarter."""
    image = Image.new("RGB", (width, height), (250, 240, 230))
    ImageDraw.Draw(image).rectangle((0, 0, width // 2, height // 2), (10, 20, 30))
    return image.convert(mode)


def deep(top: int) -> bytes:
    gray = np.asarray(drawing(mode="L")).astype(np.uint32)
    return file(Image.fromarray((gray * top // 255).astype(np.uint16)))


def turned(orientation: int) -> bytes:
    """The drawing as a camera has it that was held otherwise: EXIF says how to turn it back."""
    back = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90,
            8: Image.Transpose.ROTATE_270}[orientation]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    return file(drawing().transpose(back), "JPEG", quality=95, exif=exif)


def several(form: str) -> bytes:
    black = Image.new("RGB", (600, 400))
    how = {"compression": "tiff_lzw"} if form == "TIFF" else {}
    return file(drawing(), form, save_all=True, append_images=[black, black], **how)


def see_through() -> bytes:
    """Ink on nothing, as drawing programs save it; nothing is black there."""
    image = Image.new("RGBA", (600, 400), (0, 0, 0, 0))
    ImageDraw.Draw(image).rectangle((0, 0, 300, 200), (10, 20, 30, 255))
    return file(image)


def with_transparent_color() -> bytes:
    image = Image.new("P", (600, 400), 0)
    image.putpalette([0, 0, 0, 10, 20, 30])
    ImageDraw.Draw(image).rectangle((0, 0, 300, 200), 1)
    return file(image, "GIF", transparency=0)


SOUND: dict[str, tuple[Callable[[], bytes], str]] = {
    "plain.png": (lambda: file(drawing()), ""),
    "bilevel.png": (
        lambda: file(drawing(mode="L").point(lambda v: 255 * (v > 99)).convert("1")),
        "",
    ),
    "palette.gif": (lambda: file(drawing(mode="P"), "GIF"), ""),
    "jpeg inside.png": (lambda: file(drawing(), "JPEG", quality=95), ""),
    "cmyk.jpg": (lambda: file(drawing(mode="CMYK"), "JPEG", quality=95), "from CMYK to RGB"),
    "cmyk.tif": (
        lambda: file(drawing(mode="CMYK"), "TIFF", compression="tiff_lzw"),
        "from CMYK to RGB",
    ),
    "12 bits.png": (lambda: deep(4095), "from 16 bits per pixel to 8"),
    "16 bits.png": (lambda: deep(65535), "from 16 bits per pixel to 8"),
    "on its head.jpg": (lambda: turned(3), "turned upright"),
    "on its side.jpg": (lambda: turned(6), "turned upright"),
    "on its other side.jpg": (lambda: turned(8), "turned upright"),
    "animated.gif": (lambda: several("GIF"), "their first frame or page"),
    "animated.png": (lambda: several("PNG"), "their first frame or page"),
    "pages.tif": (lambda: several("TIFF"), "their first frame or page"),
    "on nothing.png": (see_through, "laid on white"),
    "on nothing.gif": (with_transparent_color, "laid on white"),
}
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty.png": (b"", "it is empty"),
    "cut off.jpg": (file(drawing(), "JPEG")[:-400], "it is cut off"),
    "cut off.png": (file(drawing())[:-60], ""),
    "header only.png": (file(drawing())[:30], ""),
    "noise.png": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), ""),
    "webp.jpg": (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "it is WebP; save it as JPEG or PNG"),
    "phone.jpg": (b"\x00\x00\x00\x18ftypheic", "it is HEIC, AVIF or a video"),
    "page.png": (b"<!DOCTYPE html><html>", "it is a web page"),
    "drawing.png": (b"<svg xmlns='x'/>", "it is SVG"),
    "text.png": (b"hello", "it is damaged, or of another kind"),
    "float.tif": (file(Image.fromarray(np.zeros((40, 40), np.float32)), "TIFF"), "floating-point"),
    "32 bits.tif": (file(Image.fromarray(np.full((40, 40), 1 << 20, np.int32)), "TIFF"), "32 bits"),
}


def opened(schema: TableSchema, name: str, content: bytes) -> Table:
    """The table of an archive in which the image lies beside nine sound ones of two classes."""
    files = {f"x/{'ab'[i % 2]}/{i}.png": file(drawing()) for i in range(9)}
    return read_image_table(
        packed(files | {f"x/a/{name}": content}), schema, size=SIDE, name="mine.zip"
    )


def assert_is_the_drawing(schema: TableSchema, table: Table) -> None:
    """The last row but those of the sound ones shows the drawing, up to its compression."""
    if schema is CLAMP:
        pool = PatchPool.of(table.frame)
        own = np.flatnonzero(pool.picture == 5)  # a/ comes first, and letters after digits
        dark = [pixels(pool.images[i], 8).mean() < 128 for i in own]
        corner = pool.place[own, :2].sum(1)
        assert dark[int(corner.argmin())]
        assert not dark[int(corner.argmax())]
        assert pool.place[own[0], 4:].tolist() == [600, 400]
        return
    row = table.frame[list(table.features)].to_numpy()[5].reshape(SIDE, SIDE)
    same = table.frame[list(table.features)].to_numpy()[0].reshape(SIDE, SIDE)
    assert np.abs(row - same).max() < 0.2
    assert abs(row[0, 0] - row[-1, -1]) > 0.7


@pytest.mark.slow
@PAGES
@pytest.mark.parametrize("name", SOUND)
def test_sound_images_are_seen_as_they_are(schema: TableSchema, name: str) -> None:
    make, said = SOUND[name]
    table = opened(schema, name, make())
    assert_is_the_drawing(schema, table)
    notes = [note for note in table.notes if name in note]
    assert len(notes) == bool(said)
    for note in notes:
        assert said in note
        assert note.startswith("mine.zip: 1 image was ")


@pytest.mark.slow
@PAGES
@pytest.mark.parametrize("name", BROKEN)
def test_broken_images_are_passed_over_and_named(schema: TableSchema, name: str) -> None:
    content, said = BROKEN[name]
    table = opened(schema, name, content)
    (note,) = [note for note in table.notes if "cannot be read" in note]
    assert note.startswith("mine.zip: 1 image cannot be read and was skipped: x/a/")
    assert name in note
    assert said in note
    with pytest.raises(BadInput) as refused:
        read_image_table(packed({f"x/a/{name}": content}), schema, size=SIDE, name="mine.zip")
    assert f"mine.zip, 'x/a/{name}' is not an image that can be read" in str(refused.value)
    assert said in str(refused.value)
    assert str(refused.value).endswith("; replace it.")


@PAGES
def test_pictures_of_all_sizes_are_taken_together(schema: TableSchema) -> None:
    table = opened(schema, "small.png", file(drawing(30, 20)))
    assert len(table.frame) >= 10
    table = opened(schema, "tall.png", file(drawing(40, 900)))
    assert len(table.frame) >= 10


@pytest.mark.slow
@PAGES
def test_an_image_that_is_far_too_large_is_refused(schema: TableSchema) -> None:
    """A bomb: 12 KB of file, 100 and 400 megapixels of picture."""
    for side, said in ((10_000, "10,000 x 10,000"), (20_000, "far too many")):
        bomb = file(Image.new("1", (side, side)))
        with pytest.raises(BadInput, match=rf"mine\.zip, 'x/a/bomb\.png'.* {said} pixels .* make"):
            opened(schema, "bomb.png", bomb)


@PAGES
def test_pictures_of_kinds_that_are_not_read_are_named(schema: TableSchema) -> None:
    table = opened(schema, "IMG_1.HEIC", b"\x00\x00\x00\x18ftypheic")
    (note,) = [note for note in table.notes if "HEIC" in note]
    assert note == (
        "mine.zip: 1 picture of a kind that is not read was skipped: x/a/IMG_1.HEIC; save them "
        "as JPEG or PNG."
    )
    with pytest.raises(BadInput, match=r"holds no images .*, but \.heic; save these as JPEG"):
        read_image_table(packed({"x/a/1.heic": b"x"}), schema, size=SIDE, name="mine.zip")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_image_that_is_brought_alone_is_refused(name: str) -> None:
    content, said = BROKEN[name]
    with pytest.raises(BadInput) as refused:
        read_image(content, name=name, size=(SIDE, SIDE))
    assert str(refused.value).startswith(f"{name} is not an image that can be read")
    assert said in str(refused.value)


def test_a_large_image_that_is_brought_alone_is_said_to_be_large() -> None:
    with pytest.raises(BadInput, match=r"^big\.png has 10,000 x 10,000 pixels and the limit is"):
        read_image(file(Image.new("1", (10_000, 10_000))), name="big.png", size=(SIDE, SIDE))


def test_bits_that_are_not_used_do_not_darken() -> None:
    for content in (deep(4095), deep(65535)):
        made = decoded(content, "x", 10**7)
        assert made.done == (DEEP,)
        assert np.abs(np.asarray(made.image).astype(int) - np.asarray(drawing(mode="L"))).max() <= 1


def test_exif_that_cannot_be_read_turns_nothing() -> None:
    content = bytearray(turned(6))
    at = content.index(b"Exif\x00\x00")
    content[at + 6 : at + 14] = b"\xff" * 8
    assert decoded(bytes(content), "x", 10**7).size == (400, 600)


def test_a_fraction_of_a_jpeg_has_the_size_of_the_whole() -> None:
    made = decoded(turned(6), "x", 10**7, near=(100, 100))
    assert made.size == (600, 400)
    assert made.image.width < 600
    assert made.image.width > made.image.height
