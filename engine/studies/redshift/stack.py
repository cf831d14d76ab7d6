"""An average of GPz with plain GPs, a straight line and the mean of all targets.

Many basis functions need many rows. Of few, a GP with a lengthscale of each input may know more;
of many, one that takes over the noise that GPz has found; a line is better where all is straight,
and the mean where the inputs tell nothing. Rows that were left out choose the weights
(`scant.inference.stacking`). Of a few dozen rows, a GP that is averaged over its hyperparameters is
trusted beforehand, because so few say little of which member is best. Errors have heavier tails
and a sharper middle than any member says: each Gaussian is then a mixture of narrower and wider
ones, by the same left-out rows. A row with missing values is
asked of GPz alone, which integrates over them. No mean of GPz or of a line leaves the targets'
range by more than a tenth of it: far from all rows they go anywhere. A GP is believed a whole range
beyond: it falls back to the mean there, or on few rows to a line with an honest deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from scant.inference import stacking
from scant.models.anchored_gp import SEARCH_ROWS, AnchoredGP
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import Components, GPzPrediction
from scant.models.marginal_gp import MarginalGP
from scant.models.nearest_gp import LONG, QUICK, NearestGP
from scant.studies.protocol import Tensors, part
from scant.studies.redshift.fold import Fold, Rows
from scipy.special import logsumexp
from scipy.stats import norm
from torch import Tensor

MOST_ROWS = 20_000  # that a GP is conditioned on
MOST_ASKED = 5000  # left-out rows of a fold that choose weights
PRIOR = 0.3  # rows for which each member counts as the best from the start
SCALES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # of the deviations of a whole row's mixture
AS_SAID = SCALES.index(1.0)
GAUSSIAN = 10.0  # rows for which the deviations count as right from the start
RARE = 0.001  # weight below which a scale is left out
FEW = 64  # rows, up to which a GP is averaged over its hyperparameters
TRUST = 10.0  # rows for which that one counts as the best from the start
BEYOND = 0.1  # of the targets' range
FARTHER = 0.75  # of the distance of the ends of that: where GPs are stopped


MARGINAL, NEAREST = "averaged over hyperparameters", "of the nearest rows"
MANY = 300  # rows, from which on those nearest to a row are enough of them


Model = AnchoredGP | MarginalGP | NearestGP
Inputs = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]


class Partner(NamedTuple):
    """A model beside GPz: its name, its kernel, and whether its noise is that of GPz."""

    name: str
    shape: str
    noisy: bool

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Of its mean, by those of GPz."""
        more = FARTHER * (high - low) if self.shape in ("rbf", "rough", MARGINAL, NEAREST) else 0.0
        return low - more, high + more

    def able(self, rows: int, quick: bool) -> bool:
        """Whether it is for so many rows, and for a search that is to be quick."""
        told = {MARGINAL: rows <= FEW, NEAREST: rows > MANY, "constant": True}
        return told.get(self.shape, not quick or rows <= MANY)

    def of(self, x: Inputs, y: Values, told: Values, theta: Any, quick: bool) -> Model:
        """Of rows; `told` is the noise that GPz has found, `theta` what is known already."""
        noise = told if self.noisy else None
        if self.shape == MARGINAL:
            return MarginalGP.of(x, y)
        if self.shape == NEAREST:
            return NearestGP.of(x, y, noise, theta, QUICK if quick else LONG)
        return AnchoredGP.of(self.shape, x, y, noise, theta)

    def read(self, tensors: Tensors) -> Model:
        """The model, from its tensors."""
        if self.shape == MARGINAL:
            return MarginalGP.read(tensors)
        if self.shape == NEAREST:
            return NearestGP.read(tensors)
        return AnchoredGP.read(self.shape, tensors)

    def ask(self, model: Model, x: Inputs, told: Values) -> tuple[Values, Values, Values]:
        """Means, model variances and noise variances of rows of which GPz has told its noise."""
        noise = told if self.noisy else np.zeros_like(told)
        if isinstance(model, NearestGP):
            return model.ask(x, noise)
        return *model.ask(x), model.noise + noise


PARTNERS = (
    Partner("GP", "rbf", False),
    Partner("GP with this noise", "rbf", True),
    Partner("rough GP with this noise", "rough", True),
    Partner("straight line", "linear", False),
    Partner("no input", "constant", False),
    Partner("GP with uncertain hyperparameters", MARGINAL, False),
    Partner("GP of the nearest rows", NEAREST, True),
)


