"""A room's guesses, with the model's answer and its band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.images import rgba
from scant_dashboard.plots.theme import BLUE, GRAY, VERMILION, Figure, models, new_figure
from scant_dashboard.room.question import Question, Vote, pixels, within

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
        super().__init__("The room's guesses", figure)
        count = f"{len(votes)} {'guess' if len(votes) == 1 else 'guesses'}"
        hits = sum(within(vote, band) for vote in votes) if band else 0
        if band and votes:
            reading += f" {hits} of {count} {'lies' if hits == 1 else 'lie'} in the model's band."
        self.describe(f"{count}. {reading}")
        self.say()


def _histogram(
    question: Question, votes: Sequence[Vote], truth: Vote | None, band: Sequence[float]
) -> tuple[Figure, str]:
    low, high, step = question.span
    values = np.array(votes, float)
    bins = int(np.clip(round((high - low) / step), 1, BINS))
    counts, edges = np.histogram(values, bins, (low, high))
    plot = new_figure("room", f"guess{question.unit and f' ({question.unit})'}", "phones",
                      height=280, x_range=(low, high))  # fmt: skip
    plot.y_range.start = 0
    plot.yaxis.ticker = models.BasicTicker(min_interval=1)
    plot.quad(left=edges[:-1], right=edges[1:], bottom=0, top=counts, color=BLUE, alpha=0.75,
              line_color="white", line_width=1)  # fmt: skip
    reading = ""
    if len(values):
        summary = [_number(question, v) for v in (values.min(), values.max(), np.median(values))]
        reading = f"They go from {summary[0]} to {summary[1]}; the middle one is {summary[2]}."
    if isinstance(truth, float):
        reading += f" The model's answer is {_number(question, truth)}"
        if band:
            plot.add_layout(models.BoxAnnotation(left=band[0], right=band[1], line_alpha=0,
                                                 fill_color=VERMILION, fill_alpha=0.2))  # fmt: skip
            reading += f", its band {' to '.join(_number(question, v) for v in band)}"
        plot.add_layout(models.Span(location=truth, dimension="height", line_color=VERMILION,
                                    line_width=3))  # fmt: skip
        reading += "."
    return plot, reading.strip()


def _bars(
    question: Question, votes: Sequence[Vote], truth: Vote | None, band: Sequence[float]
) -> tuple[Figure, str]:
    counts = [sum(vote == k for vote in votes) for k in range(len(question.choices))]
    right = [k == truth for k in range(len(counts))]
    plot = new_figure("room", "", "phones", height=280, x_range=list(question.choices))
    plot.y_range.start = 0
    plot.yaxis.ticker = models.BasicTicker(min_interval=1)
    plot.vbar(list(question.choices), top=counts, width=0.7,
              color=[VERMILION if r else BLUE for r in right])  # fmt: skip
    results = ", ".join(f"{n} {c}" for n, c in zip(counts, question.choices))
    named = [c for c, r in zip(question.choices, right) if r]
    return plot, f"{results}." + (f" The model's answer is {named[0]}." if named else "")


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
    position = f"{100 * np.median(x):.0f}% from the left and {100 * np.median(y):.0f}% from the top"
    return plot, f"The middle of them is {position}."


def _number(question: Question, value: float) -> str:
    return f"{value:.{question.digits}f}{question.unit}"
