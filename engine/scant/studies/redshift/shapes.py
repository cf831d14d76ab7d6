"""Shapes of basis functions: models of a shape, and their free and tied parameters."""

from __future__ import annotations

import torch
from torch import Tensor

from scant.models.gpz.change_of_basis import full_gamma, own_gamma, structure_of
from scant.models.gpz.completion import MAX_DENSE_INPUTS
from scant.models.gpz.model import GPz
from scant.studies.protocol import Tensors
from scant.studies.redshift.growth_budget import FREE, NOISY, TIED
from scant.studies.redshift.settings import RedshiftSettings


def new_model(
    s: RedshiftSettings, inputs: int, device: torch.device, n_basis: int, shape: str
) -> GPz:
    """Return a new model with basis functions of a shape."""
    model = GPz(inputs, n_basis, shape, s.heteroscedastic, s.joint_mean).to(device)
    if s.tie_precisions:
        tie(model, NOISY)
    return model


def stored_model(state: Tensors, s: RedshiftSettings) -> GPz:
    """Restore a model from its state."""
    m, d = state["centres"].shape
    projection = state.get("projection")
    empty = None if projection is None else torch.empty_like(projection)
    kind = structure_of(state["gamma"]), s.heteroscedastic, s.joint_mean
    model = GPz(d, m, *kind, projection=empty)
    for name in ("mixture_log_weights", "mixture_means", "mixture_precisions"):
        setattr(model, name, torch.empty_like(state[name]))
    model.load_state_dict(state)
    return model


def tie(model: GPz, free: int) -> None:
    """Restrict a model to the free parameters of a stage (see `Stage`).

    Gradients of tied parameters are averaged, so that equal values stay equal.
    """
    if free == FREE:
        return
    m, slopes = len(model.centres), len(model.log_alpha) - len(model.centres) - 1

    def averaged(gradient: Tensor) -> Tensor:
        groups = gradient.split([m, slopes, 1] if model.joint_mean else [m])
        return torch.cat([g.mean().expand(len(g)) for g in groups])

    model.log_alpha.register_hook(averaged)
    if model.heteroscedastic:
        model.log_tau.register_hook(lambda g: g.mean().expand(len(g)))
        if free == TIED:
            model.v.register_hook(torch.zeros_like)
            model.log_tau.register_hook(torch.zeros_like)


def parameters_of(model: GPz) -> Tensors:
    """Free parameters, with Gamma as a full matrix for each basis function.

    With many inputs these matrices would be most of a checkpoint, so Gamma is as full as the shape.
    """
    many_inputs = model.centres.shape[1] > MAX_DENSE_INPUTS
    return {
        **dict(model.named_parameters()),
        "gamma": own_gamma(model) if many_inputs else full_gamma(model),
    }


@torch.no_grad()
def take(model: GPz, parameters: Tensors) -> None:
    """Copy parameters of the same or a coarser shape into a model."""
    for name, value in model.named_parameters():
        source = parameters[name].to(value.device)
        value.copy_(narrow(source, model.covariance) if name == "gamma" else source)


def shape_of(model: GPz) -> str:
    """The coarsest shape of the basis functions."""
    gamma = own_gamma(model)
    diagonal = gamma if gamma.dim() == 2 else gamma.diagonal(dim1=1, dim2=2)
    if gamma.dim() == 3 and not torch.equal(gamma, torch.diag_embed(diagonal)):
        free = "C"
    else:
        free = "L" if torch.equal(diagonal, diagonal[:, :1].expand_as(diagonal)) else "D"
    return ("G" if torch.equal(gamma, gamma[:1].expand_as(gamma)) else "V") + free


def narrow(gamma: Tensor, covariance: str) -> Tensor:
    """Reduce matrices or diagonals, of the same or a coarser shape, to Gamma of a shape."""
    if covariance[1] == "C":
        gamma = torch.diag_embed(gamma) if gamma.dim() == 2 else gamma
    else:
        gamma = gamma.diagonal(dim1=-2, dim2=-1) if gamma.dim() == 3 else gamma
        gamma = gamma[:, 0] if covariance[1] == "L" else gamma
    return gamma[0] if covariance[0] == "G" else gamma
