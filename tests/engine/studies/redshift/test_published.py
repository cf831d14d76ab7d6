"""The preset "as published" (Almosallam 2017): what reaches the model, and its settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import scant
from scant.events import Finished, Progress
from scant.models.gpz.log_evidence import LogEvidence
from scant.studies import entry
from scant.studies.redshift import report
from scant.studies.redshift.beside import Beside
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.redshift.shapes import new_model

SMALL = {"training_size": 100, "validation_size": 40, "test_size": 50, "n_basis": 6}


@pytest.mark.slow
def test_the_preset_trains_one_model_on_components_to_the_last_step(monkeypatch):
    none = Beside(
        {}, np.empty((13, 0)), np.empty((7, 0)), (), ()
    )  # baselines take most of the time
    monkeypatch.setattr(report, "beside", lambda *_: none)
    values = {**entry("redshift").presets["as published"], **SMALL, "max_steps": 40}
    run = scant.fit("redshift", device="cpu", **values)
    events = list(run)
    last = events[-1]
    assert isinstance(last, Finished)
    assert sum(isinstance(e, Progress) for e in events) == 40  # patience 0
    study = run.study
    z = study.features.inputs(study.data.given).numpy() @ study.features.T.T
    assert np.allclose(np.cov(z.T, ddof=0), np.eye(10), atol=1e-8)
    [model] = study.posterior.ensemble.models
    assert len(model.mixture_means) == 6
    assert torch.equal(model.mixture_means, model.centres)  # the density of (5.22)
    weights = np.sort(np.abs(model.weight_mean[:6].numpy()))[::-1]
    fewest = next(k for k in range(1, 7) if weights[:k].sum() >= 0.99 * weights.sum())  # (3.2)
    result = {m.name: m.value for m in last.report.metrics if m.method == "this run"}
    assert result["relevant basis functions"] == fewest


@pytest.mark.parametrize("tied", [False, True])
def test_tied_precisions_follow_the_slope_of_their_common_value(tied):
    g = torch.Generator().manual_seed(0)
    X = torch.randn(60, 2, generator=g, dtype=torch.float64)
    y = X[:, 0].sin() + 0.1 * torch.randn(60, generator=g, dtype=torch.float64)
    model = new_model(RedshiftSettings(tie_precisions=tied), 2, torch.device("cpu"), 4, "VC")
    model.init_from_data(X, y, g)
    evidence = LogEvidence(model, X, y)
    evidence().backward()
    own, values = model.log_alpha.grad[:4].clone(), []
    for step in (1e-4, -2e-4):
        model.log_alpha.data[:4] += step
        values.append(evidence().item())
    slope = (values[0] - values[1]) / 2e-4
    assert float(own.sum()) == pytest.approx(slope, rel=1e-4)
    assert bool((own == own[0]).all()) is tied
