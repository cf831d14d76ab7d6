"""The publication's experiments: all are run, every model is scored, figures stand side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.studies.genes import reproduce, simulate
from scant.studies.genes.drosophila import read_folder
from scant.studies.genes.settings import MODELS
from scant.training.api import Fit, fit
from tests.engine.studies.studying import gathered
from tests.paths import REAL_DATA

GENES = REAL_DATA / "gene_kalinka2010"


def test_every_experiment_is_run_with_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    small = simulate.synthetic(0, outputs=3, points=6)

    def briefly(study: str, table: pd.DataFrame, **values: Any) -> Fit:
        return fit(study, table, device="cpu", **{**values, "max_steps": 2, "n_inducing_inputs": 6})

    monkeypatch.setattr(simulate, "synthetic", lambda *_, **__: small)
    monkeypatch.setattr("scant.studies.genes.report.FIT_STEPS", 2)
    result = gathered("genes", reproduce.reproduce(quick=True, data=None, fit=briefly))
    names = ("half of the points", "one replica of each output")
    simulated = [f"six simulated genes, {name}" for name in names]
    assert list(result["experiment"].unique()) == ["synthetic 1", "synthetic 2", *simulated]
    for _, part in result.groupby("experiment"):
        assert set(part["method"]) == set(MODELS.values())
        assert set(part["metric"]) == set(reproduce.SCORES)
    assert np.isfinite(result["ours"]).all()
    assert result["published"].isna().all()


@pytest.mark.skipif(not GENES.is_dir(), reason="SCANT_REAL_DATA names no folder gene_kalinka2010")
def test_the_four_genes_are_predicted_as_well_as_others_predict_them() -> None:
    values = {"split": reproduce.HALF, "n_inducing_inputs": 30, "max_steps": 60}
    report = reproduce.run(fit, read_folder(GENES), values)
    methods = {MODELS[name] for name in ("dhgp", "lmc", "hgp")}
    for m in report.metrics:
        if m.name == "NMSE" and (m.source == "run" or m.method in methods):
            assert m.value < 0.06, m.method
        if m.name == "NLPD" and m.source == "run":
            assert m.value < -0.1
