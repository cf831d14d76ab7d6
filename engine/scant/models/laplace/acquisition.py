"""Which rows to ask an expert about: how uncertain each is, and batches that do not repeat it.

Pool-based sampling (Settles 2012): the band 0.5 +- delta of Yousefi (2021, section 4.4), the least
confident, entropy, BALD (Houlsby et al. 2011, equations 3 and 4), random, and the rare class first:
the rows most likely to be of it until enough were found (as experts search, Attenberg & Provost
2010), then the least confident. All take a fitted classifier's probabilities, and mean and variance
of its latent functions; higher scores are asked first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.errors import BadInput
from scant.models.laplace.classifier import mode
from scant.models.laplace.one_vs_rest import Classifier, OneVsRest, parts_of

BAND, STRICT, RARE, LEAST = "band", "band, strict", "rare class first", "least confident"
METHODS = (RARE, BAND, STRICT, LEAST, "entropy", "BALD", "random")
DIVERSITY = ("distance", "determinant", "none")
SHORTLIST = 8  # candidates for each place of a batch, among which it is spread out
# The entropy of a label given f, over ln 2, as weights and squared widths of Gaussians in f: right
# to 0.01 nats for probit, to 0.002 for logistic (least squares).
SHAPES = {
    "probit": ((1.0, math.pi * math.log(2) / 2),),
    "logistic": ((0.544, 1.981), (0.456, 6.078)),
}
DOUBT = 0.35  # from p = 0.5: beyond it a class is hardly in doubt
NEAR, FAR = 0.8, 0.3  # prior correlation with the nearest labeled row


class CandidatePool(NamedTuple):
    """What a classifier thinks of rows without a label: of class 1, or of each of k classes."""

    p: Float[Tensor, "n *k"]
    mean: Float[Tensor, "n *k"]  # of the latent functions
    variance: Float[Tensor, "n *k"]


def entropy(p: Float[Tensor, "n *k"]) -> Float[Tensor, " n"]:
    """Of a class with probability p, or of k classes; nats."""
    if p.ndim == 2:
        return -torch.xlogy(p, p).sum(1)
    return -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))


def margin(p: Float[Tensor, "n *k"]) -> Float[Tensor, " n"]:
    """Half of what the likeliest class is ahead of the next; of two classes |p - 0.5|."""
    if p.ndim == 2:
        first, second = p.topk(2, 1).values.unbind(1)
        return (first - second) / 2
    return (p - 0.5).abs()


def information(pool: CandidatePool, link: str) -> Float[Tensor, " n"]:
    """BALD in closed form: what a label would tell of the latent function, nats.

    The entropy of the mean less the mean of the entropy; the latter is that of a function in the
    shape of one Gaussian for probit (Houlsby et al. 2011, equation 4), of two for logistic. Of
    several classes, each against the rest, it is the sum.
    """
    if pool.p.ndim == 2:
        each = (CandidatePool(*columns) for columns in zip(*(v.unbind(1) for v in pool)))
        return torch.stack([information(one, link) for one in each]).sum(0)
    total = torch.zeros_like(pool.mean)
    for weight, width in SHAPES[link]:
        wide = width + pool.variance
        total += weight * (width / wide).sqrt() * (-0.5 * pool.mean.square() / wide).exp()
    return (entropy(pool.p) - math.log(2) * total).clamp(min=0)


def scores(
    method: str,
    pool: CandidatePool,
    link: str,
    generator: torch.Generator,
    delta: float = 0.05,
    sought: int | None = None,
) -> Float[Tensor, " n"]:
    """How much each row deserves to be asked about.

    Args:
        method: One of `METHODS`. "band": rows with p within `delta` of 0.5 come first, in random
            order, as published; then the others, the nearest first. "band, strict": the others
            have a score of -inf, so that they are never asked about.
        pool: The rows.
        link: Of the classifier.
        generator: What is random.
        delta: Half width of the band; of several classes, half of the margin between the two
            likeliest.
        sought: The class that "rare class first" still lacks; None: it has enough of each.

    Raises:
        BadInput: Another method.
    """
    if method not in METHODS:
        raise BadInput(f"There is no acquisition {method!r}; choose one of {', '.join(METHODS)}.")
    chance = torch.rand(len(pool.p), generator=generator, dtype=torch.float64).to(pool.p)
    if method == "random":
        return chance
    if method == "entropy":
        return entropy(pool.p)
    if method == "BALD":
        return information(pool, link)
    if method == RARE and sought is not None:
        return pool.p[:, sought] if pool.p.ndim == 2 else pool.p if sought else 1 - pool.p
    away = margin(pool.p)
    if method in (BAND, STRICT):
        beyond = -away if method == BAND else torch.full_like(away, -torch.inf)
        return torch.where(away <= delta, 1 + chance, beyond)
    return -away


def sought(counts: Sequence[int], enough: int) -> int | None:
    """The class with fewest labels, of the classes that have fewer than `enough`; None: no such.

    Args:
        counts: Labels of each class.
        enough: How many each should have.
    """
    rarest = min(range(len(counts)), key=lambda c: (counts[c], -c))
    return rarest if counts[rarest] < enough else None


def chosen(
    score: Float[Tensor, " n"],
    x: Float[Tensor, "n d"],
    k: int,
    diversity: str = "none",
    model: Classifier | None = None,
) -> Int[Tensor, " k"]:
    """Rows of a batch, in the order in which to ask them.

    The first has the highest score; the others come from a shortlist of the next best.

    Args:
        score: Of every row; -inf of those that must not be asked about.
        x: The rows.
        k: How many; all where there are fewer.
        diversity: "distance": each is the one of the shortlist farthest from those before it.
            "determinant": the one of largest variance given those before it, so that the
            determinant of the batch's posterior covariance grows most (greedily). "none": by score.
        model: The classifier, for the covariance.

    Raises:
        BadInput: Another word for `diversity`.
    """
    if diversity not in DIVERSITY:
        raise BadInput(f"There is no diversity {diversity!r}; choose one of {list(DIVERSITY)}.")
    best = score.argsort(descending=True, stable=True)
    best = best[: int((score > -torch.inf).sum())]
    k = min(k, len(best))
    if diversity == "none" or k < 2:
        return best[:k]
    short = best[: SHORTLIST * k]
    if diversity == "determinant" and model is not None:
        K = posterior_covariance(model, x[short], x[short])
        return short[_pivots(K, k)]
    return short[_farthest(x[short], k)]


def _farthest(x: Tensor, k: int) -> Tensor:
    picks = [0]
    away = (x - x[0]).square().sum(1)
    while len(picks) < k:
        away[picks[-1]] = -1.0
        picks.append(int(away.argmax()))
        away = torch.minimum(away, (x - x[picks[-1]]).square().sum(1))
    return torch.tensor(picks, device=x.device)


def _pivots(K: Tensor, k: int) -> Tensor:
    """The pivots of a Cholesky decomposition that begins with the first row."""
    left, picks = K.diagonal().clone(), [0]
    factor = K.new_zeros(len(K), k)
    for i in range(k):
        at = picks[-1]
        column = K[:, at] - factor[:, :i] @ factor[at, :i]
        factor[:, i] = column / left[at].clamp(min=1e-12).sqrt()
        left = left - factor[:, i].square()
        left[picks] = -torch.inf
        if i + 1 < k:
            picks.append(int(left.argmax()))
    return torch.tensor(picks, device=K.device)


@torch.no_grad()
def posterior_covariance(
    model: Classifier, a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]
) -> Float[Tensor, "n m"]:
    """Of the latent function between rows, by Laplace's approximation; of several, the sum."""
    if isinstance(model, OneVsRest):
        return torch.stack([posterior_covariance(one, a, b) for one in model.models]).sum(0)
    found = mode(model.covariance(model.x), model.y, model.link, model.a)

    def seen(x: Tensor) -> Tensor:
        cross = found.W_sqrt[:, None] * model.covariance(model.x, x)
        return torch.linalg.solve_triangular(found.L, cross, upper=False)

    return model.covariance(a, b) - seen(a).T @ seen(b)


