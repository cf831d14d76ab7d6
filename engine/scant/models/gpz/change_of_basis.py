"""A fitted GPz in other coordinates of its inputs.

A study may train on linear combinations of the measurements (colors, for magnitudes), because
L-BFGS converges faster there. A missing measurement is missing in the original coordinates, so
predictions use the same function in those.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.model import GPz


@torch.no_grad()
def in_coordinates(model: GPz, T: Float[Tensor, "d d"]) -> GPz:
    """The same fitted function of x, where `model` is a function of z = T x.

    Basis functions exp(-|Gamma (T x - mu)|^2 / 2) have centres T^-1 mu and metric Gamma T: in
    general a full covariance each, so the result is of structure VC. The posterior of the linear
    mean a' T x moves to T' a. The density of the inputs is not carried over.
    """
    m, d = model.centres.shape
    moved = GPz(d, m, "VC", model.heteroscedastic, model.joint_mean, dtype=model.centres.dtype)
    moved.to(model.centres.device)
    moved.centres.copy_(torch.linalg.solve(T, model.centres.T).T)
    moved.gamma.copy_(full_gamma(model) @ T)
    moved.log_alpha.copy_(model.log_alpha)
    moved.b.copy_(model.b)
    if model.heteroscedastic:
        moved.v.copy_(model.v)
        moved.log_tau.copy_(model.log_tau)
    mean, factor = model.weight_mean.clone(), model.weight_factor.clone()
    if model.joint_mean:
        mean[m : m + d] = T.T @ mean[m : m + d]
        factor[m : m + d] = T.T @ factor[m : m + d]
    moved.weight_mean.copy_(mean)
    moved.weight_factor.copy_(factor)
    return moved


def full_gamma(model: GPz) -> Float[Tensor, "m d d"]:
    """Gamma of every basis function as a matrix, whatever the structure."""
    m, d = model.centres.shape
    eye = torch.eye(d, dtype=model.centres.dtype, device=model.centres.device)
    if model.covariance[1] == "C":
        return model.gamma.expand(m, d, d)
    size = model.gamma.unsqueeze(-1) if model.covariance[1] == "L" else model.gamma
    return (size.unsqueeze(-1) * eye).expand(m, d, d)
