"""Weighted convolutional kernel: a function of images that sums a response to each of its patches.

    u_q(x) = sum_p w_{q,p} g_q(x^[p]),   g_q ~ GP(0, k_q),   k_q(z, z') = exp(-|(z - z')/l_q|^2/2)

(van der Wilk, Rasmussen and Hensman 2017; Ma 2023, 2.18 and 4.4-4.6), so that

    cov(u_q(x), u_q(x')) = sum_pp' w_{q,p} w_{q,p'} k_q(x^[p], x'^[p'])
    cov(u_q(x), g_q(z))  = sum_p w_{q,p} k_q(x^[p], z)

with inducing patches z. The variance of k_q is one: weights and mixing matrix carry it. Images are
cut once (`patch_rows`); distinct patches stand for all that are equal to them, whose weights are
added up; sums over pairs are `patch_pairs`. Memory is bounded, whatever the number of images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from scant.errors import BadInput
from scant.kernels.patch.pairs import PairSum, binary, dictionary
from scant.kernels.patch.rows import CHUNK, PatchRows, cut
from scant.kernels.rbf import eq

BLOCK = 2**19  # numbers in an array that a processor works through at once: 4 MB
SCALE = 500  # images from which the scale of the weights is set
FLOOR = 1e-6  # on their variance before that: blank images have none
CANDIDATES = 100_000  # distinct patches among which inducing ones are drawn
SHARED = 512  # distinct patches up to which all images are sums over the same list


class PatchKernel(Kernel):
    """Q convolutional kernels of images, each with lengthscales and patch weights of its own.

    As a kernel of GPyTorch it takes rows of pixels and gives "q n m". A sparse model uses `prepare`
    once and then `start`, `covariances` and `diagonal`, which never make a P x P matrix.

    Args:
        width: Of the images, in pixels.
        height: Of the images.
        patch: Side of the square patches.
        channels: Colors of a pixel; columns are pixels row by row, one channel after the other.
        n_latent: Q.
        own_weights: Patch weights for each latent function; else one set for all, as published.

    Raises:
        BadInput: A patch that is larger than the images.
    """

    has_lengthscale = True
    unit: Tensor

    def __init__(
        self,
        width: int,
        height: int,
        patch: int = 3,
        channels: int = 1,
        n_latent: int = 1,
        own_weights: bool = True,
    ) -> None:
        if not 1 <= patch <= min(width, height):
            raise BadInput(
                f"Patches of {patch} x {patch} do not fit images of {width} x {height} pixels; "
                f"use 1 to {min(width, height)}."
            )
        pixels = channels * patch**2
        super().__init__(ard_num_dims=pixels, batch_shape=torch.Size([n_latent]))
        # GPyTorch would compare it with the number of columns, which is that of whole images.
        self.ard_num_dims = None
        self.width, self.height, self.patch, self.channels = width, height, patch, channels
        self.map_shape = (height - patch + 1, width - patch + 1)
        places = math.prod(self.map_shape)
        self.raw_weights = nn.Parameter(torch.ones(n_latent if own_weights else 1, places))
        self.register_buffer("unit", torch.full((n_latent if own_weights else 1, 1), 1 / places))
        self.double()
        self.lengthscale = torch.full((n_latent, 1, pixels), 1.0, dtype=torch.float64)

    @property
    def is_stationary(self) -> bool:
        return False

    @property
    def scales(self) -> Float[Tensor, "q e"]:
        """Lengthscales, in the unit of pixels."""
        return self.lengthscale.squeeze(1)

    @property
    def weights(self) -> Float[Tensor, "q p"]:
        """w_q of each place, or one row for all; learned as multiples of a unit set by `start`."""
        return self.raw_weights * self.unit

    def prepare(self, x: Float[Tensor, "n v"]) -> PatchRows:
        """Cut images to patches; once for a data set.

        Raises:
            BadInput: The columns are no such image, or a pixel is not a finite number.
        """
        return cut(x, self.width, self.height, self.patch, self.channels)

    def start(self, rows: PatchRows, m: int, generator: torch.Generator) -> Float[Tensor, "q m e"]:
        """Inducing patches to begin with; sets the weights, too (see `_start_weights`).

        They are of the data, the frequent ones likelier than the rare. Where the data have fewer
        than m, the rest are others moved a little.
        """
        self._start_weights(rows, generator)
        found, times = rows.places.long().unique(return_counts=True)
        some = torch.randperm(len(found), generator=generator)[:CANDIDATES].to(found.device)
        found, times = found[some], times[some]
        chosen = []
        for _ in range(len(self.scales)):
            share = times.double().sqrt().cpu()
            first = torch.multinomial(share, min(m, len(found)), generator=generator)
            spare = torch.randint(len(found), (max(0, m - len(found)),), generator=generator)
            z = rows.patches[found[torch.cat([first, spare]).to(found.device)]]
            noise = torch.randn(z.shape, generator=generator, dtype=z.dtype).to(z.device)
            noise[: len(first)] = 0
            chosen.append(z + 0.1 * noise)
        return torch.stack(chosen)

    @torch.no_grad()
    def _start_weights(self, rows: PatchRows, generator: torch.Generator) -> None:
        """Weights that vary smoothly over the places, so that images have a variance of one.

        Equal weights count patches wherever they are, all functions the same ones, and blank paper
        above all: training then rests on a plateau for hundreds of steps.
        """
        white = torch.randn(len(self.raw_weights), *self.map_shape, generator=generator)
        down, across = (_smoothing(n, self.raw_weights) for n in self.map_shape)
        smooth = (down @ white.to(down) @ across.mT).flatten(1)
        if smooth.shape[1] > 1:
            smooth = smooth - smooth.mean(1, keepdim=True)
        self.raw_weights.copy_(
            smooth / smooth.square().mean(1, keepdim=True).sqrt().clamp(min=FLOOR)
        )
        self.unit.fill_(1.0)
        some = torch.randperm(len(rows), generator=generator)[:SCALE].to(rows.places.device)
        variance = self.diagonal(rows[some]).mean(1, keepdim=True)
        variance = variance if len(self.unit) > 1 else variance.mean(0, keepdim=True)
        self.unit.copy_(variance.clamp(min=FLOOR).rsqrt())

    def inducing(self, z: Float[Tensor, "q m e"]) -> Float[Tensor, "q m m"]:
        """Covariance of the responses to inducing patches."""
        z = z / self.lengthscale
        return eq(z, z)

    def cross(self, z: Float[Tensor, "q m e"], rows: PatchRows) -> Float[Tensor, "q m b"]:
        """Covariance of the responses to inducing patches with the images."""
        z = z / self.lengthscale
        if self._shares(rows):
            K = eq(z, rows.patches / self.lengthscale)
            return _chunks(
                lambda part: K @ self._over_list(part).mT, rows, len(z) * len(rows.patches)
            )
        each, part = len(z) * z.shape[1], partial(self._cross_own, z)
        if each * int(rows.distinct.sum()) > CHUNK:
            part = partial(_again, part)
        return self._by_size(part, rows, each, 1)

    def covariances(
        self, z: Float[Tensor, "q m e"], rows: PatchRows
    ) -> tuple[Float[Tensor, "q m m"], Float[Tensor, "q m b"]]:
        """`inducing` and `cross`."""
        return self.inducing(z), self.cross(z, rows)

    def diagonal(self, rows: PatchRows) -> Float[Tensor, "q b"]:
        """Variance of each image."""
        q, u = len(self.scales), len(rows.patches)
        if rows.levels is not None:
            step = rows.levels[1] - rows.levels[0]
            return _chunks(
                lambda part: binary(self._over_list(part), self.scales, step), rows, q * u
            )
        if self._shares(rows):
            K = self.inducing(rows.patches.expand(q, -1, -1))
            return _chunks(lambda part: dictionary(self._over_list(part), K), rows, q * u)
        return self._by_size(self._diagonal_own, rows, q, 2)

    def responses(
        self, z: Float[Tensor, "q m e"], solved: Float[Tensor, "q m r"], rows: PatchRows
    ) -> Float[Tensor, "q r b h w"]:
        """Weighted mean response w_p E[g(x^[p])] at each place, the map that sums to E[u(x)].

        Args:
            z: Inducing patches.
            solved: K_zz^-1 E[g(z)], of r functions with each kernel.
            rows: Images; a few, for each map is as large as they are.
        """
        seen, places = rows.places.long().unique(return_inverse=True)
        K = eq(rows.patches[seen] / self.lengthscale, z / self.lengthscale)
        maps = (K @ solved).mT[:, :, places]  # q r b p
        return (maps * self.weights[:, None, None]).unflatten(-1, self.map_shape)

    def forward(
        self, x1: Float[Tensor, "*_ n v"], x2: Float[Tensor, "*_ m v"], diag: bool = False, **_: Any
    ) -> Float[Tensor, "q n m"] | Float[Tensor, "q n"]:
        """Covariance of all pairs of images (2.18), or of each with itself (`diag`)."""
        first = self.prepare(x1.reshape(-1, x1.shape[-1])[: x1.shape[-2]])
        if diag:
            return self.diagonal(first)
        second = self.prepare(x2.reshape(-1, x2.shape[-1])[: x2.shape[-2]])
        K = eq(first.patches / self.lengthscale, second.patches / self.lengthscale)
        return self._over_list(first) @ K @ self._over_list(second).mT

    def _shares(self, rows: PatchRows) -> bool:
        """Whether all images are best written over one list of patches."""
        return rows.levels is not None or len(rows.patches) <= SHARED

    def _over_list(self, rows: PatchRows) -> Float[Tensor, "q b u"]:
        return self._gathered(rows.places.long(), len(rows.patches))

    def _gathered(self, slot: Tensor, width: int) -> Float[Tensor, "q b width"]:
        """Of each image, the sum of the weights of the places with the same patch."""
        q, b = len(self.scales), len(slot)
        weights = self.weights.expand(q, -1).unsqueeze(1).expand(-1, b, -1)
        return weights.new_zeros(q, b, width).scatter_add(2, slot.expand(q, -1, -1), weights)

    def _cross_own(self, z: Tensor, rows: PatchRows) -> Float[Tensor, "q m b"]:
        """`cross` of images over patches of their own; z is scaled."""
        own, slot = rows.slots()
        b, width = own.shape
        x = rows.patches[own].flatten(0, 1) / self.lengthscale
        K = eq(x, z).unflatten(1, (b, width))
        c = self._gathered(slot, width).unsqueeze(2)
        return (c @ K).squeeze(2).mT

    def _diagonal_own(self, rows: PatchRows) -> Float[Tensor, "q b"]:
        """`diagonal` of images over patches of their own."""
        own, slot = rows.slots()
        c = self._gathered(slot, own.shape[1])
        return PairSum.apply(c, rows.patches[own], self.scales.pow(-2))

    def _by_size(
        self, part: Callable[[PatchRows], Tensor], rows: PatchRows, each: int, power: int
    ) -> Tensor:
        """`part` of images with alike numbers L of distinct patches: `each` L^power numbers."""
        order = rows.distinct.argsort(descending=True)
        widths, start = rows.distinct[order].tolist(), 0
        made: list[Tensor] = []
        while start < len(rows) or not made:
            stop = start + max(1, _block(rows) // (each * widths[start] ** power)) if widths else 0
            made.append(part(rows[order[start:stop]]))
            start = stop
        return torch.cat(made, dim=-1)[..., order.argsort()]


def _smoothing(n: int, like: Tensor) -> Float[Tensor, "n n"]:
    """Averages over a sixth of n places, by a bell."""
    place = torch.arange(n, dtype=like.dtype, device=like.device)
    bell = torch.exp(-((place - place.unsqueeze(1)) / (n / 6)).square())
    return bell / bell.sum(1, keepdim=True)


def _chunks(part: Callable[[PatchRows], Tensor], rows: PatchRows, each: int) -> Tensor:
    """`part` of some images after the other, `each` numbers an image; the last axis is theirs."""
    step = max(1, _block(rows) // each)
    if len(rows) <= step:
        return part(rows)
    if len(rows) * each > CHUNK:
        part = partial(_again, part)
    return torch.cat([part(rows[i : i + step]) for i in range(0, len(rows), step)], dim=-1)


def _block(rows: PatchRows) -> int:
    """Numbers that fit a processor's cache, or that keep a GPU busy."""
    return CHUNK if rows.places.is_cuda else BLOCK


def _again(part: Callable[[PatchRows], Tensor], rows: PatchRows) -> Tensor:
    """`part` with checkpointing: the backward pass recomputes its values."""
    if not torch.is_grad_enabled():
        return part(rows)
    made: Tensor = checkpoint(part, rows, use_reentrant=False, preserve_rng_state=False)
    return made
