"""Downloads of a run: numbers, settings, figures, and code that repeats it.

All functions take the run's `live.RunState`; their results need no server. Notebook and script use
`scant.fit`, and HTML figures contain their scripts. PNG and SVG files of single figures are made in
the browser by the figures' own tools (`plots.theme`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from scant.errors import BadInput, NotFound
from scant.store import Store
from scant.studies import entry
from scant.training.model_card import Card, markdown, page
from scant.training.result_folder import CARD, MODEL, SETTINGS
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.translate import spoken, tr

NEEDS = (
    "It needs `pip install scant-gp` (until it is published, a wheel that `pip wheel --no-deps .` "
    "makes in a checkout of Scant)."
)
TABLE = "table.csv"  # file name of a visitor's table


def settings_json(run: RunState) -> str:
    """Return the settings as written by `scant fit`, with the hash of the data."""
    record = run.record
    record = {
        "study": record.study,
        "settings": dict(record.settings),
        "data": record.data,
        "data_hash": record.data_hash,
        "version": record.version,
    }
    return json.dumps(record, indent=2) + "\n"


def metrics_csv(run: RunState) -> str:
    """Return the report's metrics, one per row: method, metric, value, spread, source.

    Raises:
        BadInput: The run has no report.
    """
    return _csv(pd.DataFrame([vars(m) for m in _report(run).metrics]))


def model_card(run: RunState, table: pd.DataFrame | None, model: bytes | None) -> str:
    """Return the run's model card in Markdown (`training.model_card`).

    Args:
        run: A finished run.
        table: Its table, if the store has it.
        model: Its fitted model.

    Raises:
        BadInput: The run has no report.
    """
    record = run.record
    return markdown(
        Card(
            entry=entry(record.study),
            settings=record.settings,
            data=TABLE if record.data.startswith("upload:") else record.data,
            report=_report(run),
            state=run.state.value,
            reason=run.reason,
            metadata=run.metadata,
            table=table,
            table_hash=record.data_hash,
            model_hash=hashlib.sha256(model).hexdigest() if model else "",
            scant_version=record.version,
            device=run.device,
        )
    )


def card_of(run: RunState, store: Store) -> str:
    """Return the run's model card in Markdown, reading table and model from the store."""
    table, data = None, run.record.data
    if data.startswith("upload:"):
        with suppress(NotFound):  # the visitor has deleted it
            table = store.upload_table(data.removeprefix("upload:"))
    return model_card(run, table, store.model(run.id))


def archive(run: RunState, store: Store, replay: bytes) -> bytes:
    """Return a ZIP of all files of a run; `scant.load` reads the unpacked folder.

    Args:
        run: A finished run; files of a missing result or deleted table are left out.
        store: Store that holds it.
        replay: The replay as an HTML file.
    """
    made: dict[str, str | bytes | None] = {
        "replay.html": replay,
        SETTINGS: settings_json(run),
        "run.ipynb": notebook(run),
        "run.py": script(run),
        MODEL: store.model(run.id),
    }
    if run.report is not None:
        card = card_of(run, store)
        made |= {"metrics.csv": metrics_csv(run), f"{CARD}.md": card, f"{CARD}.html": page(card)}
    if run.record.data.startswith("upload:"):
        with suppress(NotFound):
            frame = store.upload_table(run.record.data.removeprefix("upload:"))
            made[TABLE] = table_csv(frame)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in made.items():
            if content is not None:
                file.writestr(name, content)
    return buffer.getvalue()


def table_csv(frame: pd.DataFrame) -> bytes:
    """Return a visitor's table as the run used it, for notebook and script.

    Numbers round-trip exactly; text that a spreadsheet would execute is quoted.
    """
    import pyarrow as pa
    from pyarrow import csv

    from scant.tables.csv_safety import safe_for_spreadsheet

    text = frame.select_dtypes(exclude="number")
    position = {name: i for i, name in enumerate(text)}
    safe = safe_for_spreadsheet(frame[list(text)])
    # float32 would be written with too few digits for float64.
    columns = {
        str(name): pa.array(safe.iloc[:, position[name]], pa.string(), from_pandas=True)
        if name in text
        else pa.array(frame[name].to_numpy(np.float64), from_pandas=True)
        for name in frame
    }
    headers = safe_for_spreadsheet(pd.DataFrame(columns=list(columns)))
    out = pa.BufferOutputStream()
    csv.write_csv(pa.table(list(columns.values()), names=[str(c) for c in headers]), out)
    return bytes(out.getvalue())


def script(run: RunState) -> str:
    """Return a script that trains the same run and prints its metrics."""
    parts = [f'"""{_title(run)}"""', _imports(run), _data(run), _fit(run), _PRINT]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def notebook(run: RunState) -> bytes:
    """Return a notebook that repeats the run, with the page's metrics next to the new ones."""
    import nbformat

    v4 = nbformat.v4
    study = entry(run.record.study)
    cited = "\n".join(f"- {c.text}" for c in study.citations)
    head = f"# {_title(run)}\n\n{study.question}\n\n{cited}\n\n{NEEDS}"
    cells = [
        v4.new_markdown_cell(head),
        v4.new_code_cell(_imports(run)),
        v4.new_markdown_cell("## Data"),
        v4.new_code_cell(_data(run).strip()),
        v4.new_markdown_cell("## Training\n\nAll settings, the seed among them, as in the run."),
        v4.new_code_cell(_fit(run).strip()),
        v4.new_markdown_cell("## Figures\n\nMethods down, metrics across."),
        v4.new_code_cell(_SHOW.strip()),
    ]
    if run.report is not None:
        metrics = {m.name: m.value for m in run.report.metrics if m.source == "run"}
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        message = f"As the page showed them: {json.dumps(finite)}"
        cells.append(v4.new_markdown_cell(message))
    cells.append(v4.new_code_cell("fit.plot()"))
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"  # so that equal runs give equal files
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    return str(nbformat.writes(made)).encode()


