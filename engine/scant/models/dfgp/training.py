"""Training of DFGP: Adam, then L-BFGS to the end; of the stochastic bound Adam alone.

The published bound has no maximum to be found: a spike's entropy is left out, so that hidden values
shrink, and the output's lengthscales with them, as long as one lets them. Steps that come to rest
end it where the publication's hundred do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scant.errors import BadInput
from scant.models.dfgp.model import DFGP
from scant.optim.adam_lbfgs import RATE, AdamLBFGS


class DFGPTrainer(AdamLBFGS):
    """Steps on a model and the rows it was built on.

        trainer = DFGPTrainer(model)
        while not trainer.stalled:
            elbo = trainer.step()       # in nats

    Args:
        model: Trained in place.
        adam: Steps of Adam, an evaluation each, before those of L-BFGS; of the stochastic bound
            all steps are Adam's.
        rate: Adam's.
        batch: Rows of a step with the stochastic bound; None takes all.
        generator: A CPU generator that draws what the stochastic bound needs; seeded with 0
            without.
        horizon: Steps in which Adam's rate falls to a hundredth; None keeps it.

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
        horizon: int | None = None,
    ) -> None:
        drawn = model.kind == "stochastic"
        if batch is not None and (batch < 1 or not drawn):
            raise BadInput(f"Batches are of a row at least, with the stochastic bound: {batch}.")
        self.generator = torch.Generator().manual_seed(0) if generator is None else generator
        super().__init__(
            model,
            lambda: model.elbo(self.generator, batch),
            len(model.y),
            None if drawn else adam,
            rate,
            horizon,
        )

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next step depends on besides the model's state, as tensors."""
        return {**super().state_dict(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take up another run; load the model's state besides."""
        super().load_state_dict(state)
        self.generator.set_state(state["generator"].cpu())
