"""Training of DFGP: Adam, then L-BFGS until convergence; Adam only for the stochastic bound.

The published bound has no maximum: without the entropy of the point mass, hidden values and output
lengthscales shrink without limit. Training stops when steps stall, about where the publication's
hundred steps end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scant.errors import BadInput
from scant.models.dfgp.model import DFGP
from scant.optim.adam_lbfgs import RATE, AdamLBFGS


class DFGPTrainer(AdamLBFGS):
    """Optimizer of a `DFGP` on its training rows.

        trainer = DFGPTrainer(model)
        while not trainer.stalled:
            elbo = trainer.step()       # in nats

    Args:
        model: The model, trained in place.
        adam: Number of Adam steps before L-BFGS; the stochastic bound uses Adam throughout.
        rate: Learning rate of Adam.
        batch: Minibatch size for the stochastic bound; None uses all rows.
        generator: A CPU generator for the stochastic bound; by default one with seed 0.
        horizon: Number of steps over which Adam's rate decays to a hundredth; None keeps it.

    Raises:
        BadInput: A batch size below one, or a batch size with a closed bound.
    """

    def __init__(
        self,
        model: DFGP,
        adam: int = 50,
        rate: float = RATE,
        batch: int | None = None,
        generator: torch.Generator | None = None,
        horizon: int | None = None,
    ) -> None:
        stochastic = model.kind == "stochastic"
        if batch is not None and (batch < 1 or not stochastic):
            raise BadInput(f"Batches are of a row at least, with the stochastic bound: {batch}.")
        self.generator = torch.Generator().manual_seed(0) if generator is None else generator
        super().__init__(
            model,
            lambda: model.elbo(self.generator, batch),
            len(model.y),
            None if stochastic else adam,
            rate,
            horizon,
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Optimizer and generator state as tensors, without the model's state."""
        return {**super().state_dict(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore the state of `state_dict`; load the model's state separately."""
        super().load_state_dict(state)
        self.generator.set_state(state["generator"].cpu())
