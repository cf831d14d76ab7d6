"""Settings and tables of views that the tests of the multiview study share."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import torch

from tests.engine.studies import studying

CPU = torch.device("cpu")
settings = partial(studying.settings, "multiview")


def looks(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Three views: of two hidden numbers one each, bent, and of nothing."""
    hidden = rng.uniform(-1.5, 1.5, (n, 2))
    shape = np.stack([hidden[:, 0], hidden[:, 0] ** 2, rng.normal(size=n)], 1)
    color = np.stack([np.sin(2 * hidden[:, 1]), hidden[:, 1]], 1)
    x = np.concatenate([shape, color, rng.normal(size=(n, 2))], 1)
    names = ["shape.a", "shape.b", "shape.c", "colour.a", "colour.b", "noise.a", "noise.b"]
    x[:, :5] += rng.normal(0, 0.1, (n, 5))
    return pd.DataFrame(x.round(4), columns=names), hidden


def classes() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, hidden = looks(rng, 180)
    p = 1 / (1 + np.exp(-6 * (hidden[:, 0] ** 2 + hidden[:, 1] - 1.3)))
    label = np.where(rng.uniform(size=180) < p, "event", "other").astype(object)
    return x.assign(label=label, group=[f"film {i % 6}" for i in range(180)])


def values() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x, hidden = looks(rng, 160)
    y = np.exp(0.6 * hidden[:, 0] ** 2 + 0.5 * hidden[:, 1] + rng.normal(0, 0.15, 160))
    return x.assign(y=y)


def lives() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    stage = rng.uniform(-1.5, 1.5, 40)
    owner = np.repeat(np.arange(40), 5)
    x = np.stack([stage[owner], np.sin(stage[owner]), rng.normal(size=200)], 1)
    x[:, :2] += rng.normal(0, 0.5, (200, 2))
    lived = np.exp(3 - 0.8 * stage + rng.normal(0, 0.25, 40))
    observed = rng.uniform(5, 120, 40)
    head = {
        "patient": [f"patient {i}" for i in owner],
        "time": np.minimum(lived, observed)[owner].round(1),
        "event": (lived <= observed).astype(int)[owner],
    }
    return pd.DataFrame({**head, "cell.a": x[:, 0], "cell.b": x[:, 1], "dye.a": x[:, 2]})
