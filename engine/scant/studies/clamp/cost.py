"""Estimated time and memory of a labeling session."""

from __future__ import annotations

from scant.studies.auto import AUTO
from scant.studies.base import Counts
from scant.studies.clamp.capacity import expert_for
from scant.studies.clamp.settings import ClampSettings
from scant.tables.images.kinds import HANDMADE, INCEPTION, JOINED, NETWORK, automatic

SECONDS = {NETWORK: 0.005, JOINED: 0.015, INCEPTION: 0.12}  # per image
SHIPPED = 1848  # maximum number of images of a source with shipped features
NETWORK_SECONDS = 20.0  # to train the convolutional network
COLUMNS = 6  # of a table of patches without features


def estimate(
    settings: ClampSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Estimated seconds and bytes of a run on one core, good to a factor of two.

    Includes images and their features, unless these are shipped; 40 steps of the first fit and 6 of
    each further one, for all sessions during and after the run. Labels are limited by those in the
    table outside validation and test, and by `patience`. Measured on one thread: a step takes 4 ms
    up to 150 labels; an image 9 to 14 ms the first time.
    """
    s = settings
    images = columns <= COLUMNS
    kind = automatic() if s.feature_extractor == AUTO else s.feature_extractor
    feature_seconds = rows * SECONDS.get(kind, 0.01) if images else 0.0
    if not counts and s.data_seed == 0 and kind == HANDMADE and rows <= SHIPPED:
        feature_seconds = 0.0  # shipped for generated images
    n_bytes = 500e6 + rows * (200e3 if images else 200)
    label = counts.get("label", {})
    expert = s.expert if s.expert != AUTO or not counts else expert_for(label, rows).value
    if expert == "you":
        return 1.0 + feature_seconds, n_bytes
    n_labels = float(sum(label.values()) if counts else rows)
    if s.imbalance and label:
        smallest, largest = min(label.values()), max(label.values())
        n_labels = min(n_labels, smallest * (1 + s.imbalance), largest * (1 + 1 / s.imbalance))
    budget = min(s.budget, n_labels * (1 - s.validation_share - s.test_share))
    rounds = -(-max(0, budget - s.start) // s.batch_size)
    if s.patience:
        rounds = min(rounds, 4 * s.patience)
    labels = min(budget, s.start + rounds * s.batch_size)
    sessions = (1 + s.repeats) + (s.repeats - 1 if s.baselines else 0)
    models = len(label) if len(label) > 2 else 1
    fits = models * sessions * (40 + 6 * rounds) * (0.0036 + 6e-11 * labels**3)
    waiting_seconds = max(0.0, labels - s.start) / s.pace if s.pace else 0.0
    network_seconds = NETWORK_SECONDS if s.network and images else 0.0
    return 0.6 + feature_seconds + fits + waiting_seconds + network_seconds, n_bytes
