"""The golden record: what every study answers with its quick preset, and what the program offers.

    python tests/golden/record.py          # writes golden.json beside this file

Moving and renaming code must not change a bit of it. The last bits of a result depend on the
processor and on the version of PyTorch. The record says which; elsewhere the test compares states,
names and the metrics' first digits. Make the record anew there before the first change.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("golden.json")
ROWS = 200  # of the demonstration's table, predicted by the fitted study


def record() -> dict[str, Any]:
    """The whole record; run it with one thread (`OMP_NUM_THREADS=1`), which fixes all sums."""
    from scant.studies import STUDIES

    sys.modules["catboost"] = None  # type: ignore[assignment]  # not everybody has this rival
    return {
        "circumstances": circumstances(),
        "addresses": addresses(),
        "help": printed("--help"),
        "studies": printed("studies"),
        "fits": {study: fitted(study) for study in STUDIES},
    }


def circumstances() -> dict[str, str]:
    """What decides the last bits of a result."""
    import torch

    # A name such as "AMD EPYC" covers several generations, and the math library chooses by them.
    asked = ("model name", "cpu family", "model", "stepping")
    found = [
        re.search(rf"^{name}\s*: (.+)$", _read("/proc/cpuinfo"), re.MULTILINE) for name in asked
    ]
    return {
        "torch": torch.__version__,
        "cpu": " ".join(match[1] for match in found if match) or platform.processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
    }


def _read(path: str) -> str:
    file = Path(path)
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def fitted(study: str) -> dict[str, Any]:
    """Metrics, predictions and the model's hash of the quick preset with seed 0."""
    import scant
    from scant.events import Finished, Fitted
    from scant.studies import entry

    run = scant.fit(study, device="cpu", seed=0, **entry(study).presets["quick"])
    model, end = b"", None
    for event in run:
        if isinstance(event, Fitted):
            model = event.blob
        if isinstance(event, Finished):
            end = event
    assert end is not None
    table = run.study.predict(run.table.head(ROWS)) if run.table is not None else None
    return {
        "state": end.state.value,
        "metrics": [[m.method, m.name, m.source, repr(float(m.value))] for m in end.report.metrics],
        "model": hashlib.sha256(model).hexdigest(),
        "predictions": "" if table is None else _sha(table.to_csv(index=False)),
        "columns": [] if table is None else [str(c) for c in table.columns],
    }


def addresses() -> list[str]:
    """The pages' addresses."""
    from scant.studies import STUDIES

    return ["/", *(f"/{name}" for name in STUDIES)]


def printed(*arguments: str) -> str:
    """What the command prints, at a fixed width."""
    command = [sys.executable, "-c", "from scant_dashboard.cli.main import app; app()", *arguments]
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    RECORD.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
