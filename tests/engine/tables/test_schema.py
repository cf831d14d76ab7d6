"""Names, purposes, and the schemas of the other pages through the same reader."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.studies.redshift.simulate import BANDS, simulate
from scant.tables.read import inspect_table, read_table
from scant.tables.schema import Column, TableSchema

REDSHIFT = entry("redshift").table
AGGREGATION = TableSchema(
    columns=(Column("task", "label"), Column("y", target=True)),
    features=True,
    boxes=True,
    minimum_rows=4,
)
CLAMP = TableSchema(
    columns=(Column("label", "label", target=True, missing=True),), features=True, minimum_rows=2
)


def frame(**columns: list[object]) -> bytes:
    return pd.DataFrame(columns).to_csv(index=False).encode()


@pytest.mark.parametrize("pattern", ["err_{}", "e_{}", "{}_error", "{}Err", "sigma_{}", "{}_ERR"])
def test_names_of_errors_and_target_are_guessed(pattern: str) -> None:
    table = simulate(80).rename(
        columns={f"mag_{b}_err": pattern.format(f"mag_{b}") for b in BANDS} | {"z": "Z_spec"}
    )
    preview = inspect_table(table.to_csv(index=False).encode(), REDSHIFT)
    assert preview.mapping["Z_spec"] == "z"
    assert preview.mapping[pattern.format("mag_g")] == "mag_g_err"
    assert not preview.problems
    read = read_table(table.to_csv(index=False).encode(), REDSHIFT)
    assert list(read.frame) == list(simulate(1))
    assert read.features == tuple(f"mag_{b}" for b in BANDS)


def test_a_band_called_z_is_not_silently_learnt() -> None:
    names = {f"mag_{b}": b for b in BANDS} | {f"mag_{b}_err": f"err_{b}" for b in BANDS}
    table = simulate(80).rename(columns={"z": "z_spec"}).rename(columns=names)
    data = table.to_csv(index=False).encode()
    by_itself = read_table(data, REDSHIFT)
    assert by_itself.features == ("u", "g", "r", "i", "z_band")
    np.testing.assert_allclose(by_itself.frame["z"], table["z_spec"])
    assert any("'z', which looks like a magnitude, and 'z_spec'" in n for n in by_itself.notes)
    read = read_table(data, REDSHIFT, target="z_spec")
    assert read.features == tuple(BANDS)
    assert "z_err" in read.frame
    shown = inspect_table(data, REDSHIFT, name="own.csv")
    assert shown.problems == ()  # a visitor sees what is suggested, and has but to agree
    assert any("own.csv has both 'z'" in note for note in shown.warnings)
    agreed = read_table(data, REDSHIFT, mapping=shown.mapping)
    assert agreed.features == ("u", "g", "r", "i", "z_band")
    assert "z_band_err" in agreed.frame
    np.testing.assert_allclose(agreed.frame["z"], table["z_spec"])
    swapped = read_table(data, REDSHIFT, mapping={"z": "mag_z", "z_spec": "z"})
    np.testing.assert_allclose(swapped.frame["z"], table["z_spec"])


def test_mapping_is_obeyed_and_checked() -> None:
    data = simulate(80).to_csv(index=False).encode()
    read = read_table(data, REDSHIFT, mapping={"mag_u": "", "mag_u_err": ""})
    assert "mag_u" not in read.features
    assert len(read.ignored["mag_u"]) == 80
    with pytest.raises(BadInput, match="both mapped to 'z'"):
        read_table(data, REDSHIFT, mapping={"mag_u": "z"})
    with pytest.raises(BadInput, match="no column 'nothing'"):
        read_table(data, REDSHIFT, mapping={"nothing": "z"})


def test_preview_shows_what_is_there() -> None:
    table = simulate(80, missing=0.2).assign(name="=1+1", blank=np.nan)
    preview = inspect_table(table.to_csv(index=False).encode(), REDSHIFT)
    assert preview.n_rows == 80
    assert preview.names == tuple(table)
    assert len(preview.head) == 8
    assert preview.head[0][-2] == "=1+1"
    kinds = {c.name: c for c in preview.columns}
    assert kinds["name"].kind == "text"
    assert kinds["blank"].kind == "empty"
    assert kinds["mag_u"].missing == table["mag_u"].isna().sum()
    assert kinds["mag_u"].minimum == pytest.approx(table["mag_u"].min())


def test_hash_is_of_the_data_and_not_of_the_file() -> None:
    table = simulate(80)
    one = read_table(table.to_csv(index=False).encode(), REDSHIFT).sha256
    other = read_table(table.to_csv(index=False, sep=";").encode("utf-16"), REDSHIFT).sha256
    changed = read_table(table.assign(z=table["z"] + 1e-9).to_csv(index=False).encode(), REDSHIFT)
    assert one == other != changed.sha256


def test_predicting_keeps_every_row() -> None:
    bands = [f"mag_{b}" for b in BANDS]
    table = simulate(5).drop(columns=["z", "mag_u", "mag_u_err"]).assign(mag_r=20.0, id="x")
    table.loc[2] = np.nan
    table.loc[2, "id"] = "blank"
    data = table.to_csv(index=False).encode()
    read = read_table(data, REDSHIFT, purpose="predict", features=bands)
    assert len(read.frame) == 5
    assert read.features == tuple(bands)
    assert read.frame["mag_u"].isna().all()
    assert "mag_g_err" in read.frame
    assert any("lacks mag_u" in n for n in read.notes)
    assert list(read.ignored["id"]) == ["x", "x", "blank", "x", "x"]
    with pytest.raises(BadInput, match="lacks the column 'a'"):
        read_table(data, REDSHIFT, purpose="predict", features=["a", "b"])
    with pytest.raises(BadInput, match="lacks the column 'x_hi'"):
        read_table(
            frame(task=["a"], x_lo=[0.0]),
            AGGREGATION,
            purpose="predict",
            features=["x_lo", "x_hi"],
        )


def test_boxes() -> None:
    good = {"task": ["a", "a", "b", "b"], "y": [1, 2, 3, 5], "t": [0.1, 0.2, 0.3, 0.4]}
    box = {"x_lo": [0, 1, 2, 3], "x_hi": [1, 2, 3, 4]}
    read = read_table(frame(**good, **box), AGGREGATION)
    assert read.features == ("t", "x_lo", "x_hi")
    assert list(read.frame["task"]) == ["a", "a", "b", "b"]
    upside_down = {"x_lo": [0, 1, 2, 3], "x_hi": [1, 2, 1.5, 4]}
    with pytest.raises(BadInput, match=r"'x_hi', row 4: 1\.5 is below x_lo = 2; swap"):
        read_table(frame(**good, **upside_down), AGGREGATION)
    with pytest.raises(BadInput, match="no column 'x_hi'"):
        read_table(frame(**good, x_lo=[0, 1, 2, 3]), AGGREGATION)
    with pytest.raises(BadInput, match="a point or a box"):
        read_table(frame(**good, **box, x=[0, 1, 2, 4]), AGGREGATION)
    with pytest.raises(
        BadInput, match="too few usable rows: 3, and at least 4 are needed"
    ):  # one has a gap
        read_table(frame(**(good | {"t": [0.1, None, 0.3, 0.4]}), **box), AGGREGATION)


def test_labels_that_may_be_empty() -> None:
    read = read_table(frame(label=["a", None, "b"], f=[1, 2, 3]), CLAMP)
    assert read.frame["label"].fillna("?").tolist() == ["a", "?", "b"]
    nothing = read_table(frame(label=[None, None], f=[1, 2]), CLAMP)
    assert nothing.frame["label"].isna().all()
