"""Acquisition functions of pool-based active learning, and selection of diverse batches.

Pool-based sampling (Settles 2012): the band 0.5 +- delta of Yousefi (2021, section 4.4), least
confident, entropy, BALD (Houlsby et al. 2011, equations 3 and 4), random, and rare class first: the
rows most likely to be of the rare class until enough are labeled (as experts search, Attenberg &
Provost 2010), then the least confident. All functions take the class probabilities of a fitted
classifier, and mean and variance of its latent functions; rows with high scores are queried first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.errors import BadInput
from scant.models.laplace.approximation import mode
from scant.models.laplace.one_vs_rest import Classifier, OneVsRest, parts_of

BAND, STRICT, RARE, LEAST = "band", "band, strict", "rare class first", "least confident"
METHODS = (RARE, BAND, STRICT, LEAST, "entropy", "BALD", "random")
DIVERSITY = ("distance", "determinant", "none")
SHORTLIST = 8  # candidates per row of a diverse batch
# Entropy of a label given f, over ln 2, approximated by Gaussians in f (weight, squared width) with
# errors of 0.01 nats for probit and 0.002 for logistic (least squares).
SHAPES = {
    "probit": ((1.0, math.pi * math.log(2) / 2),),
    "logistic": ((0.544, 1.981), (0.456, 6.078)),
}
DOUBT = 0.35  # |p - 0.5| beyond which a class is hardly in doubt
NEAR, FAR = 0.8, 0.3  # prior correlations with the nearest labeled row


class CandidatePool(NamedTuple):
    """Predictions for unlabeled rows: for class 1, or for each of k classes."""

    p: Float[Tensor, "n *k"]
    mean: Float[Tensor, "n *k"]  # of the latent functions
    variance: Float[Tensor, "n *k"]


def entropy(p: Float[Tensor, "n *k"]) -> Float[Tensor, " n"]:
    """Entropy in nats of a label with p(class 1) = p, or with k class probabilities."""
    if p.ndim == 2:
        return -torch.xlogy(p, p).sum(1)
    return -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))


def margin(p: Float[Tensor, "n *k"]) -> Float[Tensor, " n"]:
    """Half the difference of the two largest class probabilities; |p - 0.5| for two classes."""
    if p.ndim == 2:
        first, second = p.topk(2, 1).values.unbind(1)
        return (first - second) / 2
    return (p - 0.5).abs()


def information(pool: CandidatePool, link: str) -> Float[Tensor, " n"]:
    """BALD in closed form: mutual information of label and latent function, in nats.

    It is the entropy of the mean probability less the mean entropy. The entropy as a function of f
    is approximated by one Gaussian for probit (Houlsby et al. 2011, equation 4), by two for
    logistic. With several one-vs-rest classes the information is summed.
    """
    if pool.p.ndim == 2:
        per_class = (CandidatePool(*columns) for columns in zip(*(v.unbind(1) for v in pool)))
        return torch.stack([information(p, link) for p in per_class]).sum(0)
    total = torch.zeros_like(pool.mean)
    for weight, width in SHAPES[link]:
        total_width = width + pool.variance
        total += (
            weight * (width / total_width).sqrt() * (-0.5 * pool.mean.square() / total_width).exp()
        )
    return (entropy(pool.p) - math.log(2) * total).clamp(min=0)


def scores(
    method: str,
    pool: CandidatePool,
    link: str,
    generator: torch.Generator,
    delta: float = 0.05,
    sought: int | None = None,
) -> Float[Tensor, " n"]:
    """Acquisition score of each row; higher scores are queried first.

    Args:
        method: One of `METHODS`. "band": rows with p within `delta` of 0.5 come first, in random
            order, as published; then the others, by their distance from 0.5. "band, strict": rows
            outside the band get a score of -inf and are never queried.
        pool: Predictions for the unlabeled rows.
        link: Link of the classifier.
        generator: Generator for random scores.
        delta: Half width of the band; with several classes, half the margin between the two most
            probable ones.
        sought: Class with too few labels for "rare class first"; None if all have enough.

    Raises:
        BadInput: The method is unknown.
    """
    if method not in METHODS:
        raise BadInput(f"There is no acquisition {method!r}; choose one of {', '.join(METHODS)}.")
    noise = torch.rand(len(pool.p), generator=generator, dtype=torch.float64).to(pool.p)
    if method == "random":
        return noise
    if method == "entropy":
        return entropy(pool.p)
    if method == "BALD":
        return information(pool, link)
    if method == RARE and sought is not None:
        return pool.p[:, sought] if pool.p.ndim == 2 else pool.p if sought else 1 - pool.p
    distance = margin(pool.p)
    if method in (BAND, STRICT):
        outside = -distance if method == BAND else torch.full_like(distance, -torch.inf)
        return torch.where(distance <= delta, 1 + noise, outside)
    return -distance


def sought(counts: Sequence[int], enough: int) -> int | None:
    """Class with the fewest labels, or None if all classes have `enough`.

    Args:
        counts: Number of labels of each class.
        enough: Target number of labels per class.
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
    """Select a batch of at most k rows, in query order.

    The first row has the highest score; the others come from a shortlist of the next best.

    Args:
        score: Score of each row; rows with -inf are never selected.
        x: Inputs of the rows.
        k: Batch size.
        diversity: "distance": each next row is the one farthest from those before it.
            "determinant": each next row has the largest variance given those before it, which
            greedily maximizes the determinant of the batch's posterior covariance. "none": rows
            are selected by score.
        model: Classifier, for the covariance.

    Raises:
        BadInput: The value of `diversity` is unknown.
    """
    if diversity not in DIVERSITY:
        raise BadInput(f"There is no diversity {diversity!r}; choose one of {list(DIVERSITY)}.")
    order = score.argsort(descending=True, stable=True)
    order = order[: int((score > -torch.inf).sum())]
    k = min(k, len(order))
    if diversity == "none" or k < 2:
        return order[:k]
    shortlist = order[: SHORTLIST * k]
    if diversity == "determinant" and model is not None:
        K = posterior_covariance(model, x[shortlist], x[shortlist])
        return shortlist[_pivots(K, k)]
    return shortlist[_farthest(x[shortlist], k)]


