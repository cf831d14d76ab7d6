"""The table of results: our scores over repeats, beside the publication's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scant.reproduce.stored import FinishedRun
from scant.studies import published
from scant.studies.published import KEYS
from scant.studies.reproduction import Score

OWN = ["study", "experiment", "data", "method", "metric"]
OURS = ["ours", "spread", "repeats", "varies"]
THEIRS = ["published", "published_spread", "where", "theirs", "theirs_by"]
ORIGIN = ["quick", "date", "scant", "python", "torch", "gpytorch", "machine"]
COLUMNS = [*OWN, *OURS, *THEIRS, "seconds", "study_hours", *ORIGIN]
Compare = Callable[[Sequence[Score]], Sequence[Score]]


class Results:
    """Table of the scores of the runs of a study.

    Args:
        study: Name of the study.
        compare: Returns scores that take all runs, such as those of paired tests.
    """

    def __init__(self, study: str, compare: Compare = lambda scores: ()) -> None:
        self.study = study
        self._compare = compare
        self._runs: list[FinishedRun] = []

    def add(self, run: FinishedRun) -> None:
        """Add the scores of a run."""
        self._runs.append(run)

    def rows(self, **origin: Any) -> pd.DataFrame:
        """Return a table with `COLUMNS`: a row for each experiment, method and metric.

        Args:
            origin: Values of the columns `ORIGIN` that runs do not state.
        """
        scores: list[tuple[Any, ...]] = [
            (*_flat(score), run.seconds, number)
            for number, run in enumerate(self._runs)
            for score in run.scores
        ]
        every = [score for run in self._runs for score in run.scores]
        scores += [(*_flat(score), np.nan, len(self._runs) - 1) for score in self._compare(every)]
        names = ["experiment", "data", "varies", "method", "metric", "value", "seconds", "run"]
        table = pd.DataFrame(scores, columns=names)
        grouped = table.groupby(KEYS, sort=False)
        result = grouped[["data", "varies"]].first()
        result["ours"] = grouped["value"].mean().round(4)
        result["repeats"] = grouped["value"].count()
        result["spread"] = grouped["value"].std(ddof=0).round(4).where(result["repeats"] > 1)
        result["seconds"] = grouped["seconds"].mean().round(1)
        result["run"] = grouped["run"].last()
        rows = beside(result.reset_index().assign(study=self.study))
        rows["study_hours"] = round(sum(run.seconds for run in self._runs) / 3600, 3)
        origins = [run.origin for run in self._runs] or [{}]
        for name in ORIGIN:
            latest = rows["run"].fillna(-1).astype(int)
            rows[name] = origin.get(name, [origins[k].get(name) for k in latest])
        return rows[COLUMNS]


def beside(rows: pd.DataFrame) -> pd.DataFrame:
    """Put the scores that are not ours beside ours.

    Scores of methods that have no row of their experiment follow in rows of their own, without a
    value of ours.

    Args:
        rows: Results of one study, with the columns `KEYS`, `study`, `data` and `varies`.
    """
    known = published.scores()
    known = known[known["study"].isin(rows["study"]) & known["experiment"].isin(rows["experiment"])]
    is_printed = known["by"].isna()
    printed = known[is_printed].rename(
        columns={"value": "published", "spread": "published_spread"}
    )[[*KEYS, "published", "published_spread", "where"]]
    run_by_us = known[~is_printed].rename(columns={"value": "theirs", "by": "theirs_by"})[
        [*KEYS, "theirs", "theirs_by"]
    ]
    theirs = printed.merge(run_by_us, on=KEYS, how="outer")
    result = rows.merge(theirs, on=KEYS, how="left")
    absent = theirs.merge(rows[KEYS], on=KEYS, how="left", indicator=True)
    absent = absent[absent["_merge"] == "left_only"].drop(columns="_merge")
    if absent.empty:
        return result
    about = rows.drop_duplicates("experiment")[["study", "experiment", "data", "varies"]]
    absent = absent.merge(about, on="experiment").assign(repeats=0)
    return pd.concat([result, absent], ignore_index=True)


def _flat(score: Score) -> tuple[str, str, str, str, str, float]:
    """Return experiment, data, what varies, method, metric and value."""
    return (*score.experiment, score.method, score.metric, score.value)
