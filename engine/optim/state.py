"""The state of torch's optimizers as named tensors, for bitwise resume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer, SparseAdam

_PREFIX = "optimiser"


def with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin with the prefix, by what follows it."""
    return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}


def to_tensors(optimisers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """Copies of their state, by place of the optimiser and of the parameter in it."""
    return {
        f"{slot}.{name}": torch.as_tensor(value).clone()
        for slot, optimiser, parameter in _slots(optimisers)
        for name, value in optimiser.state.get(parameter, {}).items()
    }


def from_tensors(optimisers: Sequence[Optimizer], tensors: dict[str, Tensor]) -> None:
    """Go on from what `to_tensors` gave of the same optimisers; other tensors are left alone."""
    for slot, optimiser, parameter in _slots(optimisers):
        kept: dict[str, Any] = {
            # A count of steps, which has no dimension, stays on the CPU.
            key: value.clone().to(parameter.device if value.dim() else "cpu")
            for key, value in with_prefix(tensors, f"{slot}.").items()
        }
        if kept and isinstance(optimiser, SparseAdam):
            kept["step"] = int(kept["step"])  # as it counts; a tensor would round its powers
        if kept:
            optimiser.state[parameter] = kept


class Resumable:
    """A training that counts its steps, draws from one generator, and goes on bit by bit."""

    steps: int
    generator: torch.Generator
    optimisers: list[Optimizer]

    def state(self) -> dict[str, Tensor]:
        """All that a bitwise resume needs besides the model's `state_dict`."""
        return {
            "steps": torch.tensor(self.steps),
            "generator": self.generator.get_state(),
            **to_tensors(self.optimisers),
        }

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what `state` gave, the model's own state being loaded already."""
        self.steps = int(tensors["steps"])
        self.generator.set_state(tensors["generator"].cpu())
        from_tensors(self.optimisers, tensors)


def _slots(optimisers: Sequence[Optimizer]) -> Iterator[tuple[str, Optimizer, nn.Parameter]]:
    for i, optimiser in enumerate(optimisers):
        parameters = [p for group in optimiser.param_groups for p in group["params"]]
        for j, parameter in enumerate(parameters):
            yield f"{_PREFIX}.{i}.{j}", optimiser, parameter
