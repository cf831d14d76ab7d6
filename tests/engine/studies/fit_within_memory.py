"""Fit one study to a table, and predict from it, with so much memory beyond the imports.

    python fit_within_memory.py study settings.json table.parquet bytes

Prints the largest resident size that the fit added, and the seconds, as JSON.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from pathlib import Path

import pandas as pd
import torch

import scant
from scant.events import USABLE, Finished
from scant.studies.protocol import study_class

RIVALS = ("sklearn.ensemble", "sklearn.gaussian_process", "sklearn.svm", "catboost", "lightgbm")
KIBIBYTE = 1024


def main(study: str, settings: str, table: str, limit: str) -> None:
    """Fit and predict; an allocation beyond the limit raises."""
    torch.set_num_threads(1)
    study_class(study)
    for name in RIVALS:  # what the report imports is no allocation of the fit
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    frame = pd.read_parquet(table)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + int(limit), resource.RLIM_INFINITY))
    before, began = _peak(), time.monotonic()
    run = scant.fit(study, frame, own=False, **json.loads(settings))
    *_, last = run
    assert isinstance(last, Finished)
    assert last.state in USABLE, last.reason
    predicted = run.study.predict(frame.head(100))
    assert len(predicted) == 100
    print(json.dumps({"bytes": _peak() - before, "seconds": time.monotonic() - began}))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE


if __name__ == "__main__":
    main(*sys.argv[1:])
