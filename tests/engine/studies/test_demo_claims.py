"""The recorded demonstrations fulfill the claims of their pages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scant.studies import STUDIES
from scripts.demo_spread import CLAIMS, recorded


@pytest.mark.parametrize("study", STUDIES)
def test_a_recorded_run_shows_what_its_page_claims(study: str) -> None:
    report = recorded(study)
    values = {claim.text: claim.value(report) for claim in CLAIMS[study]}
    failed = {claim.text: values[claim.text] for claim in CLAIMS[study] if not claim.holds(report)}
    assert values
    assert not failed


def test_a_run_that_shows_the_opposite_breaks_the_claim() -> None:
    report = recorded("clamp")
    swapped = {**report.arrays, "f1": report.arrays["f1"][::-1]}
    claim = CLAIMS["clamp"][0]
    assert claim.value(replace(report, arrays=swapped)) == pytest.approx(-claim.value(report))
