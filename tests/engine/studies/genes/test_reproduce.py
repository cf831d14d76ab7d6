"""The publication's experiments: all are run, every model is scored, figures stand side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.reproduce.figure_files import replica_curves
from scant.studies.genes import reproduce, simulate
from scant.studies.genes.drosophila import read_folder
from scant.studies.genes.neural_network import neural_network_nmse
from scant.studies.genes.published import SETTINGS
from scant.studies.genes.settings import MODELS
from scant.studies.genes.table import of
from scant.studies.published import values
from scant.training.api import Fit, fit
from tests.engine.studies.studying import gathered
from tests.paths import REAL_DATA

GENES = REAL_DATA / "gene_kalinka2010"


def test_every_experiment_is_run_with_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    small = simulate.synthetic(0, outputs=3, points=6)
    literal = []

    def briefly(study: str, table: pd.DataFrame, **options: Any) -> Fit:
        if not options.get("baselines", True):
            literal.append(options)
        few = {"max_steps": 2, "n_inducing_inputs": 6}
        return fit(study, table, device="cpu", **{**options, **few})

    monkeypatch.setattr(simulate, "synthetic", lambda *_, **__: small)
    monkeypatch.setattr("scant.studies.genes.report.FIT_STEPS", 2)
    monkeypatch.setattr(reproduce, "QUICK_STEPS", 2)
    result = gathered("genes", reproduce.reproduce(quick=True, data=None, fit=briefly))
    names = ("half of the points", "one replica of each output")
    simulated = [f"six simulated genes, {name}" for name in names]
    compared = ["synthetic 1", "synthetic 2", *simulated]
    sweeps = {
        reproduce.BY_LATENT: [f"Q_H={q}" for q in reproduce.LATENT],
        reproduce.BY_INDUCING: [f"M_H={m}" for m in reproduce.INDUCING],
    }
    assert list(result["experiment"].unique()) == [*compared, *sweeps]
    for experiment, part in result.groupby("experiment"):
        if experiment in sweeps:
            points = [f"{reproduce.AS_PUBLISHED}, {point}" for point in sweeps[str(experiment)]]
            assert set(part["method"]) == set(points)
            assert (part.groupby("method")["metric"].nunique() == len(reproduce.SCORES)).all()
            continue
        others = {reproduce.AS_PUBLISHED, reproduce.EACH_OUTPUT, reproduce.NETWORK}
        if part["experiment"].iloc[0] != simulated[0]:  # where the publication is clear on M_X
            others -= {reproduce.EACH_OUTPUT}
        assert set(part["method"]) == {*MODELS.values(), *others}
        for method, rows in part.groupby("method"):
            scores = ("NMSE",) if method == reproduce.NETWORK else reproduce.SCORES
            assert set(rows["metric"]) == set(scores)
    numbers = [(o["n_inducing_outputs"], o["n_inducing_inputs"]) for o in literal]
    # 3 and 6 of each of three outputs; 14, of six outputs or of each; half of the training rows
    assert numbers[:4] == [(5, 9), (5, 18), (2, 14), (2, 84)]
    assert numbers[4][0] == 2
    # 3 of each of three outputs, the shared point of both sweeps once
    swept = [(o["n_latent_dims"], o["n_inducing_outputs"], o["n_inducing_inputs"]) for o in literal]
    others = [(2, m, 9) for m in reproduce.INDUCING if m != 5]
    assert swept[5:] == [*((q, 5, 9) for q in reproduce.LATENT), *others]
    for options in literal:
        sizes = {"n_latent_dims", "n_inducing_outputs", "n_inducing_inputs", "max_steps", "split"}
        stated = {name: value for name, value in values(SETTINGS).items() if name not in sizes}
        assert {name: options[name] for name in stated} == stated
    assert np.isfinite(result["ours"]).all()
    assert result["published"].isna().all()


def test_data_of_a_figure_are_the_curves_of_the_trained_model() -> None:
    table = simulate.synthetic(0, outputs=2, replicas=3, points=11)
    options = {"max_steps": 2, "n_inducing_inputs": 6, "split": reproduce.REPLICA}
    _, fitted = reproduce.run(fit, table, {**options, "baselines": False, "device": "cpu"})
    data = replica_curves(reproduce.curves("X1 Figure 2.3", fitted).rows)
    drawn, every = fitted.curves([0, 1]), reproduce.CURVE_EVERY
    assert data.mean == pytest.approx(drawn["mean"][..., ::every], abs=0.0051)  # two decimals
    assert data.std_y == pytest.approx(drawn["std_y"][..., ::every], abs=0.0051)
    assert (data.outputs, data.replicas) == (fitted.observed.outputs, fitted.observed.replicas)
    held = {(d, r) for d, r in zip(data.output[data.held_out], data.replica[data.held_out])}
    test = fitted.test
    assert held == set(zip(fitted.observed.output[test], fitted.observed.replica[test]))
    assert len(data.x) == 2 * 3 * -(-11 // reproduce.POINT_EVERY)
    assert set(data.y) <= set(fitted.observed.y.round(2))


def test_a_network_learns_the_curve_of_each_output() -> None:
    x = np.tile(np.linspace(0, 2, 20), 4)
    output = np.repeat(["a", "b"], 40)
    y = np.where(output == "a", np.sin(3 * x), 5 - 2 * x)
    replica = np.tile(np.repeat(["1", "2"], 20), 2)
    table = pd.DataFrame({"output": output, "replica": replica, "x": x, "y": y})
    learned, barely = (
        neural_network_nmse(of(table), reproduce.REPLICA, 0, steps) for steps in (200, 1)
    )
    assert learned < 0.01 < barely  # the replicas of an output are equal


@pytest.mark.skipif(not GENES.is_dir(), reason="SCANT_REAL_DATA names no folder gene_kalinka2010")
def test_the_four_genes_are_predicted_as_well_as_others_predict_them() -> None:
    options = {"split": reproduce.HALF, "n_inducing_inputs": 30, "max_steps": 60}
    report, _ = reproduce.run(fit, read_folder(GENES), options)
    methods = {MODELS[name] for name in ("dhgp", "lmc", "hgp")}
    for m in report.metrics:
        if m.name == "NMSE" and (m.source == "run" or m.method in methods):
            assert m.value < 0.06, m.method
        if m.name == "NLPD" and m.source == "run":
            assert m.value < -0.1
