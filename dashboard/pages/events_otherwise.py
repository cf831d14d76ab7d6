"""What else could be tried on the events page: each one click away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.pages.alternatives import Other
from engine.catalog.events import LAYERED, MODELS

if TYPE_CHECKING:
    from dashboard.live import History

KNOWS = {
    "dfgp": "hidden neurons, and an output that bends what they say",
    "dfgp-wp": "the same neurons under an output that is linear in them: a Wishart prior",
    "sgp": "one sparse Gaussian process on all features at once, without a hidden layer",
    "student-t": "one process with heavier tails, whose width follows the data",
}
BOUNDS = {
    "published": "hidden values go through the output kernel as in the publication.",
    "stochastic": "hidden values are drawn, and what they do not know counts.",
}


def otherwise(run: History) -> tuple[str, list[Other]]:
    """Other models, another bound, fewer rows to learn from."""
    used, words = run.record.settings, run.words
    model = str(used["model"])
    others = [
        Other(
            f"the same with {MODELS[name]}",
            f"{knows}.",
            # The stochastic bound is of networks alone.
            {"model": name} if name in LAYERED else {"model": name, "bound": "published"},
        )
        for name, knows in KNOWS.items()
        if name != model and (name != "student-t" or words.get("task") != "classification")
    ]
    if model in LAYERED:
        others += [
            Other(f"with the {name} bound", effect, {"bound": name})
            for name, effect in BOUNDS.items()
            if name != used["bound"]
        ]
    rows = int((words.get("rows") or {}).get("training", 0))
    others += [
        Other(f"on {rows // part} rows", f"a {said} of what it had.", {"train_rows": rows // part})
        for part, said in ((2, "half"), (5, "fifth"))
        if rows // part >= 20
    ]
    return f"This run trained {MODELS[model]}: {KNOWS[model]}.", others
