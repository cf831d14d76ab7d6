"""Omniglot: many outputs with classes of their own, few examples (Ma 2023, chapters 3 and 4).

What the study adds to the models: which rows are learned from, images brought to one size, a bound
of all rows now and then, matrices and pictures for the page, other classifiers on the same rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int

from scant.ensemble import describe
from scant.events import Report
from scant.models.mogp_ar.training import MOGPARTrainer
from scant.problem import Comparison
from scant.random import restart_generator
from scant.studies.auto import AVERAGE_SHARE, CHOSEN
from scant.studies.omniglot import coregionalization as matrices
from scant.studies.omniglot import models, temperature
from scant.studies.omniglot import preprocessing as rows
from scant.studies.omniglot.fitted import FittedOmniglot
from scant.studies.omniglot.partners import Average
from scant.studies.omniglot.prepared import Prepared
from scant.studies.omniglot.problem import problem_of, too_many
from scant.studies.omniglot.settings import MODELS, OmniglotSettings
from scant.studies.omniglot.table import Characters, of
from scant.studies.predicted_table import by_levels
from scant.studies.protocol import Tensors, arrays, part, required, roles
from scant.studies.split import groups, marks
from scant.studies.trained import WHOLE_EVERY, TrainedStudy

MOST_SCORED = 2000  # rows of such a bound; of more, these stand for all
TYPICAL = 64  # rows that tell the prior variance of the latent functions
PATCHES = 40  # inducing patches that are shown
DRAWS = 64  # of the latent functions, while it trains


class Study(TrainedStudy):
    """One model of classes on one table (see `scant.studies.protocol.Study` for how it is
    driven)."""

    scheduled = True
    search_share = 0.45  # a second model of as many steps tells the temperature
    settings: OmniglotSettings
    model: models.Model

    def __init__(
        self, settings: OmniglotSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("omniglot", table)
        observed = of(table)
        settings, chosen = rows.settled(settings, observed)
        drawn = rows.shape(settings, observed)
        observed, places = rows.chosen(settings, observed)
        x, image = rows.model_inputs(settings, observed.x, drawn)
        names = [f"p{i}" for i in range(x.shape[1])] if image is not None else observed.features
        observed = Characters(
            observed.outputs, observed.classes, observed.output, observed.label, x, names
        )
        group = groups(table, settings.split_by)
        train, test = rows.split(
            settings, observed, marks(table)[places], None if group is None else group[places]
        )
        metadata = rows.metadata_of(settings, observed, image, train, test)
        if chosen:
            metadata[CHOSEN] = {name: list(choice) for name, choice in chosen.items()}
        self.roles = roles(len(table), train=places[train], test=places[test])
        self._set_data(
            Prepared(
                settings=settings,
                metadata=metadata,
                observed=observed,
                image=image,
                train=np.flatnonzero(train),
                test=np.flatnonzero(test),
                places=places,
                device=device,
            )
        )
        self.notes += rows.notes(observed, drawn, image, test)

    def _set_data(self, data: Prepared) -> None:
        self._configure(data.settings, data.device)
        self.data, self.metadata = data, data.metadata
        self.temperature = 1.0
        self.average: Average | None = None

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s, at = self.settings, torch.as_tensor(self.data.train).to(self.data.device)
        self.generator = restart_generator(s.seed, restart)
        name, single = rows.kernel_of(s, self.data.image), s.model in models.SINGLE
        kernel = models.kernel_for(s, name, self.data.x[at], self.data.image, single)
        self.prepared, output = kernel.prepare(self.data.x[at]), self.data.output[at]
        # Where parameters are known already, a row an output starts the model quickly.
        first = (
            slice(None)
            if best is None
            else torch.as_tensor(_firsts(self.data.observed, self.data.train))
        )
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
            horizon=s.max_steps,
        )
        scored = rows.some(
            np.arange(len(at)), self.data.observed.output[self.data.train], MOST_SCORED
        )
        self._scored = torch.as_tensor(scored).to(self.data.device)
        self.bound, self.n_rows = float("nan"), len(self.data.train)
        if best is not None:
            self._take(best)

    def _whole(self, elbo: float) -> float:
        """The bound with all classes, nats a row; of many rows, some stand for all."""
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
        """Everything that a page shows of the model as it is (see the catalog)."""
        query = rows.some(self.data.test, self.data.observed.output[self.data.test], rows.AT_ONCE)
        predictive = self.present.predictive(query, draws=DRAWS)
        p = predictive.probabilities
        return {
            "accuracy": rows.accuracy(self.data.observed, query, predictive.point),
            **self.shared(),
            **self.patches(),
            **rows.examples(self.data.observed, self.data.image, query, p),
        }

    # --- what the model has learned --------------------------------------------------------------

    @property
    def present(self) -> FittedOmniglot:
        """The model at its present state, for what is made from it."""
        typical = self._scored[:: -(-len(self._scored) // TYPICAL)]
        typical_rows = self.prepared[typical]
        return FittedOmniglot(self.data, self.model, self.temperature, typical_rows, self.average)

    def shared(self) -> dict[str, np.ndarray]:
        """Coregionalisation of the shown classes, and of the outputs over all classes."""
        factors = self.present.factors()
        own = factors[:, rows.shown(self.data.observed)]
        latent = matrices.largest(factors)
        correlation = matrices.correlation(own)
        return {
            "latent": latent,
            "shown_B": matrices.blocks(own, latent),
            "correlation": correlation,
            "order": matrices.alike(correlation),
            "global": matrices.between_outputs(factors, self.data.sizes),
        }

    def patches(self) -> dict[str, np.ndarray]:
        """Inducing patches by the size of the posterior's weights on them."""
        if self.metadata["kernel"] != "patch":
            return {"patches": np.empty((0, 0, 0)), "patches_weight": np.empty(0)}
        z, influence = (_array(v) for v in models.inducing_patches(self.model))
        most = np.argsort(-influence, kind="stable")[:PATCHES]
        side = round(z.shape[1] ** 0.5)
        return {"patches": z[most].reshape(-1, side, side), "patches_weight": influence[most]}

    # --- afterwards -----------------------------------------------------------------------------

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
        report = write_report(
            self.present, self.predictive, self.snapshot(), score, self.report_deadline
        )
        return replace(report, notes=(*filter(None, notes), *report.notes))

    def comparison(self, report: Report) -> Comparison | None:
        return (
            None
            if too_many(self.data)
            else Comparison(problem_of(self.data, self.data.train, self.data.test), self.predictive)
        )

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        x = torch.as_tensor(self.data.observed.x)
        if self.data.image is not None:
            x = (x * rows.SHADES).round().to(torch.uint8)
        tensors["rows.x"] = x
        for name in ("output", "label"):
            tensors[f"rows.{name}"] = torch.tensor(getattr(self.data.observed, name))
        tensors["rows.learnt"] = torch.as_tensor(self.data.train)
        tensors["rows.test"] = torch.as_tensor(self.data.test)
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
        study = cls.__new__(cls)
        metadata = meta["words"]
        kept = arrays(tensors, "rows.")
        x, image = kept["x"], tuple(metadata["size"]) or None
        if image is not None:
            x = x / rows.SHADES
        names = [f"p{i}" for i in range(x.shape[1])] if image is not None else metadata["features"]
        observed = Characters(
            metadata["outputs"], metadata["classes"], kept["output"], kept["label"], x, names
        )
        study._set_data(
            Prepared(
                settings=settings,
                metadata=metadata,
                observed=observed,
                image=image,
                train=kept["learnt"],
                test=kept["test"],
                places=np.empty(0, dtype=np.int64),
                device=device,
            )
        )
        study.temperature = float(meta.get("temperature", 1.0))
        study.average = Average.from_meta(study.data, meta.get("stack"))
        study.start_restart(0, 0, part(tensors, "model."))
        return study

    # --- questions ------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        return [] if self.data.image else list(self.data.observed.features)

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the class that each row is taken for, its probability, and all others'.

        The class is called `label`, or `predicted` where the table has labels; a class of another
        output than the row's has an empty cell. Images of another size are brought to the model's.

        Raises:
            BadInput: A column is absent, or an output that the model has not seen.
        """
        from scant.studies.omniglot.explore import predictions

        return predictions(self.present, table)

    def limits(self) -> tuple[str, ...]:
        """The methods that predict, then limits of these (`scant.events.Report.limits`)."""
        own = MODELS[self.settings.model]
        ensemble = self.average.ensemble if self.average else None
        limits = [describe(ensemble, own, "Probabilities")]
        if self.average:
            limits.append(
                "The similarity of classes, patches, maps and recall with fewer examples are of "
                f"{own} alone."
            )
        if self.temperature != 1:
            limits.append(
                f"One temperature for all classes calibrates the probabilities of {own}, which is "
                "not in the publication; the other classifiers have none."
            )
        return tuple(limits)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answers "draw", "response", "block" and "shots" (see the catalog)."""
        from scant.studies.omniglot.explore import answer

        return answer(self.present, question, query)


def _firsts(observed: Characters, train: Int[np.ndarray, " n"]) -> Int[np.ndarray, " d"]:
    """The first row of each output, among the rows that are learned from."""
    return np.unique(observed.output[train], return_index=True)[1]


def _array(values: torch.Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().cpu().numpy()
    return array
