"""The convolutional kernel: its definition, its shortcuts against it, gradients, memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from scant.errors import BadInput
from scant.kernels.patch import kernel as module
from scant.kernels.patch import pairs
from scant.kernels.patch import rows as patch_rows
from scant.kernels.patch.kernel import PatchKernel
from scant.kernels.patch.rows import PatchRows

BLACK_AND_WHITE, FEW, GREY = 2, 3, 0  # levels of a pixel; 0: any


def images(n: int, pixels: int, levels: int = GREY, seed: int = 0) -> Tensor:
    made = torch.rand(n, pixels, generator=torch.Generator().manual_seed(seed)).double()
    return (made * levels).floor() / (levels - 1) if levels else made


def kernel(channels: int = 1, own: bool = True, patch: int = 2, *, ard: bool = True) -> PatchKernel:
    made = PatchKernel(6, 5, patch, channels, n_latent=2, own_weights=own, ard=ard)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        made.unit.fill_(0.5)
        made.raw_weights.copy_(torch.randn(made.raw_weights.shape, generator=generator))
        made.lengthscale = 0.5 + torch.rand(made.lengthscale.shape, generator=generator).double()
    return made


def patches(x: Tensor, k: PatchKernel) -> list[Tensor]:
    """Of one image, by hand: row by row, each with its channels one after the other."""
    pixels, side = x.view(k.channels, k.height, k.width), k.patch
    h, w = k.map_shape
    return [pixels[:, i : i + side, j : j + side].flatten() for i in range(h) for j in range(w)]


def base(k: PatchKernel, q: int, a: Tensor, b: Tensor) -> Tensor:
    return torch.exp(-0.5 * ((a - b) / k.lengthscale[q, 0]).square().sum())


def pair(k: PatchKernel, q: int, x: Tensor, y: Tensor) -> Tensor:
    """The publication's double sum over patches (2.18)."""
    w = k.weights[q if len(k.weights) > 1 else 0]
    rows = [(i, j) for i in enumerate(patches(x, k)) for j in enumerate(patches(y, k))]
    return torch.stack([w[i] * w[j] * base(k, q, a, b) for (i, a), (j, b) in rows]).sum()


def without_list(rows: PatchRows, monkeypatch: pytest.MonkeyPatch) -> PatchRows:
    """The same rows, to be treated as images whose patches are too many for one list."""
    monkeypatch.setattr(module, "SHARED", 0)
    return replace(rows, levels=None)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [BLACK_AND_WHITE, FEW, GREY])
@pytest.mark.parametrize(
    ("channels", "own", "ard"),
    [(1, True, True), (1, False, True), (1, True, False), (2, True, True)],
)
def test_images_with_images_are_the_double_sum(
    channels: int, own: bool, ard: bool, levels: int
) -> None:
    k = kernel(channels, own, ard=ard)
    x = images(3, 30 * channels, levels)
    assert (k.prepare(x).levels is not None) == (levels == BLACK_AND_WHITE)
    K, variance = k(x, x[:2]).to_dense(), k.diagonal(k.prepare(x))
    for q in range(2):
        for i in range(3):
            assert variance[q, i].item() == pytest.approx(pair(k, q, x[i], x[i]).item(), abs=1e-9)
        assert K[q, 2, 1].item() == pytest.approx(pair(k, q, x[2], x[1]).item(), abs=1e-9)
    assert torch.allclose(k(x, diag=True), variance)


@pytest.mark.parametrize("levels", [BLACK_AND_WHITE, GREY])
@pytest.mark.parametrize(("channels", "own", "ard"), [(1, True, True), (2, False, False)])
def test_inducing_patches_with_images_and_with_each_other(
    channels: int, own: bool, ard: bool, levels: int
) -> None:
    k = kernel(channels, own, ard=ard)
    assert k.lengthscale.shape == (2, 1, 4 * channels if ard else 1)
    x = images(3, 30 * channels, levels)
    z = images(2 * 4, 4 * channels, seed=5).view(2, 4, -1)
    K, cross = k.inducing(z), k.cross(z, k.prepare(x))
    for q in range(2):
        for m in range(4):
            seen = zip(k.weights[q if own else 0], patches(x[2], k))
            expected = torch.stack([w * base(k, q, z[q, m], p) for w, p in seen]).sum()
            assert cross[q, m, 2].item() == pytest.approx(expected.item(), abs=1e-9)
            assert K[q, m, 1].item() == pytest.approx(base(k, q, z[q, m], z[q, 1]).item())


