"""Tables of all scores of point predictions and densities, by bin and by missing bands.

`Bin by bin` and `Inputs missing` plot some of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float

from scant.events import Metric, Report
from scant.html_table import html_table
from scant_dashboard.pages.redshift.missing import n_rows, split_of
from scant_dashboard.pages.redshift.target import is_redshift, is_relative
from scant_dashboard.plots.base import NOTHING, TARGETS, DataView, View, target_name
from scant_dashboard.plots.table import figure, meanings, symbol
from scant_dashboard.template import text
from scant_dashboard.translate import later, ntr, tr

TITLE = later("Scores by bin and by missing inputs")
DENSITIES = (later("mean log-likelihood"), "CRPS", later("CDE loss"), "PIT-KS")
FAR = (later("outliers beyond 0.15"), later("outliers beyond 3 sigma"))
OF_BINS = (later("bias"), "sigma_MAD", later("outlier rate"), *DENSITIES, *FAR)
OF_MISSING = ("RMSE", "sigma_MAD", FAR[0], *DENSITIES, OF_BINS[0], FAR[1])
READ = ("RMSE", "sigma_MAD", "CRPS", "PIT-KS")  # also in the text alternative
SHARES = ("outlier rate", *FAR)  # in percent
UNKNOWN_MISSING = later(
    "An earlier version made this run; it has no other scores by missing inputs."
)
UNKNOWN_BINS = later("An earlier version made this run; it has no other scores by bin.")
BINS = later("Bins of equal width; those with fewer than twenty held-out rows are left out.")
LACKED = later(
    "The held-out rows as they are in the table, by the inputs that they lack; patterns of fewer "
    "than twenty rows are left out."
)
PART = later("The inputs were removed at random, with their errors.")

Table = Float[np.ndarray, "_ q"]


class ScoreTables(View):
    """Three tables with the interface of a plot."""

    def __init__(self) -> None:
        self.title, self.alt = TITLE, NOTHING
        self.figures: tuple[object, ...] = ()
        self.panel = text("")

    def show(
        self,
        bins: Float[np.ndarray, "6 q"],
        bin_scores: Float[np.ndarray, "_ q"] | None,
        missing: Table,
        missing_scores: Float[np.ndarray, "_ k"] | None,
        pattern_scores: Table | None = None,
        bands: Sequence[str] = (),
        target: str = "z",
        n_missing: int = 0,
        redshift: bool = True,
    ) -> None:
        """Show arrays of the report; None if an old report lacks them.

        Args:
            bins: Point predictions by bin: lower edge, upper edge, scores, number of rows.
            bin_scores: Further scores in the same bins: lower edge, upper edge, scores.
            missing: Number of missing bands, RMSE, and rows shown elsewhere.
            missing_scores: Number of missing bands, and all other scores.
            pattern_scores: Patterns of missing bands in the held-out rows: 1 for each band that is
                missing, else 0; number of rows, scores.
            bands: Names of the bands.
            target: Name of the learned column.
            n_missing: Number of rows from which bands were removed; 0 if unknown.
            redshift: Whether to show scores relative to 1 + z.
        """
        low, high, *points, rows = bins
        of_bins = np.array([*points, *([] if bin_scores is None else bin_scores[2:])])
        count, rmse = missing[:2]
        of_missing = np.array([rmse, *([] if missing_scores is None else missing_scores[1:])])
        ranges = [tr("{low:.3g} to {high:.3g}", low=a, high=b) for a, b in zip(low, high)]
        left = [_bands(int(c)) for c in count]
        first, of_bins = _applicable(OF_BINS, of_bins, redshift)
        second, of_missing = _applicable(OF_MISSING, of_missing, redshift)
        lacking = _table(tr("inputs missing"), second, left, of_missing) + _note(
            f"{split_of(n_missing)} {tr(PART)}"
        )
        if missing_scores is None:
            lacking += _note(tr(UNKNOWN_MISSING))
        sized = [tr("{n:,.0f}", n=n) for n in rows]
        patterns = "" if pattern_scores is None else _by_pattern(pattern_scores, bands, redshift)
        named = tr("true {target}", target=target)
        binned = _table(named, first, ranges, of_bins, sized) + _note(tr(BINS))
        if bin_scores is None:
            binned += _note(tr(UNKNOWN_BINS))
        metrics = [Metric("this run", name, 0.0) for name in dict.fromkeys((*second, *first))]
        self.panel.object = (
            f"<details open><summary>{tr('By the number of missing inputs')}</summary>{lacking}"
            f"</details>{patterns}"
            f"<details><summary>{escape(tr('By the true {target}', target=target))}"
            f"</summary>{binned}</details>"
            f"{meanings(metrics)}"
        )
        self.alt = f"{_by_missing(second, of_missing, left)} {_by_bin(first, of_bins, target)}"

    def clear(self) -> None:
        """Remove the tables."""
        self.panel.object, self.alt = "", NOTHING


def score_tables() -> DataView:
    """Return the tables as a view of a page."""

    def feed(data: Report, metadata: Mapping[str, Any]) -> None:
        a = data.arrays
        arrays = a["bins"], a.get("bin_scores"), a["missing"], a.get("missing_scores")
        target = target_name(metadata) or TARGETS[0]
        bands = [str(band) for band in metadata.get("bands", ())]
        patterns = a.get("pattern_scores")
        tables.show(*arrays, patterns, bands, target, n_rows(data), is_redshift(metadata))

    tables = ScoreTables()
    return DataView(tables, feed)


def _applicable(names: Sequence[str], scores: Table, redshift: bool) -> tuple[list[str], Table]:
    """Return the scores that have a meaning for the target, with their names."""
    at = [i for i in range(len(scores)) if redshift or not is_relative(names[i])]
    return [names[i] for i in at], scores[at]


def _by_pattern(patterns: Table, bands: Sequence[str], redshift: bool) -> str:
    """Return a table by the bands that rows lack; "" if no pattern of the table lacks one."""
    missing, rows = patterns[: len(bands)] > 0, patterns[len(bands)]
    if not missing.any():
        return ""
    labels = [
        ", ".join(b for b, m in zip(bands, column) if m) or tr("none") for column in missing.T
    ]
    sized = [tr("{n:,.0f}", n=n) for n in rows]
    names, scores = _applicable(OF_MISSING, patterns[len(bands) + 1 :], redshift)
    table = _table(tr("inputs missing"), names, labels, scores, sized)
    return (
        f"<details><summary>{tr('By the inputs that rows lack')}</summary>{table}"
        f"{_note(tr(LACKED))}</details>"
    )


def _table(
    corner: str,
    names: Sequence[str],
    labels: Sequence[str],
    scores: Table,
    rows: Sequence[str] = (),
) -> str:
    """Return a table with one column per score, preceded by `rows`."""
    heads = [*([tr("rows")] if rows else []), *map(heading, names)]
    columns = [[format_score(name, v) for v in values] for name, values in zip(names, scores)]
    cells = zip(*([rows] if rows else []), *columns)
    lines = [(escape(label), cell) for label, cell in zip(labels, cells)]
    return html_table(heads, lines, escape(corner))


def _by_missing(names: Sequence[str], scores: Table, left: Sequence[str]) -> str:
    """Describe some scores with no and with the most bands missing."""
    if len(left) < 2:
        return tr("No input can be missing.")
    parts = [_reading(name, v[0], v[-1]) for name, v in zip(names, scores) if name in READ]
    return tr("From {first} to {last} missing: {scores}.", first=left[0], last=left[-1],
              scores=", ".join(parts))  # fmt: skip


def _by_bin(names: Sequence[str], scores: Table, target: str) -> str:
    """Describe the minimum and maximum of some scores over the bins."""
    if not scores.shape[1]:
        return tr("No bin has the twenty held-out rows that scores need.")
    parts = [_reading(name, v.min(), v.max()) for name, v in zip(names, scores) if name in READ]
    return ntr("In {n} bin of the true {target}: {scores}.",
               "In {n} bins of the true {target}: {scores}.", scores.shape[1], target=target,
               scores=", ".join(parts))  # fmt: skip


def _reading(name: str, one: float, other: float) -> str:
    return tr("{score} {one} to {other}", score=tr(name).replace("sigma", "σ"),
              one=format_score(name, one), other=format_score(name, other))  # fmt: skip


def _bands(count: int) -> str:
    return ntr("{n} input", "{n} inputs", count) if count else tr("none")


def heading(name: str) -> str:
    """Return the head of a column of scores as HTML, with the unit of shares."""
    return symbol(tr(name)) + (" (%)" if name in SHARES else "")


def format_score(name: str, value: float) -> str:
    """Write a score with four significant digits; shares in percent."""
    if name in SHARES:
        return tr("{value:.1f}", value=100 * value)
    return figure(Metric("this run", name, float(value)))


def _note(sentence: str) -> str:
    return f"<p class='quiet'>{sentence}</p>"