def _farthest(x: Tensor, k: int) -> Tensor:
    picks = [0]
    distance = (x - x[0]).square().sum(1)
    while len(picks) < k:
        distance[picks[-1]] = -1.0
        picks.append(int(distance.argmax()))
        distance = torch.minimum(distance, (x - x[picks[-1]]).square().sum(1))
    return torch.tensor(picks, device=x.device)


def _pivots(K: Tensor, k: int) -> Tensor:
    """Pivots of a pivoted Cholesky decomposition that starts with the first row."""
    variance, picks = K.diagonal().clone(), [0]
    factor = K.new_zeros(len(K), k)
    for i in range(k):
        last = picks[-1]
        column = K[:, last] - factor[:, :i] @ factor[last, :i]
        factor[:, i] = column / variance[last].clamp(min=1e-12).sqrt()
        variance = variance - factor[:, i].square()
        variance[picks] = -torch.inf
        if i + 1 < k:
            picks.append(int(variance.argmax()))
    return torch.tensor(picks, device=K.device)


@torch.no_grad()
def posterior_covariance(
    model: Classifier, a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]
) -> Float[Tensor, "n m"]:
    """Posterior covariance of the latent function (Laplace), summed over one-vs-rest classes."""
    if isinstance(model, OneVsRest):
        return torch.stack([posterior_covariance(one, a, b) for one in model.models]).sum(0)
    laplace = mode(model.covariance(model.x), model.y, model.link, model.a)

    def whitened(x: Tensor) -> Tensor:
        cross = laplace.W_sqrt[:, None] * model.covariance(model.x, x)
        return torch.linalg.solve_triangular(laplace.L, cross, upper=False)

    return model.covariance(a, b) - whitened(a).T @ whitened(b)


def nearness(
    model: Classifier, x: Float[Tensor, "n d"], among: Float[Tensor, "m d"]
) -> Float[Tensor, " n"]:
    """Largest prior correlation of f at each row of x with the rows `among`; 0 if there are none.

    With several classes, f is the function of the last one.
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
    """Explain why each row is queried, such as "p = 0.52, far from every labeled patch".

    Args:
        p: Probability of class 1.
        near: Prior correlation with the nearest labeled row (`nearness`).
        share: Posterior variance of f relative to its prior variance.
        method: One of `METHODS`.
        delta: Half width of the band.
        wanted: Class that is sought first; "" for none.
    """
    texts = []
    for probability, correlation, variance_share in zip(p.tolist(), near.tolist(), share.tolist()):
        reasons = [f"p = {probability:.2f}"]
        if method == "random":
            reasons.append("drawn at random")
        elif method == BAND and abs(probability - 0.5) > delta:
            reasons.append(f"the nearest to 0.5 outside the band of {delta:g}")
        if method == RARE and wanted:
            reasons.append(f"among the likeliest to be {wanted}, of which few are labeled yet")
        elif abs(probability - 0.5) > DOUBT:
            reasons.append("hardly in doubt: what is left says little more")
        elif correlation < FAR:
            reasons.append("far from every labeled row")
        elif correlation > NEAR:
            reasons.append("much like a labeled row, and still undecided")
        elif variance_share > 0.5:
            reasons.append("labels near it say little yet")
        else:
            reasons.append("between labeled rows of both kinds")
        texts.append(", ".join(reasons))
    return texts