@dataclass(frozen=True)
class Stack(stacking.Average):
    """Partners of GPz and the weights of all.

    Attributes:
        weights: Of GPz, then of the partners.
        shape: Weights of `SCALES`.
        gps: The partners, of all learned rows; None where one has no weight.
        T: From the inputs x to the coordinates that they were trained in.
        low: Least mean that is believed, on the scale of training.
        high: Greatest.
    """

    names = ("GPz", *(partner.name for partner in PARTNERS))

    shape: tuple[float, ...]
    gps: tuple[Model | None, ...]
    T: Float[Tensor, "d d"]
    low: float
    high: float

    @classmethod
    @torch.no_grad()
    def weighed(
        cls,
        folds: Sequence[Fold],
        models: Sequence[GPz],
        unseen: Sequence[GPzPrediction],
        T: Float[Tensor, "d d"],
        quick: bool = False,
    ) -> Stack:
        """By the rows that each fold has left out.

        Args:
            folds: Divisions of the same rows.
            models: Of each fold, for its noise.
            unseen: What each fold's model says of the rows that it was not trained on.
            T: From the inputs x to the coordinates of the rows.
            quick: Without partners that take long to be found, and with a shorter search.
        """
        rows = folds[0].rows
        beyond = BEYOND * float(rows.y.max() - rows.y.min())
        ends = float(rows.y.min()) - beyond, float(rows.y.max()) + beyond
        few = len(rows.y) <= FEW
        able = [partner.able(len(rows.y), quick) for partner in PARTNERS]
        errors, deviations = list[Any](), list[Any]()
        theta: list[Any] = [None] * len(PARTNERS)
        for fold, model, told in zip(folds, models, unseen):
            gps = _learned(fold, fold.train, [model], theta, able, quick)
            if len(fold.train.y) > SEARCH_ROWS:  # then they say little of any one row
                theta = [None if gp is None else gp.theta for gp in gps]
            asked = fold.asked[:MOST_ASKED].cpu().numpy()
            parts = [(np.clip(told.mean.cpu().numpy(), *ends), told.variance.cpu().numpy())]
            for partner, gp in zip(PARTNERS, gps):
                if gp is None:
                    parts.append((np.zeros(len(asked)), np.full(len(asked), np.inf)))
                    continue
                known = told.noise_variance.cpu().numpy()[:MOST_ASKED]
                mean, variance, noise = partner.ask(gp, asked, known)
                parts.append((np.clip(mean, *partner.ends(*ends)), variance + noise))
            truth = fold.unseen.y.cpu().numpy()[:MOST_ASKED]
            means, variances = (
                np.stack([p[:MOST_ASKED] for p in column]) for column in zip(*parts)
            )
            errors.append(truth - means)
            deviations.append(variances**0.5)
        prior = [PRIOR, *(PRIOR if p.shape != MARGINAL else TRUST * few for p in PARTNERS)]
        trivial = None if few else cls.names.index("no input")
        error, deviation = np.concatenate(errors, 1).T, np.concatenate(deviations, 1).T
        density = norm.logpdf(error, scale=deviation)
        weights = stacking.weights(density, trivial, np.array(prior))
        shape = _shape(error, deviation, weights)
        wanted = [w > 0 for w in weights[1:].tolist()]
        gps = _learned(folds[0], rows, models, theta, wanted, quick)
        return cls(tuple(weights.tolist()), shape, tuple(gps), T, *ends)

    def mixed(
        self, x: Float[Tensor, "n d"], told: GPzPrediction, apart: Float[Tensor, " n"]
    ) -> GPzPrediction:
        """The average with what GPz says of rows; all disagreement is model variance.

        Args:
            x: Rows.
            told: Of GPz.
            apart: The part of its model variance that is disagreement already.
        """
        whole = x.isfinite().all(1)
        parts = self._parts(x[whole], told.noise_variance[whole])
        own = told.mean.clamp(self.low, self.high)
        known, noise = told.model_variance.clone(), told.noise_variance.clone()
        weights = self._used.to(own)
        means = torch.stack([own[whole], *(p[0] for p in parts)])
        model = torch.stack([(known - apart)[whole], *(p[1] for p in parts)])
        mean = weights @ means
        wider = sum(w * s**2 for w, s in zip(self.shape, SCALES))
        own[whole] = mean
        between = weights @ (means - mean).square() + weights[0] * apart[whole]
        known[whole] = wider * weights @ model + between
        noise[whole] = wider * weights @ torch.stack([noise[whole], *(p[2] for p in parts)])
        return GPzPrediction(own, known, noise, told.input_variance)  # zero where all is there

    def components(self, x: Float[Tensor, "n d"], told: Components, noise: Tensor) -> Components:
        """Those of GPz and one for each partner.

        Args:
            x: Rows.
            told: Of GPz.
            noise: Its noise variance of each row.
        """
        whole = x.isfinite().all(1)
        weights = self._used.to(noise)
        share = torch.where(whole, weights[0], 1.0).unsqueeze(1)
        own = replace(told, weights=told.weights * share, mean=told.mean.clamp(self.low, self.high))
        others = noise.new_zeros(5, len(x), len(weights) - 1)
        for k, numbers in enumerate(self._parts(x[whole], noise[whole])):
            others[0, whole, k] = weights[k + 1]
            others[1:4, whole, k] = torch.stack(numbers)
        pairs = zip(vars(own).values(), others)
        return self._shaped(*(torch.cat(pair, dim=1) for pair in pairs), whole=whole)

    def _shaped(
        self,
        weights: Float[Tensor, "n k"],
        mean: Float[Tensor, "n k"],
        *variances: Float[Tensor, "n k"],
        whole: Bool[Tensor, " n"],
    ) -> Components:
        """Each component at all scales in use; rows that are not whole keep their deviations."""
        there = (weights > 0).any(0)
        used = [k for k, w in enumerate(self.shape) if w or k == AS_SAID]
        share = mean.new_tensor([self.shape[k] for k in used])
        square = mean.new_tensor([SCALES[k] for k in used]).square()
        of_row = mean.new_zeros(len(mean), len(used))
        of_row[:, used.index(AS_SAID)] = 1
        of_row[whole] = share
        return Components(
            torch.einsum("nk,ns->nks", weights[:, there], of_row).flatten(1),
            mean[:, there].repeat_interleave(len(used), dim=1),
            *(torch.einsum("nk,s->nks", v[:, there], square).flatten(1) for v in variances),
        )

    @property
    def _used(self) -> Float[Tensor, " k"]:
        """The weights above zero, that of GPz first in any case."""
        own, *others = self.weights
        return torch.tensor([own, *(w for w in others if w)], dtype=torch.float64)

    def _parts(
        self, x: Float[Tensor, "n d"], noise: Float[Tensor, " n"]
    ) -> list[tuple[Float[Tensor, " n"], ...]]:
        """Mean, model variance and noise variance of rows by each partner that has a weight."""
        z, known = (x @ self.T.T).cpu().numpy(), noise.cpu().numpy()
        parts = list[tuple[Tensor, ...]]()
        for partner, gp in zip(PARTNERS, self.gps):
            if gp is None:
                continue
            told = partner.ask(gp, z, known)
            mean, *variances = (torch.as_tensor(v).to(x) for v in told)
            parts.append((mean.clamp(*partner.ends(self.low, self.high)), *variances))
        return parts

    def tensors(self) -> Tensors:
        """What `read` needs beside `meta`."""
        found = {"T": self.T}
        for k, gp in enumerate(self.gps):
            found |= {f"{k}.{n}": v for n, v in gp.tensors().items()} if gp else {}
        return found

    def meta(self) -> dict[str, Any]:
        """What `read` needs, ready for JSON."""
        return {
            "weights": list(self.weights),
            "shape": list(self.shape),
            "low": self.low,
            "high": self.high,
        }

    @classmethod
    def read(cls, tensors: Tensors, meta: Mapping[str, Any] | None) -> Stack | None:
        """The inverse of `tensors` and `meta`; None of a run without an average."""
        if not meta:
            return None
        weights = tuple(meta["weights"])
        shape = tuple(meta.get("shape", np.eye(len(SCALES))[AS_SAID].tolist()))  # none before 0.2
        gps = [
            partner.read(part(tensors, f"{k}.")) if weight else None
            for k, (partner, weight) in enumerate(zip(PARTNERS, weights[1:]))
        ]
        return cls(weights, shape, tuple(gps), tensors["T"], meta["low"], meta["high"])


