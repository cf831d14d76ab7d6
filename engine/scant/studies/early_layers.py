"""What the early layers of a pretrained network see in small gray images.

The last features of EfficientNet-Lite0 tell a cat from a car; which strokes are where, and what the
texture of a cell is, is told by layers half way. Strokes are averaged over 3 x 3 places (Ojibwe and
Blackfoot, 15 drawings of a character: recall .90 by them, .80 by the last layer and by HOG).
Textures are means and deviations over the whole image, averaged over the image turned and mirrored,
because a cell has no upper side (mitoses, an SVM of 33 of 1,033: average precision .87; .82 of
images as they lie, .63 by the last layer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from scant.tables.images.features import kept_of_gray

STAGES = (8, 11)  # blocks of the network to the end of its fourth stage and of its fifth
CHANNELS = (80, 112)  # of these stages, both at 6 x 6 places
PLACES = 3  # of a side, to which strokes are averaged
STROKES = CHANNELS[0] * PLACES**2
TEXTURES = 2 * sum(CHANNELS)  # mean and deviation of each
TURNS = ((0, False), (1, False), (2, False), (0, True))  # quarter turns, and whether mirrored

Images = Float[np.ndarray, "n h w"]


def strokes(images: Images, keep: bool = True) -> Float[np.ndarray, "n 720"]:
    """Channels of the fourth stage at 3 x 3 places, on CUDA where there is some.

    Args:
        images: Gray, in [0, 1], 1 white.
        keep: Whether they are kept by the hash of the images, as other features are.

    Raises:
        BadInput: The network's weights are not installed.
    """
    return _made(f"strokes {PLACES}", images, keep, _strokes)


def textures(images: Images, keep: bool = True) -> Float[np.ndarray, "n 384"]:
    """Means and deviations of the channels of two stages, averaged over turns of the image.

    Args:
        images: As of `strokes`.
        keep: Likewise.

    Raises:
        BadInput: The network's weights are not installed.
    """
    return _made(f"textures {TURNS}", images, keep, _textures)


def _made(
    name: str, images: Images, keep: bool, make: Callable[[Images], np.ndarray]
) -> Float[np.ndarray, "n _"]:
    if not keep:
        return make(images)
    return kept_of_gray(f"{name} {STAGES}", images, lambda: make(images))


def _strokes(images: Images) -> np.ndarray:
    from torch.nn.functional import adaptive_avg_pool2d as pooled

    made = [pooled(first, PLACES).flatten(1).cpu().numpy() for first, _ in _maps(images)]
    return np.concatenate([np.empty((0, STROKES)), *made])


def _textures(images: Images) -> np.ndarray:
    import torch

    total = np.zeros((len(images), TEXTURES))
    for quarters, mirrored in TURNS:
        turned = np.rot90(images, quarters, (1, 2))
        made = [
            torch.cat([v for x in both for v in (x.mean((2, 3)), x.std((2, 3)))], 1).cpu().numpy()
            for both in _maps(turned[:, :, ::-1] if mirrored else turned)
        ]
        total += np.concatenate([np.empty((0, TEXTURES)), *made])
    return total / len(TURNS)


def _maps(images: Images) -> Iterator[tuple[Any, Any]]:
    """Channels after each of `STAGES` of some images, and of the next ones."""
    import torch
    from torch.nn import functional as F

    from scant.tables.images.efficientnet import BATCH, MEAN, SCALE, pretrained, resized

    device = "cuda" if torch.cuda.is_available() else "cpu"
    network, (first, second) = pretrained(device), STAGES
    with torch.inference_mode():
        for begin in range(0, len(images), BATCH):
            some = images[begin : begin + BATCH]
            batch = torch.cat([resized(np.repeat(255 * i[..., None], 3, axis=2)) for i in some])
            batch = batch.to(device, memory_format=torch.channels_last)
            x = F.relu6(network.bn0(network.conv_stem((batch - MEAN) / SCALE)))
            x = network.blocks[:first](x)
            yield x, network.blocks[first:second](x)
