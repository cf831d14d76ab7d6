"""Counterparts in GPflow, GPy and GPz of RAIL, from the extra `peers`, used as documented.

Functions return a step that computes the objective and its gradient on the rows of the engine's
model, in double precision and without GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from scant.bench import rows
from scant.bench.rows import On
from scant.bench.timing import Step

GPFLOW, GPY, RAIL = "gpflow", "GPy", "pz-rail-gpz-v1"
MOVE = 1e-3  # change of a hyperparameter of GPy between steps
DIMENSIONS = 5  # of the latent space


def missing(package: str) -> str:
    """Return how to install a missing package; "" if it is installed."""
    try:
        version(package)
    except PackageNotFoundError:
        return f"{package} is not installed here; pip install 'scant-gp[peers]' brings it."
    return ""


@cache
def load(package: str) -> Any:
    """Import a package; TensorFlow is restricted to one thread and no GPU before."""
    if package != GPFLOW:
        return import_module({GPY: "GPy", RAIL: "rail.estimation.algos.gpz"}[package])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tensorflow = import_module("tensorflow")
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    tensorflow.config.set_visible_devices([], "GPU")
    return import_module(GPFLOW)


def _column(values: Any) -> Any:
    return np.asarray(values, dtype=float).reshape(-1, 1)


def _compiled(model: Any) -> Step:
    """Compile the training loss and gradient of a GPflow model."""
    tensorflow = import_module("tensorflow")

    def step() -> Any:
        with tensorflow.GradientTape() as tape:
            loss = model.training_loss()
        return loss, tape.gradient(loss, model.trainable_variables)

    compiled: Step = tensorflow.function(step)
    return compiled


def _start(y: Any) -> Any:
    """Return initial latent positions, principal components with unit variance."""
    left: Any = np.linalg.svd(y - y.mean(0), full_matrices=False)[0]
    return left[:, :DIMENSIONS] * len(y) ** 0.5


def gpflow_latent(n: int, m: int, on: On) -> Step:
    """Build the Bayesian GPLVM of GPflow."""
    gpflow, y = load(GPFLOW), rows.outputs(n, 100).numpy()
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(DIMENSIONS))
    width = np.full((n, DIMENSIONS), 0.1)
    return _compiled(
        gpflow.models.BayesianGPLVM(y, _start(y), width, kernel, num_inducing_variables=m)
    )


def gpflow_sparse(n: int, m: int, on: On) -> Step:
    """Build SGPR of GPflow, with the collapsed bound and ARD."""
    gpflow, (x, y) = load(GPFLOW), (v.numpy() for v in rows.features(n))
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.full(x.shape[1], x.shape[1] ** 0.5))
    return _compiled(gpflow.models.SGPR((x, _column(y)), kernel, x[:m].copy()))


def gpflow_classes(n: int, classes: int, on: On) -> Step:
    """Build VGP of GPflow, with a Gaussian q(f) instead of the Laplace approximation."""
    gpflow, (x, label) = load(GPFLOW), (v.numpy() for v in rows.two_classes(n))
    kernel = gpflow.kernels.SquaredExponential(4.0, x.shape[1] ** 0.5)
    likelihood = gpflow.likelihoods.Bernoulli()
    return _compiled(gpflow.models.VGP((x, _column(label)), kernel, likelihood))


def _moving(model: Any) -> Step:
    """Return a step of a GPy model, which recomputes inference after parameter changes."""
    theta = model.optimizer_array.copy()

    def step() -> Any:
        theta[0] += MOVE
        model.optimizer_array = theta
        return model.objective_function(), model.objective_function_gradients()

    return step


def gpy_latent(n: int, m: int, on: On) -> Step:
    """Build the Bayesian GPLVM of GPy."""
    GPy, y = load(GPY), rows.outputs(n, 100).numpy()
    kernel = GPy.kern.RBF(DIMENSIONS, ARD=True)
    return _moving(GPy.models.BayesianGPLVM(y, DIMENSIONS, num_inducing=m, kernel=kernel))


def gpy_laplace(n: int, classes: int, on: On) -> Step:
    """Build the binary Laplace approximation of GPy."""
    GPy, (x, label) = load(GPY), (v.numpy() for v in rows.two_classes(n))
    kernel = GPy.kern.RBF(x.shape[1], variance=4.0, lengthscale=x.shape[1] ** 0.5)
    laplace = GPy.inference.latent_function_inference.Laplace()
    likelihood = GPy.likelihoods.Bernoulli()
    return _moving(
        GPy.core.GP(x, _column(label), kernel, likelihood=likelihood, inference_method=laplace)
    )


def rail(covariance: str) -> Callable[..., Step]:
    """Build GPz of RAIL with linear mean and input-dependent noise."""

    def build(n: int, m: int, on: On) -> Step:
        x, y = (v.numpy() for v in rows.galaxies(n))
        model = load(RAIL).GP(m, method=covariance)
        model.init(x, _column(y))
        residual = _column(y) - model.muY - x @ model.wL
        return lambda: model.GPz(model.theta, x, residual)

    return build
