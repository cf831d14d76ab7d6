"""Training of MTGPA: Adam, natural gradients or variational EM, with minibatches."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from scant.errors import BadInput
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data
from scant.optim.state import Resumable

SCHEMES = ("adam", "natural", "em")


class MTGPATrainer(Resumable):
    """Optimizer of a model on its data.

    Args:
        model: The model, trained in place; the scheme `"natural"` needs `natural=True`.
        data: All observations.
        generator: A CPU generator for the minibatches.
        scheme: `"adam"`: all parameters jointly. `"natural"`: a natural gradient step for q(u) and
            Adam for the rest. `"em"`: alternating `block` Adam steps on q(u) and `block` on the
            rest (section 5.1.3).
        rate: Learning rate of Adam. With little noise the bound is sensitive to steps of the
            lengthscales; use `halving` then.
        natural_rate: Step size of the natural gradient. 1 reaches the optimal q(u) in one step for
            full batches, Gaussian likelihoods and one latent function; with several, which are
            updated simultaneously, use a third.
        batch: Rows of each task in a step, sampled without replacement and reweighted; None uses
            all rows.
        block: Steps per phase of variational EM.
        halving: Number of steps in which Adam's rate halves; None keeps it constant.

    Raises:
        BadInput: The scheme is unknown or does not fit the model, or the batch size is below one.
    """

    def __init__(
        self,
        model: MTGPA,
        data: Data,
        generator: torch.Generator,
        scheme: str = "adam",
        rate: float = 0.02,
        natural_rate: float = 0.1,
        batch: int | None = None,
        block: int = 20,
        halving: int | None = None,
    ) -> None:
        if scheme not in SCHEMES:
            raise BadInput(f"Scheme {scheme!r} is unknown; use one of {SCHEMES}.")
        if model.natural != (scheme == "natural"):
            raise BadInput(
                f"Scheme {scheme!r} does not go with a model built with natural={model.natural}."
            )
        if batch is not None and batch < 1:
            raise BadInput(f"A batch needs at least one row, got {batch}.")
        self.model, self.data, self.generator = model, data, generator
        self.scheme, self.batch, self.block = scheme, batch, block
        self.rate, self.halving, self.natural_rate = rate, halving, natural_rate
        self.steps = 0
        self.notes: list[str] = []  # numerical warnings, each once
        self.rows = [(data.task == d).nonzero().squeeze(1) for d in range(len(model.likelihoods))]
        q = model.variational_parameters()
        self.others = model.hyperparameters()
        groups = {"adam": [q + self.others], "natural": [self.others], "em": [q, self.others]}
        self.optimizers = [
            torch.optim.Adam(group, lr=rate, fused=True) for group in groups[scheme] if group
        ]

    def step(self) -> float:
        """Take one step and return the bound before it, in nats (an estimate for minibatches).

        Return NaN without a step if a factorization fails.
        """
        if not self.model.training:
            self.model.train()
        batch, weight = self.draw()
        self.model.zero_grad()
        with collect_numerical_warnings(self.notes):
            try:
                bound = self.model.elbo(batch, weight)
            except (NanError, NotPSDError):
                return math.nan
            (-bound).backward()
        if self.scheme == "natural":
            for latent in self.model.latents:
                latent.natural_step(self.natural_rate)
        for optimizer in self._active_optimizers():
            for group in optimizer.param_groups:
                group["lr"] = self.rate * 0.5 ** (self.steps / (self.halving or math.inf))
            optimizer.step()
        self.steps += 1
        return bound.item()

    def _active_optimizers(self) -> list[torch.optim.Optimizer]:
        """Optimizers of this step; variational EM alternates between them in blocks."""
        if self.scheme != "em":
            return self.optimizers
        return [self.optimizers[self.steps // self.block % len(self.optimizers)]]

    def draw(self) -> tuple[Data, Float[Tensor, " b"] | None]:
        """Sample the rows of a step, with their weights."""
        if self.batch is None:
            return self.data, None
        chosen, weights = [], []
        for rows in self.rows:
            size = min(self.batch, len(rows))
            pick = torch.randperm(len(rows), generator=self.generator)[:size]
            chosen.append(rows[pick.to(rows.device)])
            weights.append(self.data.y.new_full((size,), len(rows) / max(size, 1)))
        return self.data.at(torch.cat(chosen)), torch.cat(weights)
