"""Aggregation: MTGPA on averages over supports of every size.

What the study adds to the model of `engine.models.mtgpa`: how many fine rows may be learnt from,
scales, a bound on all rows that says when to stop, predictions on small cells for the picture, the
aggregate check, and single-task and centroid baselines on the same rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from engine.catalog.aggregation import AggregationSettings
from engine.datasets.coarsening import scarce as made_scarce
from engine.datasets.supports import Supports, of
from engine.errors import BadInput
from engine.events import Report
from engine.models.mtgpa import MTGPA
from engine.models.mtgpa_likelihoods import Prediction
from engine.models.mtgpa_prior import Data
from engine.models.mtgpa_training import Training
from engine.studies import Step, Tensors, part, required
from engine.studies import aggregation_space as space
from engine.studies.aggregation_space import Scale
from engine.studies.predicted import checked

WHOLE_EVERY = 25  # steps between bounds on all rows, where a step sees only some
KEPT_ROWS = 5000  # rows that stay with the model, for the curve over fine observations


class Study:
    """MTGPA on one table in long form (see `engine.studies.Study` for how it is driven)."""

    scheduled = False
    reason = ""
    tolerance = 1e-4
    restarts = 1
    stages = 1

    def __init__(
        self, settings: AggregationSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("aggregation", table)
        self._follow(settings, device)
        whole = space.read(table)
        scarce = space.wanted(settings, whole)
        self.table = made_scarce(table, scarce, settings.fine_rows, settings.seed)
        self.whole = whole
        self.seen = of(self.table, dims=whole.dims, tasks=whole.tasks)
        self.rows = space.learnt(settings, self.seen, scarce)
        if self.rows.sum() < 4:
            raise BadInput(
                f"Only {int(self.rows.sum())} rows are left to learn from; at least 4 are needed. "
                "Bring more rows, raise fine_rows, or leave fewer tasks out."
            )
        kinds = space.likelihoods(settings, self.seen, "the table")
        self._drop_tasks_without_rows(kinds)
        self.scale = space.scales(settings, self.seen, self.rows, self.kinds)
        self.words = space.words_of(self.seen, self.rows, scarce, self.kinds, whole)
        self.words["scale"] = [[s.offset, s.factor] for s in self.scale]
        self.data = self.data_of(self.seen, self.rows)

    def _follow(self, settings: AggregationSettings, device: torch.device) -> None:
        self.settings, self.device = settings, device
        self.notes: list[str] = []
        self.max_steps, self.patience = settings.max_steps, settings.patience

    def _drop_tasks_without_rows(self, kinds: list[str]) -> None:
        """Tasks that nothing is learnt from are unknown to the model; their rows are not asked."""
        having = [t for t in range(len(kinds)) if (self.rows & (self.seen.task == t)).any()]
        names = [self.seen.tasks[t] for t in having]
        gone = [task for task in self.seen.tasks if task not in names]
        self.kinds = [kinds[t] for t in having]
        if gone:
            kept = self.table["task"].astype(str).isin(names).to_numpy()
            self.notes.append(f"Nothing is learnt from {', '.join(gone)}.")
            self.table = self.table[kept].reset_index(drop=True)
            self.rows = self.rows[kept]
            self.seen = of(self.table, dims=self.seen.dims, tasks=names)
        self.notes.append(
            "Likelihoods: "
            + ", ".join(f"{task} {kind}" for task, kind in zip(self.seen.tasks, self.kinds))
            + "."
        )

    # --- training -------------------------------------------------------------------------------

    def begin(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        generator = torch.Generator().manual_seed(104729 * s.seed + restart)
        ranks = space.ranks(s, len(self.kinds))
        self.model = MTGPA.build(
            self.data,
            self.kinds,
            len(self.seen.dims),
            generator,
            inducing=s.n_inducing,
            # A few wide boxes need more points than they have centres.
            place="kmeans" if len(self.data.y) > s.n_inducing else "even",
            ranks=ranks,
            shape=s.kernel,
            lengthscale=s.lengthscale or None,
            fixed_lengthscale=s.lengthscale > 0,
            noise=s.noise,
            learn_inducing=s.learn_inducing,
            natural=s.optimiser == "natural",
        ).to(self.device)
        gaussian = all(kind == "gaussian" for kind in self.kinds) and not s.batch_size
        alone = sum(ranks) == 1
        self.training = Training(
            self.model,
            self.data,
            generator,
            scheme=s.optimiser,
            rate=s.learning_rate,
            natural_rate=(1.0 if alone else 0.3) if gaussian else 0.1,
            halving=s.halving or None,
            batch=s.batch_size or None,
        )
        self.bound = float("nan")
        if best is not None:
            self._take(best)

    def step(self) -> Step:
        elbo = self.training.step() / len(self.data.y)
        self.notes += [note for note in self.training.notes if note not in self.notes]
        if not self.settings.batch_size:
            self.bound = elbo
        elif self.training.steps % WHOLE_EVERY == 1:
            with torch.no_grad():
                self.bound = float(self.model.elbo(self.data)) / len(self.data.y)
        return Step(elbo, self.bound)

    def parameters(self) -> Tensors:
        return dict(self.model.state_dict())

    def state(self) -> Tensors:
        return {**self.training.state(), "bound": torch.tensor(self.bound, dtype=torch.float64)}

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self._take(parameters)
        self.bound = float(state["bound"])
        self.training.load({k: v for k, v in state.items() if k != "bound"})

    def _take(self, parameters: Tensors) -> None:
        self.model.load_state_dict({k: v.to(self.device) for k, v in parameters.items()})

    def snapshot(self) -> dict[str, np.ndarray]:
        return {
            **self.field(self.words["scarce"]),
            "B": self.model.prior.matrices().sum(0).detach().cpu().numpy(),
            "lengthscale": self.model.prior.lengthscales().detach().cpu().numpy(),
        }

    # --- afterwards -----------------------------------------------------------------------------

    def conclude(self, kept: list[tuple[float, Tensors]]) -> Report:
        from engine.studies.aggregation_report import write_report

        self.begin(0, 0, kept[0][1])
        return write_report(self)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        keep = np.arange(len(self.whole))
        if len(keep) > KEPT_ROWS:
            keep = np.linspace(0, len(keep) - 1, KEPT_ROWS).astype(int)
        for name in ("task", "lo", "hi", "y", "exposure", "test"):
            tensors[f"rows.{name}"] = torch.as_tensor(getattr(self.whole, name)[keep])
        return tensors, {"words": self.words, "all_tasks": list(self.whole.tasks)}

    @classmethod
    def restore(
        cls,
        settings: AggregationSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        study._follow(settings, device)
        study.words = meta["words"]
        study.kinds = list(study.words["likelihoods"])
        study.scale = [Scale(*pair) for pair in study.words["scale"]]
        own = part(tensors, "model.")
        inducing = next(v for k, v in own.items() if k.endswith("inducing_points"))
        study.model = MTGPA(
            study.kinds,
            inducing.to(device),
            len(study.words["dims"]),
            space.ranks(settings, len(study.kinds)),
            settings.kernel,
            settings.learn_inducing,
            settings.optimiser == "natural",
        ).to(device)
        study._take(own)
        rows = {k: v.cpu() for k, v in part(tensors, "rows.").items()}
        study.whole = space.kept(rows, meta["all_tasks"], study.words["dims"])
        return study

    def data_of(self, seen: Supports, rows: np.ndarray) -> Data:
        """Rows of a table as the model takes them: its own task numbers, values scaled."""
        return space.data_of(seen, rows, self.words["tasks"], self.scale, self.device)

    def task(self, name: str) -> int:
        """The number of a task of the model.

        Raises:
            BadInput: The model has no such task.
        """
        if name not in self.words["tasks"]:
            raise BadInput(
                f"There is no task {name!r}; the tasks are {', '.join(self.words['tasks'])}."
            )
        return int(self.words["tasks"].index(name))

    def ask(
        self, supports: Tensor, task: int, exposure: Tensor | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and deviation of the average, deviation of a new observation; in the task's unit."""
        found: Prediction = self.model.predict(supports, task, exposure)
        offset, factor = self.scale[task].offset, self.scale[task].factor
        mean = offset + factor * found.mean
        std, new = factor * found.variance.sqrt(), factor * (found.variance + found.noise).sqrt()
        return mean.cpu().numpy(), std.cpu().numpy(), new.cpu().numpy()

    def field(self, task: str) -> dict[str, np.ndarray]:
        """A task's posterior on the cells of the picture; nothing where there is no picture."""
        sides = [np.asarray(side, float) for side in self.words["edges"]]
        number = self.task(task)
        if not sides:
            return {name: np.empty(0) for name in ("mean", "std_f", "std_y")}
        supports = space.tensors_of(*space.cells(sides), self.device)
        return dict(zip(("mean", "std_f", "std_y"), self.ask(supports, number)))

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with `mean`, `std` (of the average) and `std_y` (of a new observation) added.

        Raises:
            BadInput: An unknown task, a dimension that is absent, bounds upside down.
        """
        ends = [f"{dim}{end}" for dim in self.words["dims"] for end in ("", "_lo", "_hi")]
        table = checked(table, ends, gaps=["exposure"])
        unread = ["y", "y_err", "truth"]  # what is learnt is not looked at, whatever it holds
        asked = space.read(table.drop(columns=unread, errors="ignore"), self.words)
        out = np.full((3, len(asked)), np.nan)
        for t in range(len(self.words["tasks"])):
            mine = asked.task == t
            if mine.any():
                exposure = torch.as_tensor(asked.exposure[mine]).to(self.device)
                supports = space.tensors_of(asked.lo[mine], asked.hi[mine], self.device)
                out[:, mine] = np.stack(self.ask(supports, t, exposure))
        return table.assign(mean=out[0], std=out[1], std_y=out[2])

    def explore(self, question: str, **asked: Any) -> dict[str, np.ndarray]:
        """Answers "box", "field" and "scarcity" (see the catalog)."""
        from engine.studies.aggregation_explore import answer

        return answer(self, question, asked)
