"""The models of replicated outputs by GPyTorch's interface, with kernels of a user's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.models import ExactGP

from scant.errors import BadInput
from scant.models.replicated.baselines import LMC, Independent, Pooled
from scant.models.replicated.hgp import DHGP, HGP, HGPInd
from scant.models.replicated.hmogp_lv.lvmogp import LVMOGP
from scant.models.replicated.hmogp_lv.model import HMOGPLV
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from scant.models.replicated.training import ReplicaTrainer
from tests.engine.models.gpytorch_interface import check_constraints, check_gradients
from tests.engine.models.replicated.test_hgp import asked, measured

EXACT = [HGP, HGPInd, DHGP, LMC, Independent, Pooled]


def built(family: Any, **settings: Any) -> Any:
    if issubclass(family, HMOGPLV):
        settings |= {"n_inducing_outputs": 2, "n_inducing_inputs": 8}
    return family.build(measured(), torch.Generator().manual_seed(0), **settings)


@pytest.mark.parametrize("family", [*EXACT, HMOGPLV, LVMOGP])
def test_a_model_answers_as_predict_does(family: Any) -> None:
    model = built(family)
    check_constraints(model)
    check_gradients(model, model.elbo())
    output, replica, x = asked()
    rows = torch.stack([output.double(), replica.double(), x], 1)
    mean, variance, noise = model.predict(output, replica, x)
    f = model(rows)
    torch.testing.assert_close(f.mean, mean)
    torch.testing.assert_close(f.variance, variance)
    predicted = model.likelihood(f, rows)
    torch.testing.assert_close(predicted.mean, mean)
    torch.testing.assert_close(predicted.variance, variance + noise)
    with pytest.raises(BadInput, match="unknown"):
        model(torch.tensor([[7.0, 0.0, 0.0]]).double())
    model.noise = 0.5
    torch.testing.assert_close(model.noise, torch.full((2,), 0.5).double())


@pytest.mark.parametrize("family", EXACT)
def test_the_joint_covariance_is_dense_algebras(family: Any) -> None:
    """Of a model of so many inducing points as rows, or exact: K** - K*n (Knn + noise)^-1 Kn*."""
    settings = {"inducing_inputs": 30} if family is HGPInd else {}
    model = built(family, **settings)
    data = model.data
    output, replica, x = asked()
    rows = torch.stack([output.double(), replica.double(), x], 1)
    found = model(rows).covariance_matrix
    if model.together:
        parts = [(torch.arange(len(data.y)), torch.arange(len(x)), 0)]
    else:
        parts = [
            ((data.output == d).nonzero()[:, 0], (output == d).nonzero()[:, 0], d) for d in (0, 1)
        ]
    exact = torch.zeros_like(found)
    for learned, wanted, d in parts:
        a = model.points(data.output[learned], data.replica[learned], data.x[learned])
        b = model.points(output[wanted], replica[wanted], x[wanted])
        both = torch.cat([a, b]).expand(*model.kernel.batch_shape, -1, -1)
        K = model.kernel(both).to_dense()
        K = K if K.dim() == 2 else K[d]
        n = len(a)
        noise = model.noise[data.output[learned]].diag()
        left = K[n:, n:] - K[n:, :n] @ torch.linalg.solve(K[:n, :n] + noise, K[:n, n:])
        exact[wanted.unsqueeze(1), wanted] = left
    torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-5)


def own_kernels() -> tuple[Kernel, Kernel]:
    return ScaleKernel(PeriodicKernel()), MaternKernel(nu=2.5)


@pytest.mark.parametrize("family", [HGP, DHGP, HMOGPLV])
def test_a_users_kernels_are_learned(family: Any) -> None:
    shared, own = own_kernels()
    model = built(family, kernel_shared=shared, kernel_replica=own)
    assert isinstance(model.kernel.levels[0].base_kernel, PeriodicKernel)
    assert model.kernel.levels[0] is not shared  # a copy: kernels of two levels are two
    trainer: Any
    if family is HMOGPLV:
        trainer = HMOGPLVTrainer(model, measured(), torch.Generator().manual_seed(0))
    else:
        trainer = ReplicaTrainer(model)
    before = model.kernel.levels[-1].lengthscale.detach().clone()
    values = [trainer.step() for _ in range(5)]
    assert values[-1] > values[0]
    assert not torch.equal(model.kernel.levels[-1].lengthscale, before)
    levels = model.levels(torch.tensor([0, 1]))
    assert bool((levels > 0).all())
    torch.testing.assert_close(levels[:, 1], torch.ones(2).double())  # k_f is of unit variance
    covariance = model.outputs_covariance()
    assert covariance.shape == (2, 2)


def test_the_kernel_of_a_shape_is_the_users_own_of_that_shape() -> None:
    kernel = ScaleKernel(RBFKernel()).double()
    named = built(HGP, kernel_shared="rbf")
    given = built(HGP, kernel_shared=kernel)
    for model in (named, given):
        model.kernel.levels[0].outputscale = 0.6
        model.kernel.levels[0].base_kernel.lengthscale = 1.3
        for parameter in model.kernel.levels[1].parameters():
            parameter.data.fill_(0.2)
    torch.testing.assert_close(given.elbo(), named.elbo())


class PlainGP(ExactGP):
    """GPyTorch's exact GP with the kernel and the noise of one of ours."""

    def __init__(self, model: Any, rows: torch.Tensor) -> None:
        super().__init__(rows, model.data.y, GaussianLikelihood().double())
        self.mean, self.kernel = ZeroMean(), model.kernel
        self.likelihood.noise = model.noise[0]

    def forward(self, x: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean(x), self.kernel(x))


@pytest.mark.parametrize("family", [DHGP, Pooled])
def test_gpytorchs_exact_gp_with_the_hierarchical_kernel_is_the_same(family: Any) -> None:
    """Of models that regress all rows together: ln p(y), and the joint posterior."""
    model, data = built(family), measured()
    plain = PlainGP(model, model.points(data.output, data.replica, data.x))
    evidence = ExactMarginalLogLikelihood(plain.likelihood, plain)
    value = evidence(plain(*plain.train_inputs), data.y) * len(data.y)
    torch.testing.assert_close(model.elbo(), value, rtol=1e-6, atol=0)
    output, replica, x = asked()
    known = plain.eval()(model.points(output, replica, x))
    found = model(torch.stack([output.double(), replica.double(), x], 1))
    torch.testing.assert_close(found.mean, known.mean, rtol=1e-5, atol=1e-5)
    expected = known.covariance_matrix
    torch.testing.assert_close(found.covariance_matrix, expected, rtol=1e-4, atol=1e-5)
