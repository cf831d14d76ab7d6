"""A fitted GPz in other coordinates of its inputs.

A study may train on linear combinations of the measurements (colors, for magnitudes), because
L-BFGS converges faster there. A missing measurement is missing in the original coordinates, so
predictions use the same function in those.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.basis import Covariance
from scant.models.gpz.completion import WIDE
from scant.models.gpz.model import GPz


@torch.no_grad()
def in_coordinates(model: GPz, T: Float[Tensor, "q d"]) -> GPz:
    """The same fitted function of x, where `model` is a function of z = T x.

    Basis functions exp(-|Gamma (T x - mu)|^2 / 2) have centres T^-1 mu and metric Gamma T: in
    general a full covariance each, so the result is of structure VC. The posterior of the linear
    mean a' T x moves to T' a. Where T is a projection, or there are too many inputs for a matrix
    of each basis function, the result keeps its coordinates and T. The density of the inputs is
    not carried over.
    """
    m, d = model.centres.shape
    keeps = T.shape[1] > WIDE or len(T) < T.shape[1]
    structure = structure_of(own_gamma(model)) if keeps else "VC"
    moved = GPz(
        d,
        m,
        structure,
        model.heteroscedastic,
        model.joint_mean,
        model.centres.dtype,
        T.clone() if keeps else None,
    )
    moved.to(model.centres.device)
    if keeps:
        for name, value in model.named_parameters():
            if name != "gamma":
                moved.get_parameter(name).copy_(value)
        moved.gamma.copy_(own_gamma(model))
        moved.weight_mean.copy_(model.weight_mean)
        moved.weight_factor.copy_(model.weight_factor)
        return moved
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


def own_gamma(model: GPz) -> Float[Tensor, "m d"] | Float[Tensor, "m d d"]:
    """Gamma of every basis function: its diagonal, or a matrix where the structure has one."""
    if model.covariance[1] == "C":
        return full_gamma(model)
    size = model.gamma.unsqueeze(-1) if model.covariance[1] == "L" else model.gamma
    return size.expand(model.centres.shape)


def structure_of(gamma: Tensor) -> Covariance:
    """The structure with such numbers for every basis function, as `own_gamma` gives them."""
    return "VD" if gamma.dim() == 2 else "VC"


def full_gamma(model: GPz) -> Float[Tensor, "m d d"]:
    """Gamma of every basis function as a matrix, whatever the structure."""
    m, d = model.centres.shape
    eye = torch.eye(d, dtype=model.centres.dtype, device=model.centres.device)
    if model.covariance[1] == "C":
        return model.gamma.expand(m, d, d)
    size = model.gamma.unsqueeze(-1) if model.covariance[1] == "L" else model.gamma
    return (size.unsqueeze(-1) * eye).expand(m, d, d)
