"""Invented cells: gray, dark on light, told apart by some of them only, on slides that differ."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from scant.studies.mitosis import simulate
from scant.studies.mitosis.entry import ENTRY
from scant.studies.mitosis.settings import MitosisSettings
from scant.studies.mitosis.table import TABLE, LabeledImages
from scant.tables.read import read_frame


@pytest.fixture(scope="module")
def demo() -> LabeledImages:
    frame = simulate.demo(MitosisSettings())
    read = read_frame(frame, TABLE)
    assert read.notes == ()
    assert frame.shape == ENTRY.sources[0].size
    return LabeledImages.of(read.frame)


@pytest.mark.slow
def test_the_demonstration(demo: LabeledImages) -> None:
    assert demo.pixels
    own = demo.label == demo.classes.index("mitosis")
    assert (own.sum(), (~own).sum()) == (120, 1200)
    assert np.bincount(demo.group[own]).tolist() == [5] * 24
    assert 0 <= demo.x.min() < demo.x.max() <= 1
    assert 0.5 < demo.x.mean() < 0.8  # dark on light


def test_dividing_cells_are_darker_in_the_middle(demo: LabeledImages) -> None:
    middle = demo.x.reshape(-1, 30, 30)[:, 12:18, 12:18].mean((1, 2))
    own = demo.label == demo.classes.index("mitosis")
    assert middle[own].mean() < middle[~own].mean() - 0.05


def test_two_plates_have_light_between_them() -> None:
    made = simulate.cells(0, 10, (10, 1), simulate.Look(clump=0.0), apart=(5, 5))
    middle = made.x.reshape(-1, 30, 30)[:, 14:16, 14:16].mean((1, 2))
    pair, plate = (made.label == made.classes.index(n) for n in ("pair of plates", "plate"))
    assert middle[pair].mean() > middle[plate].mean() + 0.1


def test_slides_differ_more_where_it_is_hard() -> None:
    spread = []
    for look in (simulate.EASY, simulate.HARD):
        made = simulate.cells(1, 30, (1, 20), look)
        darkest = np.percentile(made.x, 2, axis=1)
        spread.append(np.std([darkest[made.group == g].mean() for g in range(30)]))
    assert spread[1] > 1.2 * spread[0]


@pytest.mark.slow
def test_other_slides_can_be_told_but_not_without_error() -> None:
    """Something can be learned, and something is left to learn; hard is harder."""
    results = []
    for look in (simulate.EASY, simulate.HARD):
        made = simulate.cells(0, 20, (5, 60), look)
        new, own = made.group >= 12, made.label == 0
        axes = PCA(40, random_state=0).fit(made.x[~new])
        machine = SVC(class_weight="balanced", C=10).fit(axes.transform(made.x[~new]), own[~new])
        told = machine.decision_function(axes.transform(made.x[new]))
        results.append(roc_auc_score(own[new], told))
    assert 0.8 < results[0] < 0.99
    assert 0.6 < results[1] < results[0]
