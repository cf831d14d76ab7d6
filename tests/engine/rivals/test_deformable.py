"""Nearest neighbors that may bend."""

from __future__ import annotations

import numpy as np
import pytest

from scant.rivals.deformable import DeformableNeighbor, distances, slopes


def bars(shifts: list[int], upright: bool) -> np.ndarray:
    images = np.zeros((len(shifts), 12, 12))
    for image, shift in zip(images, shifts):
        image[2:10, 5 + shift : 7 + shift] = 1.0
    return images if upright else images.transpose(0, 2, 1)


def test_distances_are_those_of_the_best_displacement_of_every_pixel() -> None:
    rng = np.random.default_rng(0)
    query, learned = rng.random((2, 6, 5)), rng.random((3, 6, 5))
    a, b = slopes(query), slopes(learned)
    reach = 1  # two pixels of 20 are one of 6
    expected = np.zeros((2, 3))
    for m, n, i, j in np.ndindex(2, 3, 6, 5):
        near = [
            ((a[m, i, j] - b[n, k, u]) ** 2).sum()
            for k in range(max(0, i - reach), min(6, i + reach + 1))
            for u in range(max(0, j - reach), min(5, j + reach + 1))
        ]
        expected[m, n] += min(near)
    np.testing.assert_allclose(distances(a, b), expected, rtol=1e-4)


def test_an_image_that_was_moved_is_nearer_than_another_one() -> None:
    images = np.concatenate([bars([0], True), bars([0], False)])
    moved = slopes(bars([1], True))
    near, far = distances(moved, slopes(images))[0]
    assert near < 0.2 * far
    plain = ((bars([1], True) - images) ** 2).sum((1, 2))
    assert plain[0] > 0.4 * plain[1]  # pixel by pixel the two differ less


def test_classes_are_told_with_probabilities_that_are_not_too_sure() -> None:
    learned = np.concatenate([bars([-2, 0, 2], True), bars([-2, 0, 2], False)])
    label = np.repeat([0, 1], 3)
    machine = DeformableNeighbor.of(learned, label, 3)
    p = machine.ask(np.concatenate([bars([-1, 1], True), bars([-1, 1], False)]))
    assert p.argmax(1).tolist() == [0, 0, 1, 1]
    assert p.sum(1) == pytest.approx(1)
    assert p.max() < 1 - 0.5 / 7
    assert p[:, 2].max() < 0.1  # a class without a row
