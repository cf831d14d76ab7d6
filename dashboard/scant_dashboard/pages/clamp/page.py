"""Clamps: thousands of patches, one person's patience, and a model that asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scant.events import Report
from scant.store.records import Label
from scant.studies.clamp.settings import ClampSettings
from scant.studies.demo_draws import sentence
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.lazy_view import LazyView
from scant_dashboard.page_parts.prose import read_prose
from scant_dashboard.page_parts.variants import Alternatives, Variant
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.pages.clamp.label_efficiency import LabelEfficiencyPlot
from scant_dashboard.pages.clamp.labeling_view import LabelingView
from scant_dashboard.pages.clamp.labels_view import Labels
from scant_dashboard.pages.clamp.picture import Picture
from scant_dashboard.pages.clamp.pool import Efficiency, PoolView
from scant_dashboard.pages.clamp.progress import Answer
from scant_dashboard.pages.clamp.queue import Queue
from scant_dashboard.pages.clamp.session_labels import labeled_by_person, positive_class
from scant_dashboard.plots.base import DataView, array_view
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.relevance import BasisPlot
from scant_dashboard.plots.reliability import ReliabilityPlot
from scant_dashboard.plots.table import figures
from scant_dashboard.translate import later, tr

COMPARED = later("All methods on the same budget")
TRUST = later("Can its probabilities be trusted?")
SHARES = later("Features in few components")
ELSE = later("What if the acquisition were different?")
RARE = 0.1  # share of the class of interest


def views(page: PageContext) -> PageViews:
    """Create the views of a browser session."""
    story, equations = read_prose(__package__)
    pool, efficiency, queue = PoolView(), Efficiency(), Queue(page)

    def on_answer(answer: Answer, labels: Mapping[int, Label]) -> None:
        pool.on_answer(answer, labels)
        efficiency.on_answer(answer, labels)
        picture.on_answer()

    def current_labels() -> list[list[int]]:
        return labeling.session.labels.taught(labeling.session.classes)

    labeling = LabelingView(page, on_answer)
    picture = Picture(page, current_labels)
    queue.picked = picture.show
    picture.picked = labeling.session.pick
    picture.clicked = labeling.pick_around
    live: tuple[Any, ...] = (labeling, efficiency, pool)
    explore: tuple[Any, ...] = (
        Labels(page, labeling), queue, picture, Alternatives(page, ELSE, alternatives)
    )  # fmt: skip
    return PageViews(
        story=story,
        equations=equations,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        main=frozenset({Efficiency.title}),
        live=live,
        result=_result(),
        explore=explore,
        full_width=frozenset({LabelingView.title, "Figures", queue.title, picture.title, ELSE}),
        steps=(
            (Efficiency.title, later("How many labels does each need for the same F1?")),
            (PoolView.title, later("Which rows are queried?")),
            (queue.title, later("Would you have selected these?")),
            (picture.title, later("Where in this picture is what you look for?")),
            (LabelingView.title, later("Take the expert's place.")),
        ),
        hides=hidden,
    )


def hidden(run: RunState) -> set[str]:
    """Return the titles of the views that do not apply to this run."""
    metadata, result = run.metadata, set()
    if labeled_by_person(run):
        result |= {"Objective", "Figures", TRUST, COMPARED, Queue.title, ELSE}
    else:
        result.add(Labels.title)
    if metadata and not metadata.get("pictures"):
        result.add(Picture.title)
    return result


def _result() -> tuple[Any, ...]:
    def compared() -> DataView:
        plot = LabelEfficiencyPlot(COMPARED, "compared")

        def feed(data: Report, metadata: Mapping[str, Any]) -> None:
            a = data.arrays
            plot.show(a["labels"].astype(float), a["compare_f1"], metadata["compared"], "F1",
                      a["compare_sd"], tr("on average over several sessions each"))  # fmt: skip

        return DataView(plot, feed)

    def reliability() -> DataView:
        plot = ReliabilityPlot(TRUST)
        return DataView(
            plot,
            lambda data, metadata: plot.show(data.arrays["reliability"], positive_class(metadata)),
        )

    def shares() -> DataView:
        return array_view(BasisPlot(SHARES, tr("components"), tr("variance")), "eigenvalues")

    return (
        figures(sentence("clamp")),
        LazyView(COMPARED, compared, height=420),
        LazyView(TRUST, reliability),
        LazyView(SHARES, shares),
    )


def alternatives(run: RunState) -> tuple[str, list[Variant]]:
    """Return variants with another query strategy, rarer clamps, or fewer labels."""
    used, sought = run.record.settings, positive_class(run.metadata)
    settings = ClampSettings.parse(used)
    assert isinstance(settings, ClampSettings)
    method = settings.method
    others = [
        Variant(
            tr("Train again with {name} sampling", name=name), tr(message), {"acquisition": name}
        )
        for name, message in ASKS.items()
        if name != method
    ]
    if not used["imbalance"]:
        others.append(other_imbalance(run, sought))
    if used["diverse"] != "none":
        others.append(
            Variant(
                tr("Train again with batches of the most uncertain rows"),
                tr("as published: are the rows of a batch redundant?"),
                {"diverse": "none"},
            )
        )
    if not used["pace"]:
        others.append(
            Variant(
                tr("Train again at a pace that can be watched"),
                tr("ten labels a second."),
                {"pace": 10.0},
            )
        )
    return tr("This run sampled by {name}.", name=method), others


def other_imbalance(run: RunState, sought: str) -> Variant:
    """A rarer class of interest, or a more frequent one where it is rare already."""
    assert run.report is not None
    truth = np.asarray(run.report.arrays["truth"], int)
    own = truth == int(run.metadata.get("positive", 1))
    if own.sum() > RARE * (truth >= 0).sum():
        gain = tr("does active sampling gain more for a rarer class?")
        rarer = {"imbalance": 20.0, "start": 60, "budget": 300}
        train = tr("Train again with one {name} in twenty-one", name=sought)
        return Variant(train, gain, rarer)
    gain = tr("does active sampling gain less for a more frequent class?")
    train = tr("Train again with one {name} in five", name=sought)
    return Variant(train, gain, {"imbalance": 4.0})


ASKS = {
    "rare class first": later(
        "the likeliest of the rare class until enough are labeled, then the least confident."
    ),
    "band": later("p within 0.05 of one half, as published."),
    "entropy": later(
        "the same ranking as least confident for two classes, with different batches."
    ),
    "BALD": later(
        "the largest expected information about the latent function, not only about the row."
    ),
    "random": later("the baseline of active sampling."),
}
