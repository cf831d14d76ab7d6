"""Reading and display of the results of `scant reproduce` as text and HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from functools import cache
from html import escape
from io import StringIO
from typing import Any

import pandas as pd

from scant.html_table import STYLE as TABLES
from scant.html_table import html_table
from scant.package_data import package_file
from scant.reproduce.results import COLUMNS, ORIGIN, THEIRS, beside
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
    "z-score",
    "relevant basis functions",
)  # metrics for which smaller is better
EXPLAINED = (
    "Each cell gives our mean and, after ±, the deviation over the repeats; under it the value "
    "that the publication prints for the same method and metric. Where the rows are the "
    "publication's own, ours is bold if it is at least as good; values on a stand-in do not "
    "compare with published ones, the order of the methods does. What we measured with other "
    "programs stands under ours, too, and is never counted as published. Seconds are processor "
    "time of the run that a value comes from, often of several methods. A table that was "
    "interrupted lacks methods or repeats; each row says how many there were."
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


@cache
def read(study: str) -> pd.DataFrame | None:
    """Read the stored results of a study, beside what is published; None if there are none.

    The table is read once and shared: copy it before you change it.
    """
    file = package_file("results", f"{study}.csv")
    if not file.is_file():
        return None
    rows = pd.read_csv(StringIO(file.read_text(encoding="utf-8")))
    rows = beside(rows[rows["repeats"] > 0].drop(columns=THEIRS))
    rows[ORIGIN] = rows[ORIGIN].ffill()
    return rows.astype({"quick": bool})[COLUMNS]


def differ(difference: float, *deviations: float) -> bool:
    """Return True if a difference is more than chance explains.

    Chance explains a difference of two deviations, which about one in twenty exceeds. The parts of
    the deviation are taken as independent, which is on the safe side where repeats share splits.

    Args:
        difference: Difference of two scores.
        deviations: Deviations of the two; NaN for none.
    """
    spread = math.hypot(*(0.0 if math.isnan(s) else s for s in deviations))
    return abs(difference) > 2 * spread


def at_least_as_good(metric: str, ours: float, theirs: float) -> bool:
    """Return True if a score is at least as good as the published one; False if one is NaN."""
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
    hours = float(rows.drop_duplicates("study")["study_hours"].sum())
    took = f" It took {_duration(hours)} of processor time." if hours else ""
    machines = "; ".join(sorted(set(rows["machine"])))
    return f"Measured {when} with {with_} on {machines}.{took}{short}"


def _duration(hours: float) -> str:
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:.1f} h"


def as_tables(rows: pd.DataFrame, level: int = 3) -> str:
    """Format the results of a study as HTML, with a heading and a table for each experiment.

    Args:
        rows: Results of one study.
        level: Level of the headings.
    """
    return "".join(
        f"<h{level}>{escape(str(experiment))}</h{level}><p class='quiet'>{_about(part)}</p>"
        f"{_table(part)}{_programs(part)}"
        for experiment, part in rows.groupby("experiment", sort=False)
    )


def _about(part: pd.DataFrame) -> str:
    """Say whose rows an experiment has, what varies, and which table prints its scores."""
    where = "; ".join(dict.fromkeys(part["where"].dropna()))
    message = f"Data: {part['data'].iloc[0]}. Between repeats: {part['varies'].iloc[0]}."
    return escape(message + (f" Published in {where}." if where else ""))


def _programs(part: pd.DataFrame) -> str:
    """Name the programs whose scores stand beside ours."""
    programs = dict.fromkeys(part["theirs_by"].dropna())
    if not programs:
        return ""
    return f"<p class='quiet'>Other programs, run by us: {escape('; '.join(programs))}.</p>"


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


def _cell(row: Any) -> str:
    message = "not here" if math.isnan(row.ours) else _with_spread(row.ours, row.spread)
    same = STAND_IN not in row.data
    if same and at_least_as_good(row.metric, row.ours, row.published):
        message = f"<strong>{message}</strong>"
    if not math.isnan(row.published):
        published = _with_spread(row.published, row.published_spread)
        message += f"<br><span class='quiet'>published {published}</span>"
    if not math.isnan(row.theirs):
        message += f"<br><span class='quiet'>other program {row.theirs:.4g}</span>"
    return message


def _with_spread(value: float, spread: float) -> str:
    return f"{value:.4g}" + ("" if math.isnan(spread) else f" ± {spread:.2g}")


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
