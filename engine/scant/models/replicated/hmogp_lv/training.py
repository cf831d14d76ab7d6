"""Training of HMOGP-LV: L-BFGS with the optimal q(U), natural gradients, or Adam."""

from __future__ import annotations

import math

import torch
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from scant.errors import BadInput
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.replicated.data import Data
from scant.models.replicated.hmogp_lv.bound import Statistics
from scant.models.replicated.hmogp_lv.layout import ReplicaBatch
from scant.models.replicated.hmogp_lv.model import HMOGPLV
from scant.models.replicated.hmogp_lv.posterior import Dense
from scant.optim.lbfgs import LBFGS
from scant.optim.state import Resumable

SCHEMES = ("lbfgs", "natural", "adam")


class HMOGPLVTrainer(Resumable):
    """Optimizer of a model on its data.

    Args:
        model: The model, trained in place. `"lbfgs"` needs a dense q(U), the other schemes a
            Kronecker covariance (`build(..., dense=scheme == "lbfgs")`).
        data: All rows, standardized.
        generator: A CPU generator for the minibatches.
        scheme: `"lbfgs"`: q(U) in closed form and L-BFGS for the rest. `"natural"`: natural
            gradients for q(U) and Adam for the rest. `"adam"`: Adam for all, as published.
        rate: Learning rate of Adam.
        natural_rate: Step size of the natural gradient; use smaller values for small batches.
        batch: Number of outputs in a step, without replacement; 0 uses all.

    Raises:
        BadInput: The scheme is unknown or does not fit the model, or the batch size is negative.
    """

    def __init__(
        self,
        model: HMOGPLV,
        data: Data,
        generator: torch.Generator,
        scheme: str = "lbfgs",
        rate: float = 0.03,
        natural_rate: float = 0.3,
        batch: int = 0,
    ) -> None:
        if scheme not in SCHEMES:
            raise BadInput(f"Scheme {scheme!r} is unknown; use one of {SCHEMES}.")
        dense = isinstance(model.posterior, Dense)
        if dense != (scheme == "lbfgs"):
            kind = "of any covariance" if dense else "with Kronecker covariance"
            raise BadInput(f"Scheme {scheme!r} does not go with a q(U) {kind}.")
        if batch < 0 or (batch and dense):
            raise BadInput(f"L-BFGS takes all outputs and others a batch above zero, got {batch}.")
        self.model, self.generator, self.scheme = model, generator, scheme
        self.layout = ReplicaBatch.of(model.preprocess(data))
        D = len(self.layout.outputs)
        self.batch = batch if 0 < batch < D else D
        self.natural_rate = natural_rate
        self.steps = 0
        self.notes: list[str] = []  # numerical warnings, each once
        self.inner: LBFGS | None = None
        self._last: tuple[Tensor, Statistics] | None = None  # parameters and their statistics
        self.optimizers = []  # one, or none with L-BFGS
        own = {id(p) for p in model.posterior.parameters()} if scheme == "natural" else set()
        parameters = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
        if dense:
            self.inner = LBFGS(parameters, self._objective)
        else:
            self.optimizers = [torch.optim.Adam(parameters, lr=rate)]

    @property
    def stalled(self) -> bool:
        """True once L-BFGS finds no better point."""
        return self.inner is not None and self.inner.stalled

    def step(self) -> float:
        """Take one step and return the bound in nats: after the step for L-BFGS, else before it.

        Return NaN without a step if a factorization fails.
        """
        with collect_numerical_warnings(self.notes):
            value = self._lbfgs_step() if self.inner else self._gradient_step()
        self.steps += 1
        return value

    def _objective(self) -> Tensor:
        statistics = self.model.statistics(self.layout)
        self._last = self._vector(), statistics.detach()
        return self.model.best_bound(statistics, self.layout).neg()

    def _lbfgs_step(self) -> float:
        """L-BFGS step that sets the optimal q(U), usually from the last evaluated statistics."""
        assert self.inner is not None
        value = self.inner.step()
        if not math.isfinite(value):
            return value
        if self._last is not None and torch.equal(self._last[0], self._vector()):
            self.model.posterior.condition(self._last[1])
        else:
            with torch.no_grad():
                self.model.posterior.condition(self.model.statistics(self.layout))
        return -value

    def _vector(self) -> Tensor:
        assert self.inner is not None
        return parameters_to_vector([p.detach() for p in self.inner.parameters])

    def _gradient_step(self) -> float:
        layout, weight = self._draw()
        self.model.zero_grad()
        try:
            statistics = self.model.statistics(layout, weight)
            bound = self.model.bound(statistics, layout)
        except (NanError, NotPSDError, torch.linalg.LinAlgError):
            return math.nan
        (-bound).backward()
        if self.scheme == "natural":
            self.model.posterior.natural_step(statistics.detach(), self.natural_rate)
        for adam in self.optimizers:
            adam.step()
        return bound.item()

    def _draw(self) -> tuple[ReplicaBatch, float]:
        """Sample the outputs of a step, with their weight."""
        D = len(self.layout.outputs)
        if self.batch == D:
            return self.layout, 1.0
        pick = torch.randperm(D, generator=self.generator)[: self.batch]
        return self.layout.at(pick.to(self.layout.outputs.device)), D / self.batch

    def state_dict(self) -> dict[str, Tensor]:
        """State for a bitwise resume, without the model's `state_dict`."""
        return super().state_dict() | (self.inner.state_dict() if self.inner else {})

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore the state of `state_dict`, after the model's own state."""
        super().load_state_dict(state)
        if self.inner:
            self.inner.load_state_dict(state)
