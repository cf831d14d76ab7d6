"""An objective and its gradient as a step, and that step as a CUDA graph.

A graph holds one pass over the device, so it takes objectives of fixed shapes that ask the device
for nothing on the way; those that do are refused by CUDA, and the table says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, cuda, nn

from scant.bench.timing import Step
from scant.models.mtgpa.training import MTGPATrainer
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from scant.optim.adam_lbfgs import AdamLBFGS

WARM_UP = 3  # passes before the capture, as PyTorch asks


class Gradient:
    """The value of an objective and its gradient, as a step.

    Args:
        parameters: That the gradient is by.
        objective: Gives the value, at fixed rows.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], objective: Callable[[], Tensor]) -> None:
        self.parameters, self.objective = list(parameters), objective

    def __call__(self) -> Tensor:
        """The value."""
        for parameter in self.parameters:
            parameter.grad = None
        value = self.objective()
        value.backward()  # type: ignore[no-untyped-call]
        return value.detach()

    def graph(self) -> Step:
        """Captured once; each call of the result computes all of it anew.

        Raises:
            RuntimeError: The objective waits for the device, which a graph cannot.
        """
        beside = cuda.Stream()
        beside.wait_stream(cuda.current_stream())
        with cuda.stream(beside):
            for _ in range(WARM_UP):
                self()
        cuda.current_stream().wait_stream(beside)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            self()
        return graph.replay


def gradient_in(step: Any) -> Gradient | None:
    """The objective and gradient that a step is made of; None where its rows are drawn anew."""
    if isinstance(step, Gradient):
        return step
    trainer = getattr(step, "__self__", None)
    if isinstance(trainer, AdamLBFGS):
        return Gradient(trainer.model.parameters(), trainer.elbo)
    if isinstance(trainer, MTGPATrainer) and trainer.batch is None:
        model, data = trainer.model, trainer.data
        return Gradient(model.parameters(), lambda: model.elbo(data))
    if isinstance(trainer, HMOGPLVTrainer) and trainer.inner is not None:
        return Gradient(trainer.model.parameters(), trainer.model.elbo)
    return None
