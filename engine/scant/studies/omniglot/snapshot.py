"""Arrays on the page of a model at its present state (see the catalog)."""

from __future__ import annotations

import numpy as np

from scant.studies.omniglot import coregionalization as matrices
from scant.studies.omniglot import models
from scant.studies.omniglot import preprocessing as rows
from scant.studies.omniglot.fitted import FittedOmniglot
from scant.studies.protocol import to_numpy

PATCHES = 40  # inducing patches that are shown
DRAWS = 64  # samples of the latent functions


def snapshot(fitted: FittedOmniglot) -> dict[str, np.ndarray]:
    """Accuracy, coregionalization, inducing patches and examples of the held-out rows."""
    data = fitted.data
    query = rows.some(data.test, data.observed.output[data.test], rows.AT_ONCE)
    predictive = fitted.predictive(query, draws=DRAWS)
    return {
        "accuracy": rows.accuracy(data.observed, query, predictive.point),
        **_coregionalization(fitted),
        **_patches(fitted),
        **rows.examples(data.observed, data.image, query, predictive.probabilities),
    }


def _coregionalization(fitted: FittedOmniglot) -> dict[str, np.ndarray]:
    """Coregionalization of the classes on the page, and of the outputs over all classes."""
    factors = fitted.factors()
    visible = factors[:, rows.shown(fitted.data.observed)]
    latent, correlation = matrices.largest(factors), matrices.correlation(visible)
    return {
        "latent": latent,
        "shown_B": matrices.blocks(visible, latent),
        "correlation": correlation,
        "order": matrices.alike(correlation),
        "global": matrices.between_outputs(factors, fitted.data.sizes),
    }


def _patches(fitted: FittedOmniglot) -> dict[str, np.ndarray]:
    """Inducing patches with the largest posterior weights."""
    if fitted.data.metadata["kernel"] != "patch":
        return {"patches": np.empty((0, 0, 0)), "patches_weight": np.empty(0)}
    z, influence = (to_numpy(v) for v in models.inducing_patches(fitted.model))
    largest = np.argsort(-influence, kind="stable")[:PATCHES]
    side = round(z.shape[1] ** 0.5)
    return {"patches": z[largest].reshape(-1, side, side), "patches_weight": influence[largest]}
