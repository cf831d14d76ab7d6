"""Steps that compute an objective and its gradient, also as CUDA graphs.

CUDA graphs require objectives of fixed shapes without synchronization with the device; others are
rejected by CUDA, which is noted in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, cuda, nn

from scant.bench.timing import Step
from scant.models.mtgpa.training import MTGPATrainer
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from scant.optim.adam_lbfgs import AdamLBFGS

WARM_UP = 3  # passes before the capture, as required by PyTorch


class Gradient:
    """Step that computes an objective and its gradient.

    Args:
        parameters: Parameters of the gradient.
        objective: Function that computes the value for fixed rows.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], objective: Callable[[], Tensor]) -> None:
        self.parameters, self.objective = list(parameters), objective

    def __call__(self) -> Tensor:
        """Compute the gradient and return the value."""
        for parameter in self.parameters:
            parameter.grad = None
        value = self.objective()
        value.backward()  # type: ignore[no-untyped-call]
        return value.detach()

    def graph(self) -> Step:
        """Capture the step as a CUDA graph and return a function that replays it.

        Raises:
            RuntimeError: The objective synchronizes with the device.
        """
        side_stream = cuda.Stream()
        side_stream.wait_stream(cuda.current_stream())
        with cuda.stream(side_stream):
            for _ in range(WARM_UP):
                self()
        cuda.current_stream().wait_stream(side_stream)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            self()
        return graph.replay


def gradient_in(step: Any) -> Gradient | None:
    """Return the objective and gradient of a step; None if its rows are resampled."""
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
