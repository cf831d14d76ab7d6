"""A simulated galaxy survey in ugriz.

A galaxy is a redshift, a spectral class (elliptical, spiral, starburst, and blends), dust and a
luminosity. Its spectrum, built from analytic pieces, is redshifted through five passbands; sky and
photon noise then give what a survey would publish: asinh magnitudes (Lupton, Gunn & Szalay 1999)
and errors that grow towards faint magnitudes. Colors are degenerate in places, mostly through dust
and non-detections in u, so that p(z) has two peaks there.

Columns are `mag_u … mag_z`, `mag_u_err … mag_z_err` (AB mag) and `z`. The fifth band is `mag_z`
because `z` is the redshift. Wavelengths are in nm, redshifts without unit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from scant.studies.redshift.entry import RedshiftSettings, survey_size

BANDS = ("u", "g", "r", "i", "z")
CENTERS = np.array([355.0, 469.0, 617.0, 748.0, 893.0])
WIDTHS = np.array([57.0, 139.0, 137.0, 153.0, 110.0])  # full width at half maximum
DEPTHS = np.array([23.6, 24.3, 24.0, 23.4, 22.4])  # AB magnitude of a five-sigma detection
LINES = np.array([372.7, 486.1, 500.7, 656.3])  # [O II], H beta, [O III], H alpha
MAGNITUDE_LIMIT = 22.3  # in r
HIGHEST = 1.2  # redshift
OMEGA_M, HUBBLE_DISTANCE = 0.3, 299_792.458 / 70.0  # flat LCDM, H0 = 70 km/s/Mpc; Mpc
FLOOR = 0.01  # mag, error of calibration
BLOCK = 2048  # galaxies of one random stream: a larger survey only adds rows

_POGSON = 2.5 / np.log(10.0)


class _Class(NamedTuple):
    """A spectral class: continuum, breaks, lines, dust, and its Schechter function in r."""

    blue: float  # exponent of f_lambda below 600 nm
    red: float  # exponent above
    break_4000: float  # flux below 400 nm over flux above
    break_balmer: float  # flux below 365 nm over flux above
    ultraviolet: float  # further exponent below 380 nm
    lines: tuple[float, ...]  # equivalent widths of LINES, nm
    dust: float  # mean A_V, mag
    brightness: float  # M* in r at z = 0
    slope: float  # faint-end slope alpha
    density: float  # relative phi*


CLASSES = {
    "elliptical": _Class(0.5, -0.4, 0.52, 0.95, 3.0, (0.0, 0.0, 0.0, 0.0), 0.05, -21.6, -0.5, 1.6),
    "spiral": _Class(-0.5, -0.9, 0.70, 0.80, 0.6, (1.0, 0.3, 0.3, 2.5), 0.35, -21.3, -1.0, 1.6),
    "starburst": _Class(-1.6, -1.8, 0.92, 0.75, 0.0, (4.5, 1.5, 5.0, 10.0), 0.25, -20.6, -1.3, 1.6),
}

_REDSHIFTS = np.linspace(0.0, HIGHEST, 241)
_DUST = np.linspace(0.0, 2.0, 9)
_DEEPEST, _STEP = 9.0, 0.02  # luminosity function's range either side of M*, magnitudes


def spectrum(
    kind: str, wavelength: Float[np.ndarray, " w"], dust: float = 0.0
) -> Float[np.ndarray, " w"]:
    """Rest-frame f_lambda of a class, in units of its dust-free flux at 600 nm.

    Args:
        kind: A key of `CLASSES`.
        wavelength: nm.
        dust: A_V in magnitudes, with the curve A ∝ λ^-0.7 of Charlot & Fall (2000).
    """
    c = CLASSES[kind]
    x = wavelength / 600.0
    flux = x**c.blue * ((1 + x**4) / 2) ** ((c.red - c.blue) / 4)
    flux *= c.break_4000 + (1 - c.break_4000) / (1 + np.exp(-(wavelength - 398.0) / 5.0))
    flux *= c.break_balmer + (1 - c.break_balmer) / (1 + np.exp(-(wavelength - 366.0) / 5.0))
    flux *= np.minimum(wavelength / 380.0, 1.0) ** c.ultraviolet
    for center, width in zip(LINES, c.lines):
        profile = np.exp(-0.5 * ((wavelength - center) / 3.0) ** 2) / (3.0 * np.sqrt(2 * np.pi))
        flux *= 1 + width * profile
    return flux * 10 ** (-0.4 * dust * (550.0 / wavelength) ** 0.7)


def passbands(wavelength: Float[np.ndarray, " w"]) -> Float[np.ndarray, "5 w"]:
    """Photon response of the five bands: top hats with soft edges."""
    distance = np.abs(wavelength - CENTERS[:, None]) - WIDTHS[:, None] / 2
    return 1 / (1 + np.exp(distance / 4.0))


def distance_modulus(z: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """m - M in magnitudes, without K-correction, in flat LCDM."""
    comoving = np.interp(z, _REDSHIFTS, _comoving())
    return 5 * np.log10(np.maximum((1 + z) * comoving, 1e-6)) + 25


def _comoving() -> Float[np.ndarray, " z"]:
    """Comoving distance on the redshift grid, Mpc (trapezoidal rule)."""
    inverse = 1 / np.sqrt(OMEGA_M * (1 + _REDSHIFTS) ** 3 + 1 - OMEGA_M)
    steps = np.diff(_REDSHIFTS) * (inverse[1:] + inverse[:-1]) / 2
    return HUBBLE_DISTANCE * np.concatenate([[0.0], np.cumsum(steps)])


@lru_cache(maxsize=1)
def _band_fluxes() -> Float[np.ndarray, "c v z 5"]:
    """Flux in each band over rest-frame r flux: class, dust, redshift, band. K-corrections."""
    wavelength = np.arange(300.0, 1000.0, 1.0)
    response = passbands(wavelength)
    # AB: photons counted, over those of a source that is flat in f_nu.
    weights = response * wavelength / (response / wavelength).sum(axis=1, keepdims=True)
    rest = np.linspace(100.0, 1000.0, 2701)
    table = np.empty((len(CLASSES), len(_DUST), len(_REDSHIFTS), len(BANDS)))
    for c, kind in enumerate(CLASSES):
        for v, dust in enumerate(_DUST):
            flux = spectrum(kind, rest, float(dust))
            observed = [np.interp(wavelength / (1 + z), rest, flux) / (1 + z) for z in _REDSHIFTS]
            table[c, v] = np.array(observed) @ weights.T
            table[c, v] /= table[c, v, 0, BANDS.index("r")]
    return table


def _mixed_flux(
    blend: Float[np.ndarray, "n c"], dust: Float[np.ndarray, " n"], z: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n 5"]:
    """Band fluxes over rest-frame r flux, linear between the grid's dust and redshift."""
    table = _band_fluxes()
    v = np.clip(dust / (_DUST[1] - _DUST[0]), 0, len(_DUST) - 1.001)
    k = np.clip(z / (_REDSHIFTS[1] - _REDSHIFTS[0]), 0, len(_REDSHIFTS) - 1.001)
    v0, k0 = v.astype(int), k.astype(int)
    total = np.zeros((len(z), len(BANDS)))
    for dv in (0, 1):
        for dk in (0, 1):
            share = np.abs(1 - dv - (v - v0)) * np.abs(1 - dk - (k - k0))
            total += share[:, None] * np.einsum("nc,cnb->nb", blend, table[:, v0 + dv, k0 + dk])
    return total


