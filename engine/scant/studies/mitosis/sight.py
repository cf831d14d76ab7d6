"""What models of images are given beside pixels: features of a pretrained network.

What tells the classes of images best was learned by a network from a million photographs. The
latent variable model learns leading components of both, and draws what it has learned by those of
pixels.
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

COMPONENTS = 50  # of the features


@dataclass(frozen=True)
class Sight:
    """From images to principal components of their features.

    Attributes:
        columns: Fitted to the rows that are learned from.
        image: Height and width.
        usual: The image that stands where pixels are missing.
        factor: By which components are brought to the scale of those of pixels.
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
        """Fitted to some of these rows, and the components of all.

        Args:
            x: Pixels of the rows.
            z: What the latent variable model learns of them.
            image: Height and width.
            learnt: The rows that are learned from.
            early: Whether the network's early layers are looked at, or its last one.

        Raises:
            BadInput: The network's weights are not installed.
        """
        usual = np.nan_to_num(np.nanmean(x[learnt], axis=0))
        look = early_layers.textures if early else of_gray
        found = look(np.where(np.isfinite(x), x, usual).reshape(-1, *image))
        columns = Columns.of(found[learnt], COMPONENTS, pixels=True)  # all of one scale
        made = columns.forward(found)
        factor = float(np.nanstd(z[learnt]) / made[learnt].std())
        return cls(columns, image, usual, factor), factor * made

    def forward(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Components of further rows."""
        filled = np.where(np.isfinite(x), x, self.usual)
        images = filled.reshape(-1, *self.image)
        early = len(self.columns.centre) == early_layers.TEXTURES
        found = early_layers.textures(images, keep=False) if early else of_gray(images)
        return self.factor * self.columns.forward(found)


def wanted(s: MitosisSettings, image: tuple[int, int] | None) -> tuple[bool, list[str]]:
    """Whether images are seen by the network, and what a person should know of it."""
    if image is None or s.features in (AUTO, PIXELS):
        return False, []
    whose = "the early layers of EfficientNet-Lite0" if s.features == EARLY else s.features
    return True, [
        f"Classifiers are given pixels and {COMPONENTS} components of the features of {whose}; the "
        f"latent variable model is given the first {MODELED} of them."
    ]
