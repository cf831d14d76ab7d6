"""Nearest-neighbor GP regression: each query row is conditioned on its nearest training rows.

Vecchia's approximation at prediction (Vecchia 1988; Datta, Banerjee, Finley & Gelfand 2016, NNGP):
with a rough kernel, the neighbors of a row screen off all others. All training rows are used,
without the smoothing of inducing points, and the cost per query does not grow with their number.
Lengthscales, signal and noise maximize the likelihood of a subset of rows given their neighbors.
Each row may have a fixed noise variance, predicted by another model; its weight is learned.

Errors are not Gaussian where rows of different kinds have similar inputs. The predictive density
of a row is therefore a mixture over the standardized leave-one-out errors of its neighbors, with
several modes where those have several.

    model = NearestGP.fit(x, y)
    mean, variance, noise = model.predict(x_new)      # mixture components, "n PARTS" each
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import MaternKernel
from jaxtyping import Float, Int
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.warnings import NumericalWarning
from scipy.spatial import KDTree
from torch import Tensor

NEIGHBORS = 64
FITTED_NEIGHBORS = 32  # neighbors for fitting and for leave-one-out errors
ITERATIONS = 12  # L-BFGS iterations in each round of the search
PENALTY = 1e-3  # on squared logarithms, so that lengthscales stay finite
ARD = 20  # most inputs with separate lengthscales
BLOCK_ROWS = 64  # query rows whose covariances fit a cache
WIDTH = 1.0  # initial log lengthscales, in standard deviations of an input
SIGNAL, NOISE, SHARE = 0.0, -3.0, -1.0  # initial logs of variances, fixed noise's weight
MAX_ERROR = 7.0  # standardized errors of neighbors are clipped to this
# Sets of neighbors (count, smoothing deviation in units of the row's own): the nearest determine
# the shape of the density, more of them its tails. On 5,600 of RAIL's galaxies one Gaussian scaled
# by the neighbors' errors had a log likelihood of 1.41 and a CRPS of .0509; these sets 1.47, .0457.
ERRORS = ((16, 0.2), (32, 0.3), (64, 0.5))
GROUPS = 4  # Gaussians per set, each for neighbors with similar errors
PARTS = GROUPS * len(ERRORS)  # mixture components of a prediction
MIN_NOISE = 1e-6  # minimum noise variance, in variances of the target
JITTER, JITTER_TRIES = 1e-13, 6  # in signal variances; each try takes ten times as much


class Search(NamedTuple):
    """Effort of the hyperparameter search: rows of the likelihood, rounds, and usual seconds."""

    rows: int
    rounds: int
    seconds: float


# On 3,600 of RAIL's galaxies the long search came to a CRPS of .1004, the quick one to .1016; on
# 6,100 of SDSS to .0947 and .0957 (standardized, left-out rows). Four rounds over 2,000 rows took
# twice as long and came to .1013 and .0952.
LONG, QUICK = Search(2000, 2, seconds=7.0), Search(400, 2, seconds=2.0)
X = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]
Parts = Float[np.ndarray, "n _"]


class NearestGP:
    """Nearest-neighbor GP; inputs and targets have unit standard deviation.

    Args:
        theta: Logarithms of the lengthscales, the signal variance, the noise variance and the
            weight of the fixed noise.
        x: Training inputs.
        y: Training targets.
        spread: Noise variance of each training row.
        error: Standardized leave-one-out errors; None computes them.
    """

    def __init__(
        self,
        theta: Float[Tensor, " p"],
        x: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        spread: Float[Tensor, " n"],
        error: Float[Tensor, " n"] | None = None,
    ) -> None:
        self.theta, self.x, self.y, self.spread = theta, x, y, spread
        _, noise, self.share = theta[-3:].exp().tolist()
        self.noise = noise + MIN_NOISE
        self.widths = theta[:-3].exp()
        self.tree = KDTree((x / self.widths).numpy())
        self.error = self._errors() if error is None else error

    @classmethod
    def fit(
        cls,
        x: X,
        y: Values,
        fixed_noise: Values | None = None,
        theta: Float[Tensor, " p"] | None = None,
        search: Search = LONG,
    ) -> NearestGP:
        """Fit the hyperparameters and store the training rows.

        Args:
            x: Inputs.
            y: Targets.
            fixed_noise: Fixed noise variance of each row.
            theta: Log hyperparameters; None fits them.
            search: Effort of the fit.
        """
        rows, targets = torch.from_numpy(x), torch.from_numpy(y)
        extra = torch.zeros_like(targets) if fixed_noise is None else torch.from_numpy(fixed_noise)
        if theta is None:
            theta = _fit_hyperparameters(rows, targets, extra, search)
        noise, share = theta[-2:].exp()
        return cls(theta, rows, targets, noise + MIN_NOISE + share * extra)

    @torch.no_grad()
    def predict(self, x: X, fixed_noise: Values | None = None) -> tuple[Parts, Parts, Parts]:
        """Equally weighted components of the density of each row, `PARTS` of them.

        Args:
            x: Query rows.
            fixed_noise: Fixed noise variance of each row.

        Returns:
            Means, variances without noise, and noise variances of the components.
        """
        k, parts = min(NEIGHBORS, len(self.y)), list[Tensor]()
        for start in range(0, len(x), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            query = torch.from_numpy(x[block])
            neighbors = self.tree.query((query / self.widths).numpy(), k)[1].reshape(len(query), k)
            mean, variance = self._condition(neighbors, query)
            extra = 0.0 if fixed_noise is None else torch.from_numpy(fixed_noise[block])
            noise = self.noise + self.share * extra + torch.zeros_like(mean)
            shift, scale = self._error_groups(neighbors)
            std = (variance + noise).sqrt()
            components = [
                mean[:, None] + std[:, None] * shift,
                *(scale * v[:, None] for v in (variance, noise)),
            ]
            parts.append(torch.stack(components))
        whole = torch.cat(parts, 1) if parts else torch.zeros(3, 0, PARTS, dtype=torch.float64)
        mean, variance, noise = whole.numpy()
        return mean, variance, noise

    def _error_groups(
        self, neighbors: Int[np.ndarray, "b k"]
    ) -> tuple[Float[Tensor, "b a"], Float[Tensor, "b a"]]:
        """Means and variances of groups of the neighbors' standardized errors, nearest first.

        The smoothing deviation is compensated by shrinkage, which keeps the total variance.
        """
        means, variances = [], []
        for count, width in ERRORS:
            errors = self.error[torch.from_numpy(neighbors[:, :count])].sort(1).values
            shrinkage = 1 / (1 + width**2)
            for group in errors.tensor_split(GROUPS, dim=1):
                means.append(shrinkage**0.5 * group.mean(1))
                variances.append(shrinkage * (group.var(1, correction=0) + width**2))
        return torch.stack(means, 1), torch.stack(variances, 1)

    def _condition(
        self, neighbors: Int[np.ndarray, "b k"], query: Float[Tensor, "b d"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
        rows = torch.from_numpy(neighbors)
        return _conditional(self.theta, self.x[rows], self.y[rows], self.spread[rows], query)

    @torch.no_grad()
    def _errors(self) -> Float[Tensor, " n"]:
        """Standardized leave-one-out errors of the training rows."""
        parts = list[Tensor]()
        for start in range(0, len(self.y), BLOCK_ROWS):
            block = torch.arange(start, min(start + BLOCK_ROWS, len(self.y)))
            neighbors = _neighbors(self.tree, block, FITTED_NEIGHBORS).numpy()
            mean, variance = self._condition(neighbors, self.x[block])
            error = (self.y[block] - mean) / (variance + self.spread[block]).sqrt()
            parts.append(error.clamp(-MAX_ERROR, MAX_ERROR))
        return torch.cat(parts)

    def tensors(self) -> dict[str, Tensor]:
        """Tensors for `from_tensors`."""
        return {name: getattr(self, name) for name in ("theta", "x", "y", "spread", "error")}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> NearestGP:
        """Restore a model from `tensors`; errors missing in older files are recomputed."""
        names = ("theta", "x", "y", "spread", "error")
        return cls(**{name: tensors[name].cpu() for name in names if name in tensors})


def _correlation(
    widths: Float[Tensor, " w"], a: Float[Tensor, "*b n d"], b: Float[Tensor, "*b m d"]
) -> Float[Tensor, "*b n m"]:
    """Matern 3/2 correlation, with a lengthscale per input or one for all."""
    kernel = MaternKernel(nu=1.5, ard_num_dims=len(widths) if len(widths) > 1 else None)
    return kernel.double().initialize(lengthscale=1.0)(a / widths, b / widths).to_dense()


def _conditional(
    theta: Float[Tensor, " p"],
    rows: Float[Tensor, "b k d"],
    targets: Float[Tensor, "b k"],
    spread: Float[Tensor, "b k"],
    query: Float[Tensor, "b d"],
) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
    """Mean and variance, without noise, of each query row given its neighbors."""
    widths, signal = theta[:-3].exp(), theta[-3].exp()
    # In units of the signal variance, so that jitter is relative to it. A step of the search may
    # come to a signal of 1e16 times the noise.
    K = _correlation(widths, rows, rows) + torch.diag_embed(spread / signal)
    cross = _correlation(widths, rows, query.unsqueeze(1))
    rhs = torch.cat([cross, targets.unsqueeze(-1)], dim=2)
    lower = psd_safe_cholesky(K, jitter=JITTER, max_tries=JITTER_TRIES)
    whitened = torch.linalg.solve_triangular(lower, rhs, upper=False)
    mean = (whitened[..., 0] * whitened[..., 1]).sum(1)
    return mean, signal * (1 - whitened[..., 0].square().sum(1)).clamp(min=0)


def _fit_hyperparameters(
    x: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    fixed_noise: Float[Tensor, " n"],
    search: Search,
) -> Float[Tensor, " p"]:
    """Log hyperparameters that maximize the likelihood of a subset of rows given their neighbors.

    Neighbors are recomputed with the current lengthscales in each round.
    """
    d = x.shape[1] if x.shape[1] <= ARD else 1
    theta = torch.cat([x.new_full((d,), WIDTH), x.new_tensor([SIGNAL, NOISE, SHARE])])
    subset = torch.from_numpy(np.random.default_rng(0).permutation(len(y))[: search.rows])
    for _ in range(search.rounds):
        neighbors = _neighbors(KDTree((x / theta[:-3].exp()).numpy()), subset, FITTED_NEIGHBORS)
        theta = _maximize_likelihood(theta, x, y, fixed_noise, subset, neighbors)
    return theta


def _neighbors(tree: KDTree, rows: Int[Tensor, " b"], k: int) -> Int[Tensor, "b k"]:
    """Indices of the k nearest neighbors of rows of the tree, without themselves."""
    k = min(k, tree.n - 1)
    neighbors = torch.from_numpy(tree.query(tree.data[rows.numpy()], k + 1)[1])
    is_self = neighbors == rows.unsqueeze(1)
    is_self[~is_self.any(1), -1] = True  # more than k equal rows: drop the farthest
    return neighbors[~is_self].reshape(len(rows), k)


def _maximize_likelihood(
    theta: Float[Tensor, " p"],
    x: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    fixed_noise: Float[Tensor, " n"],
    subset: Int[Tensor, " b"],
    neighbors: Int[Tensor, "b k"],
) -> Float[Tensor, " p"]:
    """L-BFGS on the log likelihood of a subset of rows given fixed neighbors."""
    raw = theta.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([raw], max_iter=ITERATIONS, line_search_fn="strong_wolfe")
    rows, targets, query = x[neighbors], y[neighbors], x[subset]

    def cost() -> Tensor:
        optimizer.zero_grad()
        noise, share = raw[-2:].exp()
        spread = noise + MIN_NOISE + share * fixed_noise
        mean, variance = _conditional(raw, rows, targets, spread[neighbors], query)
        variance = variance + spread[subset]
        loss = 0.5 * ((y[subset] - mean).square() / variance + variance.log()).mean()
        loss = loss + PENALTY * raw.square().mean()
        loss.backward()
        return loss

    with warnings.catch_warnings():  # jitter at a step of the search, which may not be taken
        warnings.simplefilter("ignore", NumericalWarning)
        optimizer.step(cost)
    return raw.detach()
