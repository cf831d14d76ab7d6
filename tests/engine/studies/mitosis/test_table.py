"""Tables of classes of which one is rare: what is read, and what is refused in a sentence."""

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
from scant.studies.mitosis.entry import ENTRY
from scant.studies.mitosis.settings import MitosisSettings
from scant.studies.mitosis.table import TABLE, LabeledImages, breast_cancer
from scant.studies.omniglot.table import UNKNOWN
from scant.tables.read import inspect_table, read_frame, read_table
from tests.paths import TEMPLATES

TEMPLATE = TEMPLATES / "mitosis.csv"


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    named = {"label": list("xyyyxyyy"), "group": list("aabbccdd")}
    pixels = {f"p{i}": rng.uniform(size=8).round(3) for i in range(9)}
    return pd.DataFrame({**named, **pixels})


def csv(frame: pd.DataFrame, **how: object) -> bytes:
    return frame.to_csv(index=False, **how).encode()  # type: ignore[call-overload]


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


def test_names_as_people_give_them(table: pd.DataFrame) -> None:
    other = table.rename(columns={"label": "Diagnosis", "group": "Slide"})
    assert inspect_table(csv(other), TABLE).problems == ()
    assert LabeledImages.of(read_table(csv(other), TABLE).frame).groups == list("abcd")


def wide() -> pd.DataFrame:
    return pd.DataFrame(np.zeros((8, 25_000)), columns=[f"c{i}" for i in range(25_000)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.assign(label="x"), "only 1 different value, 'x'"),
        (lambda t: t.drop(columns="label"), "no column 'label'"),
        (lambda t: t.assign(p4=["1"] * 7 + ["ink"]), "column 'p4', row 9: got 'ink'"),
        (lambda t: t.assign(p4=[0.5] * 7 + ["inf"]), "'inf', which is infinite"),
        (lambda t: t.assign(p4=[0.5] * 7 + ["=cmd|' /C'!A0"]), "=cmd|"),
        (lambda t: t.assign(group=["a"] * 7 + [None]), "column 'group', row 9: the cell is empty"),
        (lambda t: t[["label", "group"]], "no feature column"),
        (lambda t: t.assign(**{c: None for c in t if c[0] == "p"}), "no feature column"),
        (lambda t: t[:7], "7 usable rows and at least 8"),
        (lambda t: t[:0], "no rows"),
        (lambda t: t.drop(columns="p5"), "up to 'p8' but no column 'p5'"),
        (lambda t: t.join(wide()), "limit is 25,000"),
    ],
)
def test_what_cannot_be_learnt_from_is_a_sentence(
    table: pd.DataFrame, change: object, said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        LabeledImages.of(read_table(csv(change(table)), TABLE, name="up.csv").frame)  # type: ignore[operator]
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x01\x02", b"PK\x03\x04 not a zip", b"<html><body>no</body></html>"]
)
def test_what_is_no_table_is_a_sentence(data: bytes) -> None:
    with pytest.raises(BadInput):
        read_table(data, TABLE, name="up.csv")
    assert inspect_table(data, TABLE, name="up.csv").problems


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_files_of_other_programs_are_read(
    table: pd.DataFrame, encoding: str, delimiter: str
) -> None:
    named = table.assign(label=["Zélle", *table["label"][1:]])
    data = named.to_csv(index=False, sep=delimiter).encode(encoding)
    read = LabeledImages.of(read_table(data, TABLE).frame)
    assert read.classes[0] == "Zélle"
    np.testing.assert_allclose(read.x, LabeledImages.of(table).x)


def test_doubled_and_constant_columns_are_kept_and_html_is_only_a_name(table: pd.DataFrame) -> None:
    odd = table.assign(p8=0.5, label=["<b>x</b>", *table["label"][1:]])
    twice = pd.concat([odd, odd.iloc[[0]]])
    read = read_table(csv(twice), TABLE)
    assert any("repeat an earlier one" in note for note in read.notes)
    assert LabeledImages.of(read.frame).classes[0] == "<b>x</b>"
    assert LabeledImages.of(read.frame).pixels


def packed(folders: dict[str, int], side: int = 12) -> bytes:
    """A ZIP with an image a path; the number is its gray."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, gray in folders.items():
            file = io.BytesIO()
            Image.fromarray(np.full((side, side), gray, np.uint8)).save(file, "PNG")
            archive.writestr(path, file.getvalue())
    return out.getvalue()


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


def test_archives_that_cannot_be_are_said(tmp_path: Path) -> None:
    one = {f"only/{i}.png": 200 for i in range(9)}
    (tmp_path / "one.zip").write_bytes(packed(one))
    with pytest.raises(BadInput, match=r"one\.zip.*'label': only 1 different value"):
        open_table(ENTRY, tmp_path / "one.zip", MitosisSettings())
    (tmp_path / "out.zip").write_bytes(packed({"../a/1.png": 1}))
    with pytest.raises(BadInput, match="leads out of the archive"):
        open_table(ENTRY, tmp_path / "out.zip", MitosisSettings())
    (tmp_path / "bare.zip").write_bytes(packed({"1.png": 1}))
    with pytest.raises(BadInput, match="must lie in folders label/"):
        open_table(ENTRY, tmp_path / "bare.zip", MitosisSettings())


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


def test_the_template_can_be_fitted() -> None:
    table = read_table(TEMPLATE, TABLE)
    assert table.notes == ()
    data = LabeledImages.of(table.frame)
    assert sorted(data.classes) == ["mitosis", "other"]
    assert data.pixels
    assert np.bincount(data.label).min() >= 5
    assert len(data.groups) > 2


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"n_shared_dims": 0, "n_private_dims": 0}, "latent space needs a dimension"),
        ({"imbalance": 0.5}, "1 or more, or to 0"),
        ({"n_components": 3, "n_shared_dims": 5}, "raise 'n_components'"),
        ({"n_private_dims": 0}, "choose bgplvm"),
        ({"max_steps": 0}, "at least 1"),
        ({"prior": "mine"}, "one of as in training"),
    ],
)
def test_settings_that_do_not_fit_together_are_said(values: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        MitosisSettings.parse(values)


def test_presets_are_settings_and_estimates_are_numbers() -> None:
    for values in ENTRY.presets.values():
        settings = MitosisSettings.parse(values)
        for source in ENTRY.sources:
            rows, columns = source.size  # type: ignore[misc]
            settled, _ = ENTRY.settled(settings, rows, columns, source.counts)
            seconds, held = ENTRY.estimate(settled, rows, columns, source.counts)  # type: ignore[misc]
            assert 1 < seconds < 3600
            assert 4e8 < held < 4e9
