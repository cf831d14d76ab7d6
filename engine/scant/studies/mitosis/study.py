"""Mitosis: a rare class with private latent dimensions (Yousefi 2021, chapter 3).

The study trains one latent variable model on principal components of images or on features; the
classifier's temperature and threshold are fitted to validation rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.ensemble import LEFT_OUT, sentence
from scant.events import Report
from scant.predictive import CategoricalPredictive
from scant.problem import Comparison
from scant.studies.auto import AUTO, CHOSEN
from scant.studies.mitosis import models, stored
from scant.studies.mitosis.fitted import FittedMitosis, classifier, settle, shifted
from scant.studies.mitosis.prepared import Prepared, prepare
from scant.studies.mitosis.problem import problem_of
from scant.studies.mitosis.settings import MODELS, MitosisSettings
from scant.studies.mitosis.snapshot import snapshot
from scant.studies.predicted_table import by_levels
from scant.studies.protocol import Tensors
from scant.studies.trained import TrainedStudy

ADAPTED = (
    "Predictions of a table assume the class shares that are likeliest for its rows (setting "
    "'prior'), so the probabilities of a row depend a little on the others."
)
TOLERANCE = 1e-3  # minimum gain of the bound that counts as progress, in nats per row


class Study(TrainedStudy):
    """One model of a few classes on one table (see `scant.studies.protocol.Study`)."""

    tolerance = TOLERANCE
    settings: MitosisSettings
    data: Prepared
    model: models.Model
    present: FittedMitosis  # the model in its current state
    prepare = staticmethod(prepare)

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        self.model = self.data.build(restart)
        self.present = FittedMitosis(self.data, self.model)
        self.trainer = models.trainer(self.model, s.max_steps, s.adam_steps)
        self.bound, self.n_rows = float("nan"), len(self.data.train)
        if best is not None:
            self._take(best)

    def snapshot(self) -> dict[str, np.ndarray]:
        return snapshot(self.present)

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        from scant.studies.mitosis.report import write_report

        score = self._start_from_best(restarts)
        reader, latent, how, evidence = settle(self.data, self.model, self.data.train)
        mixture, choice = classifier(self.data, latent, evidence)
        present = FittedMitosis(self.data, self.model, reader, mixture, how)
        self.present = replace(present, chances=shifted(present, mixture))
        if self.settings.classifier == AUTO:
            self.metadata[CHOSEN] = {**self.metadata.get(CHOSEN, {}), "classifier": list(choice)}
        return self._report(partial(write_report, self.present, self.snapshot(), score))

    def comparison(self, report: Report) -> Comparison | None:
        mixture, p = self.present.chances, report.arrays["test_p"]
        assert mixture is not None, "finalize comes first"
        prediction = CategoricalPredictive(p, mixture.decide(p))
        return Comparison(problem_of(self.data, self.data.test), prediction)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        return stored.to_tensors(self.present)

    @classmethod
    def restore(
        cls,
        settings: MitosisSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        present = stored.from_tensors(settings, tensors, meta, device)
        study = cls(settings, None, device, present.data)
        study.present, study.model = present, present.model
        return study

    # --- questions ------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        return [] if self.data.image else list(self.metadata["features"])

    def limits(self) -> tuple[str, ...]:
        """Return the methods that predict, and their limits (`scant.events.Report.limits`)."""
        model, mixture = MODELS[self.settings.model], self.present.chances
        if mixture is None or mixture.gp is None:
            return (sentence({model: 1.0}), *(ADAPTED,) * self.together)
        searched = "classifier" in self.metadata.get(CHOSEN, {})
        by = LEFT_OUT if searched else "the setting 'classifier'"
        return (
            sentence({"the GP classifier": 1 - mixture.share, model: mixture.share}, by),
            f"Latent positions and generated rows come from {model} alone.",
            *(ADAPTED,) * self.together,
            "The posterior of the GP classifier is approximated at its mode, and its functions are "
            "spanned by 300 rows.",
        )

    @property
    def together(self) -> bool:
        """Whether a file is predicted as a whole: its class shares are estimated from all rows."""
        return self.settings.prior_of_rows

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with the predicted class and all class probabilities of each row.

        The class is called `label`, or `predicted` if the table has labels. Images are resized to
        the model's size. The threshold of the rare class is that of the fit. With the setting
        `prior` "as held-out rows look", class shares are those that are likeliest for the table's
        rows, and the more rows there are, the closer the threshold is to the one of the best
        expected F1.

        Raises:
            BadInput: A column is absent, or the images are of another shape.
        """
        from scant.studies.mitosis.explore import predictions

        return predictions(self.present, table)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answer a query of the catalog (`explore.answer`)."""
        from scant.studies.mitosis.explore import answer

        return answer(self.present, question, query)
