"""Small convolutional network on patches, a baseline that learns its features.

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
SECONDS = 25.0  # time limit of training
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
    """Train a network on labeled patches; return a function from patches to classes.

    Classes have equal weights in the loss, however few rows they have.

    Args:
        images: JPEG or PNG files.
        label: Their classes, 0 ... classes - 1.
        classes: Number of classes.
        seed: Seed of weights, order and copies.
        seconds: Time limit of training.
        clock: Function that returns seconds.
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
    start = clock()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            optimizer.zero_grad()
            logits = model(_copies(x[rows], generator))
            F.cross_entropy(logits, y[rows], weight, label_smoothing=0.05).backward()
            optimizer.step()
            schedule.step()
        if clock() - start > seconds:
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
    for n_in, n_out in zip((3, *WIDTHS), WIDTHS):
        layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    last = [nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(WIDTHS[-1], classes)]
    return nn.Sequential(*layers, *last)


def _pixels(images: Sequence[bytes]) -> Float[Tensor, "n 3 s s"]:
    stacked = np.stack([pixels(image, SIDE) for image in images])
    return torch.from_numpy(stacked).permute(0, 3, 1, 2).float() / 255


def _copies(x: Float[Tensor, "b 3 s s"], generator: torch.Generator) -> Float[Tensor, "b 3 s s"]:
    """Mirror, turn by a quarter, shift and light each image at random."""
    n = len(x)
    draw = torch.rand(n, 5, generator=generator)
    copies = torch.where((draw[:, 0] < 0.5)[:, None, None, None], x.flip(3), x)
    turned = copies.transpose(2, 3)
    copies = torch.where((draw[:, 1] < 0.5)[:, None, None, None], turned, copies)
    copies = copies * (0.8 + 0.4 * draw[:, 2])[:, None, None, None]
    padded = F.pad(copies, (SHIFT,) * 4, mode="reflect")
    at = (draw[:, 3:] * (2 * SHIFT + 1)).long().tolist()
    side = x.shape[-1]
    return torch.stack([one[:, i : i + side, j : j + side] for one, (i, j) in zip(padded, at)])
