"""Model cards with the data, scores, limits and reproduction of a run.

Sections follow Mitchell et al. (2019), "Model cards for model reporting". Cards are written in
Markdown and converted to HTML.
"""

from __future__ import annotations

import math
import platform
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from typing import Any

import pandas as pd

from scant import verdict
from scant.events import Metric, Report
from scant.studies import Entry, auto
from scant.tables.levels import LEVELS, names
from scant.tables.schema import READING

COLUMNS = 60  # maximum number of listed columns
LIBRARIES = ("torch", "gpytorch", "scikit-learn", "numpy", "scipy", "pandas")
CALIBRATED = ("coverage", "ECE", "p of D-calibration", "observed averages")
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #1d2026; background: #fff }
h1 { font-weight: 600; font-size: 1.5rem } h2 { font-weight: 600; font-size: 1.15rem }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; border-bottom: 1px solid #dcdfe4 }
pre { overflow-x: auto; background: #f4f5f7; padding: .8rem }
"""


@dataclass(frozen=True)
class Card:
    """Content of a model card.

    Attributes:
        entry: Study.
        settings: All settings of the run.
        data: Data set as on the command line.
        report: Report of the run.
        state: Final state.
        reason: Reason for the final state.
        metadata: Metadata of the `Started` event.
        table: Training table; None if not available.
        table_hash: SHA-256 of the table; "" if unknown.
        model_hash: SHA-256 of the model file.
        scant_version: Version of this package.
        device: Device of training.
        files: Names of several training files.
    """

    entry: Entry
    settings: Mapping[str, Any]
    data: str
    report: Report
    state: str
    reason: str
    metadata: Mapping[str, Any]
    table: pd.DataFrame | None
    table_hash: str
    model_hash: str
    scant_version: str
    device: str
    files: tuple[str, ...] = ()


def markdown(card: Card) -> str:
    """Format the card as Markdown with escaped user text."""
    sections = {
        "Summary": _summary(card),
        "Data": _data(card),
        "Split": _split(card),
        "Scores on held-out rows": _scores(card, calibrated=False),
        "Calibration": _scores(card, calibrated=True),
        "Other methods on the same rows": _rivals(card),
        "Notes": [f"- {_plain(note)}" for note in card.report.notes],
        "Limits": [f"- {_plain(limit)}" for limit in (*card.report.limits, *card.entry.limits)],
        "Settings": _settings(card),
        "How to reproduce": _reproduce(card),
        "Versions and hashes": _versions(card),
    }
    parts = [f"# Model card: {_plain(card.entry.title)}"]
    for title, lines in sections.items():
        if lines:
            parts += [f"## {title}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def page(source: str) -> str:
    """Convert the Markdown of a card to a self-contained HTML page."""
    from markdown import markdown as as_html

    title = source.partition("\n")[0].removeprefix("# ")
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
        f"content='width=device-width'><title>{title}</title><style>{STYLE}</style></head><body>"
        f"{as_html(source, extensions=['tables', 'sane_lists'])}</body></html>\n"
    )


def _summary(card: Card) -> list[str]:
    result = card.report.verdict or verdict.of_metrics(card.report.metrics)
    lines = [f"- State: {_plain(card.state)}. {_plain(card.reason)}"]
    lines += [f"- {_plain(sentence)}" for sentence in result.sentences()]
    lines.append(f"- Question: {_plain(card.entry.question)}")
    lines += [f"- Method: {_plain(cited.text)}" for cited in card.entry.citations]
    return lines


def _data(card: Card) -> list[str]:
    lines = [f"Fitted to {_plain(card.data)}."]
    frame = card.table
    if frame is None:
        return lines
    missing = int(frame.isna().to_numpy().sum())
    lines[0] += (
        f" {len(frame):,} rows, {frame.shape[1]:,} columns; {missing:,} of {frame.size:,} cells "
        "are missing."
    )
    lines.append("")
    reading = card.metadata.get(READING, {})
    mapping = reading.get("mapping", {})
    headers = {to: f"{to} (in the file: {header})" for header, to in mapping.items()}
    lines += _rows(
        ("column", "type", "values", "missing", "range or levels"),
        (_column(headers.get(str(n), str(n)), frame[n]) for n in list(frame)[:COLUMNS]),
    )
    if frame.shape[1] > COLUMNS:
        lines += ["", f"{frame.shape[1] - COLUMNS:,} more columns are not listed."]
    for column, levels in reading.get(LEVELS, {}).items():
        inputs = ", ".join(names(column, levels))
        lines += ["", f"The text column {_plain(column)} is learned as {_plain(inputs)} (0 or 1)."]
    return lines


def _column(name: str, values: pd.Series[Any]) -> tuple[str, ...]:
    present = values.dropna()
    if pd.api.types.is_numeric_dtype(values) and len(present):
        summary = f"{present.min():.6g} to {present.max():.6g}, median {present.median():.6g}"
    else:
        levels = present.astype(str).value_counts()
        summary = ", ".join(f"{str(level)[:40]} ({n:,})" for level, n in levels.head(6).items())
        summary += f", {len(levels) - 6:,} more" if len(levels) > 6 else ""
    return name, str(values.dtype), f"{len(present):,}", f"{len(values) - len(present):,}", summary


def _split(card: Card) -> list[str]:
    counts = dict(card.metadata.get("rows", {}))
    result = card.report.verdict
    if not counts and result is not None and result.tested:
        counts = {"training": result.trained, "test": result.tested}
    return [f"- {_plain(name)}: {int(count):,} rows" for name, count in counts.items()]


def _scores(card: Card, calibrated: bool) -> list[str]:
    metrics = [
        m
        for m in card.report.metrics
        if m.source == "run" and m.name.startswith(CALIBRATED) is calibrated
    ]
    return _rows(
        ("score", "value", "90% interval"), ((m.name, _of(m), _interval(m)) for m in metrics)
    )


def _of(metric: Metric) -> str:
    return f"{metric.value:.4g}"


def _interval(metric: Metric) -> str:
    """Return the normal 90% interval of a score; "" without a standard deviation."""
    if metric.spread is None or not math.isfinite(metric.spread):
        return ""
    low, high = (metric.value + sign * 1.645 * metric.spread for sign in (-1, 1))
    return f"{low:.4g} to {high:.4g}"


def _rivals(card: Card) -> list[str]:
    others = [m for m in card.report.metrics if m.source in ("baseline", "rival")]
    if not others:
        return []
    shared = {m.name for m in others}
    names = [m.name for m in card.report.metrics if m.source == "run" and m.name in shared]
    seconds = card.report.verdict.seconds if card.report.verdict is not None else {}
    cells = {(m.method, m.name): _of(m) for m in card.report.metrics if m.source != "published"}
    methods = list(dict.fromkeys([verdict.OURS, *(m.method for m in others)]))
    return _rows(
        ("method", *names, "seconds"),
        (
            (
                method,
                *(cells.get((method, name), "") for name in names),
                f"{seconds[method]:.2g}" if method in seconds else "",
            )
            for method in methods
        ),
    )


def _settings(card: Card) -> list[str]:
    parameters = card.entry.settings.param
    chosen = auto.read(card.metadata)
    return _rows(
        ("setting", "value", "default", "meaning"),
        (
            (
                name,
                f"{chosen[name].value} (chosen: {chosen[name].why})" if name in chosen else value,
                "" if value == parameters[name].default else parameters[name].default,
                " ".join((parameters[name].doc or "").split()),
            )
            for name, value in card.settings.items()
            if name in parameters
        ),
    )


def _reproduce(card: Card) -> list[str]:
    parameters = card.entry.settings.param
    changed = {
        k: v for k, v in card.settings.items() if k in parameters and v != parameters[k].default
    }
    command = ["scant", "fit", card.entry.name, *(card.files or ("--data", card.data))]
    for name, value in changed.items():
        command += ["--set", f"{name}={value}"]
    values = "".join(f", {name}={value!r}" for name, value in changed.items())
    python = f"scant.fit({card.entry.name!r}, {list(card.files) or card.data!r}{values})"
    lines = [f"    {_line(' '.join(shlex.quote(str(w)) for w in command))}", f"    {_line(python)}"]
    result = card.report.verdict
    if result is not None and result.code:
        method = _plain(result.other.rival)
        lines += ["", f"The best other method, {method}, with X, y and X_new of your own:", ""]
        lines += [f"    {line}" for line in result.code.splitlines()]
    return lines


def _versions(card: Card) -> list[str]:
    pairs = [
        ("scant", card.scant_version),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in LIBRARIES),
        ("device", card.device),
        ("SHA-256 of the model", card.model_hash),
        ("SHA-256 of the table", card.table_hash),
    ]
    return [f"- {name}: {_plain(value)}" for name, value in pairs if value]


def _rows(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the lines of a Markdown table; none if it has no rows."""
    body = [f"| {' | '.join(_plain(cell) for cell in row)} |" for row in rows]
    if not body:
        return []
    return [f"| {' | '.join(map(_plain, head))} |", f"|{' --- |' * len(head)}", *body]


def _line(text: str) -> str:
    return " ".join(text.splitlines())


def _plain(value: Any) -> str:
    """Return text on one line with markup and Markdown escaped."""
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", escape(_line(str(value)), quote=False))
