"""The loop that trains a model without events, and the stopping rule of every training loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scant.optim.trainer import Trainer


@dataclass
class Convergence:
    """Stopping rule: the score has not gained more than a tolerance in so many steps.

    Small gains accumulate, since the anchor moves only with a gain above the tolerance.
    """

    anchor: float = -math.inf  # score of the last gain
    since_best: int = 0  # steps since then

    def gains(self, score: float, tolerance: float) -> bool:
        """Count a step; return True if its score exceeds the anchor by more than the tolerance."""
        self.since_best += 1
        if not score > self.anchor + tolerance:
            return False
        self.anchor, self.since_best = score, 0
        return True

    def reached(self, patience: int) -> bool:
        """Return True after `patience` steps without a gain; with a patience of 0, never."""
        return 0 < patience <= self.since_best


def maximize(
    trainer: Trainer, steps: int, done: Callable[[float], bool] | None = None
) -> list[float]:
    """Train until `steps` are taken, the trainer stalls, or the ELBO is not finite.

    Args:
        trainer: Trainer of a model.
        steps: Maximum number of steps.
        done: Called with the ELBO after each step; returns True to end.

    Returns:
        The ELBO of each step in nats; one that is not finite is left out.
    """
    values: list[float] = []
    while len(values) < steps and not trainer.stalled:
        value = trainer.step()
        if not math.isfinite(value):
            break
        values.append(value)
        if done is not None and done(value):
            break
    return values
