"""Reading and display of the results of `scant reproduce` as text and HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from html import escape
from io import StringIO

import pandas as pd

from scant.html_table import STYLE as TABLES
from scant.html_table import html_table
from scant.package_data import package_file
from scant.studies import entry

STAND_IN = "stand-in for"
LOWER = (
    "SMSE",
    "SNLP",
    "NMSE",
    "NLPD",
    "RMSE",
    "seconds",
    "p ",
)  # metrics for which smaller is better
EXPLAINED = (
    "Each cell gives our mean and, after ±, the deviation over the repeats; under it what was "
    "published. Where the rows are the publication's own, ours is bold if it is at least as good; "
    "figures from a stand-in do not compare with published ones, the order of the methods does. "
    "Seconds are processor time of the run that a figure comes from, often of several methods. "
    "A table that was broken off lacks methods or repeats; each row says how many there were."
)
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem; border-bottom: 1px solid #ddd;
  vertical-align: top; }
.number { text-align: right; }
.quiet { color: #595959; }
"""


def read(study: str) -> pd.DataFrame | None:
    """Read the stored results of a study; None if there are none."""
    file = package_file("results", f"{study}.csv")
    return pd.read_csv(StringIO(file.read_text(encoding="utf-8"))) if file.is_file() else None


def at_least_as_good(metric: str, ours: float, theirs: float) -> bool:
    """Return True if a score is at least as good as the published one."""
    return ours <= theirs if metric.startswith(LOWER) else ours >= theirs


def origin(rows: pd.DataFrame) -> str:
    """Describe date, versions and hardware of the results."""
    days = sorted({date.fromisoformat(day) for day in rows["date"]})
    when = " to ".join(f"{day.day} {day:%B %Y}" for day in dict.fromkeys((days[0], days[-1])))
    with_ = ", ".join(
        f"{name} {' and '.join(sorted(set(map(str, rows[key]))))}"
        for name, key in (("Scant", "scant"), ("Python", "python"), ("PyTorch", "torch"),
                          ("GPyTorch", "gpytorch"))
    )  # fmt: skip
    short = " Smaller than the publications' (--quick)." if rows["quick"].any() else ""
    return f"Measured {when} with {with_} on {'; '.join(sorted(set(rows['machine'])))}.{short}"


def as_tables(rows: pd.DataFrame, level: int = 3) -> str:
    """Format the results of a study as HTML, with a heading and a table for each experiment.

    Args:
        rows: Results of one study.
        level: Level of the headings.
    """
    return "".join(
        f"<h{level}>{escape(str(experiment))}</h{level}><p class='quiet'>Data: "
        f"{escape(str(part['data'].iloc[0]))}.</p>{_table(part)}"
        for experiment, part in rows.groupby("experiment", sort=False)
    )


def _table(part: pd.DataFrame) -> str:
    """Return a table with rows of methods and columns of metrics, repeats and CPU seconds."""
    metrics = list(dict.fromkeys(part["metric"]))
    cells = {(row.method, row.metric): _cell(row) for row in part.itertuples()}
    rows = []
    for method, own in part.groupby("method", sort=False):
        seconds = own["seconds"].mean()
        last = [f"{int(own['repeats'].max())}", "" if math.isnan(seconds) else f"{seconds:.0f}"]
        figures = [cells.get((method, metric), "") for metric in metrics]
        rows.append((escape(str(method)), [*figures, *last]))
    return html_table([*map(escape, metrics), "repeats", "seconds of a run"], rows, "method")


def _cell(row: object) -> str:
    get = lambda name: float(getattr(row, name))  # noqa: E731
    ours, spread, theirs = get("ours"), get("spread"), get("published")
    metric, is_published = str(getattr(row, "metric", "")), not math.isnan(theirs)
    message = "not here" if math.isnan(ours) else f"{ours:.4g}"
    if not math.isnan(spread):
        message += f" ± {spread:.2g}"
    same = STAND_IN not in str(getattr(row, "data", ""))
    if is_published and same and not math.isnan(ours) and at_least_as_good(metric, ours, theirs):
        message = f"<strong>{message}</strong>"
    return message + (
        f"<br><span class='quiet'>published {theirs:.4g}</span>" if is_published else ""
    )


def as_page(rows: pd.DataFrame, faults: Mapping[str, str]) -> str:
    """Format all results as a self-contained HTML page.

    Args:
        rows: Results of any studies.
        faults: Messages on failures by study.
    """
    parts = []
    for study in dict.fromkeys([*rows["study"], *faults]):
        own = rows[rows["study"] == study]
        parts.append(f"<h2>{escape(entry(study).title)}</h2>")
        if study in faults:
            parts.append(f"<p role='alert'>Not finished: {escape(faults[study])}</p>")
        parts.append(as_tables(own))
    message = escape(origin(rows)) if len(rows) else "Nothing was measured."
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'><title>Scant: ours beside theirs"
        f"</title><style>{STYLE}{TABLES}</style></head><body><h1>Ours beside theirs</h1>"
        f"<p>{message}</p>"
        f"<p class='quiet'>{EXPLAINED}</p>{''.join(parts)}</body></html>\n"
    )
