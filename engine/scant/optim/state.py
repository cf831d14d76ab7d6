"""Serialization of the state of PyTorch optimizers as named tensors, for identical resumption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer, SparseAdam

_PREFIX = "optimiser"  # name in checkpoints since 0.1.0


def with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Select tensors with the prefix, and remove it from their names."""
    return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}


def to_tensors(optimizers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """Copy the state by index of the optimizer and of the parameter."""
    return {
        f"{slot}.{name}": torch.as_tensor(value).clone()
        for slot, optimizer, parameter in _slots(optimizers)
        for name, value in optimizer.state.get(parameter, {}).items()
    }


def from_tensors(optimizers: Sequence[Optimizer], tensors: dict[str, Tensor]) -> None:
    """Load the result of `to_tensors` for the same optimizers; other tensors are ignored."""
    for slot, optimizer, parameter in _slots(optimizers):
        device = parameter.device
        # Fused optimizers have their step counter on the device of the parameter.
        step_device = device if optimizer.defaults.get("fused") else torch.device("cpu")
        state: dict[str, Any] = {
            key: value.clone().to(step_device if key == "step" else device)
            for key, value in with_prefix(tensors, f"{slot}.").items()
        }
        if state and isinstance(optimizer, SparseAdam):
            state["step"] = int(
                state["step"]
            )  # as in SparseAdam; powers of a tensor would be rounded
        if state:
            optimizer.state[parameter] = state


class Resumable:
    """Base class of trainers with a step counter and a generator, for identical resumption."""

    steps: int
    generator: torch.Generator
    optimizers: list[Optimizer]

    @property
    def stalled(self) -> bool:
        """False, since stochastic gradient steps cannot detect convergence."""
        return False

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state except that of the model."""
        return {
            "steps": torch.tensor(self.steps),
            "generator": self.generator.get_state(),
            **to_tensors(self.optimizers),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Load the state; that of the model must be loaded before."""
        self.steps = int(state["steps"])
        self.generator.set_state(state["generator"].cpu())
        from_tensors(self.optimizers, state)


def _slots(optimizers: Sequence[Optimizer]) -> Iterator[tuple[str, Optimizer, nn.Parameter]]:
    for i, optimizer in enumerate(optimizers):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for j, parameter in enumerate(parameters):
            yield f"{_PREFIX}.{i}.{j}", optimizer, parameter
