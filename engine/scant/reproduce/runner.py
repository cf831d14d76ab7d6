"""Reproduction of the tables of publications by `scant reproduce`, with published scores.

`scant.studies.<study>.reproduce` yields the scores of each run (see `scant.studies.reproduction`).
Results so far are written before the next run starts, and the scores of every run are stored in
`scores.jsonl`: the same command goes on where it was interrupted.

The optional data folder has subfolders for data sets: `poisson_toy`, `fertility` and
`pm25_kampala`; `photoz_sdss`; `gene_kalinka2010` and `mocap_cmu`; `cnae9`, `uji_indoor_loc` and
`omniglot`; `mitosis_amibr`; `so2_beijing_standin`; `clamp_standin_screws`. The tables list the
files that are read. They are not part of Scant.
"""

from __future__ import annotations

import platform
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import date
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from scant import __version__
from scant.errors import BadInput
from scant.hardware import keep_freed_memory, machine
from scant.reproduce import figure_files
from scant.reproduce.results import COLUMNS, Results
from scant.reproduce.stored import FinishedRun, StoredRuns
from scant.reproduce.tables import as_page
from scant.studies import STUDIES, entry
from scant.studies.figure_data import FigureData
from scant.studies.reproduction import Run, Runs, Score
from scant.training.output_folder import check_writable

ROWS, PAGE = "results.csv", "results.html"


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
    only: str = "",
    show: Callable[[pd.DataFrame, str], None] = lambda rows, fault: print(rows, fault),
    log: Callable[[str], None] = print,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Run the experiments of studies and collect their scores.

    Args:
        studies: Names of the studies.
        quick: True for fewer repeats, rows and steps.
        folder: Folder with the data of the publications; None for simulated data.
        out: Folder for `results.csv` and `results.html`, which are updated after every run, for
            `scores.jsonl`, whose runs are not done again, and for `figures`, with the data of
            figures that show a single run.
        only: Text that the keys of runs must contain (`scant.studies.reproduction.Run`); others are
            not done, but are in the table where their scores are stored.
        show: Function called with the results of each study and the reason of a failure, if any.
        log: Function called with a message on each run.

    Returns:
        Table with `COLUMNS`, and messages on failures by study.

    Raises:
        BadInput: `out` cannot be created, or has runs that were made with other arguments.
    """
    if out is not None:
        check_writable(out)
        out.mkdir(parents=True, exist_ok=True)
    keep_freed_memory()
    stored = StoredRuns(out, {"quick": quick, "data": folder is not None, "version": __version__})
    done: list[pd.DataFrame] = []
    faults: dict[str, str] = {}
    for study in studies:
        results, keys = Results(study), set[str]()
        try:
            module = _module(study)
            results = Results(study, getattr(module, "compared", lambda scores: ()))
            for run in _runs(module, quick, folder):
                if run.key in keys:
                    raise RuntimeError(f"Two runs of {study!r} have the name {run.key!r}.")
                keys.add(run.key)
                finished = stored.get(study, run.key)
                if finished is None and only not in run.key:
                    continue
                finished = finished or _do(run, study, stored, out)
                results.add(finished)
                log(f"{study}: {run.key} ({finished.seconds:.0f} s)")
                _keep(out, [*done, results.rows(quick=quick)], faults)
            if only and not any(only in key for key in keys):
                raise BadInput(
                    f"No run of {study!r} has {only!r} in its name, such as {min(keys)!r}."
                )
        except BadInput as error:
            faults[study] = str(error)
        except Exception as error:  # a failure must not stop other studies
            log(traceback.format_exc())
            faults[study] = f"{type(error).__name__}: {error}"
        done.append(results.rows(quick=quick))
        show(done[-1], faults.get(study, ""))
    _keep(out, done, faults)
    return _joined(done), faults


def _module(study: str) -> Any:
    name = f"scant.studies.{study}.reproduce"
    if find_spec(name) is None:
        raise BadInput(f"Study {study!r} has no table to reproduce.")
    return import_module(name)


def _runs(module: Any, quick: bool, folder: Path | None) -> Runs:
    from scant.training.api import fit  # torch

    runs: Runs = module.reproduce(quick, folder, fit)
    return runs


def _do(run: Run, study: str, stored: StoredRuns, out: Path | None) -> FinishedRun:
    """Do a run and store its scores with its processor time, which depends little on other load."""
    began = time.process_time()
    results = list(run.scores())
    seconds = time.process_time() - began
    for data in results:
        if isinstance(data, FigureData) and out is not None:
            figure_files.write(data, out)
    scores = [score for score in results if isinstance(score, Score)]
    return stored.add(study, run.key, scores, seconds, origins())


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
