"""An average of GPz with plain GPs, a straight line and the mean of all targets.

Many basis functions need many rows. Of few, a GP with a lengthscale of each input may know more;
of many, one that takes over the noise that GPz has found; a line is better where all is straight,
and the mean where the inputs tell nothing. Rows that were left out choose the weights
(`scant.inference.stacking`). Of a few dozen rows, a GP that is averaged over its hyperparameters is
trusted beforehand, because so few say little of which member is best. Errors have heavier tails
and a sharper middle than any member says: each Gaussian is then a mixture of narrower and wider
ones, by the same left-out rows. A row with missing values is asked of GPz alone, which integrates
over them, unless it lacks few of many columns. No mean of GPz or of a line leaves the targets'
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
from scipy.special import logsumexp
from scipy.stats import norm
from torch import Tensor

from scant.deadline import NEVER, Deadline
from scant.inference import stacking
from scant.models.anchored_gp import SEARCH_ROWS, AnchoredGP
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import Components, GPzPrediction
from scant.models.marginal_gp import MarginalGP
from scant.models.nearest_gp import LONG, PARTS, QUICK, NearestGP
from scant.studies.protocol import Tensors, part
from scant.studies.redshift.fold import Fold, Rows

MOST_ROWS = 20_000  # that a GP is conditioned on
MOST_ASKED = 5000  # left-out rows of a fold that choose weights
PRIOR = 0.3  # rows for which each member counts as the best from the start
SCALES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # of the deviations of a whole row's mixture
AS_SAID = SCALES.index(1.0)
GAUSSIAN = 10.0  # rows for which the deviations count as right from the start
PART_ROWS = 1.0  # rows for which each part of a density counts as the best from the start
EQUAL = (1 / PARTS,) * PARTS
RARE = 0.001  # weight below which a scale is left out
FEW = 64  # rows, up to which a GP is averaged over its hyperparameters
TRUST = 10.0  # rows for which that one counts as the best from the start
BEYOND = 0.1  # of the targets' range
FARTHER = 0.75  # of the distance of the ends of that: where GPs are stopped


MARGINAL, NEAREST = "averaged over hyperparameters", "of the nearest rows"
HALF = 0.5  # power of the noise, where few rows that look noisy may be a kind of their own
MANY = 300  # rows, from which on those nearest to a row are enough of them


Model = AnchoredGP | MarginalGP | NearestGP
Inputs = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]
Parts = Float[np.ndarray, "n _"]
Asked = list[tuple[Float[Tensor, "w _"], ...]]


class Partner(NamedTuple):
    """A model beside GPz: its name, its kernel, and the power of GPz's noise that it takes over.

    `draw` says which rows choose its hyperparameters, where there are too many for all to do so.
    """

    name: str
    shape: str
    power: float
    draw: int = 0

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Of its mean, by those of GPz."""
        more = FARTHER * (high - low) if self.shape in ("rbf", "rough", MARGINAL, NEAREST) else 0.0
        return low - more, high + more

    def able(self, rows: int, quick: bool) -> bool:
        """Whether it is for so many rows, and for a search that is to be quick."""
        told = {MARGINAL: rows <= FEW, NEAREST: rows > MANY, "constant": True}
        first = not self.draw or (not quick and (self.power == HALF or rows > LONG.rows))
        return told.get(self.shape, not quick or rows <= MANY) and first

    def noise(self, told: Values) -> Values:
        """The part that the noise of GPz has in its own, but for a factor that it learns."""
        return told**self.power if self.power else np.zeros_like(told)

    def of(self, x: Inputs, y: Values, told: Values, theta: Any, quick: bool) -> Model:
        """Of rows; `told` is the noise that GPz has found, `theta` what is known already."""
        noise = self.noise(told) if self.power else None
        if self.shape == MARGINAL:
            return MarginalGP.of(x, y)
        if self.shape == NEAREST:
            return NearestGP.of(x, y, noise, theta, QUICK if quick else LONG, self.draw)
        return AnchoredGP.of(self.shape, x, y, noise, theta)

    def read(self, tensors: Tensors) -> Model:
        """The model, from its tensors."""
        if self.shape == MARGINAL:
            return MarginalGP.read(tensors)
        if self.shape == NEAREST:
            return NearestGP.read(tensors)
        return AnchoredGP.read(self.shape, tensors)

    def ask(self, model: Model, x: Inputs, told: Values) -> tuple[Parts, Parts, Parts]:
        """Means, model variances and noise variances of rows of which GPz has told its noise.

        Of each of a few equal parts of a row's density; most partners have one.
        """
        noise = self.noise(told)
        if isinstance(model, NearestGP):
            return model.ask(x, noise)
        mean, variance = model.ask(x)
        return mean[:, None], variance[:, None], (model.noise + noise)[:, None]


