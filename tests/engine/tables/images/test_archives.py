"""ZIPs of images: what is read, and what is refused before it can do harm."""

from __future__ import annotations

import io
import stat
import struct
import zipfile

import numpy as np
import pytest
from PIL import Image

from scant.errors import BadInput
from scant.tables.images.archives import ArchiveLimits, read_images
from tests.engine.files import image, packed


def png(shade: int = 255, size: tuple[int, int] = (10, 10)) -> bytes:
    return image(Image.new("L", size, shade))


def test_images_become_rows() -> None:
    left = np.zeros((8, 8), dtype=np.uint8)
    left[:, :4] = 255
    files = {
        "set/Greek/beta/1.png": image(left),
        "set/Greek/alpha/1.png": png(51),
        "__MACOSX/set/Greek/alpha/._1.png": b"junk",
        "set/readme.txt": b"hello",
    }
    table = read_images(packed(files), size=(4, 2))
    assert table["output"].tolist() == ["Greek", "Greek"]
    assert table["label"].tolist() == ["alpha", "beta"]
    np.testing.assert_allclose(table.loc[0, "p0":"p7"].astype(float), 0.2)
    np.testing.assert_allclose(table.loc[1, "p0":"p7"].astype(float), [1, 1, 0, 0] * 2)


@pytest.mark.parametrize(
    "name", ["../../evil/a/b.png", "/etc/a/b.png", "a\\..\\..\\b.png", "C:\\a\\b\\c.png"]
)
def test_paths_that_lead_out(name: str) -> None:
    with pytest.raises(BadInput, match=r"up\.zip, .*leads out of the archive"):
        read_images(packed({name: png()}), name="up.zip")


def test_links() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("a/b/c.png")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(BadInput, match="is a link"):
        read_images(out.getvalue())


def test_bombs() -> None:
    bomb = packed({"a/b/c.png": bytes(20_000_000)})
    assert len(bomb) < 50_000
    with pytest.raises(BadInput, match="times its size"):
        read_images(bomb)
    with pytest.raises(BadInput, match="unpacks to 20 MB and the limit is 1 MB"):
        read_images(bomb, limits=ArchiveLimits(unpacked_bytes=1_000_000))
    with pytest.raises(BadInput, match="3 files and the limit is 2"):
        read_images(
            packed({f"a/b/{i}.png": png() for i in range(3)}), limits=ArchiveLimits(files=2)
        )
    with pytest.raises(BadInput, match="pixels and the limit"):
        read_images(packed({"a/b/c.png": png(size=(200, 200))}), limits=ArchiveLimits(pixels=1000))
    with pytest.raises(BadInput, match="limit"):
        read_images(packed({"a/b/c.png": png()}), limit_bytes=20)


def test_a_header_that_understates_its_size() -> None:
    """The promised size bounds what is unpacked, so a lie ends as an image that cannot be read."""
    data = bytearray(packed({"a/b/c.png": png(size=(500, 500)) + bytes(3_000_000)}))
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 100)
    data[22:26] = struct.pack("<I", 100)
    with pytest.raises(BadInput, match="not an image that can be read"):
        read_images(bytes(data))


def test_more_values_than_a_table_may_have_are_refused_before_they_are_read() -> None:
    files = {f"a/b/{i}.png": b"not read" for i in range(3)}
    with pytest.raises(BadInput, match=r"3 images, which at 1000 x 1000 .* choose a smaller size"):
        read_images(packed(files), size=(1000, 1000), limits=ArchiveLimits(values=2_999_999))


def test_what_is_no_archive_of_images() -> None:
    with pytest.raises(BadInput, match="not a ZIP"):
        read_images(b"not a zip at all")
    with pytest.raises(BadInput, match="empty"):
        read_images(b"")
    with pytest.raises(BadInput, match="no images"):
        read_images(packed({"a/b/c.txt": b"x"}))
    with pytest.raises(BadInput, match=r"'a/b/c\.png' is not an image"):
        read_images(packed({"a/b/c.png": b"x" * 100}))
    with pytest.raises(BadInput, match="must lie in folders output/label"):
        read_images(packed({"b/c.png": png()}))
    with pytest.raises(BadInput, match=r"not a ZIP|not an image"):
        read_images(packed({"a/b/c.png": png()})[:-30])
