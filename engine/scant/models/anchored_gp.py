"""Sparse GP regression with ARD lengthscales, whose inducing inputs are training rows.

scikit-learn fits the hyperparameters to the evidence of a few hundred rows. The posterior given all
rows goes through at most `MAX_ANCHORS` of them (Titsias 2009, equation 6): it is exact for fewer
rows, and the cost of a prediction is bounded for more. Each row may have a fixed noise variance,
predicted by another model, in addition to the learned one.

    model = AnchoredGP.fit("rbf", x, y)
    mean, variance = model.predict(x_new)
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

MAX_ANCHORS = 500  # inducing inputs
BLOCK_ROWS = 500  # query rows whose covariances with the anchors fit a cache (2 MB)
SEARCH_ROWS = 300  # rows used to fit the hyperparameters
ARD = 20  # most inputs with separate lengthscales
BOUNDS = (1e-2, 1e4)  # lengthscale bounds, in standard deviations of an input
NOISES = (1e-6, 1e1)  # noise variance bounds, in variances of the target
JITTER = 1e-9  # in mean prior variances, for anchors that lie close together

X = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]


def kernel_of(shape: str, inputs: int) -> Any:
    """scikit-learn kernel with white noise and initial hyperparameters.

    Args:
        shape: "rbf", "rough" (Matern 3/2), "linear" or "constant".
        inputs: Number of inputs d.
    """
    widths = np.full(inputs if inputs <= ARD else 1, max(inputs, 1) ** 0.5)
    signal = ConstantKernel(1.0, (1e-6, 1e4))
    if shape == "linear":
        signal *= DotProduct(1.0, "fixed")
    elif shape != "constant":
        signal *= RBF(widths, BOUNDS) if shape == "rbf" else Matern(widths, BOUNDS, nu=1.5)
    return signal + WhiteKernel(0.1, NOISES)


class AnchoredGP:
    """Posterior of a sparse GP; inputs and targets have unit standard deviation.

    Args:
        shape: Kernel (see `kernel_of`).
        theta: Log hyperparameters, in scikit-learn's order.
        anchors: Inducing inputs Z.
        factor: Cholesky factor of B = I + V V' with V = L^-1 k(Z, x) / noise_std, L L' = k(Z, Z).
        whitened: factor^-1 V y / noise_std.
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
    def fit(
        cls,
        shape: str,
        x: X,
        y: Values,
        fixed_noise: Values | None = None,
        theta: Float[np.ndarray, " p"] | None = None,
    ) -> AnchoredGP:
        """Fit the hyperparameters and the posterior.

        Args:
            shape: Kernel (see `kernel_of`).
            x: Inputs.
            y: Targets.
            fixed_noise: Fixed noise variance of each row, added to the learned one.
            theta: Log hyperparameters; None fits them.
        """
        order = np.random.default_rng(0).permutation(len(y))
        fixed_noise = np.zeros(len(y)) if fixed_noise is None else fixed_noise
        if theta is None:
            subset = order[:SEARCH_ROWS]
            search = GaussianProcessRegressor(
                kernel_of(shape, x.shape[1]), alpha=fixed_noise[subset] + 1e-10, random_state=0
            )
            with warnings.catch_warnings():  # a lengthscale at its bound is an input of no use
                warnings.simplefilter("ignore", ConvergenceWarning)
                theta = search.fit(x[subset], y[subset]).kernel_.theta
        anchors = x[order[: 1 if shape == "constant" else MAX_ANCHORS]]
        if shape == "linear" and x.shape[1] < len(anchors):  # the origin and the unit vectors
            anchors = np.eye(x.shape[1] + 1, x.shape[1], -1)  # determine a linear function
        model = cls(shape, theta, anchors)
        noise_std = np.sqrt(model.noise + fixed_noise)
        V = solve_triangular(model._lower, model.signal(model.anchors, x), lower=True) / noise_std
        model.factor = cholesky(V @ V.T + np.eye(len(V)), lower=True)  # of B = I + V V'
        model.whitened = solve_triangular(model.factor, V @ (y / noise_std), lower=True)
        return model

    @cached_property
    def _lower(self) -> Float[np.ndarray, "m m"]:
        K = self.signal(self.anchors)
        K[np.diag_indices_from(K)] += JITTER * K.diagonal().mean()
        return np.asarray(cholesky(K, lower=True))

    def predict(self, x: X) -> tuple[Values, Values]:
        """Means, and variances without noise, of f at the rows x."""
        if len(x) > BLOCK_ROWS:
            blocks = (self.predict(x[i : i + BLOCK_ROWS]) for i in range(0, len(x), BLOCK_ROWS))
            means, variances = zip(*blocks)
            return np.concatenate(means), np.concatenate(variances)
        whitened = solve_triangular(self._lower, self.signal(self.anchors, x), lower=True)
        B_whitened = solve_triangular(self.factor, whitened, lower=True)
        variance = self.signal.diag(x) - (whitened**2).sum(0) + (B_whitened**2).sum(0)
        return B_whitened.T @ self.whitened, np.maximum(variance, 0.0)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Arrays for `from_tensors`, all but the kernel's name."""
        names = ("theta", "anchors", "factor", "whitened")
        return {name: torch.tensor(getattr(self, name)) for name in names}

    @classmethod
    def from_tensors(cls, shape: str, tensors: dict[str, torch.Tensor]) -> AnchoredGP:
        """Restore a model from `tensors`."""
        return cls(shape, **{name: value.cpu().numpy() for name, value in tensors.items()})
