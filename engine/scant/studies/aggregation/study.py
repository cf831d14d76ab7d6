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

from scant.ensemble import describe
from scant.errors import BadInput
from scant.events import Report
from scant.models.mtgpa.area_nodes import AreaNodes
from scant.models.mtgpa.areas import AreaGP
from scant.models.mtgpa.exact import ExactGP, ExactTrainer
from scant.models.mtgpa.hyperparameter_nodes import NodesGP
from scant.models.mtgpa.hyperpriors import favor_flat_maps
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.training import MTGPATrainer
from scant.predictive.scored import Scored
from scant.problem import Comparison, Problem
from scant.random import restart_generator
from scant.studies.aggregation import beside, maps, polygons, totals
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.candidates import conditioned, over_areas, read
from scant.studies.aggregation.explore import answer
from scant.studies.aggregation.fitted import FittedMTGPA, TrainingData
from scant.studies.aggregation.map_shapes import MAP
from scant.studies.aggregation.partners import Average
from scant.studies.aggregation.population import People
from scant.studies.aggregation.predictive import predicted_columns
from scant.studies.aggregation.preprocessing import Scale
from scant.studies.aggregation.problem import problem_of
from scant.studies.aggregation.report import answer_of, write_report
from scant.studies.aggregation.settings import (
    COUNTED,
    EXACT,
    MOST_FINER,
    MOST_GROWN,
    MOST_LATENT,
    ROUGH,
    SUMMED,
    TRIED,
    AggregationSettings,
)
from scant.studies.aggregation.table import Supports
from scant.studies.aggregation.thinning import scarce_places
from scant.studies.auto import AUTO, CHOSEN
from scant.studies.base import ArraySpec
from scant.studies.learned_region import LearnedRegion
from scant.studies.predicted_table import checked, with_columns
from scant.studies.protocol import Step, Tensors, part, required, roles
from scant.studies.split import EVERYTHING
from scant.studies.trained import WHOLE_EVERY, TrainedStudy
from scant.tables.schema import COVARIATE

LEAST_LEARNED = 5  # rows of the scarce task, from which tools for one table learn
EXACT_PATIENCE = 8  # steps of L-BFGS; the setting's are of Adam and natural gradients
OWN = "MTGPA"
LIKELIHOODS_NOTE = "Likelihoods: "
KEPT_ROWS = 5000  # rows that stay with the model, for the curve over fine observations


