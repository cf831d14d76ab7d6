"""More than two classes: one binary classifier each, against the rest, probabilities normalized.

    p(c | x) = p_c(x) / sum_d p_d(x)

p_c is the probability that `LaplaceGPC` gives class c against all others. Each class has its own
kernel. Laplace's approximation of the softmax model (GPML, algorithm 3.3) has one kernel for all.
Compared on five splits each, log loss of held-out rows of one against the rest with a linear part,
and of the softmax model: balance scale (150 rows) 0.35 and 0.28, wine (40) 0.36 and 0.41, six
digits (80) 0.62 and 0.69.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.models.laplace.classifier import LaplaceGPC, Prior


class OneVsRest:
    """See the module; made by `build`.

    Attributes:
        models: One of each class.
        label: Classes of the rows learned from, 0 ... k - 1.
    """

    def __init__(self, models: Sequence[LaplaceGPC], label: Int[Tensor, " n"]) -> None:
        self.models, self.label = list(models), label

    @classmethod
    def build(
        cls,
        x: Float[Tensor, "n d"],
        label: Int[Tensor, " n"],
        classes: int,
        link: str = "logistic",
        ard: bool = False,
        prior: Prior | None = None,
        linear: bool = False,
    ) -> OneVsRest:
        """A model of labeled rows; of a class without a row, all rows are others.

        Args:
            x: Inputs, standardized, none missing.
            label: Classes, 0 ... classes - 1.
            classes: How many there are.
            link: As of `LaplaceGPC.build`.
            ard: As of `LaplaceGPC.build`.
            prior: As of `LaplaceGPC.build`.
            linear: As of `LaplaceGPC.build`.

        Raises:
            BadInput: As `LaplaceGPC.build`.
        """
        own = (_against(label, c) for c in range(classes))
        return cls([LaplaceGPC.build(x, y, link, ard, prior, linear=linear) for y in own], label)

    @property
    def link_name(self) -> str:
        return self.models[0].link_name

    @property
    def x(self) -> Float[Tensor, "n d"]:
        return self.models[0].x

    def fit(self, steps: int = 100, tolerance: float = 1e-5) -> Float[Tensor, ""]:
        """The sum of the evidences (nats), after each was raised."""
        return torch.stack([one.fit(steps, tolerance) for one in self.models]).sum()

    def again(self, x: Float[Tensor, "n d"], label: Int[Tensor, " n"]) -> OneVsRest:
        """A model of other rows, which begins where this one stands."""
        own = (one.again(x, _against(label, c)) for c, one in enumerate(self.models))
        return OneVsRest(list(own), label)

    def latent(self, x: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
        """Mean and variance of each class's latent function."""
        mean, variance = zip(*(one.latent(x) for one in self.models))
        return torch.stack(mean, 1), torch.stack(variance, 1)

    def probabilities(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n k"]:
        """p(c | x)."""
        each = torch.stack([one.probability(x) for one in self.models], 1)
        return each / each.sum(1, keepdim=True).clamp(min=1e-300)


Classifier = LaplaceGPC | OneVsRest


def built(
    x: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    classes: int,
    link: str = "logistic",
    ard: bool = False,
    prior: Prior | None = None,
    linear: bool = False,
) -> Classifier:
    """The classifier for so many classes: of two, one latent function says which."""
    if classes == 2:
        return LaplaceGPC.build(x, label, link, ard, prior, linear=linear)
    return OneVsRest.build(x, label, classes, link, ard, prior, linear)


def parts_of(model: Classifier) -> list[LaplaceGPC]:
    """The binary models of a classifier."""
    return model.models if isinstance(model, OneVsRest) else [model]


def labels_of(model: Classifier) -> Int[Tensor, " n"]:
    """Classes of the rows that a classifier has learned from."""
    return model.label if isinstance(model, OneVsRest) else (model.y > 0).long()


def probabilities(model: Classifier, x: Float[Tensor, "n d"]) -> Float[Tensor, "n k"]:
    """p(c | x) of each class."""
    if isinstance(model, OneVsRest):
        return model.probabilities(x)
    p = model.probability(x)
    return torch.stack([1 - p, p], 1)


def _against(label: Int[Tensor, " n"], c: int) -> Int[Tensor, " n"]:
    return (label == c).to(label)