class _Census(NamedTuple):
    """Where galaxies above the magnitude limit are: by class and redshift, and how bright."""

    share: Float[np.ndarray, "c z"]
    faintest: Float[np.ndarray, "c z"]  # M - M* at the magnitude limit
    steps: Float[np.ndarray, " l"]  # M - M*
    cumulative: Float[np.ndarray, "c l"]


@lru_cache(maxsize=1)
def _census() -> _Census:
    z = _REDSHIFTS
    volume = _comoving() ** 2 / np.sqrt(OMEGA_M * (1 + z) ** 3 + 1 - OMEGA_M)
    steps = np.arange(-4.0, _DEEPEST, _STEP)
    luminosity = 10 ** (-0.4 * steps)
    k_correction = -2.5 * np.log10(_band_fluxes()[:, 0, :, BANDS.index("r")])
    share, faintest, cumulative = [], [], []
    for c, kind in zip(CLASSES.values(), range(len(CLASSES))):
        schechter = luminosity ** (c.slope + 1) * np.exp(-luminosity)
        below = np.cumsum(schechter)
        # Galaxies were brighter in the past, by about a magnitude at z = 1.
        limit = MAGNITUDE_LIMIT - distance_modulus(z) - k_correction[kind] - (c.brightness - z)
        share.append(c.density * volume * np.interp(limit, steps, below, left=0.0))
        faintest.append(limit)
        cumulative.append(below)
    total = np.array(share)
    return _Census(total / total.sum(), np.array(faintest), steps, np.array(cumulative))


