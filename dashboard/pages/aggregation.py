"""Aggregation: values known only as averages over supports of every size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dashboard.controls.reveal import Reveal
from dashboard.pages.aggregation_box import BoxAsked
from dashboard.pages.aggregation_curve import Scarcity
from dashboard.pages.aggregation_field import Field
from dashboard.pages.alternatives import Alternatives, Other
from dashboard.pages.views import Views
from dashboard.pages.withheld import Withheld, ask_coverage, without_coverage
from dashboard.plots.base import Fed
from dashboard.plots.calibration import CoveragePlot
from dashboard.plots.elbo import ElboPlot
from dashboard.plots.hinton import HintonPlot
from dashboard.plots.late import Late
from dashboard.plots.scatter import ScatterPlot
from dashboard.plots.table import MetricsTable

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage
    from engine.events import Report

STORY = """
Births are counted by five-year groups, dust is weighed by a filter that hangs for six hours,
harvests are known by district. **What is scarce** is the value where you need it: in one year, one
hour, one field. Some fine measurements may exist, few, dear or biased.

**What the model does.** It learns one smooth function behind everything that was recorded, and
knows that each record is that function's *average over its own box*, large or small. Several tasks
share the function: many coarse averages and a few fine values each say what the other cannot.

**What to look at.** While it trains, detail appears inside boxes of which only the average was
known, and the deviation shrinks where fine values lie. Afterwards draw a box of your own and read
its average; take a task away; see how many fine values the coarse ones are worth.
"""

EQUATIONS = r"""
Task *d* observes, over a support $v$ (a box, a point, any weighted set), an average of latent
functions that all tasks share (Yousefi 2021, 5.8–5.9):

$$f_d(v)=\sum_{q=1}^{Q}\sum_{i=1}^{R_q} a^i_{d,q}\,\frac1{|v|}\int_{v}u^i_q(\mathbf z)\,
\mathrm d\mathbf z,\qquad y_d(v)\sim p_d\big(y\mid f_d(v)\big).$$

Its covariances are double averages of a kernel, which boxes and the exponentiated quadratic kernel
have in closed form:

$$\operatorname{cov}\big(f_d(v),f_{d'}(v')\big)=\sum_{q}[\mathbf B_q]_{dd'}\,
\frac1{|v||v'|}\int_{v}\!\int_{v'}k_q(\mathbf z,\mathbf z')\,\mathrm d\mathbf z'
\mathrm d\mathbf z.$$

Inducing variables stand at the latent functions, so one bound serves all tasks (5.10):

$$\mathcal L=\sum_d\sum_j \mathbb E_{q(f_d)}\big[\ln p_d(y_{d,j}\mid f_d(v_{d,j}))\big]
-\sum_q \mathrm{KL}\big(q(\mathbf u_q)\,\|\,p(\mathbf u_q)\big).$$
"""
PICTURE = "What the averages give away"
CHECK = "Aggregate check"
WORTH = "What is each task worth?"
ASK = BoxAsked.title


def views(page: StudyPage) -> Views:
    """The views of one browser session."""
    box = Late(ASK, lambda: BoxAsked(page), height=700)
    curve = Late(Scarcity.title, lambda: Scarcity(page), height=420)
    explore: tuple[Any, ...] = (box, curve, Alternatives(page, WORTH, without_a_task))
    return Views(
        story=STORY,
        equations=EQUATIONS,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        live=_live(),
        result=_result(page),
        explore=explore,
        wide=frozenset({PICTURE, "Figures", box.title, curve.title, WORTH}),
        steps=(
            (PICTURE, "Only averages over boxes were recorded, and a few single values."),
            ("How the tasks go together", "Large squares: what one task says holds for the other."),
            (CHECK, "Does each posterior average return what was recorded?"),
            (ASK, "Which average would you like to know?"),
            (Scarcity.title, "How many fine values are the coarse ones worth?"),
        ),
    )


def _live() -> tuple[Any, ...]:
    hinton = HintonPlot("How the tasks go together", "task", "task", "covariances")
    return (
        Fed(hinton, lambda told, words: hinton.show(told.arrays["B"], words["tasks"])),
        Field(PICTURE),
    )


def _result(page: StudyPage) -> tuple[Any, ...]:
    table, covered = MetricsTable(), Reveal(first=page.guessing)
    figures = Fed(table, lambda told, words: table.show(told.metrics, told.notes))

    def held_out() -> Fed:
        plot = ScatterPlot("value", outlier=None, title="Held-out values", against="held-out")

        def feed(told: Report, words: Any) -> None:
            a = told.arrays
            if len(a["test_y"]):
                plot.show(a["test_y"], a["test_mean"], a["test_std"])

        return Fed(plot, feed)

    def check() -> Fed:
        plot = ScatterPlot("average", outlier=None, title=CHECK, against="recorded")

        def feed(told: Report, words: Any) -> None:
            _, y, mean, std, _ = told.arrays["check"]
            plot.show(y, mean, std)

        return Fed(plot, feed)

    def coverage() -> Withheld:
        plot = CoveragePlot()

        def feed(told: Report, words: Any) -> None:
            if told.arrays["coverage"].shape[1]:
                plot.show(told.arrays["coverage"])

        return Withheld(page, Fed(plot, feed), covered, above=True)

    return (
        Withheld(page, figures, covered, less=without_coverage, ask=ask_coverage),
        Late("Held-out values", held_out),
        Late(CHECK, check),
        Late("Coverage of intervals", coverage),
    )


def without_a_task(run: History) -> tuple[str, list[Other]]:
    """The other tasks, each one click away from being left out."""
    words = run.words
    others = [str(task) for task in words["tasks"] if task != words["scarce"]]
    seen = np.asarray(words["observed"]["task"])
    before = str(run.record.settings.get("leave_out") or "")
    said = f"together with {', '.join(others)}" if others else "alone"
    return f"This run learnt {words['scarce']} {said}.", [
        Other(
            f"the same without {task}",
            f"{int((seen == words['tasks'].index(task)).sum())} fewer observations in the picture.",
            {"leave_out": ",".join(filter(None, [before, task]))},
        )
        for task in others
    ]
