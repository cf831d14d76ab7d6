"""Every study's notebook runs from top to bottom in a kernel, and gives the metrics of the run.

One kernel runs them one after the other; what a notebook has defined is forgotten before the next,
so that each stands on its own imports, but torch is brought in only once.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

import scant
from scant.events import Finished, Started
from scant.store import Store
from scant.studies import STUDIES, entry
from scant.tables.read import read_table
from scant_dashboard import export
from tests.paths import ROOT
from tests.tiny import TINY, fixed

pytestmark = [
    pytest.mark.timeout(900),  # the first test waits for all runs and the kernel
    pytest.mark.slow(
        "dashboard/scant_dashboard/export.py",
        "engine/scant/studies",
        "engine/scant/training",
        "engine/scant/store",
    ),
]
SAID = "METRICS "
SEARCHING = ("aggregation", "redshift")  # their values for `auto` take many fits of an own table


def ended(study: str, data: Any, name: str) -> Any:
    """A run of this process, as the page would have it."""
    values = TINY[study]
    if name == "demo" or study in SEARCHING:
        values = fixed(study) | values
    settings = entry(study).settings.parse(values).values()
    *_, last = events = list(scant.fit(study, data, device="cpu", **settings))
    assert isinstance(last, Finished)
    assert last.state.usable, last.reason  # so few steps may teach nothing
    metadata = next(e.metadata for e in events if isinstance(e, Started))
    record = SimpleNamespace(
        study=study, settings=settings, data=name, data_hash="ab12", version="0.1.0"
    )
    return SimpleNamespace(id=study, record=record, report=last.report, metadata=metadata)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """Of every study one on its demonstration, and one on an upload with its file beside."""
    folder = tmp_path_factory.mktemp("home")
    store = Store.open(f"sqlite:///{folder / 'runs.db'}")
    made: dict[tuple[str, str], Any] = {}
    for study in STUDIES:
        made[study, "demo"] = ended(study, None, "demo")
        template = ROOT / "data" / "templates" / f"{study}.csv"
        target = TINY[study].get("target", "z") if study == "redshift" else None
        table = read_table(template, entry(study).table, target=target)
        upload = store.add_upload(table.frame, owner="anna", name=template.name, study=study)
        kept = store.upload_table(upload)
        (folder / study).mkdir()
        (folder / study / export.TABLE).write_bytes(export.table_csv(kept))
        made[study, "upload"] = ended(study, kept, f"upload:{upload}")
    made["", ""] = folder
    return made


@pytest.fixture(scope="module")
def notebooks(runs: dict[tuple[str, str], Any]) -> dict[tuple[str, str], pd.DataFrame]:
    """Metrics of every notebook."""
    folder, v4 = runs["", ""], nbformat.v4
    whole = v4.new_notebook()
    message: dict[tuple[str, str], int] = {}
    for (study, kind), run in runs.items():
        if not study:
            continue
        one = nbformat.reads(export.notebook(run).decode(), as_version=4)
        nbformat.validate(one)
        home = json.dumps(str(folder / (study if kind == "upload" else "")))
        start = v4.new_code_cell(f"%reset -f\nimport os\nos.chdir({home})\ndel os")
        last = v4.new_code_cell(f"print({SAID!r} + metrics.to_json(double_precision=15))")
        whole.cells += [start, *one.cells, last]
        message[study, kind] = len(whole.cells) - 1
    for i, cell in enumerate(whole.cells):
        cell["id"] = f"c{i}"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}  # as if it were installed
    NotebookClient(whole, timeout=600, kernel_name="python3").execute(env=env)
    result = {}
    for which, at in message.items():
        text = "".join(o.get("text", "") for o in whole.cells[at].outputs)
        result[which] = pd.read_json(io.StringIO(text.split(SAID)[1]))
    return result


def cases() -> Iterator[tuple[str, str]]:
    return ((study, kind) for study in STUDIES for kind in ("demo", "upload"))


@pytest.mark.parametrize(("study", "kind"), cases())
def test_a_notebook_gives_the_metrics_of_the_run(
    study: str, kind: str, runs: dict[tuple[str, str], Any],
    notebooks: dict[tuple[str, str], pd.DataFrame],
) -> None:  # fmt: skip
    once = pd.DataFrame([vars(m) for m in runs[study, kind].report.metrics])
    again = notebooks[study, kind]
    assert len(once)
    timed = once["name"].str.contains("second|time", case=False)
    assert again["name"].tolist() == once["name"].tolist()
    values = once.loc[~timed, "value"].astype(float)
    assert again.loc[~timed, "value"].astype(float).tolist() == pytest.approx(
        values.tolist(), rel=1e-9, nan_ok=True
    )
