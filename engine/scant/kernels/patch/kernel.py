"""Weighted convolutional kernel: a function of images that sums responses to their patches.

    u_q(x) = sum_p w_{q,p} g_q(x^[p]),   g_q ~ GP(0, k_q),   k_q(z, z') = exp(-|(z - z')/l_q|^2/2)

(van der Wilk, Rasmussen and Hensman 2017; Ma 2023, 2.18 and 4.4-4.6), so that

    cov(u_q(x), u_q(x')) = sum_pp' w_{q,p} w_{q,p'} k_q(x^[p], x'^[p'])
    cov(u_q(x), g_q(z))  = sum_p w_{q,p} k_q(x^[p], z)

with inducing patches z. The variance of k_q is one: the weights and the mixing matrix scale it.
Images are cut into patches once (`rows`); equal patches are stored once and their weights added up;
`pairs` sums over pairs of patches. Memory is bounded for any number of images.
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

BLOCK = 2**19  # elements of a block that fits a CPU's cache: 4 MB
SCALE = 500  # images used to set the scale of the weights
FLOOR = 1e-6  # lower bound on their variance: that of blank images is zero
CANDIDATES = 100_000  # distinct patches from which inducing patches are sampled
SHARED = 512  # most distinct patches for which all images are sums over one list


class PatchKernel(Kernel):
    """Batch of Q convolutional kernels of images, each with its own lengthscales and weights.

    Called as a GPyTorch kernel it takes rows of pixels and returns "q n m". A sparse model calls
    `prepare` once and then `start`, `covariances` and `diagonal`, which form no P x P matrix.

    Args:
        width: Image width in pixels.
        height: Image height in pixels.
        patch: Side of the square patches in pixels.
        channels: Color channels; columns are pixels row by row, one channel after the other.
        n_latent: Number Q of latent functions.
        own_weights: Separate patch weights for each latent function; False shares one set, as
            published (4.5).
        ard: Separate lengthscale for each pixel of a patch, as published (4.4); False uses one.

    Raises:
        BadInput: The patch is larger than the images.
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
        ard: bool = True,
    ) -> None:
        if not 1 <= patch <= min(width, height):
            raise BadInput(
                f"Patches of {patch} x {patch} do not fit images of {width} x {height} pixels; "
                f"use 1 to {min(width, height)}."
            )
        pixels = channels * patch**2
        n_scales = pixels if ard else 1
        super().__init__(ard_num_dims=n_scales, batch_shape=torch.Size([n_latent]))
        # GPyTorch would compare it with the number of columns, the pixels of a whole image.
        self.ard_num_dims = None
        self.width, self.height, self.patch, self.channels = width, height, patch, channels
        self.map_shape = (height - patch + 1, width - patch + 1)
        n_positions = math.prod(self.map_shape)
        self.raw_weights = nn.Parameter(torch.ones(n_latent if own_weights else 1, n_positions))
        self.register_buffer(
            "unit", torch.full((n_latent if own_weights else 1, 1), 1 / n_positions)
        )
        self.double()
        self.lengthscale = torch.ones(n_latent, 1, n_scales, dtype=torch.float64)

    @property
    def is_stationary(self) -> bool:
        return False

    @property
    def scales(self) -> Float[Tensor, "q e"]:
        """Lengthscale of each pixel of a patch, in units of pixel values."""
        return self.lengthscale.squeeze(1).expand(-1, self.channels * self.patch**2)

    @property
    def weights(self) -> Float[Tensor, "q p"]:
        """w_{q,p} of each patch position (one row if shared), in multiples of `unit`."""
        return self.raw_weights * self.unit

    def prepare(self, x: Float[Tensor, "n v"]) -> PatchRows:
        """Cut images into patches; call it once per data set.

        Raises:
            BadInput: The number of columns does not match, or a pixel is not finite.
        """
        return cut(x, self.width, self.height, self.patch, self.channels)

    def start(self, rows: PatchRows, m: int, generator: torch.Generator) -> Float[Tensor, "q m e"]:
        """Initialize the weights and return m initial inducing patches per latent function.

        Patches are sampled from the data with probability proportional to the square root of
        their frequency; if there are fewer than m, perturbed copies fill the rest.
        """
        self._start_weights(rows, generator)
        distinct, count = rows.places.long().unique(return_counts=True)
        candidates = torch.randperm(len(distinct), generator=generator)[:CANDIDATES].to(
            distinct.device
        )
        distinct, count = distinct[candidates], count[candidates]
        inducing = []
        for _ in range(len(self.scales)):
            probability = count.double().sqrt().cpu()
            first = torch.multinomial(probability, min(m, len(distinct)), generator=generator)
            repeats = torch.randint(
                len(distinct), (max(0, m - len(distinct)),), generator=generator
            )
            z = rows.patches[distinct[torch.cat([first, repeats]).to(distinct.device)]]
            noise = torch.randn(z.shape, generator=generator, dtype=z.dtype).to(z.device)
            noise[: len(first)] = 0
            inducing.append(z + 0.1 * noise)
        return torch.stack(inducing)

    @torch.no_grad()
    def _start_weights(self, rows: PatchRows, generator: torch.Generator) -> None:
        """Set random weights that vary smoothly over positions, scaled to unit image variance.

        With equal weights all functions would respond alike, mostly to blank paper, and training
        would spend hundreds of steps on a plateau.
        """
        noise = torch.randn(len(self.raw_weights), *self.map_shape, generator=generator)
        down, across = (_smoothing(n, self.raw_weights) for n in self.map_shape)
        smooth = (down @ noise.to(down) @ across.mT).flatten(1)
        if smooth.shape[1] > 1:
            smooth = smooth - smooth.mean(1, keepdim=True)
        self.raw_weights.copy_(
            smooth / smooth.square().mean(1, keepdim=True).sqrt().clamp(min=FLOOR)
        )
        self.unit.fill_(1.0)
        sample = torch.randperm(len(rows), generator=generator)[:SCALE].to(rows.places.device)
        variance = self.diagonal(rows[sample]).mean(1, keepdim=True)
        variance = variance if len(self.unit) > 1 else variance.mean(0, keepdim=True)
        self.unit.copy_(variance.clamp(min=FLOOR).rsqrt())

    def inducing(self, z: Float[Tensor, "q m e"]) -> Float[Tensor, "q m m"]:
        """Covariance K_zz among inducing patches."""
        z = z / self.lengthscale
        return eq(z, z)

    def cross(self, z: Float[Tensor, "q m e"], rows: PatchRows) -> Float[Tensor, "q m b"]:
        """Covariance of inducing patches with images: sum_p w_p k(z, x^[p])."""
        z = z / self.lengthscale
        if self._shares(rows):
            K = eq(z, rows.patches / self.lengthscale)
            each = len(self.weights) * len(rows.patches)
            return _chunks(lambda part: K @ self._over_list(part).mT, rows, each)
        per_patch, part = len(z) * z.shape[1], partial(self._cross_own, z)
        if per_patch * int(rows.distinct.sum()) > CHUNK:
            part = partial(_checkpointed, part)
        return self._by_size(part, rows, per_patch, 1)

    def covariances(
        self, z: Float[Tensor, "q m e"], rows: PatchRows
    ) -> tuple[Float[Tensor, "q m m"], Float[Tensor, "q m b"]]:
        """Return `inducing(z)` and `cross(z, rows)`."""
        return self.inducing(z), self.cross(z, rows)

    def diagonal(self, rows: PatchRows) -> Float[Tensor, "q b"]:
        """Prior variance of each image."""
        q, each = len(self.scales), len(self.weights) * len(rows.patches)
        if rows.levels is not None:
            step = rows.levels[1] - rows.levels[0]
            return _chunks(
                lambda part: binary(self._over_list(part), self.scales, step), rows, each
            )
        if self._shares(rows):
            K = self.inducing(rows.patches.expand(q, -1, -1))
            each = q * len(rows.patches)
            return _chunks(lambda part: dictionary(self._over_list(part), K), rows, each)
        return self._by_size(self._diagonal_own, rows, q, 2)

    def responses(
        self, z: Float[Tensor, "q m e"], solved: Float[Tensor, "q m r"], rows: PatchRows
    ) -> Float[Tensor, "q r b h w"]:
        """Weighted mean response w_p E[g(x^[p])] at each position; each map sums to E[u(x)].

        Args:
            z: Inducing patches.
            solved: K_zz^-1 E[g(z)] of r functions per kernel.
            rows: Images; keep them few, since each map is as large as an image.
        """
        distinct, slot = rows.places.long().unique(return_inverse=True)
        K = eq(rows.patches[distinct] / self.lengthscale, z / self.lengthscale)
        maps = (K @ solved).mT[:, :, slot]  # q r b p
        return (maps * self.weights[:, None, None]).unflatten(-1, self.map_shape)

    def forward(
        self, x1: Float[Tensor, "*_ n v"], x2: Float[Tensor, "*_ m v"], diag: bool = False, **_: Any
    ) -> Float[Tensor, "q n m"] | Float[Tensor, "q n"]:
        """Covariances of all pairs of images (2.18), or variances (`diag`)."""
        first = self.prepare(x1.reshape(-1, x1.shape[-1])[: x1.shape[-2]])
        if diag:
            return self.diagonal(first)
        second = self.prepare(x2.reshape(-1, x2.shape[-1])[: x2.shape[-2]])
        K = eq(first.patches / self.lengthscale, second.patches / self.lengthscale)
        return self._over_list(first) @ K @ self._over_list(second).mT

    def _shares(self, rows: PatchRows) -> bool:
        """Return True if all images are best represented over one list of patches."""
        return rows.levels is not None or len(rows.patches) <= SHARED

    def _over_list(self, rows: PatchRows) -> Float[Tensor, "w b u"]:
        return self._gathered(rows.places.long(), len(rows.patches))

    def _gathered(self, slot: Tensor, width: int) -> Float[Tensor, "w b width"]:
        """For each image, sums of the weights over positions with the same patch; w = 1 or Q."""
        sets, b = len(self.weights), len(slot)
        weights = self.weights.unsqueeze(1).expand(-1, b, -1)
        sums = weights.new_zeros(sets, b, width)
        return sums.scatter_add(2, slot.expand(sets, -1, -1), weights)

    def _cross_own(self, z: Tensor, rows: PatchRows) -> Float[Tensor, "q m b"]:
        """`cross`, each image over its own distinct patches; z is divided by the lengthscales."""
        own, slot = rows.slots()
        b, width = own.shape
        x = rows.patches[own].flatten(0, 1) / self.lengthscale
        K = eq(x, z).unflatten(1, (b, width))
        c = self._gathered(slot, width).unsqueeze(2)
        return (c @ K).squeeze(2).mT

    def _diagonal_own(self, rows: PatchRows) -> Float[Tensor, "q b"]:
        """`diagonal`, each image over its own distinct patches."""
        own, slot = rows.slots()
        c = self._gathered(slot, own.shape[1]).expand(len(self.scales), -1, -1)
        return PairSum.apply(c, rows.patches[own], self.scales.pow(-2))

    def _by_size(
        self, part: Callable[[PatchRows], Tensor], rows: PatchRows, each: int, power: int
    ) -> Tensor:
        """Apply `part` to blocks of images with similar counts L of distinct patches.

        An image takes `each` L^power elements.
        """
        order = rows.distinct.argsort(descending=True)
        widths, start = rows.distinct[order].tolist(), 0
        values: list[Tensor] = []
        while start < len(rows) or not values:
            stop = start + max(1, _block(rows) // (each * widths[start] ** power)) if widths else 0
            values.append(part(rows[order[start:stop]]))
            start = stop
        return torch.cat(values, dim=-1)[..., order.argsort()]


def _smoothing(n: int, like: Tensor) -> Float[Tensor, "n n"]:
    """Row-normalized Gaussian smoothing over n positions, with a width of n / 6."""
    position = torch.arange(n, dtype=like.dtype, device=like.device)
    weights = torch.exp(-((position - position.unsqueeze(1)) / (n / 6)).square())
    return weights / weights.sum(1, keepdim=True)


def _chunks(part: Callable[[PatchRows], Tensor], rows: PatchRows, each: int) -> Tensor:
    """Apply `part` to blocks of images, `each` elements per image, and join the last axis."""
    step = max(1, _block(rows) // each)
    if len(rows) <= step:
        return part(rows)
    if len(rows) * each > CHUNK:
        part = partial(_checkpointed, part)
    return torch.cat([part(rows[i : i + step]) for i in range(0, len(rows), step)], dim=-1)


def _block(rows: PatchRows) -> int:
    """Elements per block: fits a CPU's cache, or keeps a GPU busy."""
    return CHUNK if rows.places.is_cuda else BLOCK


def _checkpointed(part: Callable[[PatchRows], Tensor], rows: PatchRows) -> Tensor:
    """Evaluate `part` with checkpointing: the backward pass recomputes its values."""
    if not torch.is_grad_enabled():
        return part(rows)
    value: Tensor = checkpoint(part, rows, use_reentrant=False, preserve_rng_state=False)
    return value
