"""Mitosis, first tab: a rare class that keeps a latent space of its own."""

from __future__ import annotations

from typing import Any

from scant.studies import auto
from scant.studies.demo_draws import sentence
from scant.studies.mitosis.settings import BOTH, GP, LATENT, MODELS, PIXELS
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.lazy_view import LazyView
from scant_dashboard.page_parts.prose import read_prose
from scant_dashboard.page_parts.variants import Alternatives, Variant
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.pages.mitosis.cells import Covariances, Strips
from scant_dashboard.pages.mitosis.generate import Generate
from scant_dashboard.pages.mitosis.imbalance import Imbalance
from scant_dashboard.pages.mitosis.latent_placement import LatentPlacement
from scant_dashboard.pages.mitosis.latent_traversal import LatentTraversal
from scant_dashboard.pages.mitosis.spaces import Private, Space
from scant_dashboard.pages.mitosis.threshold import Threshold
from scant_dashboard.plots.base import array_view
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.relevance import DimensionsPlot
from scant_dashboard.plots.reliability import ReliabilityPlot
from scant_dashboard.plots.table import figures

PUBLISHED = (
    "Published (Yousefi 2021, Table 3.1), on other data and so no measure of this run: AMIDA 2013, "
    "440 mitoses and 5,000 others to learn from, ten test sets. Precision, recall and F1: "
    "SCLVM 0.426 ± 0.024, 0.555 ± 0.007, 0.482 ± 0.015; "
    "BGPLVM + SVM 0.306 ± 0.013, 0.827 ± 0.000, 0.447 ± 0.014; "
    "DGPLVM + SVM 0.242 ± 0.008, 1.000 ± 0.000, 0.390 ± 0.011."
)
RELEVANCE = "Which dimensions count"
ELSE = "What if it were trained otherwise?"


def views(page: PageContext) -> PageViews:
    """Create the views of a browser session."""
    story, equations = read_prose(__package__)
    walk = LazyView(LatentTraversal.title, lambda: LatentTraversal(page), height=640)
    generate = LazyView(Generate.title, lambda: Generate(page), height=560)
    placement = LazyView(LatentPlacement.title, lambda: LatentPlacement(page), height=560)
    threshold = LazyView(Threshold.title, lambda: Threshold(page), height=640)
    imbalance = LazyView(Imbalance.title, lambda: Imbalance(page), height=640)
    explore: tuple[Any, ...] = (
        walk, generate, placement, threshold, imbalance, Alternatives(page, ELSE, alternatives)
    )  # fmt: skip
    return PageViews(
        story=story,
        equations=equations,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        main=frozenset({Space.title}),
        live=_live(),
        result=_result(),
        explore=explore,
        full_width=frozenset(
            {Strips.title, Covariances.title, "Figures", *(view.title for view in explore)}
        ),
        steps=(
            (Space.title, "All classes share these dimensions."),
            (Private.title, "The rare class has its own dimensions here."),
            (Strips.title, "Which of these cells is generated?"),
            (Covariances.title, "Within a class; between classes; together."),
            (walk.title, "What lies between two cells?"),
            (generate.title, "Generate new cells."),
            (placement.title, "Does this one divide?"),
            (threshold.title, "How many false positives is a true positive worth?"),
            (imbalance.title, "Fifty of them? Ten? Three?"),
        ),
        hides=hidden,
    )


def hidden(run: RunState) -> set[str]:
    """Return the titles of the views that do not apply to this run."""
    metadata, result = run.metadata, set()
    if metadata and not metadata.get("size"):
        result.add(Strips.title)
    if metadata and not metadata.get("n_private"):
        result.add(Private.title)
    return result


def _live() -> tuple[Any, ...]:
    return (
        LazyView(Space.title, Space),
        LazyView(Private.title, Private),
        LazyView(
            RELEVANCE,
            lambda: array_view(DimensionsPlot(RELEVANCE), "relevance", labels=("n_shared",)),
        ),
        LazyView(Strips.title, Strips),
        LazyView(Covariances.title, Covariances),
    )


def _result() -> tuple[Any, ...]:
    trust = LazyView(
        "Can its probabilities be trusted?", lambda: array_view(ReliabilityPlot(), "reliability")
    )
    return figures(sentence("mitosis"), PUBLISHED), trust


def alternatives(run: RunState) -> tuple[str, list[Variant]]:
    """Return a sentence on this run, and variants of model, imbalance and features."""
    used = auto.used(run.record.settings, run.metadata)
    n_train = run.metadata["rows"]["training"]
    others = [
        Variant(f"Train {message} instead", KNOWS[name], {"model": name})
        for name, message in MODELS.items()
        if name != used["model"]
    ]
    others += [
        Variant(
            f"Train again with 1:{ratio}",
            "as many others as rare rows." if ratio == 1 else f"{ratio} others for each rare row.",
            {"imbalance": float(ratio)},
        )
        for ratio in (1, 30, 100)
        if ratio != used["imbalance"]
    ]  # fmt: skip
    if used["n_components"] and run.metadata.get("size"):
        text = "as published: slower, and worse on few rows."
        others.append(Variant("Train again with every pixel", text, {"n_components": 0}))
    if used["tempered"] and used["model"] == "sclvm":
        others.append(
            Variant(
                "Train again without tempering",
                "are its probabilities overconfident?",
                {"tempered": False},
            )
        )
    if used["n_private_dims"] != 1 and used["model"] == "sclvm":
        others.append(
            Variant(
                "Train again with one private dimension",
                "how small a private space suffices?",
                {"n_private_dims": 1},
            )
        )
    if run.metadata.get("size") and used.get("features", PIXELS) != PIXELS:
        text = "without the network that has seen photographs: what does it add?"
        others.append(Variant("Train again with pixels alone", text, {"features": PIXELS}))
    message = f"This run trained {MODELS[str(used['model'])]} on {n_train:,} rows"
    classifier = {GP: "a GP classifier", BOTH: "this model and a GP classifier"}.get(
        used.get("classifier", LATENT)
    )
    if classifier is None:
        return f"{message}.", others
    text = "by the latent variable model alone, as published."
    others.insert(
        0, Variant("Train again with latent variables alone", text, {"classifier": LATENT})
    )
    return f"{message}; {classifier} told the classes.", others


KNOWS = {
    "sclvm": "each class has private dimensions.",
    "bgplvm": "one space without classes, and a weighted SVM in it.",
    "dgplvm": "one space that separates the classes, and a weighted SVM in it.",
}
