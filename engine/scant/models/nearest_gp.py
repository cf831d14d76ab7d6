"""GP regression where each row asked is conditioned on the learned rows nearest to it.

Vecchia's approximation at prediction (Vecchia 1988; Datta, Banerjee, Finley & Gelfand 2016, NNGP):
with a rough kernel a row's neighbors screen off all others. Every learned row is used, where
inducing points blur what many rows show, and the time a row asked takes does not grow with them.
Lengthscales, signal and noise are those under which some of the rows are most probable given their
neighbors. The noise of each row may be told by another model; how much of it is to be believed is
learned too. Errors are not Gaussian where two kinds of rows look alike: the errors of a row's
neighbors, predicted without their own targets and in units of their deviations, are those that it
may have itself, so that its density has several peaks where theirs went two ways.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import MaternKernel
from jaxtyping import Float, Int
from scipy.spatial import KDTree
from torch import Tensor

NEIGHBORS = 64
FEWER = 32  # neighbors while they are chosen, and of rows that are predicted without themselves
ITERATIONS = 12  # of L-BFGS in each round of the search
PENALTY = 1e-3  # on squared logarithms: an input of no use has a lengthscale that is only long
ARD = 20  # inputs up to which each has its own lengthscale
AT_ONCE = 64  # rows asked, whose covariances a cache still holds
WIDTH = 1.0  # logarithm of the lengthscales at the start, in deviations of an input
SIGNAL, NOISE, TOLD = 0.0, -3.0, -1.0  # likewise of variances and of the share of the told noise
WORST = 7.0  # error that a neighbor counts with at most, in units of its deviation
# Neighbors whose errors count, and the deviation that is added to each, in units of the row's own:
# the nearest tell the shape of the density, more of them its tails. On 5,600 of RAIL's galaxies one
# Gaussian, widened by its neighbors' errors, had a log-likelihood of 1.41 and a CRPS of .0509;
# these three sets together 1.47 and .0457.
ERRORS = ((16, 0.2), (32, 0.3), (64, 0.5))
GROUPS = 4  # of neighbors of like errors in each set: a Gaussian each
PARTS = GROUPS * len(ERRORS)
LEAST = 1e-6  # noise variance, in variances of the target


class Search(NamedTuple):
    """How long hyperparameters are looked for: rows that choose them, and rounds."""

    rows: int
    rounds: int


LONG, QUICK = Search(2000, 4), Search(400, 2)
X = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]
Parts = Float[np.ndarray, "n _"]


class NearestGP:
    """What it knows after rows with these targets; inputs and targets have unit deviation.

    Args:
        theta: Logarithms of the lengthscales, the signal's variance, the noise's variance and the
            share of the told noise.
        x: Rows.
        y: Their targets.
        spread: Their noise variances.
        error: Errors of the rows without their own targets, in units of their deviations; None:
            they are found.
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
        self.noise = noise + LEAST
        self.widths = theta[:-3].exp()
        self.tree = KDTree((x / self.widths).numpy())
        self.error = self._errors() if error is None else error

    @classmethod
    def of(
        cls,
        x: X,
        y: Values,
        told: Values | None = None,
        theta: Float[Tensor, " p"] | None = None,
        search: Search = LONG,
        draw: int = 0,
    ) -> NearestGP:
        """Of some rows.

        Args:
            x: Inputs.
            y: Targets.
            told: Of each row, the variance of the noise that is known beforehand.
            theta: Hyperparameters; None: they are found.
            search: How long they are looked for.
            draw: Which rows choose them: another number takes others.
        """
        rows, targets = torch.from_numpy(x), torch.from_numpy(y)
        known = torch.zeros_like(targets) if told is None else torch.from_numpy(told)
        if theta is None:
            theta = _found(rows, targets, known, search, draw)
        noise, share = theta[-2:].exp()
        return cls(theta, rows, targets, noise + LEAST + share * known)

    @torch.no_grad()
    def ask(self, x: X, told: Values | None = None) -> tuple[Parts, Parts, Parts]:
        """Parts of the density of each row: means, variances without noise, and of noise.

        They are equal, unless left-out rows say otherwise, and as many as `PARTS`.

        Args:
            x: Rows.
            told: Of each, the variance of the noise that is known beforehand.
        """
        k, parts = min(NEIGHBORS, len(self.y)), list[Tensor]()
        for start in range(0, len(x), AT_ONCE):
            at = slice(start, start + AT_ONCE)
            asked = torch.from_numpy(x[at])
            near = self.tree.query((asked / self.widths).numpy(), k)[1].reshape(len(asked), k)
            mean, variance = self._given(near, asked)
            known = 0.0 if told is None else torch.from_numpy(told[at])
            noise = self.noise + self.share * known + torch.zeros_like(mean)
            away, wider = self._spread_of(near)
            std = (variance + noise).sqrt()
            own = [
                mean[:, None] + std[:, None] * away,
                *(wider * v[:, None] for v in (variance, noise)),
            ]
            parts.append(torch.stack(own))
        whole = torch.cat(parts, 1) if parts else torch.zeros(3, 0, PARTS, dtype=torch.float64)
        mean, variance, noise = whole.numpy()
        return mean, variance, noise

    def _spread_of(
        self, near: Int[np.ndarray, "b k"]
    ) -> tuple[Float[Tensor, "b a"], Float[Tensor, "b a"]]:
        """Means and variances of groups of the errors of rows' neighbors, the nearest first.

        What the added deviation widens is drawn together by as much.
        """
        means, variances = [], []
        for count, width in ERRORS:
            errors = self.error[torch.from_numpy(near[:, :count])].sort(1).values
            narrower = 1 / (1 + width**2)
            for group in errors.tensor_split(GROUPS, dim=1):
                means.append(narrower**0.5 * group.mean(1))
                variances.append(narrower * (group.var(1, correction=0) + width**2))
        return torch.stack(means, 1), torch.stack(variances, 1)

    def _given(
        self, near: Int[np.ndarray, "b k"], asked: Float[Tensor, "b d"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
        rows = torch.from_numpy(near)
        return _conditional(self.theta, self.x[rows], self.y[rows], self.spread[rows], asked)

    @torch.no_grad()
    def _errors(self) -> Float[Tensor, " n"]:
        """Errors of rows given the others, over their deviations."""
        parts = list[Tensor]()
        for start in range(0, len(self.y), AT_ONCE):
            some = torch.arange(start, min(start + AT_ONCE, len(self.y)))
            near = _others(self.tree, some, FEWER).numpy()
            mean, variance = self._given(near, self.x[some])
            error = (self.y[some] - mean) / (variance + self.spread[some]).sqrt()
            parts.append(error.clamp(-WORST, WORST))
        return torch.cat(parts)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that `read` needs."""
        return {name: getattr(self, name) for name in ("theta", "x", "y", "spread", "error")}

    @classmethod
    def read(cls, tensors: dict[str, Tensor]) -> NearestGP:
        """The inverse of `tensors`; errors are found anew of what an earlier version has stored."""
        kept = ("theta", "x", "y", "spread", "error")
        return cls(**{name: tensors[name].cpu() for name in kept if name in tensors})


def _correlation(
    widths: Float[Tensor, " w"], a: Float[Tensor, "*b n d"], b: Float[Tensor, "*b m d"]
) -> Float[Tensor, "*b n m"]:
    """Matern 3/2, with a lengthscale of each input or of all."""
    kernel = MaternKernel(nu=1.5, ard_num_dims=len(widths) if len(widths) > 1 else None)
    return kernel.double().initialize(lengthscale=1.0)(a / widths, b / widths).to_dense()


def _conditional(
    theta: Float[Tensor, " p"],
    rows: Float[Tensor, "b k d"],
    targets: Float[Tensor, "b k"],
    spread: Float[Tensor, "b k"],
    asked: Float[Tensor, "b d"],
) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
    """Mean and variance, without noise, of each row asked given its neighbors."""
    widths, signal = theta[:-3].exp(), theta[-3].exp()
    K = signal * _correlation(widths, rows, rows) + torch.diag_embed(spread)
    cross = signal * _correlation(widths, rows, asked.unsqueeze(1))
    both = torch.cat([cross, targets.unsqueeze(-1)], dim=2)
    seen = torch.linalg.solve_triangular(torch.linalg.cholesky(K), both, upper=False)
    mean = (seen[..., 0] * seen[..., 1]).sum(1)
    return mean, (signal - seen[..., 0].square().sum(1)).clamp(min=0)


def _found(
    x: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    told: Float[Tensor, " n"],
    search: Search,
    draw: int,
) -> Float[Tensor, " p"]:
    """The hyperparameters under which rows are most probable given their neighbors.

    Neighbors are those under the lengthscales so far, and are looked up anew now and then.
    """
    d = x.shape[1] if x.shape[1] <= ARD else 1
    theta = torch.cat([x.new_full((d,), WIDTH), x.new_tensor([SIGNAL, NOISE, TOLD])])
    some = torch.from_numpy(np.random.default_rng(draw).permutation(len(y))[: search.rows])
    for _ in range(search.rounds):
        near = _others(KDTree((x / theta[:-3].exp()).numpy()), some, FEWER)
        theta = _ascended(theta, x, y, told, some, near)
    return theta


def _others(tree: KDTree, some: Int[Tensor, " b"], k: int) -> Int[Tensor, "b k"]:
    """The neighbors of rows of a tree, without themselves."""
    k = min(k, tree.n - 1)
    near = torch.from_numpy(tree.query(tree.data[some.numpy()], k + 1)[1])
    itself = near == some.unsqueeze(1)
    itself[~itself.any(1), -1] = True  # of more than k rows that are alike: the farthest goes
    return near[~itself].reshape(len(some), k)


def _ascended(
    theta: Float[Tensor, " p"],
    x: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    told: Float[Tensor, " n"],
    some: Int[Tensor, " b"],
    near: Int[Tensor, "b k"],
) -> Float[Tensor, " p"]:
    """Hyperparameters under which some rows are more probable given these neighbors."""
    raw = theta.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([raw], max_iter=ITERATIONS, line_search_fn="strong_wolfe")
    rows, targets, asked = x[near], y[near], x[some]

    def cost() -> Tensor:
        optimizer.zero_grad()
        noise, share = raw[-2:].exp()
        spread = noise + LEAST + share * told
        mean, variance = _conditional(raw, rows, targets, spread[near], asked)
        variance = variance + spread[some]
        loss = 0.5 * ((y[some] - mean).square() / variance + variance.log()).mean()
        loss = loss + PENALTY * raw.square().mean()
        loss.backward()
        return loss

    optimizer.step(cost)
    return raw.detach()
