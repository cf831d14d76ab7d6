"""Alternative settings of a multiview run, each with a link."""

from __future__ import annotations

from scant.studies.multiview.settings import LAYERED, MODELS
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.variants import Variant
from scant_dashboard.translate import later, tr

KNOWS = {
    "dfgp": later("hidden neurons and a nonlinear output"),
    "dfgp-wp": later("the same neurons and a linear output: a Wishart prior"),
    "sgp": later("one sparse Gaussian process on all features at once, without a hidden layer"),
    "student-t": later("one process with heavier tails, scaled by the data"),
}
BOUNDS = {
    "published": later("point estimates of the inducing outputs of hidden neurons."),
    "closed": later("uncertain inducing outputs, which give a bound on the evidence."),
    "stochastic": later("hidden values sampled in each step; it also learns from censored times."),
}


PARTS = ((2, later("half of the training rows.")), (5, later("a fifth of the training rows.")))


def alternatives(run: RunState) -> tuple[str, list[Variant]]:
    """Return variants with another model or bound, or fewer training rows."""
    used, metadata = run.record.settings, run.metadata
    model, bound = str(used["model"]), str(used["bound"])
    if bound == "auto":
        bound = "stochastic" if metadata.get("task") == "survival" else "published"
    others = [
        Variant(
            tr("Train {model} instead", model=MODELS[name]),
            f"{tr(knows)}.",
            # The other bounds are of networks alone.
            {"model": name} if name in LAYERED else {"model": name, "bound": "auto"},
        )
        for name, knows in KNOWS.items()
        if name != model and (name != "student-t" or metadata.get("task") != "classification")
    ]
    if model in LAYERED:
        others += [
            Variant(
                tr("Train again with the {bound} bound", bound=name), tr(effect), {"bound": name}
            )
            for name, effect in BOUNDS.items()
            if name != bound
        ]
    rows = int((metadata.get("rows") or {}).get("training", 0))
    others += [
        Variant(
            tr("Train again on {n:,} rows", n=rows // part),
            tr(message),
            {"training_size": rows // part},
        )
        for part, message in PARTS
        if rows // part >= 20
    ]
    message = tr("This run trained {model}: {what}.", model=MODELS[model], what=tr(KNOWS[model]))
    return message, others
