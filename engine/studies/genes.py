"""Genes: outputs measured in replicas, some of which were never taken (Ma 2023, chapter 5).

What the study adds to the models: what is hidden and learnt from, scales, one way of training for
all of them, curves of every replica for the picture, and the other models on the same rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from engine.catalog.genes import GenesSettings
from engine.datasets.naming import listed
from engine.datasets.replicas import NEW, Replicas, of
from engine.errors import BadInput
from engine.events import Report
from engine.models.replica_data import Data, Prediction, Scale
from engine.studies import Step, Tensors, arrays, part, required
from engine.studies import genes_models as models
from engine.studies import genes_rows as rows
from engine.studies.genes_models import Model
from engine.studies.predicted import checked

WHOLE_EVERY = 25  # steps between bounds of all outputs, where a step sees only some
MOST_OUTPUTS = 60  # of the matrix of correlations that travels to the page


class Study:
    """One model of replicas on one table (see `engine.studies.Study` for how it is driven)."""

    scheduled = False
    reason = ""
    tolerance = 1e-4
    stages = 1

    def __init__(
        self, settings: GenesSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("genes", table)
        seen = of(table)
        learnt, test = rows.split(settings, seen)
        self._follow(settings, seen, learnt, test, device)
        self.words = rows.words_of(settings, seen, learnt, test)
        self.notes += models.check(settings, self.data)
        bare = [name for d, name in enumerate(seen.outputs) if not learnt[seen.output == d].any()]
        if bare:
            self.notes.append(
                f"No row of {listed(bare)} is learnt from: what is said of it comes from the other "
                "outputs, or from the prior."
            )

    def _follow(
        self,
        settings: GenesSettings,
        seen: Replicas,
        learnt: np.ndarray,
        test: np.ndarray,
        device: torch.device,
    ) -> None:
        self.settings, self.device = settings, device
        self.seen, self.learnt, self.test = seen, learnt, test
        self.notes: list[str] = []
        self.restarts, self.max_steps = settings.restarts, settings.max_steps
        self.patience = settings.patience
        self.replicas = rows.names(seen)
        raw = rows.data_of(seen, learnt, self.replicas, device)
        self.scale = Scale.of(raw)
        self.data: Data = self.scale.standardise(raw)

    # --- training -------------------------------------------------------------------------------

    def begin(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        self.generator = torch.Generator().manual_seed(104729 * s.seed + restart)
        self.model: Model = models.build(s.model, self.data, s, self.generator)
        self.training = models.trainer(self.model, self.data, s, self.generator)
        self.bound, self.steps = float("nan"), 0
        said = [*getattr(self.model, "notes", ()), *self.training.notes]
        self.notes += [note for note in said if note not in self.notes]
        if best is not None:
            self._take(best)

    def step(self) -> Step:
        if self.training.stalled:  # at a maximum, as far as can be told
            return Step(self.bound, self.bound)
        elbo = self.training.step() / len(self.data.y)
        self.notes += [note for note in self.training.notes if note not in self.notes]
        if not self.settings.batch_outputs:
            self.bound = elbo
        elif self.steps % WHOLE_EVERY == 0:
            with torch.no_grad():
                self.bound = float(self.model.elbo()) / len(self.data.y)
        self.steps += 1
        return Step(elbo, self.bound)

    def parameters(self) -> Tensors:
        return dict(self.model.state_dict())

    def state(self) -> Tensors:
        at = torch.tensor([self.bound, self.steps], dtype=torch.float64)
        return {**self.training.state(), "at": at}

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self._take(parameters)
        self.bound, self.steps = float(state["at"][0]), int(state["at"][1])
        self.training.load({k: v for k, v in state.items() if k != "at"})

    def _take(self, parameters: Tensors) -> None:
        self.model.load_state_dict({k: v.to(self.device) for k, v in parameters.items()})

    def snapshot(self) -> dict[str, np.ndarray]:
        outputs = [self.output(name) for name in self.words["shown"]]
        return {**self.curves(outputs), **self.levels(outputs)}

    # --- afterwards -----------------------------------------------------------------------------

    def conclude(self, kept: list[tuple[float, Tensors]]) -> Report:
        from engine.studies.genes_report import write_report

        score, best = max(kept, key=lambda pair: pair[0])
        self.begin(0, 0, best)
        return write_report(self, score)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        for name in ("output", "replica", "x", "y", "sample"):
            tensors[f"rows.{name}"] = torch.tensor(getattr(self.seen, name))
        tensors["rows.learnt"] = torch.as_tensor(self.learnt)
        tensors["rows.test"] = torch.as_tensor(self.test)
        return tensors, {"words": self.words, "samples": list(self.seen.samples)}

    @classmethod
    def restore(
        cls,
        settings: GenesSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        study.words = meta["words"]
        kept = arrays(tensors, "rows.")
        learnt, test = kept.pop("learnt"), kept.pop("test")
        outputs, replicas = study.words["outputs"], study.words["replicas"]
        seen = Replicas(outputs, replicas, meta["samples"], **kept, test=test)
        study._follow(settings, seen, learnt, test, device)
        own = part(tensors, "model.")
        study.begin(0, 0, own)
        return study

    # --- questions ------------------------------------------------------------------------------

    def output(self, name: str) -> int:
        """The number of an output.

        Raises:
            BadInput: The model has no such output.
        """
        if name not in self.seen.outputs:
            raise BadInput(f"There is no output {name!r}; there is {listed(self.seen.outputs)}.")
        return self.seen.outputs.index(name)

    @property
    def grid(self) -> Float[np.ndarray, " g"]:
        """Inputs of the curves, in the table's unit."""
        low, high = self.words["range"]
        return np.linspace(low, high, rows.GRID)

    def ask(
        self,
        output: np.ndarray,
        replica: np.ndarray,
        x: np.ndarray,
        model: Model | None = None,
    ) -> Float[np.ndarray, "3 n"]:
        """Mean of f, deviation of f, deviation of a new measurement; in the output's unit.

        Args:
            output: Index.
            replica: Index within the output's replicas; `NEW`: one never seen.
            x: In the table's unit.
            model: Of the same rows' outputs; None: the study's.
        """
        if not len(x):
            return np.empty((3, 0))
        d, r = (torch.as_tensor(v, dtype=torch.int64).to(self.device) for v in (output, replica))
        found = (model or self.model).predict(d, r, self._scaled(x))
        return _told(self.scale.restore(d, found))

    def _scaled(self, x: np.ndarray) -> torch.Tensor:
        own = torch.tensor(x, dtype=torch.float64).to(self.device)
        return (own - self.scale.x_centre) / self.scale.x_width

    def curves(self, outputs: list[int], model: Model | None = None) -> dict[str, np.ndarray]:
        """Posterior of every replica of some outputs, and of what an output's replicas share.

        Of an output with fewer replicas than others the places beyond are NaN.
        """
        grid = self.grid
        most = max((len(self.seen.replicas[d]) for d in outputs), default=0)
        found = np.full((3, len(outputs), most, len(grid)), np.nan)
        pairs = [
            (i, d, r) for i, d in enumerate(outputs) for r in range(len(self.seen.replicas[d]))
        ]
        if pairs:
            place, d, r = (np.repeat(column, len(grid)) for column in np.array(pairs).T)
            told = self.ask(d, r, np.tile(grid, len(pairs)), model)
            found[:, place, r, np.tile(np.arange(len(grid)), len(pairs))] = told
        shared = self._shared(outputs, model or self.model)
        return {
            "grid": grid,
            **dict(zip(("mean", "std_f", "std_y"), found)),
            "shared_mean": shared[0],
            "shared_std": shared[1],
        }

    def _shared(self, outputs: list[int], model: Model) -> Float[np.ndarray, "3 s g"]:
        shape = (3, len(outputs), rows.GRID)
        d = torch.tensor(outputs, dtype=torch.int64).repeat_interleave(rows.GRID).to(self.device)
        found = model.shared(d, self._scaled(np.tile(self.grid, len(outputs))))
        if found is None:
            return np.full(shape, np.nan)
        mean, variance = found
        told = _told(self.scale.restore(d, Prediction(mean, variance, torch.zeros_like(mean))))
        return told.reshape(shape)

    def levels(self, outputs: list[int]) -> dict[str, np.ndarray]:
        """Places of the outputs, their correlation, and shares of prior variance by level."""
        places = self.model.latent()
        latent, spread = (np.empty((0, 0)),) * 2 if places is None else map(_array, places)
        K = _array(self.model.outputs_covariance()[:MOST_OUTPUTS, :MOST_OUTPUTS])
        scale = np.sqrt(np.maximum(np.diag(K), 1e-300))
        share = _array(self.model.levels(torch.tensor(outputs).to(self.device)))
        return {
            "latent": latent,
            "latent_std": spread,
            "K": K / scale / scale[:, None],
            "share": share / share.sum(1, keepdims=True),
        }

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with `mean`, `std` (of f) and `std_y` (of a new measurement) added.

        A replica that training lacked is predicted as a new one of its output.

        Raises:
            BadInput: A column is absent, or an output that the model has not seen.
        """
        table = checked(table, ["x"])
        asked = of(
            table.drop(columns=["y", "test"], errors="ignore"),
            outputs=self.seen.outputs,
            replicas=self.replicas,
            rows=range(2, len(table) + 2),  # as a spreadsheet counts
        )
        mean, std, std_y = self.ask(asked.output, asked.replica, asked.x)
        return table.assign(mean=mean, std=std, std_y=std_y)

    def explore(self, question: str, **asked: Any) -> dict[str, np.ndarray]:
        """Answers "curves", "hide" and "new" (see the catalog)."""
        from engine.studies.genes_explore import answer

        return answer(self, question, asked)

    def new(self, output: int) -> Float[np.ndarray, "3 g"]:
        """The curve of a replica of which nothing was ever measured (see `ask`)."""
        grid = self.grid
        return self.ask(np.full(len(grid), output), np.full(len(grid), NEW), grid)


def _told(found: Prediction) -> Float[np.ndarray, "3 n"]:
    spread = (found.variance.sqrt(), (found.variance + found.noise).sqrt())
    return np.stack([_array(v) for v in (found.mean, *spread)])


def _array(values: torch.Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().cpu().numpy()
    return array
