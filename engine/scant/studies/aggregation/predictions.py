"""Predictions and queries of a fitted or restored aggregation study."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from scant.ensemble import describe
from scant.models.mtgpa.area_nodes import AreaNodes
from scant.models.mtgpa.hyperparameter_nodes import NodesGP
from scant.studies.aggregation import classes, explore, maps, totals
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.beside import known_covariates
from scant.studies.aggregation.fitted import FittedMTGPA
from scant.studies.aggregation.map_layers import MAP
from scant.studies.aggregation.metadata import cells, input_columns
from scant.studies.aggregation.predictive import predicted_columns
from scant.studies.aggregation.supports import Supports
from scant.studies.aggregation.table import LABELS
from scant.studies.base import ArraySpec
from scant.studies.learned_region import LearnedRegion
from scant.studies.predicted_table import checked, with_columns

OWN = "MTGPA"


class FittedAggregation:
    """See `scant.studies.protocol.FittedStudy`."""

    def __init__(self, posterior: FittedMTGPA) -> None:
        self.posterior = posterior
        self.settings, self.device = posterior.settings, posterior.device
        self.metadata = posterior.metadata

    @property
    def inputs(self) -> list[str]:
        return input_columns(self.metadata)

    def limits(self) -> tuple[str, ...]:
        """Methods that predict, then their limits (`scant.events.Report.limits`)."""
        model, average = self.posterior.model, self.posterior.average
        limits = [describe(average.ensemble if average else None, OWN)]
        if average is not None:
            limits += average.limits(self.posterior.scarce, OWN)
        if isinstance(model, NodesGP | AreaNodes):
            return (*limits, model.sentence())
        return (*limits, "Intervals do not include the uncertainty of the hyperparameters.")

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """Add the columns of the catalog to the table.

        Intervals are for a new observation under its task's likelihood: whole numbers for counts.

        Raises:
            BadInput: A task is unknown, a dimension is absent, or bounds are reversed.
        """
        noise = ["y_err"] if self.settings.known_noise else []
        query = checked(table, self.inputs, gaps=["exposure", *noise])
        unread = {"y", LABELS, "y_err", "truth"} - set(noise)
        return self._predicted(table, self._read(query.drop(columns=unread, errors="ignore")))

    @property
    def further(self) -> tuple[ArraySpec, ...]:
        """Columns that `predict` adds to those of the catalog."""
        exceedance = (maps.EXCEEDANCE,) if MAP in self.metadata else ()
        return (*exceedance, *classes.further(self.metadata))

    def totals(self, table: pd.DataFrame) -> tuple[pd.DataFrame, str] | None:
        """Predicted parts against observed totals, and a summary; None if no row is a part of
        an observed polygon (see `totals.totals`)."""
        if MAP not in self.metadata:
            return None
        supports = self._read(table.assign(y=np.nan))
        if supports.inside is None:
            return None
        areas = totals.areas_of(table, supports.system)
        result = totals.totals(self.posterior, supports, areas)
        return None if result is None else (result, totals.sentence(result))

    def map(self) -> pd.DataFrame:
        """Predictions of every task on the figure's cells; no rows without cells."""
        if not self.metadata["edges"]:
            return pd.DataFrame()
        low, high = cells(self.metadata["edges"])
        columns = dict[str, Any]()
        for d, dim in enumerate(self.metadata["dims"]):
            columns |= {f"{dim}_lo": low[:, d], f"{dim}_hi": high[:, d]}
        columns |= {
            covariate.column: covariate.mean for covariate in known_covariates(self.metadata)
        }
        tables = [pd.DataFrame({"task": task, **columns}) for task in self.metadata["tasks"]]
        table = pd.concat(tables, ignore_index=True)
        return self._predicted(table, space.read(self.settings, table, self.metadata))

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answer "box", "polygon", "field", "scarcity" and "retrain" (see the catalog)."""
        return explore.answer(self.posterior, question, query)

    def _read(self, table: pd.DataFrame) -> Supports:
        return space.read(self.settings, table, self.metadata, self.posterior.people)

    def _predicted(self, table: pd.DataFrame, supports: Supports) -> pd.DataFrame:
        outside = self.region.outside(supports.lo / self._span, supports.hi / self._span)
        columns = predicted_columns(self.posterior, supports)
        above = maps.exceedances(self.posterior, supports, columns)
        return with_columns(table, {**columns, **above, "outside": outside.astype(np.int64)})

    @cached_property
    def region(self) -> LearnedRegion:
        """The boxes of the training rows of all tasks."""
        whole = self.posterior.whole
        rows = ~whole.test & np.isfinite(whole.y)
        return LearnedRegion(whole.lo[rows] / self._span, whole.hi[rows] / self._span)

    @property
    def _span(self) -> Float[np.ndarray, " d"]:
        """Ranges of the dimensions, which make their distances comparable."""
        low, high = np.array(self.metadata["range"]).T
        return np.maximum(high - low, 1e-300)
