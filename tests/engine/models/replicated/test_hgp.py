"""HGP, HGPInd and DHGP against plain Gaussian processes with the same kernel, written out."""

from __future__ import annotations

from itertools import pairwise
from math import isfinite
from typing import Any

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel

from scant.errors import BadInput
from scant.kernels.hierarchical import ReplicaKernel
from scant.models.replicated.data import NEW, Data
from scant.models.replicated.exact import ReplicaGP
from scant.models.replicated.hgp import DHGP, HGP, HGPInd
from scant.models.replicated.training import ReplicaTrainer
from scant.optim.lbfgs import LBFGS

SIZES = ((5, 3, 4), (4, 6))  # rows of each replica, of each output: unequal on purpose


def measured(seed: int = 0, grid: bool = False) -> Data:
    """Rows of two outputs in three and two replicas, in no order; on a grid inputs coincide."""
    made = torch.Generator().manual_seed(seed)
    rows = []
    for d, sizes in enumerate(SIZES):
        for r, n in enumerate(sizes):
            x = torch.rand(n, generator=made, dtype=torch.float64) * 3
            x = torch.arange(n).double() / 2 if grid else x
            y = torch.sin(2 * x + d) + 0.2 * r + 0.1 * torch.randn(n, generator=made).double()
            rows += [(d, r, float(a), float(b)) for a, b in zip(x, y)]
    output, replica, x, y = zip(*(rows[i] for i in torch.randperm(len(rows), generator=made)))
    return Data.of(
        torch.tensor(output),
        torch.tensor(replica),
        torch.tensor(x).double(),
        torch.tensor(y).double(),
        [["a", "b", "c"], ["a", "b"]],
    )


def asked() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    output = torch.tensor([1, 0, 0, 1, 0, 1])
    replica = torch.tensor([0, 2, NEW, NEW, 0, 1])
    return output, replica, torch.linspace(-0.5, 3.5, 6).double()


class Given(SklearnKernel):
    """A covariance that is known for every pair of rows: the inputs are their numbers."""

    def __init__(self, K: Any = None) -> None:
        self.K = K

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        rows = X[:, 0].astype(int)
        columns = rows if Y is None else Y[:, 0].astype(int)
        return self.K[rows][:, columns]

    def diag(self, X: Any) -> Any:
        return self.K.diagonal()[X[:, 0].astype(int)]

    def is_stationary(self) -> bool:
        return False


