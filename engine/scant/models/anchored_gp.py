"""GP regression with a lengthscale of each input, through some of its rows.

scikit-learn finds the hyperparameters of a kernel by the evidence of a few hundred rows. All rows
are then conditioned on through `MOST_ANCHORS` of them (Titsias 2009, equation 6): up to so many
rows the posterior is exact, and beyond it costs no more to ask. The noise of each row may be told
by another model; the kernel then has only what that does not explain.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

MOST_ANCHORS = 500
AT_ONCE = 2000  # rows asked, whose covariances with the anchors a cache still holds
SEARCH_ROWS = 300  # that choose the hyperparameters
ARD = 20  # inputs up to which each has its own lengthscale
BOUNDS = (1e-2, 1e4)  # of lengthscales, in standard deviations of an input
NOISES = (1e-6, 1e1)  # bounds of the noise, in variances of the target
JITTER = 1e-9  # of the mean variance, so that anchors that lie close together do no harm

X = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]


def kernel_of(shape: str, inputs: int) -> Any:
    """A kernel with noise, at its start.

    Args:
        shape: "rbf", "rough" (Matern 3/2), "linear" or "constant".
        inputs: d.
    """
    widths = np.full(inputs if inputs <= ARD else 1, max(inputs, 1) ** 0.5)
    signal = ConstantKernel(1.0, (1e-6, 1e4))
    if shape == "linear":
        signal *= DotProduct(1.0, "fixed")
    elif shape != "constant":
        signal *= RBF(widths, BOUNDS) if shape == "rbf" else Matern(widths, BOUNDS, nu=1.5)
    return signal + WhiteKernel(0.1, NOISES)


class AnchoredGP:
    """What it knows after rows with these targets; inputs and targets have unit deviation.

    Args:
        shape: See `kernel_of`.
        theta: Logarithms of the hyperparameters, as scikit-learn numbers them.
        anchors: Rows, or other inputs, that the posterior goes through.
        factor: Cholesky factor of 1 + V V', where V are the rows seen from the anchors.
        whitened: The targets, seen likewise.
    """

    def __init__(
        self,
        shape: str,
        theta: Float[np.ndarray, " p"],
        anchors: Float[np.ndarray, "m d"],
        factor: Float[np.ndarray, "m m"] | None = None,
        whitened: Float[np.ndarray, " m"] | None = None,
    ) -> None:
        self.shape, self.theta, self.anchors = shape, theta, anchors
        self.factor, self.whitened = factor, whitened
        kernel = kernel_of(shape, anchors.shape[1]).clone_with_theta(theta)
        self.signal, self.noise = kernel.k1, float(kernel.k2.noise_level)

    @classmethod
    def of(
        cls,
        shape: str,
        x: X,
        y: Values,
        told: Values | None = None,
        theta: Float[np.ndarray, " p"] | None = None,
    ) -> AnchoredGP:
        """Of some rows.

        Args:
            shape: See `kernel_of`.
            x: Inputs.
            y: Targets.
            told: Of each row, the variance of the noise that is known beforehand.
            theta: Hyperparameters; None: they are found.
        """
        order = np.random.default_rng(0).permutation(len(y))
        told = np.zeros(len(y)) if told is None else told
        if theta is None:
            few = order[:SEARCH_ROWS]
            search = GaussianProcessRegressor(
                kernel_of(shape, x.shape[1]), alpha=told[few] + 1e-10, random_state=0
            )
            with warnings.catch_warnings():  # a lengthscale at its bound is an input of no use
                warnings.simplefilter("ignore", ConvergenceWarning)
                theta = search.fit(x[few], y[few]).kernel_.theta
        anchors = x[order[: 1 if shape == "constant" else MOST_ANCHORS]]
        if shape == "linear" and x.shape[1] < len(anchors):  # the origin and a unit along each
            anchors = np.eye(x.shape[1] + 1, x.shape[1], -1)  # input tell all of a line
        made = cls(shape, theta, anchors)
        spread = np.sqrt(made.noise + told)
        seen = solve_triangular(made._lower, made.signal(made.anchors, x), lower=True) / spread
        made.factor = cholesky(seen @ seen.T + np.eye(len(seen)), lower=True)
        made.whitened = solve_triangular(made.factor, seen @ (y / spread), lower=True)
        return made

    @cached_property
    def _lower(self) -> Float[np.ndarray, "m m"]:
        K = self.signal(self.anchors)
        K[np.diag_indices_from(K)] += JITTER * K.diagonal().mean()
        return np.asarray(cholesky(K, lower=True))

    def ask(self, x: X) -> tuple[Values, Values]:
        """Means of rows asked, and variances without noise."""
        if len(x) > AT_ONCE:
            blocks = (self.ask(x[i : i + AT_ONCE]) for i in range(0, len(x), AT_ONCE))
            means, variances = zip(*blocks)
            return np.concatenate(means), np.concatenate(variances)
        near = solve_triangular(self._lower, self.signal(self.anchors, x), lower=True)
        far = solve_triangular(self.factor, near, lower=True)
        variance = self.signal.diag(x) - (near**2).sum(0) + (far**2).sum(0)
        return far.T @ self.whitened, np.maximum(variance, 0.0)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Everything that `read` needs, but for the shape."""
        names = ("theta", "anchors", "factor", "whitened")
        return {name: torch.tensor(getattr(self, name)) for name in names}

    @classmethod
    def read(cls, shape: str, tensors: dict[str, torch.Tensor]) -> AnchoredGP:
        """The inverse of `tensors`."""
        return cls(shape, **{name: value.cpu().numpy() for name, value in tensors.items()})
