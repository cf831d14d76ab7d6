"""Of any common table the study, the target and the inputs are guessed; of most rightly."""

from __future__ import annotations

import pytest
from scant.studies import STUDIES, entry
from scant.studies.suits import suits
from scant.tables.read import inspect_table

from tests.engine.tables.public_tables import Case, cases

CASES = {case.name: case for case in cases()}
# Tables whose form does not say what they are for: nobody could guess without reading about them.
WRONG = {
    "statsmodels ccard": "study: mitosis",  # a binary column is the last
    "statsmodels cpunish": "target: 'DEGREE'",  # of six numbers the second is learned
    "statsmodels stackloss": "target: 'ACIDCONC'",
    "statsmodels statecrime": "target: 'urban'",
    "statsmodels star98": "target: 'PERSPEN_PTRATIO_PCTAF'",
}


def verdict(case: Case) -> str:
    """What is wrong about the guess; "" where nothing is."""
    preview = inspect_table(case.data, entry("redshift").table, name="mine")
    found = suits(preview.columns, preview.n_rows)
    if not found or found[0].study != case.study:
        return f"study: {found[0].study if found else None}"
    own = inspect_table(case.data, entry(case.study).table, name="mine")
    targets = {*entry(case.study).table.targets, "z"}
    target = next((name for name, to in own.mapping.items() if to in targets), "")
    if not case.target:
        return "" if set(own.names) == {"output", "replica", "x", "y"} else "not turned long"
    if target != case.target:
        return f"target: {target!r}"
    used = {name for name, to in own.mapping.items() if to in own.features}
    if used & set(case.left_out):
        return f"inputs: {sorted(used)}"
    return "" if used or case.study == "genes" else f"no inputs: {own.problems}"


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_understood(name: str) -> None:
    assert verdict(CASES[name]) == WRONG.get(name, "")


def test_nine_of_ten_tables_are_understood() -> None:
    assert len(CASES) >= 50
    assert len(WRONG) <= 0.1 * len(CASES)
    assert set(WRONG) <= set(CASES)
    assert {case.study for case in CASES.values()} == set(STUDIES)
