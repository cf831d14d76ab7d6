"""Images as patches, with equal patches stored once.

An image of W x H pixels has P = (W - w + 1)(H - h + 1) patches of w x h pixels, one per position,
row by row. Most are blank paper and many others recur, in particular in binary images: there are
only 512 distinct 3 x 3 patches. A set of images is therefore a list of distinct patches and, for
each position of each image, an index into it. Patches count as equal if all bits agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.errors import BadInput

CODED = 10  # most pixels E of a two-level patch for which all 2^E patches are listed
CHUNK = 2**23  # elements of the largest temporary array: 64 MB


@dataclass(frozen=True)
class PatchRows:
    """Images as indices into a list of distinct patches.

    Attributes:
        patches: Distinct patches. If `levels` is set, all 2^E of them, in the order of the binary
            number formed by their pixels (first pixel first), whether they occur or not.
        places: Index of the patch at each position of each image.
        distinct: Number of distinct patches of each image.
        levels: The two pixel values if there are at most two and E is small, else None.
    """

    patches: Float[Tensor, "u e"]
    places: Int[Tensor, "n p"]
    distinct: Int[Tensor, " n"]
    levels: tuple[float, float] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Int[Tensor, " b"] | slice) -> PatchRows:
        return replace(self, places=self.places[index], distinct=self.distinct[index])

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> PatchRows:
        """Move to a device and optionally convert the dtype of the patches."""
        patches, indices = self.patches.to(device, dtype), self.places.to(device)
        return PatchRows(patches, indices, self.distinct.to(device), self.levels)

    def slots(self) -> tuple[Int[Tensor, "b l"], Int[Tensor, "b p"]]:
        """Distinct patches of each image (padded with its last), and their index by position."""
        ordered, order = self.places.long().sort(dim=1)
        new = torch.zeros_like(ordered)
        new[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).long()
        slot = new.cumsum(1)
        width = int(self.distinct.max()) if len(self) else 1
        own = ordered[:, -1:].repeat(1, width).scatter(1, slot, ordered)
        return own, torch.empty_like(slot).scatter(1, order, slot)


def cut(
    x: Float[Tensor, "n v"], width: int, height: int, patch: int, channels: int = 1
) -> PatchRows:
    """Cut images into patches and list the distinct ones.

    Args:
        x: Pixel values, one image per row: pixels row by row, one channel after the other.
        width: Image width in pixels.
        height: Image height in pixels.
        patch: Side of the square patches in pixels.
        channels: Number of color channels.

    Raises:
        BadInput: The number of columns does not match, or a pixel is not finite.
    """
    shape = (channels, height, width)
    if x.shape[1] != channels * height * width:
        raise BadInput(
            f"Images of {width} x {height} pixels with {channels} channel(s) have "
            f"{channels * height * width} columns; got {x.shape[1]}. Set the width and the height."
        )
    finite = x.isfinite().all(1)
    if not bool(finite.all()):
        raise BadInput(
            f"Image {int((~finite).nonzero()[0])} has a pixel that is not a finite number; "
            "fill it or leave the image out."
        )
    levels, numbers = x.detach().unique(return_inverse=True)
    numbers = numbers.reshape(-1, *shape)
    if len(levels) <= 2 and channels * patch**2 <= CODED:
        patches, indices, values = _coded(numbers, levels, patch)
    else:
        patches, indices = _distinct(numbers, levels, patch)
        values = None
    ordered = indices.sort(dim=1).values
    distinct = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(1)
    return PatchRows(patches, indices.int(), distinct, values)


def _windows(numbers: Int[Tensor, "n c h w"], patch: int) -> Iterator[Int[Tensor, "m p e"]]:
    """Patches of blocks of images, so that memory never holds those of all images."""
    step = max(1, CHUNK // (numbers[:1].numel() * patch**2 or 1))
    for part in numbers.split(step):
        cut = part.unfold(2, patch, 1).unfold(3, patch, 1)
        yield cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def _coded(
    numbers: Int[Tensor, "n c h w"], levels: Float[Tensor, " k"], patch: int
) -> tuple[Float[Tensor, "u e"], Int[Tensor, "n p"], tuple[float, float]]:
    """All patches of two levels, the code of the patch at each position, and the levels."""
    # Images of a single level (or none) get a second one that never occurs.
    low = float(levels[0]) if len(levels) else 0.0
    high = float(levels[1]) if len(levels) == 2 else low + 1.0
    pixels = numbers.shape[1] * patch**2
    weight = 2 ** torch.arange(pixels - 1, -1, -1, device=levels.device)
    codes = torch.arange(2**pixels, device=levels.device).unsqueeze(1)
    patches = torch.where((codes & weight) > 0, levels.new_tensor(high), levels.new_tensor(low))
    indices = torch.cat([(w * weight).sum(-1) for w in _windows(numbers, patch)])
    return patches, indices, (low, high)


def _distinct(
    numbers: Int[Tensor, "n c h w"], levels: Float[Tensor, " k"], patch: int
) -> tuple[Float[Tensor, "u e"], Int[Tensor, "n p"]]:
    """Distinct patches, found by a random linear hash of their pixels' levels.

    Hashes sort much faster than rows. If two patches collide, new factors are drawn.
    """
    pixels = numbers.shape[1] * patch**2
    for seed in count():
        generator = torch.Generator().manual_seed(seed)
        factor = torch.randint(-(2**62), 2**62, (pixels,), generator=generator)
        factor = factor.to(levels.device)
        keys = torch.cat([(w * factor).sum(-1) for w in _windows(numbers, patch)])
        distinct, indices = keys.unique(return_inverse=True)
        patches = numbers.new_empty(len(distinct), pixels)
        if _fill(patches, indices, numbers, patch):
            return levels[patches], indices
    raise AssertionError  # not reached: the loop has no end


def _fill(
    patches: Int[Tensor, "u e"],
    indices: Int[Tensor, "n p"],
    numbers: Int[Tensor, "n c h w"],
    patch: int,
) -> bool:
    """Write each patch at its index; return False if unequal patches share an index."""
    for check in (False, True):
        start = 0
        for w in _windows(numbers, patch):
            index = indices[start : start + len(w)]
            if not check:
                patches[index.flatten()] = w.flatten(0, 1)
            elif not bool((patches[index] == w).all()):
                return False
            start += len(w)
    return True
