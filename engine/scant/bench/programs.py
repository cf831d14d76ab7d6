"""The counterparts in GPflow, GPy and RAIL's GPz, which the extra `peers` installs, as documented.

Each function gives a step: the objective and its gradient, on the rows that the engine's model
gets. All compute in double precision, GPflow because that is its default and the others because
NumPy's is; none is asked to use a GPU.
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
MOVE = 1e-3  # by which a hyperparameter of GPy differs from one step to the next
DIMENSIONS = 5  # of a latent space


def missing(package: str) -> str:
    """What to do to have a package's cases measured; nothing where it is installed."""
    try:
        version(package)
    except PackageNotFoundError:
        return f"{package} is not installed here; pip install 'scant-gp[peers]' brings it."
    return ""


@cache
def load(package: str) -> Any:
    """The package's module. TensorFlow is told to take one thread, and no GPU, before it begins."""
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
    """A model of GPflow: its training loss and gradient as one compiled function."""
    tensorflow = import_module("tensorflow")

    def step() -> Any:
        with tensorflow.GradientTape() as tape:
            loss = model.training_loss()
        return loss, tape.gradient(loss, model.trainable_variables)

    compiled: Step = tensorflow.function(step)
    return compiled


def _start(y: Any) -> Any:
    """Positions to start from: principal components, with variance one."""
    left: Any = np.linalg.svd(y - y.mean(0), full_matrices=False)[0]
    return left[:, :DIMENSIONS] * len(y) ** 0.5


def gpflow_latent(n: int, m: int, on: On) -> Step:
    """GPflow's Bayesian GPLVM."""
    gpflow, y = load(GPFLOW), rows.outputs(n, 100).numpy()
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(DIMENSIONS))
    width = np.full((n, DIMENSIONS), 0.1)
    return _compiled(
        gpflow.models.BayesianGPLVM(y, _start(y), width, kernel, num_inducing_variables=m)
    )


def gpflow_sparse(n: int, m: int, on: On) -> Step:
    """GPflow's SGPR: the collapsed bound, a lengthscale an input."""
    gpflow, (x, y) = load(GPFLOW), (v.numpy() for v in rows.features(n))
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.full(x.shape[1], x.shape[1] ** 0.5))
    return _compiled(gpflow.models.SGPR((x, _column(y)), kernel, x[:m].copy()))


def gpflow_classes(n: int, classes: int, on: On) -> Step:
    """GPflow's VGP: a Gaussian q(f) of all rows, where others have Laplace's approximation."""
    gpflow, (x, label) = load(GPFLOW), (v.numpy() for v in rows.two_classes(n))
    kernel = gpflow.kernels.SquaredExponential(4.0, x.shape[1] ** 0.5)
    likelihood = gpflow.likelihoods.Bernoulli()
    return _compiled(gpflow.models.VGP((x, _column(label)), kernel, likelihood))


def _moving(model: Any) -> Step:
    """A model of GPy, which infers anew whenever it is given other parameters."""
    theta = model.optimizer_array.copy()

    def step() -> Any:
        theta[0] += MOVE
        model.optimizer_array = theta
        return model.objective_function(), model.objective_function_gradients()

    return step


def gpy_latent(n: int, m: int, on: On) -> Step:
    """GPy's Bayesian GPLVM."""
    GPy, y = load(GPY), rows.outputs(n, 100).numpy()
    kernel = GPy.kern.RBF(DIMENSIONS, ARD=True)
    return _moving(GPy.models.BayesianGPLVM(y, DIMENSIONS, num_inducing=m, kernel=kernel))


def gpy_laplace(n: int, classes: int, on: On) -> Step:
    """GPy's Laplace approximation for two classes."""
    GPy, (x, label) = load(GPY), (v.numpy() for v in rows.two_classes(n))
    kernel = GPy.kern.RBF(x.shape[1], variance=4.0, lengthscale=x.shape[1] ** 0.5)
    laplace = GPy.inference.latent_function_inference.Laplace()
    likelihood = GPy.likelihoods.Bernoulli()
    return _moving(
        GPy.core.GP(x, _column(label), kernel, likelihood=likelihood, inference_method=laplace)
    )


def rail(covariance: str) -> Callable[..., Step]:
    """RAIL's GPz, with the linear mean and the noise that ours has."""

    def build(n: int, m: int, on: On) -> Step:
        x, y = (v.numpy() for v in rows.galaxies(n))
        model = load(RAIL).GP(m, method=covariance)
        model.init(x, _column(y))
        residual = _column(y) - model.muY - x @ model.wL
        return lambda: model.GPz(model.theta, x, residual)

    return build
