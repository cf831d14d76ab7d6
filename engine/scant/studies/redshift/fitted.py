"""A fitted redshift study, for reports and queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.deadline import Deadline
from scant.ensemble import describe
from scant.errors import BadInput
from scant.models.gpz.change_of_basis import in_coordinates
from scant.models.gpz.completion import MAX_DENSE_INPUTS
from scant.models.gpz.input_density import Mixture
from scant.models.gpz.prediction import GPzPrediction
from scant.predictive import MixturePredictive
from scant.predictive.scored import Scored
from scant.studies.auto import AUTO
from scant.studies.learned_region import LearnedRegion
from scant.studies.predicted_table import checked
from scant.studies.protocol import Tensors
from scant.studies.redshift.capacity import gap_limit, stacks
from scant.studies.redshift.ensemble import GPZ, GPzEnsemble
from scant.studies.redshift.fold import Fold
from scant.studies.redshift.gap_fit import PatternFitter
from scant.studies.redshift.gap_patterns import LearnedRows, lacking
from scant.studies.redshift.gaps import MissingPatternModels, fit_gaps
from scant.studies.redshift.prepared import Prepared
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import BASIS_FUNCTIONS, RedshiftSettings
from scant.studies.redshift.target import Target
from scant.studies.redshift.undetected import Drawn

_Part = tuple[Int[np.ndarray, " r"], GPzEnsemble, Float[Tensor, "r d"], Float[Tensor, "r d"] | None]
REGION_ROWS = 1000  # learned rows stored with the model, to detect rows outside their region
# Test rows sent to the page and stored with the model, for quick answers: all of the demonstration,
# so that figures and table show the same rows.
SHOWN = 2000


@dataclass(frozen=True)
class FittedGPz:
    """Models with the features and the target that they were trained on.

    Reports and queries use this class alone and do not depend on how models were trained.

    Attributes:
        settings: Settings of the run.
        features: Map from the columns of a table to the coordinates x.
        target: Map from the target's unit to the model's, and back.
        ensemble: The models, in coordinates x.
        gaps: Models of rows with missing values.
        held: Test rows; in a restored study those stored with the model.
        known: Some of the learned rows, in coordinates x.
        learned: Rows to learn models of further gaps from; None: no further models.
        device: Device of the models.
    """

    settings: RedshiftSettings
    features: Features
    target: Target
    ensemble: GPzEnsemble
    gaps: MissingPatternModels
    held: pd.DataFrame
    known: Float[Tensor, "k d"]
    learned: LearnedRows | None
    device: torch.device

    @classmethod
    def fit(
        cls,
        data: Prepared,
        folds: Sequence[Fold],
        left_out: Sequence[GPzPrediction],
        T: Float[Tensor, "q d"],
        deadline: Deadline,
    ) -> FittedGPz:
        """Complete trained models by other members, densities and models of gaps.

        Args:
            data: Data of the run.
            folds: Divisions of the learned rows, with a trained model each.
            left_out: Predictions of each fold's left-out rows.
            T: Matrix from the inputs x to the coordinates of their rows.
            deadline: Deadline of the fit.
        """
        s, features, device = data.settings, data.features, T.device
        models = [fold.model for fold in folds]
        x = features.inputs(data.learn).to(device)
        if stacks(s) and len(folds[0].unseen.y):
            ensemble_deadline = deadline.leaving(data.gap_reserve)
            contrasts = features.contrasts(T.cpu().numpy())
            ensemble = GPzEnsemble.fit(
                folds, models, left_out, T, ensemble_deadline, contrasts=contrasts
            )
        else:
            ensemble = GPzEnsemble([in_coordinates(model, T) for model in models])
        density_rows = x
        if x.shape[1] > MAX_DENSE_INPUTS and len(data.partial):  # most rows lack a column
            density_rows = torch.cat([x, features.inputs(data.partial).to(device)])
        ensemble.fit_density(density_rows, s.missing)
        pattern_models, learned = MissingPatternModels(features, {}), None
        if ensemble.average is not None:
            rows = data.gap_rows
            seconds = gap_limit(s) if math.isfinite(deadline.seconds) else s.gap_seconds
            fitter = PatternFitter(features, data.target, s, rows, device)
            pattern_models = fit_gaps(fitter, data.gap_patterns, seconds, deadline)
            if s.missing == AUTO and s.gap_seconds:
                learned = rows.some(s.seed)
        region_rows = x[:: -(-len(x) // REGION_ROWS)].contiguous()
        return cls(
            s,
            features,
            data.target,
            ensemble,
            pattern_models,
            data.held,
            region_rows,
            learned,
            device,
        )

    @cached_property
    def region(self) -> LearnedRegion:
        """Region of the learned rows, in coordinates x."""
        return LearnedRegion(self.known.cpu().numpy())

    def copy(self) -> FittedGPz:
        """Return a copy whose `meet` adds no models to this one."""
        return replace(self, gaps=self.gaps.copy())

    @property
    def shown(self) -> pd.DataFrame:
        """Test rows of the report's arrays and of the queries."""
        return self.held.iloc[:SHOWN]

    @property
    def complete(self) -> pd.DataFrame:
        """Test rows without missing values."""
        return self.held[lacking(self.features, self.held).isfinite().all(1).numpy()]

    def meet(self, table: pd.DataFrame, off: Sequence[str] = ()) -> None:
        """Learn models for missing patterns of rows to predict, where there are none yet."""
        if self.learned is not None:
            fitter = PatternFitter(
                self.features, self.target, self.settings, self.learned, self.device
            )
            self.gaps.learn(lacking(self.features, table, off), fitter)

    def checked(self, table: pd.DataFrame) -> pd.DataFrame:
        """Check a table to predict, and learn models of its missing patterns.

        Raises:
            BadInput: The table has none of the features, or a cell is not a usable number.
        """
        bands = self.features.bands
        query = checked(table, gaps=[*self.features.columns, *(f"{b}_lim" for b in bands)])
        if not any(b in query for b in bands):
            raise BadInput(
                f"The table has none of the features {', '.join(bands)}; rename its columns to "
                "those of the training table."
            )
        self.meet(query)
        return query

    def predict(self, table: pd.DataFrame, off: Sequence[str] = ()) -> MixturePredictive:
        """Predict rows; bands in `off` count as not measured.

        The mixture is over the averaged models and, where values are missing, over their possible
        values.
        """
        draws = self._drawn(table, off)
        parts = self._parts(table if draws is None else draws.table, off)
        predictive = MixturePredictive.gathered(
            [(rows, ensemble.predict(x, noise)) for rows, ensemble, x, noise in parts]
        )
        return self.target.restore(predictive if draws is None else draws.mixed(predictive))

    def score(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Scored:
        """Predict rows with a known target, to score the mixture that `predict` returns.

        GPz alone with the publication's density of the inputs (`missing` is "basis functions") is
        scored as there: "each model provides a single Normal predictive distribution" (below
        Figure 5.4), also of rows with missing values.

        Args:
            table: n rows with bands and target.
            off: Bands that count as not measured.
        """
        predictive = self.predict(table, off)
        # Elsewhere the mixture counts: with a band missing p(z) may have several modes.
        published = self.settings.missing == BASIS_FUNCTIONS and self.ensemble.average is None
        if published and not self.target.positive:
            predictive = predictive.collapsed()
        return Scored(table[self.settings.target].to_numpy(float), predictive)

    def outside(self, table: pd.DataFrame) -> Int[np.ndarray, " n"]:
        """Return 1 where measurements are unlike the learned rows (`LearnedRegion`), else 0."""
        x = self.features.inputs(table).numpy()
        return np.asarray(self.region.outside(x).astype(np.int64))

    def _drawn(self, table: pd.DataFrame, off: Sequence[str]) -> Drawn | None:
        """Rows with draws of undetected bands; None if there are no such bands."""
        density = Mixture(*(part.cpu() for part in self.ensemble.models[0].mixture))
        return Drawn.of(self.features, density, table, off)

    def _parts(self, table: pd.DataFrame, off: Sequence[str]) -> Iterator[_Part]:
        """Yield rows, the ensemble that predicts them, its inputs and their noise."""
        noise = self.features.noise(table)
        x = self.features.inputs(table, off).to(self.device)
        noise = None if noise is None else noise.to(self.device)
        for pattern_model, rows in self.gaps.parts(x):
            if pattern_model is None:
                yield rows, self.ensemble, x[rows], None if noise is None else noise[rows]
            else:
                inputs = pattern_model.features.inputs(table.iloc[rows], off).to(x)
                yield rows, pattern_model.ensemble, inputs, None

    def limits(self) -> tuple[str, ...]:
        """Prediction methods, then their limits (`scant.events.Report.limits`)."""
        average = self.ensemble.average
        interpretation = (
            ["Basis functions and relevance of features are those of GPz alone."] if average else []
        )
        return (
            describe(average, GPZ),
            *interpretation,
            *self.gaps.limits(self.settings, self.learned),
        )

    def to_tensors(self, metadata: dict[str, Any]) -> tuple[Tensors, dict[str, Any]]:
        """Return tensors, and metadata that JSON can hold, for `from_tensors`.

        Args:
            metadata: Metadata of the run.
        """
        test_rows = self.shown.select_dtypes("number")
        tensors = self.ensemble.tensors()
        tensors["shown"] = torch.tensor(test_rows.to_numpy(float))
        tensors["known"] = self.known
        tensors |= self.gaps.tensors()
        if self.learned is not None:
            tensors["learned"] = torch.tensor(self.learned.table.to_numpy(float))
            tensors["unseen"] = torch.tensor(self.learned.unseen)
        meta = {
            "features": self.features.fingerprint(),
            "target": self.target._asdict(),
            "members": len(self.ensemble.models),
            "columns": list(test_rows.columns),
            "words": metadata,
            "gaps": self.gaps.meta(),
            "learned": [] if self.learned is None else list(self.learned.table.columns),
        }
        stack = self.ensemble.meta()
        return tensors, meta | ({"stack": stack} if stack else {})

    @classmethod
    def from_tensors(
        cls,
        settings: RedshiftSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> FittedGPz:
        """Restore from `to_tensors`."""
        features = Features.of(meta["features"])
        held = pd.DataFrame(tensors["shown"].cpu().numpy(), columns=meta["columns"])
        learned = None
        if columns := meta.get("learned"):
            rows = pd.DataFrame(tensors["learned"].cpu().numpy(), columns=columns)
            learned = LearnedRows(rows, tensors["unseen"].cpu().numpy())
        return cls(
            settings,
            features,
            Target(**meta["target"]),
            GPzEnsemble.from_tensors(tensors, meta["members"], settings, device, meta.get("stack")),
            MissingPatternModels.from_tensors(
                features, tensors, meta.get("gaps", ()), settings, device
            ),
            held,
            # Older stored models have test rows of the same table in place of learned rows.
            tensors["known"] if "known" in tensors else features.inputs(held),
            learned,
            device,
        )
