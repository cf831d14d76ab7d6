"""Mitosis: a rare class in a latent space of its own (Yousefi 2021, chapter 3).

What the study adds to the models: which rows are learnt from and which are held out, by slide;
principal components in place of pixels; temperature and threshold from rows spared for them;
latent positions, covariances and generated cells for the page.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from engine.catalog.mitosis import MODELS, OTHERS, PAIRS, PRIORS, SHOWN, STRIP, MitosisSettings
from engine.catalog.mitosis_cost import MOST_DGPLVM as MOST
from engine.datasets.nuclei import Cells
from engine.errors import BadInput
from engine.events import Report
from engine.studies import Step, Tensors, arrays, part, required
from engine.studies import mitosis_covariances as covariances
from engine.studies import mitosis_models as models
from engine.studies import mitosis_rows as rows
from engine.studies.mitosis_columns import Columns
from engine.studies.mitosis_rows import Split

PICTURED = 50  # held-out rows of each class whose images are kept


class Study:
    """One model of a few classes on one table (see `engine.studies.Study` for how it is driven)."""

    scheduled = False
    reason = ""
    tolerance = 1e-3
    stages = 1

    def __init__(
        self, settings: MitosisSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("mitosis", table)
        s, told = settings, Cells.of(table)
        cells, self.places = rows.chosen(s, told)
        drawn = rows.shape(s, cells)
        x, image = rows.as_learnt(s, cells, drawn)
        split, said = rows.split(s, cells)
        if s.model == "dgplvm" and len(split.learnt) > MOST:
            said.append(f"DGPLVM learns from {MOST:,} of {len(split.learnt):,} rows.")
            kept = rows.some(np.random.default_rng(s.seed), cells, split.learnt, MOST)
            split = Split(split.pool, kept, split.validation, split.test)
        columns = Columns.of(x[split.learnt], s.components, image is not None)
        methods = [MODELS[s.model]]
        if s.baselines:
            methods += [*(n for k, n in MODELS.items() if k != s.model), *OTHERS]
        self.words = rows.words_of(s, cells, image, split, methods)
        self._follow(s, cells.label, columns.forward(x), split, columns, image, device)
        self.pictured = self._pictured() if image else np.empty(0, dtype=np.int64)
        self.images = np.nan_to_num(x[self.pictured]) if image else np.empty((0, 0))
        self.shares = np.bincount(cells.label) / len(cells)
        self.notes += [*said, *rows.notes(cells, drawn, image, split, columns)]

    def _follow(
        self,
        settings: MitosisSettings,
        label: Int[np.ndarray, " n"],
        z: Float[np.ndarray, "n k"],
        split: Split,
        columns: Columns,
        image: tuple[int, int] | None,
        device: torch.device,
    ) -> None:
        self.settings, self.device = settings, device
        self.label, self.z = label, z
        self.split, self.columns, self.image = split, columns, image
        self.learnt, self.test = split.learnt, split.test
        self.notes: list[str] = []
        self.restarts, self.max_steps = settings.restarts, settings.max_steps
        self.patience = settings.patience
        self.reader: models.Reader | None = None
        self.chances: models.Chances | None = None
        self.how = models.USUAL

    # --- training -------------------------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        return len(self.words["classes"])

    def given(self, which: Int[np.ndarray, " m"], name: str = "") -> torch.Tensor:
        """Rows as a model is given them; dgplvm takes no missing values."""
        z = self.z[which]
        if (name or self.settings.model) == "dgplvm":
            z = self.filled(z)
        return torch.tensor(z, dtype=torch.float64).to(self.device)

    def filled(self, z: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
        """Rows without gaps: what is missing is the mean of the rows that are learnt from."""
        return np.where(np.isfinite(z), z, np.nanmean(self.z[self.learnt], axis=0))

    def begin(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        self.generator = torch.Generator().manual_seed(104729 * s.seed + restart)
        label = torch.tensor(self.label[self.learnt])
        self.model = models.build(
            s, s.model, self.given(self.learnt).cpu(), label, self.n_classes, self.generator
        ).to(self.device)
        self.training = models.trainer(self.model, s.max_steps, s.adam_steps)
        self.bound = float("nan")
        if best is not None:
            self._take(best)

    def step(self) -> Step:
        if self.training.stalled:  # at a maximum, as far as can be told
            return Step(self.bound, self.bound)
        value = self.training.step()
        if not math.isfinite(value):  # Adam gave up: L-BFGS goes on from where it was
            value = self.training.step()
        self.bound = -value
        self.notes += [note for note in self.model.notes if note not in self.notes]
        return Step(self.bound, self.bound)

    def parameters(self) -> Tensors:
        return dict(self.model.state_dict())

    def state(self) -> Tensors:
        at = torch.tensor([self.bound], dtype=torch.float64)
        return {**self.training.state_dict(), "bound": at}

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self._take(parameters)
        self.bound = float(state["bound"][0])
        self.training.load_state_dict({k: v for k, v in state.items() if k != "bound"})

    def _take(self, parameters: Tensors) -> None:
        self.model.load_state_dict({k: v.to(self.device) for k, v in parameters.items()})

    # --- what the model has learnt --------------------------------------------------------------

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that a page shows of the model as it is (see the catalog)."""
        label = self.label[self.learnt]
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
        if self.image is None:
            none = np.empty((0, 0, 0)), np.empty(0, dtype=np.int64)
            return dict(zip(("generated", "generated_class", "real", "real_class"), none * 2))
        label = self.label[self.learnt]
        each = [self.generate(c, STRIP, self.settings.seed) for c in range(self.n_classes)]
        real = self.learnt[rows.shown(label, STRIP * self.n_classes)]
        return {
            "generated": np.concatenate(each),
            "generated_class": np.repeat(np.arange(self.n_classes), STRIP),
            "real": np.stack([self.picture(row) for row in real.tolist()]),
            "real_class": self.label[real],
        }

    def generate(self, label: int, count: int, seed: int) -> np.ndarray:
        """New rows of a class, as images where there are images."""
        own = torch.as_tensor(np.flatnonzero(self.label[self.learnt] == label)).to(self.device)
        generator = torch.Generator().manual_seed(seed)
        return self.drawn(_array(models.generate(self.model, own, label, count, generator)))

    def drawn(self, z: Float[np.ndarray, "m k"]) -> np.ndarray:
        """What was learnt as the table shows it: images in whole shades, or features."""
        x = self.columns.back(z)
        if self.image is None:
            return x
        shades = np.round(np.clip(x, 0, 1) * rows.SHADES) / rows.SHADES
        return shades.reshape(len(z), *self.image)

    def picture(self, row: int) -> np.ndarray:
        """A row as the table shows it; the image itself where it was kept, else as it is learnt."""
        at = int(np.searchsorted(self.pictured, row))
        if self.image is not None and at < len(self.pictured) and self.pictured[at] == row:
            return self.images[at].reshape(self.image)
        return self.drawn(self.filled(self.z[[row]]))[0]

    def _pictured(self) -> Int[np.ndarray, " m"]:
        """Rows whose images are kept: those beside generated ones, and some held out."""
        strip = self.learnt[rows.shown(self.label[self.learnt], STRIP * self.n_classes)]
        held = [self.test[self.label[self.test] == c][:PICTURED] for c in range(self.n_classes)]
        return np.unique(np.concatenate([strip, *held]))

    # --- afterwards -----------------------------------------------------------------------------

    def conclude(self, kept: list[tuple[float, Tensors]]) -> Report:
        from engine.studies.mitosis_report import write_report

        score, best = max(kept, key=lambda pair: pair[0])
        self.begin(0, 0, best)
        self.reader, self.chances, self.how = self.settle(self.model, self.learnt)
        return write_report(self, score)

    def settle(
        self, model: models.Model, learnt: Int[np.ndarray, " m"], name: str = ""
    ) -> tuple[models.Reader, models.Chances, tuple[float, float]]:
        """How classes are read off a trained model: its SVM, temperature and threshold."""
        spared = self.split.validation
        label, how = self.label[learnt], models.USUAL
        reader = models.Reader(model, label, self.n_classes)
        evidence = np.empty((0, self.n_classes))
        if len(spared):
            found = reader.place(self.given(spared, name))
            evidence = found.evidence
            if reader.machine is not None:
                own, held = model.latent()[0], found.mean[:, 0]
                reader.machine, how = models.best_svm(
                    _array(own), label, _array(held), self.label[spared], self.n_classes
                )
                evidence = models.decisions(reader.machine, _array(held), self.n_classes)
        prior = self.prior(learnt)
        return reader, models.tempered(evidence, self.label[spared], prior, model), how

    def prior(self, learnt: Int[np.ndarray, " m"]) -> Float[np.ndarray, " c"]:
        """Shares of the classes before a row is seen, as the settings want them."""
        if self.settings.prior == PRIORS[2]:
            return np.full(self.n_classes, 1 / self.n_classes)
        if self.settings.prior == PRIORS[1]:
            return self.shares
        return np.bincount(self.label[learnt], minlength=self.n_classes) / len(learnt)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        chances = self.chances
        assert chances is not None, "a study is fitted once it is concluded"
        kept: dict[str, np.ndarray] = {
            "z": self.z.astype(np.float32),
            "label": self.label.astype(np.int16),
            "places": self.places,
            "pictured": self.pictured,
            "images": np.round(self.images * rows.SHADES).astype(np.uint8),
            "shares": self.shares,
            **{f"split.{k}": v for k, v in vars(self.split).items()},
            **{f"chances.{k}": np.asarray(v) for k, v in chances._asdict().items()},
        }
        kept |= {f"columns.{k}": np.asarray(v) for k, v in vars(self.columns).items()}
        kept["columns.axes"] = kept["columns.axes"].astype(np.float32)
        tensors = {f"rows.{k}": torch.as_tensor(v) for k, v in kept.items()}
        tensors |= {f"model.{k}": v for k, v in self.model.state_dict().items()}
        return tensors, {"words": self.words, "how": list(self.how)}

    @classmethod
    def restore(
        cls,
        settings: MitosisSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        study.words = meta["words"]
        kept = arrays(tensors, "rows.")
        split, columns, chances = (
            arrays(tensors, f"rows.{p}.") for p in ("split", "columns", "chances")
        )
        study.places, study.shares = kept["places"], kept["shares"]
        study.pictured, study.images = kept["pictured"], kept["images"] / rows.SHADES
        image = tuple(study.words["size"]) or None
        label, z = kept["label"].astype(np.int64), kept["z"].astype(np.float64)
        columns |= {"left": float(columns["left"]), "axes": columns["axes"].astype(np.float64)}
        study._follow(settings, label, z, Split(**split), Columns(**columns), image, device)
        study.begin(0, 0, part(tensors, "model."))
        study.how = tuple(meta["how"])
        study.reader = models.Reader(study.model, label[study.learnt], study.n_classes)
        if study.reader.machine is not None:
            own = _array(study.model.latent()[0])
            study.reader.machine = models.weighted_svm(own, label[study.learnt], study.how)
        chances["threshold"] = float(chances["threshold"])
        study.chances = models.Chances(**chances)
        return study

    # --- questions ------------------------------------------------------------------------------

    def ask(self, z: torch.Tensor, restarts: int = 1) -> tuple[models.Places, np.ndarray]:
        """Where rows lie under each class, and the classes' probabilities.

        Raises:
            BadInput: The study is not fitted yet.
        """
        if self.reader is None or self.chances is None:
            raise BadInput("This run has not ended yet, so that nothing can be asked of it.")
        found = self.reader.place(z, restarts)
        return found, self.chances.of(found.evidence)

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the class that each row is taken for, its probability, and all others'.

        The class is called `label`, or `predicted` where the table has labels. A row is of the
        rare class from the probability on that was best on rows spared for it. Images of another
        size are brought to the model's.

        Raises:
            BadInput: A column is absent, or the images are of another shape.
        """
        from engine.studies.mitosis_explore import predictions

        return predictions(self, table)

    def explore(self, question: str, **asked: Any) -> dict[str, np.ndarray]:
        """Answers to the questions that the catalog names (`mitosis_explore.answer`)."""
        from engine.studies.mitosis_explore import answer

        return answer(self, question, asked)


def _array(values: torch.Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().cpu().numpy()
    return array
