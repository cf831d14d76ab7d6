"""Features of a pretrained network as further inputs of models of images.

Features that a network learned from a million photographs separate the classes of images best. The
latent variable model learns leading components of features and pixels, and reconstructs images
from those of pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from scant.studies import early_layers
from scant.studies.auto import AUTO
from scant.studies.mitosis.cost import MODELED
from scant.studies.mitosis.preprocessing import Columns
from scant.studies.mitosis.settings import EARLY, PIXELS, MitosisSettings
from scant.tables.images.features import of_gray

COMPONENTS = 50  # principal components of the features


@dataclass(frozen=True)
class Sight:
    """Transformation of images to principal components of network features.

    Attributes:
        columns: Transformation of features, fitted to the training rows.
        image: Height and width of images.
        usual: Mean image, which replaces missing pixels.
        factor: Factor that brings components to the scale of those of pixels.
    """

    columns: Columns
    image: tuple[int, int]
    usual: Float[np.ndarray, " d"]
    factor: float

    @classmethod
    def of(
        cls,
        x: Float[np.ndarray, "n d"],
        z: Float[np.ndarray, "n m"],
        image: tuple[int, int],
        learnt: Int[np.ndarray, " l"],
        early: bool = True,
    ) -> tuple[Sight, Float[np.ndarray, "n k"]]:
        """Fit to training rows, and return the components of all rows.

        Args:
            x: Pixels of the rows.
            z: Transformed pixels of the rows.
            image: Height and width.
            learnt: Training rows.
            early: True for the network's early layers, False for its last one.

        Raises:
            BadInput: The network's weights are not installed.
        """
        mean_image = np.nan_to_num(np.nanmean(x[learnt], axis=0))
        extract = early_layers.textures if early else of_gray
        features = extract(np.where(np.isfinite(x), x, mean_image).reshape(-1, *image))
        columns = Columns.of(features[learnt], COMPONENTS, pixels=True)  # all of one scale
        components = columns.forward(features)
        factor = float(np.nanstd(z[learnt]) / components[learnt].std())
        return cls(columns, image, mean_image, factor), factor * components

    def forward(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Components of other rows."""
        filled = np.where(np.isfinite(x), x, self.usual)
        images = filled.reshape(-1, *self.image)
        early = len(self.columns.centre) == early_layers.TEXTURES
        features = early_layers.textures(images, keep=False) if early else of_gray(images)
        return self.factor * self.columns.forward(features)


def wanted(s: MitosisSettings, image: tuple[int, int] | None) -> tuple[bool, list[str]]:
    """Return True if network features are used, and a note on them for users."""
    if image is None or s.features in (AUTO, PIXELS):
        return False, []
    layers = "the early layers of EfficientNet-Lite0" if s.features == EARLY else s.features
    return True, [
        f"Classifiers are given pixels and {COMPONENTS} components of the features of {layers}; "
        f"the latent variable model is given the first {MODELED} of them."
    ]
