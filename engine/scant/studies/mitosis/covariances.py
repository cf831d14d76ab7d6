"""Covariances between rows by part of the kernel, with and without the common part."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.models.gplvm.sclvm import SCLVM
from scant.studies.mitosis import models


def shown(
    model: models.Model, rows: Int[np.ndarray, " k"], label: Int[np.ndarray, " k"]
) -> dict[str, np.ndarray]:
    """Return the arrays of a snapshot, with rows sorted by class and by largest variation.

    Args:
        model: Model of all training rows.
        rows: Rows to display.
        label: Classes of these rows.
    """
    device = next(model.parameters()).device
    result = models.covariances(model, torch.as_tensor(rows).to(device)).detach().cpu().numpy()
    centered = apart(result, label, isinstance(model, SCLVM))
    order = ordered(centered[2], label)
    return {
        "covariance": np.round(result[:, order][:, :, order], 3),
        "covariance_apart": np.round(centered[:, order][:, :, order], 3),
        "covariance_class": label[order],
    }


def apart(
    matrices: Float[np.ndarray, "3 k k"], label: Int[np.ndarray, " k"], parts: bool
) -> Float[np.ndarray, "3 k k"]:
    """Covariances of f minus its mean over the rows.

    With a long lengthscale the mean dominates, and all covariances are nearly equal. The mean of
    the shared part is over all rows, that of the private part over the rows of each class.

    Args:
        matrices: Shared part, private part, sum.
        label: The class of each row.
        parts: True if there is a private part; otherwise the mean of the sum is over all rows.
    """
    ones, same_class = np.ones(len(label)), (label[:, None] == label[None]).astype(float)
    center = np.eye(len(label)) - np.outer(ones, ones) / len(label)
    center_within = np.eye(len(label)) - same_class / same_class.sum(1)
    if not parts:
        whole = center @ matrices[2] @ center
        return np.stack([whole, np.zeros_like(whole), whole])
    shared, private = center @ matrices[0] @ center, center_within @ matrices[1] @ center_within
    return np.stack([shared, private, shared + private])


def ordered(total: Float[np.ndarray, "k k"], label: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
    """Sort rows by class, and within a class along its covariance's leading eigenvector."""
    order = []
    for c in dict.fromkeys(label.tolist()):
        class_rows = np.flatnonzero(label == c)
        direction = np.linalg.eigh(total[np.ix_(class_rows, class_rows)])[1][:, -1]
        direction = direction * (
            1 if (direction**3).sum() >= 0 else -1
        )  # an eigenvector's sign is arbitrary
        order.append(class_rows[np.argsort(direction, kind="stable")])
    return np.concatenate(order) if order else np.empty(0, int)
