"""What a visitor takes home says what the run was, and does it again."""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
from types import SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from bokeh.models import CustomJS
from nbclient import NotebookClient

import scant
from scant.errors import BadInput
from scant.events import Finished, Metric, Report, State
from scant.studies import entry
from scant_dashboard import export
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.relevance import FeaturePlot
from scant_dashboard.plots.table import MetricsTable

SMALL = {
    "training_size": 60,
    "validation_size": 30,
    "test_size": 40,
    "n_basis": 3,
    "max_steps": 6,
    "restarts": 1,
}


def run(data: str = "demo", report: Report | None = None, **metadata: Any) -> Any:
    settings = entry("redshift").parse(data, SMALL).values()
    record = SimpleNamespace(
        study="redshift", settings=settings, data=data, data_hash="ab12", version="0.1.0"
    )
    return SimpleNamespace(
        id="r1",
        name="redshift · galaxies.csv · n = 800",
        record=record,
        report=report,
        metadata=metadata,
        state=State.RUNNING,
        trace=None,
    )  # fmt: skip


def report(**arrays: np.ndarray) -> Report:
    return Report((Metric("this run", "RMSE", 0.05), Metric("=cmd|calc", "RMSE", 0.1)), arrays)


def test_the_model_card_is_of_the_run_and_of_the_table_where_it_is_at_hand() -> None:
    ended = run("upload:7", report(), rows={"training": 60})
    vars(ended).update(reason="It converged.", device="cpu")
    made = export.model_card(ended, pd.DataFrame({"g": [1.0, np.nan]}), b"model")
    assert "Fitted to table.csv. 2 rows, 1 columns; 1 of 2 cells are missing." in made
    assert "- SHA-256 of the table: ab12" in made
    assert f"- SHA-256 of the model: {hashlib.sha256(b'model').hexdigest()}" in made
    assert "- training: 60 rows" in made
    with pytest.raises(BadInput, match="has no result yet"):
        export.model_card(run(), None, None)


@pytest.fixture(scope="module")
def trained() -> Any:
    ended = run()
    for event in scant.fit("redshift", **SMALL):
        if isinstance(event, Finished):
            ended.report = event.report
    return ended


@pytest.mark.slow
def test_the_notebook_runs_top_to_bottom_and_gives_the_same_figures(trained: Any) -> None:
    made = nbformat.reads(export.notebook(trained).decode(), as_version=4)
    nbformat.validate(made)
    made.cells.append(
        nbformat.v4.new_code_cell("print('FIGURES', metrics.to_json(double_precision=15))")
    )
    NotebookClient(made, timeout=240, kernel_name="python3").execute()
    message = "".join(o.get("text", "") for o in made.cells[-1].outputs)
    again = pd.read_json(io.StringIO(message.split("FIGURES ")[1]))
    once = [m.value for m in trained.report.metrics]
    assert again["value"].tolist() == pytest.approx(once, rel=1e-9)


@pytest.mark.slow
def test_the_script_runs_alone_and_gives_the_same_figures(
    trained: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(export.script(trained), "run.py", "exec"), space)
    once = [m.value for m in trained.report.metrics]
    assert space["metrics"]["value"].tolist() == pytest.approx(once, rel=1e-9)
    assert "RMSE" in capsys.readouterr().out


def test_script_names_every_setting_and_the_seed() -> None:
    made = export.script(run())
    assert all(f"    {name}=" in made for name in entry("redshift").settings.names())
    compile(made, "run.py", "exec")


def test_an_upload_is_left_for_its_owner_to_fill_in() -> None:
    made = export.script(run("upload:secret-id", features=['u"); import os #']))
    assert "secret-id" not in made
    assert export.TABLE in made
    assert "COLUMNS" in made
    assert "import os" not in re.sub(r"#.*", "", made)
    compile(made, "run.py", "exec")


def test_fetched_data_go_by_name() -> None:
    assert "DATA = 'sdss'" in export.script(run("sdss"))


def test_settings_are_those_that_the_command_line_writes() -> None:
    record = json.loads(export.settings_json(run()))
    assert record["study"] == "redshift"
    assert record["settings"]["n_basis"] == 3
    assert record["data"] == "demo"
    assert record["data_hash"] == "ab12"


def test_metrics_are_safe_in_a_spreadsheet() -> None:
    table = pd.read_csv(io.StringIO(export.metrics_csv(run(report=report()))))
    assert table["method"].tolist() == ["this run", "'=cmd|calc"]
    assert table["value"].tolist() == [0.05, 0.1]


def test_without_a_result_there_is_a_sentence() -> None:
    with pytest.raises(BadInput, match="running and has no result yet"):
        export.metrics_csv(run())


def test_figures_stand_alone_and_run_no_word_as_script() -> None:
    evil = "</script><script>alert(1)</script>"
    features, table = FeaturePlot(evil), MetricsTable()
    features.show(np.array([1.0]), [evil])
    table.show((Metric(evil, "RMSE", 1.0),))
    curve = ElboPlot("objective (nats)", "score (nats)")
    made = export.figures_html(run(), PageViews("", curve, live=[features], result=[table]))
    assert made.count('data-root-id="') == 2
    assert "Most sensitive to" in made
    assert "alert(1)</script>" not in made
    own = re.sub(r"<script[^>]*>.*?</script>", "", made, flags=re.S)
    assert not re.search(r"""(src|href)=["']https?:""", own)
    assert "<script src" not in made
    assert "<link" not in made


def test_exporting_leaves_the_page_its_figures() -> None:
    from bokeh.document import Document

    features = FeaturePlot()
    features.show(np.array([1.0]), ["u"])
    page = Document()
    page.add_root(features.figures[0])
    curve = ElboPlot("objective (nats)", "score (nats)")
    export.figures_html(run(), PageViews("", curve, live=[features]))
    assert features.figures[0].document is page


def test_figures_stand_alone_whatever_document_is_current() -> None:
    from bokeh.document import Document
    from bokeh.io.doc import patch_curdoc

    features = FeaturePlot()
    features.show(np.array([1.0]), ["u"])
    views = PageViews("", ElboPlot("objective (nats)", "score (nats)"), live=[features])
    gone, theirs = Document(), Document()
    theirs.js_on_event("document_ready", CustomJS(code="theirs()"))
    with patch_curdoc(gone):
        del gone  # so that `curdoc()` raises
        assert "data-root-id" in export.figures_html(run(), views)
    with patch_curdoc(theirs):
        assert "theirs()" not in export.figures_html(run(), views)


@pytest.mark.slow
def test_exporting_imports_no_torch() -> None:
    import subprocess

    code = "import sys, scant_dashboard.export; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
