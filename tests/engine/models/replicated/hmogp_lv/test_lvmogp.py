"""LVMOGP: HMOGP-LV blind to replicas."""

import pytest
import torch

from scant.errors import BadInput
from scant.models.replicated.hmogp_lv.lvmogp import LVMOGP
from scant.models.replicated.hmogp_lv.model import HMOGPLV
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from tests.engine.models.replicated.replicas import data, drawn


def _generator():
    return torch.Generator().manual_seed(0)


def test_it_is_hmogp_lv_whose_replicas_do_not_vary():
    rows = data([[3, 5], [4], [2, 1, 3]])
    blind = LVMOGP.build(rows, _generator(), n_inducing_outputs=3, n_inducing_inputs=6)
    other = HMOGPLV.build(rows, _generator(), n_inducing_outputs=3, n_inducing_inputs=6)
    with torch.no_grad():
        blind.kernel.levels[0].outputscale = 0.7
        other.kernel.levels[0].outputscale = 0.7
        other.kernel.levels[1].outputscale = 1e-14
        other.inducing_x.copy_(blind.inducing_x)
        other.latents.load_state_dict(blind.latents.state_dict())
    blind.condition()
    other.condition()
    assert blind.elbo().item() == pytest.approx(other.elbo().item(), abs=1e-6)
    asked = torch.tensor([0, 2, 2]), torch.tensor([0, 1, -1]), torch.tensor([0.5, 1, 3]).double()
    for a, b in zip(blind.predict(*asked), other.predict(*asked)):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


def test_all_replicas_are_one_and_none_is_new():
    rows = drawn(outputs=4, replicas=3, n=6)
    model = LVMOGP.build(rows, _generator())
    training = HMOGPLVTrainer(model, rows, _generator())
    bounds = [training.step() for _ in range(15)]
    assert bounds[-1] > bounds[0]
    x = torch.full((4,), 1.5).double()
    mean, variance, _ = model.predict(torch.zeros(4).long(), torch.tensor([0, 1, 2, -1]), x)
    assert mean.unique().numel() == variance.unique().numel() == 1
    shared = model.shared(torch.zeros(4).long(), x)
    torch.testing.assert_close(shared[0], mean)
    torch.testing.assert_close(shared[1], variance)
    assert model.levels(torch.tensor([0]))[0, 1] == 0
    with pytest.raises(BadInput, match="Output 7 is unknown"):
        model.predict(torch.tensor([7]), torch.tensor([0]), x[:1])
