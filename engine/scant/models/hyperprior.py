"""Log density of priors added with GPyTorch's `register_prior`."""

from __future__ import annotations

import gpytorch
from torch import Tensor


def log_hyperprior(model: gpytorch.Module) -> Tensor | float:
    """Sum of ln p over all priors registered on a model and its submodules, in nats; 0 if none.

    It is part of every objective: `elbo` of the models, and `LogEvidence` of GPz.
    """
    return sum(
        (prior.log_prob(value(part)).sum() for _, part, prior, value, _ in model.named_priors()),
        start=0.0,
    )