def by_sklearn(
    K: torch.Tensor, y: torch.Tensor, noise: torch.Tensor
) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Log marginal likelihood, mean and variance; the first len(y) rows of K are observed."""
    n = len(y)
    number = torch.arange(len(K)).double().unsqueeze(1).numpy()
    given = GaussianProcessRegressor(
        Given(K.detach().numpy()), alpha=noise.detach().numpy(), optimizer=None
    )
    given.fit(number[:n], y.numpy())
    mean, std = given.predict(number[n:], return_std=True)
    return (
        float(given.log_marginal_likelihood_value_),
        torch.as_tensor(mean),
        torch.as_tensor(std**2),
    )


@torch.no_grad()
def dense(model: ReplicaGP, output: int | None) -> torch.Tensor:
    """The kernel matrix of the data and the asked rows, of an output or of all, written out."""
    data, (o, r, x) = model.data, asked()
    mine = slice(None) if output is None else data.output == output
    theirs = slice(None) if output is None else o == output
    rows = torch.cat(
        [
            torch.stack([data.x, data.output, data.replica], 1)[mine],
            torch.stack([x, o, r], 1)[theirs],
        ]
    )
    if output is None:
        return model.kernel(rows).to_dense()
    assert isinstance(model.kernel, ReplicaKernel)
    a, b = rows[:, :1], rows[:, 2]
    levels = [
        level.outputscale[output]
        * _matern32((a - a.T).abs() / level.base_kernel.lengthscale[output])
        for level in model.kernel.levels
    ]
    return levels[0] + (b.unsqueeze(1) == b) * levels[1]


def _matern32(r: torch.Tensor) -> torch.Tensor:
    return (1 + 3**0.5 * r) * torch.exp(-(3**0.5) * r)


def test_hgp_is_scikit_learns_process_of_each_output() -> None:
    data = measured()
    model = HGP.build(data, torch.Generator().manual_seed(3))
    found = model.predict(*asked())
    total = 0.0
    for d in (0, 1):
        noise = model.noise[d].expand(int((data.output == d).sum()))
        value, mean, variance = by_sklearn(dense(model, d), data.y[data.output == d], noise)
        total += value
        mine = asked()[0] == d
        assert torch.allclose(found.mean[mine], mean, atol=1e-8)
        assert torch.allclose(found.variance[mine], variance, atol=1e-8)
        assert torch.allclose(found.noise[mine], model.noise[d])
    assert model.elbo().item() == pytest.approx(total, abs=1e-8)


@pytest.mark.parametrize("noise", ["shared", "each output"])
def test_dhgp_is_scikit_learns_process_of_all_outputs(noise: str) -> None:
    data = measured()
    model = DHGP.build(data, torch.Generator().manual_seed(3), noise=noise)
    with torch.no_grad():
        model.log_noise += 0.3 * torch.arange(len(model.log_noise))
    value, mean, variance = by_sklearn(dense(model, None), data.y, model.noise[data.output])
    found = model.predict(*asked())
    assert torch.allclose(found.mean, mean, atol=1e-8)
    assert torch.allclose(found.variance, variance, atol=1e-8)
    assert ReplicaGP.log_density(model).item() == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("grid", [True, False])
def test_the_reduction_of_dhgp_is_exact_with_its_gradients(grid: bool) -> None:
    data = measured(grid=grid)
    model = DHGP.build(data, torch.Generator().manual_seed(5), noise="each output")
    assert len(model.places) == (11 if grid else 22)
    reduced, whole = model.reduced(), ReplicaGP.log_density(model)
    assert reduced.item() == pytest.approx(whole.item(), abs=1e-9)
    parameters = list(model.parameters())
    for a, b in zip(
        torch.autograd.grad(reduced, parameters), torch.autograd.grad(whole, parameters)
    ):
        assert torch.allclose(a, b, atol=1e-8)
    if grid:
        assert torch.equal(model.elbo(), reduced)


def test_the_sparse_bound_grows_with_inducing_points_up_to_the_exact_value() -> None:
    data = measured()
    exact = HGP.build(data)
    values = [HGPInd.build(data, inducing_inputs=m).elbo().item() for m in (1, 2, 4, 8, 12)]
    assert all(a < b for a, b in pairwise(values))
    assert values[0] < exact.elbo().item() - 1
    assert values[-1] == pytest.approx(exact.elbo().item(), abs=1e-6)
    sparse = HGPInd.build(data, inducing_inputs=12).predict(*asked())
    whole = exact.predict(*asked())
    assert torch.allclose(sparse.mean, whole.mean, atol=1e-5)
    assert torch.allclose(sparse.variance, whole.variance, atol=1e-5)


@pytest.mark.parametrize("kind", [HGP, DHGP, HGPInd])
def test_a_new_replica_is_the_shared_curve_and_a_deviation_of_its_own(kind: Any) -> None:
    model = kind.build(measured())
    output, _, x = asked()
    new = model.predict(output, torch.full_like(output, NEW), x)
    shared = model.shared(output, x)
    levels = model.levels(output)
    assert torch.allclose(new.mean, shared[0])
    assert torch.allclose(new.variance, shared[1] + levels[:, 1])
    assert (shared[1] < levels[:, 0]).all()


def test_a_replica_hidden_is_predicted_as_a_new_one() -> None:
    data = measured()
    model = DHGP.build(data).on(data.without(0, 2))
    output, x = torch.zeros(5, dtype=torch.int64), torch.linspace(0, 3, 5).double()
    hidden = model.predict(output, torch.full_like(output, 2), x)
    new = model.predict(output, torch.full_like(output, NEW), x)
    assert torch.allclose(hidden.mean, new.mean)
    assert torch.allclose(hidden.variance, new.variance)


def test_the_bound_of_other_rows_leaves_the_model_as_it_was() -> None:
    data = measured()
    model = HGPInd.build(data, inducing_inputs=4)
    before = model.elbo()
    fewer = data.without(0, 1)
    assert model.elbo(fewer).item() != pytest.approx(before.item())
    assert torch.equal(model.elbo(), before)
    assert model.data is data


def test_training_finds_the_levels_that_the_data_have() -> None:
    made = torch.Generator().manual_seed(1)
    truth = DHGP.build(measured(), kernel_shared="rbf", kernel_replica="rbf")
    n = 160
    output = torch.arange(n) % 4
    replica = (torch.arange(n) // 4) % 4
    x = torch.randn(n, generator=made).double()
    names = [["a", "b", "c", "d"]] * 4
    K = truth.kernel(torch.stack([x, output, replica], 1)).to_dense() + 0.01 * torch.eye(n)
    y = torch.linalg.cholesky(K) @ torch.randn(n, generator=made).double()
    model = DHGP.build(
        Data.of(output, replica, x, y.detach(), names), kernel_shared="rbf", kernel_replica="rbf"
    )
    optimizer = LBFGS(model.parameters(), lambda: -model.elbo())
    for _ in range(25):
        optimizer.step()
    shared, own, noise = model.levels(torch.tensor([0]))[0].tolist()
    assert noise == pytest.approx(0.01, rel=0.4)
    assert own == pytest.approx(0.3, rel=0.6)
    assert 0.2 < shared < 3.2


def test_the_outputs_of_dhgp_share_its_widest_level() -> None:
    model = DHGP.build(measured())
    K = model.outputs_covariance()
    assert torch.allclose(K, torch.tensor([[0.8, 0.4], [0.4, 0.8]]).double())
    assert torch.equal(HGP.build(measured()).outputs_covariance(), 1.1 * torch.eye(2).double())


def test_what_cannot_be_is_said() -> None:
    model = DHGP.build(measured())
    x = torch.zeros(1).double()
    with pytest.raises(BadInput, match="Output 7 is unknown"):
        model.predict(torch.tensor([7]), torch.tensor([0]), x)
    with pytest.raises(BadInput, match="Replica 2 of output 1 is unknown"):
        model.predict(torch.tensor([1]), torch.tensor([2]), x)
    with pytest.raises(BadInput, match="must be one of shared, each output; got 'none'"):
        DHGP.build(measured(), noise="none")
    with pytest.raises(BadInput, match="Scheme 'newton' is unknown"):
        ReplicaTrainer(model, "newton")


def test_jitter_is_told_once() -> None:
    data = measured()
    model = HGPInd.build(data, inducing_inputs=4)
    with torch.no_grad():  # two inducing points in one place: their covariance is singular
        model.inducing[:, 1] = model.inducing[:, 0]
        model.inducing_labels[:, 1] = model.inducing_labels[:, 0]
    training = ReplicaTrainer(model, "adam", rate=1e-9)
    values = [training.step() for _ in range(3)]
    assert all(isfinite(value) for value in values)
    assert sum("jitter" in note for note in training.notes) == 1
