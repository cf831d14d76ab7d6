"""Omniglot: many outputs, each with many classes of its own, and few examples of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dashboard.pages.alternatives import Alternatives, Other
from dashboard.pages.omniglot_alphabets import Alphabets
from dashboard.pages.omniglot_draw import Draw
from dashboard.pages.omniglot_gallery import Examples, Patches
from dashboard.pages.omniglot_matrices import Confused, Matrices
from dashboard.pages.omniglot_rows import LOOKED, held_out
from dashboard.pages.omniglot_shots import Shots
from dashboard.pages.omniglot_zoom import Zoom
from dashboard.pages.views import Views
from dashboard.plots.base import Fed
from dashboard.plots.elbo import ElboPlot
from dashboard.plots.entropy import EntropyPlot
from dashboard.plots.hinton import HintonPlot
from dashboard.plots.late import Late
from dashboard.plots.recall import RecallPlot, counted
from dashboard.plots.reliability import ReliabilityPlot
from dashboard.plots.table import MetricsTable
from engine.catalog.omniglot import COVARIANCES, MODELS

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage
    from engine.events import Report

STORY = """
Fifty alphabets, 1,623 characters, twenty people who wrote each of them once. **What is scarce** is
examples: a class has a handful, and there are hundreds of classes. But alphabets resemble one
another, and what is learnt of one character's strokes holds for others.

**What the model does.** Every character of every alphabet has a function of the image, and all of
them are mixtures of a few latent ones. So an alphabet borrows from the others, and a class more
costs a row of numbers. A bound on the softmax takes its classes one by one, so that a step may look
at a few of them in place of all. Images are seen patch by patch, wherever the patch may be.

**What to look at.** While it trains, squares appear in the matrices: which characters, which
alphabets the model finds alike. Afterwards draw a character of your own; take examples away; learn
an alphabet alone, and see what the others were worth.
"""

EQUATIONS = r"""
Class *c* of output *d* has a latent function, mixed of *Q* independent ones (Ma 2023, 3.5–3.7):

