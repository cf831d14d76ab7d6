"""Minimum arithmetic of a step, and speed of matrix products of its size.

`min_flops` counts additions and multiplications in matrix operations, exploiting symmetric and
triangular matrices, with a gradient at twice the cost of its function; elementwise operations are
not counted. An L-BFGS step counts as one evaluation; other work has the observed number of
evaluations. `gemm_rate` measures the product of matrices of the sizes of a case. The ratio is a
lower bound of the efficiency of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from scant.bench.timing import timed

Sizes = Mapping[str, int]
LARGEST = 2000  # maximum size of measured products; the rate of larger ones is the same
GRADIENT = 3  # cost of a function with its gradient


def _gpz(s: Sizes, per_input: int) -> float:
    """Count features, Gram matrix with two products of the gradient, factor and inverse."""
    n, m = s["n"], s["m"]
    return GRADIENT * (2 * n * m * per_input + n * m * m) + m**3


def _sparse(n: int, m: int, functions: int = 1, inputs: int = 0, outputs: int = 0) -> float:
    """Count two triangular products per function, distances, mixing, and a factor of K."""
    rows = 2 * m * m + 2 * m * inputs + 2 * outputs
    return functions * (GRADIENT * n * rows + m**3)


def _latent(n: int, m: int, inputs: int, outputs: int) -> float:
    """Count half of Psi2 with a sum over inputs, Psi1' Y, factor and inverse."""
    return GRADIENT * (n * m * m * inputs + 2 * n * m * outputs) + m**3


def _dense(n: int, columns: int = 0) -> float:
    """Count factor and inverse of K, and products of K with `columns` columns in both passes."""
    return n**3 + 4 * n * n * columns


def _hmogp(s: Sizes) -> float:
    """Count Kronecker products over inputs, and a dense q(U) with five inducing outputs."""
    return GRADIENT * s["n"] * s["m"] ** 2 + (5 * s["m"]) ** 3


def _kronecker(rows: int, m: int) -> float:
    """Count as `_hmogp` with a Kronecker covariance of q(U), where outputs are negligible."""
    return GRADIENT * rows * m**2 + m**3


def _private(n: int, m: int, classes: int) -> float:
    """Count Psi2 with five shared inputs for all pairs and five private ones within classes."""
    return n * 5 * ((classes * m) ** 2 + m**2)


def _sclvm(s: Sizes) -> float:
    """Count with outputs rotated to the number of rows, and one factor for all inducing points."""
    n, m = s["n"], s["classes"] * s["m"]
    return GRADIENT * (_private(n, s["m"], s["classes"]) + 2 * n * m * min(n, 900)) + m**3


def _eight_views(s: Sizes) -> float:
    """Count two neurons each for views of 26, 58, 58 and 128 columns, and an output neuron."""
    hidden = sum(_sparse(s["n"], s["m"], 1, d) for d in (26, 58, 58, 128))
    return 2 * hidden + _sparse(s["n"], s["m"], 1, 8)


BANDS = 21 * (28 + 3)  # components per row, products of six inputs and sums over pairs
INFERENCE = 26  # evaluations for a new row with two classes and two starts
FIT, REFIT = 9, 5  # numbers of evaluations

