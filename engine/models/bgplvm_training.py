"""Training of BGPLVM and SCLVM on the whole bound: Adam first, then L-BFGS to the end.

The bound's slope is thousands of times steeper along the kernel's parameters, which all rows share,
than along a row's own position. L-BFGS from principal components follows it until lengthscales are
so long that the model is linear, and stays there; Adam's steps know no scale.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.models.bgplvm import BGPLVM
from engine.models.lbfgs import LBFGS
from engine.models.optimiser_state import recall, remembered

RATE = 0.03


class Training:
    """A run of steps that can be kept and taken up again.

        training = Training(model)
        while not training.stalled:
            value = training.step()       # minus the bound of a row, in nats

    Args:
        model: A `BGPLVM` or `SCLVM`.
        adam: Steps of Adam, an evaluation each, before those of L-BFGS.
    """

    def __init__(self, model: BGPLVM, adam: int = 300) -> None:
        self.model = model
        self.adam = adam
        self.steps = 0
        self._first = torch.optim.Adam(model.parameters(), lr=RATE)
        self._then = LBFGS(model.parameters(), model.objective)

    @property
    def stalled(self) -> bool:
        """Whether no step finds a lower point."""
        return self.steps >= self.adam and self._then.stalled

    def step(self) -> float:
        """One more step, and the objective: where Adam set out from, or where L-BFGS arrived.

        Adam takes no step where the objective is not finite, and gives NaN.
        """
        self.steps += 1
        if self.steps > self.adam:
            return self._then.step()
        self._first.zero_grad()
        with torch.enable_grad():
            value = self.model.objective()
        if not bool(torch.isfinite(value)):
            self.steps = self.adam  # L-BFGS turns back where Adam cannot
            return float("nan")
        value.backward()  # type: ignore[no-untyped-call]
        self._first.step()
        return value.item()

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next step depends on besides the model's state, as tensors."""
        later = {f"lbfgs.{k}": v for k, v in self._then.state_dict().items()}
        return {"steps": torch.tensor(self.steps), **remembered([self._first]), **later}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take up another run; load the model's state besides."""
        self.steps = int(state["steps"])
        recall([self._first], state)
        later = {k.removeprefix("lbfgs."): v for k, v in state.items() if k.startswith("lbfgs.")}
        self._then.load_state_dict(later)
