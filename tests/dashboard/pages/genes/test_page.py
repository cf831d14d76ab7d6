"""The genes page's own views: what they ask of the model, and what they do with its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scant.events import Metric, Report
from scant_dashboard.pages.genes import browse
from scant_dashboard.pages.genes import page as genes
from scant_dashboard.pages.genes.browse import HEIGHT, TOGETHER, Browse
from scant_dashboard.pages.genes.compare import Compare
from scant_dashboard.pages.genes.grid import Grid
from scant_dashboard.pages.genes.held_out_replica import NEW, HeldOutReplica
from tests.dashboard.fakes import Asker

GRID = np.linspace(0.0, 4.0, 5)


def metadata(outputs: int = 3) -> dict[str, Any]:
    names = [f"o{d}" for d in range(outputs)]
    shown = names[:2]
    return {
        "outputs": names,
        "replicas": [["r1", "r2"]] * outputs,
        "shown": shown,
        "observed": {
            "x": [0.0, 2.0, 4.0, 1.0, 3.0],
            "y": [0.0, 1.0, 2.0, 5.0, 6.0],
            "output": [0, 0, 0, 1, 1],
            "replica": [0, 0, 1, 0, 1],
            "test": [0, 0, 1, 0, 0],
        },
    }


def curves(outputs: int) -> dict[str, np.ndarray]:
    mean = np.broadcast_to(np.linspace(0, 2, 5), (outputs, 2, 5)).copy()
    std = np.full((outputs, 2, 5), 0.3)
    return {
        "grid": GRID,
        "mean": mean,
        "std_f": std,
        "std_y": 2 * std,
        "shared_mean": mean[:, 0],
        "shared_std": std[:, 0],
    }


class Model(Asker):
    """Stands for the run service as well."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[Callable[[Any], None], Callable[[str], None]]] = []
        self.said: list[str] = []
        self.service = SimpleNamespace(explore=self.explore)

    def take(self, question: str, then: Callable[[Any], None]) -> None:
        self.waiting.append((then, lambda _: None))

    async def explore(self, run: str, question: str, asked: dict[str, Any]) -> None:
        self.asked.append((question, asked))

    def background(
        self,
        work: Coroutine[Any, Any, None],
        then: Callable[[Any], None],
        refused: Callable[[str], None],
    ) -> None:
        asyncio.run(work)
        self.waiting.append((then, refused))

    def say(self, sentence: str, kind: str) -> None:
        self.said.append(sentence)

    def read(self, at_once: bool = False) -> None: ...

    def answer(self, arrays: dict[str, np.ndarray]) -> None:
        then, _ = self.waiting.pop(0)
        then(arrays)


def run(outputs: int = 3) -> Any:
    message = metadata(outputs)
    arrays = curves(2)
    report = Report((Metric("this run", "NMSE", 0.1),), arrays)
    return SimpleNamespace(
        id="r", metadata=message, report=report, record=SimpleNamespace(settings={})
    )


@pytest.fixture
def model() -> Model:
    return Model()


def hidden_answer() -> dict[str, np.ndarray]:
    one = {"mean": np.linspace(0, 2, 5), "std_f": np.full(5, 0.3), "std_y": np.full(5, 0.6)}
    both = {f"{when}_{name}": v for when in ("before", "after") for name, v in one.items()}
    return {"grid": GRID, **both, "x": np.array([1.0, 3.0]), "y": np.array([0.5, 9.0]),
            "nmse": np.array([0.25]), "inside": np.array([1])}  # fmt: skip


def test_a_clicked_replica_is_hidden_and_returns(model: Model) -> None:
    view = HeldOutReplica(model)  # type: ignore[arg-type]
    assert view.button.disabled
    view.open(run())
    assert model.asked == []

    view._clicked("o1", "r2")
    assert model.asked == [("hide", {"output": "o1", "replica": "r2"})]
    assert len(view.grid.plot.chosen.data["left"]) == 1
    model.answer(hidden_answer())
    assert view.pair.panel.visible
    assert list(view.pair.labels.data["text"]) == ["r2, as trained", "r2"]
    assert list(view.pair.labels.data["hidden"]) == ["", "held out"]
    assert "0.250" in view.reading.object
    assert "contains 1 of 2" in view.reading.object
    view.clear(run())
    assert not view.pair.panel.visible
    assert view.button.disabled


def test_a_replica_never_taken_is_expected(model: Model) -> None:
    view = HeldOutReplica(model)  # type: ignore[arg-type]
    view.open(run())
    view.output.value = "o2"  # an output that the grid does not show
    view.replica.value = NEW
    assert view.button.label == "Expect it"
    assert len(view.grid.plot.chosen.data["left"]) == 0
    view._ask()
    assert model.asked == [("new", {"output": "o2"})]
    model.answer({"grid": GRID, "mean": np.linspace(0, 2, 5), "std_f": np.full(5, 0.3),
                  "std_y": np.full(5, 0.6)})  # fmt: skip
    assert "between 0 and 2" in view.reading.object
    assert len(view.pair.points.data["u"]) == 0


