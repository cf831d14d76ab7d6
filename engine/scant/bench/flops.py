"""The least arithmetic of a step, and how fast the machine does the plainest of its size.

`least` counts additions and multiplications of matrices alone, with symmetric and triangular
halves used and a gradient at twice its function; exponentials, sums and kernels cost extra. A step
of L-BFGS counts as one evaluation; work of a length of its own, as many as it was seen to take on
the rows it is measured on. `gemm_rate` times a product of matrices of the case's sizes. The
two make the share of the machine's rate that a step reaches: a bound from below on what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from scant.bench.timing import timed

Sizes = Mapping[str, int]
LARGEST = 2000  # rows and columns that a product is timed on; its rate grows no more
GRADIENT = 3  # a function and its gradient


def _gpz(s: Sizes, per_input: int) -> float:
    """Features; Gram matrix with the gradient's two products; factor and inverse."""
    n, m = s["n"], s["m"]
    return GRADIENT * (2 * n * m * per_input + n * m * m) + m**3


def _sparse(n: int, m: int, functions: int = 1, inputs: int = 0, outputs: int = 0) -> float:
    """Two triangular products a function, distances, mixing; a factor of K."""
    rows = 2 * m * m + 2 * m * inputs + 2 * outputs
    return functions * (GRADIENT * n * rows + m**3)


def _latent(n: int, m: int, inputs: int, outputs: int) -> float:
    """The half of Psi2 with a sum over inputs, Psi1'Y; factor and inverse."""
    return GRADIENT * (n * m * m * inputs + 2 * n * m * outputs) + m**3


def _dense(n: int, columns: int = 0) -> float:
    """Factor and inverse of K, and K times so many columns there and back."""
    return n**3 + 4 * n * n * columns


def _hmogp(s: Sizes) -> float:
    """As Kronecker products: inputs a row, and a dense q(U) of five inducing outputs."""
    return GRADIENT * s["n"] * s["m"] ** 2 + (5 * s["m"]) ** 3


def _kronecker(rows: int, m: int) -> float:
    """The same with a q(U) whose covariance is a Kronecker product; five outputs cost nothing."""
    return GRADIENT * rows * m**2 + m**3


def _private(n: int, m: int, classes: int) -> float:
    """Psi2 as in `_latent`: five shared inputs of all pairs, five private ones of own pairs."""
    return n * 5 * ((classes * m) ** 2 + m**2)


def _sclvm(s: Sizes) -> float:
    """Outputs are rotated to as many as there are rows, and all inducing points have one factor."""
    n, m = s["n"], s["classes"] * s["m"]
    return GRADIENT * (_private(n, s["m"], s["classes"]) + 2 * n * m * min(n, 900)) + m**3


def _eight_views(s: Sizes) -> float:
    """A neuron each of views of 26, 58, 58 and 128 columns, twice, and the output of eight."""
    hidden = sum(_sparse(s["n"], s["m"], 1, d) for d in (26, 58, 58, 128))
    return 2 * hidden + _sparse(s["n"], s["m"], 1, 8)


BANDS = 21 * (28 + 3)  # components of a row, products of six inputs and sums over pairs
PLACED = 26  # evaluations of a row: two classes, two starts
FIT, REFIT = 9, 5  # evaluations

# By model, or by model and method where this differs.
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
        PLACED * GRADIENT * _private(s["n"], s["m"], s["classes"])
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


def least(model: str, method: str, sizes: Sizes) -> float:
    """Floating-point operations that a step cannot do without."""
    formula = FLOPS[(model, method)] if (model, method) in FLOPS else FLOPS[model]
    return float(formula(sizes))


def gemm_rate(sizes: Sizes, device: torch.device, dtype: torch.dtype) -> float:
    """Operations a second of (m x n) times (n x m), or n x n without m, at this very moment."""
    n = min(sizes["n"], LARGEST)
    m = min(sizes.get("m", n), LARGEST)
    a = torch.ones(m, n, device=device, dtype=dtype)
    took = timed(lambda: a @ a.T, device, rounds=5, seconds=0.1)
    ms = took.cpu if device.type == "cpu" else took.ms
    return 2 * m * m * n / (max(ms, 1e-6) / 1000)
