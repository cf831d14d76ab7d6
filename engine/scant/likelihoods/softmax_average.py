"""Class probabilities of MOGPs-AR (Ma 2023, 3.35), and the reducible part of their entropy.

With covariances kept, the softmax is averaged over quasi-random draws of the few latent functions;
independent repeats of the Sobol sequence give a standard error. With covariances dropped, the
classes' functions are independent, and with Gumbel noise h_c = f_c + e_c the probability that c is
the maximum needs only one-dimensional quadrature,

    P(c) = int p_c(t) prod over c' != c of F_c'(t) dt,

with the density p_c and distribution function F_c of h_c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

DRAWS = 256
REPEATS = 8  # independent randomizations of the sequence
CELLS = 2_000_000  # elements of the largest temporary array
TAIL = 20.0  # margin of the quadrature's upper limit: a tail of e^-20 is neglected
STEP = 0.5  # step of the quadrature over t, in units of the Gumbel noise
DEVIATIONS = 7.0  # integration range of a Gaussian, in standard deviations


class MOGPARPrediction(NamedTuple):
    """Class probabilities of n rows, with at most c classes per output.

    Attributes:
        probability: Class probabilities; 0 beyond the number of the output's classes.
        error: Monte Carlo standard error of the probabilities; 0 with quadrature.
        entropy: Entropy of the probabilities, in nats.
        information: Mutual information between class and functions, in nats: the part of the
            entropy that more data would remove.
    """

    probability: Float[Tensor, "n c"]
    error: Float[Tensor, "n c"]
    entropy: Float[Tensor, " n"]
    information: Float[Tensor, " n"]


AveragingMethod = Callable[[Tensor, Tensor, Tensor, int, int], MOGPARPrediction]


@torch.no_grad()
def average_by_output(
    method: AveragingMethod,
    table: Float[Tensor, "classes l"],
    moments: tuple[Float[Tensor, "n l"], Float[Tensor, "n l"]],
    output: Int[Tensor, " n"],
    sizes: Sequence[int],
    draws: int,
    seed: int,
) -> MOGPARPrediction:
    """Predictions for rows of several outputs; `table` lists the classes output by output."""
    mean, variance = moments
    parts = []
    for d, classes in enumerate(table.split(list(sizes))):
        rows = (output == d).nonzero().squeeze(1)
        if len(rows):
            parts.append((rows, method(classes, mean[rows], variance[rows], draws, seed)))
    return scatter_rows(parts, len(mean), max(sizes), mean)


def scatter_rows(
    parts: Iterable[tuple[Int[Tensor, " _"], MOGPARPrediction]], n: int, width: int, like: Tensor
) -> MOGPARPrediction:
    """Combine predictions of subsets of rows into one of n rows and `width` classes."""
    combined = [like.new_zeros(n, width) for _ in range(2)] + [like.new_zeros(n) for _ in range(2)]
    for rows, part in parts:
        for target, values in zip(combined, part):
            if values.dim() == 2:
                target[rows, : values.shape[1]] = values
            else:
                target[rows] = values
    return MOGPARPrediction(*combined)


@torch.no_grad()
def by_draws(
    mixing: Float[Tensor, "c l"],
    mean: Float[Tensor, "n l"],
    variance: Float[Tensor, "n l"],
    draws: int = DRAWS,
    seed: int = 0,
) -> MOGPARPrediction:
    """Average with covariances kept: f = A u, over common draws of u at all rows."""
    normal = _sobol(mean.shape[1], draws, seed).to(mean)  # [repeats, draws / repeats, l]
    parts = []
    for rows in _chunks(len(mean), normal[..., 0].numel() * (len(mixing) + mean.shape[1])):
        u = mean[rows, None, None] + variance[rows, None, None].sqrt() * normal
        parts.append(_averaged((u @ mixing.T).softmax(-1)))  # (3.35)
    return _joined(parts, len(mixing), mean)


@torch.no_grad()
def by_quadrature(
    mixing: Float[Tensor, "c l"],
    mean: Float[Tensor, "n l"],
    variance: Float[Tensor, "n l"],
    draws: int = DRAWS,
    seed: int = 0,
) -> MOGPARPrediction:
    """Average with covariances dropped: probabilities by quadrature, information by draws."""
    m, s = mean @ mixing.T, (variance @ mixing.square().T).sqrt()
    normal = _sobol(len(mixing), draws, seed).to(mean)
    parts = []
    for rows in _chunks(len(m), normal.numel()):
        sampled = _averaged((m[rows, None, None] + s[rows, None, None] * normal).softmax(-1))
        p = _maximum(m[rows], s[rows])
        entropy = torch.special.entr(p).sum(-1)
        remaining = sampled.entropy - sampled.information
        information = (entropy - remaining).clamp(min=0)
        parts.append(MOGPARPrediction(p, torch.zeros_like(p), entropy, information))
    return _joined(parts, len(mixing), mean)


def _averaged(p: Float[Tensor, "n repeats k c"]) -> MOGPARPrediction:
    repeats = p.mean(2)
    mean = repeats.mean(1)
    entropy = torch.special.entr(mean).sum(-1)
    remaining = torch.special.entr(p).sum(-1).mean((1, 2))
    error = repeats.std(1) / math.sqrt(REPEATS)
    return MOGPARPrediction(mean, error, entropy, (entropy - remaining).clamp(min=0))


def _maximum(m: Float[Tensor, "n c"], s: Float[Tensor, "n c"]) -> Float[Tensor, "n c"]:
    """P(h_c is the largest) for independent Gaussian f_c, with a grid over t for each row."""
    widest = max(s.max().item(), 0.1)
    nodes = max(25, math.ceil(3 * DEVIATIONS * widest))
    z = torch.linspace(-DEVIATIONS, DEVIATIONS, nodes, dtype=m.dtype, device=m.device)
    log_weight = (-0.5 * z.square()).log_softmax(0)
    low = (m - DEVIATIONS * s).amax(1) - 4.0
    high = (m + DEVIATIONS * s).amax(1) + TAIL
    steps = math.ceil((high - low).max().item() / STEP) + 1
    grid = torch.linspace(0, 1, steps, dtype=m.dtype, device=m.device)
    parts = []
    for rows in _chunks(len(m), steps * nodes * m.shape[1]):
        t = low[rows, None] + (high - low)[rows, None] * grid  # [n, t]
        f = m[rows, :, None] + s[rows, :, None] * z
        lag = f.unsqueeze(1) - t[:, :, None, None]  # [n, t, c, z]
        log_cdf = log_weight - lag.exp()
        log_pdf = (log_cdf + lag).logsumexp(-1)
        log_cdf = log_cdf.logsumexp(-1)
        others = log_cdf.sum(-1, keepdim=True) - log_cdf
        parts.append(
            (log_pdf + others).logsumexp(1).softmax(-1)
        )  # renormalizes the neglected tails
    return torch.cat(parts)


@lru_cache(maxsize=8)  # scrambling takes a fifth of a live snapshot; do not modify the result
def _sobol(dimensions: int, draws: int, seed: int) -> Float[Tensor, "repeats k l"]:
    """Standard normal draws from independently scrambled Sobol sequences."""
    count = max(1, draws // REPEATS)
    points = [
        torch.quasirandom.SobolEngine(dimensions, True, seed * REPEATS + i).draw(
            count, dtype=torch.float64
        )
        for i in range(REPEATS)
    ]
    return torch.special.ndtri(torch.stack(points).clamp(1e-10, 1 - 1e-10))


def _chunks(n: int, cells: int) -> list[slice]:
    size = max(1, CELLS // cells)
    return [slice(i, i + size) for i in range(0, n, size)]


def _joined(parts: list[MOGPARPrediction], classes: int, like: Tensor) -> MOGPARPrediction:
    if not parts:
        empty = like.new_zeros(0)
        return MOGPARPrediction(empty.view(0, classes), empty.view(0, classes), empty, empty)
    return MOGPARPrediction(*(torch.cat(column) for column in zip(*parts)))
