"""Aggregation: MTGPA on averages over supports of every size.

What the study adds to the model of `scant.models.mtgpa.model`: how many fine rows may be learned
from, scales, a bound on all rows that says when to stop, predictions on small cells for the
picture, the aggregate check, and single-task and centroid baselines on the same rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from scant.errors import BadInput
from scant.events import Report
from scant.models.mtgpa.exact import ExactGP, ExactTrainer
from scant.models.mtgpa.likelihoods import likelihood
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Coregionalisation, Data
from scant.models.mtgpa.training import MTGPATrainer
from scant.random import restart_generator
from scant.rivals.comparison import Comparison
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.explore import answer
from scant.studies.aggregation.fitted import FittedMTGPA, TrainingData
from scant.studies.aggregation.preprocessing import Scale
from scant.studies.aggregation.report import write_report
from scant.studies.aggregation.settings import TRIED, AggregationSettings
from scant.studies.aggregation.stack import Stack
from scant.studies.aggregation.table import Supports, of
from scant.studies.aggregation.thinning import scarce_places
from scant.studies.auto import AUTO, CHOSEN
from scant.studies.learned_region import LearnedRegion
from scant.studies.predicted_table import checked, with_columns
from scant.studies.protocol import Tensors, part, required, roles
from scant.studies.split import EVERYTHING
from scant.studies.trained import WHOLE_EVERY, TrainedStudy

EXACT_PATIENCE = 4  # steps of L-BFGS; the setting's are of Adam and natural gradients
KEPT_ROWS = 5000  # rows that stay with the model, for the curve over fine observations


class Study(TrainedStudy):
    """MTGPA on one table in long form (see `scant.studies.protocol.Study` for how it is driven)."""

    settings: AggregationSettings
    model: MTGPA | ExactGP
    stack: Stack | None = None

    def __init__(
        self, settings: AggregationSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("aggregation", table)
        self._configure(settings, device)
        unmarked = space.read(table)
        scarce = space.wanted(settings, unmarked)
        table = space.divided(settings, table, unmarked, scarce)
        whole = space.read(table)
        wanted = 0 if settings.refit == EVERYTHING else settings.fine_rows
        kept = scarce_places(table, scarce, wanted, settings.seed)
        self.table = table.iloc[kept].reset_index(drop=True)
        self.whole = whole
        self.observed = of(self.table, dims=whole.dims, tasks=whole.tasks)
        self.rows = space.training_rows(settings, self.observed, scarce)
        held = whole.test & np.isfinite(whole.y)
        self.roles = roles(len(table), test=held, train=kept[self.rows])
        if self.rows.sum() < 4:
            raise BadInput(
                f"Only {int(self.rows.sum())} rows are left to learn from; at least 4 are needed. "
                "Bring more rows, raise fine_rows, or leave fewer tasks out."
            )
        kinds = space.likelihoods(settings, self.observed, "the table")
        self._drop_tasks_without_rows(kinds)
        self.scale = space.scales(settings, self.observed, self.rows, self.kinds)
        self.metadata = space.metadata_of(self.observed, self.rows, scarce, self.kinds, whole)
        self.metadata["scale"] = [[s.offset, s.factor] for s in self.scale]
        tasks = list(self.observed.tasks)
        self.data = space.data_of(self.observed, self.rows, tasks, self.scale, device)
        points = not self.observed.width[self.rows].any()
        self.exact = space.exact(settings, self.kinds, len(self.data.y), points)
        self.learned = space.learned(settings, self.data) if self.exact else self.data
        self.kernels = TRIED if self.exact and points else TRIED[:1]
        if settings.kernel != AUTO or len(self.kernels) == 1:
            kernel = self.kernels[0] if settings.kernel == AUTO else settings.kernel
            self._choose_kernel(kernel, "exact averages over boxes, and short of points")
        self.restarts = len(self.kernels)
        if self.exact:
            self.notes.append(
                f"Inference is exact: {len(self.data.y):,} rows, all Gaussian. Inducing points and "
                "the optimizer's settings are not used."
            )
            # Less than a nat in so many steps of L-BFGS says nothing of the hyperparameters.
            self.patience = min(self.patience, EXACT_PATIENCE)
            self.tolerance = 1 / len(self.learned.y)
            if len(self.learned.y) < len(self.data.y):
                self.notes.append(
                    f"Hyperparameters are learned from {len(self.learned.y):,} of these rows."
                )

    def _choose_kernel(self, kernel: str, why: str) -> None:
        self.kernels = (kernel,)
        if self.settings.kernel == AUTO:
            self.settings = type(self.settings)(**{**self.settings.values(), "kernel": kernel})
            self.metadata[CHOSEN] = {**self.metadata.get(CHOSEN, {}), "kernel": [kernel, why]}

    def _drop_tasks_without_rows(self, kinds: list[str]) -> None:
        """Tasks that nothing is learned from are unknown to the model; their rows are not asked."""
        having = [t for t in range(len(kinds)) if (self.rows & (self.observed.task == t)).any()]
        names = [self.observed.tasks[t] for t in having]
        gone = [task for task in self.observed.tasks if task not in names]
        self.kinds = [kinds[t] for t in having]
        if gone:
            kept = self.table["task"].astype(str).isin(names).to_numpy()
            self.notes.append(f"The model is not trained on {', '.join(gone)}.")
            self.table = self.table[kept].reset_index(drop=True)
            self.rows = self.rows[kept]
            self.observed = of(self.table, dims=self.observed.dims, tasks=names)
        self.notes.append(
            "Likelihoods: "
            + ", ".join(f"{task} {kind}" for task, kind in zip(self.observed.tasks, self.kinds))
            + "."
        )

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        kernel = self.kernels[restart]  # each a restart, from the same draws
        self._begin(self.settings, kernel, restart_generator(self.settings.seed, 0), best)
        self.bound, self.n_rows = float("nan"), len(self.learned.y)
        if best is not None:
            self._take(best)

    def _begin(
        self,
        s: AggregationSettings,
        kernel: str,
        generator: torch.Generator,
        best: Tensors | None,
    ) -> None:
        """Model and trainer at their start; an exact model that is to be `best` seeks none."""
        prior: dict[str, Any] = {
            "ranks": space.ranks(s, len(self.kinds)),
            "shape": kernel,
            "lengthscale": s.lengthscale or None,
            "fixed_lengthscale": s.lengthscale > 0,
            "noise": s.noise,
        }
        dimensions = len(self.observed.dims)
        if self.exact:
            self.model = (
                ExactGP.build(self.learned, len(self.kinds), dimensions, generator, **prior)
                if best is None
                else self._restored(best, kernel).to(self.device)
            )
            self.trainer = ExactTrainer(self.model)
            return
        self.model = MTGPA.build(
            self.data,
            self.kinds,
            dimensions,
            generator,
            inducing=s.n_inducing,
            # A few wide boxes need more points than they have centres.
            place="kmeans" if len(self.data.y) > s.n_inducing else "even",
            learn_inducing=s.learn_inducing,
            natural=s.optimizer == "natural",
            **prior,
        ).to(self.device)
        gaussian = all(kind == "gaussian" for kind in self.kinds) and not s.batch_size
        alone = sum(prior["ranks"]) == 1
        self.trainer = MTGPATrainer(
            self.model,
            self.data,
            generator,
            scheme=s.optimizer,
            rate=s.learning_rate,
            natural_rate=(1.0 if alone else 0.3) if gaussian else 0.1,
            halving=s.halving or None,
            batch=s.batch_size or None,
        )

    def _whole(self, elbo: float) -> float:
        if not self.settings.batch_size or isinstance(self.model, ExactGP):
            return elbo
        if self.trainer.steps % WHOLE_EVERY != 1:
            return self.bound
        with torch.no_grad():
            return float(self.model.elbo(self.data)) / self.n_rows

    def snapshot(self) -> dict[str, np.ndarray]:
        return self.posterior.snapshot()

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        scores = [score for score, _ in restarts]
        place = int(np.argmax(scores))
        if len(self.kernels) > 1:
            of_each = ", ".join(f"{k} {v:.3f}" for k, v in zip(self.kernels, scores))
            self._choose_kernel(self.kernels[place], f"log evidence a row: {of_each}")
        self.start_restart(0, 0, restarts[place][1])
        if isinstance(self.model, ExactGP) and len(self.learned.y) < len(self.data.y):
            self.model = ExactGP(self.model.likelihoods, self.model.prior, self.data)
        if isinstance(self.model, ExactGP) and self.settings.stack:
            self.stack = Stack.weighed(
                self.model, self.metadata["tasks"].index(self.metadata["scarce"])
            )
        report = write_report(self.posterior, self.train)
        if self.stack is None:
            return report
        return replace(report, notes=(self.stack.sentence(), *report.notes))

    @property
    def train(self) -> TrainingData:
        """The rows of this run."""
        return TrainingData(self.observed, self.rows, self.data)

    def comparison(self, report: Report) -> Comparison | None:
        """The problem as a matrix (see `comparison.py` beside this file)."""
        from scant.studies.aggregation.comparison import comparison

        return comparison(self.posterior, self.train)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        keep = np.arange(len(self.whole))
        if len(keep) > KEPT_ROWS:
            keep = np.linspace(0, len(keep) - 1, KEPT_ROWS).astype(int)
        for name in ("task", "lo", "hi", "y", "exposure", "test"):
            tensors[f"rows.{name}"] = torch.as_tensor(getattr(self.whole, name)[keep])
        meta = {"words": self.metadata, "all_tasks": list(self.whole.tasks)}
        if self.stack is None:
            return tensors, meta
        tensors |= {f"stack.{k}": v for k, v in self.stack.tensors().items()}
        return tensors, {**meta, "stack": self.stack.meta()}

    @classmethod
    def restore(
        cls,
        settings: AggregationSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        study._configure(settings, device)
        study.metadata = meta["words"]
        study.kinds = list(study.metadata["likelihoods"])
        study.scale = [Scale(*pair) for pair in study.metadata["scale"]]
        own = part(tensors, "model.")
        study.model = study._restored(own, settings.kernel).to(device)
        study._take(own)
        study.stack = Stack.read(part(tensors, "stack."), meta.get("stack"))
        rows = {k: v.cpu() for k, v in part(tensors, "rows.").items()}
        study.whole = space.kept(rows, meta["all_tasks"], study.metadata["dims"])
        return study

    def _restored(self, own: Tensors, kernel: str) -> MTGPA | ExactGP:
        """A model that a state fits, which tells which of the two it is of."""
        s, dimensions = self.settings, len(self.metadata["dims"])
        ranks = space.ranks(s, len(self.kinds))
        inducing = next((v for k, v in own.items() if k.endswith("inducing_points")), None)
        if inducing is None:
            prior = Coregionalisation(dimensions, len(self.kinds), ranks, kernel)
            data = Data(own["supports"], own["y"], own["task"])
            return ExactGP([likelihood(kind) for kind in self.kinds], prior, data)
        natural = s.optimizer == "natural"
        return MTGPA(self.kinds, inducing, dimensions, ranks, kernel, s.learn_inducing, natural)

    @property
    def posterior(self) -> FittedMTGPA:
        """The model at its present parameters, as report and answers take it."""
        named = {name: self.metadata[name] for name in ("tasks", "scarce", "dims", "edges")}
        return FittedMTGPA(
            settings=self.settings,
            model=self.model,
            kinds=self.kinds,
            scale=self.scale,
            whole=self.whole,
            device=self.device,
            stack=self.stack,
            **named,
        )

    @property
    def inputs(self) -> list[str]:
        return [f"{dim}{end}" for dim in self.metadata["dims"] for end in ("", "_lo", "_hi")]

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the columns of the catalog added.

        Intervals are of a new observation under its task's likelihood: of counts whole numbers.

        Raises:
            BadInput: An unknown task, a dimension that is absent, bounds upside down.
        """
        query = checked(table, self.inputs, gaps=["exposure"])
        unread = ["y", "y_err", "truth"]  # what is learned is not looked at, whatever it holds
        supports = space.read(query.drop(columns=unread, errors="ignore"), self.metadata)
        return self._predicted(table, supports)

    def map(self) -> pd.DataFrame:
        """Every task on the cells of the picture; no rows where there is no picture."""
        sides = [np.asarray(side, float) for side in self.metadata["edges"]]
        if not sides:
            return pd.DataFrame()
        low, high = space.cells(sides)
        bounds = dict[str, np.ndarray]()
        for d, dim in enumerate(self.metadata["dims"]):
            bounds |= {f"{dim}_lo": low[:, d], f"{dim}_hi": high[:, d]}
        tables = [pd.DataFrame({"task": task, **bounds}) for task in self.metadata["tasks"]]
        cells = pd.concat(tables, ignore_index=True)
        return self._predicted(cells, space.read(cells, self.metadata))

    def _predicted(self, table: pd.DataFrame, supports: Supports) -> pd.DataFrame:
        outside = self.region.outside(supports.lo / self._span, supports.hi / self._span)
        told = self.posterior.predictions(supports)
        return with_columns(table, {**told, "outside": outside.astype(np.int64)})

    @cached_property
    def region(self) -> LearnedRegion:
        """The boxes that were learned from, of whatever task."""
        kept = self.whole
        rows = ~kept.test & np.isfinite(kept.y)
        return LearnedRegion(kept.lo[rows] / self._span, kept.hi[rows] / self._span)

    @property
    def _span(self) -> Float[np.ndarray, " d"]:
        """Of the dimensions, so that their distances count alike."""
        low, high = np.array(self.metadata["range"]).T
        return np.maximum(high - low, 1e-300)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answers "box", "field", "scarcity" and "retrain" (see the catalog)."""
        return answer(self.posterior, question, query)
