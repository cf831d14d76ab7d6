"""Rows seen in many views: cell events, pollution, survival (Kandemir & Hamprecht 2015).

What the study adds to the models: which rows are learnt from, views as they are or by principal
components, one way of training for all models, survival of patients, other methods on the same
rows and on further random splits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from engine.catalog.events import LAYERED, EventsSettings
from engine.datasets.views import Views, of
from engine.events import Report
from engine.studies import Step, Tensors, required
from engine.studies import events_rows as rows
from engine.studies import events_survival as survival
from engine.studies.events_looks import Looks
from engine.studies.events_models import Learner, rests

ROWS = "x"  # in a model's state: the rows that it has learnt from, as it sees them
KEPT = ("view", "x", "target", "event", "patient", "group")  # of the table, in the fitted model


class Study:
    """One model of one target on one table (see `engine.studies.Study` for how it is driven)."""

    reason = ""
    tolerance = 1e-4
    stages = 1

    def __init__(
        self, settings: EventsSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("events", table)
        whole = of(table, settings.task, settings.positive)
        self.places = rows.known(whole)
        seen = whole.take(self.places)
        settings = rows.settled(settings, seen)
        learnt, test = rows.split(settings, seen)
        looks = Looks.at(seen, rows.views_of(settings, seen), learnt, settings.components)
        self._follow(settings, seen, learnt, test, looks, device)
        self.words = rows.words_of(settings, seen, learnt, test)
        self.notes += rows.notes(settings, seen, learnt)

    def _follow(
        self,
        settings: EventsSettings,
        seen: Views,
        learnt: Int[np.ndarray, " n"],
        test: Int[np.ndarray, " t"],
        looks: Looks,
        device: torch.device,
    ) -> None:
        self.settings, self.device = rows.settled(settings, seen), device
        self.seen, self.learnt, self.test, self.looks = seen, learnt, test, looks
        self.notes: list[str] = []
        self.restarts, self.max_steps = settings.restarts, settings.max_steps
        self.patience = settings.patience
        self.scheduled = rests(self.settings, settings.model)
        self.y = rows.as_learnt(settings, seen)

    # --- training -------------------------------------------------------------------------------

    def begin(self, restart: int, stage: int, best: Tensors | None) -> None:
        generator = torch.Generator().manual_seed(104729 * self.settings.seed + restart)
        self.learner = self.learner_of(self.settings.model, self.learnt, self.looks, generator)
        self.bound = float("nan")
        if best is not None:
            self._take(best)

    def learner_of(
        self,
        name: str,
        learnt: Int[np.ndarray, " n"],
        looks: Looks,
        generator: torch.Generator,
        steps: int = 0,
    ) -> Learner:
        """A model at its starting values, of some of the rows.

        Args:
            name: One of `engine.catalog.events.MODELS`.
            learnt: The rows to learn from; censored ones only where the model takes them.
            looks: How they are looked at.
            generator: A CPU generator.
            steps: In which it is to be trained; 0: the settings' own number.
        """
        late = np.zeros(len(learnt), dtype=bool)
        if self.seen.task == "survival":
            late = ~self.seen.event[learnt]
            if name not in LAYERED or self.settings.bound != "stochastic":
                learnt, late = learnt[~late], late[~late]
        return Learner(
            self.settings,
            name,
            looks.of(self.seen.x[learnt], self.device),
            torch.as_tensor(self.y[learnt]).to(self.device),
            self.seen.task == "classification",
            torch.as_tensor(late).to(self.device),
            generator,
            steps or self.max_steps,
        )

    def step(self) -> Step:
        if not self.learner.training.stalled:  # else at a maximum, as far as can be told
            self.bound = self.learner.step()
            self.notes += [note for note in self.learner.notes if note not in self.notes]
        return Step(self.bound, self.bound)

    def parameters(self) -> Tensors:
        """The model's state, but for its rows: `begin` makes them anew from the table's."""
        return {k: v for k, v in self.learner.state_dict().items() if k != ROWS}

    def state(self) -> Tensors:
        at = torch.tensor([self.bound], dtype=torch.float64)
        return {**self.learner.training.state_dict(), "bound": at}

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self._take(parameters)
        self.bound = float(state["bound"][0])
        self.learner.training.load_state_dict({k: v for k, v in state.items() if k != "bound"})

    def _take(self, parameters: Tensors) -> None:
        own = {k: v for k, v in self.learner.state_dict().items() if k == ROWS}
        self.learner.load_state_dict(own | {k: v.to(self.device) for k, v in parameters.items()})

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that a page shows of the model as it is (see the catalog)."""
        shown = rows.shown(self.test)
        hidden, hidden_std = self.hidden(self.seen.x[shown])
        predicted, std, low, high = self.told(self.seen.x[shown])
        return {
            "shown": self.places[shown],
            "hidden": hidden,
            "hidden_std": hidden_std,
            "influence": self.learner.influence().cpu().numpy(),
            "predicted": predicted,
            "predicted_std": std,
            "predicted_low": low,
            "predicted_high": high,
            "truth": self.seen.target[shown],
            **self.lives(),
        }

    # --- what the model says --------------------------------------------------------------------

    def ask(
        self,
        x: Float[np.ndarray, "n f"],
        learner: Learner | None = None,
        looks: Looks | None = None,
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Mean and variance of the target on the scale on which it is learnt.

        Args:
            x: All features of some rows.
            learner: By default the run's.
            looks: That the learner was made with.
        """
        if not len(x):
            return np.empty(0), np.empty(0)
        found = (learner or self.learner).ask((looks or self.looks).of(x, self.device))
        mean, variance = (values.cpu().numpy() for values in found)
        return mean, np.maximum(variance, 1e-300)

    def doubt(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """How unsure the model is of rows, and how much of it more data would remove.

        Nothing of a model that does not tell (`Learner.doubt`).
        """
        found = self.learner.doubt(self.looks.of(x, self.device)) if len(x) else None
        if found is None:
            return np.empty(0), np.empty(0)
        whole, part = (values.cpu().numpy() for values in found)
        return whole, part

    def told(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "4 n"]:
        """Prediction, deviation and interval in the table's unit (see `events_rows.told`)."""
        return rows.told(self.settings, self.seen.task, *self.ask(x))

    def hidden(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, "n v"], Float[np.ndarray, "n v"]]:
        """Means and deviations of the hidden neurons at some rows."""
        found = self.learner.hidden(self.looks.of(x, self.device))
        mean, std = (values.detach().cpu().numpy() for values in found)
        return mean, std

    def lives(self) -> dict[str, np.ndarray]:
        """The held-out patients and their survival curves; empty where no survival is learnt."""
        if self.seen.task != "survival":
            return {**survival.no_curves(), **survival.nobody()}
        found = self.patients()
        return {**survival.curves(found), **found.arrays()}

    def patients(self, learner: Learner | None = None) -> survival.Patients:
        """The held-out patients, as the run's model or another of the same rows predicts them."""
        found = self.ask(self.seen.x[self.test], learner)
        return survival.patients(self.seen, self.test, *found)

    # --- afterwards -----------------------------------------------------------------------------

    def conclude(self, kept: list[tuple[float, Tensors]]) -> Report:
        from engine.studies.events_report import write_report

        score, best = max(kept, key=lambda pair: pair[0])
        self.begin(0, 0, best)
        return write_report(self, score)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.parameters().items()}
        tensors |= {f"looks.{k}": v for k, v in self.looks.tensors().items()}
        tensors |= {f"rows.{k}": torch.tensor(getattr(self.seen, k)) for k in KEPT}
        for name in ("learnt", "test", "places"):
            tensors[f"rows.{name}"] = torch.as_tensor(getattr(self, name))
        names = {"patients": self.seen.patients, "groups": self.seen.groups}
        return tensors, {"words": self.words, **names}

    @classmethod
    def restore(
        cls,
        settings: EventsSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        words = study.words = meta["words"]
        parts: dict[str, dict[str, torch.Tensor]] = {"model": {}, "looks": {}, "rows": {}}
        for name, value in tensors.items():
            room, _, own = name.partition(".")
            parts[room][own] = value
        kept = {k: v.cpu().numpy() for k, v in parts["rows"].items()}
        seen = Views(
            task=words["task"],
            names=words["views"],
            features=words["features"],
            classes=words["classes"],
            patients=meta["patients"],
            groups=meta["groups"],
            **{k: kept[k] for k in KEPT},
        )
        study.places = kept["places"]
        settings = as_kept(settings, parts["model"])
        looks = Looks.back(words["looked"], parts["looks"])
        study._follow(settings, seen, kept["learnt"], kept["test"], looks, device)
        study.begin(0, 0, parts["model"])
        return study

    # --- questions ------------------------------------------------------------------------------

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with predictions (see `events_explore.predictions`).

        Raises:
            BadInput: A column is absent that was learnt from.
        """
        from engine.studies.events_explore import predictions

        return predictions(self, table)

    def explore(self, question: str, **asked: Any) -> dict[str, np.ndarray]:
        """Answers "views", "row", "patient" and "scarcity" (see the catalog)."""
        from engine.studies.events_explore import answer

        return answer(self, question, asked)


def as_kept(settings: EventsSettings, model: Tensors) -> EventsSettings:
    """Settings with as many inducing points as a kept model has, where they left it open.

    What is meant by leaving it open may change; a run that was kept stays what it was.
    """
    own = [v.shape[-2] for k, v in model.items() if k.endswith((".inducing", "inducing_points"))]
    if settings.inducing_points or not own:
        return settings
    return type(settings)(**settings.values() | {"inducing_points": own[0]})
