"""Preprocessing of redshift tables: magnitudes and errors to the inputs of GPz.

A linear map connects two coordinate systems. x: each measurement by itself, standardized; a band
that was not measured is one missing number. z = T x: the coordinates of training; for "colors" one
reference magnitude and the differences of neighboring bands; or principal components, all of them
as published (Almosallam 2017, section 6.3.1) or the first ones of many columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from scant.studies.auto import AUTO, Choice
from scant.studies.redshift.colors import alike, color_matrix, colors, contrasts, one_quantity
from scant.studies.redshift.components import projection, transformed, whole
from scant.studies.redshift.fluxes import as_magnitudes, softening
from scant.studies.redshift.settings import AS_GIVEN, COLORS, COMPONENTS, RedshiftSettings
from scant.tables.levels import measured

# Beyond this many robust deviations a value grows only logarithmically: its rank stays, but one
# galaxy of magnitude 35 no longer tilts the linear mean. For 99.5% of SDSS this is the identity.
TAME = 4.0
# In deviations of the band: a larger error only says that the band is unknown.
LARGEST_NOISE = 3.0


@dataclass(frozen=True)
class Features:
    """Map from the columns of a table to inputs; fitted once, on training and validation rows.

    Attributes:
        bands: The feature columns.
        errors: The bands whose `<band>_err` column is used.
        combine: b x b, from magnitudes to the combinations that are limited and trained on.
        use: Use of errors: "as features", "as noise" or "ignore".
        robust: Whether outliers are limited.
        centre: Robust centre of each combination, then of each log error.
        width: Robust deviation of each.
        mean: Mean of each measurement after limiting.
        scale: Deviation of each measurement after limiting.
        T: Matrix from x to z; q < d rows if z are the first principal components.
        softening: Softening of fluxes, which enter as asinh magnitudes (`fluxes`); by band.
    """

    bands: tuple[str, ...]
    errors: tuple[str, ...]
    combine: Float[ndarray, "b b"]
    use: str
    robust: bool
    centre: Float[ndarray, " d"]
    width: Float[ndarray, " d"]
    mean: Float[ndarray, " d"]
    scale: Float[ndarray, " d"]
    T: Float[ndarray, "q d"]
    softening: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        table: pd.DataFrame,
        bands: Sequence[str],
        settings: RedshiftSettings,
        robust: bool | None = None,
    ) -> Features:
        """Learn centres and scales from a table without its target.

        `robust` limits outliers; None: unless the setting is "no". A single band has no colors.
        Training on rows with missing bands uses x, with the identity as T (`Prepared.T`).
        """
        use = settings.errors
        errors = [b for b in bands if f"{b}_err" in table] if use != "ignore" else []
        softenings = softening(table, bands, errors) if settings.features != AS_GIVEN else {}
        group, converted = one_quantity(table, bands), as_magnitudes(table, softenings)
        colors = settings.features == COLORS and len(group) > 1
        if settings.features == AUTO:
            colors = alike(converted[group])
        combine = np.eye(len(bands))
        if colors:
            indices = np.flatnonzero([b in group for b in bands])
            combine[np.ix_(indices, indices)] = color_matrix(len(indices))
        d = len(bands) + (len(errors) if use == "as features" else 0)
        unscaled = cls(
            tuple(bands),
            tuple(errors),
            combine,
            use,
            settings.robust != "no" if robust is None else robust,
            centre=np.zeros(d),
            width=np.ones(d),
            mean=np.zeros(d),
            scale=np.ones(d),
            T=np.eye(d),
            softening=softenings,
        )
        measured = unscaled.measured(table)
        raw = unscaled.combined(measured)
        with warnings.catch_warnings():  # no row may have all parts of a combination
            warnings.simplefilter("ignore", RuntimeWarning)
            low, centre, high = np.nanpercentile(raw, [25, 50, 75], axis=0)
            width = _positive((high - low) / 1.349, np.nanstd(raw, axis=0))
            typical = unscaled.combined(np.nanmedian(measured, axis=0)[None])[0]
        centred = replace(unscaled, centre=np.where(np.isnan(centre), typical, centre), width=width)
        x = centred.tamed(centred.measured(table))
        mean, scale = np.nanmean(x, axis=0), _positive(np.nanstd(x, axis=0))
        T = np.diag(scale)
        T[: len(bands), : len(bands)] = combine @ T[: len(bands), : len(bands)]
        standardized = torch.as_tensor((x - mean) / scale)
        z = transformed(standardized, torch.as_tensor(T)).numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            spread = _positive(np.nanstd(z, axis=0))
        T = T / spread[:, None]
        if settings.features == COMPONENTS:
            T = projection(whole(standardized), d)
        return replace(centred, mean=mean, scale=scale, T=T)

    @property
    def chosen(self) -> Choice:
        """Choice of `features=auto`."""
        if self.reduced:
            count, d = self.T.shape
            return Choice("as given", f"{count} principal components of the {d} columns")
        if np.array_equal(self.combine, np.eye(len(self.bands))):
            return Choice("as given", "columns of different kinds")
        return Choice(COLORS, "columns that rise and fall together")

    @property
    def reduced(self) -> bool:
        """True if models are trained on fewer principal components than there are columns."""
        return len(self.T) < self.T.shape[1]

    @property
    def names(self) -> list[str]:
        """A name for each coordinate of x."""
        logs = [f"log {b}_err" for b in self.errors] if self.use == "as features" else []
        return [*self.bands, *logs]

    @property
    def columns(self) -> list[str]:
        """Columns of a table that are used, apart from limits."""
        return [*self.bands, *(f"{b}_err" for b in self.errors)]

    @property
    def optional(self) -> list[str]:
        """Bands that a row may lack, even if no row of the table does."""
        return measured(self.bands)

    @property
    def owners(self) -> list[int]:
        """Band index of each coordinate of x; an error belongs to its band."""
        logs = [self.bands.index(b) for b in self.errors] if self.use == "as features" else []
        return [*range(len(self.bands)), *logs]

    def contrasts(self, T: Float[ndarray, "q d"]) -> Float[ndarray, "k q"] | None:
        """Matrix from coordinates T x to combinations of bands in magnitudes (`colors.contrasts`).

        Returns:
            The matrix; None if the inputs are no colors, or are fewer than the columns.
        """
        rows = contrasts(self._neighbors)
        if not len(rows) or self.reduced:
            return None
        to_bands = np.linalg.solve(T.T, np.diag(self.scale)).T[: len(self.bands)]
        return np.asarray(rows @ to_bands)

    @property
    def colors(self) -> Float[ndarray, "k d"] | None:
        """Matrix from `measured` to all colors; None if the inputs are no colors."""
        rows = colors(self._neighbors)
        return np.pad(rows, ((0, 0), (0, len(self.mean) - rows.shape[1]))) if len(rows) else None

    @property
    def _neighbors(self) -> Float[ndarray, "k b"]:
        """Colors of neighboring bands, in terms of the bands."""
        return self.combine[[(row < 0).any() for row in self.combine]]

    def measured(self, table: pd.DataFrame) -> Float[ndarray, "n d"]:
        """Magnitudes and log errors, NaN where missing; absent columns are missing."""
        table = as_magnitudes(table, self.softening)
        columns = [_column(table, b) for b in self.bands]
        if self.use == "as features":
            with np.errstate(divide="ignore", invalid="ignore"):
                for band in self.errors:
                    error = _column(table, f"{band}_err")
                    columns.append(np.log(np.where(error > 0, error, np.nan)))
        return np.column_stack(columns)

    def combined(self, measured: Float[ndarray, "n d"]) -> Float[ndarray, "n d"]:
        """Combinations of magnitudes and log errors; NaN where a part is missing."""
        b = len(self.bands)
        bands = transformed(torch.as_tensor(measured[:, :b]), torch.as_tensor(self.combine))
        return np.column_stack([bands.numpy(), measured[:, b:]])

    def tamed(self, measured: Float[ndarray, "n d"]) -> Float[ndarray, "n d"]:
        """Measurements with outliers limited, converted back to magnitudes; NaN stays NaN.

        Combinations are limited, so a typical value replaces a missing band meanwhile.
        """
        if not self.robust:
            return measured
        b = len(self.bands)
        typical = np.concatenate([np.linalg.solve(self.combine, self.centre[:b]), self.centre[b:]])
        # The mean shift of the observed bands is added to the typical value of a missing band.
        deviation = measured[:, :b] - typical[:b]
        observed = np.maximum((~np.isnan(deviation)).sum(axis=1), 1)
        shift = np.nansum(deviation, axis=1) / observed
        typical = np.tile(typical, (len(measured), 1))
        typical[:, :b] += shift[:, None]
        filled = np.where(np.isnan(measured), typical, measured)
        deviation = (self.combined(filled) - self.centre) / self.width
        size = np.abs(deviation)
        limited = np.sign(deviation) * np.where(
            size > TAME, TAME + np.log1p(np.maximum(size - TAME, 0)), size
        )
        result = self.centre + self.width * limited
        result[:, :b] = np.linalg.solve(self.combine, result[:, :b].T).T
        return np.where(np.isnan(measured), np.nan, result)

    def inputs(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Float[Tensor, "n d"]:
        """Coordinates x of a table's rows; bands named in `off` count as not measured."""
        measured = self.measured(table)
        measured[:, [i for i, band in enumerate(self.bands) if band in off]] = np.nan
        measured = np.where(np.isnan(measured[:, self.owners]), np.nan, measured)
        return torch.as_tensor((self.tamed(measured) - self.mean) / self.scale)

    def noise(self, table: pd.DataFrame) -> Float[Tensor, "n d"] | None:
        """Variances of the coordinates x, where errors enter as noise; None where they do not."""
        if self.use != "as noise":
            return None
        table = as_magnitudes(table, self.softening)
        error = np.column_stack(
            [
                _column(table, f"{b}_err") if b in self.errors else np.zeros(len(table))
                for b in self.bands
            ]
        )
        share = np.nan_to_num(error, nan=0.0) / self.scale
        return torch.as_tensor(np.minimum(share, LARGEST_NOISE) ** 2)

    def fingerprint(self) -> dict[str, Any]:
        """All attributes, ready for JSON; `Features.of` is the inverse."""
        arrays = ("combine", "centre", "width", "mean", "scale", "T")
        stored: dict[str, Any] = {"bands": self.bands, "errors": self.errors, "use": self.use}
        stored |= {"softening": dict(self.softening)} if self.softening else {}
        return {**stored, "robust": self.robust, **{a: getattr(self, a).tolist() for a in arrays}}

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Features:
        """Restore features from their fingerprint."""
        arrays = {
            k: np.array(v)
            for k, v in stored.items()
            if k not in ("bands", "errors", "use", "robust", "softening")
        }
        return cls(
            bands=tuple(stored["bands"]),
            errors=tuple(stored["errors"]),
            use=stored["use"],
            robust=stored["robust"],
            softening=stored.get("softening", {}),
            **arrays,
        )


def _column(table: pd.DataFrame, name: str) -> Float[ndarray, " n"]:
    if name not in table:
        return np.full(len(table), np.nan)
    return table[name].to_numpy(dtype=float, na_value=np.nan)


def _positive(*candidates: Float[ndarray, " d"]) -> Float[ndarray, " d"]:
    """First candidate above zero, or one: a constant column must not divide by zero."""
    result = np.ones_like(candidates[0])
    for c in reversed(candidates):
        result = np.where(np.isfinite(c) & (c > 1e-12), c, result)
    return result
