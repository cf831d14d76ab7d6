"""Models of their own for rows that lack some measurements.

The expectation over what is missing (Almosallam 2017, 5.22-5.40) is as good as the density of the
inputs, and ten correlated magnitudes and errors are hard to tell by a mixture. Where rows enough
have what is left, p(z | what is left) can be learned from them directly, without a density. That is
done for the gaps that a table has, while time lasts. Rows that were learned from stay with the
model, so that models of further gaps can be learned when a table to predict has them; any other gap
is integrated over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.deadline import Deadline
from scant.models.gpz.model import GPz
from scant.models.gpz.row_sums import LocalRows
from scant.studies.protocol import Tensors, part
from scant.studies.redshift import components, undetected
from scant.studies.redshift.capacity import (
    GAP_ROWS,
    GAPS_LEFT,
    MOST_GAPS,
    Room,
    gap_time,
    gaps_when_asked,
)
from scant.studies.redshift.ensemble import GPzEnsemble
from scant.studies.redshift.fold import Fold, Rows
from scant.studies.redshift.growth import Growth, finished
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.redshift.target import Target

LEAST_PART = 10  # rows that train a model, and rows that score it
FEW = 100  # basis functions, where there are few rows
MOST_CELLS = 500_000  # of rows that stay with a model: 4 MB, as the model itself has some
SHOWN = 6  # gaps with a model that limits list
DENSITIES = {  # by the setting `missing`
    "integrate": "a Gaussian mixture fitted to all training rows by EM; the publication uses the "
    "centers and covariances of the basis functions",
    "one Gaussian": "one Gaussian fitted to all training rows; the publication uses the centers "
    "and covariances of the basis functions",
    "basis functions": "the density of centers and covariances of the basis functions, as "
    "published",
}
PATIENCE = 8  # steps without a better score that end a stage

Kept = tuple[bool, ...]  # of each coordinate, whether it was measured


@dataclass(frozen=True)
class Gap:
    """A model of what is left."""

    features: Features
    ensemble: GPzEnsemble


class Gaps:
    """Models by what is left.

    Args:
        features: Of whole rows.
        models: By what is left of their coordinates.
    """

    def __init__(self, features: Features, models: dict[Kept, Gap]) -> None:
        self.features, self.models = features, models

    def parts(self, x: Float[Tensor, "n d"]) -> Iterator[tuple[Gap | None, Int[np.ndarray, " r"]]]:
        """Rows by the model that answers for them; None: that of whole rows."""
        there = (~x.isnan()).cpu().numpy()
        rest = np.ones(len(x), dtype=bool)
        for kept, gap in self.models.items():
            rows = (there == kept).all(1)
            if rows.any():
                rest &= ~rows
                yield gap, np.flatnonzero(rows)
        if rest.any():
            yield None, np.flatnonzero(rest)

    def copy(self) -> Gaps:
        """The same models, to which others can be added apart from these."""
        return Gaps(self.features, dict(self.models))

    def learn(
        self,
        query: Float[Tensor, "n d"],
        target: Target,
        settings: RedshiftSettings,
        learned: LearnedRows,
        device: torch.device,
    ) -> None:
        """Add models of what rows to predict lack, the most frequent gaps first.

        Their number is bounded, and each takes the same effort: predictions depend neither on the
        clock nor, up to this number, on the other rows of the table.

        Args:
            query: Rows to predict (`lacking`).
            target: As whole rows have it.
            settings: Of the run.
            learned: Rows of the fit.
            device: Where the models are.
        """
        features = self.features
        count, each = gaps_when_asked(settings, len(learned.table))
        query, room = query[query.isnan().any(1)], count - len(self.models)
        if not len(query) or room <= 0:
            return
        patterns = GapPatterns.of(features, features.inputs(learned.table), learned.unseen, query)
        present = set(map(tuple, np.unique((~query.isnan()).numpy(), axis=0).tolist()))
        new = [kept for kept in patterns.kept if kept in present and kept not in self.models]
        for kept in new[:room]:
            self.models[kept] = _of_gap(kept, features, target, settings, learned, each, device)

    def limits(self, settings: RedshiftSettings, learned: LearnedRows | None) -> list[str]:
        """Sentences on what predicts rows with missing values.

        Args:
            settings: Of the run.
            learned: Rows from which models of further gaps are learned; None: none are.
        """
        made, others = [], ""
        if self.models:
            every = ["without " + ", ".join(self._lacking(kept)) for kept in self.models]
            more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
            made.append(
                f"Rows {'; '.join(every[:SHOWN])}{more} are predicted by models of the columns "
                "that are left."
            )
            others = "other "
        most = gaps_when_asked(settings, len(learned.table))[0] if learned else 0
        if most > len(self.models):
            made.append(
                f"When a table to predict has {others}columns missing, models of what is left are "
                "learned when it comes, of the most frequent ones first, as many as fit into a "
                "time budget."
            )
            others = "other "
        density = DENSITIES.get(settings.missing, DENSITIES["integrate"])
        return [*made, f"GPz integrates over {others}missing values, under {density}."]

    def _lacking(self, kept: Kept) -> list[str]:
        """Names of the columns that are missing; a band stands for its error too."""
        off = {name for name, there in zip(self.features.bands, kept) if not there}
        errors = zip(self.features.errors, kept[len(self.features.bands) :])
        alone = [f"{name}_err" for name, there in errors if not there and name not in off]
        return [*(name for name in self.features.bands if name in off), *alone]

    def tensors(self) -> Tensors:
        """What `read` needs beside `meta`."""
        return {
            f"gap.{k}.{name}": value
            for k, gap in enumerate(self.models.values())
            for name, value in gap.ensemble.tensors().items()
        }

    def meta(self) -> list[dict[str, Any]]:
        """What `read` needs, ready for JSON."""
        return [
            {
                "kept": list(kept),
                "features": gap.features.fingerprint(),
                "members": len(gap.ensemble.models),
                "stack": gap.ensemble.meta(),
            }
            for kept, gap in self.models.items()
        ]

    @classmethod
    def read(
        cls,
        features: Features,
        tensors: Tensors,
        meta: Sequence[Mapping[str, Any]],
        settings: RedshiftSettings,
        device: torch.device,
    ) -> Gaps:
        """The inverse of `tensors` and `meta`."""
        models = {}
        for k, one in enumerate(meta):
            own = part(tensors, f"gap.{k}.")
            ensemble = GPzEnsemble.from_tensors(own, one["members"], settings, device, one["stack"])
            models[tuple(one["kept"])] = Gap(Features.of(one["features"]), ensemble)
        return cls(features, models)


def gaps_of(features: Features, x: Float[Tensor, "n d"]) -> list[Kept]:
    """What is left in rows that lack something, the most frequent first."""
    there = (~x.isnan()).cpu().numpy()
    kinds, count = np.unique(there, axis=0, return_counts=True)
    found = [tuple(map(bool, kinds[k])) for k in np.argsort(-count, kind="stable")]
    b = len(features.bands)
    return [kept for kept in found if any(kept[:b]) and not all(kept)][:MOST_GAPS]


class GapPatterns(NamedTuple):
    """Patterns of missing values that get models of their own while time lasts.

    Attributes:
        kept: What is left, in the most frequent patterns first.
        share: Share of the table's rows with one of these.
        rows: Number of rows to learn from, complete or not.
    """

    kept: Sequence[Kept] = ()
    share: float = 0.0
    rows: int = 0

    @classmethod
    def of(
        cls,
        features: Features,
        x: Float[Tensor, "n d"],
        unseen: Bool[np.ndarray, " n"],
        held: Float[Tensor, "m d"],
    ) -> GapPatterns:
        """Find the patterns for which there are rows enough.

        Args:
            features: Of complete rows.
            x: Rows to learn from.
            unseen: True for rows that are only scored.
            held: Test rows, used for their missing values alone.
        """
        every = torch.cat([x, held])
        kinds, kind, counts = np.unique(
            (~every.isnan()).cpu().numpy(), axis=0, return_inverse=True, return_counts=True
        )
        learned = kind.reshape(-1)[: len(x)]
        scored, trained = (
            np.bincount(learned[rows], minlength=len(kinds)) for rows in (unseen, ~unseen)
        )

        def enough(left: Kept) -> bool:
            usable = kinds[:, list(left)].all(1)
            parts = scored[usable].sum(), trained[usable].sum()
            return bool(sum(parts) >= GAP_ROWS and min(parts) >= LEAST_PART)

        kept = [left for left in gaps_of(features, every) if enough(left)]
        rows = sum(int(counts[(kinds == left).all(1)].sum()) for left in kept)
        return cls(kept, rows / len(every), len(x))


def fit_gaps(
    features: Features,
    target: Target,
    settings: RedshiftSettings,
    patterns: GapPatterns,
    table: pd.DataFrame,
    unseen: Bool[np.ndarray, " n"],
    device: torch.device,
    seconds: float,
    deadline: Deadline,
) -> Gaps:
    """A model for each gap that there is time for: as expected, so that a fit is the same on any
    machine that is as fast.

    Args:
        features: Of whole rows.
        target: As whole rows have it.
        settings: Of the run.
        patterns: Of rows, in the order in which they get models.
        table: Rows to learn from, whole or not.
        unseen: Those of them that are only scored.
        device: Where the models are.
        seconds: That all of them are expected to take at most.
        deadline: Of the fit.
    """
    count, each = gap_time(seconds, len(patterns.kept), len(table))
    time = deadline.share(GAPS_LEFT).within(settings.gap_seconds)
    models, learned = dict[Kept, Gap](), LearnedRows(table, unseen)
    for kept in time.units(patterns.kept[:count], "models of gaps"):
        models[kept] = _of_gap(kept, features, target, settings, learned, each, device)
    return Gaps(features, models)


def _of_gap(
    kept: Kept,
    features: Features,
    target: Target,
    settings: RedshiftSettings,
    learned: LearnedRows,
    seconds: float,
    device: torch.device,
) -> Gap:
    """A model of rows that have what is left."""
    table, unseen = learned
    rows = (~features.inputs(table).isnan()).numpy()[:, list(kept)].all(1)
    own = _columns(features, table.iloc[np.flatnonzero(rows)], kept, settings)
    return _fitted(own, features, target, settings, unseen[rows], seconds, device)


class LearnedRows(NamedTuple):
    """Rows from which models of further gaps can be learned.

    Attributes:
        table: The target, measurements, their errors and limits.
        unseen: Those that are only scored.
    """

    table: pd.DataFrame
    unseen: Bool[np.ndarray, " n"]

    def some(self, seed: int) -> LearnedRows:
        """Their numbers, of so many rows that they take `MOST_CELLS` at most."""
        table = self.table.select_dtypes("number")
        most = max(MOST_CELLS // max(table.shape[1], 1), 1)
        if len(table) <= most:
            return self._replace(table=table)
        rows = np.sort(np.random.default_rng(seed).permutation(len(table))[:most])
        return LearnedRows(table.iloc[rows].reset_index(drop=True), self.unseen[rows])


def lacking(
    features: Features, table: pd.DataFrame, off: Sequence[str] = ()
) -> Float[Tensor, "n d"]:
    """Inputs of rows, NaN where missing or in `off`; what is only known to be beyond a limit is
    not, for it is drawn."""
    x = features.inputs(table, off)
    limits = undetected.limits(features, table)[:, features.owners]
    x[torch.from_numpy(np.isfinite(limits))] = 0.0
    return x


def _columns(
    features: Features, table: pd.DataFrame, kept: Kept, settings: RedshiftSettings
) -> pd.DataFrame:
    """The target and what is left."""
    b = len(features.bands)
    bands = [name for name, there in zip(features.bands, kept[:b]) if there]
    errors = [name for name, there in zip(features.errors, kept[b:]) if there]
    return table[[settings.target, *bands, *(f"{name}_err" for name in errors)]]


def _fitted(
    table: pd.DataFrame,
    whole: Features,
    target: Target,
    settings: RedshiftSettings,
    unseen: Bool[np.ndarray, " n"],
    seconds: float,
    device: torch.device,
) -> Gap:
    """A model of these columns; one suffices, where whole rows have several."""
    bands = [name for name in whole.bands if name in table]
    features = Features.fit(table, bands, settings, robust=whole.robust)
    if whole.reduced:
        x = features.inputs(table)
        features = replace(features, T=components.projection(x, min(len(whole.T), x.shape[1])))
    T = torch.as_tensor(features.T).to(device)
    rows = Rows.of(table, features, T, target, settings, device)
    train, held = (torch.from_numpy(np.flatnonzero(part)) for part in (~unseen, unseen))
    fold = Fold(rows, train, held, target)

    def make(n_basis: int, structure: str) -> GPz:
        made = GPz(len(T), n_basis, structure, settings.heteroscedastic, settings.joint_mean)
        return made.to(device)

    room = Room.of(settings, len(train), len(T), 1, seconds)
    if room.small and not room.n_basis:  # nearly a Gaussian process would be, of each, megabytes
        room = replace(room, n_basis=min(FEW, len(train)))
    growth = Growth([fold], room, make, settings.seed, PATIENCE, LocalRows)
    while not growth.ended:
        growth.step()
    found = {f"0.{name}": value for name, value in growth.best[0].items()}
    models, _, told = finished(growth, found)
    return Gap(features, GPzEnsemble.fit([fold], models, told, T, quick=True))
