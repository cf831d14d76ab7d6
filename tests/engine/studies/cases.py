"""A small problem of each kind that a study takes, fitted once for all tests of all studies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from scant.events import Event, Finished, Report
from scant.studies.aggregation.simulate import fertility, poisson
from scant.studies.genes import simulate as genes
from scant.studies.genes.settings import MODELS as GENES
from scant.studies.mitosis.settings import MODELS as MITOSIS
from scant.studies.multiview.settings import MODELS as MULTIVIEW
from scant.studies.omniglot.settings import MODELS as OMNIGLOT
from scant.studies.protocol import Study, study_class
from scant.studies.redshift.simulate import simulate as galaxies
from scant.training.loop import train
from tests.engine.studies import studying
from tests.engine.studies.clamp import pools
from tests.engine.studies.mitosis import nuclei
from tests.engine.studies.multiview import views
from tests.engine.studies.omniglot import alphabets

CPU = torch.device("cpu")


def births() -> pd.DataFrame:
    """Cells of young women over twenty years, and boxes of five years."""
    table = fertility.demo(studying.settings("aggregation"))
    young = table[(table["age_hi"] <= 30) & (table["year_hi"] <= 1964)]
    return young.reset_index(drop=True)


def three_clouds() -> pd.DataFrame:
    return nuclei.clouds({"few": 15, "some": 30, "many": 60})


def features() -> pd.DataFrame:
    """Classes as clouds of points in three dimensions; buildings of two and three floors."""
    rng = np.random.default_rng(0)
    names = [("north", "1"), ("north", "2"), ("south", "1"), ("south", "2"), ("south", "3")]
    rows = [
        {"output": o, "label": c, **dict(zip("abc", rng.normal(2 * np.eye(5)[i, :3], 0.6)))}
        for i, (o, c) in enumerate(names)
        for _ in range(15)
    ]
    return pd.DataFrame(rows)


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "births": births,
    "counts": lambda: poisson.demo(studying.settings("aggregation"), 60),
    "galaxies": lambda: galaxies(130, seed=1),
    "genes": lambda: genes.demo(studying.settings("genes")),
    "drawings": alphabets.drawings,
    "features": features,
    "patches": nuclei.patches,
    "clouds": three_clouds,
    "classes": views.classes,
    "values": views.values,
    "lives": views.lives,
    "pool": pools.clouds,
    "three": pools.three,
}


class Case(NamedTuple):
    """A study, the table that it learns from, and settings beyond the usual ones of tests."""

    study: str
    table: str
    values: dict[str, Any]

    def rows(self) -> pd.DataFrame:
        return table(self.table).copy()

    def make(self, **values: Any) -> Study:
        """The study, not trained yet."""
        settings = studying.settings(self.study, **{**self.values, **values})
        return study_class(self.study)(settings, self.rows(), CPU)


@cache
def table(name: str) -> pd.DataFrame:
    return TABLES[name]()


def _cases() -> dict[str, Case]:
    sparse = {"n_inducing": 12, "max_steps": 12, "fine_rows": 40}
    made = [
        ("aggregation", "births", {**sparse, "optimizer": "natural", "batch_size": 50}),
        ("aggregation", "births", {**sparse, "inference": "exact", "max_steps": 6}),
        ("aggregation", "births", {**sparse, "optimizer": "em"}),
        ("aggregation", "counts", {**sparse, "optimizer": "adam"}),
        ("redshift", "galaxies", {}),
        ("redshift", "galaxies", {"covariance": "VD", "start": "direct", "combine": "best"}),
        ("redshift", "galaxies", {"features": "as given", "robust": "no", "joint_mean": False}),
        ("redshift", "galaxies", {"errors": "as noise", "covariance": "GL"}),
        ("redshift", "galaxies", {"errors": "ignore", "weights": "balanced"}),
        ("redshift", "galaxies", {"weights": "normalized", "heteroscedastic": False}),
        ("redshift", "galaxies", {"log_target": "yes"}),
        *(("genes", "genes", {"model": model}) for model in (*GENES, "hlmc")),
        ("genes", "genes", {"optimizer": "natural", "batch_size": 3}),
        ("genes", "genes", {"model": "lvmogp", "optimizer": "adam", "restarts": 2}),
        *(("omniglot", t, {"model": m}) for m in OMNIGLOT for t in ("drawings", "features")),
        ("omniglot", "drawings", {"sampled_classes": 1, "restarts": 2, "pixels": "gray"}),
        *(("mitosis", t, {"model": m}) for m in MITOSIS for t in ("patches", "clouds")),
        ("mitosis", "patches", {"n_components": 0}),
        ("mitosis", "patches", {"classifier": "both", "restarts": 2}),
        *(
            ("multiview", t, {"model": m})
            for m in MULTIVIEW
            for t in ("classes", "values", "lives")
            if (m, t) != ("student-t", "classes")  # which learns no classes
        ),
        ("multiview", "lives", {"bound": "stochastic", "model": "dfgp-wp"}),
        ("multiview", "classes", {"n_components": 2, "views": "shape,noise", "restarts": 2}),
        ("multiview", "values", {"log_target": "yes", "bound": "closed", "adam_steps": 4}),
        ("clamp", "pool", {"budget": 40, "repeats": 1, "patience": 0}),
        ("clamp", "three", {}),
        ("clamp", "pool", {"link": "probit", "diverse": "determinant"}),
    ]
    named = {}
    for study, own, values in made:
        told = ", ".join(str(v) for k, v in values.items() if k not in sparse)
        named[f"{study}: {own}{told and ', '}{told}"] = Case(study, own, values)
    return named


CASES = _cases()
FIRST = {case.study: name for name, case in reversed(CASES.items())}  # one case of each study


@cache
def fitted(name: str) -> tuple[Study, Report, list[Event]]:
    """A study trained to its end, its report and what it said on the way; nothing changes it."""
    study = CASES[name].make()
    events = list(train(study))
    assert isinstance(events[-1], Finished)
    return study, events[-1].report, events


def query(study: Any, question: str) -> dict[str, Any]:
    """Arguments with which any study answers a question."""
    names, seen = study.metadata, getattr(getattr(study, "data", None), "observed", None)
    match study.settings.study:
        case "aggregation":
            bounds = [(min(e), max(e)) for e in names["edges"]]
            return {"lo": [a for a, _ in bounds], "hi": [b for _, b in bounds], "n": 20}
        case "redshift":
            return {"off": [study.features.bands[0]], "row": 3}
        case "genes":
            first = names["outputs"][1]
            return {"output": first, "replica": names["replicas"][1][1], "outputs": [first]}
        case "omniglot":
            return {"pixels": [0.5] * seen.x.shape[1], "row": 3, "k": 2, "latent": 1}
        case "mitosis":
            width, q = len(study.data.columns.centre), names["n_shared"] + names["n_private"]
            given = "pixels" if study.data.image else "features"
            own = {"x": [0.1] * q, given: [0.5] * width}
            return own | {"index": 2, "ratio": 2, "label": names["classes"][0]}
        case "multiview":
            lives = {"name": seen.patients[1]} if question == "patient" else {}
            return lives | {"names": seen.names[0], "index": int(study.data.test[0]), "n": 1}
        case _:
            return {"row": 3, "rows": [1, 2]} if question != "ask" else {}
