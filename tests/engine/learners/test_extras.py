"""Rivals of other packages: there where they are installed, and asked as those packages ask."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from scant.errors import BadInput
from scant.evaluate import compare
from scant.evaluate.compare import compared
from scant.events import Report
from scant.learners import extras
from scant.learners.general import general_tools
from scant.predictive import MixturePredictive
from scant.problem import Comparison, Problem

RNG = np.random.default_rng(5)
X = RNG.normal(size=(160, 3))
Y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * RNG.normal(size=160)


def check_values(mean: np.ndarray, variance: np.ndarray) -> None:
    """That a method has learned, and that its variance is that of its errors."""
    assert np.mean((mean - Y[100:]) ** 2) < 0.5 * Y.var()
    assert 0.1 < np.mean((mean - Y[100:]) ** 2 / variance) < 6


@pytest.mark.parametrize("name", ["catboost", "ngboost"])
def test_boosting_knows_its_error(name: str) -> None:
    pytest.importorskip(name)
    gaps = np.where(RNG.random(X.shape) < 0.03, np.nan, X)
    check_values(*getattr(extras, name)(gaps[:100], Y[:100], gaps[100:]))


def test_catboost_gives_probabilities_of_every_class() -> None:
    pytest.importorskip("catboost")
    label = 2 * (X[:, 0] > 0)  # class 1 does not occur
    p = extras.catboost_of_classes(X[:100], label[:100], X[100:], 3)
    np.testing.assert_allclose(p.sum(1), 1)
    assert np.mean(p.argmax(1) == label[100:]) > 0.8


class FakeTabPFN:
    """Answers as TabPFN of version 2 does: a dictionary with the quantiles that were asked for."""

    def __init__(self, *, model_path: str, random_state: int) -> None:
        self.path = model_path

    def fit(self, x: np.ndarray, y: np.ndarray) -> FakeTabPFN:
        assert Path(self.path).read_text() == "weights"
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share, self.mean, self.std = counts / len(y), y.mean(), y.std()
        return self

    def predict(self, x: np.ndarray, *, output_type: str, quantiles: list[float]) -> Any:
        assert output_type == "main"
        assert quantiles == pytest.approx([0.158655, 0.841345])
        ends = [np.full(len(x), self.mean + sign * self.std) for sign in (-1, 1)]
        return {"mean": np.full(len(x), self.mean), "quantiles": ends}

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.tile(self.share, (len(x), 1))


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two weights files, and a package that reads them."""
    for kind in ("classifier", "regressor"):
        (tmp_path / f"tabpfn-v2-{kind}.ckpt").write_text("weights")
    module = ModuleType("tabpfn")
    module.__spec__ = ModuleSpec("tabpfn", None)
    module.TabPFNRegressor = module.TabPFNClassifier = FakeTabPFN  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tabpfn", module)
    monkeypatch.setenv(extras.WEIGHTS, str(tmp_path))
    return tmp_path


def test_tabpfn_is_compared_with_the_weights_given(weights: Path) -> None:
    [values] = [r for r in extras.extras(0) if r.name == "TabPFN"]
    told = values.predict(Problem(X[:100], Y[:100], X[100:], Y[100:], ()))
    assert told.mean == pytest.approx(Y[:100].mean())
    assert told.variance == pytest.approx(Y[:100].var())
    [classes] = [r for r in extras.extras(3) if r.name == "TabPFN"]
    label = 2 * (X[:, 0] > 0)
    told = classes.predict(Problem(X[:100], label[:100], X[100:], label[100:], (), 3))
    share = float(np.mean(label[:100] == 0))
    assert told.probabilities[0] == pytest.approx([share, 0, 1 - share])
    assert extras.tabpfn_weights("classifier") == weights / "tabpfn-v2-classifier.ckpt"
    assert extras.tabpfn_weights("regressor") == weights / "tabpfn-v2-regressor.ckpt"


def test_one_file_serves_the_kind_that_it_is_named_for(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(extras.WEIGHTS, str(weights / "tabpfn-v2-regressor.ckpt"))
    assert extras.tabpfn_weights("").name == "tabpfn-v2-regressor.ckpt"
    with pytest.raises(BadInput, match="no file with weights of TabPFN's classifier"):
        extras.tabpfn_weights("classifier")
    (weights / "mine.pt").write_text("weights")
    monkeypatch.setenv(extras.WEIGHTS, str(weights / "mine.pt"))
    assert extras.tabpfn_weights("classifier").name == "mine.pt"


def test_without_weights_or_package_there_is_no_tabpfn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(extras.WEIGHTS, raising=False)
    assert "TabPFN" not in [r.name for r in extras.extras(0)]
    monkeypatch.setenv(extras.WEIGHTS, "/nowhere")
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="the package is not installed; `pip install tabpfn`"):
        extras.tabpfn_weights("regressor")
    own = MixturePredictive.gaussian(Y[100:], np.ones(60))
    c = Comparison(Problem(X[:100], Y[:100], X[100:], Y[100:], ("RMSE",)), own)
    monkeypatch.setattr(compare, "general_tools", extras.extras)
    told = compared(Report(), c, 1.0, own=True, rivals=True).notes
    assert len(told) == 1
    assert told[0].startswith("TabPFN was not compared: There are weights of TabPFN (/nowhere)")


def test_the_terminal_refuses_weights_before_it_trains(weights: Path) -> None:
    from scant_dashboard.cli.main import app

    asked = ["fit", "redshift", "--tabpfn", str(weights / "no.ckpt")]
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code != 0
    assert "names no file with weights of TabPFN's models" in answer.output


def test_what_another_package_raises_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    class CatBoostError(Exception):
        pass

    def answer(*_: Any) -> Any:
        raise CatBoostError("All features are constant.")

    own = MixturePredictive.gaussian(Y, None)
    rival = replace(general_tools(0)[0], answer=answer)
    monkeypatch.setattr(compare, "general_tools", lambda classes: [rival])
    problem = Problem(X[:100], Y[:100], X[100:], Y[100:], ("RMSE",))
    c = Comparison(problem, own.rows(slice(100, None)))
    notes = compared(Report(), c, 1.0, own=True, rivals=True).notes
    assert notes == (f"{rival.name} was not compared: All features are constant.",)
