"""Photographs with annotations beside them: the labels are used, and every row knows its place."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.data_sources.open import open_table
from scant.errors import BadInput
from scant.store.records import Label
from scant.studies import entry
from scant.studies.clamp.labels_out import Places, annotations_of, matched, matches
from scant.studies.clamp.pictures import mosaics
from scant.studies.clamp.table import TABLE, PatchPool
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.formats import FORMATS, write
from scant.tables.images.cutting import cut, grid, table_of
from scant.tables.images.image_table import is_archive
from scant.tables.images.photographs import read_photographs
from scant.tables.images.pixels import jpeg, pixels
from scant.tables.schema import Table
from tests.engine.files import packed
from tests.paths import REAL_DATA


def photograph(width: int, height: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (max(1, height // 40), max(1, width // 40), 3))
    return np.asarray(Image.fromarray(noise.astype(np.uint8)).resize((width, height)))


SIZES = {"in/a.jpg": (1600, 1200), "in/b.jpg": (900, 1600), "in/c.jpg": (800, 800)}
PICTURES = {n: jpeg(photograph(w, h, i)) for i, (n, (w, h)) in enumerate(SIZES.items())}
BOXES = [
    Annotation("in/a.jpg", "clamp", (100.0, 200.0, 300.0, 150.0), SIZES["in/a.jpg"]),
    Annotation("in/a.jpg", "hose", (900.0, 20.0, 333.0, 400.0), SIZES["in/a.jpg"]),
    Annotation("in/b.jpg", "clamp", (0.0, 1400.0, 200.0, 200.0), SIZES["in/b.jpg"]),
]


def opened(annotations: bytes | None, name: str = "labels.csv", **more: bytes) -> Table:
    files = dict(PICTURES)
    if annotations is not None and name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(annotations)) as own:
            files |= {member: own.read(member) for member in own.namelist()}
    elif annotations is not None:
        files[name] = annotations
    return read_photographs(packed(files | more), TABLE, name="mine.zip")


def pool_of(table: Table) -> PatchPool:
    return PatchPool.of(table.frame)


def places_of(pool: PatchPool) -> Places:
    arrays = {"picture": pool.picture, "place": pool.place}
    return Places.of({"pictures": pool.pictures}, arrays)


@pytest.mark.parametrize("form", [one for one in FORMATS if not one.pictures], ids=lambda o: o.name)
def test_boxes_of_every_format_become_patches(form: object) -> None:
    name, file = form.name, form.file  # type: ignore[attr-defined]
    table = opened(write(name, BOXES), file)
    pool = pool_of(table)
    own = np.flatnonzero(pool.picture < 2)
    assert [pool.classes[c] for c in pool.label[own]] == ["clamp", "hose", "clamp"]
    assert pool.place[own].tolist() == [
        [100, 200, 300, 150, 1600, 1200], [900, 20, 333, 400, 1600, 1200],
        [0, 1400, 200, 200, 900, 1600],
    ]  # fmt: skip
    expected = photograph(1600, 1200)[200:350, 100:400]
    assert np.abs(pixels(pool.images[0]).astype(int) - expected).mean() < 12
    assert (pool.label[pool.picture == 2] == -1).all()  # c has no boxes, and is cut
    assert (pool.picture == 2).sum() == len(grid((800, 800)))
    notes = " ".join(table.notes)
    assert "3 photographs have 3 patches that are boxes of the annotations, and 16 of 299" in notes
    assert f"3 of {3 + 16} patches have labels from" in notes


def test_every_row_goes_out_with_its_picture_and_box_and_comes_back() -> None:
    pool = pool_of(opened(None))
    places = places_of(pool)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(pool))[:20]
    given = [Label(int(r), "ab"[i % 2], "Ada", 1.7e9) for i, r in enumerate(rows)]
    taken_back, no_row = Label(0, "", "Ada", 1.7e9), Label(10**6, "a", "Ada", 1.7e9)
    made = annotations_of(places, [*given, taken_back, no_row])
    assert len(made) == 20
    for one, of in zip(made, given):
        assert one.picture == pool.pictures[pool.picture[of.item]]
        assert one.size == SIZES[one.picture]
        assert one.box == tuple(pool.place[of.item, :4].astype(float))
    assert matched(places, made) == {g.item: g.label for g in given}
    for form in FORMATS[:4]:  # and through a ZIP of the same photographs, in each format
        again = pool_of(opened(write(form.name, made), form.file))
        assert len(again) == len(pool)
        assert again.place.tolist() == pool.place.tolist()
        labels = {i: again.classes[c] for i, c in enumerate(again.label) if c >= 0}
        assert labels == {g.item: g.label for g in given}


def test_a_label_in_doubt_names_no_class() -> None:
    class Doubtful:
        item, label, labeler, created, unsure = 0, "unsure", "Ada", 1.0, True

    places = Places(["a.jpg"], np.zeros(1, int), np.array([[0, 0, 9, 9, 9, 9]]))
    (one,) = annotations_of(places, [Doubtful()])
    assert one == Annotation("a.jpg", "", None, (9, 9), "Ada", 1.0, True)
    assert matched(places, [one]) == {}
    assert matches(places, [one]) == [(0, one)]


def test_boxes_match_by_half_and_by_the_picture_at_another_size() -> None:
    place = np.array([[0, 0, 100, 100, 400, 200], [50, 0, 100, 100, 400, 200],
                      [0, 0, 100, 100, 400, 200]])  # fmt: skip
    places = Places(["a.jpg", "b.jpg"], np.array([0, 0, 1]), place)
    made = [
        Annotation("a", "one", (20.0, 0.0, 50.0, 50.0), (200, 100)),  # twice as large here
        Annotation("b.jpg", "two", (0.0, 0.0, 100.0, 49.0)),  # .49 of it
        Annotation("b.jpg", "three", (0.0, 0.0, 100.0, 51.0)),
        Annotation("b.jpg", "four"),  # of the whole picture, which is no row
        Annotation("c.jpg", "five", (0.0, 0.0, 100.0, 100.0)),
    ]
    assert matched(places, made) == {1: "one", 2: "three"}


def test_rows_of_an_earlier_version_have_the_published_places() -> None:
    frame = table_of(cut(photograph(1280, 720), "one"), [None] * 21)
    assert list(frame) == ["label", "picture", "left", "top", "size", "image"]
    places = places_of(PatchPool.of(frame))
    assert places.size(20) == (1280, 720)
    assert places.box(20) == (894, 298, 299, 299)
    nothing = Places.of({}, {"picture": np.arange(3), "row": np.array([4, 5, 7])})
    assert (nothing.name(2), nothing.size(2), nothing.box(2)) == ("row 7", None, None)


def test_labels_of_whole_pictures() -> None:
    more = {f"in/{i}.jpg": PICTURES["in/c.jpg"] for i in "defgh"}
    table = opened(b"picture,label\na.jpg,clamp\nb,none\n", **more)
    pool = pool_of(table)
    assert len(pool) == 8
    assert [pool.classes[c] for c in pool.label[:2]] == ["clamp", "class none"]
    assert (pool.label[2:] == -1).all()
    assert "the class 'none' is called 'class none'" in " ".join(table.notes)
    assert pool.place[:3, 2:].tolist() == [[*s, *s] for s in SIZES.values()]
    shapes = [pixels(content).shape for content in pool.images[:3]]
    assert shapes == [(336, 448, 3), (448, 252, 3), (448, 448, 3)]  # each its own
    assert "8 pictures are patches as they are" in " ".join(table.notes)


def test_strangers_doubts_and_contradictions_are_said() -> None:
    made = [
        Annotation("a.jpg", "clamp", (0.0, 0.0, 50.0, 50.0), labeler="Ada"),
        Annotation("a.jpg", "hose", (0.0, 0.0, 50.0, 50.0), labeler="Bob"),
        Annotation("b.jpg", "clamp", (0.0, 0.0, 50.0, 50.0), unsure=True),
        Annotation("b.jpg", "clamp", (5000.0, 0.0, 50.0, 50.0)),
        Annotation("x.jpg", "clamp", (0.0, 0.0, 50.0, 50.0)),
    ]
    table = opened(write("CSV", made))
    notes = " ".join(table.notes)
    assert "annotations of 1 picture that is not in the archive were skipped: x.jpg." in notes
    assert "patches with labels that differ: 1; the last label was used." in notes
    assert "labels marked as uncertain: 1; their patches count as unlabeled." in notes
    assert "boxes outside their pictures: 1; these were skipped." in notes
    pool = pool_of(table)
    assert pool.classes[pool.label[0]] == "hose"
    assert pool.label[1] == -1


def test_a_file_that_names_pictures_without_labels_is_said() -> None:
    table = opened(b"file,any_missing\na.jpg,1\n")
    assert "'labels.csv' names pictures but holds no labels: its columns are" in " ".join(
        table.notes
    )
    assert pool_of(table).label.max() == -1


def test_a_broken_file_of_annotations_is_refused() -> None:
    with pytest.raises(BadInput, match=r"mine\.zip, 'x\.json' is not JSON"):
        opened(b"{", "x.json")
    with pytest.raises(BadInput, match=r"mine\.zip, 'labels\.csv', row 2: got 'nan'"):
        opened(b"picture,left,top,width,height\na.jpg,0,0,nan,5\n")
    table = opened(json.dumps({"name": "not annotations"}).encode(), "package.json")
    assert "'package.json' holds no labels" in " ".join(table.notes)


def test_folders_of_patches_are_labels() -> None:
    pool = pool_of(opened(None))
    made = [
        Annotation(pool.pictures[pool.picture[i]], "ab"[i % 2], tuple(pool.place[i, :4] * 1.0))
        for i in range(12)
    ]
    image = iter(pool.images)
    content = write("ImageFolder", made, lambda _: next(image))
    table = read_photographs(content, TABLE, name="mine.zip")
    again = pool_of(table)
    assert len(again) == 12
    assert set(again.pictures) <= set(SIZES)
    of = {(again.pictures[p], *place[:4].tolist()): again.classes[c]
          for p, place, c in zip(again.picture, again.place, again.label)}  # fmt: skip
    assert of == {(a.picture, *map(int, a.box or ())): a.label for a in made}
    assert "folder names were read as labels" in " ".join(table.notes)


def test_small_pictures_are_never_enlarged_and_cut() -> None:
    small = {f"in/s{i}.png": jpeg(photograph(32, 32, i)) for i in range(6)}
    table = opened(None, **small)
    assert any("6 pictures of at most 299 pixels are patches as they are" in n for n in table.notes)
    sizes = table.frame.loc[table.frame["picture"].str.contains("/s"), "size"]
    assert sizes.tolist() == [32.0] * 6
    boxed = opened(b"0 0.5 0.5 0.4 0.4\n", "in/s0.txt", **small, **{"classes.txt": b"clamp\n"})
    labeled = boxed.frame[boxed.frame["picture"].str.contains("/s")]
    assert labeled["label"].fillna("").tolist() == ["clamp", *[""] * 5]


def test_whole_pictures_are_shown_with_their_boxes() -> None:
    pool = pool_of(opened(write("CSV", BOXES)))
    shown = mosaics(pool, 560)
    assert [shown.whole(i).shape for i in range(3)] == [(420, 560, 3), (960, 540, 3), (560, 560, 3)]
    assert shown.boxes[0] == pytest.approx(np.array([100, 200, 400, 350]) * 0.35)
    whole = np.asarray(Image.fromarray(photograph(1600, 1200)).resize((560, 420)))
    assert np.abs(shown.whole(0).astype(int) - whole).mean() < 12


@pytest.mark.parametrize("size", [(1280, 720), (720, 1280), (4032, 3024), (300, 394), (10_000, 500),
                                  (299, 299), (7, 5000)])  # fmt: skip
def test_a_grid_covers_the_photograph(size: tuple[int, int]) -> None:
    squares = grid(size)
    assert squares[:, :2].min() == 0
    assert (squares[:, :2] + squares[:, 2:]).max(0).tolist() == list(size)
    if size == (1280, 720):
        published = {(c.left, c.top) for c in cut(np.zeros((720, 1280, 3), np.uint8), "")}
        assert published < {(int(x), int(y)) for x, y, _, _ in squares}
        assert len(published) == 21
    if min(size) >= 299:
        aspect = squares[:, 2] / squares[:, 3]
        assert np.abs(aspect - 1).max() < 0.03  # squares stay squares: no photograph is stretched


def test_boxes_in_a_photograph_that_lies_on_its_side() -> None:
    """EXIF says how a photograph is seen; some programs annotate it as the file has it."""
    upright = photograph(1200, 800)
    for orientation, turn in ((6, Image.Transpose.ROTATE_90), (8, Image.Transpose.ROTATE_270)):
        exif = Image.Exif()
        exif[0x0112] = orientation
        out = io.BytesIO()
        lying = Image.fromarray(upright).transpose(turn)
        lying.save(out, "JPEG", quality=95, exif=exif)
        box = (90.0, 300.0, 200.0, 160.0)
        expected = np.asarray(lying.crop((90, 300, 290, 460)))
        expected = np.rot90(expected, -1 if orientation == 6 else 1)
        seen = Annotation("a.jpg", "x", box, lying.size)
        files = {"a.jpg": out.getvalue(), "labels.json": write("COCO", [seen])}
        files["b.jpg"] = PICTURES["in/c.jpg"]
        pool = pool_of(read_photographs(packed(files), TABLE, name="mine.zip"))
        assert pool.place[0, 4:].tolist() == [1200, 800]
        assert np.abs(pixels(pool.images[0]).astype(int) - expected).mean() < 12


def test_labels_beside_a_zip_of_photographs(tmp_path: Path) -> None:
    """Files dropped together come as a ZIP with a ZIP in it; the command line names them."""
    labels, pictures = write("COCO", BOXES), packed(PICTURES)
    expected = opened(labels, "labels.json").frame
    dropped = packed({"labels.json": labels, "my photos.zip": pictures})
    assert is_archive("2 files.zip", dropped)
    assert not is_archive("2 files.zip", packed({"a.csv": b"x", "b.zip": packed({"c.csv": b"x"})}))
    frame = read_photographs(dropped, TABLE, name="2 files.zip").frame
    assert frame["picture"].str.removeprefix("my photos/").tolist() == expected["picture"].tolist()
    assert frame["label"].tolist() == expected["label"].tolist()
    paths = [tmp_path / "my photos.zip", tmp_path / "labels.json"]
    for path, content in zip(paths, (pictures, labels)):
        path.write_bytes(content)
    clamp = entry("clamp")
    named = open_table(clamp, [str(p) for p in paths], clamp.settings())
    assert named["label"].tolist() == expected["label"].tolist()
    (tmp_path / "notes.docx").write_bytes(b"x")
    with pytest.raises(BadInput, match=r"notes\.docx: beside photographs only labels are taken"):
        open_table(clamp, [*map(str, paths), str(tmp_path / "notes.docx")], clamp.settings())


def test_zips_in_zips_are_bounded() -> None:
    bomb = packed({"inner.zip": packed({"a.png": bytes(30_000_000)})})
    with pytest.raises(BadInput, match=r"'inner\.zip', 'a\.png' unpacks to .* times its size"):
        read_photographs(bomb, TABLE, name="mine.zip")
    out = packed({"inner.zip": packed({"../a.png": b"x"})})
    with pytest.raises(BadInput, match="leads out of the archive"):
        read_photographs(out, TABLE, name="mine.zip")
    with pytest.raises(BadInput, match="not a ZIP"):
        read_photographs(packed({"inner.zip": b"PK\x03\x04 broken"}), TABLE, name="mine.zip")


SCREWS = REAL_DATA / "clamp_standin_screws"


@pytest.mark.skipif(not SCREWS.is_dir(), reason="SCANT_REAL_DATA names no clamp_standin_screws")
def test_sites_of_screws_on_real_photographs() -> None:
    """Four sites a photograph, as boxes in the form of TensorFlow's CSV files."""
    sites = pd.read_csv(SCREWS / "site_boxes.csv").set_index("name")
    rows = pd.read_csv(SCREWS / "labels.csv").head(40)
    table = pd.DataFrame(
        {
            "filename": row["file"],
            "class": "screw" if row[f"screw_{name}"] else "hole",
            **{side: int(box[side]) for side in ("xmin", "ymin", "xmax", "ymax")},
        }
        for _, row in rows.iterrows()
        for name, box in sites.iterrows()
    )
    files = {f"screws/{name}": (SCREWS / "images" / name).read_bytes() for name in rows["file"]}
    files["screws/boxes.csv"] = table.to_csv(index=False).encode()
    read = read_photographs(packed(files), TABLE, name="screws.zip")
    pool = pool_of(read)
    assert len(pool) == 160
    assert [pool.classes[c] for c in pool.label] == table["class"].tolist()
    crops = np.load(SCREWS / "site_crops_48.npz")
    order = [(int(i), int(s)) for i, s in zip(crops["image_number"], crops["site"])]
    for row in (0, 3, 77, 159):
        number, site = int(pool.pictures[pool.picture[row]][-7:-4]), row % 4
        known = crops["images"][order.index((number, site))].astype(int)
        assert np.abs(pixels(pool.images[row], 48).astype(int) - known).mean() < 8
