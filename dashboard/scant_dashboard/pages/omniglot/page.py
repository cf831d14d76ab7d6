"""Omniglot: many outputs, each with many classes of its own, and few examples of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scant.events import Report
from scant.studies import auto
from scant.studies.demo_draws import sentence
from scant.studies.omniglot.settings import COVARIANCES, MODELS, PIXELS
from scant_dashboard.live.run_state import OWN, RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.lazy_view import LazyView
from scant_dashboard.page_parts.prose import read_prose
from scant_dashboard.page_parts.variants import Alternatives, Variant
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.pages.omniglot.draw import Draw
from scant_dashboard.pages.omniglot.gallery import Examples, Patches
from scant_dashboard.pages.omniglot.groups import Groups
from scant_dashboard.pages.omniglot.matrices import Confused, Matrices, coupling
from scant_dashboard.pages.omniglot.rows import MAX_SNAPSHOT_ROWS, held_out
from scant_dashboard.pages.omniglot.shots import Shots
from scant_dashboard.pages.omniglot.submatrix import Submatrix
from scant_dashboard.plots.base import DataView, array_view
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.entropy import EntropyPlot
from scant_dashboard.plots.hinton import HintonPlot
from scant_dashboard.plots.recall import RecallPlot, counted
from scant_dashboard.plots.reliability import ReliabilityPlot
from scant_dashboard.plots.table import MetricsTable
from scant_dashboard.translate import later, ntr, tr

RECALL = later("Recall of each group")
SIMILARITY = later("Which classes the model finds alike")
GLOBAL = later("Coupling of the groups")
DIAGRAMS = later("What each latent function ties together")
BESIDE = later("Beside other classifiers")
TRUST = later("Can its probabilities be trusted?")
ACROSS = later("If all groups competed")
REDUCIBLE = later("What more data would remove")
ELSE = later("What if it were trained otherwise?")
SIDEWAYS = ":host { overflow-x: auto !important; min-width: 0; }"  # groups with long names


def views(page: PageContext) -> PageViews:
    """Create the views of a browser session."""
    story, equations = read_prose(__package__)
    recall = LazyView(RECALL, lambda: _recall(RECALL))
    draw = LazyView(Draw.title, lambda: Draw(page), height=760)
    shots = LazyView(Shots.title, lambda: Shots(page), height=480)
    zoom = LazyView(Submatrix.title, lambda: Submatrix(page), height=760)
    fewer, others = Groups(page), Alternatives(page, ELSE, alternatives)
    explore: tuple[Any, ...] = (draw, shots, fewer, zoom, others)
    return PageViews(
        story=story,
        equations=equations,
        trace=ElboPlot(page.entry.objective, page.entry.score, noisy=True),
        main=frozenset({SIMILARITY}),
        live=_live(recall),
        result=_result(recall),
        explore=explore,
        full_width=frozenset(
            {DIAGRAMS, "Figures", draw.title, shots.title, fewer.title, zoom.title, ELSE}
        ),
        steps=(
            (RECALL, later("How many held-out rows are classified correctly?")),
            (SIMILARITY, later("White: examples of one class help with the other.")),
            (DIAGRAMS, later("Few functions, with different weights for each class.")),
            (Patches.title, later("The patches that it compares images by.")),
            (Examples.title, later("Right or wrong, and how certain?")),
            (draw.title, later("Which class is this?")),
            (shots.title, later("How few examples does it take?")),
        ),
        hides=hidden,
    )


def hidden(run: RunState) -> set[str]:
    """Return the titles of the views that do not apply to this run."""
    metadata, result = run.metadata, set()
    if metadata and not metadata.get("size"):
        result |= {Draw.title, Examples.title, Patches.title}
    if metadata and len(metadata["outputs"]) == 1:
        result |= {GLOBAL, ACROSS, Groups.title}
    return result


def _live(recall: LazyView) -> tuple[Any, ...]:
    def together() -> DataView:
        plot = _hinton(GLOBAL, tr("group"), tr("group"), tr("mean absolute covariances"))

        def feed(data: Any, metadata: Mapping[str, Any]) -> None:
            plot.show(data.arrays["global"], metadata["outputs"])
            plot.describe(f"{plot.alt}{coupling(data.arrays['global'])}")

        return DataView(plot, feed)

    return (
        recall,
        LazyView(SIMILARITY, lambda: Matrices(SIMILARITY, "correlation", single=True)),
        LazyView(GLOBAL, together),
        LazyView(DIAGRAMS, lambda: Matrices(DIAGRAMS, "shown_B")),
        LazyView(Examples.title, Examples),
        LazyView(Patches.title, Patches),
    )


def _hinton(title: str, row: str, column: str, what: str) -> HintonPlot:
    plot = HintonPlot(title, row, column, what)
    plot.panel.stylesheets = [SIDEWAYS]
    return plot


def _recall(title: str, compare: bool = False) -> DataView:
    """Recall by output; for a report, of all held-out rows and optionally with the baselines."""
    plot = RecallPlot(title, others=compare)

    def feed(data: Any, metadata: Mapping[str, Any]) -> None:
        others: dict[str, np.ndarray] = {}
        if compare:
            methods = dict.fromkeys(m.method for m in data.metrics if m.source == "baseline")
            others = dict(zip(methods, data.arrays["compare_accuracy"]))
        sizes = [len(names) for names in metadata["classes"]]
        ended = "test_output" in data.arrays
        rows = counted(data.arrays["test_output"], len(sizes)) if ended else None
        of = held_out(metadata, None if ended else MAX_SNAPSHOT_ROWS)
        plot.show(data.arrays["accuracy"], metadata["outputs"], sizes, others, of, rows)

    return DataView(plot, feed)


def _result(recall: LazyView) -> tuple[Any, ...]:
    table = MetricsTable()

    def figures(data: Report, metadata: Mapping[str, Any]) -> None:
        of = [tr("The scores of all methods are on {rows} together.", rows=held_out(metadata))]
        notes = (*data.limits[:1], *(of if metadata["rows"]["test"] else []), *data.notes)
        table.show(data.metrics, notes if metadata.get(OWN) else (*notes, sentence("omniglot")))
        recall.update(data, metadata)  # replace the values during training by the final ones

    def across() -> DataView:
        plot = _hinton(ACROSS, tr("true"), tr("predicted"), tr("shares of a group's held-out rows"))

        def feed(data: Report, metadata: Mapping[str, Any]) -> None:
            plot.show(np.nan_to_num(data.arrays["confusion_across"]), metadata["outputs"])
            plot.describe(
                plot.alt + " " + tr("Training does not separate groups; this figure lets all "
                                    "classes compete in one softmax.")
            )  # fmt: skip

        return DataView(plot, feed)

    def reducible() -> DataView:
        arrays = ("test_entropy", "test_information", "test_output")
        return array_view(EntropyPlot(REDUCIBLE), *arrays, labels=("outputs",), needs=arrays[0])

    return (
        DataView(table, figures),
        LazyView(BESIDE, lambda: _recall(BESIDE, compare=True)),
        LazyView(TRUST, lambda: array_view(ReliabilityPlot(), "reliability")),
        LazyView(Confused.title, Confused, height=480),
        LazyView(ACROSS, across),
        LazyView(REDUCIBLE, reducible),
    )


def alternatives(run: RunState) -> tuple[str, list[Variant]]:
    """Return a sentence on this run, and variants of shots, model, covariance and kernel."""
    used, names = auto.used(run.record.settings, run.metadata), list(run.metadata["outputs"])
    others = []
    if used["n_outputs"]:
        others.append(
            Variant(tr("Train again with all groups"), tr("more to borrow from."), {"n_outputs": 0})
        )
    others += [
        Variant(ntr("Train again with {n} example of each class",
                    "Train again with {n} examples of each class", k),
                tr("from scratch, kernel and inducing points included."), {"shots": k})
        for k in (1, 5) if k != used["shots"] and k < int(run.metadata["shots_most"])
    ]  # fmt: skip
    others += [
        Variant(tr("Train {model} instead", model=model), tr(KNOWS[name]), {"model": name})
        for name, model in MODELS.items()
        if name != used["model"]
    ]
    others += [
        Variant(
            tr("Train again with the covariance {name}", name=c),
            tr("the same cost, another bound."),
            {"covariance": c},
        )
        for c in COVARIANCES
        if c != used["covariance"] and used["model"] == "mogp-ar"
    ]
    if run.metadata.get("size"):
        kernel = "rbf-ard" if run.metadata["kernel"] == "patch" else "patch"
        sees = {
            "rbf-ard": tr("it compares whole images."),
            "patch": tr("patches, wherever they are."),
        }
        others.append(
            Variant(
                tr("Train again with the kernel {name}", name=kernel),
                sees[kernel],
                {"kernel": kernel},
            )
        )
    features = used.get("features", PIXELS)
    if run.metadata.get("size") and used.get("stack") and features != PIXELS:
        text = tr("no HOG, no network, no image that bends: what do they add?")
        others.append(Variant(tr("Train again with pixels alone"), text, {"features": PIXELS}))
    model = MODELS[str(used["model"])]
    if len(names) == 1:
        message = tr("This run trained {model} on {name} alone.", model=model, name=names[0])
    else:
        message = tr("This run trained {model} on {n} groups together.", model=model,
                     n=len(names))  # fmt: skip
    return message, others


KNOWS = {
    "mogp-ar": later("groups share latent functions, and a step uses a few classes."),
    "mg-m": later("the full softmax in each step: how much does augment-and-reduce lose?"),
    "g-m": later("each group alone, with the full softmax."),
    "g-a": later("each group alone, with augment-and-reduce."),
}
