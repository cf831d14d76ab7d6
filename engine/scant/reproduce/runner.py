"""`scant reproduce`: the publications' tables, ours beside theirs, in one form for all studies.

The tables of a study come from `scant.studies.<study>.reproduce` (`scant.studies.reproduction` says
in which form): the scores of one run after another. What they come to so far is on disk before the
next run begins.

The folder of data, where one is named, holds a folder for each set: `poisson_toy`, `fertility` and
`pm25_kampala`; `photoz_sdss`; `gene_kalinka2010` and `mocap_cmu`; `cnae9`, `uji_indoor_loc` and
`omniglot`; `mitosis_amibr`; `so2_beijing_standin`; `clamp_standin_screws`. The tables say which
files are read. None is shipped with Scant.
"""

from __future__ import annotations

import platform
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scant import __version__
from scant.errors import BadInput
from scant.hardware import keep_freed_memory, machine
from scant.reproduce.tables import as_page, as_text
from scant.studies import STUDIES, entry
from scant.studies.reproduction import Runs, Score
from scant.training.output_folder import check_writable

ROWS, PAGE = "results.csv", "results.html"
OWN = ["study", "experiment", "data", "method", "metric"]
MEASURED = ["ours", "spread", "repeats", "published", "seconds"]
ORIGIN = ["quick", "date", "scant", "python", "torch", "gpytorch", "machine"]
COLUMNS = [*OWN, *MEASURED, *ORIGIN]


class ScoreTable:
    """What the runs of a study came to so far."""

    def __init__(self, study: str) -> None:
        self.study = study
        self._scores: dict[tuple[str, str, str], list[Score]] = {}
        self._seconds: dict[tuple[str, str, str], list[float]] = {}

    def add(self, scores: Sequence[Score], seconds: float) -> None:
        """Take in one run and the processor time that it took."""
        known = {score[:1] + score[2:4] for score in scores}
        for score in scores:
            self._scores.setdefault(score[:1] + score[2:4], []).append(score)
        for key in known:
            self._seconds.setdefault(key, []).append(seconds)

    def rows(self) -> pd.DataFrame:
        """A row for each experiment, method and metric: mean and deviation over the repeats."""
        results = []
        for key, scores in self._scores.items():
            values = np.array([score.value for score in scores])
            own = (self.study, key[0], scores[0].data, *key[1:])
            here = bool(np.isfinite(values).any())
            spread = float(values.std()) if here and len(values) > 1 else None
            seconds = float(np.mean(self._seconds[key])) if here else None
            figures = (float(values.mean()), spread, len(values) * here)
            results.append((*own, *figures, scores[0].published, seconds))
        table = pd.DataFrame(results, columns=[*OWN, *MEASURED])
        kinds = {"ours": float, "spread": float, "published": float, "seconds": float}
        return table.astype(kinds).round({"ours": 4, "spread": 4, "seconds": 1})


def studies_named(word: str) -> list[str]:
    """The studies that "all", or a name, means.

    Raises:
        NotFound: There is no study of that name.
    """
    return list(STUDIES) if word == "all" else [entry(word).name]


def checked(folder: Path | None) -> Path | None:
    """The folder of the publications' data, if one is named.

    Raises:
        BadInput: It is not there.
    """
    if folder is not None and not folder.is_dir():
        raise BadInput(f"There is no folder {str(folder)!r} to read data from; name another.")
    return folder


def reproduce(
    studies: Sequence[str],
    *,
    quick: bool = False,
    folder: Path | None = None,
    out: Path | None = None,
    say: Callable[[str], None] = print,
    whisper: Callable[[str], None] = print,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Run the tables of studies, one after the other.

    Args:
        studies: Their names.
        quick: Less of everything.
        folder: With the publications' data, a folder for each data set; None: generated stand-ins.
        out: Folder for `results.csv` and `results.html`, written anew after every run.
        say: Is told each study's table when it is done.
        whisper: Is told of every run.

    Returns:
        All rows (`COLUMNS`), and what stopped a study, in a sentence, by its name.

    Raises:
        BadInput: `out` cannot be made.
    """
    if out is not None:
        check_writable(out)
        out.mkdir(parents=True, exist_ok=True)
    keep_freed_memory()
    origin: dict[str, Any] = {"quick": quick, **origins()}
    done: list[pd.DataFrame] = []
    faults: dict[str, str] = {}
    for study in studies:
        gathered = ScoreTable(study)
        try:
            for scores, seconds in _timed(_runs(study, quick, folder)):
                gathered.add(scores, seconds)
                whisper(f"{study}: {_named(scores)} ({seconds:.0f} s)")
                _keep(out, [*done, gathered.rows().assign(**origin)], faults)
        except BadInput as error:
            faults[study] = str(error)
        except Exception as error:  # of one study: the others are still to be run
            whisper(traceback.format_exc())
            faults[study] = f"{type(error).__name__}: {error}"
        done.append(gathered.rows().assign(**origin))
        say(as_text(done[-1], faults.get(study, "")))
    _keep(out, done, faults)
    return _joined(done), faults


def _runs(study: str, quick: bool, folder: Path | None) -> Runs:
    name = f"scant.studies.{study}.reproduce"
    if find_spec(name) is None:
        raise BadInput(f"Study {study!r} has no table to reproduce.")
    from scant.training.api import fit  # torch

    result: Runs = import_module(name).reproduce(quick, folder, fit)
    return result


def _timed(runs: Runs) -> Iterator[tuple[list[Score], float]]:
    """Each run with its processor time, which other work on the machine hardly changes."""
    began = time.process_time()
    for scores in runs:
        ended = time.process_time()
        yield scores, ended - began
        began = time.process_time()


def _named(scores: Sequence[Score]) -> str:
    methods = dict.fromkeys(score.method for score in scores)
    return f"{scores[0].experiment}, {', '.join(methods)}" if scores else "nothing"


def _joined(done: Sequence[pd.DataFrame]) -> pd.DataFrame:
    kept = [rows for rows in done if len(rows)]
    return pd.concat(kept, ignore_index=True)[COLUMNS] if kept else pd.DataFrame(columns=COLUMNS)


def _keep(out: Path | None, done: Sequence[pd.DataFrame], faults: dict[str, str]) -> None:
    """Write what there is, all of it or nothing."""
    if out is None:
        return
    rows = _joined(done)
    for name, text in ((ROWS, rows.to_csv(index=False)), (PAGE, as_page(rows, faults))):
        half = out / f".{name}"
        half.write_text(text, encoding="utf-8")
        half.replace(out / name)


def origins() -> dict[str, str]:
    """Day, versions and machine, for every row. No name of the machine, no path."""
    packages = {name: version(name) for name in ("torch", "gpytorch")}
    return {
        "date": date.today().isoformat(),
        "scant": __version__,
        "python": platform.python_version(),
        **packages,
        "machine": machine(),
    }
