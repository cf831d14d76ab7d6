"""The publication's comparison: all methods are scored alike, nothing is chosen on test rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from scant.errors import BadInput
from scant.studies.mitosis import models, published_methods
from scant.studies.mitosis import published_data as cases
from scant.studies.mitosis import reproduce as tables
from scant.studies.mitosis.published import SETTINGS
from scant.studies.mitosis.settings import FIXED, MitosisSettings
from scant.studies.mitosis.simulate import cells
from scant.studies.mitosis.study import TOLERANCE
from scant.studies.published import values
from scant.training.api import fit
from tests.engine.studies.studying import gathered
from tests.paths import REAL_DATA

needs_data = pytest.mark.skipif(
    not (REAL_DATA / cases.PATCHES).is_file(),
    reason="SCANT_REAL_DATA names no folder mitosis_amibr",
)


def small() -> cases.Case:
    made = cells(0, 12, (6, 25))
    sizes = {"learn": (30, 100), "test": (10, 40)}
    few = {"steps": 4, "most": 4, "inducing": 4}
    return cases.Case(made.x, made.label == 0, made.group, **sizes, **few, splits=2, sets=3)


def test_no_slide_is_in_two_parts() -> None:
    case = small()
    parts = cases.split(case, 0)
    slides = [set(case.slide[rows]) for rows in (parts.learn, parts.choose, parts.test)]
    assert not slides[0] & slides[1]
    assert not (slides[0] | slides[1]) & slides[2]
    assert case.rare[parts.learn].sum() == 30
    assert len(parts.learn) == 130
    few = cases.split(replace(case, learn=(5, 200)), 0)
    assert case.rare[few.choose].sum() == 5
    for own in cases.sets_of(case, parts.test, 0):
        assert len(np.unique(own)) == 50
        assert case.rare[parts.test][own].sum() == 10


def test_too_few_rows_to_test_are_said() -> None:
    with pytest.raises(BadInput, match="not 5000"):
        cases.split(replace(small(), test=(5000, 1)), 0)


def test_every_method_is_scored_on_every_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "drawn", small)
    monkeypatch.setattr(published_methods, "COMPONENTS", 6)
    monkeypatch.setattr(published_methods, "WIDER", (6,))
    result = gathered("mitosis", tables.reproduce(quick=True, data=None, fit=fit))
    assert len(result["method"].unique()) == 10
    assert {f"{name}, as published" for name in ("SCLVM", "BGPLVM + SVM", "DGPLVM + SVM")} < set(
        result["method"]
    )
    assert result["published"].isna().all()  # of invented cells nothing is published
    assert result["ours"].between(0, 1).all()
    assert result["spread"].notna().all()


@pytest.mark.parametrize("name", ["sclvm", "bgplvm", "dgplvm"])
def test_models_as_published_have_the_settings_of_the_preset(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[MitosisSettings] = []
    build = models.build
    monkeypatch.setattr(models, "build", lambda s, *rest: used.append(s) or build(s, *rest))
    case = small()
    rows = published_methods.Rows(case, cases.split(case, 0))
    published_methods._as_published(name, rows, np.arange(40), 0)
    (s,) = used
    expected = values(SETTINGS) | {"model": name, "max_steps": case.most}
    assert {key: getattr(s, key) for key in SETTINGS} == expected
    assert cases.drawn().most == values(SETTINGS)["max_steps"]


def test_training_ends_once_a_row_gains_too_little() -> None:
    """By the study's rule: `patience` steps after the last gain of more than the tolerance."""
    made = cells(0, 6, (3, 8))
    x, label = torch.as_tensor(made.x[:, ::30]), torch.as_tensor(made.label == 0).long()
    few = FIXED | {"n_inducing": 4, "max_steps": 100, "adam_steps": 10}

    def trained(patience: int) -> np.ndarray:
        s = MitosisSettings(**few, patience=patience)
        model = models.build(s, "sclvm", x, label, 2, torch.Generator().manual_seed(0))
        return np.array(published_methods.train_to_convergence(model, s)) / len(x)

    bound, longer = trained(5), trained(0)
    assert len(bound) < len(longer)
    assert bound == pytest.approx(longer[: len(bound)])
    gains = [0]
    for step, value in enumerate(bound):
        if value > bound[gains[-1]] + TOLERANCE:
            gains.append(step)
    assert max(np.diff(gains)) <= 5
    assert len(bound) - 1 - gains[-1] == 5


