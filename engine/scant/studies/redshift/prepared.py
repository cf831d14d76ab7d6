"""Data of a redshift study: rows to learn from and held-out rows, inputs, and target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.errors import BadInput
from scant.models.gpz.input_density import fill, single_gaussian
from scant.problem import Problem
from scant.random import restart_generator
from scant.studies.auto import AUTO, CHOSEN, Choice
from scant.studies.protocol import roles
from scant.studies.redshift import components, undetected
from scant.studies.redshift.bands import by_wavelength
from scant.studies.redshift.capacity import gap_reserve, grows, learned, stacks, test_rows
from scant.studies.redshift.fold import completes
from scant.studies.redshift.gap_patterns import GapPatterns, LearnedRows, lacking
from scant.studies.redshift.growth_budget import SMALL
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.problem import problem_of
from scant.studies.redshift.scales import scale_of, taming_of
from scant.studies.redshift.settings import RedshiftSettings, check
from scant.studies.redshift.target import Target
from scant.studies.split import EVERYTHING, UNUSED, VALIDATION, divide, groups, marks
from scant.tables.column_matching import listed
from scant.tables.limits import beside

MIN_LEARNED = 6  # rows: folds of three or four of ten rows leave at least these
# Complete rows, below which `incomplete=auto` learns from incomplete rows, too. With 400 simulated
# galaxies, all but 15 or 40 without one of five bands, the CRPS of 1,000 others was .094 or .066
# (mean of two draws) without the incomplete rows, and .066 or .067 with them.
FEWEST_COMPLETE = 30
LIVE_ROWS = 600  # test rows in a snapshot: enough to see, cheap to send


class Prepared:
    """A table divided into rows to learn from and test rows, with inputs and target fitted.

    Attributes:
        settings: Settings of the run.
        bands: Feature columns, by wavelength.
        given: Rows to learn from, validation rows first, for baselines.
        learn: The rows of `given` with one draw of each band that was not detected.
        partial: Further rows that lack a band, for densities and models of gaps.
        held: Test rows.
        n_validation: Number of validation rows.
        arranged: True if the table defines groups of rows or validation rows.
        roles: Role of each row of the table.
        features: Map from columns to inputs.
        choices: Settings that the table chooses.
        target: Map from the target's unit to the model's, and back.
        T: Matrix from the inputs x to the coordinates of training.
        notes: Notes for the user.
    """

    def __init__(self, settings: RedshiftSettings, table: pd.DataFrame) -> None:
        self.settings, self.notes = settings, list[str]()
        self.bands = bands_of(table, settings.target)
        self.given, partial, self.held = self._split(table)
        self.learn, self.partial = self._drawn(self.given), self._drawn(partial)
        self.features, self.choices = self._fit_features()
        if self.features.softening:
            fluxes = listed(list(self.features.softening))
            self.notes.append(
                f"Fluxes are converted to asinh magnitudes, negative ones, too: {fluxes}. Set "
                "features to 'as given' to learn from the fluxes themselves."
            )
        log_target = self.choices["log_target"].value == "yes"
        self.target = Target.fit(self._z(self.learn), log_target)
        fills = completes(self.features, settings)
        if fills or not self.learn[self.bands].isna().any(axis=None):
            self.T = torch.as_tensor(self.features.T)
        else:
            self.T = torch.eye(len(self.features.names), dtype=torch.float64)

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of a run (`events.Started`)."""
        metadata: dict[str, Any] = {
            "bands": self.bands,
            "features": self.features.names,
            "target": self.settings.target,
            "rows": {
                "training": len(self.learn) - self.n_validation,
                "validation": self.n_validation,
                "test": len(self.held),
            },
        }
        chosen = {n: list(c) for n, c in self.choices.items() if getattr(self.settings, n) == AUTO}
        return {**metadata, CHOSEN: chosen} if chosen else metadata

    def _split(self, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Return rows to learn from, further rows that lack a band, and test rows."""
        s = self.settings
        check(s, table, "the table")
        has_target = np.isfinite(table[s.target].to_numpy(float))
        complete = np.ones(len(table), dtype=bool)
        if s.incomplete != "use":
            complete = complete_rows(table, self.bands)
            needed = len(self.bands) > components.MIN_COLUMNS  # of many columns most rows lack one
            needed |= (complete & has_target).sum() < FEWEST_COMPLETE
            if needed and s.incomplete == AUTO and 2 * complete.sum() < len(table):
                self.notes.append(
                    f"{int((~complete).sum()):,} of the {len(table):,} rows lack a value in one of "
                    f"the {len(self.bands)} columns; the model learns from the values that they "
                    "have."
                )
                complete[:] = True
        marked, group = np.where(has_target, marks(table), UNUSED), groups(table, s.split_by)
        rows = divide(
            len(table),
            s.seed,
            test=test_rows(s, int(has_target.sum())),
            validation=lambda n: learned(s, n)[1],
            marked=marked,
            group=group,
            learnable=complete,
            everything=s.refit == EVERYTHING,
        )
        dropped = int((has_target & ~complete).sum() - (~complete[rows.test]).sum())
        if dropped:
            self.notes.append(
                f"Rows left out of training because of missing values: {dropped:,}. Such rows are "
                "still predicted."
            )
        train, size = rows.train, 0 if s.refit == EVERYTHING else s.training_size
        if size:
            train = train[: learned(s, len(train) + len(rows.validation))[0]]
        if len(train) + len(rows.validation) < MIN_LEARNED:
            raise BadInput(
                f"Too few rows are left to learn from: {len(train) + len(rows.validation)}, "
                f"and at least {MIN_LEARNED} are needed. Add rows, or set incomplete=use to learn "
                "from rows with missing values."
            )
        if len(train) < size:
            self.notes.append(
                f"The table has {len(train)} rows to train on, "
                f"{size - len(train)} fewer than training_size asks for."
            )
        if len(rows.test) < 2:
            raise BadInput(
                f"Too few rows are held out: {len(rows.test)}, and at least 2 are needed for the "
                "scores; raise 'test_share', or mark more rows 'test' in the column 'split'."
            )
        self.n_validation = len(rows.validation)
        self.arranged = group is not None or VALIDATION in marked
        self.roles = roles(len(table), train=train, validation=rows.validation, test=rows.test)
        learn = table.iloc[np.concatenate([rows.validation, train])]
        partial_rows = has_target & ~complete
        partial_rows[rows.test] = False
        parts = (learn, table[partial_rows], table.iloc[rows.test])
        given, partial, held = (part.reset_index(drop=True) for part in parts)
        return given, partial, held

    def _drawn(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return rows with one draw for each band that was not detected."""
        if not len(rows) or not any(f"{band}_lim" in rows for band in self.bands):
            return rows
        features = Features.fit(self.given, self.bands, self.settings)
        filled = undetected.learned(features, rows, self.settings.seed)
        count = int((rows[self.bands].isna() & filled[self.bands].notna()).any(axis=1).sum())
        if count and rows is self.given:
            self.notes.append(
                f"{count:,} of the {len(rows):,} rows learned from have a band without a "
                "detection; predictions average over its magnitudes beyond the limit."
            )
        return filled

    def _z(self, table: pd.DataFrame) -> Float[Tensor, " n"]:
        return torch.tensor(table[self.settings.target].to_numpy(float))

    def _fit_features(self) -> tuple[Features, dict[str, Choice]]:
        """Fit the inputs, and choose the settings that concern columns."""
        s, z = self.settings, self._z(self.learn).numpy()
        features = Features.fit(self.learn, self.bands, s)
        chosen = {"features": features.chosen, "log_target": Choice("no", "as the weights need it")}
        if s.log_target != AUTO:
            chosen["log_target"] = Choice(s.log_target, "")
        elif s.weights != "normalized":
            chosen["log_target"] = scale_of(features.inputs(self.learn).numpy(), z)
        log_target = chosen["log_target"].value == "yes"
        if s.robust == AUTO:
            plain = Features.fit(self.learn, self.bands, s, robust=False)
            limited, unlimited = (f.inputs(self.learn).numpy() for f in (features, plain))
            chosen["robust"] = taming_of(limited, unlimited, z, log_target)
            features = features if chosen["robust"].value == "yes" else plain
        if s.features == AUTO and len(features.names) > components.MIN_COLUMNS:
            x, others = features.inputs(self.learn), features.inputs(self.partial)
            T = components.chosen(x, others, z, log_target)
            features = features if T is None else replace(features, T=T)
            chosen["features"] = features.chosen
        return features, chosen

    def division(self, k: int) -> tuple[Tensor, Tensor]:
        """Return training and validation rows of the k-th model; an average sees all rows in turn.

        Models that grow together on few rows hold each row out once; if the table defines groups or
        validation rows, all models have the same division.
        """
        s, order, n = self.settings, torch.arange(len(self.learn)), self.n_validation
        if s.combine == "average" and grows(s) and not self.arranged:
            order = torch.randperm(len(order), generator=restart_generator(s.seed))
            if len(order) <= SMALL:
                n = -(-len(order) // max(s.restarts, 2))
            order = order.roll(-k * n)
        elif s.combine == "average" and k and not grows(s):
            generator = torch.Generator().manual_seed(7919 * s.seed + k)
            order = torch.randperm(len(order), generator=generator)
        return order[n:], order[:n]

    @property
    def gap_rows(self) -> LearnedRows:
        """Rows that models of gaps learn from, and which of them are only scored."""
        table = pd.concat([self.learn, self.partial], ignore_index=True)
        unseen = np.zeros(len(table), dtype=bool)
        unseen[self.division(0)[1].numpy()] = True
        return LearnedRows(table, unseen)

    @cached_property
    def gap_patterns(self) -> GapPatterns:
        """Gaps that get models, if the settings ask for them."""
        if self.settings.missing != AUTO or not stacks(self.settings):
            return GapPatterns()
        table, unseen = self.gap_rows
        x, held = self.features.inputs(table), lacking(self.features, self.held)
        return GapPatterns.of(self.features, x, unseen, held)

    @property
    def gap_reserve(self) -> float:
        """Seconds that search and average reserve for models of the table's gaps."""
        patterns = self.gap_patterns
        return gap_reserve(self.settings, len(patterns.measured), patterns.share, patterns.rows)

    @cached_property
    def live(self) -> tuple[Float[Tensor, "n d"], Float[np.ndarray, " n"]]:
        """Inputs of the test rows in a snapshot, missing ones filled in, and their targets."""
        rows = self.held.iloc[:LIVE_ROWS]
        x = self.features.inputs(rows)
        if bool(x.isnan().any()):
            x = fill(x, single_gaussian(self.features.inputs(self.learn)))
        return x, self._z(rows).numpy()

    @cached_property
    def problem(self) -> Problem:
        """The regression that all methods are compared on."""
        return problem_of(self.features, self.given, self.held, self.settings.target)


def bands_of(table: pd.DataFrame, target: str) -> list[str]:
    """Return the feature columns: numeric, neither the target nor a column's error or limit.

    Raises:
        BadInput: There is no target column, or no feature.
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
    """Return True for rows whose bands were all observed, whether with a detection or without."""
    observed = [
        table[band].notna() | (table[f"{band}_lim"].notna() if f"{band}_lim" in table else False)
        for band in bands
    ]
    return np.asarray(np.all(observed, axis=0))