def test_names_from_a_table_are_text(model: Model) -> None:
    view = HeldOutReplica(model)  # type: ignore[arg-type]
    evil = run()
    evil.metadata["replicas"][0][0] = "<img src=x onerror=alert(1)>"
    view.open(evil)
    view._clicked("o0", "<img src=x onerror=alert(1)>")
    model.answer(hidden_answer())
    assert "<img" not in view.reading.object
    assert "&lt;img" in view.reading.object


def many_answer(n: int) -> dict[str, np.ndarray]:
    visited = {"x": np.array([1.0]), "y": np.array([0.5])}
    visited |= {name: np.zeros(1, int) for name in ("output", "replica", "test")}
    return {**curves(n), **{f"seen_{name}": values for name, values in visited.items()}}


def drawn(view: Browse) -> list[int]:
    return [slot.batch for slot in view._visible_slots()]


def test_outputs_are_asked_for_when_they_come_near_and_figures_move(model: Model) -> None:
    view = Browse(model)  # type: ignore[arg-type]
    view.open(run(200))
    assert len(view.batches) == 67
    assert view.scrolled.height == 67 * HEIGHT
    assert len(model.asked) == 1  # one question at a time
    while model.waiting:
        model.answer(many_answer(TOGETHER))
    assert drawn(view) == [0, 1]
    assert view.alt == "Drawn now: o0 to o5, of 200 outputs."
    for top in range(0, 20 * HEIGHT, HEIGHT // 2):
        view.scrolled.top = top
        while model.waiting:
            model.answer(many_answer(TOGETHER))
    assert len(view.slots) <= browse.FIGURES
    assert 19 in drawn(view)
    assert 0 not in drawn(view)
    slot = next(s for s in view.slots if s.batch == 19)
    assert slot.panel.styles["top"] == f"{19 * HEIGHT}px"
    assert slot.plot.rows == ["o57", "o58", "o59"]
    query = len(model.asked)
    view.scrolled.top = 15 * HEIGHT  # where the visitor was before: nothing is asked again
    assert len(model.asked) == query
    assert 15 in drawn(view)
    view.scrolled.top = 60 * HEIGHT
    view.scrolled.top = 40 * HEIGHT  # passed by before the answer came
    model.answer(many_answer(TOGETHER))
    assert model.asked[-1][1]["outputs"][0] == "o120"


def test_a_question_that_is_refused_is_not_asked_for_ever(model: Model) -> None:
    view = Browse(model)  # type: ignore[arg-type]
    view.open(run(30))
    _, refuse = model.waiting.pop(0)
    refuse("The run has left no model.")
    assert model.said == ["The run has left no model."]
    assert model.waiting == []
    view.scrolled.top = 80  # the visitor moves on
    assert len(model.waiting) == 1


def test_chosen_outputs_alone_are_shown_and_old_answers_dropped(model: Model) -> None:
    view = Browse(model)  # type: ignore[arg-type]
    view.open(run(30))
    view.chosen.value = ["o7", "o3"]
    assert view.batches == [["o7", "o3"]]
    model.answer(many_answer(TOGETHER))  # of the outputs that are not shown any more
    assert drawn(view) == []
    model.answer(many_answer(2))
    assert view.slots[0].plot.rows == ["o7", "o3"]
    view.clear(run())
    assert view.figures == ()
    assert view.alt == ""


def test_the_grid_lays_out_a_run_once_and_follows_its_curves() -> None:
    grid = Grid("grid")
    message = metadata()
    grid.show(curves(2), message)
    laid = grid.plot._points
    grid.show(curves(2), message)
    assert grid.plot._points is laid
    assert "1 of 1 held-out points" in grid.alt
    grid.show(curves(2), metadata())
    assert grid.plot._points is not laid


def test_models_stand_side_by_side() -> None:
    view = Compare()
    arrays = curves(2) | {
        "compare_mean": np.zeros((2, 2, 5)),
        "compare_std": np.ones((2, 2, 5)),
    }
    metrics = [Metric("this run", "NMSE", 0.1)]
    metrics += [Metric(m, "NMSE", 0.2, source="baseline") for m in ("DHGP", "pooled GP")]
    view.update(Report(tuple(metrics), arrays), metadata())
    assert view.plot.rows == ["this run", "DHGP", "pooled GP"]
    assert len(view.plot.held.data["u"]) == 3
    assert view.alt.startswith(
        "All rows are o0. Held-out points (green rings, the same 1 in each row)"
    )
    assert "3 models" in view.alt


def test_other_models_are_offered() -> None:
    shown = SimpleNamespace(record=SimpleNamespace(settings={"model": "lmc"}))
    message, others = genes.other_models(shown)  # type: ignore[arg-type]
    assert message.startswith("This run trained LMC")
    assert {other.settings["model"] for other in others} == set(genes.MODELS) - {"lmc"}


def test_nothing_held_out_is_said() -> None:
    plots: list[Any] = [view for view in genes._result(Asker()) if hasattr(view, "view")]
    empty = {"test_y": np.empty(0), "coverage": np.empty((2, 0))}
    for late in plots[1:]:
        late.update(Report((), empty), metadata())
        late.build()
        assert "No row was held out" in late.alt