def test_f1_is_that_of_as_many_others_as_asked_for() -> None:
    rng = np.random.default_rng(0)
    rare = rng.random(200) < 0.3
    score = rng.normal(0, 1, 200) + rare
    twice = np.concatenate([np.flatnonzero(rare), np.repeat(np.flatnonzero(~rare), 2)])
    ratio = 2 * (~rare).sum() / rare.sum()
    expected = f1_score(rare[twice], score[twice] > 0.2)
    assert tables.f1(score, rare, ratio, 0.2) == pytest.approx(expected)


def test_eight_turns_are_all_there_are() -> None:
    made = np.arange(18.0).reshape(2, 9)
    turned = published_methods._turned(made).reshape(8, 2, 9)
    assert np.array_equal(turned[0], made)
    assert len({tuple(one) for one in turned[:, 0]}) == 8
    assert set(map(tuple, np.sort(turned[:, 1]))) == {tuple(made[1])}


def test_threshold_is_the_best_where_rows_are_as_rare_as_asked_for() -> None:
    rng = np.random.default_rng(0)
    rare = rng.random(4000) < 0.5
    score = rng.normal(0, 1, 4000) + 2.0 * rare
    level, promised = tables.threshold(score, rare, ratio=8.0)
    kept = rare & (rng.random(4000) < 1 / 8) | ~rare
    got = f1_score(rare[kept], score[kept] > level)
    assert got == pytest.approx(promised, abs=0.05)
    assert got > f1_score(rare[kept], score[kept] > 1.0)  # best where both are as frequent


def test_measures_are_those_above_the_level() -> None:
    score = np.array([0.9, 0.8, 0.3, 0.2])
    result = tables.measures(score, np.array([True, False, True, False]), 0.5)
    assert result == pytest.approx(
        {"precision": 0.5, "recall": 0.5, "F1": 0.5, "average precision": 5 / 6}
    )


def test_a_folder_without_the_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no file patches_gray30\.npz in"):
        list(cases.real(tmp_path))


@needs_data
def test_the_measured_data_are_as_imbalanced_as_published() -> None:
    result = dict(cases.real(REAL_DATA))
    published = result["AMi-Br, 440 + 5,000"]
    parts = cases.split(published, 0)
    assert np.bincount(published.rare[parts.learn]).tolist() == [5000, 440]
    assert 0.0 <= published.x.min() < published.x.max() <= 1.0
    rarest = cases.split(result["AMi-Br, 3 + 1,000"], 0)
    assert np.bincount(published.rare[rarest.learn]).tolist() == [1000, 3]
    for case in result.values():
        assert len(list(cases.sets_of(case, cases.split(case, 0).test, 0))) == 10


@needs_data
def test_sclvm_finds_mitoses_on_slides_it_has_not_seen() -> None:
    """With a tenth of the rows; by chance F1 would be 0.2."""
    case = dict(cases.real(REAL_DATA))["AMi-Br, 440 + 5,000"]
    case = replace(case, learn=(150, 450), steps=60)
    rows = published_methods.Rows(case, cases.split(case, 0))
    columns = rows.columns(20)
    model = published_methods._sclvm(rows, columns(rows.learn), 15, 0)
    own = next(cases.sets_of(case, rows.index[2], 0))
    score = published_methods._odds(model, columns(rows.test[own]))
    assert tables.measures(score, rows.rare[2][own], 0.0)["F1"] > 0.6
