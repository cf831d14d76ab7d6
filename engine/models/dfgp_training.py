"""Training of DFGP: Adam, then L-BFGS to the end; of the stochastic bound Adam alone."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.errors import BadInput
from engine.models.dfgp import DFGP
from engine.models.lbfgs import LBFGS
from engine.models.optimiser_state import recall, remembered

RATE = 0.03


class Training:
    """A run of steps that can be kept and taken up again.

        training = Training(model)
        while not training.stalled:
            value = training.step()       # minus the bound of a row, in nats

    Args:
        model: Trained in place.
        adam: Steps of Adam, an evaluation each, before those of L-BFGS; of the stochastic bound
            all steps are Adam's.
        rate: Adam's.
        batch: Rows of a step with the stochastic bound; None takes all.
        generator: A CPU generator that draws what the stochastic bound needs; seeded with 0
            without.

    Raises:
        BadInput: A batch below one, or one with a closed bound.
    """

    def __init__(
        self,
        model: DFGP,
        adam: int = 50,
        rate: float = RATE,
        batch: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.drawn = model.kind == "stochastic"
        if batch is not None and (batch < 1 or not self.drawn):
            raise BadInput(f"Batches are of a row at least, with the stochastic bound: {batch}.")
        self.model, self.adam, self.batch = model, adam, batch
        self.generator = torch.Generator().manual_seed(0) if generator is None else generator
        self.steps = 0
        learned = [p for p in model.parameters() if p.requires_grad]
        self._first = torch.optim.Adam(learned, lr=rate, fused=True)
        self._then = LBFGS(learned, model.objective)

    @property
    def stalled(self) -> bool:
        """Whether no step finds a lower point."""
        return not self.drawn and self.steps >= self.adam and self._then.stalled

    def step(self) -> float:
        """One more step, and the objective: where Adam set out from, or where L-BFGS arrived.

        Adam takes no step where the objective is not finite, and gives NaN.
        """
        self.steps += 1
        if self.steps > self.adam and not self.drawn:
            return self._then.step()
        self._first.zero_grad()
        with torch.enable_grad():
            value = self.model.objective(self.generator, self.batch)
        if not bool(torch.isfinite(value)):
            if not self.drawn:
                self.steps = self.adam  # L-BFGS turns back where Adam cannot
            return float("nan")
        value.backward()  # type: ignore[no-untyped-call]
        self._first.step()
        return value.item()

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next step depends on besides the model's state, as tensors."""
        later = {f"lbfgs.{k}": v for k, v in self._then.state_dict().items()}
        own = {"steps": torch.tensor(self.steps), "generator": self.generator.get_state()}
        return {**own, **remembered([self._first]), **later}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take up another run; load the model's state besides."""
        self.steps = int(state["steps"])
        self.generator.set_state(state["generator"].cpu())
        recall([self._first], state)
        later = {k.removeprefix("lbfgs."): v for k, v in state.items() if k.startswith("lbfgs.")}
        self._then.load_state_dict(later)