def _shape(
    error: Float[np.ndarray, "n k"],
    deviation: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " k"],
) -> tuple[float, ...]:
    """Weights of `SCALES` by the errors of left-out rows under members of these weights."""
    used = weights > 0
    scaled = deviation[:, used, None] * SCALES
    each = norm.logpdf(error[:, used, None], scale=scaled) + np.log(weights[used])[:, None]
    prior = GAUSSIAN * np.eye(len(SCALES))[AS_SAID]
    found = stacking.weights(logsumexp(each, axis=1), prior=prior, least=RARE)
    return tuple(found.tolist())


def _learned(
    fold: Fold,
    rows: Rows,
    models: Sequence[GPz],
    theta: Sequence[Any],
    wanted: Sequence[bool],
    quick: bool,
) -> list[Any]:
    """The partners, of these rows; None where one is not wanted.

    Args:
        fold: Which says how missing values are filled.
        rows: To learn from.
        models: Whose noise is taken over.
        theta: Hyperparameters of each partner; None: they are found.
        wanted: Which of them.
        quick: Whether fewer rows choose hyperparameters.
    """
    X = fold.filled(rows.X[:MOST_ROWS])
    noise = torch.stack([m.predict(X).noise_variance for m in models]).mean(0).cpu().numpy()
    x, y = X.cpu().numpy(), rows.y[:MOST_ROWS].cpu().numpy()
    found = list[Any]()
    for partner, known, use in zip(PARTNERS, theta, wanted):
        found.append(partner.of(x, y, noise, known, quick) if use else None)
    return found
