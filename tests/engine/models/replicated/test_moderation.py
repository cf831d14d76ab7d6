"""Centres and widths of outputs that borrow from each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scant.models.replicated.data import Data, Scale
from scant.models.replicated.moderation import moderated, shrunk


def data(mean: np.ndarray, width: np.ndarray, rows: int = 8) -> Data:
    """That many rows of each output."""
    rng = np.random.default_rng(0)
    output = np.repeat(np.arange(len(mean)), rows)
    y = mean[output] + width[output] * rng.normal(size=len(output))
    zeros = np.zeros_like(output)
    return Data.of(*map(torch.as_tensor, (output, zeros, zeros.astype(float), y)))


def test_outputs_that_are_alike_share_centre_and_width() -> None:
    alike = data(np.full(20, 5.0), np.ones(20))
    own = Scale.of(alike)
    made = moderated(own, alike)
    for name, truth in (("y_centre", 5.0), ("y_width", 1.0)):
        before, after = (getattr(scale, name).numpy() - truth for scale in (own, made))
        assert (after**2).mean() < 0.2 * (before**2).mean()
    assert made.x_centre == own.x_centre


def test_outputs_of_different_units_keep_theirs() -> None:
    units = 10.0 ** np.arange(8)
    several = data(3 * units, units, 24)
    own = Scale.of(several)
    made = moderated(own, several)
    assert made.y_width.numpy() == pytest.approx(own.y_width.numpy(), rel=0.06)


def test_few_outputs_or_constant_ones_are_left_as_they_are() -> None:
    two = data(np.array([1.0, 2.0]), np.ones(2))
    own = Scale.of(two)
    assert moderated(own, two) is own
    flat = data(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    made = moderated(Scale.of(flat), flat)
    assert made.y_centre[0] == 1.0
    assert made.y_width[0] == 1.0


def test_values_are_shrunk_as_far_as_they_are_uncertain() -> None:
    rng = np.random.default_rng(3)
    true, error = rng.normal(size=400), np.full(400, 1.0)
    found = true + rng.normal(size=400)
    made = shrunk(found, error)
    assert ((made - true) ** 2).mean() == pytest.approx(0.5, abs=0.08)  # of 1 and 1
    assert shrunk(true, 0 * error) == pytest.approx(true)
