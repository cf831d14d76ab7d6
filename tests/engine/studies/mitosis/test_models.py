"""How the mitosis study trains its models: whose steps come first, and when it has converged."""

from __future__ import annotations

import pytest
import torch

from scant.events import State
from scant.studies.mitosis import models
from scant.studies.mitosis.study import Study
from scant.training.loop import train
from tests.engine.studies.mitosis.nuclei import CPU, clouds, settings


@pytest.mark.parametrize(
    ("steps", "adam", "first"), [(240, None, 160), (800, 160, 160), (90, 160, 60), (90, 0, 0)]
)
def test_adam_has_its_steps_and_never_more_than_two_thirds(
    steps: int, adam: int | None, first: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    Y = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    label = (torch.arange(20) < 5).long()
    for name in ("sclvm", "dgplvm"):
        model = models.build(settings(), name, Y, label, 2, generator)
        result = models.trainer(model, steps, adam).adam
        assert result == (0 if name == "dgplvm" else first)


@pytest.mark.slow
def test_a_run_that_gains_no_more_has_converged() -> None:
    values = settings(imbalance=0, max_steps=600, adam_steps=40, n_inducing=6)
    study = Study(values, clouds({"few": 12, "many": 30}), CPU)
    last = list(train(study))[-1]
    assert last.state is State.CONVERGED
    assert "0.001 in 40 steps" in last.reason
