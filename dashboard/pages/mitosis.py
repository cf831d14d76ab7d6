"""Mitosis, first tab: a rare class that keeps a latent space of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dashboard.pages.alternatives import Alternatives, Other
from dashboard.pages.mitosis_cells import Covariances, Strips
from dashboard.pages.mitosis_generate import Generate
from dashboard.pages.mitosis_imbalance import Imbalance
from dashboard.pages.mitosis_place import Place
from dashboard.pages.mitosis_spaces import Private, Space
from dashboard.pages.mitosis_tabs import tabs
from dashboard.pages.mitosis_threshold import Threshold
from dashboard.pages.mitosis_walk import Walk
from dashboard.pages.views import Views
from dashboard.plots.base import Fed
from dashboard.plots.elbo import ElboPlot
from dashboard.plots.late import Late
from dashboard.plots.relevance import DimensionsPlot
from dashboard.plots.reliability import ReliabilityPlot
from dashboard.plots.table import MetricsTable
from engine.catalog.mitosis import MODELS

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage
    from engine.events import Report

STORY = """
How aggressive a tumour is, a pathologist reads from how many of its cells divide. Among thousands
of nuclei in a slice a few do. **What is scarce** is the class that matters: a classifier that
always says "no" is right almost everywhere, and learns little from the few that say "yes".

**What the model does.** It does not learn a border, it learns how cells look: every cell has a
place in a small latent space, and a Gaussian process turns places into images. One part of that
space is common to all classes (stain, size, direction), and what is learnt there from thousands
serves the few. The other part each class has to itself, so that the rare one is not drowned. A new
cell is placed under every class, and Bayes' rule says under which it is likelier (SCLVM, Yousefi
2021, chapter 3).

**What to look at.** While it trains, classes mix in the shared space and take shape in their own,
and cells are drawn that no microscope has seen. Afterwards walk through the space; bring a cell of
your own; move the line between yes and no; and make the rare class rarer still.
"""

EQUATIONS = r"""
A cell's pixels (or their principal components) are functions of its place and its class, and the
kernel has a part that all classes share and a part within a class (Yousefi 2021, 3.23–3.24):

