"""Mitosis, first tab: a rare class that keeps a latent space of its own."""

from __future__ import annotations

from typing import Any

from scant.studies import auto
from scant.studies.demo_draws import sentence
from scant.studies.mitosis.settings import BOTH, GP, LATENT, MODELS, PIXELS
from scant.studies.published import printed
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
from scant_dashboard.translate import later, tr

TABLE = "AMi-Br, 440 + 5,000"  # experiment of our results that stands beside Table 3.1
PUBLISHED = later(
    "Published (Yousefi 2021, Table 3.1), on other data and so no measure of this run: AMIDA 2013, "
    "440 mitoses and 5,000 others to learn from, ten test sets. Precision, recall and F1: {scores}."
)
RELEVANCE = later("Which dimensions count")
TRUST = later("Can its probabilities be trusted?")
ELSE = later("What if it were trained otherwise?")


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
            (Space.title, later("All classes share these dimensions.")),
            (Private.title, later("The rare class has its own dimensions here.")),
            (Strips.title, later("Which of these images is generated?")),
            (Covariances.title, later("Within a class; between classes; together.")),
            (walk.title, later("What lies between two rows?")),
            (generate.title, later("Generate new rows.")),
            (placement.title, later("Which class is this one?")),
            (threshold.title, later("How many false positives is a true positive worth?")),
            (imbalance.title, later("Fifty of them? Ten? Three?")),
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
    trust = LazyView(TRUST, lambda: array_view(ReliabilityPlot(), "reliability"))
    return figures(sentence("mitosis"), tr(PUBLISHED, scores=_published())), trust


def _published() -> str:
    """List the methods of the published table with their scores."""
    scores = printed("mitosis", TABLE)
    methods = dict.fromkeys(p.method for p in scores)
    return "; ".join(
        f"{method.removesuffix(', as published')} "
        + ", ".join(f"{p.value:.3f} ± {p.spread:.3f}" for p in scores if p.method == method)
        for method in methods
    )


def alternatives(run: RunState) -> tuple[str, list[Variant]]:
    """Return a sentence on this run, and variants of model, imbalance and features."""
    used = auto.used(run.record.settings, run.metadata)
    n_train = run.metadata["rows"]["training"]
    others = [
        Variant(tr("Train {model} instead", model=model), tr(KNOWS[name]), {"model": name})
        for name, model in MODELS.items()
        if name != used["model"]
    ]
    others += [
        Variant(
            tr("Train again with 1:{ratio}", ratio=ratio),
            tr("as many others as rare rows.")
            if ratio == 1
            else tr("{n} others for each rare row.", n=ratio),
            {"imbalance": float(ratio)},
        )
        for ratio in (1, 30, 100)
        if ratio != used["imbalance"]
    ]  # fmt: skip
    if used["n_components"] and run.metadata.get("size"):
        text = tr("as published: slower, and worse on few rows.")
        others.append(Variant(tr("Train again with every pixel"), text, {"n_components": 0}))
    if used["tempered"] and used["model"] == "sclvm":
        others.append(
            Variant(
                tr("Train again without tempering"),
                tr("are its probabilities overconfident?"),
                {"tempered": False},
            )
        )
    if used["n_private_dims"] != 1 and used["model"] == "sclvm":
        others.append(
            Variant(
                tr("Train again with one private dimension"),
                tr("how small a private space suffices?"),
                {"n_private_dims": 1},
            )
        )
    if run.metadata.get("size") and used.get("features", PIXELS) != PIXELS:
        text = tr("without the network pretrained on photographs: what does it add?")
        others.append(Variant(tr("Train again with pixels alone"), text, {"features": PIXELS}))
    classifier = used.get("classifier", LATENT)
    if classifier in (GP, BOTH):
        text = tr("by the latent variable model alone, as published.")
        train = tr("Train again with latent variables alone")
        others.insert(0, Variant(train, text, {"classifier": LATENT}))
    message = tr(TRAINED.get(classifier, TRAINED[LATENT]), model=MODELS[str(used["model"])],
                 rows=n_train)  # fmt: skip
    return message, others


TRAINED = {
    LATENT: later("This run trained {model} on {rows:,} rows."),
    GP: later("This run trained {model} on {rows:,} rows; a GP classifier predicted the classes."),
    BOTH: later(
        "This run trained {model} on {rows:,} rows; this model and a GP classifier predicted the "
        "classes."
    ),
}


KNOWS = {
    "sclvm": later("each class has private dimensions."),
    "bgplvm": later("one space without classes, and a weighted SVM in it."),
    "dgplvm": later("one space that separates the classes, and a weighted SVM in it."),
}
