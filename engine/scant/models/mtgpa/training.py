"""Training of MTGPA step by step: joint Adam, natural gradients, or variational EM; minibatches."""

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
    """Optimizer steps on a model and its data.

    Args:
        model: Trained in place. One built with `natural=True` goes with the scheme `"natural"`.
        data: All observations.
        generator: A CPU generator that draws the minibatches.
        scheme: `"adam"`: q(u) and all else together. `"natural"`: a natural-gradient step for
            q(u), and Adam for the rest. `"em"`: `block` steps on q(u) alone, then as many on the
            rest, by Adam, and so on (section 5.1.3).
        rate: Adam's step. Where noise is low, lengthscales that move by it upset the bound; let it
            shrink then.
        halving: Steps in which Adam's rate halves, smoothly; None keeps it.
        natural_rate: Of the natural gradient. 1 ends at the best q(u) at once where all rows are
            taken, likelihoods are Gaussian and there is one latent function; several are moved at
            the same time, and want a third of that.
        batch: Rows of each task in a step, drawn without replacement and weighted by the task's
            number of rows over theirs; None takes all rows.
        block: Steps of a phase of variational EM.

    Raises:
        BadInput: An unknown scheme, or one that does not fit the model; a batch below one.
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
        self.notes: list[str] = []  # of the numerics, each once
        self.rows = [(data.task == d).nonzero().squeeze(1) for d in range(len(model.likelihoods))]
        q = model.variational_parameters()
        self.others = model.hyperparameters()
        groups = {"adam": [q + self.others], "natural": [self.others], "em": [q, self.others]}
        self.optimizers = [
            torch.optim.Adam(group, lr=rate, fused=True) for group in groups[scheme] if group
        ]

    def step(self) -> float:
        """One step; the bound before it, in nats (an unbiased estimate where there are batches).

        NaN where a matrix can no longer be factorized; no step is taken then.
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
        for optimizer in self._turn():
            for group in optimizer.param_groups:
                group["lr"] = self.rate * 0.5 ** (self.steps / (self.halving or math.inf))
            optimizer.step()
        self.steps += 1
        return bound.item()

    def _turn(self) -> list[torch.optim.Optimizer]:
        """The optimizers of this step: in variational EM one of them, in blocks of steps."""
        if self.scheme != "em":
            return self.optimizers
        return [self.optimizers[self.steps // self.block % len(self.optimizers)]]

    def draw(self) -> tuple[Data, Float[Tensor, " b"] | None]:
        """The rows of a step and how many rows each stands for."""
        if self.batch is None:
            return self.data, None
        chosen, weights = [], []
        for rows in self.rows:
            size = min(self.batch, len(rows))
            pick = torch.randperm(len(rows), generator=self.generator)[:size]
            chosen.append(rows[pick.to(rows.device)])
            weights.append(self.data.y.new_full((size,), len(rows) / max(size, 1)))
        return self.data.at(torch.cat(chosen)), torch.cat(weights)
