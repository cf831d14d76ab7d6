"""Benchmark cases of the models over n, m and classes, with counterparts in other packages.

A `Sweep` varies one size at a time from its base. n is the number of rows in a step, m the number
of inducing points or basis functions (for each class, latent function or neuron, if separate), and
classes the number of classes. Sizes that a model does not have are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from scant.bench import programs, steps
from scant.bench.rows import DOUBLE, On
from scant.bench.timing import Step
from scant.errors import NotFound

ADAM, LBFGS, GRADIENT = "step of Adam", "step of L-BFGS", "objective and gradient"
NATURAL = "natural step, and one of Adam"
BASE = "base"


@dataclass(frozen=True)
class Case:
    """Single measurement; `varies` is the name of the size that differs from the base."""

    model: str
    method: str
    work: str
    varies: str
    sizes: Mapping[str, int]
    build: Callable[..., Step]
    cuda: bool = True
    double: str = ""
    needs: str = ""
    workers: int = 1

    def refused(self, dtype: torch.dtype = DOUBLE) -> str:
        """Return why the case cannot be measured in this precision; "" if it can."""
        if self.double and dtype != DOUBLE:
            return self.double
        return programs.missing(self.needs) if self.needs else ""

    def step(self, device: torch.device, dtype: torch.dtype = DOUBLE) -> Step:
        """Build the step on a device with a dtype."""
        return self.build(on=On(device, dtype), **self.sizes)


@dataclass(frozen=True)
class Sweep:
    """Cost of a method by size, one size at a time.

    Args:
        model: Name of the model.
        method: Name of the method or package.
        work: Description of a step.
        build: Function of the sizes and `on` (`scant.bench.rows.On`) that returns a step.
        base: Base sizes.
        over: Further values of each size; empty to measure only the base.
        cuda: True if the method supports CUDA.
        double: Reason for a measurement only in double precision; "" for none.
        needs: Required package of the extra `peers`.
        workers: Number of processes; CPU time is not measured for several.
    """

    model: str
    method: str
    work: str
    build: Callable[..., Step]
    base: Mapping[str, int]
    over: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    cuda: bool = True
    double: str = ""
    needs: str = ""
    workers: int = 1

    def cases(self, quick: bool = False) -> list[Case]:
        """Return the base and the other sizes; with `quick`, only the first value of each size."""
        points = [(BASE, self.base)]
        for name, values in self.over.items():
            points += [(name, {**self.base, name: v}) for v in values[: 1 if quick else None]]
        names = ("build", "cuda", "double", "needs", "workers")
        options = {name: getattr(self, name) for name in names}
        return [Case(self.model, self.method, self.work, *point, **options) for point in points]


# 8 inputs in comparisons with scikit-learn, whose gradient has a matrix per lengthscale.
NARROW = 8
GALAXIES = {"n": 4000, "m": 25}
CELLS = {"n": 740, "m": 100}
CURVES = {"n": 2000, "m": 32}
ROWS = {"n": 512}
MIXED = {"n": 200, "m": 100, "classes": 20}
FEATURES = {"n": 1000, "m": 10}
LABELS = {"n": 500}
POINTS = {"n": 4000, "m": 50}
OVER_GPZ = {"n": (1000, 16_000), "m": (100, 50, 200)}
OVER_CURVES = {"n": (400, 10_000), "m": (16, 64)}
OVER_ROWS = {"n": (128, 256, 1024)}
OVER_MIXED = {"n": (50, 800), "m": (50, 200), "classes": (100, 400)}
OVER_FEATURES = {"n": (500, 4000), "m": (25, 50)}
OVER_LABELS = {"n": (100, 250, 1000)}
OVER_CLASSES = {"classes": (100, 400)}
OVER_POINTS = {"n": (1000, 16_000), "m": (10, 100)}
TWO = {"n": 500, "classes": 2}
NUMPY = "It computes in double precision alone, by NumPy and SciPy."
TENSORFLOW = "GPflow's precision is one for the whole process, and double by default."
IN_SKLEARN: Mapping[str, Any] = {"cuda": False, "double": NUMPY}
IN_GPFLOW: Mapping[str, Any] = {
    "cuda": False,
    "double": TENSORFLOW,
    "needs": programs.GPFLOW,
}
IN_GPY: Mapping[str, Any] = {**IN_SKLEARN, "needs": programs.GPY}
IN_RAIL: Mapping[str, Any] = {**IN_SKLEARN, "needs": programs.RAIL}

SWEEPS = (
    Sweep("gpz", "Scant VC", LBFGS, steps.gpz("VC"), GALAXIES, OVER_GPZ),
    Sweep("gpz", "Scant VD", LBFGS, steps.gpz("VD"), GALAXIES, {"m": (100,)}),
    Sweep("gpz", "Scant VL", LBFGS, steps.gpz("VL"), GALAXIES, {"m": (100,)}),
    *(
        Sweep(
            "gpz",
            f"Scant VC, {workers} worker{'s'[: workers - 1]}",
            GRADIENT,
            steps.many_rows(workers),
            {"n": 500_000, "m": 25},
            cuda=False,
            double="" if workers == 1 else "Several processes are compared in double precision.",
            workers=workers,
        )
        for workers in (1, 2)
    ),
    Sweep("gpz", "Scant VC, bands missing", "predict", steps.missing_bands, GALAXIES),
    Sweep("gpz", "GPyTorch SVGP", ADAM, steps.galaxies_sparse, GALAXIES, OVER_GPZ),
    *(
        Sweep(
            "gpz", f"RAIL's GPz {c}", GRADIENT, programs.rail(c), GALAXIES, {"m": (100,)}, **IN_RAIL
        )
        for c in ("VC", "VD", "VL")
    ),
    Sweep("mtgpa", "Scant", ADAM, steps.mtgpa(), CELLS, {"n": (240, 2080), "m": (50, 25, 200)}),
    Sweep("mtgpa", "Scant, natural", NATURAL, steps.mtgpa("natural"), CELLS),
    Sweep(
        "mtgpa",
        "Scant, natural, 50 rows",
        NATURAL,
        steps.mtgpa("natural", 50),
        CELLS,
        {"n": (2080, 99_280)},
    ),
    Sweep(
        "mtgpa",
        "GPyTorch LMC, cells' centres",
        ADAM,
        steps.centres,
        CELLS,
        {"n": (240,), "m": (50,)},
    ),
    Sweep("hmogp_lv", "Scant", LBFGS, steps.hmogp(), CURVES, OVER_CURVES),
    Sweep("hmogp_lv", "Scant, same inputs", LBFGS, steps.hmogp(same=True), CURVES),
    Sweep(
        "hmogp_lv",
        "Scant, natural, 50 outputs",
        NATURAL,
        steps.hmogp("natural", 50),
        CURVES,
        {"n": (10_000, 40_000)},
    ),
    Sweep("hmogp_lv", "Scant, Adam as published", ADAM, steps.published_hmogp, {"n": 128, "m": 28}),
    Sweep("lvmogp", "Scant", LBFGS, steps.lvmogp, CURVES, OVER_CURVES),
    Sweep("hgp", "Scant DHGP", GRADIENT, steps.hgp("DHGP"), ROWS, OVER_ROWS),
    Sweep("hgp", "Scant HGP", GRADIENT, steps.hgp("HGP"), ROWS, OVER_ROWS),
    Sweep(
        "hgp",
        "Scant HGPInd",
        GRADIENT,
        steps.hgp("HGPInd"),
        {"n": 512, "m": 12},
        {**OVER_ROWS, "m": (6, 24)},
    ),
    Sweep("hgp", "GPyTorch ExactGP, DHGP's kernel", GRADIENT, steps.gpytorch_dhgp, ROWS, OVER_ROWS),
    Sweep("mogp_ar", "Scant", ADAM, steps.mogp(), MIXED, OVER_MIXED),
    Sweep("mogp_ar", "Scant, a class drawn", ADAM, steps.mogp(sampled=1), MIXED, OVER_CLASSES),
    Sweep(
        "mogp_ar", "Scant, 3 functions", ADAM, steps.mogp(3, 4), {"n": 200, "m": 100, "classes": 3}
    ),
    Sweep("mogp_ar", "Scant MG-M", ADAM, steps.mogp(name="mg-m"), MIXED, OVER_CLASSES),
    Sweep(
        "mogp_ar",
        "Scant, a class drawn, fifty alphabets",
        ADAM,
        steps.alphabets,
        {"n": 450, "m": 100, "classes": 1623},
    ),
    Sweep(
        "mogp_ar",
        "GPyTorch LMC, softmax",
        ADAM,
        steps.gpytorch_lmc(),
        MIXED,
        {"m": (50,), "classes": (100,)},
    ),
    Sweep(
        "mogp_ar",
        "GPyTorch LMC, softmax, 3 functions",
        ADAM,
        steps.gpytorch_lmc(3, 4),
        {"n": 200, "m": 100, "classes": 3},
    ),
    Sweep(
        "mogp_ar, patches",
        "Scant, a class drawn",
        ADAM,
        steps.patches(sampled=1),
        {"n": 100, "m": 100, "classes": 28},
        {"n": (50, 200), "m": (50, 25), "classes": (100, 200)},
    ),
    Sweep(
        "mogp_ar, patches",
        "Scant",
        ADAM,
        steps.patches(),
        {"n": 100, "m": 100, "classes": 28},
        {"classes": (100, 200)},
    ),
    Sweep(
        "mogp_ar, patches",
        "Scant, grey 5 x 5",
        ADAM,
        steps.patches(grey=True, patch=5),
        {"n": 20, "m": 25, "classes": 8},
    ),
    Sweep(
        "sclvm",
        "Scant",
        GRADIENT,
        steps.sclvm,
        {"n": 1000, "m": 30, "classes": 2},
        {"n": (500, 2000), "m": (10, 50), "classes": (3, 5)},
    ),
    Sweep(
        "sclvm", "Scant, new rows", "placing them", steps.placing, {"n": 100, "m": 50, "classes": 2}
    ),
    Sweep(
        "bgplvm",
        "Scant",
        GRADIENT,
        steps.bgplvm,
        {"n": 500, "m": 50},
        {"n": (250, 1000, 2000), "m": (25, 100)},
    ),
    Sweep(
        "bgplvm",
        "GPyTorch Bayesian GPLVM",
        ADAM,
        steps.gpytorch_gplvm,
        {"n": 500, "m": 50},
        {"n": (250,), "m": (25,)},
    ),
    Sweep(
        "bgplvm",
        "GPflow BayesianGPLVM",
        GRADIENT,
        programs.gpflow_latent,
        {"n": 500, "m": 50},
        {"n": (1000,), "m": (25,)},
        **IN_GPFLOW,
    ),
    Sweep(
        "bgplvm",
        "GPy BayesianGPLVM",
        GRADIENT,
        programs.gpy_latent,
        {"n": 500, "m": 50},
        {"n": (1000,), "m": (25,)},
        **IN_GPY,
    ),
    Sweep(
        "dgplvm",
        "Scant",
        GRADIENT,
        steps.dgplvm,
        {"n": 400, "classes": 2},
        {"n": (100, 200, 800), "classes": (5, 10)},
    ),
    Sweep("dfgp", "Scant", ADAM, steps.dfgp("published"), FEATURES, OVER_FEATURES),
    Sweep("dfgp", "Scant, closed bound", ADAM, steps.dfgp("closed"), FEATURES, {"m": (50,)}),
    Sweep(
        "dfgp", "Scant, stochastic bound", ADAM, steps.dfgp("stochastic"), FEATURES, {"m": (50,)}
    ),
    Sweep("dfgp", "Scant, eight views of classes", ADAM, steps.eight_views, {"n": 420, "m": 10}),
    Sweep(
        "dfgp", "GPyTorch SVGP (one layer)", ADAM, steps.gpytorch_sparse, FEATURES, OVER_FEATURES
    ),
    Sweep("student_t", "Scant", GRADIENT, steps.student_t(NARROW), LABELS, OVER_LABELS),
    Sweep("student_t", "GPyTorch ExactGP", GRADIENT, steps.exact(NARROW), LABELS, OVER_LABELS),
    Sweep(
        "student_t",
        "scikit-learn GPR",
        GRADIENT,
        steps.regressor(NARROW),
        LABELS,
        OVER_LABELS,
        **IN_SKLEARN,
    ),
    Sweep("laplace", "Scant", GRADIENT, steps.laplace(False), TWO, OVER_LABELS),
    Sweep("laplace", "Scant, ARD", GRADIENT, steps.laplace(True), TWO, {"n": (100, 250)}),
    Sweep("laplace", "Scant, whole fit", "fit", steps.laplace_fit, TWO),
    Sweep("laplace", "Scant, ten more labels", "fit of 5 steps", steps.laplace_refit, TWO),
    Sweep(
        "laplace",
        "scikit-learn GPC",
        GRADIENT,
        steps.sklearn_laplace(False),
        TWO,
        OVER_LABELS,
        **IN_SKLEARN,
    ),
    Sweep(
        "laplace",
        "scikit-learn GPC, ARD",
        GRADIENT,
        steps.sklearn_laplace(True),
        TWO,
        {"n": (100, 250)},
        **IN_SKLEARN,
    ),
    Sweep(
        "laplace",
        "GPflow VGP",
        GRADIENT,
        programs.gpflow_classes,
        TWO,
        {"n": (100, 250)},
        **IN_GPFLOW,
    ),
    Sweep("laplace", "GPy Laplace", GRADIENT, programs.gpy_laplace, TWO, {"n": (250,)}, **IN_GPY),
    Sweep("svgp", "Scant", ADAM, steps.svgp, POINTS, OVER_POINTS),
    Sweep("svgp", "GPyTorch SVGP", ADAM, steps.gpytorch_sparse, POINTS, OVER_POINTS),
    Sweep(
        "svgp", "GPflow SGPR", GRADIENT, programs.gpflow_sparse, POINTS, {"n": (1000,)}, **IN_GPFLOW
    ),
)
MODELS = tuple(dict.fromkeys(sweep.model for sweep in SWEEPS))


def cases(model: str | None = None, quick: bool = False) -> list[Case]:
    """Return the cases of a model; None for all models.

    Raises:
        NotFound: There is no such model.
    """
    if model is not None and model not in MODELS:
        raise NotFound(f"There is no model {model!r} to measure; there are {', '.join(MODELS)}.")
    selected = [sweep for sweep in SWEEPS if model in (None, sweep.model)]
    return [case for sweep in selected for case in sweep.cases(quick)]
