"""Alternative settings of a multiview run, each with a link."""

from __future__ import annotations

from scant.studies.multiview.settings import LAYERED, MODELS
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.variants import Variant

KNOWS = {
    "dfgp": "hidden neurons and a nonlinear output",
    "dfgp-wp": "the same neurons and a linear output: a Wishart prior",
    "sgp": "one sparse Gaussian process on all features at once, without a hidden layer",
    "student-t": "one process with heavier tails, scaled by the data",
}
BOUNDS = {
    "published": "point estimates of the inducing outputs of hidden neurons.",
    "closed": "uncertain inducing outputs, which give a bound on the evidence.",
    "stochastic": "hidden values sampled in each step; it also learns from censored times.",
}


def alternatives(run: RunState) -> tuple[str, list[Variant]]:
    """Return variants with another model or bound, or fewer training rows."""
    used, metadata = run.record.settings, run.metadata
    model, bound = str(used["model"]), str(used["bound"])
    if bound == "auto":
        bound = "stochastic" if metadata.get("task") == "survival" else "published"
    others = [
        Variant(
            f"Train {MODELS[name]} instead",
            f"{knows}.",
            # The other bounds are of networks alone.
            {"model": name} if name in LAYERED else {"model": name, "bound": "auto"},
        )
        for name, knows in KNOWS.items()
        if name != model and (name != "student-t" or metadata.get("task") != "classification")
    ]
    if model in LAYERED:
        others += [
            Variant(f"Train again with the {name} bound", effect, {"bound": name})
            for name, effect in BOUNDS.items()
            if name != bound
        ]
    rows = int((metadata.get("rows") or {}).get("training", 0))
    others += [
        Variant(
            f"Train again on {rows // part} rows",
            f"a {message} of the training rows.",
            {"training_size": rows // part},
        )
        for part, message in ((2, "half"), (5, "fifth"))
        if rows // part >= 20
    ]
    return f"This run trained {MODELS[model]}: {KNOWS[model]}.", others
