"""Priors on parameters, as GPyTorch's `register_prior` puts them on any module of a model."""

from __future__ import annotations

import gpytorch
from torch import Tensor


def log_hyperprior(model: gpytorch.Module) -> Tensor | float:
    """The sum of ln p over all priors of a model and its parts, in nats; 0 where there are none.

    Every family's objective has it, as GPyTorch's own have: `elbo`, and `LogEvidence` of GPz.
    """
    return sum(
        (prior.log_prob(value(part)).sum() for _, part, prior, value, _ in model.named_priors()),
        start=0.0,
    )
