"""The simulated survey: physics where it can be checked; the query to SDSS."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

from scant.data_sources.fetch import DOWNLOADS
from scant.studies.redshift import sdss
from scant.studies.redshift import simulate as photometry
from scant.studies.redshift.simulate import BANDS, CLASSES, distance_modulus, simulate, spectrum


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    return simulate(6000, seed=1)


def colors(kind: str, z: float) -> np.ndarray:
    """u-g, g-r, r-i, i-z of a dust-free galaxy without noise."""
    blend = np.eye(len(CLASSES))[[list(CLASSES).index(kind)]]
    flux = photometry._mixed_flux(blend, np.zeros(1), np.array([z]))
    return -np.diff(-2.5 * np.log10(flux[0]))


def test_distances() -> None:
    """Flat LCDM, H0 = 70 km/s/Mpc, Omega_m = 0.3 (Hogg 1999), by another quadrature."""
    redshifts = np.array([0.02, 0.5, 1.0])
    comoving = [
        299_792.458 / 70 * quad(lambda z: (0.3 * (1 + z) ** 3 + 0.7) ** -0.5, 0, end)[0]
        for end in redshifts
    ]
    expected = 5 * np.log10((1 + redshifts) * comoving) + 25
    np.testing.assert_allclose(distance_modulus(redshifts), expected, atol=1e-4)


def test_colors_of_known_types() -> None:
    """Nearby colors of Fukugita et al. (1995), and the 4000 A break crossing g at z = 0.35."""
    np.testing.assert_allclose(colors("elliptical", 0.0)[:3], [1.75, 0.75, 0.40], atol=0.2)
    assert colors("elliptical", 0.0)[1] > colors("spiral", 0.0)[1] > colors("starburst", 0.0)[1]
    assert colors("elliptical", 0.35)[1] == pytest.approx(1.6, abs=0.2)
    passing = [(0.0, 0.35), (0.4, 0.75), (0.75, 1.1)]  # the break goes from g to r, i and z
    grown = [colors("elliptical", b)[1:] - colors("elliptical", a)[1:] for a, b in passing]
    assert [int(g.argmax()) for g in grown] == [0, 1, 2]


def test_dust_reddens_and_breaks_break() -> None:
    wavelength = np.array([350.0, 380.0, 420.0, 700.0])
    clean = spectrum("elliptical", wavelength)
    dusty = spectrum("elliptical", wavelength, 1.0)
    assert np.all(np.diff(dusty / clean) > 0)
    assert clean[2] / clean[1] > 1.7


def test_survey_is_limited_in_magnitude_and_reaches_redshift_one(survey: pd.DataFrame) -> None:
    assert survey.columns.tolist() == [
        *(f"mag_{b}" for b in BANDS),
        *(f"mag_{b}_err" for b in BANDS),
        "z",
    ]
    assert np.isfinite(survey.to_numpy()).all()
    assert 0.3 < survey["z"].median() < 0.6
    assert survey["z"].quantile(0.99) > 1.0
    assert survey["z"].between(0, 1.2).all()
    assert survey["mag_r"].quantile(0.9) < photometry.MAGNITUDE_LIMIT + 0.2


@pytest.mark.parametrize("band", BANDS)
def test_errors_grow_with_magnitude(survey: pd.DataFrame, band: str) -> None:
    magnitude, error = survey[f"mag_{band}"], survey[f"mag_{band}_err"]
    assert (error > 0).all()
    means = error.groupby(pd.qcut(magnitude, 8)).median().to_numpy()
    assert np.all(np.diff(means) > 0)
    # At the depth of a five-sigma detection the error is a fifth of a flux, by definition.
    near = (magnitude - photometry.DEPTHS[BANDS.index(band)]).abs() < 0.2
    if near.sum() > 20:
        assert error[near].median() == pytest.approx(2.5 / np.log(10) / 5, rel=0.25)


def test_noise_is_what_the_errors_say() -> None:
    rng = np.random.default_rng(0)
    flux = np.tile(10 ** (-0.4 * np.array([22.0, 22.0, 21.0, 20.5, 20.0])), (4000, 1))
    magnitude, error, _ = photometry._observe(flux, rng)
    standard = (magnitude - magnitude.mean(axis=0)) / error
    np.testing.assert_allclose(standard.std(axis=0), 1.0, atol=0.08)


def test_missing_bands() -> None:
    survey = simulate(3000, seed=2, missing=0.2, detection=3.0)
    magnitudes = survey[[f"mag_{b}" for b in BANDS]].isna().to_numpy()
    errors = survey[[f"mag_{b}_err" for b in BANDS]].isna().to_numpy()
    np.testing.assert_array_equal(magnitudes, errors)
    assert not magnitudes.all(axis=1).any()
    assert magnitudes[:, 2].mean() == pytest.approx(0.2, abs=0.05)
    assert magnitudes[:, 0].mean() > magnitudes[:, 2].mean() + 0.03  # faint in u


def test_missing_magnitudes_and_the_query() -> None:
    lines = ["#Table1", *simulate(400, seed=1).to_csv(index=False).splitlines()]
    cells = lines[2].split(",")
    cells[0] = cells[5] = "-9999"
    lines[2] = ",".join(cells)
    frame = sdss.read(("\n".join(lines) + "\n").encode(), "sdss")
    assert frame.loc[0, ["mag_u", "mag_u_err"]].isna().all()
    assert frame.notna().to_numpy().sum() == frame.size - 2
    assert "TOP 500 " in sdss.query(500)
    assert "'PEAKCENTER'" in sdss.query()
    assert DOWNLOADS["sdss"].url.endswith("format=csv")
