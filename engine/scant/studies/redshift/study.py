"""Redshift: GPz on photometry, with coarse-to-fine starts and a mixture of restarts.

What the study adds to the model of `scant.models.gpz.model` (each a setting, each off under the
preset "as published"): colors and tamed outliers (`preprocessing`), stages that free the basis
functions' covariances step by step, and restarts on other splits of training and validation rows
whose predictions are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.ensemble import describe
from scant.errors import BadInput
from scant.events import Report
from scant.models.gpz.change_of_basis import in_coordinates
from scant.models.gpz.completion import MAX_DENSE_INPUTS
from scant.models.gpz.input_density import fill, single_gaussian
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction
from scant.models.gpz.row_sums import LocalRows, Pattern, RowSums
from scant.predictive import MixturePredictive
from scant.predictive.scored import Scored
from scant.problem import Comparison, Problem
from scant.random import restart_generator
from scant.studies.auto import AUTO, CHOSEN, TRAINING_SHARE, Choice
from scant.studies.densities import MOST
from scant.studies.learned_region import LearnedRegion
from scant.studies.predicted_table import by_levels, checked, interval_columns, with_columns
from scant.studies.protocol import Step, Tensors, required, roles
from scant.studies.redshift import components, undetected
from scant.studies.redshift.bands import by_wavelength
from scant.studies.redshift.capacity import (
    FREE,
    SMALL,
    Room,
    gap_limit,
    gap_reserve,
    grows,
    learned,
    stacks,
    test_rows,
)
from scant.studies.redshift.ensemble import GPZ, GPzEnsemble
from scant.studies.redshift.explore import answer
from scant.studies.redshift.fitted import FittedGPz
from scant.studies.redshift.fold import Fold, Rows, completes
from scant.studies.redshift.gaps import (
    GapPatterns,
    Gaps,
    LearnedRows,
    fit_gaps,
    lacking,
)
from scant.studies.redshift.growth import Growth, finished, parameters_of, shape_of, take
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.problem import problem_of
from scant.studies.redshift.report import write_report
from scant.studies.redshift.scales import scale_of, taming_of
from scant.studies.redshift.settings import SHAPES, RedshiftSettings
from scant.studies.redshift.target import Target
from scant.studies.split import EVERYTHING, UNUSED, VALIDATION, divide, groups, marks
from scant.studies.trained import TrainedStudy
from scant.tables.limits import beside

if TYPE_CHECKING:
    from scant.models.gpz.distributed import Processes

LEAST = 6  # rows to learn from: of ten, what each fold of three or four leaves
KNOWN = 1000  # learned rows that stay with the model, to tell rows that lie outside
SHOWN_LIVE = 600  # test rows in a snapshot: enough to see, cheap to send


class Study(TrainedStudy):
    """GPz on one table (see `scant.studies.protocol.Study` for how it is driven)."""

    settings: RedshiftSettings
    held_scores: Scored  # of the held-out rows, once it is fitted

    def __init__(
        self, settings: RedshiftSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("redshift", table)
        self._configure(settings, device)
        bands = bands_of(table, settings.target)
        self.given, self.partial, self.held = self._split(table)  # as rivals take them
        self.learn = self._drawn(self.given, bands)
        self.partial = self._drawn(self.partial, bands)
        self.features, seen = self._look(bands)
        self.target = Target.fit(self._z(self.learn), seen["log_target"].value == "yes")
        T = torch.eye(len(self.features.names), dtype=torch.float64)
        if completes(self.features, settings) or not self.learn[bands].isna().any(axis=None):
            T = torch.as_tensor(self.features.T)
        self.T = T.to(device)
        self.metadata = {
            "bands": bands,
            "features": self.features.names,
            "target": settings.target,
            "rows": {
                "training": self._counts()[0],
                "validation": self._counts()[1],
                "test": len(self.held),
            },
        }
        looked = {name: list(c) for name, c in seen.items() if getattr(settings, name) == AUTO}
        if looked:
            self.metadata[CHOSEN] = looked
        self.ensemble: GPzEnsemble | None = None

    def _configure(self, settings: RedshiftSettings, device: torch.device) -> None:
        super()._configure(settings, device)
        self.grows = grows(settings)
        self.growth: Growth | None = None
        if self.grows:  # all models in one restart of the loop, whose end they find themselves
            self.models, self.restarts, self.patience = settings.restarts, 1, 0
        else:
            self.structures = stages_to(settings.covariance, settings.start)
            self.stages = len(self.structures)
        self._processes: Processes | None = None

    # --- rows -----------------------------------------------------------------------------------

    def _split(self, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Rows to learn from (validation first, then training), such as lack a band, test rows."""
        s = self.settings
        if s.log_target == "yes" and (table[s.target] <= 0).any():
            row = int(np.flatnonzero(table[s.target].to_numpy() <= 0)[0])
            raise BadInput(
                f"Column {s.target!r} holds {table[s.target].iloc[row]:g} in row {row + 2}, but "
                "the setting 'log_target' needs values above zero; switch it off or drop the row."
            )
        known = np.isfinite(table[s.target].to_numpy(float))
        complete = np.ones(len(table), dtype=bool)
        if s.incomplete != "use":
            complete = complete_rows(table, bands := bands_of(table, s.target))
            wide = s.incomplete == AUTO and len(bands) > components.MIN_COLUMNS
            if wide and 2 * complete.sum() < len(table):  # of many columns most rows lack one
                self.notes.append(
                    f"{int((~complete).sum()):,} of the {len(table):,} rows lack a value of one of "
                    f"the {len(bands)} columns; they are learned from by what they have."
                )
                complete[:] = True
        marked, group = np.where(known, marks(table), UNUSED), groups(table, s.split_by)
        rows = divide(
            len(table),
            s.seed,
            test=test_rows(s, int(known.sum())),
            validation=lambda n: learned(s, n)[1],
            marked=marked,
            group=group,
            learnable=complete,
            everything=s.refit == EVERYTHING,
        )
        dropped = int((known & ~complete).sum() - (~complete[rows.test]).sum())
        if dropped:
            self.notes.append(
                f"{dropped} rows with a missing value were left out of training; "
                "predictions use such rows all the same."
            )
        train, wanted = rows.train, 0 if s.refit == EVERYTHING else s.training_size
        if wanted:
            train = train[: learned(s, len(train) + len(rows.validation))[0]]
        if len(train) + len(rows.validation) < LEAST:
            raise BadInput(
                f"Only {len(train) + len(rows.validation)} rows are left to learn from; at least "
                f"{LEAST} are needed. Bring more rows, or set incomplete=use to learn from rows "
                "with missing values."
            )
        if len(train) < wanted:
            self.notes.append(
                f"The table has {len(train)} rows to train on, "
                f"{wanted - len(train)} fewer than training_size asks for."
            )
        if len(rows.test) < 2:
            raise BadInput(
                f"{len(rows.test)} rows are held out, and at least 2 are needed for the scores; "
                "raise 'test_share', or mark more rows 'test' in the column 'split'."
            )
        self.n_validation = len(rows.validation)
        self.arranged = group is not None or VALIDATION in marked
        self.roles = roles(len(table), train=train, validation=rows.validation, test=rows.test)
        learn = table.iloc[np.concatenate([rows.validation, train])]
        apart = known & ~complete
        apart[rows.test] = False
        parts = (learn, table[apart], table.iloc[rows.test])
        given, partial, held = (part.reset_index(drop=True) for part in parts)
        return given, partial, held

    def _drawn(self, rows: pd.DataFrame, bands: list[str]) -> pd.DataFrame:
        """Rows with one draw for each band that was not detected."""
        if not len(rows) or not any(f"{band}_lim" in rows for band in bands):
            return rows
        features = Features.fit(self.given, bands, self.settings)
        drawn = undetected.learned(features, rows, self.settings.seed)
        count = int((rows[bands].isna() & drawn[bands].notna()).any(axis=1).sum())
        if count and rows is self.given:
            self.notes.append(
                f"{count:,} of the {len(rows):,} rows learned from have a band without a "
                "detection; its magnitudes beyond the limit are integrated over."
            )
        return drawn

    def _counts(self) -> tuple[int, int]:
        return len(self.learn) - self.n_validation, self.n_validation

    def _z(self, table: pd.DataFrame) -> Float[Tensor, " n"]:
        return torch.tensor(table[self.settings.target].to_numpy(float))

    def _look(self, bands: list[str]) -> tuple[Features, dict[str, Choice]]:
        """The inputs, and what the table says of settings that concern its columns."""
        s, z = self.settings, self._z(self.learn).numpy()
        features = Features.fit(self.learn, bands, s)
        seen = {"features": features.chosen, "log_target": Choice("no", "as the weights need it")}
        if s.log_target != AUTO:
            seen["log_target"] = Choice(s.log_target, "")
        elif s.weights != "normalised":
            seen["log_target"] = scale_of(features.inputs(self.learn).numpy(), z)
        if s.robust == AUTO:
            plain = Features.fit(self.learn, bands, s, robust=False)
            tamed, own = (f.inputs(self.learn).numpy() for f in (features, plain))
            seen["robust"] = taming_of(tamed, own, z, seen["log_target"].value == "yes")
            features = features if seen["robust"].value == "yes" else plain
        if s.features == AUTO and len(features.names) > components.MIN_COLUMNS:
            x, others = features.inputs(self.learn), features.inputs(self.partial)
            T = components.chosen(x, others, z, seen["log_target"].value == "yes")
            features = features if T is None else replace(features, T=T)
            seen["features"] = features.chosen
        return features, seen

    def _rows(self, restart: int) -> tuple[Tensor, Tensor]:
        """Training and validation rows of a restart: an average sees all rows in turn."""
        order = torch.arange(len(self.learn))
        if self.settings.combine == "average" and restart:
            generator = torch.Generator().manual_seed(7919 * self.settings.seed + restart)
            order = torch.randperm(len(order), generator=generator)
        return order[self.n_validation :], order[: self.n_validation]

    # --- training -------------------------------------------------------------------------------

    def _division(self, k: int) -> tuple[Tensor, Tensor]:
        """Training and validation rows of the k-th model of those that grow side by side.

        Of few rows each is held out once; where the table says which rows belong together or
        validate, they are the same for all models.
        """
        order, held = torch.arange(len(self.learn)), self.n_validation
        if self.settings.combine == "average" and not self.arranged:
            generator = restart_generator(self.settings.seed)
            order = torch.randperm(len(order), generator=generator)
            if len(order) <= SMALL:
                held = -(-len(order) // max(self.models, 2))
            order = order.roll(-k * held)
        return order[held:], order[:held]

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        rows = Rows.of(self.learn, self.features, self.T, self.target, s, self.device)
        shown = self.held.iloc[:SHOWN_LIVE]
        live = self.features.inputs(shown)
        if bool(live.isnan().any()):
            live = fill(live, single_gaussian(self.features.inputs(self.learn)))
        self.live_x = live.to(self.device)
        self.live = self.live_x @ self.T.T
        self.live_z = self._z(shown).numpy()
        if self.grows:
            folds = [Fold(rows, *self._division(k), self.target) for k in range(self.models)]
            self.growth = Growth(
                folds,
                self.room,
                self._model,
                self.settings.seed,
                self.settings.patience,
                self._place,
            )
            return
        self.fold = Fold(rows, *self._rows(restart), self.target)
        model = self._model(self.settings.n_basis, self.structures[stage])
        generator = restart_generator(self.settings.seed, restart)
        model.init_from_data(self.fold.train.X, self.fold.train.y, generator)
        if best is not None:
            take(model, best)
        self.fold.begin(model, self._place)

    @property
    def room(self) -> Room:
        """What limits the growth of models."""
        seconds = self.search_share * self.settings.time_budget
        rows = len(self._division(0)[0])
        return Room.of(self.settings, rows, len(self.T), self.models, seconds)

    def _place(self, patterns: list[Pattern], n_basis: int) -> RowSums:
        """The training rows, in this process or shared with others."""
        if self.settings.workers == 1:
            return LocalRows(patterns, n_basis)
        from scant.models.gpz.distributed import DistributedRows, Processes

        self._processes = self._processes or Processes(self.settings.workers)
        return DistributedRows(patterns, n_basis, self._processes)

    def _model(self, n_basis: int, structure: str) -> GPz:
        s = self.settings
        made = GPz(len(self.T), n_basis, structure, s.heteroscedastic, s.joint_mean)
        return made.to(self.device)

    def step(self) -> Step:
        if self.growth is not None:
            step = self.growth.step()
            self._note(self.growth.notes)
            if self.growth.ended:
                self.max_steps = self.growth.steps
                self.reason = f"Growth has ended: {self.growth.ended}."
            return step
        fold = self.fold
        elbo = fold.trainer.step() / float(fold.train.omega.sum())
        score, said = fold.score()
        self._note(said)
        weighted = (fold.unseen.omega * score).sum() / fold.unseen.omega.sum()
        return Step(elbo, float(weighted))

    def parameters(self) -> Tensors:
        return self.growth.parameters() if self.growth else parameters_of(self.fold.model)

    def state(self) -> Tensors:
        return self.growth.state() if self.growth else self.fold.trainer.state_dict()

    def load(self, parameters: Tensors, state: Tensors) -> None:
        if self.growth:
            self.growth.load(parameters, state)
            return
        take(self.fold.model, parameters)
        self.fold.trainer.load_state_dict(state)

    def snapshot(self) -> dict[str, np.ndarray]:
        if self.ensemble is not None:
            model = self.ensemble.models[0]
            live = self.live_x
            if not self.features.reduced:
                live = self.live @ torch.linalg.inv(self.T).T
            standardized = self.ensemble.predict(live)
            to_x = torch.eye(self.T.shape[1], dtype=live.dtype, device=self.device)
        else:
            model = (self.growth.folds[0] if self.growth else self.fold).model
            live, to_x = self.live, self.T
            standardized = model.predict(live).predictive()
        predictive = self.target.restore(standardized)
        return {
            "z_true": self.live_z,
            "z_mean": predictive.mean,
            "std_model": np.sqrt(predictive.model_variance),
            "std_noise": np.sqrt(predictive.noise_variance),
            "relevance": np.sort(model.relevance().cpu().numpy())[::-1].copy(),
            "feature_relevance": sensitivity(model, live, to_x),
        }

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        folds: list[Fold]
        if self.grows:
            models, folds, unseen = self._finish(restarts[0][1])
        else:
            chosen: Sequence[int] = range(len(restarts))
            if self.settings.combine == "best":
                chosen = [max(chosen, key=lambda r: restarts[r][0])]
            models, folds, unseen = [], [], []
            for r in chosen:
                self.start_restart(r, self.stages - 1, restarts[r][1])
                folds.append(self.fold)
                unseen.append(self.fold.predict()[0])
                self.fold.model.take_posterior(self.fold.trainer.log_evidence.posterior())
                models.append(self.fold.model)
        x = self.features.inputs(self.learn).to(self.device)
        if stacks(self.settings) and len(folds[0].unseen.y):
            average = self.deadline.leaving(self.gap_reserve)
            self.ensemble = GPzEnsemble.fit(folds, models, unseen, self.T, average)
        else:
            self.ensemble = GPzEnsemble([in_coordinates(model, self.T) for model in models])
        density_rows = x
        if x.shape[1] > MAX_DENSE_INPUTS and len(
            self.partial
        ):  # of many columns few rows lack none
            others = self.features.inputs(self.partial).to(self.device)
            density_rows = torch.cat([x, others])
        self.ensemble.fit_density(density_rows, self.settings.missing)
        self.known = x[:: -(-len(x) // KNOWN)].contiguous()
        self.gaps = self._fill_gaps()
        self.held_scores = self.posterior.score(self.held)
        report = write_report(self.posterior, self.problem, self.held_scores, self.report_deadline)
        tried = np.array(self._tried(restarts), dtype=float)
        return replace(report, arrays={**report.arrays, "tried": tried})

    def _finish(self, best: Tensors) -> tuple[list[GPz], list[Fold], list[GPzPrediction]]:
        """The models that growth came to; what they are is said in the metadata."""
        if self.growth is None:
            self.start_restart(0, 0, None)
        assert self.growth is not None
        models, scores, unseen = finished(self.growth, best)
        folds = self.growth.folds
        if self.settings.combine == "best":
            place = int(np.argmax(scores))
            models, folds, unseen = [models[place]], [folds[place]], [unseen[place]]
        first = self.growth.room.first
        found = {
            "n_basis": (len(models[0].centres), first.n_basis, "the first size tried"),
            "covariance": (shape_of(models[0]), first.shape, "the first shape tried"),
        }
        for name, (value, began, same) in found.items():
            if getattr(self.settings, name) == AUTO:
                why = same if value == began else f"unseen rows gained until then, from {first} on"
                self.metadata.setdefault(CHOSEN, {})[name] = [value, why]
        return models, folds, unseen

    @property
    def _gap_rows(self) -> tuple[pd.DataFrame, Bool[np.ndarray, " n"]]:
        """Rows that models of gaps learn from, and which of them are only scored."""
        table = pd.concat([self.learn, self.partial], ignore_index=True)
        unseen = np.zeros(len(table), dtype=bool)
        unseen[(self._division if self.grows else self._rows)(0)[1].numpy()] = True
        return table, unseen

    @cached_property
    def _gap_patterns(self) -> GapPatterns:
        """Gaps that get models, where the settings ask for them."""
        if self.settings.missing != AUTO or not stacks(self.settings):
            return GapPatterns()
        table, unseen = self._gap_rows
        x, held = self.features.inputs(table), lacking(self.features, self.held)
        return GapPatterns.of(self.features, x, unseen, held)

    @property
    def gap_reserve(self) -> float:
        """Seconds that search and average leave to models of the gaps that the table has."""
        patterns = self._gap_patterns
        return gap_reserve(self.settings, len(patterns.kept), patterns.share, patterns.rows)

    @property
    def search_share(self) -> float:  # type: ignore[override]
        """Part of the time budget for the search; a fit without an end leaves nothing to gaps."""
        if not math.isfinite(self.deadline.seconds):
            return TRAINING_SHARE
        return TRAINING_SHARE - self.gap_reserve / self.settings.time_budget

    def _fill_gaps(self) -> Gaps:
        """Models of rows that lack something, while time lasts."""
        if self.ensemble is None or self.ensemble.average is None:
            return Gaps(self.features, {})
        ends = math.isfinite(self.deadline.seconds)
        return fit_gaps(
            self.features, self.target, self.settings, self._gap_patterns, *self._gap_rows,
            self.device, gap_limit(self.settings) if ends else self.settings.gap_seconds,
            self.deadline,
        )  # fmt: skip

    def _tried(self, restarts: list[tuple[float, Tensors]]) -> list[list[float]]:
        """The stages that growth has tried; without it, the restarts."""
        if self.growth is not None:
            return self.growth.history()
        s = self.settings
        return [[s.n_basis, SHAPES.index(s.covariance), FREE, score, 0.0] for score, _ in restarts]

    @cached_property
    def problem(self) -> Problem:
        """What all methods learn and are asked."""
        return problem_of(self.features, self.given, self.held, self.settings.target)

    def comparison(self, report: Report) -> Comparison | None:
        return Comparison(self.problem, self.held_scores.predictive)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        posterior = self.posterior
        shown = posterior.shown.select_dtypes("number")
        tensors = posterior.ensemble.tensors()
        tensors["shown"] = torch.tensor(shown.to_numpy(float))
        tensors["known"] = self.known
        tensors |= self.gaps.tensors()
        learned = self.learned_rows
        if learned is not None:
            tensors["learned"] = torch.tensor(learned.table.to_numpy(float))
            tensors["unseen"] = torch.tensor(learned.unseen)
        meta = {
            "features": self.features.fingerprint(),
            "target": self.target._asdict(),
            "members": len(posterior.ensemble.models),
            "columns": list(shown.columns),
            "words": self.metadata,
            "gaps": self.gaps.meta(),
            "learned": [] if learned is None else list(learned.table.columns),
        }
        stack = posterior.ensemble.meta()
        return tensors, meta | ({"stack": stack} if stack else {})

    @classmethod
    def restore(
        cls,
        settings: RedshiftSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        study._configure(settings, device)
        study.metadata = meta["words"]
        study.features = Features.of(meta["features"])
        study.target = Target(**meta["target"])
        study.held = pd.DataFrame(tensors["shown"].cpu().numpy(), columns=meta["columns"])
        study.ensemble = GPzEnsemble.from_tensors(
            tensors, meta["members"], settings, device, meta.get("stack")
        )
        study.gaps = Gaps.read(study.features, tensors, meta.get("gaps", ()), settings, device)
        # Models of before it was kept have rows that were held out of the same table.
        study.known = tensors["known"] if "known" in tensors else study.features.inputs(study.held)
        study.learned_rows = None
        if columns := meta.get("learned"):
            rows = pd.DataFrame(tensors["learned"].cpu().numpy(), columns=columns)
            study.learned_rows = LearnedRows(rows, tensors["unseen"].cpu().numpy())
        return study

    @cached_property
    def learned_rows(self) -> LearnedRows | None:
        """Rows from which models of further gaps are learned; None where none are."""
        alone = self.ensemble is None or self.ensemble.average is None
        if alone or self.settings.missing != AUTO or not self.settings.gap_seconds:
            return None
        return LearnedRows(*self._gap_rows).some(self.settings.seed)

    @cached_property
    def region(self) -> LearnedRegion:
        return LearnedRegion(self.known.cpu().numpy())

    @property
    def posterior(self) -> FittedGPz:
        """What was fitted, as report and answers take it."""
        assert self.ensemble is not None, "finalize comes first"
        return FittedGPz(
            self.settings,
            self.features,
            self.target,
            self.ensemble,
            self.gaps,
            self.held,
            self.region,
            self.learned_rows,
            self.device,
        )

    @cached_property
    def _explored(self) -> FittedGPz:
        """For queries: models that they learn do not count among those that `predict` learns."""
        return replace(self.posterior, gaps=self.gaps.copy())

    @property
    def inputs(self) -> list[str]:
        return [*self.features.bands, *(f"{b}_err" for b in self.features.errors)]

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the columns of the catalog added.

        Intervals are of the mixture of the averaged models and, where values are missing, of what
        the missing ones may be: no Gaussian of the same two moments.

        Raises:
            BadInput: None of the features is there.
        """
        query = checked(table, gaps=[*self.inputs, *(f"{b}_lim" for b in self.features.bands)])
        if not any(b in query for b in self.features.bands):
            raise BadInput(
                f"The table has none of the features {', '.join(self.features.bands)}; "
                "rename its columns to those of the training table."
            )
        self.posterior.meet(query)
        predictive = self.posterior.predict(query)
        added = {
            "mean": predictive.mean,
            "std": predictive.std,
            "std_model": np.sqrt(predictive.model_variance),
            "std_noise": np.sqrt(predictive.noise_variance),
            "std_input": np.sqrt(predictive.input_variance),
        }
        intervals = interval_columns(predictive.quantile)
        outside = self.posterior.outside(query)
        return with_columns(table, {**added, **intervals, "outside": outside})

    def densities(self, table: pd.DataFrame, most: int = MOST) -> MixturePredictive:
        """p(z) of each row as at most so many Gaussians, with mean and variance of its mixture.

        Raises:
            BadInput: A cell is no number that can be computed with.
        """
        features = self.features
        gaps = [*features.bands, *(f"{b}_err" for b in features.errors)]
        query = checked(table, gaps=gaps)
        self.posterior.meet(query)
        return self.posterior.predict(query).reduced(most)

    def limits(self) -> tuple[str, ...]:
        """The methods that predict, then limits of these (`scant.events.Report.limits`)."""
        average = self.posterior.ensemble.average
        parts = ["Basis functions and relevance of features are of GPz alone."] if average else []
        gaps = self.gaps.limits(self.settings, self.learned_rows)
        return (describe(average, GPZ), *parts, *gaps)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answers "without" (bands switched off) and "density" (one galaxy's p(z))."""
        return answer(self._explored, question, query)


def bands_of(table: pd.DataFrame, target: str) -> list[str]:
    """The feature columns: numeric, neither the target nor the error or limit of another column.

    Raises:
        BadInput: There is no target column, or nothing else.
    """
    if target not in table:
        raise BadInput(
            f"There is no column {target!r} to predict; name it in the setting 'target'. "
            f"The columns are {', '.join(map(str, table.columns[:12]))}."
        )
    numeric = [str(c) for c in table.select_dtypes("number").columns if c != target]
    bands = [c for c in numeric if not beside(c, numeric)]
    if not bands:
        raise BadInput(f"There is no numeric column besides {target!r}; features are needed.")
    return by_wavelength(bands)


def complete_rows(table: pd.DataFrame, bands: Sequence[str]) -> Bool[np.ndarray, " n"]:
    """Rows whose bands were all observed, whether with a detection or without."""
    known = [
        table[band].notna() | (table[f"{band}_lim"].notna() if f"{band}_lim" in table else False)
        for band in bands
    ]
    return np.asarray(np.all(known, axis=0))


def stages_to(covariance: str, start: str) -> tuple[str, ...]:
    """Structures from coarse to fine that end in the wanted one."""
    if start == "direct":
        return (covariance,)
    path = {"GL": "GL", "VL": "GL VL", "GD": "GD", "VD": "GD VD", "GC": "GD GC", "VC": "GD GC VC"}
    return tuple(path[covariance].split())


def sensitivity(model: GPz, X: Float[Tensor, "n q"], to_x: Float[Tensor, "q d"]) -> np.ndarray:
    """Each measurement's share of the mean squared slope of the prediction."""
    X = X.detach().clone().requires_grad_()
    with torch.enable_grad():
        total = (model.design(X)[1] @ model.weight_mean).sum()
        (slope,) = torch.autograd.grad(total, X)
    share = (slope @ to_x).square().mean(dim=0)
    return (share / share.sum().clamp(min=1e-300)).cpu().numpy()
