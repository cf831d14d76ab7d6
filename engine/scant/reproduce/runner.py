"""Reproduction of the tables of publications by `scant reproduce`, with published scores.

`scant.studies.<study>.reproduce` yields the scores of each run (see `scant.studies.reproduction`).
Results so far are written before the next run starts.

The optional data folder has subfolders for data sets: `poisson_toy`, `fertility` and
`pm25_kampala`; `photoz_sdss`; `gene_kalinka2010` and `mocap_cmu`; `cnae9`, `uji_indoor_loc` and
`omniglot`; `mitosis_amibr`; `so2_beijing_standin`; `clamp_standin_screws`. The tables list the
files that are read. They are not part of Scant.
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
from scant.reproduce.tables import as_page
from scant.studies import STUDIES, entry
from scant.studies.reproduction import Runs, Score
from scant.training.output_folder import check_writable

ROWS, PAGE = "results.csv", "results.html"
OWN = ["study", "experiment", "data", "method", "metric"]
MEASURED = ["ours", "spread", "repeats", "published", "seconds"]
ORIGIN = ["quick", "date", "scant", "python", "torch", "gpytorch", "machine"]
COLUMNS = [*OWN, *MEASURED, *ORIGIN]


class ScoreTable:
    """Table of the scores of the runs of a study."""

    def __init__(self, study: str) -> None:
        self.study = study
        self._scores: dict[tuple[str, str, str], list[Score]] = {}
        self._seconds: dict[tuple[str, str, str], list[float]] = {}

    def add(self, scores: Sequence[Score], seconds: float) -> None:
        """Add the scores of a run with its CPU time in seconds."""
        keys = {score[:1] + score[2:4] for score in scores}
        for score in scores:
            self._scores.setdefault(score[:1] + score[2:4], []).append(score)
        for key in keys:
            self._seconds.setdefault(key, []).append(seconds)

    def rows(self) -> pd.DataFrame:
        """Return mean and standard deviation over repeats by experiment, method and metric."""
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


def studies_named(name: str) -> list[str]:
    """Return the names of all studies for "all", else a list with the study.

    Raises:
        NotFound: There is no study with this name.
    """
    return list(STUDIES) if name == "all" else [entry(name).name]


def checked(folder: Path | None) -> Path | None:
    """Check that the data folder exists, if given, and return it.

    Raises:
        BadInput: The folder does not exist.
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
    show: Callable[[pd.DataFrame, str], None] = lambda rows, fault: print(rows, fault),
    whisper: Callable[[str], None] = print,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Run the experiments of studies and collect their scores.

    Args:
        studies: Names of the studies.
        quick: True for fewer repeats, rows and steps.
        folder: Folder with the data of the publications; None for simulated data.
        out: Folder for `results.csv` and `results.html`, which are updated after every run.
        show: Function called with the results of each study and the reason of a failure, if any.
        whisper: Function called with a message on each run.

    Returns:
        Table with `COLUMNS`, and messages on failures by study.

    Raises:
        BadInput: `out` cannot be created.
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
        except Exception as error:  # a failure must not stop other studies
            whisper(traceback.format_exc())
            faults[study] = f"{type(error).__name__}: {error}"
        done.append(gathered.rows().assign(**origin))
        show(done[-1], faults.get(study, ""))
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
    """Iterate over runs with their CPU time, which depends little on other load."""
    began = time.process_time()
    for scores in runs:
        ended = time.process_time()
        yield scores, ended - began
        began = time.process_time()


def _named(scores: Sequence[Score]) -> str:
    methods = dict.fromkeys(score.method for score in scores)
    return f"{scores[0].experiment}, {', '.join(methods)}" if scores else "nothing"


def _joined(done: Sequence[pd.DataFrame]) -> pd.DataFrame:
    nonempty = [rows for rows in done if len(rows)]
    return (
        pd.concat(nonempty, ignore_index=True)[COLUMNS]
        if nonempty
        else pd.DataFrame(columns=COLUMNS)
    )


def _keep(out: Path | None, done: Sequence[pd.DataFrame], faults: dict[str, str]) -> None:
    """Write the results so far, with atomic replacement of files."""
    if out is None:
        return
    rows = _joined(done)
    for name, text in ((ROWS, rows.to_csv(index=False)), (PAGE, as_page(rows, faults))):
        temporary = out / f".{name}"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(out / name)


def origins() -> dict[str, str]:
    """Return date, versions and hardware for every row, without host name and paths."""
    packages = {name: version(name) for name in ("torch", "gpytorch")}
    return {
        "date": date.today().isoformat(),
        "scant": __version__,
        "python": platform.python_version(),
        **packages,
        "machine": machine(),
    }