def nearness(
    model: Classifier, x: Float[Tensor, "n d"], among: Float[Tensor, "m d"]
) -> Float[Tensor, " n"]:
    """Prior correlation of f with the nearest of some rows; 0 where there are none.

    Of several classes the function is that of the last.
    """
    if not len(among):
        return x.new_zeros(len(x))
    one = parts_of(model)[-1]
    with torch.no_grad():
        scale = (one.variance(x)[:, None] * one.variance(among)).sqrt()
        return (one.covariance(x, among) / scale).amax(1)


def reasons(
    p: Float[Tensor, " k"],
    near: Float[Tensor, " k"],
    share: Float[Tensor, " k"],
    method: str,
    delta: float = 0.05,
    wanted: str = "",
) -> list[str]:
    """Why each row is asked about, such as "p = 0.52, far from every labeled patch".

    Args:
        p: Probability of class 1.
        near: Correlation with the nearest labeled row (`nearness`).
        share: What is left of the prior variance of f.
        method: Of `METHODS`.
        delta: Half width of the band.
        wanted: The class of which more are sought first; "": none.
    """
    told = []
    for chance, close, left in zip(p.tolist(), near.tolist(), share.tolist()):
        reasons = [f"p = {chance:.2f}"]
        if method == "random":
            reasons.append("drawn at random")
        elif method == BAND and abs(chance - 0.5) > delta:
            reasons.append(f"the nearest to 0.5 outside the band of {delta:g}")
        if method == RARE and wanted:
            reasons.append(f"among the likeliest to be {wanted}, of which few are labeled yet")
        elif abs(chance - 0.5) > DOUBT:
            reasons.append("hardly in doubt: what is left says little more")
        elif close < FAR:
            reasons.append("far from every labelled patch")
        elif close > NEAR:
            reasons.append("much like a labelled patch, and still undecided")
        elif left > 0.5:
            reasons.append("labels near it say little yet")
        else:
            reasons.append("between labelled patches of both kinds")
        told.append(", ".join(reasons))
    return told
