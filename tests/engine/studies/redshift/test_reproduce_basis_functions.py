"""The examples of chapters 3 and 4: their data, the dense GP, and that every figure has scores."""

from __future__ import annotations

import pytest
import torch

from scant.studies.redshift.reproduce import basis_functions as examples
from scant.training.api import fit


@pytest.mark.slow
def test_every_figure_has_scores_of_all_methods() -> None:
    runs = list(examples.runs(quick=True, data=None, fit=fit))
    assert len({run.key for run in runs}) == len(runs) == 6
    scores = [score for run in runs for score in run.scores()]
    assert all(torch.isfinite(torch.tensor(score.value)) for score in scores)
    methods = {(score.experiment, score.method) for score in scores}
    assert len(methods) == 4 + 3 + 2 + 3 + 6
    assert len(scores) == len({score[:3] for score in scores})


def test_the_dense_gp_is_that_of_scikit_learn() -> None:
    gp = pytest.importorskip("sklearn.gaussian_process")
    X, y = examples.noisy_sinc(40, torch.Generator().manual_seed(0))
    new = torch.linspace(-12, 12, 30, dtype=torch.float64)[:, None]
    model = examples.FullGP(examples.Data(X, y, new, new[:, 0]))
    kernel = gp.kernels.ConstantKernel(float(y.var())) * gp.kernels.RBF(1.0)
    noise = gp.kernels.WhiteKernel(0.1 * float(y.var()))
    peer = gp.GaussianProcessRegressor(kernel + noise, optimizer=None)
    peer.fit(X.numpy(), y.numpy())
    mean, deviation = peer.predict(new.numpy(), return_std=True)
    fitted = model.fitted(new)
    assert fitted.evidence == pytest.approx(peer.log_marginal_likelihood_value_)
    assert fitted.mean.numpy() == pytest.approx(mean)
    assert fitted.variance.sqrt().numpy() == pytest.approx(deviation)


def test_the_surface_is_the_mixture_of_4_35() -> None:
    X, z = examples.bumps(500, torch.Generator().manual_seed(0))
    near = (X - torch.tensor([10.0, 0.0])).abs().amax(1) < 0.3
    peak = -9 / (2 * torch.pi * 10**0.5)  # of the first, where the others are about zero
    assert X.shape == (1500, 2)
    assert z[near].mean().item() == pytest.approx(peak, abs=0.02)


def test_few_data_lie_between_minus_5_and_minus_4_and_the_noise_varies() -> None:
    X, y = examples.varying_noise(4000, torch.Generator().manual_seed(0))
    x = X[:, 0]
    assert len(x) == 4000
    assert ((x > -5) & (x < -4)).sum() < 30 < ((x > -4) & (x < -3)).sum()
    z = (y - torch.sinc(x)) / examples.deviation(x)
    assert z.std().item() == pytest.approx(1, abs=0.05)  # standard error .011


def test_an_evidence_is_in_the_unit_of_the_targets() -> None:
    """Ten times the targets: ln 10 less for each row."""
    X, y = examples.noisy_sinc(60, torch.Generator().manual_seed(0))
    one, ten = (
        examples.bfm(
            examples.Data(X, scale * y, X, y),
            examples.GPz(1, 5, "GL", heteroscedastic=True, joint_mean=False),
            seed=0,
            steps=3,
        )
        for scale in (1, 10)
    )
    assert one.evidence - ten.evidence == pytest.approx(60 * torch.tensor(10.0).log().item())
    assert ten.mean.numpy() == pytest.approx(10 * one.mean.numpy())
