"""Features of patches: color, HOG and LBP, or a network pretrained on ImageNet.

For the handcrafted features, a patch is resized to 96 x 96 pixels and divided into cells of 8 x 8.
Each cell has mean and standard deviation in CIELAB (relative to the patch, to reduce the effect of
light and soil), a histogram of oriented gradients (Dalal & Triggs 2005) and a histogram of uniform
local binary patterns (Ojala et al. 2002), both from scikit-image. Six order statistics of each
quantity over the cells are kept, since objects are small and may be anywhere in the patch.
Network features are the 1,280 of EfficientNet-Lite0 (`efficientnet`; the extra `vision`), alone or
with the handcrafted ones, or the 2,048 before the last layer of InceptionV3 (Szegedy et al. 2016),
as published, which require torchvision (the extra `inception`) and a download of weights.
Features are cached in the data directory under the hash of the images; those of the example patches
are part of the package.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from scant.data_dir import data_dir, write_atomically
from scant.errors import BadInput
from scant.package_data import package_file
from scant.tables.images.kinds import HANDMADE, INCEPTION, JOINED, KINDS, NETWORK
from scant.tables.images.pixels import pixels

SIDE, CELL = 96, 8  # pixels of a resized patch and of a cell
RANKS = (0.0, 0.06, 0.5, 0.75, 0.94, 1.0)  # quantile levels over the cells
HUES = 8  # bins of the histogram of hues
COLORS, GRADIENTS, PATTERNS = "colors", "gradients", "binary patterns"
QUANTITIES = (COLORS,) * 6 + (GRADIENTS,) * 9 + (PATTERNS,) * 10 + (GRADIENTS,)  # of a cell
GROUPS = np.array([*QUANTITIES * len(RANKS), *(COLORS,) * HUES])  # of the handcrafted features
FLAT = 2.0  # added to the CIELAB deviation, so that uniform patches are not amplified
VERSION = 1  # of the features; raise it after changes to invalidate the cache


def features(
    images: Sequence[bytes], kind: str = HANDMADE, folder: Path | None = None
) -> Float[np.ndarray, "n d"]:
    """Compute features of image files, or read them from the cache or the package.

    Args:
        images: JPEG or PNG files.
        kind: One of `KINDS`.
        folder: Data directory; by default that of the user.

    Raises:
        BadInput: The package or weights of a network are not installed.
    """
    if kind not in KINDS:
        raise BadInput(f"There are no features {kind!r}; choose one of {'; '.join(KINDS)}.")
    if kind == JOINED:
        return np.hstack([features(images, part, folder) for part in (NETWORK, HANDMADE)])
    return kept(content_hash(images, kind), len(images), lambda: MAKERS[kind](images), folder)


def of_gray(images: Float[np.ndarray, "n h w"]) -> Float[np.ndarray, "n 1280"]:
    """Compute EfficientNet-Lite0 features of gray images in [0, 1].

    Raises:
        BadInput: The weights are not installed.
    """
    from scant.tables.images.efficientnet import embed

    colored = (np.repeat(255 * image[..., None], 3, axis=2) for image in images)
    return kept_of_gray("gray", images, lambda: embed(list(colored)))


def kept_of_gray(
    name: str, images: Float[np.ndarray, "n h w"], make: Callable[[], Float[np.ndarray, "n d"]]
) -> Float[np.ndarray, "n d"]:
    """Return cached features of gray images, computed by `make` if needed."""
    digest = hashlib.sha256(f"{name} {NETWORK} {VERSION} {images.shape}".encode())
    digest.update(np.ascontiguousarray(images, np.float32).tobytes())
    return kept(digest.hexdigest(), len(images), make)


def kept(
    digest: str,
    count: int,
    make: Callable[[], Float[np.ndarray, "n d"]],
    folder: Path | None = None,
) -> Float[np.ndarray, "n d"]:
    """Return the cached features of `count` images, computed by `make` if needed."""
    name = f"{digest}.npy"
    path = (folder or data_dir()) / "features" / name
    for source in (path, package_file("features", name)):
        cached = _load_cached(source) if source.is_file() else None
        if cached is not None and len(cached) == count:
            return cached
    computed = make().astype(np.float32).astype(np.float64)  # precision of the cache
    out = io.BytesIO()
    np.save(out, computed.astype(np.float32), allow_pickle=False)
    write_atomically(path, out.getvalue())
    return computed


def _load_cached(source: Traversable) -> Float[np.ndarray, "n d"] | None:
    """Read cached features; None if the file is damaged."""
    try:
        with source.open("rb") as file:
            return np.load(file, allow_pickle=False).astype(np.float64)
    except (OSError, ValueError, EOFError):
        return None


def content_hash(images: Sequence[bytes], kind: str) -> str:
    """Return the cache key of the features of images."""
    digest = hashlib.sha256(f"{kind} {VERSION}".encode())
    for image in images:
        digest.update(hashlib.sha256(image).digest())
    return digest.hexdigest()


def handmade(images: Sequence[bytes]) -> Float[np.ndarray, "n d"]:
    """Compute color, HOG and LBP features of images."""
    return np.array([_of(pixels(image, SIDE)) for image in images])


def _of(image: UInt8[np.ndarray, "h w 3"]) -> Float[np.ndarray, " d"]:
    from skimage.color import rgb2hsv, rgb2lab
    from skimage.feature import hog, local_binary_pattern

    lab = rgb2lab(image)
    gray = lab[..., 0]
    normalized = (lab - np.median(lab, (0, 1))) / (lab.std((0, 1)) + FLAT)
    color = _cells(normalized)
    orientations = hog(gray, 9, (CELL, CELL), (1, 1), feature_vector=False)[:, :, 0, 0]
    steepness = _cells(np.hypot(*np.gradient(gray))[..., None]).mean((1, 3))
    steepness = steepness / (steepness.mean() + 1)
    gray_levels = np.round(2.55 * gray).astype(np.uint8)
    pattern = local_binary_pattern(gray_levels, 8, 2, "uniform").astype(int)
    patterns = _cells(np.eye(10)[pattern]).mean((1, 3))
    parts = [color.mean((1, 3)), color.std((1, 3)), orientations * steepness, patterns, steepness]
    hue = np.histogram(rgb2hsv(image)[..., 0], HUES, (0.0, 1.0))[0] / SIDE**2
    return np.concatenate([_ranks(np.concatenate(parts, axis=-1)), np.sqrt(hue)])


def _cells(values: Float[np.ndarray, "h w k"]) -> Float[np.ndarray, "c a c a k"]:
    count = SIDE // CELL
    return values.reshape(count, CELL, count, CELL, values.shape[-1])


def _ranks(cells: Float[np.ndarray, "c c k"]) -> Float[np.ndarray, " m"]:
    """Return quantiles of each quantity over the cells."""
    ordered = np.sort(cells.reshape(-1, cells.shape[-1]), axis=0)
    return ordered[[round(rank * (len(ordered) - 1)) for rank in RANKS]].ravel()


def network(images: Sequence[bytes]) -> Float[np.ndarray, "n 1280"]:
    """Compute the features before the last layer of EfficientNet-Lite0, trained on ImageNet.

    Raises:
        BadInput: The weights are not installed.
    """
    from scant.tables.images.efficientnet import embed

    return embed([pixels(image) for image in images])


def inception(images: Sequence[bytes]) -> Float[np.ndarray, "n d"]:
    """Compute the 2,048 features before the last layer of InceptionV3, trained on ImageNet.

    Raises:
        BadInput: torchvision is not installed, or the weights cannot be downloaded.
    """
    try:
        import torch
        from torchvision.models import Inception_V3_Weights, inception_v3
    except ImportError:
        raise BadInput(
            'InceptionV3 needs torchvision: pip install "scant-gp[inception]", or choose the '
            f"features {HANDMADE!r}, which need no further package."
        ) from None
    try:
        weights = Inception_V3_Weights.IMAGENET1K_V1
        model = inception_v3(weights=weights).eval()
    except Exception as error:  # the downloader raises many kinds
        raise BadInput(
            f"The weights of InceptionV3 are not on this machine and cannot be fetched ({error}); "
            f"choose the features {HANDMADE!r}, which need none."
        ) from None
    model.fc = torch.nn.Identity()
    prepare = weights.transforms()
    results = []
    with torch.no_grad():
        for begin in range(0, len(images), 16):
            batch = [
                torch.as_tensor(pixels(i).copy()).permute(2, 0, 1)
                for i in images[begin : begin + 16]
            ]
            results.append(model(torch.stack([prepare(b) for b in batch])).double().numpy())
    return np.concatenate(results)


MAKERS: dict[str, Callable[[Sequence[bytes]], Float[np.ndarray, "n _"]]] = {
    HANDMADE: handmade,
    NETWORK: network,
    INCEPTION: inception,
}
