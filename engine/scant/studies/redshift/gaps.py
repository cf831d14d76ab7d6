"""Separate models for rows that lack some measurements.

The expectation over missing values (Almosallam 2017, 5.22-5.40) is as good as the density of the
inputs, and a mixture hardly describes ten correlated magnitudes and errors. If enough rows have the
other columns, p(z | other columns) can be learned from these rows directly, without a density.
Patterns of missing values (gaps) of a table get such models while time lasts. Learned rows are
stored with the model, so that models of further patterns can be learned when a table to predict has
them; any other gap is integrated over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.deadline import Deadline
from scant.studies.protocol import Tensors, part
from scant.studies.redshift.capacity import GAPS_LEFT, MOST_GAPS, gap_time, gaps_when_asked
from scant.studies.redshift.ensemble import GPzEnsemble
from scant.studies.redshift.gap_fit import MissingPatternModel, PatternFitter
from scant.studies.redshift.gap_patterns import GapPatterns, LearnedRows, Measured
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings

LISTED = 6  # gaps with a model that limits list
DENSITIES = {  # by the setting `missing`
    "integrate": "a Gaussian mixture fitted to all training rows by EM; the publication uses the "
    "centers and covariances of the basis functions",
    "one Gaussian": "one Gaussian fitted to all training rows; the publication uses the centers "
    "and covariances of the basis functions",
    "basis functions": "the density of centers and covariances of the basis functions, as "
    "published",
}


class MissingPatternModels:
    """Models of rows with missing values, by pattern.

    Args:
        features: Features of complete rows.
        models: Models by the coordinates that were measured.
    """

    def __init__(self, features: Features, models: dict[Measured, MissingPatternModel]) -> None:
        self.features, self.models = features, models

    def parts(
        self, x: Float[Tensor, "n d"]
    ) -> Iterator[tuple[MissingPatternModel | None, Int[np.ndarray, " r"]]]:
        """Yield models with the rows to predict; None: model of complete rows."""
        observed = (~x.isnan()).cpu().numpy()
        rest = np.ones(len(x), dtype=bool)
        for measured, pattern_model in self.models.items():
            rows = (observed == measured).all(1)
            if rows.any():
                rest &= ~rows
                yield pattern_model, np.flatnonzero(rows)
        if rest.any():
            yield None, np.flatnonzero(rest)

    def copy(self) -> MissingPatternModels:
        """Return a copy; models added to it are not added here."""
        return MissingPatternModels(self.features, dict(self.models))

    def learn(self, query: Float[Tensor, "n d"], fitter: PatternFitter) -> None:
        """Add models of the patterns of rows to predict, the most frequent first.

        How many there are and which have a GP of the nearest rows depends on the gaps that were
        met so far, not on the clock.

        Args:
            query: Rows to predict (`lacking`).
            fitter: Fits the models.
        """
        features, learned = self.features, fitter.learned
        query = query[query.isnan().any(1)]
        if not len(query):
            return
        patterns = GapPatterns.of(features, features.inputs(learned.table), learned.unseen, query)
        present = set(map(tuple, np.unique((~query.isnan()).numpy(), axis=0).tolist()))
        new = [p for p in patterns.measured if p in present and p not in self.models]
        n_old = len(self.models)
        time = gaps_when_asked(fitter.settings, n_old + len(new), len(learned.table))
        for k, measured in enumerate(new[: max(time.n_models - n_old, 0)], n_old):
            self.models[measured] = fitter.fit(measured, time, k)

    def limits(self, settings: RedshiftSettings, learned: LearnedRows | None) -> list[str]:
        """Sentences on the prediction of rows with missing values.

        Args:
            settings: Settings of the run.
            learned: Rows to learn models of further gaps from; None: no further models.
        """
        sentences, others = [], ""
        if self.models:
            every = ["without " + ", ".join(self._lacking(measured)) for measured in self.models]
            more = f" and {len(every) - LISTED} more" if len(every) > LISTED else ""
            sentences.append(
                f"Rows {'; '.join(every[:LISTED])}{more} are predicted by models of the remaining "
                "columns."
            )
            others = "other "
        max_models = 0
        if learned is not None:
            max_models = gaps_when_asked(settings, MOST_GAPS, len(learned.table)).n_models
        if max_models > len(self.models):
            sentences.append(
                f"If a table to predict lacks {others}columns, models of the remaining columns are "
                "trained when the table is given: for the most frequent gaps first, as many as "
                "fit into the time budget."
            )
            others = "other "
        density = DENSITIES.get(settings.missing, DENSITIES["integrate"])
        return [*sentences, f"GPz integrates over {others}missing values, under {density}."]

    def _lacking(self, measured: Measured) -> list[str]:
        """Names of the columns that are missing; a band stands for its error too."""
        off = {name for name, observed in zip(self.features.bands, measured) if not observed}
        errors = zip(self.features.errors, measured[len(self.features.bands) :])
        errors_alone = [
            f"{name}_err" for name, observed in errors if not observed and name not in off
        ]
        return [*(name for name in self.features.bands if name in off), *errors_alone]

    def tensors(self) -> Tensors:
        """Return tensors for `from_tensors`."""
        return {
            f"gap.{k}.{name}": value
            for k, pattern_model in enumerate(self.models.values())
            for name, value in pattern_model.ensemble.tensors().items()
        }

    def meta(self) -> list[dict[str, Any]]:
        """Return metadata for `from_tensors`, ready for JSON."""
        return [
            {
                "kept": list(measured),
                "features": pattern_model.features.fingerprint(),
                "members": len(pattern_model.ensemble.models),
                "stack": pattern_model.ensemble.meta(),
            }
            for measured, pattern_model in self.models.items()
        ]

    @classmethod
    def from_tensors(
        cls,
        features: Features,
        tensors: Tensors,
        meta: Sequence[Mapping[str, Any]],
        settings: RedshiftSettings,
        device: torch.device,
    ) -> MissingPatternModels:
        """Restore models from `tensors` and `meta`."""
        models = {}
        for k, stored in enumerate(meta):
            pattern_tensors = part(tensors, f"gap.{k}.")
            ensemble = GPzEnsemble.from_tensors(
                pattern_tensors, stored["members"], settings, device, stored["stack"]
            )
            models[tuple(stored["kept"])] = MissingPatternModel(
                Features.of(stored["features"]), ensemble
            )
        return cls(features, models)


def fit_gaps(
    fitter: PatternFitter, patterns: GapPatterns, seconds: float, deadline: Deadline
) -> MissingPatternModels:
    """Fit a model for each pattern, as far as time allows.

    Their number follows from the expected time, so that a fit is the same on any machine of the
    same speed.

    Args:
        fitter: Fits the models.
        patterns: Patterns, in the order in which they get models.
        seconds: Maximum expected time of all models.
        deadline: Deadline of the fit.
    """
    time = gap_time(seconds, len(patterns.measured), len(fitter.learned.table))
    work = deadline.share(GAPS_LEFT).within(fitter.settings.gap_seconds)
    to_fit = work.units(patterns.measured[: time.n_models], "models of gaps")
    models = {measured: fitter.fit(measured, time, k) for k, measured in enumerate(to_fit)}
    return MissingPatternModels(fitter.features, models)
