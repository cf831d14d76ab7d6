"""Models beside GPz in the ensemble of a redshift study.

With few rows an ARD GP often beats GPz, which needs several rows per basis function. With many rows
GPs that take over GPz's noise variance add detail, trees follow the steps that a survey's limits
make, a linear model suffices for a straight line, and the training mean wins where the inputs carry
no information.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from scant.deadline import NEVER, Deadline
from scant.models.anchored_gp import AnchoredGP
from scant.models.gpz.model import GPz
from scant.models.marginal_gp import MarginalGP
from scant.models.nearest_gp import LONG, PARTS, QUICK, NearestGP
from scant.models.tree_mixture import N_QUICK_TREES, N_TREES, TreeMixture
from scant.predictive import MixturePredictive
from scant.studies.protocol import Tensors
from scant.studies.redshift.fold import Fold, Rows

MAX_ROWS = 20_000  # rows that a member is fitted to
MARGINAL_GP_MAX_ROWS = 64  # rows up to which a GP is averaged over its hyperparameters
NEAREST_GP_MIN_ROWS = 300  # rows from which the nearest ones are enough for a GP
QUICK_GP_MAX_ROWS = 300  # rows up to which GPs take part in a quick fit
GP_RANGE_MARGIN = 0.75  # of the range of GPz's means, added on either side for GPs
EQUAL = (1 / PARTS,) * PARTS

MARGINAL, NEAREST = "averaged over hyperparameters", "of the nearest rows"
TRIVIAL, TREES = "no input", "randomized trees"

Model = AnchoredGP | MarginalGP | NearestGP | TreeMixture
Inputs = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]


class EnsembleMember(NamedTuple):
    """A kind of model beside GPz.

    Attributes:
        name: Name in tables and sentences.
        shape: Kernel of `AnchoredGP`, `MARGINAL`, `NEAREST` or `TREES`.
        power: Power of GPz's noise variance that is a row's fixed noise; 0: no fixed noise.
        retired: True if only older runs have it.
    """

    name: str
    shape: str
    power: float
    retired: bool = False

    def supports(self, n_rows: int, quick: bool) -> bool:
        """Return True if the member supports so many rows and, if `quick`, a short search."""
        if self.retired:
            return False
        if self.shape == "constant":
            return True
        if self.shape == MARGINAL:
            return n_rows <= MARGINAL_GP_MAX_ROWS
        if self.shape in (TREES, NEAREST):
            return n_rows > NEAREST_GP_MIN_ROWS
        return not quick or n_rows <= QUICK_GP_MAX_ROWS

    def order(self) -> int:
        """Return the place in the order of fits: the GP that often has most of the weight comes
        next after the quickest, since time may run out."""
        if self.shape in QUICKEST:
            return 0
        return 1 if self.shape == NEAREST else 2

    def bounds(self, low: float, high: float) -> tuple[float, float]:
        """Bounds on the member's means, given those of GPz.

        Far from all rows GPz and a line are unbounded. A GP falls back to its mean there, or with
        few rows to a line with an honest variance, so its bounds are wide.
        """
        is_gp = self.shape in ("rbf", "rough", MARGINAL, NEAREST)
        margin = GP_RANGE_MARGIN * (high - low) if is_gp else 0.0
        return low - margin, high + margin

    def fixed_noise(self, gpz_noise: Values) -> Values:
        """Fixed noise variance of rows, up to a factor that some members learn."""
        return gpz_noise**self.power if self.power else np.zeros_like(gpz_noise)

    def fit(
        self,
        x: Inputs,
        y: Values,
        gpz_noise: Values,
        theta: Any,
        quick: bool,
        contrasts: Float[np.ndarray, "k d"] | None = None,
    ) -> Model:
        """Fit the member.

        Args:
            x: Inputs.
            y: Targets.
            gpz_noise: Noise variance of each row.
            theta: Hyperparameters, if they are known.
            quick: Whether the search is short.
            contrasts: Combinations of inputs that trees split along, too.
        """
        noise = self.fixed_noise(gpz_noise) if self.power else None
        if self.shape == MARGINAL:
            return MarginalGP.fit(x, y)
        if self.shape == TREES:
            n_trees = N_QUICK_TREES if quick else N_TREES
            return TreeMixture.fit(x, y, n_trees, contrasts=contrasts)
        if self.shape == NEAREST:
            return NearestGP.fit(x, y, noise, theta, QUICK if quick else LONG)
        return AnchoredGP.fit(self.shape, x, y, noise, theta)

    def from_tensors(self, tensors: Tensors) -> Model:
        """Restore a fitted model."""
        if self.shape == MARGINAL:
            return MarginalGP.from_tensors(tensors)
        if self.shape == TREES:
            return TreeMixture.from_tensors(tensors)
        if self.shape == NEAREST:
            return NearestGP.from_tensors(tensors)
        return AnchoredGP.from_tensors(self.shape, tensors)

    def predict(
        self,
        model: Model,
        x: Inputs,
        gpz: MixturePredictive,
        low: float,
        high: float,
        parts: tuple[float, ...] = EQUAL,
    ) -> MixturePredictive:
        """Predict complete rows.

        Args:
            model: The fitted model.
            x: Inputs, in the coordinates of training.
            gpz: GPz's predictions of these rows: their noise, and the variance due to completed
                inputs.
            low: Least mean of GPz.
            high: Greatest mean of GPz.
            parts: Weights of the components of a GP of the nearest rows. Their disagreement is
                noise: the errors of the neighbors have several modes. That of trees is not.
        """
        noise = self.fixed_noise(gpz.noise_variance)
        if isinstance(model, NearestGP):
            mean, variance, noise = model.predict(x, noise)
        elif isinstance(model, TreeMixture):
            mean, noise = model.predict(x)
            variance, parts = np.zeros_like(noise), (1 / mean.shape[1],) * mean.shape[1]
        else:
            mean, variance, noise = (v[:, None] for v in (*model.predict(x), model.noise + noise))
            parts = (1.0,)
        mean, weights = mean.clip(*self.bounds(low, high)), np.array(parts)
        inputs = gpz.input_variance
        disagreement = (mean - (mean @ weights)[:, None]) ** 2
        mixture = MixturePredictive(
            np.broadcast_to(weights, mean.shape), mean, variance + noise + inputs[:, None]
        )
        if isinstance(model, TreeMixture):
            variance = disagreement
        else:
            noise = noise + disagreement
        return mixture.with_sources(variance @ weights, noise @ weights, inputs)


MEMBERS = {
    member.name: member
    for member in (
        EnsembleMember("GP", "rbf", 0.0),
        EnsembleMember("GP with this noise", "rbf", 1.0),
        EnsembleMember("rough GP with this noise", "rough", 1.0),
        EnsembleMember("straight line", "linear", 0.0),
        EnsembleMember(TRIVIAL, "constant", 0.0),
        EnsembleMember("GP with uncertain hyperparameters", MARGINAL, 0.0),
        EnsembleMember("GP of the nearest rows", NEAREST, 1.0),
        EnsembleMember("GP of the nearest rows with evener noise", NEAREST, 0.5, retired=True),
        EnsembleMember("GP of the nearest rows, of another choice", NEAREST, 1.0, retired=True),
        EnsembleMember(TREES, TREES, 0.0),
    )
}
QUICKEST = ("linear", "constant", TREES)  # shapes that are fitted first, without a deadline


def fit_members(
    fold: Fold,
    rows: Rows,
    models: Iterable[GPz],
    members: Iterable[EnsembleMember],
    theta: Mapping[str, Any],
    quick: bool,
    deadline: Deadline = NEVER,
    contrasts: Float[np.ndarray, "k d"] | None = None,
) -> dict[str, Model]:
    """Fit members to rows while time lasts.

    Args:
        fold: Fold that fills missing values.
        rows: Training rows.
        models: GPz models that give the noise.
        members: Members to fit.
        theta: Hyperparameters of members by name; other members fit them.
        quick: Whether fewer rows choose hyperparameters; also done if the time left is too short
            for `LONG`.
        deadline: Deadline of all but the quickest.
        contrasts: Combinations of inputs (`Features.contrasts`).
    """

    X = fold.filled(rows.X[:MAX_ROWS])
    noise = torch.stack([m.predict(X).noise_variance for m in models]).mean(0).cpu().numpy()
    x, y = X.cpu().numpy(), rows.y[:MAX_ROWS].cpu().numpy()
    ordered = sorted(members, key=EnsembleMember.order)
    fitted, n_quickest = dict[str, Model](), sum(m.shape in QUICKEST for m in ordered)
    for member in deadline.units(ordered, "members of the average", minimum=n_quickest):
        short = quick or deadline.left < LONG.seconds
        known = theta.get(member.name)
        fitted[member.name] = member.fit(x, y, noise, known, short, contrasts)
    return fitted
