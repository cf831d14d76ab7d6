"""Images as patches, with equal patches stored once.

A patch is what a window of w x h pixels sees; an image has P = (W - w + 1)(H - h + 1) of them, one
a place, row by row. Most are blank paper and many of the others recur, above all where a pixel is
either ink or paper: 3 x 3 patches of black and white are 512 at most, in however many images. So a
set of images is a list of distinct patches and, for each place of each image, a number in it.
Nothing is rounded: patches are one where they are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.errors import BadInput

CODED = 10  # pixels in a patch of two levels up to which all 2^E patches are listed
CHUNK = 2**23  # numbers in the largest array that is made at once: 64 MB


@dataclass(frozen=True)
class PatchRows:
    """Images as numbers in a list of distinct patches.

    Attributes:
        patches: The distinct patches. Where `levels` is set, all 2^E of them, in the order of the
            binary number that their pixels spell (first pixel first), whether they occur or not.
        places: Of each image, which patch is seen at each place.
        distinct: How many different patches each image has.
        levels: The two values that pixels take, where they take two at most and E is small.
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
        """The same on another device, and in another precision if one is given."""
        patches, places = self.patches.to(device, dtype), self.places.to(device)
        return PatchRows(patches, places, self.distinct.to(device), self.levels)

    def slots(self) -> tuple[Int[Tensor, "b l"], Int[Tensor, "b p"]]:
        """Each image's own distinct patches (padded with its last), and which is at each place."""
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
    """Cut images to patches and list the distinct ones.

    Args:
        x: Pixels row by row, of one channel after the other.
        width: Of the images, in pixels.
        height: Of the images.
        patch: Side of the square window.
        channels: Colors of a pixel.

    Raises:
        BadInput: The columns are no such image, or a pixel is not a finite number.
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
        patches, places, two = _coded(numbers, levels, patch)
    else:
        patches, places = _distinct(numbers, levels, patch)
        two = None
    ordered = places.sort(dim=1).values
    distinct = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(1)
    return PatchRows(patches, places.int(), distinct, two)


def _windows(numbers: Int[Tensor, "n c h w"], patch: int) -> Iterator[Int[Tensor, "m p e"]]:
    """Patches of some images after the other, so that the windows of all never lie in memory."""
    step = max(1, CHUNK // (numbers[:1].numel() * patch**2 or 1))
    for part in numbers.split(step):
        cut = part.unfold(2, patch, 1).unfold(3, patch, 1)
        yield cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def _coded(
    numbers: Int[Tensor, "n c h w"], levels: Float[Tensor, " k"], patch: int
) -> tuple[Float[Tensor, "u e"], Int[Tensor, "n p"], tuple[float, float]]:
    """All patches of two levels, and the binary numbers of those that are seen."""
    # Of one level alone (or none) another is made up: no patch that has it occurs.
    low = float(levels[0]) if len(levels) else 0.0
    high = float(levels[1]) if len(levels) == 2 else low + 1.0
    pixels = numbers.shape[1] * patch**2
    weight = 2 ** torch.arange(pixels - 1, -1, -1, device=levels.device)
    codes = torch.arange(2**pixels, device=levels.device).unsqueeze(1)
    patches = torch.where((codes & weight) > 0, levels.new_tensor(high), levels.new_tensor(low))
    places = torch.cat([(w * weight).sum(-1) for w in _windows(numbers, patch)])
    return patches, places, (low, high)


def _distinct(
    numbers: Int[Tensor, "n c h w"], levels: Float[Tensor, " k"], patch: int
) -> tuple[Float[Tensor, "u e"], Int[Tensor, "n p"]]:
    """Distinct patches by a random sum of their pixels' levels, which sorts far faster than rows.

    Sums wrap around, as those of a hash may; should two patches ever share one, others are drawn.
    """
    pixels = numbers.shape[1] * patch**2
    for seed in count():
        generator = torch.Generator().manual_seed(seed)
        factor = torch.randint(-(2**62), 2**62, (pixels,), generator=generator)
        factor = factor.to(levels.device)
        keys = torch.cat([(w * factor).sum(-1) for w in _windows(numbers, patch)])
        found, places = keys.unique(return_inverse=True)
        patches = numbers.new_empty(len(found), pixels)
        if _fill(patches, places, numbers, patch):
            return levels[patches], places
    raise AssertionError  # not reached: the loop has no end


def _fill(
    patches: Int[Tensor, "u e"],
    places: Int[Tensor, "n p"],
    numbers: Int[Tensor, "n c h w"],
    patch: int,
) -> bool:
    """Write each patch where its places say; whether all that say the same are the same."""
    for check in (False, True):
        start = 0
        for w in _windows(numbers, patch):
            seen = places[start : start + len(w)]
            if not check:
                patches[seen.flatten()] = w.flatten(0, 1)
            elif not bool((patches[seen] == w).all()):
                return False
            start += len(w)
    return True
