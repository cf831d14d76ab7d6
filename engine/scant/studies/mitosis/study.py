"""Mitosis: a rare class in a latent space of its own (Yousefi 2021, chapter 3).

What the study adds to the models: which rows are learned from and which are held out, by slide;
principal components in place of pixels; temperature and threshold from rows spared for them;
latent positions, covariances and generated cells for the page.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.ensemble import LEFT_OUT, sentence
from scant.events import Report
from scant.learners.calibrated import USUAL, CalibratedClassifier, weighted_svm
from scant.models.averaged_softmax import AveragedSoftmax
from scant.models.softmax_gp import SoftmaxMixture
from scant.predictive import CategoricalPredictive
from scant.problem import Comparison
from scant.random import restart_generator
from scant.studies.auto import AUTO, CHOSEN
from scant.studies.mitosis import covariances, models, sight
from scant.studies.mitosis import splits as rows
from scant.studies.mitosis.classifier import Classifier
from scant.studies.mitosis.cost import DGPLVM_MAX_ROWS as MOST
from scant.studies.mitosis.cost import MODELED, MOST_KNOWN, MOST_MODELED
from scant.studies.mitosis.entry import OTHERS, PAIRS, SHOWN, STRIP
from scant.studies.mitosis.fitted import (
    FittedMitosis,
    Prepared,
    classifier,
    pictured,
    settle,
    shifted,
)
from scant.studies.mitosis.preprocessing import Columns
from scant.studies.mitosis.problem import problem_of
from scant.studies.mitosis.settings import EARLY, LATENT, MODELS, OURS, MitosisSettings
from scant.studies.mitosis.splits import Split
from scant.studies.mitosis.table import LabeledImages
from scant.studies.predicted_table import by_levels
from scant.studies.protocol import Tensors, arrays, part, required, roles
from scant.studies.split import groups, marks
from scant.studies.trained import TrainedStudy


class Study(TrainedStudy):
    """One model of a few classes on one table (see `scant.studies.protocol.Study` for how it is
    driven)."""

    tolerance = 1e-3
    settings: MitosisSettings
    model: models.Model

    def __init__(
        self, settings: MitosisSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("mitosis", table)
        s = settings
        group = groups(table, s.split_by)
        if s.split_by and group is not None:
            table = table.assign(group=group.astype(str))
        images = LabeledImages.of(table)
        cells, places = rows.chosen(s, images)
        drawn = rows.shape(s, cells)
        x, image = rows.model_inputs(s, cells, drawn)
        split, messages = rows.split(s, cells, marks(table)[places])
        if s.model == "dgplvm" and len(split.learnt) > MOST:
            messages.append(f"DGPLVM learns from {MOST:,} of {len(split.learnt):,} rows.")
            kept = rows.some(np.random.default_rng(s.seed), cells, split.learnt, MOST)
            split = Split(split.pool, kept, split.validation, split.test)
        if s.classifier != LATENT and len(split.learnt) > MOST_MODELED:
            messages.append(
                f"The latent variable model learns from {MOST_MODELED:,} of {len(split.learnt):,} "
                f"rows, the GP classifier from {MOST_KNOWN:,} at most."
            )
            kept = rows.some(np.random.default_rng(s.seed), cells, split.learnt, MOST_MODELED)
            split = replace(split, modeled=kept)
        own = {"train": split.learnt, "validation": split.validation, "test": split.test}
        self.roles = roles(len(table), **{word: places[at] for word, at in own.items()})
        columns = Columns.of(x[split.learnt], s.n_components, image is not None)
        looks, told = sight.wanted(s, image)
        z, eye, network = columns.forward(x), None, None
        if looks and image:
            early = s.features == EARLY
            eye, network = sight.Sight.of(x, z, image, split.learnt, early)
        messages += told
        methods = [MODELS[s.model]] if s.classifier == LATENT else [OURS, MODELS[s.model]]
        if s.baselines and s.classifier == LATENT:
            methods += [n for k, n in MODELS.items() if k != s.model]
        methods += OTHERS if s.baselines else ()
        picked = pictured(cells.label, split, len(cells.classes)) if image else split.test[:0]
        self._set_data(
            Prepared(
                settings=s,
                metadata=rows.metadata_of(s, cells, image, split, methods),
                label=cells.label,
                z=z,
                split=split,
                columns=columns,
                image=image,
                places=places,
                pictured=picked,
                images=np.nan_to_num(x[picked]) if image else np.empty((0, 0)),
                shares=np.bincount(cells.label) / len(cells),
                device=device,
                sight=eye,
                network=network,
                joined=0 if network is None else min(MODELED, network.shape[1]),
                group=cells.group if cells.groups else None,
            )
        )
        self.notes += [*messages, *rows.notes(cells, drawn, image, split, columns)]

    def _set_data(self, data: Prepared) -> None:
        self._configure(data.settings, data.device)
        self.data, self.metadata = data, data.metadata
        self.reader: models.Reader | None = None
        self.chances: Classifier | None = None
        self.how = USUAL

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        self.generator = restart_generator(s.seed, restart)
        label = torch.tensor(self.data.label[self.data.train])
        self.model = models.build(
            s,
            s.model,
            self.data.given(self.data.train).cpu(),
            label,
            self.data.n_classes,
            self.generator,
        ).to(self.data.device)
        self.trainer = models.trainer(self.model, s.max_steps, s.adam_steps)
        self.bound, self.n_rows = float("nan"), len(self.data.train)
        if best is not None:
            self._take(best)

    # --- what the model has learned --------------------------------------------------------------

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that a page shows of the model as it is (see the catalog)."""
        label = self.data.label[self.data.train]
        shown, pairs = rows.shown(label, SHOWN), rows.shown(label, PAIRS)
        mean, std = (_array(t) for t in self.model.latent())
        return {
            "latent_mean": mean[shown],
            "latent_std": std[shown],
            "latent_class": label[shown],
            "relevance": _array(self.model.relevance()),
            **covariances.shown(self.model, pairs, label[pairs]),
            **self.strip(),
        }

    def strip(self) -> dict[str, np.ndarray]:
        """New images of each class beside real ones; in whole shades, which pack well."""
        if self.data.image is None:
            none = np.empty((0, 0, 0)), np.empty(0, dtype=np.int64)
            return dict(zip(("generated", "generated_class", "real", "real_class"), none * 2))
        label = self.data.label[self.data.train]
        each = [
            self.present.generate(c, STRIP, self.settings.seed) for c in range(self.data.n_classes)
        ]
        real = self.data.train[rows.shown(label, STRIP * self.data.n_classes)]
        return {
            "generated": np.concatenate(each),
            "generated_class": np.repeat(np.arange(self.data.n_classes), STRIP),
            "real": np.stack([self.data.picture(row) for row in real.tolist()]),
            "real_class": self.data.label[real],
        }

    @property
    def present(self) -> FittedMitosis:
        """The model at its present state, for what is made from it."""
        return FittedMitosis(self.data, self.model, self.reader, self.chances)

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        from scant.studies.mitosis.report import write_report

        score = self._start_from_best(restarts)
        self.reader, latent, self.how, evidence = settle(self.data, self.model, self.data.train)
        self.chances, choice = classifier(self.data, latent, evidence)
        self.chances = shifted(self.present, self.chances)
        if self.settings.classifier == AUTO:
            self.metadata[CHOSEN] = {**self.metadata.get(CHOSEN, {}), "classifier": list(choice)}
        return write_report(self.present, self.snapshot(), score, self.report_deadline)

    def comparison(self, report: Report) -> Comparison | None:
        assert self.chances is not None, "finalize comes first"
        p = report.arrays["test_p"]
        own = CategoricalPredictive(p, self.chances.decide(p))
        return Comparison(problem_of(self.data, self.data.test), own)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        chances = self.chances
        assert chances is not None, "a study is fitted once it is finalized"
        stored: dict[str, np.ndarray] = {
            "z": self.data.z.astype(np.float32),
            "label": self.data.label.astype(np.int16),
            "places": self.data.places,
            "pictured": self.data.pictured,
            "images": np.round(self.data.images * rows.SHADES).astype(np.uint8),
            "shares": self.data.shares,
            **{f"split.{k}": v for k, v in vars(self.data.split).items() if v is not None},
            **{f"chances.{k}": np.asarray(v) for k, v in chances.latent._asdict().items()},
        }
        if chances.gp is not None:
            stored |= {f"gp.{k}": v for k, v in chances.gp.arrays().items()}
            mixed = {k: v for k, v in vars(chances).items() if k not in ("latent", "gp", "shift")}
            stored |= {f"mixed.{k}": np.asarray(v) for k, v in mixed.items()}
        if chances.shift is not None:
            stored |= {"shift": chances.shift, "threshold": np.array(chances.threshold)}
        stored |= {f"columns.{k}": np.asarray(v) for k, v in vars(self.data.columns).items()}
        stored["columns.axes"] = stored["columns.axes"].astype(np.float32)
        if self.data.sight is not None and self.data.network is not None:
            stored |= {
                f"sight.{k}": np.asarray(v) for k, v in vars(self.data.sight.columns).items()
            }
            stored |= {"usual": self.data.sight.usual, "network": self.data.network}
            stored["factor"] = np.array(self.data.sight.factor)
            stored["joined"] = np.array(self.data.joined)
        tensors = {f"rows.{k}": torch.as_tensor(v) for k, v in stored.items()}
        tensors |= {f"model.{k}": v for k, v in self.model.state_dict().items()}
        return tensors, {"words": self.metadata, "how": list(self.how)}

    @classmethod
    def restore(
        cls,
        settings: MitosisSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        kept = arrays(tensors, "rows.")
        split, columns, chances = (
            arrays(tensors, f"rows.{p}.") for p in ("split", "columns", "chances")
        )
        image = tuple(meta["words"]["size"]) or None
        label, z = kept["label"].astype(np.int64), kept["z"].astype(np.float64)
        columns |= {"left": float(columns["left"]), "axes": columns["axes"].astype(np.float64)}
        eye = arrays(tensors, "rows.sight.")
        eye |= {"left": float(eye["left"])} if eye else {}
        looks = None
        if eye and image:
            looks = sight.Sight(Columns(**eye), image, kept["usual"], float(kept["factor"]))
        data = Prepared(
            settings=settings,
            metadata=meta["words"],
            label=label,
            z=z,
            split=Split(**split),
            columns=Columns(**columns),
            image=image,
            places=kept["places"],
            pictured=kept["pictured"],
            images=kept["images"] / rows.SHADES,
            shares=kept["shares"],
            device=device,
            sight=looks,
            network=kept.get("network"),
            joined=int(kept.get("joined", 0)),
        )
        study._set_data(data)
        study.start_restart(0, 0, part(tensors, "model."))
        study.how = tuple(meta["how"])
        study.reader = models.Reader(study.model, label[data.train], data.n_classes)
        if study.reader.machine is not None:
            own = _array(study.model.latent()[0])
            study.reader.machine = weighted_svm(own, label[data.train], study.how)
        chances["threshold"] = float(chances["threshold"])
        latent = CalibratedClassifier(**chances)
        study.chances = Classifier.of_latent(latent)
        gp, mixed = (arrays(tensors, f"rows.{p}.") for p in ("gp", "mixed"))
        if gp:
            numbers: dict[str, Any] = {k: v if k == "prior" else float(v) for k, v in mixed.items()}
            kind = AveragedSoftmax if "widths" in gp else SoftmaxMixture
            study.chances = Classifier(latent, kind.from_arrays(gp), **numbers)
        if "shift" in kept:
            study.chances = replace(
                study.chances, shift=kept["shift"], threshold=float(kept["threshold"])
            )
        return study

    # --- questions ------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        return [] if self.data.image else list(self.metadata["features"])

    def limits(self) -> tuple[str, ...]:
        """The methods that predict, then limits of these (`scant.events.Report.limits`)."""
        own, told = MODELS[self.settings.model], self.chances
        if told is None or told.gp is None:
            return (sentence({own: 1.0}),)
        searched = "classifier" in self.metadata.get(CHOSEN, {})
        by = LEFT_OUT if searched else "the setting 'classifier'"
        return (
            sentence({"the GP classifier": 1 - told.share, own: told.share}, by),
            f"Latent positions and generated rows are of {own} alone.",
            "The posterior of the GP classifier is taken at its mode, and its functions are those "
            "of 300 rows.",
        )

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the class that each row is taken for, its probability, and all others'.

        The class is called `label`, or `predicted` where the table has labels. A row is of the
        rare class from the probability on that was best on rows spared for it. Images of another
        size are brought to the model's.

        Raises:
            BadInput: A column is absent, or the images are of another shape.
        """
        from scant.studies.mitosis.explore import predictions

        return predictions(self.present, table)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answers to the questions that the catalog names (`explore.answer`)."""
        from scant.studies.mitosis.explore import answer

        return answer(self.present, question, query)


def _array(values: torch.Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().cpu().numpy()
    return array
