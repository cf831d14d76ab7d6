"""Redshift: GPz on photometry, with coarse-to-fine starts and a mixture of restarts.

What the study adds to the model of `scant.models.gpz.model` (each a setting, each off under the
preset "as published"): colors and tamed outliers (`preprocessing`), stages that free the basis
functions' covariances step by step, and restarts on other splits of training and validation rows
whose predictions are averaged.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from scant.errors import BadInput
from scant.events import Report
from scant.models.gpz.change_of_basis import full_gamma, in_coordinates
from scant.models.gpz.input_density import fill, single_gaussian
from scant.models.gpz.model import GPz
from scant.models.gpz.row_sums import LocalRows, Pattern, RowSums
from scant.models.gpz.training import GPzTrainer
from scant.models.gpz.weights import balanced_weights, normal_weights, normalized_weights
from scant.random import restart_generator
from scant.rivals.comparison import Comparison
from scant.studies import intervals
from scant.studies.learned_region import LearnedRegion
from scant.studies.predicted_table import checked, with_columns
from scant.studies.protocol import Step, Tensors, required, roles
from scant.studies.redshift.ensemble import Members, Target
from scant.studies.redshift.entry import RedshiftSettings, learned, test_rows
from scant.studies.redshift.explore import answer
from scant.studies.redshift.fitted import FittedGPz
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.report import write_report
from scant.studies.split import EVERYTHING, UNUSED, divide, groups, marks
from scant.studies.trained import TrainedStudy
from torch import Tensor

if TYPE_CHECKING:
    from scant.models.gpz.distributed import Processes

KNOWN = 1000  # learned rows that stay with the model, to tell rows that lie outside
SHOWN_LIVE = 600  # test rows in a snapshot: enough to see, cheap to send
WEIGHTS = {
    "normal": normal_weights,
    "normalised": normalized_weights,
    "balanced": balanced_weights,
}


class Study(TrainedStudy):
    """GPz on one table (see `scant.studies.protocol.Study` for how it is driven)."""

    settings: RedshiftSettings
    model: GPz
    trainer: GPzTrainer

    def __init__(
        self, settings: RedshiftSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("redshift", table)
        self._configure(settings, device)
        bands = bands_of(table, settings.target)
        self.learn, self.held = self._split(table)
        self.features = Features.fit(self.learn, bands, settings)
        self.target = Target.fit(self._z(self.learn), settings.log_target)
        T = torch.eye(len(self.features.names), dtype=torch.float64)
        if not self.learn[bands].isna().any(axis=None):
            T = torch.as_tensor(self.features.T)
        self.T = T.to(device)
        self.metadata: dict[str, Any] = {
            "bands": bands,
            "features": self.features.names,
            "target": settings.target,
            "rows": {
                "training": self._counts()[0],
                "validation": self._counts()[1],
                "test": len(self.held),
            },
        }
        self.members: Members | None = None

    def _configure(self, settings: RedshiftSettings, device: torch.device) -> None:
        super()._configure(settings, device)
        self.structures = stages_to(settings.covariance, settings.start)
        self.stages = len(self.structures)
        self._processes: Processes | None = None

    # --- rows -----------------------------------------------------------------------------------

    def _split(self, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to learn from (validation first, then training), and test rows."""
        s = self.settings
        if s.log_target and (table[s.target] <= 0).any():
            row = int(np.flatnonzero(table[s.target].to_numpy() <= 0)[0])
            raise BadInput(
                f"Column {s.target!r} holds {table[s.target].iloc[row]:g} in row {row + 2}, but "
                "the setting 'log_target' needs values above zero; switch it off or drop the row."
            )
        known = np.isfinite(table[s.target].to_numpy(float))
        complete = np.ones(len(table), dtype=bool)
        if s.incomplete == "leave out":
            complete = table[bands_of(table, s.target)].notna().all(axis=1).to_numpy()
        rows = divide(
            len(table),
            s.seed,
            test=test_rows(s, int(known.sum())),
            validation=lambda n: learned(s, n)[1],
            marked=np.where(known, marks(table), UNUSED),
            group=groups(table, s.split_by),
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
        if len(train) + len(rows.validation) < 30:
            raise BadInput(
                f"Only {len(train) + len(rows.validation)} rows are left to learn from; at least "
                "30 are needed. Bring more rows, or set incomplete=use to learn from rows with "
                "missing values."
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
        self.roles = roles(len(table), train=train, validation=rows.validation, test=rows.test)
        learn = table.iloc[np.concatenate([rows.validation, train])]
        return learn.reset_index(drop=True), table.iloc[rows.test].reset_index(drop=True)

    def _counts(self) -> tuple[int, int]:
        return len(self.learn) - self.n_validation, self.n_validation

    def _z(self, table: pd.DataFrame) -> Float[Tensor, " n"]:
        return torch.tensor(table[self.settings.target].to_numpy(float))

    def _rows(self, restart: int) -> tuple[Tensor, Tensor]:
        """Training and validation rows of a restart: an average sees all rows in turn."""
        order = torch.arange(len(self.learn))
        if self.settings.combine == "average" and restart:
            generator = torch.Generator().manual_seed(7919 * self.settings.seed + restart)
            order = torch.randperm(len(order), generator=generator)
        return order[self.n_validation :], order[: self.n_validation]

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        train, validation = self._rows(restart)
        x = self.features.inputs(self.learn).to(self.device)
        noise = self.features.noise(self.learn)
        z = self._z(self.learn)
        y = self.target.standardize(z).to(self.device)
        omega = WEIGHTS[self.settings.weights](z).to(self.device)
        X = x @ self.T.T
        self.X, self.y, self.omega = X[train], y[train], omega[train]
        self.noise = None if noise is None else self._spread(noise[train])
        self.checked = (
            self._filled(X[validation]),
            z[validation].to(self.device),
            omega[validation],
            None if noise is None else self._spread(noise[validation]),
        )
        shown = self.held.iloc[:SHOWN_LIVE]
        live = self.features.inputs(shown)
        if bool(live.isnan().any()):
            live = fill(live, single_gaussian(self.features.inputs(self.learn)))
        self.live = live.to(self.device) @ self.T.T
        self.live_z = self._z(shown).numpy()
        self.model = self._model(self.structures[stage])
        generator = restart_generator(self.settings.seed, restart)
        self.model.init_from_data(self.X, self.y, generator)
        if best is not None:
            self._take(best)
        self.trainer = GPzTrainer(self.model, self.X, self.y, self.omega, self.noise, self._place)
        self.n_rows = float(self.omega.sum())

    def _place(self, patterns: list[Pattern], n_basis: int) -> RowSums:
        """The training rows, in this process or shared with others."""
        if self.settings.workers == 1:
            return LocalRows(patterns, n_basis)
        from scant.models.gpz.distributed import DistributedRows, Processes

        self._processes = self._processes or Processes(self.settings.workers)
        return DistributedRows(patterns, n_basis, self._processes)

    def _model(self, structure: Any) -> GPz:
        s = self.settings
        made = GPz(len(self.T), s.n_basis, structure, s.heteroscedastic, s.joint_mean)
        return made.to(self.device)

    def _spread(self, noise: Float[Tensor, "n d"]) -> Float[Tensor, "n d d"]:
        """Variances of x as covariances of z."""
        return (self.T * noise.to(self.device).unsqueeze(1)) @ self.T.T

    def step(self) -> Step:
        elbo = self.trainer.step() / self.n_rows
        X, z, omega, noise = self.checked
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", RuntimeWarning)
            self.model.take_posterior(self.trainer.log_evidence.posterior())
        self._note([str(warning.message) for warning in said])
        prediction = self.model.predict(X, noise)
        score = self.target.log_density(z, prediction)
        weighted = (omega * score).sum() / omega.sum()
        return Step(elbo, float(weighted))

    def _filled(self, X: Tensor) -> Tensor:
        """Missing inputs of validation rows filled by expectation: a score each step, not a fit."""
        return fill(X, single_gaussian(self.X)) if bool(X.isnan().any()) else X

    def parameters(self) -> Tensors:
        """Free parameters, Gamma as one full matrix a basis function whatever the stage."""
        named = dict(self.model.named_parameters())
        return {**named, "gamma": full_gamma(self.model)}

    @torch.no_grad()
    def _take(self, parameters: Tensors) -> None:
        for name, value in self.model.named_parameters():
            result = parameters[name].to(self.device)
            value.copy_(narrow(result, self.model.covariance) if name == "gamma" else result)

    def snapshot(self) -> dict[str, np.ndarray]:
        if self.members is not None:
            model = self.members.models[0]
            live = self.live @ torch.linalg.inv(self.T).T
            prediction = self.target.restore(self.members.predict(live, None))
            to_x = torch.eye(len(self.T), dtype=live.dtype, device=self.device)
        else:
            model, live, to_x = self.model, self.live, self.T
            prediction = self.target.restore(model.predict(live))
        return {
            "z_true": self.live_z,
            "z_mean": prediction.mean.cpu().numpy(),
            "std_model": prediction.model_variance.sqrt().cpu().numpy(),
            "std_noise": prediction.noise_variance.sqrt().cpu().numpy(),
            "relevance": np.sort(model.relevance().cpu().numpy())[::-1].copy(),
            "feature_relevance": sensitivity(model, live, to_x),
        }

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        chosen: Sequence[int] = range(len(restarts))
        if self.settings.combine == "best":
            chosen = [max(chosen, key=lambda r: restarts[r][0])]
        models = []
        for r in chosen:
            self.start_restart(r, self.stages - 1, restarts[r][1])
            self.model.take_posterior(self.trainer.log_evidence.posterior())
            models.append(in_coordinates(self.model, self.T))
        x = self.features.inputs(self.learn).to(self.device)
        self.members = Members.of(models, x)
        self.known = x[:: -(-len(x) // KNOWN)].contiguous()
        return write_report(self.posterior, self.learn)

    def comparison(self, report: Report) -> Comparison | None:
        """The problem as a matrix (see `comparison.py` beside this file)."""
        from scant.studies.redshift.comparison import comparison

        return comparison(self.posterior, self.learn)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        posterior = self.posterior
        shown = posterior.shown.select_dtypes("number")
        tensors = posterior.members.tensors()
        tensors["shown"] = torch.tensor(shown.to_numpy(float))
        tensors["known"] = self.known
        meta = {
            "features": self.features.fingerprint(),
            "target": self.target._asdict(),
            "members": len(posterior.members.models),
            "columns": list(shown.columns),
            "words": self.metadata,
        }
        return tensors, meta

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
        study.members = Members.restore(tensors, meta["members"], settings, device)
        # Models of before it was kept have rows that were held out of the same table.
        study.known = tensors["known"] if "known" in tensors else study.features.inputs(study.held)
        return study

    @cached_property
    def region(self) -> LearnedRegion:
        return LearnedRegion(self.known.cpu().numpy())

    @property
    def posterior(self) -> FittedGPz:
        """What was fitted, as report and answers take it."""
        assert self.members is not None, "finalize comes first"
        return FittedGPz(
            self.settings,
            self.features,
            self.target,
            self.members,
            self.held,
            self.region,
            self.device,
        )

    @property
    def inputs(self) -> list[str]:
        return [*self.features.bands, *(f"{b}_err" for b in self.features.errors)]

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the columns of the catalog added.

        Intervals are of the mixture of the averaged models and, where values are missing, of what
        the missing ones may be: no Gaussian of the same two moments.

        Raises:
            BadInput: None of the features is there.
        """
        query = checked(table, gaps=self.inputs)
        if not any(b in query for b in self.features.bands):
            raise BadInput(
                f"The table has none of the features {', '.join(self.features.bands)}; "
                "rename its columns to those of the training table."
            )
        posterior = self.posterior
        prediction = posterior.ask(query)
        told = {
            "mean": prediction.mean,
            "std": prediction.variance.sqrt(),
            "std_model": prediction.model_variance.sqrt(),
            "std_noise": prediction.noise_variance.sqrt(),
            "std_input": prediction.input_variance.sqrt(),
        }
        return with_columns(
            table,
            {
                **{name: values.numpy() for name, values in told.items()},
                **intervals.columns(posterior.ends(query)),
                "outside": posterior.outside(query),
            },
        )

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answers "without" (bands switched off) and "density" (one galaxy's p(z))."""
        return answer(self.posterior, question, query)


def bands_of(table: pd.DataFrame, target: str) -> list[str]:
    """The feature columns: numeric, neither the target nor the error of another column.

    Raises:
        BadInput: There is no target column, or nothing else.
    """
    if target not in table:
        raise BadInput(
            f"There is no column {target!r} to predict; name it in the setting 'target'. "
            f"The columns are {', '.join(map(str, table.columns[:12]))}."
        )
    numeric = [str(c) for c in table.select_dtypes("number").columns if c != target]
    bands = [c for c in numeric if not (c.endswith("_err") and c[:-4] in numeric)]
    if not bands:
        raise BadInput(f"There is no numeric column besides {target!r}; features are needed.")
    return bands


def stages_to(covariance: str, start: str) -> tuple[str, ...]:
    """Structures from coarse to fine that end in the wanted one."""
    if start == "direct":
        return (covariance,)
    path = {"GL": "GL", "VL": "GL VL", "GD": "GD", "VD": "GD VD", "GC": "GD GC", "VC": "GD GC VC"}
    return tuple(path[covariance].split())


def narrow(gamma: Float[Tensor, "m d d"], covariance: str) -> Tensor:
    """The parameters of a structure, from full matrices that have that structure or a coarser."""
    if covariance[1] == "L":
        gamma = gamma[:, 0, 0]
    elif covariance[1] == "D":
        gamma = gamma.diagonal(dim1=-2, dim2=-1)
    return gamma[0] if covariance[0] == "G" else gamma


def sensitivity(model: GPz, X: Float[Tensor, "n d"], to_x: Float[Tensor, "d d"]) -> np.ndarray:
    """Each measurement's share of the mean squared slope of the prediction."""
    X = X.detach().clone().requires_grad_()
    with torch.enable_grad():
        total = (model.design(X)[1] @ model.weight_mean).sum()
        (slope,) = torch.autograd.grad(total, X)
    share = (slope @ to_x).square().mean(dim=0)
    return (share / share.sum().clamp(min=1e-300)).cpu().numpy()
