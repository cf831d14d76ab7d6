"""Tables of classes of which one is rare: what is read, and what is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.data_sources.open import open_table, open_to_predict
from scant.errors import BadInput
from scant.studies.mitosis.entry import ENTRY
from scant.studies.mitosis.settings import MitosisSettings
from scant.studies.mitosis.table import TABLE, LabeledImages, breast_cancer
from scant.studies.omniglot.table import UNKNOWN
from scant.tables.read import read_frame, read_table
from tests.engine import files
from tests.engine.files import csv


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    named = {"label": list("xyyyxyyy"), "group": list("aabbccdd")}
    pixels = {f"p{i}": rng.uniform(size=8).round(3) for i in range(9)}
    return pd.DataFrame({**named, **pixels})


def test_rows_have_a_class_and_perhaps_a_group(table: pd.DataFrame) -> None:
    read = read_table(csv(table), TABLE)
    assert read.notes == ()
    data = LabeledImages.of(read.frame)
    assert data.classes == ["x", "y"]
    assert data.label.tolist() == [0, 1, 1, 1, 0, 1, 1, 1]
    assert data.groups == list("abcd")
    assert data.group.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert data.pixels
    pd.testing.assert_frame_equal(data.frame(), table.astype({"label": object, "group": object}))
    some = data.take(np.array([4, 1]))
    assert some.label.tolist() == [0, 1]
    assert some.x.tolist() == data.x[[4, 1]].tolist()
    alone = LabeledImages.of(read_table(csv(table.drop(columns="group")), TABLE).frame)
    assert alone.groups == []
    assert alone.group.tolist() == [0] * 8


def test_missing_cells_are_missing_values(table: pd.DataFrame) -> None:
    holes = table.assign(p3=[None, *table["p3"][1:]])
    data = LabeledImages.of(read_table(csv(holes), TABLE).frame)
    assert np.argwhere(np.isnan(data.x)).tolist() == [[0, 3]]
    floors = table.rename(columns={f"p{i}": f"f{i}" for i in range(9)})
    assert not LabeledImages.of(floors).pixels


def test_rows_to_predict_follow_the_training(table: pd.DataFrame) -> None:
    trained = LabeledImages.of(table)
    query = table[::-1].assign(label=["y", "q", "x", "y", "x", "x", "x", None])
    data = LabeledImages.of(query, trained.classes, trained.features)
    assert data.label.tolist() == [1, UNKNOWN, 0, 1, 0, 0, 0, UNKNOWN]
    bare = LabeledImages.of(
        table.drop(columns=["label", "group"]), trained.classes, trained.features
    )
    assert (bare.label == UNKNOWN).all()
    with pytest.raises(BadInput, match="lacks the column 'p3'"):
        LabeledImages.of(table.drop(columns="p3"), trained.classes, trained.features)
    with pytest.raises(BadInput, match="column 'p2', row 5: got 'ink'"):
        LabeledImages.of(table.assign(p2=[0.1] * 5 + ["ink"] + [0.2] * 2), rows=range(8))
    with pytest.raises(BadInput, match="column 'p2', row 1: got 'inf'"):
        LabeledImages.of(table.assign(p2=[0.1, np.inf] + [0.2] * 6))


def packed(folders: dict[str, int], side: int = 12) -> bytes:
    """A ZIP with an image a path; the number is its gray."""
    grays = {path: np.full((side, side), gray, np.uint8) for path, gray in folders.items()}
    return files.packed({path: files.image(gray) for path, gray in grays.items()})


@pytest.mark.parametrize("around", ["", "data/"])
def test_folders_are_classes_and_those_inside_are_groups(tmp_path: Path, around: str) -> None:
    flat = {f"{around}{c}/{i}.png": 200 + i for c in ("cancer", "other") for i in range(5)}
    (tmp_path / "flat.zip").write_bytes(packed(flat))
    table = open_table(ENTRY, tmp_path / "flat.zip", MitosisSettings(size=6))
    assert table["label"].tolist() == ["cancer"] * 5 + ["other"] * 5
    assert "group" not in table
    np.testing.assert_allclose(table["p0"][:2] * 255, [200, 201], atol=1e-4)  # light stays light
    assert not any("ink" in note for note in table.attrs["notes"])
    deep = {f"{around}{c}/s{i % 2}/{i}.png": 90 for c in ("cancer", "other") for i in range(5)}
    (tmp_path / "deep.zip").write_bytes(packed(deep))
    table = open_table(ENTRY, tmp_path / "deep.zip", MitosisSettings(size=6))
    assert table["label"].tolist() == ["cancer"] * 5 + ["other"] * 5
    assert table["group"].tolist() == ["s0", "s0", "s0", "s1", "s1"] * 2
    (tmp_path / "new.zip").write_bytes(packed({"new/1.png": 90, "new/2.png": 80}))
    query = open_to_predict(ENTRY, tmp_path / "new.zip", MitosisSettings(size=6))
    assert query["label"].tolist() == ["new", "new"]


def test_breast_tumors_come_with_scikit_learn() -> None:
    frame = breast_cancer(MitosisSettings())
    read = read_frame(frame, TABLE)
    assert read.notes == ()
    data = LabeledImages.of(read.frame)
    assert data.x.shape == (569, 30)
    assert not data.pixels
    assert sorted(np.bincount(data.label).tolist()) == [212, 357]
    assert data.classes[int(np.bincount(data.label).argmin())] == "malignant"
    assert not frame.equals(breast_cancer(MitosisSettings(data_seed=1)))
    size = next(s.size for s in ENTRY.sources if s.name == "breast_cancer")
    assert size == frame.shape
