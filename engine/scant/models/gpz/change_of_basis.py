"""Change of input coordinates of a fitted GPz.

Training on linear combinations of the measurements (colors instead of magnitudes) converges faster
with L-BFGS. Values are missing in the original coordinates, so the fitted function is transformed
back for predictions.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.basis import Covariance
from scant.models.gpz.completion import MAX_DENSE_INPUTS
from scant.models.gpz.model import GPz


@torch.no_grad()
def in_coordinates(model: GPz, T: Float[Tensor, "q d"]) -> GPz:
    """Express a fitted function of z = T x as a function of x.

    Basis functions exp(-|Gamma (T x - mu)|^2 / 2) have centers T^-1 mu and metric Gamma T, in
    general a full covariance each, so the result has structure VC. The linear mean a' T x gets the
    slopes T' a. If T is a projection, or there are too many inputs for full covariances, the result
    keeps its coordinates and stores T. The density of the inputs is not transferred.
    """
    m, d = model.centres.shape
    keep_coordinates = T.shape[1] > MAX_DENSE_INPUTS or len(T) < T.shape[1]
    structure = structure_of(own_gamma(model)) if keep_coordinates else "VC"
    result = GPz(
        d,
        m,
        structure,
        model.heteroscedastic,
        model.joint_mean,
        model.centres.dtype,
        T.clone() if keep_coordinates else None,
        noise_link=model.noise_link,
    )
    result.to(model.centres.device)
    if keep_coordinates:
        for name, value in model.named_parameters():
            if name != "gamma":
                result.get_parameter(name).copy_(value)
        result.gamma.copy_(own_gamma(model))
        result.weight_mean.copy_(model.weight_mean)
        result.weight_factor.copy_(model.weight_factor)
        return result
    result.centres.copy_(torch.linalg.solve(T, model.centres.T).T)
    result.gamma.copy_(full_gamma(model) @ T)
    result.log_alpha.copy_(model.log_alpha)
    result.b.copy_(model.b)
    if model.heteroscedastic:
        result.v.copy_(model.v)
        result.log_tau.copy_(model.log_tau)
    mean, factor = model.weight_mean.clone(), model.weight_factor.clone()
    if model.joint_mean:
        mean[m : m + d] = T.T @ mean[m : m + d]
        factor[m : m + d] = T.T @ factor[m : m + d]
    result.weight_mean.copy_(mean)
    result.weight_factor.copy_(factor)
    return result


def own_gamma(model: GPz) -> Float[Tensor, "m d"] | Float[Tensor, "m d d"]:
    """Gamma of every basis function: a matrix for structure C, else its diagonal."""
    if model.covariance[1] == "C":
        return full_gamma(model)
    size = model.gamma.unsqueeze(-1) if model.covariance[1] == "L" else model.gamma
    return size.expand(model.centres.shape)


def structure_of(gamma: Tensor) -> Covariance:
    """Variable (V) structure that matches the output of `own_gamma`."""
    return "VD" if gamma.dim() == 2 else "VC"


def full_gamma(model: GPz) -> Float[Tensor, "m d d"]:
    """Gamma of every basis function as a full matrix."""
    m, d = model.centres.shape
    eye = torch.eye(d, dtype=model.centres.dtype, device=model.centres.device)
    if model.covariance[1] == "C":
        return model.gamma.expand(m, d, d)
    size = model.gamma.unsqueeze(-1) if model.covariance[1] == "L" else model.gamma
    return (size.unsqueeze(-1) * eye).expand(m, d, d)
