"""Every family is a model of GPyTorch: modules, constraints, distributions and likelihoods."""

import copy

import gpytorch
import pytest
import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from gpytorch.kernels import MaternKernel, ScaleKernel

from scant.kernels.patch.kernel import PatchKernel
from scant.kernels.shared_private import EQ, ClassPrivateKernel
from scant.likelihoods.augment_reduce import AugmentReduceLikelihood
from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.models.gplvm.sclvm import SCLVM
from scant.models.mogp_ar.baselines import build
from scant.models.mogp_ar.kernels import Columns, RbfArd
from scant.models.mogp_ar.training import fit


def _draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _outputs():
    Y = _draw(30, 4) @ _draw(4, 6, seed=1)
    return Y + 0.1 * _draw(30, 6, seed=2), torch.arange(30) % 2


def _matern(*batch):
    kernel = MaternKernel(2.5, ard_num_dims=2, batch_shape=torch.Size(batch))
    return kernel.double()


def _latent(name):
    """A latent variable model."""
    (Y, label), generator = _outputs(), torch.Generator().manual_seed(0)
    if name == "bgplvm, missing":
        Y[3, 2] = Y[4, 1] = torch.nan
    if name == "sclvm":
        return SCLVM.build(Y, label, 2, 1, 1, 5, generator)
    if name.startswith("dgplvm"):
        own = ScaleKernel(_matern()).double() if name == "dgplvm, Matern" else None
        return DGPLVM.build(Y, label, 2, kernel=own)
    return BGPLVM.build(Y, 2, 6, generator)


LATENT = ("bgplvm", "bgplvm, missing", "sclvm", "dgplvm", "dgplvm, Matern")


@pytest.mark.parametrize("name", LATENT)
def test_outputs_of_latent_variable_models(name):
    model = _latent(name)
    x, args = _draw(7, 2, seed=3), ((1,) if name == "sclvm" else ())
    y, variance = model.decode(x, None, *args) if name == "sclvm" else model.decode(x)
    functions = model(x, *args)
    assert isinstance(functions, MultitaskMultivariateNormal)
    torch.testing.assert_close(functions.mean, y)
    predicted = model.likelihood(functions)
    torch.testing.assert_close(predicted.mean, y)
    torch.testing.assert_close(predicted.variance, variance)
    torch.testing.assert_close(functions.covariance_matrix.diagonal(), functions.variance.flatten())


def test_positions_of_another_kernel_are_found_where_their_density_is_greatest():
    model = _latent("dgplvm, Matern")
    Y, _ = _outputs()
    with torch.no_grad():
        x = model.infer(Y[:3])
        at, beside = (
            gpytorch.distributions.MultivariateNormal(q.mean, q.covariance_matrix).log_prob(Y[0])
            for q in (
                model.likelihood(model(x[:1] + step)) for step in (0.0, 0.1 * _draw(1, 2, seed=4))
            )
        )
    assert at > beside


def _mixing(name, rank=1):
    """A model of two outputs of three and two classes, a little away from where it starts."""
    x, output = _draw(12, 2), torch.arange(12) % 2
    label = (x[:, 0] > 0).long() + (x[:, 1] > 0).long() * (output == 0)
    kernel = Columns(_matern(2)) if name == "Matern" else RbfArd(x, 1 if name[0] == "g" else 2)
    rows, options = kernel.prepare(x), {"rank": rank} if name[0] != "g" else {}
    kind = "mogp-ar" if name == "Matern" else name
    generator = torch.Generator().manual_seed(0)
    model = build(kind, kernel, rows, output, [3, 2], 5, generator, **options)
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p += 0.1 * _draw(*p.shape, 1, seed=i)[..., 0]
        for part in getattr(model, "models", [model]):
            part.q_scale.tril_()
    return model, x, rows, output, label


@pytest.mark.parametrize("name", ["mogp-ar", "mg-m", "Matern"])
@pytest.mark.parametrize("rank", [1, 3])
def test_latent_functions_and_classes_of_several_outputs(name, rank):
    model, x, rows, output, label = _mixing(name, rank)
    functions, (mean, variance) = model(x), model.latent(rows)
    assert isinstance(functions, MultitaskMultivariateNormal)
    torch.testing.assert_close(functions.mean.T, mean)
    torch.testing.assert_close(functions.variance.T, variance)
    dense = functions.covariance_matrix.diagonal().view(12, -1)
    torch.testing.assert_close(dense, functions.variance)
    told = model.predict(rows, output)
    predicted = model.likelihood(functions, output=output)
    torch.testing.assert_close(predicted.probs, told.probability)
    evidence = model.likelihood.log_marginal(label, functions, output=output)
    torch.testing.assert_close(evidence.exp(), told.probability[torch.arange(12), label])
    bound = model.likelihood.expected_log_prob(label, functions, output=output).sum()
    torch.testing.assert_close(bound - model.kl_divergence(), model.bound(rows, output, label))