QUICKEST = ("linear", "constant")
PARTNERS_SHARE = 0.4  # of the time left; where they are found once, further folds are quick
PARTNERS = (
    Partner("GP", "rbf", 0.0),
    Partner("GP with this noise", "rbf", 1.0),
    Partner("rough GP with this noise", "rough", 1.0),
    Partner("straight line", "linear", 0.0),
    Partner("no input", "constant", 0.0),
    Partner("GP with uncertain hyperparameters", MARGINAL, 0.0),
    Partner("GP of the nearest rows", NEAREST, 1.0),
    Partner("GP of the nearest rows with evener noise", NEAREST, HALF, draw=1),
    Partner("GP of the nearest rows, of another choice", NEAREST, 1.0, draw=2),
)
# In what order they are learned: what takes no time comes first.
ORDER = sorted(range(len(PARTNERS)), key=lambda k: PARTNERS[k].shape not in QUICKEST)
NEAREST_PLACE = 1 + [partner.shape for partner in PARTNERS].index(NEAREST)  # behind GPz


@dataclass(frozen=True)
class Stack(stacking.Average):
    """Partners of GPz and the weights of all.

    Attributes:
        weights: Of GPz, then of the partners.
        shape: Weights of `SCALES`.
        parts: Weights of the parts of the density of the GP of the nearest rows.
        gps: The partners, of all learned rows; None where one has no weight.
        T: From the inputs x to the coordinates that they were trained in.
        low: Least mean that is believed, on the scale of training.
        high: Greatest.
    """

    names = ("GPz", *(partner.name for partner in PARTNERS))

    shape: tuple[float, ...]
    parts: tuple[float, ...]
    gps: tuple[Model | None, ...]
    T: Float[Tensor, "q d"]
    low: float
    high: float

    @classmethod
    @torch.no_grad()
    def weighed(
        cls,
        folds: Sequence[Fold],
        models: Sequence[GPz],
        unseen: Sequence[GPzPrediction],
        T: Float[Tensor, "q d"],
        deadline: Deadline = NEVER,
        quick: bool = False,
    ) -> Stack:
        """By the rows that each fold has left out.

        Args:
            folds: Divisions of the same rows.
            models: Of each fold, for its noise.
            unseen: What each fold's model says of the rows that it was not trained on.
            T: From the inputs x to the coordinates of the rows.
            deadline: Of the fit, a part of which is for partners, which the first fold finds.
            quick: Without partners that take long to be found, and with a shorter search.
        """
        rows = folds[0].rows
        beyond = BEYOND * float(rows.y.max() - rows.y.min())
        ends = float(rows.y.min()) - beyond, float(rows.y.max()) + beyond
        few = len(rows.y) <= FEW
        able = [partner.able(len(rows.y), quick) for partner in PARTNERS]
        truth, said = list[Values](), list[list[tuple[Parts, Parts]]]()
        theta: list[Any] = [None] * len(PARTNERS)
        searching = deadline.share(PARTNERS_SHARE)
        learned = deadline.units(zip(folds, models, unseen), "folds of the average", minimum=1)
        for fold, model, told in learned:
            gps = _learned(fold, fold.train, [model], theta, able, quick, searching)
            able, searching = [gp is not None for gp in gps], NEVER
            if len(fold.train.y) > SEARCH_ROWS:  # then they say little of any one row
                theta = [None if gp is None else gp.theta for gp in gps]
            asked = fold.asked[:MOST_ASKED].cpu().numpy()
            own, variance, known = (
                v[:MOST_ASKED].cpu().numpy()
                for v in (told.mean, told.variance, told.noise_variance)
            )
            told_by = [(np.clip(own, *ends)[:, None], variance[:, None] ** 0.5)]
            for partner, gp in zip(PARTNERS, gps):
                if gp is None:
                    told_by.append((np.zeros((len(asked), 1)), np.full((len(asked), 1), np.inf)))
                    continue
                mean, *variances = partner.ask(gp, asked, known)
                told_by.append((np.clip(mean, *partner.ends(*ends)), sum(variances) ** 0.5))
            truth.append(fold.unseen.y[:MOST_ASKED].cpu().numpy())
            said.append(told_by)
        y = np.concatenate(truth)[:, None]
        members = [tuple(map(np.concatenate, zip(*found))) for found in zip(*said)]
        prior = [PRIOR, *(PRIOR if p.shape != MARGINAL else TRUST * few for p in PARTNERS)]
        trivial = None if few else cls.names.index("no input")
        judged = [(y - mean, std) for mean, std in members]
        parts = _parts(*judged[NEAREST_PLACE])
        density = np.stack([_density(*pair, parts) for pair in judged], axis=1)
        weights = stacking.weights(density, trivial, np.array(prior))
        shape = _shape(judged, weights, parts)
        wanted = [w > 0 for w in weights[1:].tolist()]
        gps = _learned(folds[0], rows, models, theta, wanted, quick)
        return cls(tuple(weights.tolist()), shape, parts, tuple(gps), T, *ends)

    def mixed(
        self,
        x: Float[Tensor, "n d"],
        told: GPzPrediction,
        apart: Float[Tensor, " n"],
        asked: Asked | None = None,
    ) -> GPzPrediction:
        """The average with what GPz says of rows; all disagreement is model variance.

        Args:
            x: Rows.
            told: Of GPz.
            apart: The part of its model variance that is disagreement already.
            asked: What the partners say of these rows, where they have been asked already.
        """
        whole = x.isfinite().all(1)
        parts = asked or self.asked(x, told.noise_variance)
        own = told.mean.clamp(self.low, self.high)
        known, noise = told.model_variance.clone(), told.noise_variance.clone()
        weights = self._used.to(own)
        shares = [self._shares(p[0]) for p in parts]
        means, model, within = (
            torch.stack([of_gpz, *((p[k] * share).sum(1) for p, share in zip(parts, shares))])
            for k, of_gpz in enumerate((own[whole], (known - apart)[whole], noise[whole]))
        )
        mean = weights @ means
        wider = sum(w * s**2 for w, s in zip(self.shape, SCALES))
        own[whole] = mean
        between = weights @ (means - mean).square() + weights[0] * apart[whole]
        known[whole] = wider * weights @ model + between
        noise[whole] = wider * weights @ within
        for weight, several, own_share, middle in zip(weights[1:], parts, shares, means[1:]):
            away = (several[0] - middle[:, None]).square()  # errors that go several ways are noise
            noise[whole] += weight * (own_share * away).sum(1)
        return GPzPrediction(own, known, noise, told.input_variance)  # zero where all is there

    def components(
        self,
        x: Float[Tensor, "n d"],
        told: Components,
        noise: Float[Tensor, " n"],
        asked: Asked | None = None,
        lacking: Float[Tensor, " n"] | None = None,
    ) -> Components:
        """Those of GPz and one for each partner.

        Args:
            x: Rows.
            told: Of GPz.
            noise: Its noise variance of each row.
            asked: As `mixed`.
            lacking: The variance that what each row lacks causes, of GPz; None: whole rows only.
        """
        whole = x.isfinite().all(1)
        weights = self._used.to(noise)
        share = torch.where(whole, weights[0], 1.0).unsqueeze(1)
        own = replace(told, weights=told.weights * share, mean=told.mean.clamp(self.low, self.high))
        columns = [own]
        for weight, (mean, model, within) in zip(weights[1:], asked or self.asked(x, noise)):
            others = noise.new_zeros(5, len(x), mean.shape[1])
            own_share = (weight * self._shares(mean)).expand_as(mean)
            others[:4, whole] = torch.stack([own_share, mean, model, within])
            if lacking is not None:
                others[4, whole] = lacking[whole].unsqueeze(1)
            columns.append(Components(*others))
        joined = [torch.cat(parts, dim=1) for parts in zip(*(vars(c).values() for c in columns))]
        return self._shaped(*joined, whole=whole)

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

    def _shares(self, parts: Float[Tensor, "n a"]) -> Float[Tensor, " a"]:
        """Weights of the parts of a partner's density."""
        return parts.new_tensor(self.parts if parts.shape[1] == PARTS else [1.0])

    @property
    def _used(self) -> Float[Tensor, " k"]:
        """The weights above zero, that of GPz first in any case."""
        own, *others = self.weights
        return torch.tensor([own, *(w for w in others if w)], dtype=torch.float64)

    def asked(self, x: Float[Tensor, "n d"], noise: Float[Tensor, " n"]) -> Asked:
        """What each partner with a weight says of whole rows (`Partner.ask`)."""
        whole = x.isfinite().all(1)
        x, noise = x[whole], noise[whole]
        z, known = (x @ self.T.T).cpu().numpy(), noise.cpu().numpy()
        parts: Asked = []
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
            "parts": list(self.parts),
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
        parts = tuple(meta.get("parts", EQUAL))
        gps = [
            partner.read(part(tensors, f"{k}.")) if weight else None
            for k, (partner, weight) in enumerate(zip(PARTNERS, weights[1:]))
        ]
        return cls(weights, shape, parts, tuple(gps), tensors["T"], meta["low"], meta["high"])


