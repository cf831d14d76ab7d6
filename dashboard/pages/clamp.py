"""Clamps: thousands of patches, one person's patience, and a model that asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dashboard.pages.alternatives import Alternatives, Other
from dashboard.pages.clamp_label import Desk, Labels
from dashboard.pages.clamp_picture import Picture
from dashboard.pages.clamp_pool import Efficiency, Pool
from dashboard.pages.clamp_queue import Queue
from dashboard.pages.views import Views
from dashboard.plots.base import Fed
from dashboard.plots.elbo import ElboPlot
from dashboard.plots.label_efficiency import LabelEfficiencyPlot
from dashboard.plots.late import Late
from dashboard.plots.relevance import BasisPlot
from dashboard.plots.reliability import ReliabilityPlot
from dashboard.plots.table import MetricsTable

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.clamp_session import Answer
    from dashboard.pages.study_page import StudyPage
    from engine.events import Report
    from engine.store.records import Label

STORY = """
A utility photographs thousands of pipe joints, and wants to know which of them carry a clamp. Only
an expert can tell, one patch at a time. **What is scarce** is that expert's patience: most patches
show nothing of interest, and most labels would teach the model nothing new.

**What the model does.** A Gaussian process classifies patches by their features, and says how sure
it is. It asks for the label of a patch that it is undecided about (p between 0.45 and 0.55), learns
the answer at once, and asks again, so that labels go where the border between the classes runs. The
rare class gets more of them that way than its share (Yousefi 2021, chapter 4; Yousefi et al. 2018).

**What to look at.** How many labels does asking need for an F1 (of precision and recall; 1 is
best) that patches drawn at random come to later? One session may have luck, good or bad: the table
has the mean of several. Watch where in the pool it asks. Then take the expert's place, and see when
it tells you to stop.
"""

EQUATIONS = r"""
A latent function has a Gaussian process prior, and the label of a patch depends on it through a
sigmoid (Rasmussen & Williams 2006, chapter 3):

$$f\sim\mathcal{GP}(0,k),\qquad p(y=1\mid f)=\sigma(f).$$

Its posterior is approximated by a Gaussian about its mode (Laplace), and the hyperparameters
maximise the evidence that this gives:

$$\ln p(\mathbf y)\approx\ln p(\mathbf y\mid\hat{\mathbf f})-\tfrac12\hat{\mathbf f}^\top
\mathbf K^{-1}\hat{\mathbf f}-\tfrac12\ln|\mathbf I+\mathbf W^{1/2}\mathbf K\mathbf W^{1/2}|.$$

A patch is asked about where the averaged probability lies in a band about one half:

$$\Big|\int\sigma(f_*)\,q(f_*\mid\mathbf x_*)\,df_*-\tfrac12\Big|\le\delta.$$
"""
COMPARED = "Every method, from the same budget"
TRUST = "Can its probabilities be trusted?"
SHARES = "Features in few components"
ELSE = "What if it were asked otherwise?"


def views(page: StudyPage) -> Views:
    """The views of one browser session."""
    pool, efficiency, queue = Pool(), Efficiency(), Queue(page)

    def learnt(answer: Answer, labels: Mapping[int, Label]) -> None:
        pool.learnt(answer, labels)
        efficiency.learnt(answer, labels)
        picture.learnt()

    def known() -> list[list[int]]:
        session = desk.session
        classes = list(session.run.words["classes"]) if session.run is not None else []
        return [[r, classes.index(v.label)] for r, v in session.standing.items()
                if v.label in classes]  # fmt: skip

    desk = Desk(page, learnt)
    picture = Picture(page, known)
    queue.picked = picture.show
    live: tuple[Any, ...] = (desk, efficiency, pool)
    explore: tuple[Any, ...] = (
        Labels(page, desk), queue, picture, Alternatives(page, ELSE, otherwise)
    )  # fmt: skip
    return Views(
        story=STORY,
        equations=EQUATIONS,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        live=live,
        result=_result(),
        explore=explore,
        wide=frozenset({Desk.title, "Figures", queue.title, picture.title, ELSE}),
        steps=(
            (Efficiency.title, "How many labels does each need for the same F1?"),
            (Pool.title, "Where does it ask?"),
            (queue.title, "Would you have asked about these?"),
            (picture.title, "Where in this picture, if anywhere?"),
            (Desk.title, "Take the expert's place."),
        ),
        hides=hidden,
    )


def hidden(run: History) -> set[str]:
    """Titles of the views that this run has nothing for."""
    words, found = run.words, set()
    if run.record.settings.get("expert") == "you":
        found |= {"Objective", "Figures", TRUST, COMPARED, Queue.title, ELSE}
    else:
        found.add(Labels.title)
    if words and not words.get("pictures"):
        found.add(Picture.title)
    return found


def _result() -> tuple[Any, ...]:
    table = MetricsTable()

    def compared() -> Fed:
        plot = LabelEfficiencyPlot(COMPARED, "compared")

        def feed(told: Report, words: Mapping[str, Any]) -> None:
            a = told.arrays
            plot.show(a["labels"].astype(float), a["compare_f1"], words["compared"], "F1",
                      a["compare_sd"], "on average over several sessions each")  # fmt: skip

        return Fed(plot, feed)

    def reliability() -> Fed:
        plot = ReliabilityPlot(TRUST)
        return Fed(
            plot,
            lambda told, words: plot.show(told.arrays["reliability"], str(words["classes"][1])),
        )

    def shares() -> Fed:
        plot = BasisPlot(SHARES, "components", "variance")
        return Fed(plot, lambda told, words: plot.show(np.asarray(told.arrays["eigenvalues"])))

    return (
        Fed(table, lambda told, words: table.show(told.metrics, told.notes)),
        Late(COMPARED, compared, height=420),
        Late(TRUST, reliability),
        Late(SHARES, shares),
    )


def otherwise(run: History) -> tuple[str, list[Other]]:
    """Other ways of asking, rarer clamps, fewer labels: each one click away."""
    used = run.record.settings
    others = [
        Other(f"asking by {name}", said, {"acquisition": name})
        for name, said in ASKS.items()
        if name != used["acquisition"]
    ]
    if not used["imbalance"]:
        others.append(Other("with one clamp in twenty-one", "is asking worth more where it is "
                            "rarer?", {"imbalance": 20.0, "start": 60, "budget": 300}))  # fmt: skip
    if used["diverse"] != "none":
        others.append(Other("with batches of whatever is most uncertain", "as published: do they "
                            "repeat themselves?", {"diverse": "none"}))  # fmt: skip
    if not used["pace"]:
        others.append(Other("at a pace that one can watch", "ten labels a second.", {"pace": 10.0}))
    return f"This run asked by {used['acquisition']}.", others


ASKS = {
    "band": "within 0.05 of one half, as published.",
    "entropy": "as least confident for two classes, so the same; in other batches.",
    "BALD": "where a label would tell most about the function, not only about its own patch.",
    "random": "what asking is held against.",
}
