"""Final models of growth, with means and noise rescaled by rows that each has not seen."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from scant.models.gpz.change_of_basis import structure_of
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction
from scant.studies.protocol import Tensors, part
from scant.studies.redshift.fold import Fold, weighted_mean
from scant.studies.redshift.growth import Growth
from scant.studies.redshift.shapes import take

PRIOR_ROWS = 10.0  # pseudo-rows that were predicted well, for the noise factor


@torch.no_grad()
def finished(growth: Growth, best: Tensors) -> tuple[list[GPz], list[float], list[GPzPrediction]]:
    """Learn the weights of models with these parameters from all rows, and rescale the models.

    Args:
        growth: Growth of the models, ended or not.
        best: Parameters, as `Growth.parameters` returns them.

    Returns:
        Models, their scores, and their predictions of the rows that each had not seen until then.
    """
    models, unseen, scores = [], [], []
    for k, fold in enumerate(growth.folds):
        parameters = part(best, f"{k}.")
        model = growth.made(len(parameters["centres"]), structure_of(parameters["gamma"]), fold)
        take(model, parameters)
        fold.begin(model, growth.place)
        unseen.append(fold.predict()[0])
        densities = fold.target.log_density(fold.unseen.z, unseen[-1])
        scores.append(weighted_mean(densities, fold.unseen.omega))
        models.append(model)
    share, factor = signal_share(growth.folds, unseen), noise_factor(growth.folds, unseen)
    for model, fold in zip(models, growth.folds):
        r = fold.rows
        posterior = LogEvidence(model, r.X, r.y, r.omega, r.noise, growth.place).posterior()
        model.take_posterior(posterior)
        model.weight_mean *= share
        model.b.sub_(math.log(factor))
    rescaled = [
        replace(u, mean=share * u.mean, noise_variance=factor * u.noise_variance) for u in unseen
    ]
    return models, scores, rescaled


def signal_share(folds: list[Fold], unseen: list[GPzPrediction]) -> float:
    """Return the factor of all means: one, unless unseen rows show that the means vary too much.

    It is the least squares slope of the targets on their predictions, plus its standard error.
    """
    y = torch.cat([f.unseen.y for f in folds])
    joined = GPzPrediction.join(unseen)
    weight = torch.cat([f.unseen.omega for f in folds]) / joined.variance
    square = float((weight * joined.mean.square()).sum())
    if not square > 0:
        return 1.0
    slope = float((weight * joined.mean * y).sum()) / square
    return min(max(slope + square**-0.5, 0.0), 1.0)


def noise_factor(folds: list[Fold], unseen: list[GPzPrediction]) -> float:
    """Return the factor of the noise variance with which unseen rows are likeliest.

    It is shrunk towards one as if `PRIOR_ROWS` rows had been predicted well.
    """
    y = torch.cat([f.unseen.y for f in folds])
    omega = torch.cat([f.unseen.omega for f in folds])
    joined = GPzPrediction.join(unseen)
    square = (y - joined.mean).square()
    factors = torch.logspace(-0.7, 0.7, 71, dtype=y.dtype, device=y.device)
    variance = (
        joined.model_variance + joined.input_variance + factors[:, None] * joined.noise_variance
    )
    loss = (omega * (square / variance + variance.log())).sum(1)
    loss = loss + PRIOR_ROWS * (1 / factors + factors.log())
    return float(factors[loss.argmin()])
