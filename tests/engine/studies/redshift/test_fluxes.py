"""Fluxes are learned from as asinh magnitudes; their zero point does not matter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.studies.redshift.fluxes import as_magnitudes, flux_of, is_flux, magnitude, slope
from scant.studies.redshift.prepared import Prepared
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import FIXED, RedshiftSettings
from scant.studies.redshift.undetected import filled, limits

BANDS = [f"flux_{band}" for band in "ugri"]
SETTINGS = RedshiftSettings.parse({**FIXED, "features": "auto"})


def galaxies(scale: float = 1.0) -> pd.DataFrame:
    """Fluxes in a unit of any size; some in u are below zero."""
    rng = np.random.default_rng(0)
    bright = 10 ** (-0.4 * rng.normal(0, 1.5, (200, 1)) - 0.1 * rng.normal(0, 1, (200, 4)))
    table = pd.DataFrame(scale * (bright + rng.normal(0, 0.2, (200, 4))), columns=BANDS)
    for band in BANDS:
        table[f"{band}_err"] = scale * 0.2 * np.exp(rng.normal(0, 0.1, 200))
    return table.assign(z=rng.uniform(0.1, 1, 200))


@pytest.mark.parametrize(
    "name", ["flux_g", "FLUX_AUTO_R", "i_psfFlux", "FLUX_VIS_TEMPLFIT", "flux u [mJy]", "FLUX_W1"]
)
def test_fluxes_by_their_names(name: str) -> None:
    assert is_flux(name)


@pytest.mark.parametrize(
    "name",
    ["flux", "FLUX_RADIUS", "FLUX_RADIUS_I", "log_flux_g", "mag_g", "flux_ratio_g_r", "influx"],
)
def test_what_is_no_flux_in_a_band(name: str) -> None:
    assert not is_flux(name)


def test_asinh_magnitudes_are_magnitudes_of_bright_objects_and_linear_at_zero() -> None:
    flux, b = np.array([1e3, 1e4]), 0.1
    zero = -2.5 * np.log10(b)  # of asinh(f / 2b) -> ln(f / b)
    np.testing.assert_allclose(magnitude(flux, b), -2.5 * np.log10(flux) - zero, atol=1e-7)
    flux = np.array([-0.3, 0.0, 0.2, 50.0])
    np.testing.assert_allclose(flux_of(magnitude(flux, b), b), flux, atol=1e-12)
    step = 1e-6
    numeric = (magnitude(flux - step, b) - magnitude(flux + step, b)) / (2 * step)
    np.testing.assert_allclose(slope(flux, b), numeric, rtol=1e-6)


def test_the_unit_of_fluxes_does_not_change_the_inputs() -> None:
    table, other = galaxies(), galaxies(3631e6)
    features = Features.fit(table, BANDS, SETTINGS)
    assert (table[BANDS] < 0).any(axis=None)
    assert features.chosen.value == "colors"
    x = features.inputs(table)
    assert bool(x.isfinite().all())
    np.testing.assert_allclose(Features.fit(other, BANDS, SETTINGS).inputs(other), x, atol=1e-8)
    again = Features.of(features.fingerprint())
    np.testing.assert_array_equal(again.inputs(table), x)


def test_errors_of_fluxes_become_errors_of_magnitudes() -> None:
    table = galaxies()
    settings = {**FIXED, "robust": "no", "errors": "as noise"}
    features = Features.fit(table, BANDS, RedshiftSettings.parse(settings))
    made = as_magnitudes(table, features.softening)
    settings["features"] = "as given"
    given = Features.fit(made, BANDS, RedshiftSettings.parse(settings))
    np.testing.assert_allclose(features.noise(table), given.noise(made))


def test_fluxes_without_errors_and_a_limit() -> None:
    table = galaxies()[[*BANDS, "z"]]
    settings = RedshiftSettings.parse({**SETTINGS.values(), "robust": "no"})
    features = Features.fit(table, BANDS, settings)
    assert features.chosen.value == "colors"
    table["flux_u_lim"] = np.where(table["flux_u"] < 0.1, 0.1, np.nan)
    hit = table["flux_u_lim"].notna()
    table.loc[hit, "flux_u"] = np.nan
    beyond = limits(features, table)
    assert np.isfinite(beyond[hit, 0]).all()
    x = features.inputs(table).clone()
    x[x.isnan()] = 1.0
    np.testing.assert_allclose(features.inputs(filled(features, table, x, beyond)), x)


def test_a_person_is_told_and_may_learn_from_fluxes_as_given() -> None:
    data = Prepared(SETTINGS, galaxies())
    assert sum("asinh magnitudes" in note and "flux_u" in note for note in data.notes) == 1
    given = RedshiftSettings.parse({**FIXED, "features": "as given"})
    assert not Prepared(given, galaxies()).features.softening
