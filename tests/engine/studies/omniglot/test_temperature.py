"""The temperature of the omniglot study's probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scant.models.mogp_ar.kernels import RbfArd
from scant.models.mogp_ar.model import MOGPAR
from scant.studies.omniglot import temperature
from scant.studies.omniglot.study import Study
from scant.training.loop import train
from tests.engine.studies.omniglot.alphabets import CPU, settings


def test_one_row_in_five_of_each_class_is_left_out_and_none_of_a_single_one() -> None:
    number = np.array([0] * 10 + [1] * 3 + [2])
    left = temperature.left_out(number)
    assert np.bincount(number[left], minlength=3).tolist() == [2, 1, 0]
    assert not len(temperature.left_out(np.arange(4)))


@pytest.mark.parametrize("covariance", ["kept", "dropped"])
def test_a_temperature_divides_the_functions(covariance: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 2, generator=generator, dtype=torch.float64)
    output = torch.arange(30) % 2
    model = MOGPAR(
        RbfArd(x, 3), x[:6].expand(3, 6, 2), [3, 4], generator, rank=1, covariance=covariance
    )
    for scale in (3.0, 1e9):
        p = model.predict(x, output, temperature=scale).probability
        with torch.no_grad():
            mean, variance = model._mixed(model.latent(x))
            table = model._table()[:3] / scale
            own = output == 0
            normal = torch.randn(20_000, mean.shape[1], generator=generator, dtype=torch.float64)
            if covariance == "kept":
                f = (mean[own][:, None] + variance[own].sqrt()[:, None] * normal) @ table.T
            else:
                m, s = mean[own] @ table.T, (variance[own] @ table.square().T).sqrt()
                f = m[:, None] + s[:, None] * normal[:, :3]
        assert torch.allclose(p[own][:, :3], f.softmax(-1).mean(1), atol=0.02)
    assert torch.allclose(p[own][:, :3], torch.full((15, 3), 1 / 3, dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mogp-ar", "g-a"])
def test_a_fit_finds_a_temperature_says_so_and_keeps_it(
    drawings: pd.DataFrame, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temperature, "FEWEST", 5)
    study = Study(settings(model=model, max_steps=30, calibrate=True), drawings, CPU)
    end = list(train(study))[-1]
    assert study.temperature != 1.0
    assert any(f"temperature of {study.temperature:.2f}" in note for note in end.report.notes)
    tensors, meta = study.fitted()
    again = Study.restore(study.settings, tensors, meta, CPU)
    some = study.data.test[:5]
    p = study.present.ask(some).probability
    assert torch.equal(again.present.ask(some).probability, p)
    study.temperature = 1.0
    assert not torch.allclose(study.present.ask(some).probability, p)


@pytest.mark.parametrize("values", [{"calibrate": False}, {"calibrate": True, "shots": 2}])
def test_without_it_or_with_few_rows_probabilities_are_those_of_the_softmax(
    drawings: pd.DataFrame, values: dict[str, Any]
) -> None:
    study = Study(settings(**values), drawings, CPU)
    end = list(train(study))[-1]
    assert study.temperature == 1.0
    assert any("no temperature" in note for note in end.report.notes) == values["calibrate"]