# By model, or by model and method if the count differs.
FLOPS: dict[str | tuple[str, str], Callable[[Sizes], float]] = {
    "gpz": lambda s: _gpz(s, 10),
    ("gpz", "Scant VC"): lambda s: _gpz(s, 66),  # features of ten inputs, as pairs
    ("gpz", "Scant VC, 1 worker"): lambda s: _gpz(s, 66),
    ("gpz", "Scant VC, 2 workers"): lambda s: _gpz(s, 66),
    ("gpz", "RAIL's GPz VC"): lambda s: _gpz(s, 66),
    ("gpz", "Scant VC, bands missing"): lambda s: s["n"] * s["m"] ** 2 * BANDS,
    ("gpz", "GPyTorch SVGP"): lambda s: _sparse(s["n"], s["m"], inputs=10),
    "mtgpa": lambda s: _sparse(s["n"], s["m"], functions=2),
    ("mtgpa", "Scant, natural, 50 rows"): lambda s: _sparse(100, s["m"], functions=2),
    ("mtgpa", "GPyTorch LMC, cells' centres"): lambda s: _sparse(s["n"], s["m"]),
    "hmogp_lv": _hmogp,
    "lvmogp": _hmogp,
    ("hmogp_lv", "Scant, natural, 50 outputs"): lambda s: _kronecker(50 * 40, s["m"]),
    ("hmogp_lv", "Scant, Adam as published"): lambda s: _kronecker(s["n"], s["m"]),
    "hgp": lambda s: _dense(s["n"]),
    ("hgp", "Scant HGPInd"): lambda s: _sparse(s["n"], s["m"]) + 3 * s["m"] ** 3,  # 4 outputs
    "mogp_ar": lambda s: _sparse(s["n"], s["m"], 5, 5, s["classes"]),
    ("mogp_ar", "Scant, a class drawn"): lambda s: _sparse(s["n"], s["m"], 5, 5, 2),
    ("mogp_ar", "Scant, a class drawn, fifty alphabets"): lambda s: _sparse(
        s["n"], s["m"], 10, 5, 2
    ),
    ("mogp_ar", "Scant, 3 functions"): lambda s: _sparse(s["n"], s["m"], 3, 4, s["classes"]),
    ("mogp_ar", "GPyTorch LMC, softmax, 3 functions"): lambda s: _sparse(
        s["n"], s["m"], 3, 4, s["classes"]
    ),
    "mogp_ar, patches": lambda s: _sparse(s["n"], s["m"], 10),
    "sclvm": _sclvm,
    ("sclvm", "Scant, new rows"): lambda s: (
        INFERENCE * GRADIENT * _private(s["n"], s["m"], s["classes"])
    ),
    "bgplvm": lambda s: _latent(s["n"], s["m"], 5, 100),
    ("bgplvm", "GPyTorch Bayesian GPLVM"): lambda s: _sparse(s["n"], s["m"], 100),
    "dgplvm": lambda s: _dense(s["n"], 100),
    "dfgp": lambda s: _sparse(s["n"], s["m"], 7, 27) + _sparse(s["n"], s["m"], 1, 7),
    ("dfgp", "Scant, eight views of classes"): _eight_views,
    ("dfgp", "GPyTorch SVGP (one layer)"): lambda s: _sparse(s["n"], s["m"], 1, 27),
    "student_t": lambda s: _dense(s["n"], 8),
    "laplace": lambda s: _dense(s["n"], 20),
    ("laplace", "Scant, whole fit"): lambda s: FIT * _dense(s["n"], 20),
    ("laplace", "Scant, ten more labels"): lambda s: REFIT * _dense(s["n"] + 10, 20),
    "svgp": lambda s: _sparse(s["n"], s["m"], 1, 27),
}


def min_flops(model: str, method: str, sizes: Sizes) -> float:
    """Return the minimum number of floating-point operations of a step."""
    formula = FLOPS[(model, method)] if (model, method) in FLOPS else FLOPS[model]
    return float(formula(sizes))


def gemm_rate(sizes: Sizes, device: torch.device, dtype: torch.dtype) -> float:
    """Measure the operations per second of (m x n) times (n x m), or n x n without m."""
    n = min(sizes["n"], LARGEST)
    m = min(sizes.get("m", n), LARGEST)
    a = torch.ones(m, n, device=device, dtype=dtype)
    timing = timed(lambda: a @ a.T, device, rounds=5, seconds=0.1)
    ms = timing.cpu if device.type == "cpu" else timing.ms
    return 2 * m * m * n / (max(ms, 1e-6) / 1000)
