"""A small convolutional network on patches, the baseline that learns its features itself.

Yousefi (2021, section 4.5) fine-tuned InceptionV3 on as many patches, ten times augmented, as a
baseline of the active GP. Here a network of three convolutions is trained from random weights, on
mirrored, turned and shifted copies, so that it needs neither a download nor a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from scant.tables.images.pixels import pixels

SIDE = 64  # pixels
WIDTHS = (16, 32, 64)
EPOCHS, BATCH = 40, 32
SECONDS = 25.0  # after which training ends
RATE, DECAY = 3e-3, 1e-3
SHIFT = 8  # pixels of a random shift at most

Predict = Callable[[Sequence[bytes]], Int[np.ndarray, " m"]]


def trained(
    images: Sequence[bytes],
    label: Int[np.ndarray, " n"],
    classes: int,
    seed: int = 0,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.process_time,
) -> Predict:
    """A network of labeled patches, as a function from patches to classes.

    Classes weigh alike in the loss, however few rows they have.

    Args:
        images: JPEG or PNG files.
        label: Classes of them, 0 ... classes - 1.
        classes: How many there are.
        seed: Of weights, order and copies.
        seconds: After which training ends.
        clock: Seconds so far.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _network(classes)
    x, y = _pixels(images), torch.as_tensor(np.asarray(label), dtype=torch.long)
    center, scale = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True) + 1e-3
    x = (x - center) / scale
    count = torch.bincount(y, minlength=classes).clamp(min=1).float()
    weight = count.sum() / (classes * count)
    steps = EPOCHS * -(-len(x) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    begun = clock()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            optimizer.zero_grad()
            told = model(_copies(x[rows], generator))
            F.cross_entropy(told, y[rows], weight, label_smoothing=0.05).backward()
            optimizer.step()
            schedule.step()
        if clock() - begun > seconds:
            break
    model.eval()

    @torch.no_grad()
    def predict(new: Sequence[bytes]) -> Int[np.ndarray, " m"]:
        if not len(new):
            return np.empty(0, dtype=np.int64)
        parts = ((_pixels(new) - center) / scale).split(256)
        result: np.ndarray = torch.cat([model(part).argmax(1) for part in parts]).numpy()
        return result

    return predict


def _network(classes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for given, made in zip((3, *WIDTHS), WIDTHS):
        layers += [nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    last = [nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(WIDTHS[-1], classes)]
    return nn.Sequential(*layers, *last)


def _pixels(images: Sequence[bytes]) -> Float[Tensor, "n 3 s s"]:
    stacked = np.stack([pixels(image, SIDE) for image in images])
    return torch.from_numpy(stacked).permute(0, 3, 1, 2).float() / 255


def _copies(x: Float[Tensor, "b 3 s s"], generator: torch.Generator) -> Float[Tensor, "b 3 s s"]:
    """Mirrored, turned by a quarter, shifted and lit at random, each by itself."""
    n = len(x)
    draw = torch.rand(n, 5, generator=generator)
    made = torch.where((draw[:, 0] < 0.5)[:, None, None, None], x.flip(3), x)
    turned = made.transpose(2, 3)
    made = torch.where((draw[:, 1] < 0.5)[:, None, None, None], turned, made)
    made = made * (0.8 + 0.4 * draw[:, 2])[:, None, None, None]
    padded = F.pad(made, (SHIFT,) * 4, mode="reflect")
    at = (draw[:, 3:] * (2 * SHIFT + 1)).long().tolist()
    side = x.shape[-1]
    return torch.stack([one[:, i : i + side, j : j + side] for one, (i, j) in zip(padded, at)])
