"""Averages over nodes of hyperparameters: parameter assignment, and the report's sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn


@contextmanager
def at_point(parameters: Sequence[nn.Parameter], point: Float[Tensor, " p"]) -> Iterator[None]:
    """Context in which the parameters have the values of the concatenated vector `point`."""
    previous = [p.detach().clone() for p in parameters]
    parts = point.split([p.numel() for p in parameters])
    with torch.no_grad():
        for p, part in zip(parameters, parts):
            p.copy_(part.view_as(p))
    try:
        yield
    finally:
        with torch.no_grad():
            for p, old in zip(parameters, previous):
                p.copy_(old)


def averaged_over(points: Float[Tensor, "k p"]) -> str:
    """Sentence on the averaging for reports."""
    return (
        f"Predictions are averaged over {len(points)} values of the hyperparameters, so "
        "that intervals count that these are uncertain."
    )
