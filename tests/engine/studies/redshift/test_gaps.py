"""Models of their own for rows that lack some bands."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.events import Fitted
from scant.studies import entry
from scant.studies.redshift.settings import FIXED
from scant.training.api import Fit, fit, restore

pytestmark = pytest.mark.slow

BANDS = ["u", "g", "r", "i"]


def galaxies(n: int) -> pd.DataFrame:
    """Magnitudes of which the first two tell the target, and the others half of it."""
    generator = np.random.default_rng(3)
    z, size = generator.uniform(0.1, 1.0, n), 18 + 0.7 * generator.normal(size=n)
    table = {"z": z}
    for k, band in enumerate(BANDS):
        table[band] = size - (1.5 - 0.4 * k) * np.sin(4 * z + k) + 0.02 * generator.normal(size=n)
    return pd.DataFrame(table)


BLOBS = list[bytes]()


@cache
def run() -> Fit:
    # With a number of steps no clock decides what is left out.
    values = {
        "log_target": "no",
        "time_budget": 20.0,
        "gap_seconds": 40.0,
        "max_steps": 3000,
        "restarts": 2,
    }
    table = galaxies(700)
    table.loc[table.index % 7 == 0, ["u", "g"]] = np.nan
    made = fit("redshift", table, own=False, **values)
    BLOBS.extend(event.blob for event in made if isinstance(event, Fitted))
    return made


def score(run: Fit, off: list[str]) -> tuple[float, float]:
    """RMSE and mean log-likelihood of the test rows without some bands."""
    held = run.study.data.held.copy()
    held[off] = np.nan
    scored = run.study.posterior.score(held)
    error = scored.y - scored.value
    return float(np.sqrt(np.mean(error**2))), float(scored.log_density.mean())


def test_a_model_of_what_is_left_beats_the_integral() -> None:
    integral = score(run(), ["u", "i"])
    fitted = run().study.posterior
    fitted.meet(fitted.held, ["u", "i"])
    own = score(run(), ["u", "i"])
    assert own[1] > integral[1]
    assert own[0] < integral[0] * 1.1


def test_rows_of_different_gaps_are_answered_one_by_one_as_together() -> None:
    held = run().study.data.held.iloc[:6].copy()
    held.iloc[0, held.columns.get_loc("u")] = np.nan
    held.iloc[3, held.columns.get_loc("r")] = np.nan
    together = run().study.predict(held)
    for k in range(6):
        alone = run().study.predict(held.iloc[[k]])
        np.testing.assert_allclose(
            together.iloc[[k]].to_numpy(float), alone.to_numpy(float), rtol=1e-8
        )


def test_the_intervals_without_bands_cover_what_they_promise() -> None:
    held = run().study.data.held.copy()
    held["g"] = np.nan
    told = run().study.predict(held)
    inside = (told["lo95"] <= held["z"]) & (held["z"] <= told["hi95"])
    assert 0.88 < inside.mean() <= 1.0


def test_gaps_come_back_with_the_run() -> None:
    study = run().study
    again = restore("redshift", study.settings.values(), BLOBS[-1], "cpu")
    assert [*again.posterior.gaps.models] == [(False, False, True, True)]
    held = study.data.held.copy()
    held[["u", "g"]] = np.nan
    pd.testing.assert_frame_equal(study.predict(held), again.predict(held))


def test_without_time_or_wish_the_density_is_integrated_over() -> None:
    none = fit(
        "redshift", galaxies(300), own=False, log_target="no", time_budget=2.0, gap_seconds=0.0
    )
    for _ in none:
        pass
    assert not none.study.posterior.gaps.models
    for how in entry("redshift").settings.param["missing"].objects[1:]:
        made = fit(
            "redshift", galaxies(300), own=False, log_target="no", time_budget=2.0, missing=how
        )
        for _ in made:
            pass
        assert not made.study.posterior.gaps.models
        assert np.isfinite(score(made, ["u"])).all()


def test_what_text_was_made_into_is_never_taken_away() -> None:
    table = galaxies(300)
    table["sample"] = np.where(np.arange(300) % 3, "boss", "sdss")
    values = {"n_basis": 5, "max_steps": 3, "restarts": 1, "features": "colors"}
    made = fit("redshift", table, own=False, **FIXED | values)
    report = [*made][-1].report  # type: ignore[attr-defined]
    features, level = made.study.features, "sample = sdss"
    assert level in features.bands
    assert features.optional == BANDS
    assert report.arrays["missing"][0].tolist() == [0, 1, 2, 3]  # one band is left at least
    with pytest.raises(BadInput, match="the inputs are u, g, r, i"):
        made.study.explore("without", off=[level])
    with pytest.raises(BadInput, match="At least one input"):
        made.study.explore("without", off=BANDS)


def test_text_alone_has_no_bands_to_miss() -> None:
    table = galaxies(120)[["z"]]
    table["sample"] = np.where(table["z"] > 0.5, "far", "near")
    made = fit("redshift", table, own=False, **FIXED | {"n_basis": 3, "max_steps": 3})
    report = [*made][-1].report  # type: ignore[attr-defined]
    assert made.study.features.optional == []
    assert report.arrays["missing"][0].tolist() == [0]
    assert np.isfinite(made.study.explore("without", off=[])["metrics"]).all()