@pytest.mark.parametrize("levels", [BLACK_AND_WHITE, FEW])
def test_every_way_to_the_sums_gives_the_same(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    k = kernel()
    rows = k.prepare(images(9, 30, levels))
    z = k.start(rows, 3, torch.Generator().manual_seed(0))
    wanted = [k.diagonal(rows), k.cross(z, rows)]
    plain = replace(rows, levels=None)
    ways = [[k.diagonal(plain), k.cross(z, plain)]]  # one list, without the transform
    plain = without_list(rows, monkeypatch)
    ways.append([k.diagonal(plain), k.cross(z, plain)])  # each image's own patches
    for chunk in (1, 300):  # one image, or a few, at once
        for place in (module, pairs):
            monkeypatch.setattr(place, "CHUNK", chunk)
        monkeypatch.setattr(module, "BLOCK", chunk)
        ways.append([k.diagonal(plain), k.cross(z, plain)])
        monkeypatch.setattr(module, "SHARED", 512)
        ways.append([k.diagonal(rows), k.cross(z, rows)])
        monkeypatch.setattr(module, "SHARED", 0)
    for way in ways:
        assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(way, wanted))


class Sums(torch.nn.Module):
    """All that a sparse model asks of the kernel."""

    def __init__(self, kernel: PatchKernel) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, z: Tensor, rows: PatchRows) -> tuple[Tensor, ...]:
        return self.kernel.inducing(z), self.kernel.cross(z, rows), self.kernel.diagonal(rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "ard"),
    [("transform", True), ("transform", False), ("list", True), ("own", True), ("own", False),
     ("chunks", True)],
)  # fmt: skip
def test_gradients_are_those_of_finite_differences(
    way: str, ard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    k = kernel(ard=ard)
    rows = k.prepare(images(2, 30, FEW if way == "list" else BLACK_AND_WHITE))
    if way in ("own", "chunks"):
        rows = without_list(rows, monkeypatch)
    if way == "chunks":
        monkeypatch.setattr(module, "BLOCK", 1)
        for place in (module, pairs):
            monkeypatch.setattr(place, "CHUNK", 1)
    z = images(2 * 3, 4, seed=3).view(2, 3, 4).requires_grad_()
    given = [p.detach().clone().requires_grad_() for p in (k.raw_weights, k.raw_lengthscale)]

    def sums(weights: Tensor, raw: Tensor, z: Tensor) -> tuple[Tensor, ...]:
        values = {"kernel.raw_weights": weights, "kernel.raw_lengthscale": raw}
        return torch.func.functional_call(Sums(k), values, (z, rows))

    assert torch.autograd.gradcheck(sums, (*given, z))


@pytest.mark.parametrize("levels", [BLACK_AND_WHITE, GREY])
def test_images_and_inducing_patches_together_are_positive_semi_definite(levels: int) -> None:
    k = kernel()
    x, z = images(12, 30, levels), images(2 * 8, 4, seed=3).view(2, 8, 4)
    cross = k.cross(z, k.prepare(x))
    K = torch.cat(
        [torch.cat([k(x).to_dense(), cross.mT], 2), torch.cat([cross, k.inducing(z)], 2)], 1
    )
    assert torch.linalg.eigvalsh(K).min() > -1e-9


class Largest(TorchDispatchMode):
    """The largest tensor that is made, in numbers."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        made = func(*args, **(kwargs or {}))
        for value in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(value, Tensor) and not value.is_sparse:
                self.size = max(self.size, value.untyped_storage().nbytes() // 8)
        return made


@pytest.mark.parametrize("levels", [BLACK_AND_WHITE, GREY])
def test_memory_is_bounded_whatever_the_number_of_images(
    levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 200_000
    for place in (module, pairs, patch_rows):
        monkeypatch.setattr(place, "CHUNK", limit)
    monkeypatch.setattr(module, "BLOCK", limit)
    k = PatchKernel(14, 14, 3, n_latent=3)
    x = images(200, 196, levels)
    with Largest() as cut:
        rows = k.prepare(x)
    # Whole numbers for the places of all images are kept; windows of all would be nine times that.
    assert cut.size <= max(limit, len(rows.patches) * 9, 200 * 196 * 2)
    z = k.start(rows, 20, torch.Generator().manual_seed(0)).requires_grad_()
    with Largest() as seen:
        (k.cross(z, rows).sum() + k.diagonal(rows).sum()).backward()
    # A naive kernel would hold 3 x 200 x 144 x 144, more than twelve million.
    assert seen.size <= 1.1 * limit


def test_equal_patches_are_kept_once_and_nothing_is_rounded() -> None:
    k = kernel()
    x = images(20, 30, FEW)
    x[3, 7] = torch.nextafter(x[3, 7], x.new_tensor(2.0))
    rows = k.prepare(x)
    cut = torch.stack([torch.stack(patches(image, k)) for image in x])
    assert torch.equal(rows.patches[rows.places.long()], cut)
    assert len(rows.patches) == len(cut.flatten(0, 1).unique(dim=0))
    assert rows.distinct.tolist() == [len(one.unique(dim=0)) for one in cut]
    some = rows[torch.tensor([4, 2])]
    own, slot = some.slots()
    assert torch.equal(own.gather(1, slot), some.places.long())


def test_two_patches_never_pass_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first factors give two patches one number, others are drawn."""
    drawn, real = [], torch.randint

    def randint(*args: int, **kwargs: object) -> Tensor:
        drawn.append(0)
        made = real(*args, **kwargs)
        return torch.zeros_like(made) if len(drawn) == 1 else made

    monkeypatch.setattr(torch, "randint", randint)
    k, x = kernel(), images(4, 30, FEW)
    rows = k.prepare(x)
    assert len(drawn) == 2
    assert torch.equal(rows.patches[rows.places[1].long()], torch.stack(patches(x[1], k)))


@pytest.mark.parametrize("pixel", [0.0, 1.0])
def test_blank_images_and_no_images_have_their_place(pixel: float) -> None:
    k = kernel()
    rows = k.prepare(torch.full((2, 30), pixel, dtype=torch.float64))
    assert torch.allclose(k.diagonal(rows)[:, 0], k.weights.sum(1).square())
    z = k.start(rows, 4, torch.Generator().manual_seed(0))  # more than there are patches
    assert z.shape == (2, 4, 4)
    assert len({tuple(row) for row in z[0].tolist()}) == 4
    none = rows[torch.tensor([], dtype=torch.long)]
    assert k.diagonal(none).shape == (2, 0)
    assert k.cross(z, none).shape == (2, 4, 0)


@pytest.mark.parametrize("levels", [BLACK_AND_WHITE, GREY])
def test_the_map_of_responses_sums_to_the_mean(levels: int) -> None:
    k = kernel()
    rows = k.prepare(images(5, 30, levels))
    z = k.start(rows, 3, torch.Generator().manual_seed(0))
    solved = images(2 * 3, 2, seed=9).view(2, 3, 2)
    maps = k.responses(z, solved, rows)
    assert maps.shape == (2, 2, 5, *k.map_shape)
    assert torch.allclose(maps.sum((-1, -2)), solved.mT @ k.cross(z, rows))
    first = k.weights[0, 0] * sum(
        solved[0, m, 1] * base(k, 0, rows.patches[int(rows.places[2, 0])], z[0, m])
        for m in range(3)
    )
    assert maps[0, 1, 2, 0, 0].item() == pytest.approx(first.item())


@pytest.mark.parametrize("own", [True, False])
def test_weights_start_smooth_with_images_of_variance_one(own: bool) -> None:
    k = PatchKernel(14, 14, 3, n_latent=3, own_weights=own)
    rows = k.prepare(images(20, 196, BLACK_AND_WHITE))
    z = k.start(rows, 5, torch.Generator().manual_seed(0))
    each = k.diagonal(rows).mean(1)
    assert (each if own else each.mean()).detach().numpy() == pytest.approx(1.0)
    maps = k.raw_weights.detach().view(-1, *k.map_shape)
    assert maps.mean((1, 2)).abs().max() < 1e-9
    assert (maps[:, 1:] * maps[:, :-1]).mean() > 0.5  # neighbors are alike
    again = k.start(rows, 5, torch.Generator().manual_seed(0))
    assert torch.equal(z, again)
    assert torch.equal(maps, k.raw_weights.detach().view_as(maps))
    assert bool((z.unsqueeze(2) == rows.patches).all(-1).any(-1).all())  # patches of the data


def test_a_patch_as_large_as_the_image_is_the_plain_kernel() -> None:
    k = PatchKernel(5, 5, 5)
    x = images(4, 25)
    rows = k.prepare(x)
    z = k.start(rows, 2, torch.Generator().manual_seed(0))
    K = torch.exp(-0.5 * (z[0].unsqueeze(1) - x).square().sum(-1))
    assert torch.allclose(k.cross(z, rows)[0].abs(), K)
    assert torch.allclose(k.diagonal(rows), torch.ones(1, 4).double())


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(BadInput, match="Patches of 7 x 7 do not fit images of 6 x 5"):
        PatchKernel(6, 5, 7)
    with pytest.raises(BadInput, match="have 30 columns; got 31"):
        kernel().prepare(images(2, 31))
    spoilt = images(3, 30)
    spoilt[1, 4] = torch.nan
    with pytest.raises(BadInput, match="Image 1 has a pixel that is not a finite number"):
        kernel().prepare(spoilt)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("levels", [BLACK_AND_WHITE, FEW, GREY])
def test_a_gpu_gives_what_the_processor_gives(levels: int) -> None:
    k = kernel()
    rows = k.prepare(images(9, 30, levels))
    z = k.start(rows, 3, torch.Generator().manual_seed(0))
    here = [k.diagonal(rows), k.cross(z, rows), k.inducing(z)]
    k, rows, z = k.cuda(), rows.to("cuda"), z.cuda()
    there = [k.diagonal(rows), k.cross(z, rows), k.inducing(z)]
    assert all(torch.allclose(a, b.cpu(), atol=1e-10) for a, b in zip(here, there))