$$y=f(\mathbf x)+\varepsilon,\qquad k\big((\mathbf x,c),(\mathbf x',c')\big)=
k_s(\mathbf x_s,\mathbf x_s')+[c=c']\,k_p(\mathbf x_p,\mathbf x_p').$$

Places are unknown, with a standard normal prior and a Gaussian posterior *q*(**X**). One bound
trains everything (3.25–3.26), with the optimal inducing variables in closed form:

$$\ln p(\mathbf Y\mid\mathbf c)\ge\sum_j\tilde F_j(q)-\mathrm{KL}\big(q(\mathbf X)\,\|\,p(\mathbf X)
\big)=\mathcal L.$$

A new cell gets a place under each class, and its class follows from the bounds there, tempered by
*T*, which is found on rows held out for that:

$$p(c\mid\mathbf y^*)\propto p(c)\,\exp\Big(\tfrac1T\max_{q(\mathbf x^*)}
\mathcal L(\mathbf y^*\mid c)\Big).$$
"""
PUBLISHED = (
    "Published (Yousefi 2021, Table 3.1), on other data and so no measure of this run: AMIDA 2013, "
    "440 mitoses and 5,000 others to learn from, ten test sets. Precision, recall and F1: "
    "SCLVM 0.426 ± 0.024, 0.555 ± 0.007, 0.482 ± 0.015; "
    "BGPLVM + SVM 0.306 ± 0.013, 0.827 ± 0.000, 0.447 ± 0.014; "
    "DGPLVM + SVM 0.242 ± 0.008, 1.000 ± 0.000, 0.390 ± 0.011."
)
RELEVANCE = "Which dimensions count"
ELSE = "What if it were trained otherwise?"


def views(page: StudyPage) -> Views:
    """The views of one browser session."""
    walk = Late(Walk.title, lambda: Walk(page), height=640)
    generate = Late(Generate.title, lambda: Generate(page), height=560)
    place = Late(Place.title, lambda: Place(page), height=560)
    threshold = Late(Threshold.title, lambda: Threshold(page), height=640)
    imbalance = Late(Imbalance.title, lambda: Imbalance(page), height=640)
    explore: tuple[Any, ...] = (
        walk, generate, place, threshold, imbalance, Alternatives(page, ELSE, otherwise)
    )  # fmt: skip
    return Views(
        story=STORY,
        equations=EQUATIONS,
        above=tabs(page),
        trace=ElboPlot(page.entry.objective, page.entry.score),
        live=_live(),
        result=_result(),
        explore=explore,
        wide=frozenset(
            {Strips.title, Covariances.title, "Figures", *(view.title for view in explore)}
        ),
        steps=(
            (Space.title, "What is learnt here from many serves the few."),
            (Private.title, "Here the rare class is not drowned."),
            (Strips.title, "Which of these cells has never existed?"),
            (Covariances.title, "Within a class; between classes; together."),
            (walk.title, "What lies between two cells?"),
            (generate.title, "New ones, as many as one likes."),
            (place.title, "Does this one divide?"),
            (threshold.title, "How many false alarms is a find worth?"),
            (imbalance.title, "Fifty of them? Ten? Three?"),
        ),
        hides=hidden,
    )


def hidden(run: History) -> set[str]:
    """Titles of the views that this run has nothing for."""
    words, found = run.words, set()
    if words and not words.get("size"):
        found.add(Strips.title)
    if words and not words.get("n_private"):
        found.add(Private.title)
    return found


def _live() -> tuple[Any, ...]:
    dimensions = DimensionsPlot(RELEVANCE)
    return (
        Space(),
        Private(),
        Fed(
            dimensions,
            lambda told, words: dimensions.show(told.arrays["relevance"], int(words["n_shared"])),
        ),
        Strips(),
        Covariances(),
    )


def _result() -> tuple[Any, ...]:
    table = MetricsTable()

    def reliability() -> Fed:
        plot = ReliabilityPlot()

        def feed(told: Report, words: Mapping[str, Any]) -> None:
            plot.show(told.arrays["reliability"])

        return Fed(plot, feed)

    return (
        Fed(table, lambda told, words: table.show(told.metrics, (*told.notes, PUBLISHED))),
        Late("Can its probabilities be trusted?", reliability),
    )


def otherwise(run: History) -> tuple[str, list[Other]]:
    """Other models, rarer classes, every pixel, no temper: each one click away."""
    used = run.record.settings
    learnt = run.words["rows"]["training"]
    others = [
        Other(f"the same with {said}", KNOWS[name], {"model": name})
        for name, said in MODELS.items()
        if name != used["model"]
    ]
    others += [
        Other(f"with 1:{ratio}", f"{ratio} of the others for each rare row.",
              {"imbalance": float(ratio)})
        for ratio in (1, 30, 100)
        if ratio != used["imbalance"]
    ]  # fmt: skip
    if used["components"] and run.words.get("size"):
        others.append(Other("with every pixel", "as published: slower, and less sure of few rows.",
                            {"components": 0}))  # fmt: skip
    if used["tempered"] and used["model"] == "sclvm":
        others.append(Other("without tempering", "are its probabilities too sure of themselves?",
                            {"tempered": False}))  # fmt: skip
    if used["private"] != 1 and used["model"] == "sclvm":
        others.append(Other("with one private dimension", "how little room of its own will do?",
                            {"private": 1}))  # fmt: skip
    said = MODELS[str(used["model"])]
    return f"This run trained {said} on {learnt:,} rows.", others


KNOWS = {
    "sclvm": "each class keeps a space of its own.",
    "bgplvm": "one space that knows no classes, and a weighted SVM in it.",
    "dgplvm": "one space in which classes are pulled apart, and a weighted SVM in it.",
}
