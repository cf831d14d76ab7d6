"""A fitted redshift study as data, for its report and its queries."""

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
from scant.studies.redshift.gap_patterns import LearnedRows, lacking
from scant.studies.redshift.gaps import MissingPatternModels, fit_gaps
from scant.studies.redshift.prepared import Prepared
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import BASIS_FUNCTIONS, RedshiftSettings
from scant.studies.redshift.target import Target
from scant.studies.redshift.undetected import Drawn

_Part = tuple[Int[np.ndarray, " r"], GPzEnsemble, Float[Tensor, "r d"], Float[Tensor, "r d"] | None]
REGION_ROWS = 1000  # learned rows that stay with the model, to tell rows that lie outside
# Test rows that travel to the page and stay with the model, for quick answers: all of the
# demonstration's, so that figures and table are of the same rows.
SHOWN = 2000


@dataclass(frozen=True)
class FittedGPz:
    """Models with the features and the target that they were trained on.

    Report and answers use it alone, so that they need not know how the models were trained.

    Attributes:
        settings: Settings of the run.
        features: From the columns of a table to the coordinates x.
        target: From the target's unit to the model's, and back.
        ensemble: The models, in coordinates x.
        gaps: Models of rows with missing values.
        held: Test rows; of a restored study those that were kept with the model.
        known: Some of the learned rows, in coordinates x.
        learned: Rows from which models of further gaps are learned; None: none are.
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
        """Fit all that stands beside trained models: other members, densities, models of gaps.

        Args:
            data: Data of the run.
            folds: Divisions of the learned rows, with a trained model each.
            left_out: Prediction of the rows that each has left out.
            T: Matrix from the inputs x to the coordinates of their rows.
            deadline: Deadline of the fit.
        """
        s, features, device = data.settings, data.features, T.device
        models = [fold.model for fold in folds]
        x = features.inputs(data.learn).to(device)
        if stacks(s) and len(folds[0].unseen.y):
            average = deadline.leaving(data.gap_reserve)
            ensemble = GPzEnsemble.fit(folds, models, left_out, T, average)
        else:
            ensemble = GPzEnsemble([in_coordinates(model, T) for model in models])
        density_rows = x
        if x.shape[1] > MAX_DENSE_INPUTS and len(data.partial):  # of so many, most rows lack one
            density_rows = torch.cat([x, features.inputs(data.partial).to(device)])
        ensemble.fit_density(density_rows, s.missing)
        gaps, learned = MissingPatternModels(features, {}), None
        if ensemble.average is not None:
            rows = data.gap_rows
            seconds = gap_limit(s) if math.isfinite(deadline.seconds) else s.gap_seconds
            gaps = fit_gaps(
                features, data.target, s, data.gap_patterns, rows, device, seconds, deadline
            )
            if s.missing == AUTO and s.gap_seconds:
                learned = rows.some(s.seed)
        known = x[:: -(-len(x) // REGION_ROWS)].contiguous()
        return cls(s, features, data.target, ensemble, gaps, data.held, known, learned, device)

    @cached_property
    def region(self) -> LearnedRegion:
        """Where rows were learned from, in coordinates x."""
        return LearnedRegion(self.known.cpu().numpy())

    def copy(self) -> FittedGPz:
        """Return a copy whose `meet` learns no models for this one."""
        return replace(self, gaps=self.gaps.copy())

    @property
    def shown(self) -> pd.DataFrame:
        """The test rows that the report's arrays and the answers are of."""
        return self.held.iloc[:SHOWN]

    @property
    def complete(self) -> pd.DataFrame:
        """The test rows that lack nothing."""
        return self.held[lacking(self.features, self.held).isfinite().all(1).numpy()]

    def meet(self, table: pd.DataFrame, off: Sequence[str] = ()) -> None:
        """Learn models of what rows to predict lack, where there are none yet."""
        if self.learned is not None:
            query = lacking(self.features, table, off)
            self.gaps.learn(query, self.target, self.settings, self.learned, self.device)

    def checked(self, table: pd.DataFrame) -> pd.DataFrame:
        """Check a table to predict, and learn models of what its rows lack.

        Raises:
            BadInput: None of the features is there, or a cell is no number to compute with.
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

        The mixture is that of the averaged models and, where values are missing, of what the
        missing ones may be.
        """
        drawn = self._drawn(table, off)
        parts = self._parts(table if drawn is None else drawn.table, off)
        predictive = MixturePredictive.gathered(
            [(rows, ensemble.predict(x, noise)) for rows, ensemble, x, noise in parts]
        )
        return self.target.restore(predictive if drawn is None else drawn.mixed(predictive))

    def score(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Scored:
        """Predict rows whose target is known, to score the mixture that `predict` returns.

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
        """1 where the measurements are unlike those of the learned rows (`LearnedRegion`)."""
        inside = self.features.inputs(table).numpy()
        return np.asarray(self.region.outside(inside).astype(np.int64))

    def _drawn(self, table: pd.DataFrame, off: Sequence[str]) -> Drawn | None:
        """The rows with draws of the bands that were not detected, where there are any."""
        density = Mixture(*(part.cpu() for part in self.ensemble.models[0].mixture))
        return Drawn.of(self.features, density, table, off)

    def _parts(self, table: pd.DataFrame, off: Sequence[str]) -> Iterator[_Part]:
        """Rows, the models that answer for them, and what these take: inputs and their noise."""
        noise = self.features.noise(table)
        x = self.features.inputs(table, off).to(self.device)
        noise = None if noise is None else noise.to(self.device)
        for gap, rows in self.gaps.parts(x):
            if gap is None:
                yield rows, self.ensemble, x[rows], None if noise is None else noise[rows]
            else:
                own = gap.features.inputs(table.iloc[rows], off).to(x)
                yield rows, gap.ensemble, own, None

    def limits(self) -> tuple[str, ...]:
        """The methods that predict, then limits of these (`scant.events.Report.limits`)."""
        average = self.ensemble.average
        parts = (
            ["Basis functions and relevance of features are those of GPz alone."] if average else []
        )
        return (describe(average, GPZ), *parts, *self.gaps.limits(self.settings, self.learned))

    def to_tensors(self, metadata: dict[str, Any]) -> tuple[Tensors, dict[str, Any]]:
        """Return tensors, and metadata that JSON can hold, for `from_tensors`.

        Args:
            metadata: Metadata of the run.
        """
        shown = self.shown.select_dtypes("number")
        tensors = self.ensemble.tensors()
        tensors["shown"] = torch.tensor(shown.to_numpy(float))
        tensors["known"] = self.known
        tensors |= self.gaps.tensors()
        if self.learned is not None:
            tensors["learned"] = torch.tensor(self.learned.table.to_numpy(float))
            tensors["unseen"] = torch.tensor(self.learned.unseen)
        meta = {
            "features": self.features.fingerprint(),
            "target": self.target._asdict(),
            "members": len(self.ensemble.models),
            "columns": list(shown.columns),
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
            # Models stored before learned rows were have test rows of the same table.
            tensors["known"] if "known" in tensors else features.inputs(held),
            learned,
            device,
        )