class Study(TrainedStudy):
    """MTGPA on one table in long form (see `scant.studies.protocol.Study` for how it is driven)."""

    settings: AggregationSettings
    model: MTGPA | ExactGP | AreaGP
    kinds: list[str]  # the likelihood of each task
    areal = False  # whether it is an `AreaGP`
    average: Average | None = None
    people: People | None = None
    on_map: Supports | None = None  # rows in the order of the metadata's map
    done = False  # whether training has ended

    def __init__(
        self, settings: AggregationSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("aggregation", table)
        self._configure(settings, device)
        taken, self.people = beside.parted(settings, table)
        places, rows = np.flatnonzero(taken), len(table)
        if self.people is not None:
            table = table[taken].reset_index(drop=True)
        unmarked = space.read(settings, table, people=self.people)
        scarce = space.wanted(settings, unmarked)
        table = space.divided(settings, table, unmarked, scarce)
        whole = space.read(settings, table, people=self.people)
        wanted = 0 if settings.refit == EVERYTHING else settings.fine_rows
        kept = scarce_places(table, scarce, wanted, settings.seed)
        self.table = table.iloc[kept].reset_index(drop=True)
        self.whole = whole
        self.observed = whole.at(kept)
        self.rows = space.training_rows(settings, self.observed, scarce)
        held = whole.test & np.isfinite(whole.y)
        self.roles = roles(rows, test=places[held], train=places[kept[self.rows]])
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
        rates = maps.rates_of(settings, self.kinds)
        drawn, self.on_map = maps.shown(self.table, self.observed, self.rows, rates, scarce)
        self.metadata |= drawn
        if self.on_map is not None and len(self.on_map) < len(self.table):
            self.notes.append(f"Maps show {len(self.on_map):,} of {len(self.table):,} rows.")
        tasks = list(self.observed.tasks)
        self.data = space.data_of(
            settings, self.observed, self.rows, tasks, self.kinds, self.scale, device
        )
        points = not self.observed.width[self.rows].any()
        pieces = 1 if self.observed.inside is None else self.observed.inside.shape[1]
        self.exact = space.exact(settings, self.kinds, len(self.data.y), points, pieces)
        latents = len(self.data.y) * pieces
        if self.people is not None:  # at whose places all points lie
            latents = min(latents, len(self.kinds) * len(self.people.number))
        summed = self._rates_of_map()
        self.areal = space.by_laplace(settings, self.kinds, len(self.data.y), latents, summed)
        if self.areal:
            self._take_poisson()
        self.notes += self._told()
        if whole.system:
            self.notes.append(polygons.told(whole.system))
        if pieces > 1:
            self.notes.append(f"Averages over polygons are taken over at most {pieces} points.")
        self.learned = space.learned(settings, self.data) if self.exact else self.data
        kernels = TRIED if self.exact and points else TRIED[:1]
        why = "exact averages over boxes, and short of points"
        if self._rates_of_map():
            kernels, why = (ROUGH,), "rates of counts on a map"
        if settings.kernel != AUTO or len(kernels) == 1:
            kernels = kernels[:1] if settings.kernel == AUTO else (settings.kernel,)
            self._choose("kernel", kernels[0], why)
        n_tasks, n = len(self.kinds), len(self.data.y)
        self.kernels, self.restarts = kernels, len(kernels)
        latent = len(space.ranks(settings, n_tasks))
        if self.exact and n <= MOST_FINER and not settings.lengthscale:
            self.stages += min(MOST_GROWN, MOST_LATENT - latent) * (settings.n_latent == AUTO)
        if self.stages == 1:
            self._choose("n_latent", latent, f"one for every two of {n_tasks} tasks")
        if self.exact:
            self.notes.append(
                f"Inference is exact: {len(self.data.y):,} rows, all Gaussian. Inducing points and "
                "the optimizer's settings are not used."
            )
            if len(self.learned.y) < len(self.data.y):
                self.notes.append(
                    f"Hyperparameters are learned from {len(self.learned.y):,} of these rows."
                )

        if self.areal:
            self.notes.append(
                f"Inference is Laplace's approximation: {len(self.data.y):,} rows, all counts. "
                "Inducing points and the optimizer's settings are not used."
            )
        if self.exact or self.areal:
            # Less than a nat in so many steps of L-BFGS says nothing of the hyperparameters.
            self.patience = min(self.patience, EXACT_PATIENCE)
            self.tolerance = 1 / len(self.learned.y)

    def _take_poisson(self) -> None:
        """For every count that a likelihood was chosen for, however large.

        What a few groups vary by is as well explained by a dispersion of theirs, of which nothing
        is known inside of them, as by a field that has a value at every point, as rough as the
        counts call for.
        """
        chosen = space.named(self.settings.likelihoods, self.observed)
        if self.settings.likelihood != AUTO:
            return
        self.kinds = [
            kind if task in chosen else "poisson"
            for task, kind in zip(self.observed.tasks, self.kinds)
        ]
        self.metadata["likelihoods"] = self.kinds
        self.notes = [n for n in self.notes if not n.startswith(LIKELIHOODS_NOTE)]
        self._note_likelihoods()

    def _note_likelihoods(self) -> None:
        of_each = (f"{task} {kind}" for task, kind in zip(self.observed.tasks, self.kinds))
        self.notes.append(f"{LIKELIHOODS_NOTE}{', '.join(of_each)}.")

    def _choose(self, name: str, value: Any, why: str) -> None:
        """A value for a setting that is `auto`."""
        if getattr(self.settings, name) == AUTO:
            self.settings = type(self.settings)(**{**self.settings.values(), name: value})
            self.metadata[CHOSEN] = {**self.metadata.get(CHOSEN, {}), name: [value, why]}

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
            self.observed = self.observed.at(np.flatnonzero(kept), names)
        self._note_likelihoods()

    def _told(self) -> list[str]:
        """Sentences on what is used beside supports and values."""
        s, told = self.settings, []
        if self.data.known is not None and set(self.kinds) & {*EXACT, "heteroscedastic"}:
            told.append(
                "y_err is known noise of Gaussian tasks, beside the noise that they learn; rows "
                "without it have the median of their task."
            )
        if self.observed.named:
            names = ", ".join(own.column.removeprefix(COVARIATE) for own in self.observed.named)
            told.append(f"Linear in: {names}; each task has coefficients of its own.")
        if self.people is not None:
            told.append(
                f"Points inside polygons are weighted by {self.people.number.sum():,.0f} people at "
                f"{len(self.people.number):,} places."
            )
            if empty := self.whole.empty:
                told.append(
                    f"{empty:,} polygon{'s' * (empty > 1)} in which nobody lives by these places: "
                    "the points inside are weighted by area instead."
                )
        if s.rate_per and any(kind in COUNTED for kind in self.kinds):
            told.append(
                f"Rates per {s.rate_per:,g} are taken for counts: y times exposure over "
                f"{s.rate_per:,g}, rounded. Predictions are rates again."
            )
        return told

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        kernel = self.kernels[restart]  # each a restart, from the same draws
        generator = restart_generator(self.settings.seed, 0)
        self._begin(self.settings, kernel, generator, best)
        self.bound, self.n_rows = float("nan"), len(self.learned.y)
        if best is not None:
            self._take(best)
        # A stage adds a function, unless one before has not paid.
        functions = len(space.ranks(self.settings, len(self.kinds))) + stage
        if stage and restart == 0 and functions == len(self.model.prior.kernels) + 1:
            self.model.grow(self.settings.rank, generator)
            self.trainer = ExactTrainer(self.model)
        learned = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        self.penalty = learned / self.n_rows if self.stages > 1 else 0.0

    def step(self) -> Step:
        """A step; its score is less a nat for each hyperparameter (Akaike 1974) of grown models."""
        step = super().step()
        return step._replace(score=step.score - self.penalty)

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
            "covariates": len(self.observed.named),
            "n_isotropic": self._alike(),
        }
        dimensions = len(self.observed.dims)
        if self.areal:
            self.model = (
                AreaGP.build(self.data, self.kinds, dimensions, generator, **prior)
                if best is None
                else self._restored(best, kernel).to(self.device)
            )
            self._favor_flat_maps(self.model)
            self.trainer = ExactTrainer(self.model)
            return
        if self.exact:
            self.model = (
                ExactGP.build(
                    self.learned,
                    len(self.kinds),
                    dimensions,
                    generator,
                    likelihoods=self.kinds,
                    finer=self.settings.hyperparameters != "point",
                    **prior,
                )
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
            place="inside"
            if self._rates_of_map()
            else ("kmeans" if len(self.data.y) > s.n_inducing else "even"),
            learn_inducing=s.learn_inducing,
            natural=s.optimizer == "natural",
            summed=s.counts == SUMMED,
            **prior,
        ).to(self.device)
        self._favor_flat_maps(self.model)
        gaussian = all(kind in EXACT for kind in self.kinds) and not s.batch_size
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

    def _favor_flat_maps(self, model: MTGPA | AreaGP) -> None:
        """Priors of maps of counts, where a model is of one."""
        s = self.settings
        if self._rates_of_map() and s.isotropic and not s.lengthscale:
            of_tasks = zip(model.functions, self.kinds)
            rates = [f for own, kind in of_tasks if kind in COUNTED for f in own]
            extent = float(np.max(np.ptp(self._map_bounds(), axis=0)))
            favor_flat_maps(model.prior, extent, rates)

    def _whole(self, elbo: float) -> float:
        if not self.settings.batch_size or isinstance(self.model, ExactGP | AreaGP):
            return elbo
        if self.trainer.steps % WHOLE_EVERY != 1:
            return self.bound
        with torch.no_grad():
            return float(self.model.elbo(self.data)) / self.n_rows

    def _alike(self) -> int:
        """How many dimensions share a lengthscale: those of a map."""
        return 2 if self.settings.isotropic and self.metadata.get("system") else 1

    def _rates_of_map(self) -> bool:
        """Whether counts on a map have rates that are sums."""
        counted = any(kind in COUNTED for kind in self.kinds)
        return bool(self.metadata.get("system") and counted and self.settings.counts == SUMMED)

    def _map_bounds(self) -> Float[np.ndarray, "n 2"]:
        """Corners of what is learned from, on the map."""
        return np.concatenate([self.observed.lo[self.rows, :2], self.observed.hi[self.rows, :2]])

    def snapshot(self) -> dict[str, np.ndarray]:
        fitted = self.posterior
        return {**fitted.snapshot(), **maps.posterior(fitted, self.on_map, live=not self.done)}

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        scores = [score for score, _ in restarts]
        best = int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))
        if self.restarts > 1:
            of_each = ", ".join(f"{k} {score:.3f}" for k, score in zip(self.kernels, scores))
            self._choose("kernel", self.kernels[best], f"log evidence a row: {of_each}")
        self.start_restart(best, 0, restarts[best][1])
        if self.stages > 1:
            functions = len(self.model.prior.kernels)
            why = "added while the log evidence, less a nat for each hyperparameter, rose"
            self._choose("n_latent", functions, why)
        if isinstance(self.model, AreaGP):
            self.model = over_areas(self.settings, self.model)
        if isinstance(self.model, ExactGP):
            self.model = conditioned(self.settings, self.model, self.data)
            if self.settings.stack:
                task = self.metadata["tasks"].index(self.metadata["scarce"])
                self.average = Average.fit(self.model, task)
        self.done = True
        scored = self.held_scores if len(self.problem.y_test) > 1 else None
        report = write_report(
            self.posterior, self.train, self.problem, scored, self.report_deadline
        )
        return self._with_map(report)

    def _with_map(self, report: Report) -> Report:
        """With the posterior of a map's polygons, and parts against totals."""
        arrays = {**report.arrays, **maps.posterior(self.posterior, self.on_map)}
        made = totals.of_run(self.posterior, self.metadata, self.on_map)
        if made is None:
            return replace(report, arrays={**arrays, "totals": np.empty((len(totals.ARRAY), 0))})
        arrays["totals"] = made[list(totals.ARRAY)].to_numpy(float).T
        return replace(report, arrays=arrays, notes=(*report.notes, totals.sentence(made)))

    @property
    def train(self) -> TrainingData:
        """The rows of this run."""
        return TrainingData(self.observed, self.rows, self.data)

    @cached_property
    def problem(self) -> Problem:
        """What all methods learn of the scarce task, and are asked."""
        return problem_of(self.train, self.posterior.task(self.posterior.scarce))

    @cached_property
    def held_scores(self) -> Scored:
        """What the fitted model says of the held-out rows."""
        return self.problem.scored(answer_of(self.posterior, self.train))

    def comparison(self, report: Report) -> Comparison | None:
        if len(self.problem.y) < LEAST_LEARNED or not len(self.problem.y_test):
            return None
        return Comparison(self.problem, self.held_scores.predictive)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        keep = np.arange(len(self.whole))
        if len(keep) > KEPT_ROWS:
            keep = np.linspace(0, len(keep) - 1, KEPT_ROWS).astype(int)
        for name in ("task", "lo", "hi", "y", "exposure", "test"):
            tensors[f"rows.{name}"] = torch.as_tensor(getattr(self.whole, name)[keep])
        if self.whole.inside is not None:
            tensors["rows.inside"] = torch.as_tensor(self.whole.inside[keep])
        if self.whole.covariates is not None:
            tensors["rows.covariates"] = torch.as_tensor(self.whole.covariates[keep])
        if self.settings.known_noise and np.isfinite(self.whole.y_err).any():
            tensors["rows.y_err"] = torch.as_tensor(self.whole.y_err[keep])
        if self.people is not None:
            for name in ("places", "number"):
                tensors[f"people.{name}"] = torch.as_tensor(np.array(getattr(self.people, name)))
        meta = {"words": self.metadata, "all_tasks": list(self.whole.tasks)}
        if self.average is None:
            return tensors, meta
        tensors |= {f"stack.{k}": v for k, v in self.average.tensors().items()}
        return tensors, {**meta, "stack": self.average.meta()}

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
        other_kernel = meta.get("other_kernel", "eq")  # of an average that an older run has
        study.average = Average.from_meta(
            part(tensors, "stack."),
            meta.get("stack"),
            lambda _, own: study._restored(own, other_kernel),
        )
        if known := part(tensors, "people."):
            study.people = People(**{k: v.cpu().numpy() for k, v in known.items()})
        rows = {k: v.cpu() for k, v in part(tensors, "rows.").items()}
        study.whole = space.kept(rows, meta["all_tasks"], study.metadata)
        return study

    def _restored(self, own: Tensors, kernel: str) -> MTGPA | ExactGP | AreaGP:
        """A model that a state fits, which tells of which kind it is."""
        s, dimensions = self.settings, len(self.metadata["dims"])
        covariates = len(beside.known_covariates(self.metadata))
        inducing = next((v for k, v in own.items() if k.endswith("inducing_points")), None)
        if inducing is None:
            return read(own, kernel, self.kinds, covariates, self._alike())
        return MTGPA(
            self.kinds,
            inducing,
            dimensions,
            space.ranks(s, len(self.kinds)),
            kernel,
            s.learn_inducing,
            natural=s.optimizer == "natural",
            summed=s.counts == SUMMED,
            covariates=covariates,
            n_isotropic=self._alike(),
        )

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
            average=self.average,
            people=self.people,
            **named,
        )

    @property
    def inputs(self) -> list[str]:
        ends = [f"{dim}{end}" for dim in self.metadata["dims"] for end in ("", "_lo", "_hi")]
        linear = [own.column for own in beside.known_covariates(self.metadata)]
        if self.metadata.get("system"):  # attributes of a map are set aside, and looked up there
            linear = [name for name in linear if name.startswith(COVARIATE)]
        return [*ends, *linear]

    def limits(self) -> tuple[str, ...]:
        """The methods that predict, then limits of these (`scant.events.Report.limits`)."""
        made = [describe(None, OWN)]
        if self.average is not None:
            made = [describe(self.average.ensemble, OWN)]
            made += self.average.limits(self.metadata["scarce"], OWN)
        if isinstance(self.model, NodesGP | AreaNodes):
            return (*made, self.model.sentence())
        return (*made, "Intervals do not count that hyperparameters are uncertain.")

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the columns of the catalog added.

        Intervals are of a new observation under its task's likelihood: of counts whole numbers.

        Raises:
            BadInput: An unknown task, a dimension that is absent, bounds upside down.
        """
        noise = ["y_err"] if self.settings.known_noise else []
        query = checked(table, self.inputs, gaps=["exposure", *noise])
        # What is learned is not looked at, whatever it holds.
        unread = {"y", "y_err", "truth"} - set(noise)
        query = query.drop(columns=unread, errors="ignore")
        supports = space.read(self.settings, query, self.metadata, self.people)
        return self._predicted(table, supports)

    @property
    def further(self) -> tuple[ArraySpec, ...]:
        """Columns that `predict` adds beside those of the catalog."""
        return (maps.EXCEEDANCE,) if MAP in self.metadata else ()

    def totals(self, table: pd.DataFrame) -> tuple[pd.DataFrame, str] | None:
        """Predicted parts against observed totals, and a sentence on them; None where no row is
        a part of an observed polygon (see `totals.totals`)."""
        if MAP not in self.metadata:
            return None
        supports = space.read(self.settings, table.assign(y=np.nan), self.metadata, self.people)
        if supports.inside is None:
            return None
        areas = totals.areas_of(table, supports.system)
        made = totals.totals(self.posterior, self.metadata, supports, areas)
        return None if made is None else (made, totals.sentence(made))

    def map(self) -> pd.DataFrame:
        """Every task on the cells of the picture; no rows where there is no picture."""
        sides = [np.asarray(side, float) for side in self.metadata["edges"]]
        if not sides:
            return pd.DataFrame()
        low, high = space.cells(sides)
        bounds = dict[str, np.ndarray]()
        for d, dim in enumerate(self.metadata["dims"]):
            bounds |= {f"{dim}_lo": low[:, d], f"{dim}_hi": high[:, d]}
        for own in beside.known_covariates(self.metadata):
            bounds[own.column] = np.full(len(low), own.mean)
        tables = [pd.DataFrame({"task": task, **bounds}) for task in self.metadata["tasks"]]
        cells = pd.concat(tables, ignore_index=True)
        return self._predicted(cells, space.read(self.settings, cells, self.metadata))

    def _predicted(self, table: pd.DataFrame, supports: Supports) -> pd.DataFrame:
        outside = self.region.outside(supports.lo / self._span, supports.hi / self._span)
        told = predicted_columns(self.posterior, supports)
        above = maps.exceedances(self.posterior, self.metadata, supports, told)
        return with_columns(table, {**told, **above, "outside": outside.astype(np.int64)})

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
