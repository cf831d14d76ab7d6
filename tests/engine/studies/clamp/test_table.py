"""Pools of patches: tables, ZIPs of photographs, features; what is refused, in a sentence."""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.data_sources.open import open_table
from scant.errors import BadInput
from scant.package_data import package_file
from scant.studies import entry
from scant.studies.clamp.cost import SHIPPED
from scant.studies.clamp.table import TABLE, PatchPool
from scant.tables.images import features
from scant.tables.images.cutting import cut, table_of
from scant.tables.images.photographs import read_photographs
from scant.tables.images.pixels import jpeg, pixels
from scant.tables.read import read_frame, read_table
from tests.engine.files import image, packed


def numbers(n: int = 20, **columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = {"label": ["a"] * 5 + ["b"] * 2 + [None] * (n - 7), "f": rng.normal(size=n)}
    return pd.DataFrame({**made, "g": rng.normal(size=n), **columns})


def photograph(width: int, height: int, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(0, 256, (height // 20, width // 20, 3))
    small = Image.fromarray(noise.astype(np.uint8))
    return np.asarray(small.resize((width, height)))


# --- tables -------------------------------------------------------------------------------------


def test_a_csv_of_features_with_some_labels(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    numbers().to_csv(path, index=False)
    pool = PatchPool.of(read_table(path, TABLE).frame)
    assert pool.classes == ["a", "b"]  # the rarer one is looked for
    assert pool.label.tolist() == [0] * 5 + [1] * 2 + [-1] * 13
    assert pool.features == ["f", "g"]
    assert pool.images == []
    assert pool.picture.tolist() == list(range(20))


@pytest.mark.parametrize(
    ("labels", "positive", "classes"),
    [
        ([], "", ["not of interest", "of interest"]),
        ([], "leak", ["not leak", "leak"]),
        (["leak"], "", ["not leak", "leak"]),
        (["0"], "", ["0", "1"]),
        (["no clamp"], "", ["no clamp", "clamp"]),
        (["clamp", "clamp", "none"], "", ["none", "clamp"]),
        (["x", "y", "y"], "", ["y", "x"]),
        (["x", "y", "y"], "y", ["x", "y"]),
        (["0", "1", "1"], "", ["0", "1"]),
        (["x", "y", "y", "z", "z", "z"], "", ["z", "y", "x"]),
        (["x", "y", "y", "z", "z", "z"], "y", ["z", "x", "y"]),
        (["x", "clamp", "clamp", "z", "z", "z"], "", ["z", "x", "clamp"]),
    ],
)
def test_which_class_is_looked_for(labels: list[str], positive: str, classes: list[str]) -> None:
    table = numbers(label=[*labels, *[None] * (20 - len(labels))])
    assert PatchPool.of(table, positive=positive).classes == classes


def test_classes_are_named_where_nobody_has_labeled() -> None:
    names = ["screw", "no screw", "rust"]
    none = numbers(label=[None] * 20)
    assert PatchPool.of(none, named=names).classes == ["no screw", "rust", "screw"]
    assert PatchPool.of(none, named=names, positive="rust").classes[-1] == "rust"
    some = numbers(label=["rust", "rust", "no screw", *[None] * 17])
    assert PatchPool.of(some, named=names).classes == ["rust", "no screw", "screw"]
    with pytest.raises(BadInput, match=r"'class_names' is .*; name these too"):
        PatchPool.of(some, named=names[:2])


def test_constant_columns_are_no_features() -> None:
    pool = PatchPool.of(numbers(h=3.0, left=np.arange(20.0), top=0.0, size=9.0))
    assert pool.features == ["f", "g"]
    assert pool.place[4].tolist() == [4, 0, 9, 9, 0, 0]
    new = PatchPool.of(numbers(h=3.0), classes=["b", "a"], features=["g"])
    assert new.x.shape == (20, 1)
    assert new.label[0] == 1


@pytest.mark.parametrize(
    ("table", "how", "said"),
    [
        (numbers(label=[*"abcdefghijklm", *[None] * 7]), {}, "there are 13 classes, a, b, c"),
        (
            numbers(),
            {"positive": "c"},
            "Setting 'positive_class' is 'c' and the labels are a, b",
        ),
        (numbers(f=np.nan), {}, "column 'f', row 0: the cell has no finite number"),
        (numbers()[["label"]], {}, "neither images nor feature columns"),
        (numbers(f=1.0, g=2.0), {}, "neither images nor feature columns"),
        (numbers(), {"features": ["h"]}, "lacks the column 'h'"),
        (numbers(image="=cmd"), {}, "column 'image', row 0: got '=cmd'"),
        (numbers(image=base64.b64encode(b"no image").decode()), {}, "give a JPEG or PNG"),
    ],
)
def test_tables_that_cannot_be_are_said(table: pd.DataFrame, how: dict, said: str) -> None:
    with pytest.raises(BadInput, match=said.replace("(", r"\(")):
        PatchPool.of(table, **how)


def test_an_empty_image_cell_is_said() -> None:
    table = table_of(cut(photograph(900, 300), "one"))
    table.loc[2, "image"] = None
    with pytest.raises(BadInput, match="row 2: the cell is empty"):
        PatchPool.of(table)


# --- pictures -----------------------------------------------------------------------------------


def test_a_picture_is_cut_as_published() -> None:
    image = photograph(1280, 720)
    cuts = cut(image, "one")
    assert len(cuts) == 21
    assert {c.left for c in cuts} == {149 * i for i in range(7)}
    assert {c.top for c in cuts} == {0, 149, 298}
    assert all(c.image.shape == (299, 299, 3) for c in cuts)
    last = cuts[-1]
    assert np.array_equal(last.image, image[298 : 298 + 299, 894 : 894 + 299])
    assert cut(photograph(200, 200), "small") == []


def test_patches_travel_through_a_csv_file(tmp_path: Path) -> None:
    cuts = cut(photograph(900, 460), "one")
    path = tmp_path / "patches.csv"
    table_of(cuts, ["clamp", *["no clamp"] * 9]).to_csv(path, index=False)
    pool = PatchPool.of(read_table(path, TABLE).frame)
    assert len(pool) == 10
    assert pool.place[3].tolist() == [447, 0, 299, 299, 1280, 720]
    assert np.abs(pixels(pool.images[3]).astype(int) - cuts[3].image).mean() < 6
    assert pixels(pool.images[3], 64).shape == (64, 64, 3)


def test_a_zip_of_photographs() -> None:
    data = packed(
        {
            "all/clamp/one.jpg": jpeg(photograph(1280, 720)),
            "all/none/two.png": image(photograph(400, 600)),
            "all/__MACOSX/._one.jpg": b"x",
            "all/readme.txt": b"x",
        }
    )
    read = read_photographs(data, TABLE, name="mine.zip")
    pool = PatchPool.of(read.frame)
    assert len(pool) == 32 + 4 * 7  # the published 21, and a last column and row; 2 : 3 stays so
    assert (pool.label == -1).all()
    assert pool.pictures == ["all/clamp/one.jpg", "all/none/two.png"]
    for picture, (w, h) in enumerate([(1280, 720), (400, 600)]):
        place = pool.place[pool.picture == picture]
        assert (place[:, 4:] == (w, h)).all()
        assert (place[:, 0].min(), (place[:, 0] + place[:, 2]).max()) == (0, w)
        assert (place[:, 1].min(), (place[:, 1] + place[:, 3]).max()) == (0, h)
    message = " ".join(read.notes)
    assert "2 photographs were cut into 60 patches" in message
    assert "folder names were not read as labels" in message


# --- features -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def images() -> list[bytes]:
    return [jpeg(c.image) for c in cut(photograph(900, 460), "one")]


def test_features_are_made_once_and_kept_by_their_content(
    images: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = features.features(images, folder=tmp_path)
    assert made.shape[0] == 10
    assert np.isfinite(made).all()
    (kept,) = (tmp_path / "features").iterdir()
    monkeypatch.setattr(features, "handmade", lambda _: pytest.fail("made again"))
    assert np.array_equal(features.features(images, folder=tmp_path), made)
    monkeypatch.undo()
    kept.write_bytes(kept.read_bytes()[:100])  # a disk that was full
    assert np.array_equal(features.features(images, folder=tmp_path), made)
    features.features(images[:4], folder=tmp_path)
    assert len(list((tmp_path / "features").iterdir())) == 2
    assert np.array_equal(features.features(images, folder=kept), made)  # nowhere to keep them


@pytest.mark.slow
@pytest.mark.parametrize("source", [s.name for s in entry("clamp").sources if s.size[0] <= SHIPPED])
def test_features_of_what_is_drawn_are_shipped(source: str) -> None:
    """Those that would be made; `scripts/record_demo.py clamp` ships them anew."""
    images = PatchPool.of(open_table(entry("clamp"), source, entry("clamp").settings())).images
    place = package_file("features", f"{features.content_hash(images, features.KINDS[0])}.npy")
    assert place.is_file()
    result = np.load(io.BytesIO(place.read_bytes()))
    assert len(result) == len(images)
    np.testing.assert_allclose(
        result[::150], features.handmade(images[::150]), rtol=1e-5, atol=1e-6
    )


def test_features_do_not_ask_where_in_the_patch_a_thing_is_nor_how_light_it_is() -> None:
    soil = np.random.default_rng(0).integers(90, 110, (96, 96, 3)).astype(np.uint8)
    with_a_thing = [soil.copy() for _ in range(2)]
    with_a_thing[0][8:32, 8:32] = (240, 60, 20)
    with_a_thing[1][56:80, 40:64] = (240, 60, 20)
    darker = (0.6 * with_a_thing[0]).astype(np.uint8)
    plain, one, moved, dark = (features._of(image) for image in (soil, *with_a_thing, darker))
    apart = np.linalg.norm(one - plain)
    assert np.linalg.norm(one - moved) < 0.2 * apart
    assert np.linalg.norm(one - dark) < 0.5 * apart


def test_other_features_are_said(
    images: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="no features 'SIFT'"):
        features.features(images, "SIFT", tmp_path)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    with pytest.raises(BadInput, match=r"scant-gp\[inception\]"):
        features.features(images, "InceptionV3", tmp_path)
    assert not (tmp_path / "features").exists()


def test_a_table_of_patches_is_checked_like_any_other() -> None:
    table = table_of(cut(photograph(900, 460), "one"), [None] * 10)
    assert read_frame(table, TABLE, purpose="predict").frame["size"].tolist() == [299.0] * 10
