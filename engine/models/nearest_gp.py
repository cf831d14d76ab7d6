"""GP regression where each row asked is conditioned on the learned rows nearest to it.

Vecchia's approximation at prediction (Vecchia 1988; Datta, Banerjee, Finley & Gelfand 2016, NNGP):
with a rough kernel a row's neighbors screen off all others. Every learned row is used, where
inducing points blur what many rows show, and the time a row asked takes does not grow with them.
Lengthscales, signal and noise are those under which some of the rows are most probable given their
neighbors. The noise of each row may be told by another model; how much of it is to be believed is
learned too. Where the neighbors of a row were themselves predicted worse, or better, without their
own targets than was said, its variance is larger, or smaller, by as much.
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
AT_ONCE = 1000  # rows asked
WIDTH = 1.0  # logarithm of the lengthscales at the start, in deviations of an input
SIGNAL, NOISE, TOLD = 0.0, -3.0, -1.0  # likewise of variances and of the share of the told noise
WORST = 50.0  # squared error that a neighbor counts with at most, in units of its variance
USUAL = 5.0  # neighbors for which the mean of all rows counts
LEAST = 1e-6  # noise variance, in variances of the target


class Search(NamedTuple):
    """How long hyperparameters are looked for: rows that choose them, and rounds."""

    rows: int
    rounds: int


LONG, QUICK = Search(2000, 4), Search(400, 2)
X = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]


class NearestGP:
    """What it knows after rows with these targets; inputs and targets have unit deviation.

    Args:
        theta: Logarithms of the lengthscales, the signal's variance, the noise's variance and the
            share of the told noise.
        x: Rows.
        y: Their targets.
        spread: Their noise variances.
        surprise: Squared errors of the rows without their own targets, in units of their variances;
            None: they are found.
    """

    def __init__(
        self,
        theta: Float[Tensor, " p"],
        x: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        spread: Float[Tensor, " n"],
        surprise: Float[Tensor, " n"] | None = None,
    ) -> None:
        self.theta, self.x, self.y, self.spread = theta, x, y, spread
        _, noise, self.share = theta[-3:].exp().tolist()
        self.noise = noise + LEAST
        self.widths = theta[:-3].exp()
        self.tree = KDTree((x / self.widths).numpy())
        self.surprise = self._surprise() if surprise is None else surprise

    @classmethod
    def of(
        cls,
        x: X,
        y: Values,
        told: Values | None = None,
        theta: Float[Tensor, " p"] | None = None,
        search: Search = LONG,
    ) -> NearestGP:
        """Of some rows.

        Args:
            x: Inputs.
            y: Targets.
            told: Of each row, the variance of the noise that is known beforehand.
            theta: Hyperparameters; None: they are found.
            search: How long they are looked for.
        """
        rows, targets = torch.from_numpy(x), torch.from_numpy(y)
        known = torch.zeros_like(targets) if told is None else torch.from_numpy(told)
        if theta is None:
            theta = _found(rows, targets, known, search)
        noise, share = theta[-2:].exp()
        return cls(theta, rows, targets, noise + LEAST + share * known)

    @torch.no_grad()
    def ask(self, x: X, told: Values | None = None) -> tuple[Values, Values, Values]:
        """Means of rows asked, variances without noise, and variances of the noise.

        Args:
            x: Rows.
            told: Of each, the variance of the noise that is known beforehand.
        """
        k, parts = min(NEIGHBORS, len(self.y)), [np.zeros((3, 0))]
        for start in range(0, len(x), AT_ONCE):
            at = slice(start, start + AT_ONCE)
            asked = torch.from_numpy(x[at])
            near = self.tree.query((asked / self.widths).numpy(), k)[1].reshape(len(asked), k)
            mean, variance = self._given(near, asked)
            known = 0.0 if told is None else torch.from_numpy(told[at])
            noise = self.noise + self.share * known + torch.zeros_like(mean)
            wider = self.surprise[near].sum(1) + USUAL * self.surprise.mean()
            wider = wider / (k + USUAL)
            parts.append(torch.stack([mean, wider * variance, wider * noise]).numpy())
        mean, variance, noise = np.concatenate(parts, axis=1)
        return mean, variance, noise

    def _given(
        self, near: Int[np.ndarray, "b k"], asked: Float[Tensor, "b d"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
        rows = torch.from_numpy(near)
        return _conditional(self.theta, self.x[rows], self.y[rows], self.spread[rows], asked)

    @torch.no_grad()
    def _surprise(self) -> Float[Tensor, " n"]:
        """Squared errors of rows given the others, over their variances."""
        parts = list[Tensor]()
        for start in range(0, len(self.y), AT_ONCE):
            some = torch.arange(start, min(start + AT_ONCE, len(self.y)))
            near = _others(self.tree, some, FEWER).numpy()
            mean, variance = self._given(near, self.x[some])
            error = (self.y[some] - mean).square() / (variance + self.spread[some])
            parts.append(error.clamp(max=WORST))
        return torch.cat(parts)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that `read` needs."""
        return {name: getattr(self, name) for name in ("theta", "x", "y", "spread", "surprise")}

    @classmethod
    def read(cls, tensors: dict[str, Tensor]) -> NearestGP:
        """The inverse of `tensors`."""
        return cls(**{name: value.cpu() for name, value in tensors.items()})


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
    x: Float[Tensor, "n d"], y: Float[Tensor, " n"], told: Float[Tensor, " n"], search: Search
) -> Float[Tensor, " p"]:
    """The hyperparameters under which rows are most probable given their neighbors.

    Neighbors are those under the lengthscales so far, and are looked up anew now and then.
    """
    d = x.shape[1] if x.shape[1] <= ARD else 1
    theta = torch.cat([x.new_full((d,), WIDTH), x.new_tensor([SIGNAL, NOISE, TOLD])])
    some = torch.from_numpy(np.random.default_rng(0).permutation(len(y))[: search.rows])
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
