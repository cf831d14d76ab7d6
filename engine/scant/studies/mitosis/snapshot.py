"""Arrays for the page of a model in its current state (see the catalog)."""

from __future__ import annotations

import numpy as np

from scant.studies.mitosis import covariances
from scant.studies.mitosis import splits as rows
from scant.studies.mitosis.entry import PAIRS, SHOWN, STRIP
from scant.studies.mitosis.fitted import FittedMitosis
from scant.studies.protocol import to_numpy


def snapshot(fitted: FittedMitosis) -> dict[str, np.ndarray]:
    """Latent positions, relevance, covariances, and generated rows of images."""
    model, label = fitted.model, fitted.data.label[fitted.data.train]
    visible, pairs = rows.shown(label, SHOWN), rows.shown(label, PAIRS)
    mean, std = (to_numpy(t) for t in model.latent())
    return {
        "latent_mean": mean[visible],
        "latent_std": std[visible],
        "latent_class": label[visible],
        "relevance": to_numpy(model.relevance()),
        **covariances.shown(model, pairs, label[pairs]),
        **_strip(fitted),
    }


def _strip(fitted: FittedMitosis) -> dict[str, np.ndarray]:
    """Generated and real images of each class, in discrete gray levels, which compress well."""
    data = fitted.data
    if data.image is None:
        none = np.empty((0, 0, 0)), np.empty(0, dtype=np.int64)
        return dict(zip(("generated", "generated_class", "real", "real_class"), none * 2))
    generated = [fitted.generate(c, STRIP, data.settings.seed) for c in range(data.n_classes)]
    real = data.train[rows.shown(data.label[data.train], STRIP * data.n_classes)]
    return {
        "generated": np.concatenate(generated),
        "generated_class": np.repeat(np.arange(data.n_classes), STRIP),
        "real": np.stack([data.picture(row) for row in real.tolist()]),
        "real_class": data.label[real],
    }