def _parts(error: Parts, deviation: Parts) -> tuple[float, ...]:
    """Weights of the parts of a density, from the errors of their means at left-out rows."""
    if error.shape[1] < PARTS:
        return EQUAL
    found = stacking.weights(norm.logpdf(error, scale=deviation), prior=PART_ROWS, least=0.0)
    return tuple(found.tolist())


def _density(error: Parts, deviation: Parts, parts: tuple[float, ...]) -> Values:
    """Log density of rows under a mixture of one or of these parts."""
    each = norm.logpdf(error, scale=deviation)
    return np.asarray(logsumexp(each, axis=1, b=parts if error.shape[1] == PARTS else 1.0))


def _shape(
    members: Sequence[tuple[Parts, Parts]],
    weights: Float[np.ndarray, " k"],
    parts: tuple[float, ...],
) -> tuple[float, ...]:
    """Weights of `SCALES`, from errors and deviations of left-out rows under these members."""
    each = [
        np.stack([_density(error, scale * deviation, parts) for scale in SCALES], 1) + np.log(w)
        for (error, deviation), w in zip(members, weights)
        if w > 0
    ]
    prior = GAUSSIAN * np.eye(len(SCALES))[AS_SAID]
    found = stacking.weights(logsumexp(each, axis=0), prior=prior, least=RARE)
    return tuple(found.tolist())


def _learned(
    fold: Fold,
    rows: Rows,
    models: Sequence[GPz],
    theta: Sequence[Any],
    wanted: Sequence[bool],
    quick: bool,
    deadline: Deadline = NEVER,
) -> list[Any]:
    """The partners, of these rows; None where one is not wanted.

    Args:
        fold: Which says how missing values are filled.
        rows: To learn from.
        models: Whose noise is taken over.
        theta: Hyperparameters of each partner; None: they are found.
        wanted: Which of them.
        quick: Whether fewer rows choose hyperparameters.
        deadline: Of all but the quickest.
    """
    X = fold.filled(rows.X[:MOST_ROWS])
    noise = torch.stack([m.predict(X).noise_variance for m in models]).mean(0).cpu().numpy()
    x, y = X.cpu().numpy(), rows.y[:MOST_ROWS].cpu().numpy()
    found: list[Any] = [None] * len(PARTNERS)
    several = [k for k in ORDER if wanted[k]]
    for k in deadline.units(several, "members of the average", minimum=len(QUICKEST)):
        found[k] = PARTNERS[k].of(x, y, noise, theta[k], quick)
    return found
