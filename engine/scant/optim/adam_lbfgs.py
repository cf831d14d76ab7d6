"""Optimization by Adam followed by L-BFGS.

Adam is invariant to the scale of gradients. If a bound is much steeper in global parameters than in
those of single rows, it finds the region of a maximum, and L-BFGS then the maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scant.optim.lbfgs import LBFGS
from scant.optim.state import from_tensors, to_tensors, with_prefix

RATE = 0.03
LAST = 0.01  # final fraction of a decaying learning rate


def cosine_decay(step: int, horizon: int | None) -> float:
    """Return the factor of a learning rate with cosine decay (Loshchilov and Hutter 2017).

    Args:
        step: Step from 0.
        horizon: Step from which the factor is constant at `LAST`; None for no decay.
    """
    if horizon is None:
        return 1.0
    fraction = min(step / max(horizon, 1), 1.0)
    return LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * fraction))


class AdamLBFGS:
    """A `scant.optim.trainer.Trainer` that uses only the gradient of the ELBO.

    Args:
        model: Model to train in place; parameters must have the same device and dtype.
        elbo: Function that computes the ELBO in nats.
        rows: Number of rows, by which the ELBO is divided.
        adam: Number of Adam steps before L-BFGS; None for only Adam, which stochastic ELBOs
            require.
        rate: Learning rate of Adam.
        horizon: Number of steps of the cosine decay of the learning rate; None for no decay.
    """

    def __init__(
        self,
        model: Any,
        elbo: Callable[[], Float[Tensor, ""]],
        rows: int,
        adam: int | None,
        rate: float = RATE,
        horizon: int | None = None,
    ) -> None:
        learned = [p for p in model.parameters() if p.requires_grad]
        self.model, self.elbo, self.rows = model, elbo, rows
        self.adam = math.inf if adam is None else adam
        self.rate, self.horizon = rate, horizon
        self.steps = 0
        self._first = torch.optim.Adam(learned, lr=rate, fused=True)
        self._then = LBFGS(learned, lambda: -elbo(), scale=rows)

    @property
    def notes(self) -> list[str]:
        """Numerical warnings of the model, without duplicates."""
        return list(getattr(self.model, "notes", ()))

    @property
    def stalled(self) -> bool:
        """True if L-BFGS finds no higher value."""
        return self.steps >= self.adam and self._then.stalled

    def step(self) -> float:
        """Take a step and return the ELBO, before a step of Adam or after one of L-BFGS.

        If the ELBO is not finite, Adam takes no step and returns NaN, and L-BFGS continues, since
        its line search can return from such points.
        """
        self.steps += 1
        if self.steps > self.adam:
            return -self._then.step()
        for group in self._first.param_groups:
            group["lr"] = self.rate * cosine_decay(self.steps - 1, self.horizon)
        self._first.zero_grad()
        with torch.enable_grad():
            value = self.elbo()
            loss = -value / self.rows
        if not bool(torch.isfinite(value)):
            if self.adam < math.inf:
                self.steps = int(self.adam)
            return math.nan
        loss.backward()  # type: ignore[no-untyped-call]
        self._first.step()
        return value.item()

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state except that of the model as tensors."""
        later = {f"lbfgs.{k}": v for k, v in self._then.state_dict().items()}
        return {"steps": torch.tensor(self.steps), **to_tensors([self._first]), **later}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Load the state; that of the model must be loaded separately."""
        self.steps = int(state["steps"])
        from_tensors([self._first], state)
        self._then.load_state_dict(with_prefix(state, "lbfgs."))