def figures_html(run: RunState, views: PageViews) -> str:
    """Return all visible figures with their text alternatives as a self-contained page.

    The figures are interactive: zoom, hover, and tools to save them as PNG or SVG.
    """
    applicable = views.applicable(run)
    figures = [(view, f) for view in applicable for f in getattr(view, "figures", ())]
    code, divs = embedded([_copy(figure) for _, figure in figures])
    body = ""
    for view in applicable:
        plots = "".join(div for (owner, _), div in zip(figures, divs) if owner is view)
        table = getattr(getattr(view, "panel", None), "object", "")
        inner = plots or (table if isinstance(table, str) else "")
        body += (
            f"<section><h2>{escape(tr(view.title))}</h2><figure>{inner}"
            f"<figcaption>{escape(tr(view.alt))}</figcaption></figure></section>"
        )
    return standing_alone(_title(run), body, code)


def embedded(figures: list[Any]) -> tuple[str, Sequence[str]]:
    """Return the script that draws figures outside the dashboard, and an element for each."""
    from bokeh.document import Document
    from bokeh.embed import components
    from bokeh.io.doc import patch_curdoc

    if not figures:
        return "", ()
    own = Document()  # `components` would take over the current document's callbacks
    with patch_curdoc(own):
        result: Any = components(figures, wrap_script=True)
    code, elements = result
    return code, elements


def standing_alone(title: str, body: str, code: str) -> str:
    """Return a self-contained HTML page.

    Args:
        title: Title as plain text.
        body: HTML below the heading.
        code: Script of the Bokeh figures in `body`, with its tags.
    """
    from bokeh.util.paths import static_path

    # Bokeh's `Resources` would add a link to every extension registered by Panel.
    runtime = (static_path() / "js" / "bokeh.min.js").read_text(encoding="utf-8")
    title = escape(title)
    return (
        f"<!DOCTYPE html><html lang='{spoken()}'><head><meta charset='utf-8'><title>{title}</title>"
        f"<style>{_STYLE}</style><script>{runtime}</script></head><body><h1>{title}</h1>{body}{code}</body></html>"
    )


def _copy(figure: Any) -> Any:
    """Copy a figure, because the original belongs to the document of the visitor's session."""
    from bokeh.core.serialization import Deserializer, Serializer

    return Deserializer().deserialize(Serializer().serialize(figure))


def _report(run: RunState) -> Any:
    if run.report is None:
        raise BadInput(
            f"This run is {run.state} and has no result yet; download it once it has ended."
        )
    return run.report


def _csv(table: pd.DataFrame) -> str:
    from scant.tables.csv_safety import safe_for_spreadsheet

    return str(safe_for_spreadsheet(table).to_csv(index=False))


def _title(run: RunState) -> str:
    return f"Scant: {run.name or entry(run.record.study).title.lower()}, run {run.id}"


def _imports(run: RunState) -> str:
    own = run.record.data.startswith("upload:")
    return (
        ("from pathlib import Path\n\n" if own else "")
        + "import pandas as pd\n\nimport scant\n"
        + (
            "from scant.studies import entry\nfrom scant.tables.read import read_table\n"
            if own
            else ""
        )
        + "from scant.events import Finished, Progress"
    )


def _data(run: RunState) -> str:
    """Return the code that loads the data; an upload is read from the downloaded table."""
    data, digest = run.record.data, run.record.data_hash
    if data == "demo":
        return "DATA = None  # the demonstration, generated from the settings"
    if not data.startswith("upload:"):
        return f"DATA = {data!r}  # fetched at first use; SHA-256 of the run's table: {digest}"
    columns = ", ".join(str(c) for c in run.metadata.get("features", ()))
    study = entry(run.record.study)
    setting = study.table.target_setting
    target = f", target={run.record.settings[setting]!r}" if setting else ""
    limit = ", limit_bytes=10**10" if study.table.images else ""  # pixels take room
    return f"""
# The run's own table: "Table" under Keep on its page gives it. Put it beside this file.
# For your original file give its path, and its names of the columns on the left of COLUMNS.
# The run was trained on the features {json.dumps(columns)}; SHA-256 of its table: {digest}.
PATH = Path({TABLE!r})
COLUMNS: dict[str, str] = {{}}
SCHEMA = entry({run.record.study!r}).table
DATA = read_table(PATH, SCHEMA, mapping=COLUMNS{target}{limit}).frame
"""


def _fit(run: RunState) -> str:
    values = "".join(f"    {k}={v!r},\n" for k, v in run.record.settings.items())
    return f"""
SETTINGS = dict(
{values})

fit = scant.fit({run.record.study!r}, data=DATA, **SETTINGS)
trace = []
for event in fit:
    if isinstance(event, Progress):
        trace.append(event)
    if isinstance(event, Finished):
        end = event

print(end.state, "-", end.reason)
metrics = pd.DataFrame([vars(m) for m in end.report.metrics])
"""


_SHOW = """
metrics.pivot_table(index=["source", "method"], columns="name", values="value", sort=False)
"""

_PRINT = """
print(metrics.to_string(index=False))
# `fit.study` is fitted now: scant.predict(fit.study, table), fit.study.explore(question, ...).
"""

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #1d2026; background: #fff }
h1 { font-weight: 600; font-size: 1.4rem } h2 { font-weight: 600; font-size: 1.1rem }
figure { margin: 0 0 2rem } figcaption { color: #5b616c; margin-top: .5rem }
table { border-collapse: collapse } th, td { padding: .2rem .8rem; text-align: right }
th[scope=row], th[scope=rowgroup] { text-align: left }
"""
