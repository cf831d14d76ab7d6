"""Columns of errors are known by their headers, used where a study uses them, and else left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.tables.read import inspect_table, read_frame, read_table
from scant.tables.schema import TableSchema
from tests.engine.files import csv

ROWS = 40
REDSHIFT, CELLS = entry("redshift").table, entry("mitosis").table
QUANTITIES = ("alcohol", "total acid")


def table(*patterns: str, target: str = "quality") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = {q: rng.normal(10, 1, ROWS) for q in QUANTITIES}
    for quantity in QUANTITIES:
        for pattern in patterns:
            made[pattern.format(quantity)] = rng.uniform(0.1, 0.3, ROWS)
    return pd.DataFrame({**made, target: rng.normal(size=ROWS)})


def with_classes(*patterns: str) -> pd.DataFrame:
    return table(*patterns).drop(columns="quality").assign(grade=["good", "poor"] * (ROWS // 2))


@pytest.mark.parametrize(
    "pattern",
    [
        "{}_err", "err_{}", "e_{}", "sigma_{}", "{}Err", "{}_ERROR", "{}_std", "sd_{}", "{}_se",
        "{}_sem", "{}_stderr", "{} std. err.", "{} (standard error)", "{}_stddev", "{} (sd)",
        "standard deviation of {}", "error of {}", "{} uncertainty", "{}_unc", "± {}", "{} +/-",
        "σ {}", "{}_1sigma", "{} [error]",
    ],
)  # fmt: skip
def test_errors_are_known_by_their_headers(pattern: str) -> None:
    frame = table(pattern)
    preview = inspect_table(csv(frame), REDSHIFT, name="wine.csv")
    assert {preview.mapping[pattern.format(q)] for q in QUANTITIES} == {
        f"{q}_err" for q in QUANTITIES
    }
    assert preview.features == QUANTITIES
    if pattern != "{}_err":
        pairs = ", ".join(f"{pattern.format(q)} of {q}" for q in QUANTITIES)
        assert f"wine.csv: read as errors: {pairs}." in preview.warnings
    without = inspect_table(csv(with_classes(pattern)), CELLS, name="wine.csv")
    assert without.features == QUANTITIES


@pytest.mark.parametrize("pattern", ["{}_e", "d{}", "delta_{}", "u_{}", "worst {}", "{}2"])
def test_what_only_resembles_errors_is_learned_from(pattern: str) -> None:
    frame = table(pattern)
    assert inspect_table(csv(frame), REDSHIFT).features == tuple(frame)[:-1]


def test_numbers_of_both_signs_are_no_errors_to_a_study_without_them() -> None:
    frame = with_classes("{}_sd")
    frame["alcohol_sd"] -= 0.2
    assert inspect_table(csv(frame), CELLS).features == (*QUANTITIES, "alcohol_sd")


def test_a_study_without_errors_leaves_them_out_and_says_so() -> None:
    frame = with_classes("se_{}")
    preview = inspect_table(csv(frame), CELLS, name="wine.csv")
    sentence = "wine.csv: left out, because this study does not use errors of inputs: "
    assert f"{sentence}se_alcohol of alcohol, se_total acid of total acid." in preview.warnings
    agreed = read_table(csv(frame), CELLS, mapping=preview.mapping, name="wine.csv")
    assert any(note.startswith(sentence) for note in agreed.notes)
    chosen = read_table(csv(frame), CELLS, mapping={**preview.mapping, "se_alcohol": "se_alcohol"})
    assert chosen.features == (*QUANTITIES, "se_alcohol")
    assert chosen.reading["mapping"]["se_alcohol"] == "se_alcohol"  # of the next table too


def test_errors_of_the_target_are_no_inputs() -> None:
    frame = table().assign(quality_sd=0.1 + np.arange(ROWS) / 100)
    preview = inspect_table(csv(frame), REDSHIFT, name="wine.csv")
    assert (preview.mapping["quality"], preview.mapping["quality_sd"]) == ("z", "")
    assert (
        "wine.csv: left out, because these are errors of the target: quality_sd of quality."
        in preview.warnings
    )
    areas = pd.DataFrame(
        {
            "year_from": np.arange(ROWS), "year_to": np.arange(ROWS) + 1.0,
            "rate": frame["quality"], "rate (SE)": 0.1 + np.arange(ROWS) / 100,
            "lat": np.arange(ROWS) % 7, "lat_sd": 0.5 + np.arange(ROWS) % 3,
        }
    )  # fmt: skip
    schema = entry("aggregation").table
    read = read_table(csv(areas), schema, mapping=inspect_table(csv(areas), schema).mapping)
    np.testing.assert_allclose(read.frame["y_err"], areas["rate (SE)"])
    assert read.features == ("year_lo", "year_hi", "lat")


def test_of_asymmetric_errors_the_upper_ones_are_taken() -> None:
    frame = table("{}err2", "{}err1")
    for quantity in QUANTITIES:
        frame[f"{quantity}err2"] *= -1  # as the NASA Exoplanet Archive writes lower ones
    preview = inspect_table(csv(frame), REDSHIFT, name="planets.csv")
    assert preview.mapping["alcoholerr1"] == "alcohol_err"
    assert preview.mapping["alcoholerr2"] == ""
    assert any("another column has errors of the same" in w for w in preview.warnings)
    assert not preview.problems
    read = read_table(csv(frame), REDSHIFT, mapping=preview.mapping)
    again = read_frame(read.frame, REDSHIFT, target="z")
    assert again.features == QUANTITIES
    np.testing.assert_allclose(again.frame["alcohol_err"], frame["alcoholerr1"])


@pytest.mark.parametrize(
    ("header", "power"), [("ivar_{}", -2), ("inverse variance of {}", -2), ("{}_var", 2)]
)
def test_variances_are_read_as_errors(header: str, power: int) -> None:
    frame = table("{}_sd")
    errors = {n: frame.pop(f"{n}_sd").to_numpy() for n in QUANTITIES}
    frame = frame.assign(**{header.format(n): errors[n] ** power for n in QUANTITIES})
    preview = inspect_table(csv(frame), REDSHIFT, name="flux.csv")
    assert preview.features == QUANTITIES
    assert any("flux.csv: read as errors, by" in w for w in preview.warnings)
    read = read_table(csv(frame), REDSHIFT, mapping=preview.mapping)
    for name in QUANTITIES:
        np.testing.assert_allclose(read.frame[f"{name}_err"], errors[name])
    again = read_frame(read.frame, REDSHIFT, target="z")  # errors of before
    pd.testing.assert_frame_equal(again.frame, read.frame)


def test_an_inverse_variance_of_zero_means_not_observed() -> None:
    """As in the Legacy Surveys' `flux_ivar_g`, whose flux is then 0."""
    n = np.arange(ROWS)
    flux, ivar = np.where(n == 5, 0.0, 1.0 + n % 7), np.where(n == 5, 0.0, 4.0 + n % 3)
    z = np.linspace(0.1, 1, ROWS)
    for name in ("FLUX_IVAR_G", "fluxivar_g"):
        frame = pd.DataFrame({"FLUX_G": flux, name: ivar, "flux_r": flux + 1, "z": z})
        read = read_table(csv(frame), REDSHIFT)
        assert read.features == ("FLUX_G", "flux_r")
        assert read.frame["FLUX_G"].isna().tolist() == (n == 5).tolist()
        np.testing.assert_allclose(read.frame["FLUX_G_err"].dropna(), ivar[n != 5] ** -0.5)
        assert any("1 cell with an inverse variance of 0 was read as" in s for s in read.notes)
    taken = frame.assign(flux_g_err=0.5)  # an error column goes before a variance
    read = read_table(csv(taken), REDSHIFT)
    assert set(read.frame["FLUX_G_err"]) == {0.5}
    text = "of features whose errors another column has: fluxivar_g"
    assert any(text in note for note in read.notes)


@pytest.mark.parametrize("cell", ["abc", "-3"])
def test_a_bad_variance_is_named_as_it_was_written(cell: str) -> None:
    frame = table("ivar_{}", target="z").astype(object)
    frame.loc[3, "ivar_alcohol"] = cell
    with pytest.raises(BadInput, match=rf"'ivar_alcohol', row 5: got '?{cell}'?,"):
        read_table(csv(frame), REDSHIFT)


def schema_with(*, errors: bool) -> TableSchema:
    return TableSchema(columns=REDSHIFT.columns, features=True, errors=errors)


@pytest.mark.parametrize("errors", [True, False])
def test_wide_tables_are_matched_in_one_pass(errors: bool) -> None:
    frame = pd.DataFrame(
        np.random.default_rng(0).uniform(1, 2, (ROWS, 3001)),
        columns=[*(f"g{i}" for i in range(1500)), *(f"g{i}_sd" for i in range(1500)), "z"],
    )
    assert len(inspect_table(csv(frame), schema_with(errors=errors)).features) == 1500