def _draw(
    n: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, " n"], Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Redshift, class and absolute r magnitude of galaxies above the limit."""
    census = _census()
    cell = rng.choice(census.share.size, size=n, p=census.share.ravel())
    kind, k = np.divmod(cell, len(_REDSHIFTS))
    width = _REDSHIFTS[1]
    z = np.clip(_REDSHIFTS[k] + width * (rng.random(n) - 0.5), 0.005, HIGHEST)
    rank = rng.random(n)
    absolute = np.empty(n)
    for c, row in enumerate(CLASSES.values()):
        of_class = kind == c
        below = census.cumulative[c]
        top = np.interp(census.faintest[c, k[of_class]], census.steps, below)
        absolute[of_class] = (
            np.interp(rank[of_class] * top, below, census.steps) + row.brightness - z[of_class]
        )
    return z, kind, absolute


def _observe(
    flux: Float[np.ndarray, "n 5"], rng: np.random.Generator
) -> tuple[Float[np.ndarray, "n 5"], Float[np.ndarray, "n 5"], Float[np.ndarray, "n 5"]]:
    """Asinh magnitudes, their errors and the signal-to-noise of fluxes in units of 0 AB mag."""
    sky = 10 ** (-0.4 * DEPTHS) / 5 * np.exp(0.15 * rng.standard_normal((len(flux), 1)))
    # Photon noise of the source equals that of the sky at 21 mag, and calibration has a floor.
    photons = sky**2 * np.maximum(flux, 0) / 10 ** (-0.4 * 21.0)
    noise = np.sqrt(sky**2 + photons + (FLOOR / _POGSON * flux) ** 2)
    observed = flux + noise * rng.standard_normal(flux.shape)
    softening = 10 ** (-0.4 * DEPTHS) / 5
    magnitude = -_POGSON * (np.arcsinh(observed / (2 * softening)) + np.log(softening))
    # A survey estimates its noise from the observed flux.
    estimated = np.sqrt(sky**2 + sky**2 * np.maximum(observed, 0) / 10 ** (-0.4 * 21.0))
    estimated = np.hypot(estimated, FLOOR / _POGSON * observed)
    error = _POGSON * estimated / np.sqrt(observed**2 + 4 * softening**2)
    return magnitude, error, observed / estimated


def _block(rng: np.random.Generator) -> tuple[Float[np.ndarray, "n 11"], Float[np.ndarray, "n 5"]]:
    """`BLOCK` galaxies as rows of the table, and the signal-to-noise of their bands."""
    z, kind, absolute = _draw(BLOCK, rng)
    # Real classes shade into each other: a blend of up to a third of another class.
    blend = 0.67 * np.eye(len(CLASSES))[kind] + 0.33 * rng.dirichlet((0.4, 0.4, 0.4), BLOCK)
    dust = rng.exponential(np.array([c.dust for c in CLASSES.values()])[kind])
    apparent = absolute + distance_modulus(z)
    flux = 10 ** (-0.4 * apparent)[:, None] * _mixed_flux(blend, dust, z)
    magnitude, error, signal = _observe(flux, rng)
    return np.column_stack([magnitude, error, z]), signal


def simulate(
    n: int, seed: int = 0, *, missing: float = 0.0, detection: float = 0.0
) -> pd.DataFrame:
    """A survey of n galaxies; the first rows of a larger survey of the same seed are the same.

    Args:
        n: Rows.
        seed: Seed of every draw.
        missing: Share of bands that were not observed, at random (at least one band stays).
        detection: Bands below this signal-to-noise are missing; 0 keeps all, as asinh magnitudes
            are defined for any flux.

    Returns:
        `mag_<band>` and `mag_<band>_err` for u, g, r, i, z (AB mag; NaN together where missing),
        and the spectroscopic redshift `z`.
    """
    streams = np.random.SeedSequence(seed).spawn(-(-n // BLOCK))
    parts = []
    for stream in streams:
        rng = np.random.default_rng(stream)
        rows, signal = _block(rng)
        unobserved = rng.random(signal.shape) < missing
        if detection > 0:
            unobserved |= signal < detection
        empty = np.flatnonzero(unobserved.all(axis=1))
        unobserved[empty, signal[empty].argmax(axis=1)] = False
        rows[:, :10][np.tile(unobserved, (1, 2))] = np.nan
        parts.append(rows)
    names = [f"mag_{b}" for b in BANDS] + [f"mag_{b}_err" for b in BANDS] + ["z"]
    rows = np.concatenate(parts)[:n] if parts else np.empty((0, len(names)))
    return pd.DataFrame(rows, columns=names)


def demo(settings: RedshiftSettings, rows: int | None = None) -> pd.DataFrame:
    """The demonstration survey, with the number of galaxies in the settings, or `rows`."""
    return simulate(survey_size(settings) if rows is None else rows, settings.data_seed)
