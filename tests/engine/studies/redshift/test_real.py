"""The redshift study on real galaxies; skipped where they are not."""

import numpy as np
import pandas as pd
import pytest

import scant
from scant.studies.redshift.settings import FIXED
from tests.paths import REAL_DATA

GALAXIES = REAL_DATA / "photoz_sdss" / "galaxies.parquet"


@pytest.mark.skipif(not GALAXIES.is_file(), reason="SCANT_REAL_DATA names no photoz_sdss galaxies")
def test_boss_galaxies_are_placed_better_than_by_a_forest_also_with_bands_missing():
    galaxies = pd.read_parquet(GALAXIES)
    galaxies = galaxies[galaxies["sample"] == "boss_dr10"].sample(6000, random_state=0)
    table = pd.DataFrame({"z": galaxies["z_spec"].astype(float)})
    for band in "ugriz":
        table[f"mag_{band}"] = galaxies[band].astype(float)
        table[f"mag_{band}_err"] = galaxies[f"err_{band}"].astype(float)
    sizes = {"training_size": 3000, "validation_size": 800, "test_size": 2200}
    settings = {**FIXED, **sizes}
    *_, last = scant.fit("redshift", table.reset_index(drop=True), device="cpu", **settings)
    result = {(m.method, m.name): m.value for m in last.report.metrics}
    # GPz alone, beside a forest that has all colors: hardly better in RMSE, better in density.
    assert result["this run", "RMSE"] < 1.02 * result["random forest", "RMSE"]
    density = result["this run", "mean log-likelihood"]
    assert density > max(1.75, result["random forest", "mean log-likelihood"])
    assert 93 <= result["this run", "coverage of the 95% interval"] <= 97
    missing = last.report.arrays["missing"]
    assert np.array_equal(missing[0], [0, 1, 2, 3, 4])
    # The forest has learned from rows that lack bands: the integral is no better then, but the
    # whole rows' density is.
    assert missing[1, 2] < 1.1 * np.nanmin(missing[2:5, 2])
    assert missing[5, 0] > np.nanmax(missing[6:9, 0])