$$f_d^c(\mathbf x)=\sum_{q=1}^{Q}\sum_{i=1}^{R_q}a^i_{d,c,q}\,u^i_q(\mathbf x),\qquad
\operatorname{cov}\big(f_d^c(\mathbf x),f_{d'}^{c'}(\mathbf x')\big)=\sum_q
[\mathbf B_q]_{(d,c),(d',c')}\,k_q(\mathbf x,\mathbf x').$$

A label is the class of greatest utility, with Gumbel noise: the softmax. Augmenting it by that
noise leaves a bound that is a sum over classes, of which a step draws a few (3.23–3.24):

$$\ln p(y\mid\mathbf f)\ge-\ln\Big(1+\frac{C_d-1}{|\mathcal S_d|}\sum_{c\in\mathcal S_d}
\mathbb E\big[e^{f_d^c-f_d^y}\big]\Big).$$

Images are compared by all their patches, each weighted by its place (4.5):

$$k_q(\mathbf x,\mathbf x')=\sum_{p,p'}w_p\,w_{p'}\,k^{\text{patch}}_q\big(\mathbf x^{[p]},
\mathbf x'^{[p']}\big).$$
"""
RECALL = "Recall of each alphabet"
ALIKE = "Which characters the model finds alike"
GLOBAL = "Which alphabets go together"
DIAGRAMS = "What each latent function ties together"
ACROSS = "If all alphabets competed"
REDUCIBLE = "What more data would remove"
ELSE = "What if it were trained otherwise?"
SIDEWAYS = ":host { overflow-x: auto !important; min-width: 0; }"  # alphabets with long names


def views(page: StudyPage) -> Views:
    """The views of one browser session."""
    recall = _recall(RECALL)
    draw = Late(Draw.title, lambda: Draw(page), height=760)
    shots = Late(Shots.title, lambda: Shots(page), height=480)
    zoom = Late(Zoom.title, lambda: Zoom(page), height=760)
    fewer, others = Alphabets(page), Alternatives(page, ELSE, otherwise)
    explore: tuple[Any, ...] = (draw, shots, fewer, zoom, others)
    return Views(
        story=STORY,
        equations=EQUATIONS,
        trace=ElboPlot(page.entry.objective, page.entry.score, noisy=True),
        live=_live(recall),
        result=_result(recall),
        explore=explore,
        wide=frozenset(
            {DIAGRAMS, "Figures", draw.title, shots.title, fewer.title, zoom.title, ELSE}
        ),
        steps=(
            (RECALL, "How many characters that it never saw are put into their class?"),
            (ALIKE, "White: what is learnt of one holds for the other."),
            (DIAGRAMS, "Few functions, mixed anew for every character."),
            (Patches.title, "The strokes it goes by."),
            (Examples.title, "Right or wrong, and how sure?"),
            (draw.title, "Which character is this?"),
            (shots.title, "How few examples does it take?"),
        ),
    )


def _live(recall: Fed) -> tuple[Any, ...]:
    between = _between(GLOBAL, "alphabet", "alphabet", "mean absolute covariances")
    return (
        recall,
        Matrices(ALIKE, "correlation", single=True),
        Fed(between, lambda told, words: between.show(told.arrays["global"], words["outputs"])),
        Matrices(DIAGRAMS, "shown_B"),
        Examples(),
        Patches(),
    )


def _between(title: str, row: str, column: str, what: str) -> HintonPlot:
    plot = HintonPlot(title, row, column, what)
    plot.panel.stylesheets = [SIDEWAYS]
    return plot


def _recall(title: str, beside: bool = False) -> Fed:
    """Recall by output; of a report of all held-out rows, and beside that of the baselines."""
    plot = RecallPlot(title, others=beside)

    def feed(told: Any, words: Mapping[str, Any]) -> None:
        others: dict[str, np.ndarray] = {}
        if beside:
            methods = dict.fromkeys(m.method for m in told.metrics if m.source == "baseline")
            others = dict(zip(methods, told.arrays["compare_accuracy"]))
        sizes = [len(names) for names in words["classes"]]
        ended = "test_output" in told.arrays
        rows = counted(told.arrays["test_output"], len(sizes)) if ended else None
        of = held_out(words, None if ended else LOOKED)
        plot.show(told.arrays["accuracy"], words["outputs"], sizes, others, of, rows)

    return Fed(plot, feed)


def _result(recall: Fed) -> tuple[Any, ...]:
    table = MetricsTable()

    def figures(told: Report, words: Mapping[str, Any]) -> None:
        of = f"Figures of all methods are of {held_out(words)}, all together."
        table.show(told.metrics, (of, *told.notes) if words["rows"]["test"] else told.notes)
        recall.update(told, words)  # what was drawn while it trained gives way to the end's

    def across() -> Fed:
        plot = _between(ACROSS, "true", "taken for", "shares of an alphabet's held-out rows")

        def feed(told: Report, words: Mapping[str, Any]) -> None:
            plot.show(np.nan_to_num(told.arrays["confusion_across"]), words["outputs"])
            plot.describe(
                f"{plot.alt} The model was not trained to tell alphabets apart: this lets the "
                "classes of all of them compete in one softmax."
            )

        return Fed(plot, feed)

    def reliability() -> Fed:
        plot = ReliabilityPlot()
        return Fed(plot, lambda told, words: plot.show(told.arrays["reliability"]))

    def reducible() -> Fed:
        plot = EntropyPlot(REDUCIBLE)

        def feed(told: Report, words: Mapping[str, Any]) -> None:
            a = told.arrays
            if len(a["test_entropy"]):
                plot.show(a["test_entropy"], a["test_information"], a["test_output"],
                          words["outputs"])  # fmt: skip

        return Fed(plot, feed)

    beside = "Beside other classifiers"
    return (
        Fed(table, figures),
        Late(beside, lambda: _recall(beside, beside=True)),
        Late("Can its probabilities be trusted?", reliability),
        Late(Confused.title, Confused, height=480),
        Late(ACROSS, across),
        Late(REDUCIBLE, reducible),
    )


def otherwise(run: History) -> tuple[str, list[Other]]:
    """Fewer examples, another model, another bound or kernel: each one click away."""
    used, names = run.record.settings, list(run.words["outputs"])
    others = []
    if used["n_outputs"]:
        others.append(Other("with all alphabets", "more to borrow from.", {"n_outputs": 0}))
    others += [
        Other(f"with {k} {'example' if k == 1 else 'examples'} of each class",
              "from scratch, kernel and patches included.", {"shots": k})
        for k in (1, 5) if k != used["shots"] and k < int(run.words["shots_most"])
    ]  # fmt: skip
    others += [
        Other(f"the same with {said}", KNOWS[name], {"model": name})
        for name, said in MODELS.items()
        if name != used["model"]
    ]
    others += [
        Other(f"with the covariance {c}", "the same cost, another bound.", {"covariance": c})
        for c in COVARIANCES
        if c != used["covariance"] and used["model"] == "mogp-ar"
    ]
    if run.words.get("size"):
        kernel = "rbf-ard" if run.words["kernel"] == "patch" else "patch"
        seen = {"rbf-ard": "each image is seen as a whole.", "patch": "patches, wherever they are."}
        others.append(Other(f"with the kernel {kernel}", seen[kernel], {"kernel": kernel}))
    many = f"{len(names)} alphabets together" if len(names) > 1 else f"{names[0]} alone"
    return f"This run trained {MODELS[str(used['model'])]} on {many}.", others


KNOWS = {
    "mogp-ar": "alphabets share what they know, at the cost of a few classes a step.",
    "mg-m": "the full softmax in every step: what does augmenting and reducing give away?",
    "g-m": "each alphabet alone, by the full softmax.",
    "g-a": "each alphabet alone, by augment-and-reduce.",
}
