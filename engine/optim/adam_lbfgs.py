"""Adam first, then L-BFGS to the end.

Adam's steps know no scale: where a bound is thousands of times steeper along what all rows share
than along what is a row's own, it finds the region, and L-BFGS then its lowest point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float
from scant.optim.lbfgs import LBFGS
from scant.optim.state import from_tensors, to_tensors, with_prefix
from torch import Tensor, nn

RATE = 0.03


class AdamLBFGS:
    """A run of steps that can be kept and taken up again.

        training = AdamLBFGS(model.parameters(), model.objective, 300)
        while not training.stalled:
            value = training.step()

    Args:
        parameters: All on one device and of one dtype; those that need no gradient stay.
        objective: Computes the value to be minimized at the parameters' present values.
        adam: Steps of Adam, an evaluation each, before those of L-BFGS; None has all be Adam's, as
            an objective that is drawn anew at every step must.
        rate: Adam's.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        objective: Callable[[], Float[Tensor, ""]],
        adam: int | None,
        rate: float = RATE,
    ) -> None:
        learned = [p for p in parameters if p.requires_grad]
        self.objective = objective
        self.adam = math.inf if adam is None else adam
        self.steps = 0
        self._first = torch.optim.Adam(learned, lr=rate, fused=True)
        self._then = LBFGS(learned, objective)

    @property
    def stalled(self) -> bool:
        """Whether no step finds a lower point."""
        return self.steps >= self.adam and self._then.stalled

    def step(self) -> float:
        """One more step, and the objective: where Adam set out from, or where L-BFGS arrived.

        Adam takes no step where the objective is not finite, and gives NaN; L-BFGS, which turns
        back from such places, goes on from there.
        """
        self.steps += 1
        if self.steps > self.adam:
            return self._then.step()
        self._first.zero_grad()
        with torch.enable_grad():
            value = self.objective()
        if not bool(torch.isfinite(value)):
            if self.adam < math.inf:
                self.steps = int(self.adam)
            return math.nan
        value.backward()  # type: ignore[no-untyped-call]
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
