"""The one interface of training: a study drives every model by it (`scant.studies.trained`)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Trainer(Protocol):
    """Steps on a model and its data, which can be kept and taken up again bit by bit.

    The objective of every model is called its ELBO: a lower bound on the log evidence, the log
    evidence itself where it has a closed form, or the log posterior density. It is in nats of the
    targets as given, summed over all rows of the data set, and greater is better. A minibatch
    gives an unbiased estimate of it.
    """

    steps: int  # taken so far

    @property
    def notes(self) -> list[str]:
        """Warnings of the numerics, each once."""

    @property
    def stalled(self) -> bool:
        """Whether no step finds a greater ELBO any more."""

    def step(self) -> float:
        """One step; the ELBO where L-BFGS arrived, or where a gradient step set out from.

        NaN where it is not finite; no gradient step is taken then.
        """

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next step depends on besides the model's own state."""

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from `state_dict`; the model's own state is loaded besides."""
