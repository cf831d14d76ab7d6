"""Inputs of the classifier: features of the images or columns, and their principal components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from scant.errors import BadInput
from scant.studies.clamp.settings import FEATURES, ClampSettings
from scant.studies.clamp.table import PatchPool
from scant.tables.images.features import features
from scant.tables.images.kinds import HANDMADE, automatic


class Scaling(NamedTuple):
    """Standardization and principal components of features.

    Attributes:
        mean: Mean of each feature over the pool.
        deviation: Standard deviation of each feature; 1 of a constant one.
        components: Directions of largest variance, scaled so that the components' mean variance is
            one.
        share: Share of the variance of every component, the largest first.
    """

    mean: Float[np.ndarray, " d"]
    deviation: Float[np.ndarray, " d"]
    components: Float[np.ndarray, "d q"]
    share: Float[np.ndarray, " e"]

    @classmethod
    def fit(cls, x: Float[np.ndarray, "n d"], count: int) -> Scaling:
        """Fit to a pool, with at most `count` components."""
        mean, deviation = x.mean(0), x.std(0)
        deviation = np.where(deviation > 1e-12 * np.maximum(1, np.abs(mean)), deviation, 1.0)
        _, singular, directions = np.linalg.svd((x - mean) / deviation, full_matrices=False)
        variance = singular**2 / max(len(x), 1)
        count = min(count, int((variance > 1e-12 * variance.max(initial=1e-300)).sum()) or 1)
        leading = directions[:count]
        leading = (
            leading * np.sign(leading[np.arange(len(leading)), np.abs(leading).argmax(1)])[:, None]
        )
        scale = np.sqrt(max(float(variance[:count].mean()), 1e-300))
        return cls(mean, deviation, leading.T / scale, variance / max(variance.sum(), 1e-300))

    def transform(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n q"]:
        """Principal components of rows."""
        return (x - self.mean) / self.deviation @ self.components


def inputs_of(settings: ClampSettings, pool: PatchPool) -> tuple[str, Float[np.ndarray, "n d"]]:
    """Kind of the classifier's inputs ("columns" or of the images), and the features.

    Raises:
        BadInput: The setting needs columns of features, or images, and the table has none.
    """
    kind = settings.feature_extractor
    if kind == FEATURES[0]:
        kind = FEATURES[1] if pool.features else automatic()
    if kind == HANDMADE and not pool.images and pool.features:  # set by a preset for images
        kind = FEATURES[1]
    if kind == FEATURES[1] and not pool.features:
        raise BadInput(
            "Setting 'features' is columns, and the table has no numeric columns that vary; choose "
            "auto, or add columns."
        )
    if kind != FEATURES[1] and not pool.images:
        raise BadInput(
            f"Setting 'features' is {kind}, and the table has no images; choose auto, or give "
            "images."
        )
    return kind, pool.x if kind == FEATURES[1] else features(pool.images, kind)
