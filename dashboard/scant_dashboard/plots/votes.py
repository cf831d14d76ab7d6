"""A room's guesses, with the model's answer and its band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.images import rgba
from scant_dashboard.plots.theme import BLUE, GRAY, VERMILION, Figure, models, new_figure
from scant_dashboard.room.question import Question, Vote, pixels, within
from scant_dashboard.translate import ntr, tr

BINS = 20  # maximum number of bins of a histogram
SIDE = 460  # maximum height of a picture in pixels


class VotesPlot(Plot):
    """A histogram of numbers, a bar for each choice, or points on a picture; immutable.

    Args:
        question: The question.
        votes: The answers.
        truth: The model's answer: a number, the index of a choice, or a position on the picture.
        band: Range that also counts as right: (low, high), or the sides of a box; empty if none.
    """

    def __init__(
        self,
        question: Question,
        votes: Sequence[Vote],
        truth: Vote | None,
        band: Sequence[float] = (),
    ) -> None:
        draw = {"number": _histogram, "choice": _bars, "point": _points}[question.kind]
        figure, reading = draw(question, votes, truth, band)
        super().__init__(tr("The room's guesses"), figure)
        count = ntr("{n} guess.", "{n} guesses.", len(votes))
        hits = sum(within(vote, band) for vote in votes) if band else 0
        if band and votes:
            inside = tr("In the model's band: {hits} of {n}.", hits=hits, n=len(votes))
            reading = f"{reading} {inside}"
        self.describe(f"{count} {reading}".rstrip())
        self.say()


def _histogram(
    question: Question, votes: Sequence[Vote], truth: Vote | None, band: Sequence[float]
) -> tuple[Figure, str]:
    low, high, step = question.span
    values = np.array(votes, float)
    bins = int(np.clip(round((high - low) / step), 1, BINS))
    counts, edges = np.histogram(values, bins, (low, high))
    label = tr("guess ({unit})", unit=question.unit) if question.unit else tr("guess")
    plot = new_figure("room", label, tr("phones"), height=280, x_range=(low, high))  # fmt: skip
    plot.y_range.start = 0
    plot.yaxis.ticker = models.BasicTicker(min_interval=1)
    plot.quad(left=edges[:-1], right=edges[1:], bottom=0, top=counts, color=BLUE, alpha=0.75,
              line_color="white", line_width=1)  # fmt: skip
    reading = ""
    if len(values):
        summary = [_number(question, v) for v in (values.min(), values.max(), np.median(values))]
        reading = tr("They range from {low} to {high}; the median is {median}.", low=summary[0],
                     high=summary[1], median=summary[2])  # fmt: skip
    if isinstance(truth, float):
        value = _number(question, truth)
        answer = tr("The model's answer is {value}.", value=value)
        if band:
            plot.add_layout(models.BoxAnnotation(left=band[0], right=band[1], line_alpha=0,
                                                 fill_color=VERMILION, fill_alpha=0.2))  # fmt: skip
            low_end, high_end = (_number(question, v) for v in band)
            answer = tr("The model's answer is {value}, its band {low} to {high}.", value=value,
                        low=low_end, high=high_end)  # fmt: skip
        plot.add_layout(models.Span(location=truth, dimension="height", line_color=VERMILION,
                                    line_width=3))  # fmt: skip
        reading = f"{reading} {answer}"
    return plot, reading.strip()


def _bars(
    question: Question, votes: Sequence[Vote], truth: Vote | None, band: Sequence[float]
) -> tuple[Figure, str]:
    counts = [sum(vote == k for vote in votes) for k in range(len(question.choices))]
    right = [k == truth for k in range(len(counts))]
    plot = new_figure("room", "", tr("phones"), height=280, x_range=list(question.choices))
    plot.y_range.start = 0
    plot.yaxis.ticker = models.BasicTicker(min_interval=1)
    plot.vbar(list(question.choices), top=counts, width=0.7,
              color=[VERMILION if r else BLUE for r in right])  # fmt: skip
    results = ", ".join(f"{n} {c}" for n, c in zip(counts, question.choices))
    named = [c for c, r in zip(question.choices, right) if r]
    answer = tr("The model's answer is {value}.", value=named[0]) if named else ""
    return plot, f"{results}. {answer}".rstrip()


def _points(
    question: Question, votes: Sequence[Vote], truth: Vote | None, band: Sequence[float]
) -> tuple[Figure, str]:
    image = pixels(question.picture)
    h, w = image.shape[:2]
    plot = new_figure("room", x_range=models.Range1d(0, 1), y_range=models.Range1d(1, 0))
    plot.update(height=None, width=None, aspect_ratio=w / h, max_width=round(SIDE * w / h),
                min_border_left=0)  # fmt: skip
    plot.axis.visible = plot.grid.visible = False
    plot.image_rgba([rgba(image)], x=0, y=0, dw=1, dh=1)
    if band:
        plot.quad(left=band[0], top=band[1], right=band[2], bottom=band[3], fill_alpha=0,
                  line_color=VERMILION, line_width=4)  # fmt: skip
    x, y = np.array(votes, float).reshape(-1, 2).T
    plot.scatter(x, y, size=14, color=BLUE, line_color="white", line_width=2, alpha=0.9)
    if isinstance(truth, Sequence):
        plot.scatter([truth[0]], [truth[1]], marker="x", size=18, color=GRAY,
                     line_color=VERMILION, line_width=5)  # fmt: skip
    if not len(x):
        return plot, ""
    return plot, tr(
        "Their median is {x:.0f}% from the left and {y:.0f}% from the top.",
        x=100 * np.median(x), y=100 * np.median(y),
    )  # fmt: skip


def _number(question: Question, value: float) -> str:
    return tr("{value:.{digits}f}{unit}", value=value, digits=question.digits, unit=question.unit)
