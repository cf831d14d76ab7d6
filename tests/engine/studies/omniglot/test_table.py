"""Tables of outputs with classes of their own: what is read, and what is refused in a sentence."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.data_sources.open import open_table, open_to_predict
from scant.errors import BadInput
from scant.studies.omniglot.entry import ENTRY
from scant.studies.omniglot.settings import OmniglotSettings
from scant.studies.omniglot.table import TABLE, UNKNOWN, area, columns_of, nearest, of, side
from scant.tables.read import read_frame, read_table
from tests.engine.files import csv


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    named = {"output": list("aaaabbbb"), "label": list("xxyyxyzz")}
    pixels = {f"p{i}": rng.uniform(size=8).round(3) for i in range(9)}
    return pd.DataFrame({**named, **pixels})


def test_a_class_belongs_to_its_output(table: pd.DataFrame) -> None:
    data = of(read_table(csv(table), TABLE).frame)
    assert data.outputs == ["a", "b"]
    assert data.classes == [["x", "y"], ["x", "y", "z"]]
    assert data.offset.tolist() == [0, 2]
    assert data.number.tolist() == [0, 0, 1, 1, 2, 3, 4, 4]
    assert data.pixels
    assert data.x.shape == (8, 9)
    pd.testing.assert_frame_equal(data.frame(), table.astype({"output": object, "label": object}))
    some = data.take(np.array([7, 0]))
    assert some.number.tolist() == [4, 0]
    assert some.x.tolist() == data.x[[7, 0]].tolist()


def test_rows_to_predict_follow_the_training(table: pd.DataFrame) -> None:
    trained = of(table)
    query = table[::-1].assign(label=["z", "q", "x", "y", "x", "x", "z", None]).reset_index()
    data = of(query, trained.outputs, trained.classes, trained.features)
    assert data.output.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert data.label.tolist() == [2, UNKNOWN, 0, 1, 0, 0, UNKNOWN, UNKNOWN]
    assert data.number[:2].tolist() == [4, UNKNOWN]
    bare = of(table.drop(columns="label"), trained.outputs, trained.classes, trained.features)
    assert (bare.label == UNKNOWN).all()
    with pytest.raises(BadInput, match="column 'output', row 2: the model was not trained on 'c'"):
        of(table.assign(output=list("aacabbbb")), trained.outputs, trained.classes)
    with pytest.raises(BadInput, match="lacks the column 'p3'"):
        of(table.drop(columns="p3"), trained.outputs, trained.classes, trained.features)


def test_pixels_come_in_their_order_and_alone(table: pd.DataFrame) -> None:
    mixed = table[["output", "label", *[f"p{i}" for i in (3, 1, 0, 2, 8, 7, 6, 5, 4)]]]
    assert columns_of(mixed.assign(drawer=4.0)) == [f"p{i}" for i in range(9)]
    with pytest.raises(BadInput, match="up to 'p8' but no column 'p5'"):
        columns_of(table.drop(columns="p5"))
    floors = table.rename(columns={f"p{i}": f"wap{i}" for i in range(9)})
    assert columns_of(floors) == [f"wap{i}" for i in range(9)]
    assert not of(floors).pixels
    many = pd.DataFrame(np.zeros((2, 5000)), columns=[f"c{i}" for i in range(5000)])
    with pytest.raises(BadInput, match="5,000 columns of numbers, but needs 1 to 4,096"):
        columns_of(many)


def test_sides_of_images() -> None:
    assert side(400) == (20, 20)
    assert side(12, width=4) == side(12, height=3) == side(12, 4, 3) == (3, 4)
    with pytest.raises(
        BadInput, match="12 pixels do not form a square image; set 'width' and 'height'"
    ):
        side(12)
    with pytest.raises(BadInput, match="do not fit 12 pixels"):
        side(12, width=5)


def test_area_averages_keep_all_ink() -> None:
    rng = np.random.default_rng(0)
    images = rng.uniform(size=(3, 12, 8))
    small = area(images, 4)
    np.testing.assert_allclose(small, images.reshape(3, 4, 3, 4, 2).mean((2, 4)))
    uneven = area(images, 5)
    assert uneven.shape == (3, 5, 5)
    np.testing.assert_allclose(uneven.mean((1, 2)), images.mean((1, 2)))
    np.testing.assert_array_equal(area(images, 20), images)


def test_the_nearest_pixels_are_those_of_pillow() -> None:
    images = np.random.default_rng(0).integers(0, 256, size=(2, 21, 13)).astype(np.uint8)
    for size in (2, 4, 5, 12, 13, 20):
        high, wide = min(21, size), min(13, size)
        for image, small in zip(images, nearest(images.astype(float), size)):
            expected = Image.fromarray(image).resize((wide, high), Image.Resampling.NEAREST)
            np.testing.assert_array_equal(small, expected)
    np.testing.assert_array_equal(nearest(images.astype(float), 30), images)


def test_paper_that_never_holds_ink_and_rows_without_a_label(table: pd.DataFrame) -> None:
    read = read_table(csv(table.assign(p0=0.0, label=[None, *"xyyxyzz"])), TABLE)
    assert "p0" in read.features
    assert len(read.frame) == 7
    assert any("1 row without a value in 'label' was" in note for note in read.notes)
    hostile = table.assign(label=["<b>x</b>", "=1+1", *"yyxyzz"])
    assert of(read_frame(hostile, TABLE).frame).classes[0] == ["<b>x</b>", "=1+1", "y"]


def test_folders_of_classes_alone_are_one_output(table: pd.DataFrame) -> None:
    read = read_table(csv(table.drop(columns="output")), TABLE)
    assert set(read.frame["output"]) == {"all"}
    assert of(read.frame).outputs == ["all"]


def test_a_zip_of_images_is_fitted_and_predicted_like_a_table(tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a/x/1", "a/x/2", "a/y/1", "b/x/1", "b/y/1"):
            file = io.BytesIO()
            ink = (rng.uniform(size=(40, 40)) < 0.2).astype(np.uint8)
            Image.fromarray(255 * (1 - ink)).save(file, "PNG")
            archive.writestr(f"{name}.png", file.getvalue())
    settings = OmniglotSettings(size=10)
    frame = open_table(ENTRY, path, settings)
    data = of(frame)
    assert data.classes == [["x", "y"], ["x", "y"]]
    assert data.x.shape == (5, 100)
    assert 0.1 < data.x.mean() < 0.3
    assert any("ink" in note for note in frame.attrs["notes"])
    pd.testing.assert_frame_equal(open_to_predict(ENTRY, path, settings), frame)
    with pytest.raises(BadInput, match=r"or a file: CSV, TSV, .*, or a ZIP of images"):
        open_table(ENTRY, "drawings", settings)
    with pytest.raises(BadInput, match=r"no file absent\.zip"):
        open_table(ENTRY, tmp_path / "absent.zip", settings)
