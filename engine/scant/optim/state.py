"""The state of torch's optimizers as named tensors, for bitwise resume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer, SparseAdam

_PREFIX = "optimiser"  # as in the checkpoints of 0.1.0


def with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin with the prefix, by what follows it."""
    return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}


def to_tensors(optimizers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """Copies of their state, by place of the optimizer and of the parameter in it."""
    return {
        f"{slot}.{name}": torch.as_tensor(value).clone()
        for slot, optimizer, parameter in _slots(optimizers)
        for name, value in optimizer.state.get(parameter, {}).items()
    }


def from_tensors(optimizers: Sequence[Optimizer], tensors: dict[str, Tensor]) -> None:
    """Go on from what `to_tensors` gave of the same optimizers; other tensors are left alone."""
    for slot, optimizer, parameter in _slots(optimizers):
        there = parameter.device
        # As torch keeps it: a fused optimizer counts its steps where the parameter is.
        counted = there if optimizer.defaults.get("fused") else torch.device("cpu")
        kept: dict[str, Any] = {
            key: value.clone().to(counted if key == "step" else there)
            for key, value in with_prefix(tensors, f"{slot}.").items()
        }
        if kept and isinstance(optimizer, SparseAdam):
            kept["step"] = int(kept["step"])  # as it counts; a tensor would round its powers
        if kept:
            optimizer.state[parameter] = kept


class Resumable:
    """A trainer that counts its steps, draws from one generator, and goes on bit by bit."""

    steps: int
    generator: torch.Generator
    optimizers: list[Optimizer]

    @property
    def stalled(self) -> bool:
        """Gradient steps do not tell."""
        return False

    def state_dict(self) -> dict[str, Tensor]:
        """All that a bitwise resume needs besides the model's `state_dict`."""
        return {
            "steps": torch.tensor(self.steps),
            "generator": self.generator.get_state(),
            **to_tensors(self.optimizers),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state_dict` gave, the model's own state being loaded already."""
        self.steps = int(state["steps"])
        self.generator.set_state(state["generator"].cpu())
        from_tensors(self.optimizers, state)


def _slots(optimizers: Sequence[Optimizer]) -> Iterator[tuple[str, Optimizer, nn.Parameter]]:
    for i, optimizer in enumerate(optimizers):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for j, parameter in enumerate(parameters):
            yield f"{_PREFIX}.{i}.{j}", optimizer, parameter
