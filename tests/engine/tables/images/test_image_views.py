"""A ZIP of images, with a table or without, as a table with views of each image."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from scant.errors import BadInput
from scant.studies.multiview.table import TABLE
from scant.tables.images import image_views, kinds
from scant.tables.images.features import GROUPS, handmade
from scant.tables.images.image_table import read_image_table
from scant.tables.images.pixels import jpeg
from scant.tables.schema import Table

VIEWS = ("colors", "gradients", "binary patterns")


@pytest.fixture(autouse=True)
def _without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "automatic", lambda: kinds.HANDMADE)
    monkeypatch.setattr(image_views, "features", lambda images, kind: handmade(images))


def png(shade: int) -> bytes:
    rng, out = np.random.default_rng(shade), io.BytesIO()
    noise = rng.integers(0, 60, (24, 32, 3)) + np.array([shade, 40, 90])
    Image.fromarray(noise.astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def packed(table: str = "", names: tuple[str, ...] = ()) -> bytes:
    names = names or tuple(f"{kind}/{i}.png" for kind in ("oak", "ash") for i in range(6))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i, name in enumerate(names):
            archive.writestr(name, png(10 * i))
        if table:
            archive.writestr("trees.csv", table)
    return out.getvalue()


def read(content: bytes, **how: str) -> Table:
    return read_image_table(content, TABLE, name="trees.zip", **how)


def test_folders_are_classes_and_each_image_has_three_views() -> None:
    table = read(packed())
    assert table.frame["label"].tolist() == ["ash"] * 6 + ["oak"] * 6
    assert tuple(dict.fromkeys(f.partition(".")[0] for f in table.features)) == VIEWS
    assert len(table.features) == len(GROUPS)
    with Image.open(io.BytesIO(png(60))) as first:  # ash/0.png
        own = handmade([jpeg(np.asarray(first), image_views.QUALITY)])[0]
    columns = [f for f in table.features if f.startswith("colors.")]
    np.testing.assert_allclose(table.frame[columns].iloc[0], own[GROUPS == "colors"])
    assert any("has the views colors" in note for note in table.notes)
    assert kinds.GAIN in table.notes
    assert table.ignored["file"].tolist()[:2] == ["ash/0.png", "ash/1.png"]


def test_a_table_in_the_archive_gives_targets_and_columns_of_its_own() -> None:
    rows = [f"{i}.png,{2.5 * i},{i % 5},{'ab'[i % 2]}" for i in range(14)]
    content = packed("\n".join(["image,y,site.height,kind", *rows]),
                     tuple(f"photos/{i}.png" for i in range(13)))  # fmt: skip
    table = read(content)
    assert table.frame["y"].tolist() == [2.5 * i for i in range(13)]
    assert table.features[0] == "site.height"
    assert table.frame["site.height"].tolist() == [i % 5 for i in range(13)]
    assert not any(f.startswith("kind") for f in table.features)
    assert any("columns of words in trees.csv were left out: kind" in note for note in table.notes)
    assert any("rows of trees.csv without an image were left out: 1" in n for n in table.notes)
    asked = read(
        packed("image,site.height\n3.png,7\n4.png,7", ("3.png", "4.png")), purpose="predict"
    )
    assert asked.features == table.features
    assert asked.frame["site.height"].tolist() == [7, 7]


def test_a_table_that_names_no_image_is_refused() -> None:
    rows = "\n".join(f"tree {i},{i}" for i in range(12))
    with pytest.raises(
        BadInput, match=r"no column names the images of the archive, such as 'ash/0\.png'"
    ):
        read(packed(f"file,y\n{rows}"))


def test_the_number_of_images_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_views, "MOST_IMAGES", 11)
    with pytest.raises(BadInput, match="holds 12 images and the limit is 11"):
        read(packed())
