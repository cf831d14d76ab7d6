"""Covariances of some rows by part of the kernel, with and without the common part."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.models.gplvm.sclvm import SCLVM
from scant.studies.mitosis import models


def shown(
    model: models.Model, rows: Int[np.ndarray, " k"], label: Int[np.ndarray, " k"]
) -> dict[str, np.ndarray]:
    """The arrays of a snapshot: rows class by class, and within a class along what varies most.

    Args:
        model: Of all rows that are learned from.
        rows: Those that are shown.
        label: Their classes.
    """
    device = next(model.parameters()).device
    result = models.covariances(model, torch.as_tensor(rows).to(device)).detach().cpu().numpy()
    beyond = apart(result, label, isinstance(model, SCLVM))
    order = ordered(beyond[2], label)
    return {
        "covariance": np.round(result[:, order][:, :, order], 3),
        "covariance_apart": np.round(beyond[:, order][:, :, order], 3),
        "covariance_class": label[order],
    }


def apart(
    matrices: Float[np.ndarray, "3 k k"], label: Int[np.ndarray, " k"], parts: bool
) -> Float[np.ndarray, "3 k k"]:
    """Covariances once what rows have in common is left out: of f less its mean over them.

    Where a kernel is long, rows covary by what they have in common, all nearly alike. Of the shared
    part the mean is over all rows, of the private one over those of each class; the sum is of both.

    Args:
        matrices: Shared part, private part, sum.
        label: The class of each row.
        parts: Whether there is a private part; without, the whole is taken over all rows.
    """
    every, same = np.ones(len(label)), (label[:, None] == label[None]).astype(float)
    all_rows = np.eye(len(label)) - np.outer(every, every) / len(label)
    own = np.eye(len(label)) - same / same.sum(1)
    if not parts:
        whole = all_rows @ matrices[2] @ all_rows
        return np.stack([whole, np.zeros_like(whole), whole])
    shared, private = all_rows @ matrices[0] @ all_rows, own @ matrices[1] @ own
    return np.stack([shared, private, shared + private])


def ordered(total: Float[np.ndarray, "k k"], label: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
    """Rows class by class, and within a class along its covariance's first eigenvector."""
    order = []
    for c in dict.fromkeys(label.tolist()):
        own = np.flatnonzero(label == c)
        along = np.linalg.eigh(total[np.ix_(own, own)])[1][:, -1]
        along = along * (1 if (along**3).sum() >= 0 else -1)  # an eigenvector's sign is anybody's
        order.append(own[np.argsort(along, kind="stable")])
    return np.concatenate(order) if order else np.empty(0, int)