@pytest.mark.parametrize("name", ["g-a", "g-m"])
def test_outputs_alone_are_a_list_of_models(name):
    model, x, rows, output, _ = _mixing(name)
    told = model.probabilities(rows, output)
    for d, classes in enumerate(model.likelihood(*model(x))):
        here = output == d
        found = classes.probs[here]
        torch.testing.assert_close(found, told[here, : found.shape[1]])


def test_the_softmax_is_bounded_from_below():
    mixing, label = torch.nn.Embedding.from_pretrained(_draw(4, 3)), torch.tensor([0, 3, 2])
    likelihood = AugmentReduceLikelihood(torch.tensor([4]), mixing, constant=True)
    mean, spread = _draw(3, 2, seed=1), 0.5 + _draw(3, 2, seed=2).square()
    functions = MultitaskMultivariateNormal(mean, torch.diag(spread.flatten()))
    u = mean + spread.sqrt() * _draw(100_000, 3, 2, seed=3)
    drawn = likelihood(u)
    expected = drawn.log_prob(label).mean(0)
    bound = likelihood.expected_log_prob(label, functions)
    assert bool((bound < expected).all())
    averaged = likelihood(functions)
    torch.testing.assert_close(averaged.probs, drawn.probs.mean(0), atol=5e-3, rtol=0)
    torch.testing.assert_close(averaged.log_prob(label), likelihood.log_marginal(label, functions))


MIXING = ("mogp-ar", "g-a")


@pytest.mark.parametrize("name", LATENT + MIXING)
def test_modules_have_constraints_and_gradients(name):
    if name in MIXING:
        model, _, rows, output, label = _mixing(name)
        total, generator = torch.bincount(output), torch.Generator().manual_seed(0)
        objective = model.elbo(rows, output, label, total, generator, 0)
    else:
        model = _latent(name)
        objective = model.elbo()
    assert isinstance(model, gpytorch.Module)
    objective.backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
    bounded = {key.removesuffix("_constraint") for key, _ in model.named_constraints()}
    held = {key for key, _ in model.named_parameters()}
    assert bounded == {key for key in held if key.split(".")[-1].startswith(("log_", "raw_"))}
    assert not any("log_" in key and "constraint" in key for key in model.state_dict())
    twin = copy.deepcopy(model)
    twin.load_state_dict(model.state_dict())
    assert {key for key in model.state_dict() if "likelihood" in key} == set()


@pytest.mark.parametrize(
    ("make", "name", "raw"),
    [
        (lambda: EQ(2), "lengthscale", "log_lengthscale"),
        (lambda: EQ(2), "variance", "log_variance"),
        (lambda: _latent("bgplvm"), "noise", "log_noise"),
        (lambda: _latent("bgplvm"), "std", "log_std"),
        (lambda: _mixing("g-a")[0].models[0], "height", "log_height"),
        (lambda: RbfArd(_draw(5, 2), 3), "lengthscale", "rbf.raw_lengthscale"),
    ],
)
def test_positive_values_are_set_by_their_names(make, name, raw):
    module = make()
    before = module.get_parameter(raw).clone()
    module.initialize(**{name: torch.tensor(0.7)})
    assert not torch.equal(module.get_parameter(raw), before)
    value = getattr(module, name)
    torch.testing.assert_close(value, torch.full_like(value, 0.7))


@pytest.mark.parametrize(
    ("kernel", "x"),
    [
        (EQ(3), _draw(5, 3)),
        (ClassPrivateKernel(1, 2, 2), torch.cat([_draw(5, 3), torch.arange(5)[:, None] % 2], 1)),
        (RbfArd(_draw(9, 3), 2), _draw(5, 3)),
        (PatchKernel(4, 3, 2, n_latent=2), _draw(5, 12)),
    ],
)
def test_kernels_are_those_of_gpytorch(kernel, x):
    assert isinstance(kernel, gpytorch.kernels.Kernel)
    K = kernel(x).to_dense()
    torch.testing.assert_close(kernel(x, diag=True), K.diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(kernel(x[:2], x[2:]).to_dense(), K[..., :2, 2:])
    scaled = ScaleKernel(kernel, batch_shape=kernel.batch_shape).double()
    torch.testing.assert_close(
        scaled(x).to_dense(), scaled.outputscale.view(*kernel.batch_shape, 1, 1) * K
    )


def test_a_kernel_of_the_user_is_learned():
    x = _draw(40, 2)
    output, label = torch.arange(40) % 2, (x[:, 0] > 0).long()
    kernel = _matern(2)
    before = kernel.lengthscale.clone()
    model = fit(x, output, label, kernel=kernel, inducing=8, steps=40)
    found = model.probabilities(model.kernel.prepare(x), output).argmax(1)
    assert float((found == label).double().mean()) > 0.9
    assert not torch.equal(kernel.lengthscale, before)
