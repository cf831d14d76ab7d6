"""Omniglot: many outputs with classes of their own, few examples (Ma 2023, chapters 3 and 4).

The study trains one model on images of one size or on features, evaluates its bound on all rows at
intervals, and calibrates its probabilities or averages them with other classifiers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.deadline import Deadline
from scant.ensemble import describe
from scant.events import Report
from scant.models.mogp_ar.training import MOGPARTrainer
from scant.problem import Comparison
from scant.random import restart_generator
from scant.studies.auto import AVERAGE_SHARE
from scant.studies.omniglot import models, stored, temperature
from scant.studies.omniglot import preprocessing as rows
from scant.studies.omniglot.fitted import FittedOmniglot
from scant.studies.omniglot.partners import Average
from scant.studies.omniglot.prepared import Prepared, prepare
from scant.studies.omniglot.problem import problem_of, too_many
from scant.studies.omniglot.settings import MODELS, OmniglotSettings
from scant.studies.omniglot.snapshot import snapshot
from scant.studies.predicted_table import by_levels
from scant.studies.protocol import Tensors, part
from scant.studies.trained import WHOLE_EVERY, TrainedStudy

MOST_SCORED = 2000  # maximum number of rows of the bound on all rows
TYPICAL = 64  # rows that estimate the prior variance of the latent functions


class Study(TrainedStudy):
    """One model of classes on one table (see `scant.studies.protocol.Study` for how it is
    driven)."""

    search_share = 0.45  # a second model of as many steps gives the temperature
    settings: OmniglotSettings
    data: Prepared
    model: models.Model
    temperature = 1.0
    average: Average | None = None
    prepare = staticmethod(prepare)

    @property
    def scheduled(self) -> bool:  # type: ignore[override]
        """True if the learning rate decays until max_steps."""
        return models.horizon(self.settings, 1) is not None

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s, at = self.settings, torch.as_tensor(self.data.train).to(self.data.device)
        self.generator = restart_generator(s.seed, restart)
        name, single = rows.kernel_of(s, self.data.image), s.model in models.SINGLE
        kernel = models.kernel_for(s, name, self.data.x[at], self.data.image, single)
        self.prepared, output = kernel.prepare(self.data.x[at]), self.data.output[at]
        # With known parameters, one row of each output builds the model quickly.
        of_output = self.data.observed.output[self.data.train]
        one_each = torch.as_tensor(np.unique(of_output, return_index=True)[1])
        first = slice(None) if best is None else one_each
        self.model = models.build(
            s, s.model, kernel, self.prepared[first], output[first], self.data.sizes.tolist(),
            self.generator,
        )  # fmt: skip
        self.trainer = MOGPARTrainer(
            self.model,
            self.prepared,
            output,
            self.data.label[at],
            self.generator,
            batch=s.batch_size,
            sampled=s.sampled_classes,
            rate=s.learning_rate,
            horizon=models.horizon(s, s.max_steps),
        )
        scored = rows.some(np.arange(len(at)), of_output, MOST_SCORED)
        self._scored = torch.as_tensor(scored).to(self.data.device)
        self.bound, self.n_rows = float("nan"), len(self.data.train)
        if best is not None:
            self._take(best)

    def _whole(self, elbo: float) -> float:
        """The bound with all classes, nats a row; a sample replaces many rows."""
        steps = self.trainer.steps
        if steps != 1 and steps % WHOLE_EVERY and steps != self.max_steps:
            return self.bound
        which = torch.as_tensor(self.data.train).to(self.data.device)[self._scored]
        result = self.model.bound(
            self.prepared[self._scored], self.data.output[which], self.data.label[which]
        )
        kl = models.kl_divergence(self.model)
        return (float(result) + kl) / len(which) - kl / len(self.data.train)

    def snapshot(self) -> dict[str, np.ndarray]:
        return snapshot(self.present)

    @property
    def present(self) -> FittedOmniglot:
        """The model at its present state."""
        typical = self._scored[:: -(-len(self._scored) // TYPICAL)]
        typical_rows = self.prepared[typical]
        return FittedOmniglot(self.data, self.model, self.temperature, typical_rows, self.average)

    # --- after training -------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        from scant.studies.omniglot.report import write_report

        score = self._start_from_best(restarts)
        message = ""
        if self.earlier is not None:
            self.temperature, average = self.earlier.temperature, self.earlier.average
            self.average = average and average.of(self.data)
        elif self.settings.calibrate:
            self.temperature, message, self.average = temperature.find(
                self.data, self.model, self.deadline.share(AVERAGE_SHARE)
            )
        notes = [message, too_many(self.data)]
        self.predictive = self.present.predictive(self.data.test)
        of_run = self.present, self.predictive, self.snapshot(), score

        def write(deadline: Deadline) -> Report:
            report = write_report(*of_run, deadline)
            return replace(report, notes=(*filter(None, notes), *report.notes))

        return self._report(write)

    def comparison(self, report: Report) -> Comparison | None:
        return (
            None
            if too_many(self.data)
            else Comparison(problem_of(self.data, self.data.train, self.data.test), self.predictive)
        )

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        tensors |= stored.to_tensors(self.data)
        meta = {"words": self.metadata, "temperature": self.temperature}
        return tensors, meta | ({"stack": self.average.meta()} if self.average else {})

    @classmethod
    def restore(
        cls,
        settings: OmniglotSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        data = stored.from_tensors(settings, tensors, meta["words"], device)
        study = cls(settings, None, device, data)
        study.temperature = float(meta.get("temperature", 1.0))
        study.average = Average.from_meta(study.data, meta.get("stack"))
        study.start_restart(0, 0, part(tensors, "model."))
        return study

    # --- queries --------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        return [] if self.data.image else list(self.data.observed.features)

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with the predicted class and the class probabilities of each row.

        The class is called `label`, or `predicted` if the table has labels; classes of other
        outputs have empty cells. Images are resized to the model's size.

        Raises:
            BadInput: A column is absent, or the model was not trained on an output.
        """
        from scant.studies.omniglot.explore import predictions

        return predictions(self.present, table)

    def limits(self) -> tuple[str, ...]:
        """Prediction methods, then their limits (`scant.events.Report.limits`)."""
        own = MODELS[self.settings.model]
        ensemble = self.average.ensemble if self.average else None
        limits = [describe(ensemble, own, "Probabilities")]
        if self.average:
            limits.append(
                "The similarity of classes, patches, maps and recall with fewer examples are those "
                f"of {own} alone."
            )
        if self.temperature != 1:
            limits.append(
                f"One temperature for all classes calibrates the probabilities of {own}, which is "
                "not in the publication; the other classifiers have none."
            )
        return tuple(limits)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answer "draw", "response", "block" or "shots" (see the catalog)."""
        from scant.studies.omniglot.explore import answer

        return answer(self.present, question, query)
