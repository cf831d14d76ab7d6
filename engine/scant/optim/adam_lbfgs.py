"""Adam first, then L-BFGS to the end.

Adam's steps know no scale: where a bound is thousands of times steeper along what all rows share
than along what is a row's own, it finds the region, and L-BFGS then its highest point.
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
LAST = 0.01  # of the rate, to which a falling one comes


def cosine_decay(step: int, horizon: int | None) -> float:
    """What is left of a rate at a step, along a cosine to a hundredth (Loshchilov and Hutter 2017).

    Args:
        step: From 0.
        horizon: The step from which on it stays; None: the rate never falls.
    """
    if horizon is None:
        return 1.0
    done = min(step / max(horizon, 1), 1.0)
    return LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * done))


class AdamLBFGS:
    """A `scant.optim.trainer.Trainer` of any model that needs nothing but its ELBO's gradient.

    Args:
        model: Trained in place: its parameters that need a gradient, of one device and dtype.
        elbo: Computes the ELBO in nats at the parameters' present values.
        rows: Steps are taken on the ELBO of a row, that is, divided by this.
        adam: Steps of Adam, an evaluation each, before those of L-BFGS; None has all be Adam's, as
            an ELBO that is drawn anew at every step must.
        rate: Adam's.
        horizon: Steps in which Adam's rate falls to a hundredth; None keeps it.
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
        """Warnings of the model's numerics, each once."""
        return list(getattr(self.model, "notes", ()))

    @property
    def stalled(self) -> bool:
        """Whether no step finds a higher point."""
        return self.steps >= self.adam and self._then.stalled

    def step(self) -> float:
        """One more step, and the ELBO: where Adam set out from, or where L-BFGS arrived.

        Adam takes no step where the ELBO is not finite, and gives NaN; L-BFGS, which turns back
        from such places, goes on from there.
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
        """All that the next step depends on besides the model's state, as tensors."""
        later = {f"lbfgs.{k}": v for k, v in self._then.state_dict().items()}
        return {"steps": torch.tensor(self.steps), **to_tensors([self._first]), **later}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take up another run; load the model's state besides."""
        self.steps = int(state["steps"])
        from_tensors([self._first], state)
        self._then.load_state_dict(with_prefix(state, "lbfgs."))
