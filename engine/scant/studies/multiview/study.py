"""Rows seen in many views: cell events, pollution, survival (Kandemir & Hamprecht 2015).

The study trains one model on views, or on their principal components, and averages it with
further methods.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.ensemble import describe
from scant.events import Report
from scant.problem import Comparison
from scant.random import restart_generator
from scant.studies.auto import AUTO, AVERAGE_SHARE
from scant.studies.multiview import splits as rows
from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.fitted import FittedMultiview
from scant.studies.multiview.models import rests
from scant.studies.multiview.partners import Average
from scant.studies.multiview.prepared import Prepared, prepare
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.settings import MODELS, MultiviewSettings
from scant.studies.predicted_table import by_levels
from scant.studies.protocol import Tensors, arrays, part
from scant.studies.trained import TrainedStudy

ROWS = "x"  # in a model's state: the rows that it has learned from, as it sees them
KEPT = ("view", "x", "target", "event", "patient", "group")  # of the table, in the fitted model


class Study(TrainedStudy):
    """One model of one target on one table (see `scant.studies.protocol.Study` for how it is
    driven)."""

    settings: MultiviewSettings
    data: Prepared
    average: Average | None = None
    prepare = staticmethod(prepare)

    @property
    def scheduled(self) -> bool:  # type: ignore[override]
        """Whether training ends at `max_steps` with a learning rate of zero."""
        return rests(self.settings, self.settings.model)

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        generator = restart_generator(self.settings.seed, restart)
        self.learner = self.data.learner_of(
            self.settings.model, self.data.train, self.data.transforms, generator
        )
        self.model, self.trainer = self.learner.model, self.learner.trainer
        self.bound, self.n_rows = float("nan"), len(self.data.train)
        if best is not None:
            self._take(best)

    def parameters(self) -> Tensors:
        """The model's state, but for its rows: `start_restart` makes them anew from the table's."""
        return {k: v for k, v in self.learner.state_dict().items() if k != ROWS}

    def _take(self, parameters: Tensors) -> None:
        own = {k: v for k, v in self.learner.state_dict().items() if k == ROWS}
        self.learner.load_state_dict(own | parameters)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that a page shows of the model as it is (see the catalog)."""
        shown = rows.shown(self.data.test)
        hidden, hidden_std = self.present.hidden(self.data.observed.x[shown])
        predicted, std, low, high = self.present.in_table_units(self.data.observed.x[shown])
        return {
            "shown": self.data.places[shown],
            "hidden": hidden,
            "hidden_std": hidden_std,
            "influence": self.learner.influence().cpu().numpy(),
            "predicted": predicted,
            "predicted_std": std,
            "predicted_low": low,
            "predicted_high": high,
            "truth": self.data.observed.target[shown],
            **self.present.lives(),
        }

    @property
    def present(self) -> FittedMultiview:
        """The model at its present state."""
        return FittedMultiview(self.data, self.learner, self.average)

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        from scant.studies.multiview.report import write_report

        score = self._start_from_best(restarts)
        if self.earlier is not None:
            self.average = self.earlier.average and self.earlier.average.of(self.data)
        elif self.settings.stack:
            deadline = self.deadline.share(AVERAGE_SHARE)
            own = self.data.train, self.data.transforms
            self.average = Average.fit(self.data, *own, deadline)
        return self._report(partial(write_report, self.present, self.snapshot(), score))

    def comparison(self, report: Report) -> Comparison | None:
        from scant.studies.multiview.problem import comparison

        return comparison(self.present)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.parameters().items()}
        tensors |= {f"looks.{k}": v for k, v in self.data.transforms.tensors().items()}
        tensors |= {f"rows.{k}": torch.tensor(getattr(self.data.observed, k)) for k in KEPT}
        own = {"learnt": self.data.train, "test": self.data.test, "places": self.data.places}
        tensors |= {f"rows.{k}": torch.as_tensor(v) for k, v in own.items()}
        names = {"patients": self.data.observed.patients, "groups": self.data.observed.groups}
        stack = {"stack": self.average.meta()} if self.average else {}
        return tensors, {"words": self.metadata, **names, **stack}

    @classmethod
    def restore(
        cls,
        settings: MultiviewSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        metadata, model = meta["words"], part(tensors, "model.")
        kept = arrays(tensors, "rows.")
        observed = MultiviewData(
            task=metadata["task"],
            names=metadata["views"],
            features=metadata["features"],
            classes=metadata["classes"],
            patients=meta["patients"],
            groups=meta["groups"],
            **{k: kept[k] for k in KEPT},
        )
        settings = rows.settled(as_kept(settings, model), observed)
        transforms = ViewTransforms.from_tensors(metadata["looked"], part(tensors, "looks."))
        train, test, places = kept["learnt"], kept["test"], kept["places"]
        data = Prepared(settings, metadata, observed, train, test, places, transforms, device)
        study = cls(settings, None, device, data)
        study.start_restart(0, 0, model)
        study.average = Average.from_meta(study.data, meta.get("stack"))
        return study

    # --- questions ------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        return list(self.data.observed.features)

    def limits(self) -> tuple[str, ...]:
        """The methods that predict, then limits of these (`scant.events.Report.limits`)."""
        own = MODELS[self.settings.model]
        parts = (
            f"Hidden neurons, their influence and scores with views removed are those of {own} "
            "alone."
        )
        if self.average is None:
            return (describe(None, own),)
        return describe(self.average.ensemble, own), parts

    @property
    def together(self) -> str:
        """A patient's rows are averaged."""
        return "patient" if self.data.observed.task == "survival" else ""

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with predictions (see `explore.predictions`).

        Raises:
            BadInput: A column is absent that was learned from.
        """
        from scant.studies.multiview.explore import predictions

        return predictions(self.present, table)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answers "views", "row", "patient" and "scarcity" (see the catalog)."""
        from scant.studies.multiview.explore import answer

        return answer(self.present, question, query)


def as_kept(settings: MultiviewSettings, model: Tensors) -> MultiviewSettings:
    """Settings with the stored model's number of inducing points in place of `auto` or 0.

    The meaning of `auto` may change between versions; a stored run must not.
    """
    own = [v.shape[-2] for k, v in model.items() if k.endswith((".inducing", "inducing_points"))]
    if settings.n_inducing not in (0, AUTO) or not own:
        return settings
    return type(settings)(**settings.values() | {"n_inducing": own[0]})
