"""Rows with several views: cell events, pollution, survival (Kandemir & Hamprecht 2015).

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

ROWS = "x"  # key of the training inputs in a model's state
KEPT = ("view", "x", "target", "event", "patient", "group")  # stored arrays of the table


class Study(TrainedStudy):
    """One model of one target on one table (see `scant.studies.protocol.Study`)."""

    settings: MultiviewSettings
    data: Prepared
    average: Average | None = None
    prepare = staticmethod(prepare)

    @property
    def scheduled(self) -> bool:  # type: ignore[override]
        """True if training ends at `max_steps` with a learning rate of zero."""
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
        """Return the model's state without its rows, which `start_restart` computes again."""
        return {k: v for k, v in self.learner.state_dict().items() if k != ROWS}

    def _take(self, parameters: Tensors) -> None:
        training_rows = {k: v for k, v in self.learner.state_dict().items() if k == ROWS}
        self.learner.load_state_dict(training_rows | parameters)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return the arrays of the model's current state (see the catalog)."""
        visible = rows.shown(self.data.test)
        hidden, hidden_std = self.present.hidden(self.data.observed.x[visible])
        predicted, std, low, high = self.present.in_table_units(self.data.observed.x[visible])
        return {
            "shown": self.data.places[visible],
            "hidden": hidden,
            "hidden_std": hidden_std,
            "influence": self.learner.influence().cpu().numpy(),
            "predicted": predicted,
            "predicted_std": std,
            "predicted_low": low,
            "predicted_high": high,
            "truth": self.data.observed.target[visible],
            **self.present.lives(),
        }

    @property
    def present(self) -> FittedMultiview:
        """The model in its current state."""
        return FittedMultiview(self.data, self.learner, self.average)

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        from scant.studies.multiview.report import write_report

        score = self._start_from_best(restarts)
        if self.earlier is not None:
            self.average = self.earlier.average and self.earlier.average.of(self.data)
        elif self.settings.stack:
            deadline = self.deadline.share(AVERAGE_SHARE)
            arguments = self.data.train, self.data.transforms
            self.average = Average.fit(self.data, *arguments, deadline)
        return self._report(partial(write_report, self.present, self.snapshot(), score))

    def comparison(self, report: Report) -> Comparison | None:
        from scant.studies.multiview.problem import comparison

        return comparison(self.present)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.parameters().items()}
        tensors |= {f"looks.{k}": v for k, v in self.data.transforms.tensors().items()}
        tensors |= {f"rows.{k}": torch.tensor(getattr(self.data.observed, k)) for k in KEPT}
        index_arrays = {
            "learnt": self.data.train,
            "test": self.data.test,
            "places": self.data.places,
        }
        tensors |= {f"rows.{k}": torch.as_tensor(v) for k, v in index_arrays.items()}
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
        stored = arrays(tensors, "rows.")
        observed = MultiviewData(
            task=metadata["task"],
            names=metadata["views"],
            features=metadata["features"],
            classes=metadata["classes"],
            patients=meta["patients"],
            groups=meta["groups"],
            **{k: stored[k] for k in KEPT},
        )
        settings = rows.settled(as_kept(settings, model), observed)
        transforms = ViewTransforms.from_tensors(metadata["looked"], part(tensors, "looks."))
        train, test, positions = stored["learnt"], stored["test"], stored["places"]
        data = Prepared(settings, metadata, observed, train, test, positions, transforms, device)
        study = cls(settings, None, device, data)
        study.start_restart(0, 0, model)
        study.average = Average.from_meta(study.data, meta.get("stack"))
        return study

    # --- questions ------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        return list(self.data.observed.features)

    def limits(self) -> tuple[str, ...]:
        """Return the methods that predict, and their limits (`scant.events.Report.limits`)."""
        model = MODELS[self.settings.model]
        neurons = (
            f"Hidden neurons, their influence and scores with views removed are those of {model} "
            "alone."
        )
        if self.average is None:
            return (describe(None, model),)
        return describe(self.average.ensemble, model), neurons

    @property
    def together(self) -> bool:
        """Whether a file is predicted as a whole: answers are averages over a patient's rows."""
        return self.data.observed.task == "survival"

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with predictions (see `explore.predictions`).

        Raises:
            BadInput: A column of the training table is absent.
        """
        from scant.studies.multiview.explore import predictions

        return predictions(self.present, table)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answer the queries "views", "row", "patient" and "scarcity" (see the catalog)."""
        from scant.studies.multiview.explore import answer

        return answer(self.present, question, query)


def as_kept(settings: MultiviewSettings, model: Tensors) -> MultiviewSettings:
    """Replace `auto` or 0 by the stored model's number of inducing points.

    The meaning of `auto` may change between versions; a stored run must not.
    """
    inducing_counts = [
        v.shape[-2] for k, v in model.items() if k.endswith((".inducing", "inducing_points"))
    ]
    if settings.n_inducing not in (0, AUTO) or not inducing_counts:
        return settings
    return type(settings)(**settings.values() | {"n_inducing": inducing_counts[0]})
