"""A frame, a service and a desk without a browser, for the tests of the clamp page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scant.errors import BadInput, NotAllowed, Unavailable
from scant.events import Report
from scant.store import Store
from scant.studies.clamp.entry import ENTRY
from scant.studies.clamp.settings import ClampSettings
from scant_dashboard.controls.labeling_widget import LabelingWidget as Component
from scant_dashboard.pages.clamp.labeling_session import LabelingSession
from tests.dashboard.fakes import Asker

N = 6
METADATA: dict[str, Any] = {
    "classes": ["no clamp", "clamp"],
    "methods": ["GP, active", "GP, random"],
    "compared": ["GP, active", "GP, random"],
    "pictures": ["a.jpg", "b.jpg"],
    "images": True,
    "columns": [],
    "rows": {"pool": N, "validation": 0, "test": 0},
}


def arrays() -> dict[str, np.ndarray]:
    return {
        "labels": np.array([2.0, 4.0]),
        "f1": np.array([[0.5, 0.8], [0.4, 0.5]]),
        "precision": np.array([[0.5, 0.9], [0.4, 0.5]]),
        "recall": np.array([[0.5, 0.7], [0.4, 0.5]]),
        "f1_random_sd": np.array([0.1, 0.1]),
        "pool_xy": np.arange(2.0 * N).reshape(N, 2),
        "pool_p": np.linspace(0, 1, N),
        "row": np.arange(N) + 100,
        "truth": np.arange(N) % 2,
        "picture": np.array([0, 0, 0, 1, 1, 1]),
        "place": np.array([[30 * (i % 3), 0, 20, 20, 80, 20] for i in range(N)]),
        "asked": np.array([0, 5]),
        "asked_label": np.array([0, 1]),
        "queue": np.array([2, 3]),
        "queue_p": np.array([0.4, 0.6]),
        "role": np.zeros(N, int),
    }


class Service:
    """Answers as the study does, from the labels that it is sent; keeps what it was asked."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.down = False
        self.placed: set[int] = set()  # placed patches whose images were sent

    async def explore(self, run: str, question: str, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((question, asked))
        if self.down:
            raise Unavailable("No worker is up at the moment; try again in a few seconds.")
        if question == "patches":
            k = len(asked["rows"])
            return {
                "image": np.full((k, 8, 8, 3), 90, np.uint8),
                "thumb": np.full((k, 4, 8, 3), 90, np.uint8),
                "box": np.tile([0.0, 0.0, 0.5, 1.0], (k, 1)),
                "x": np.empty((k, 0)),
            }
        self.placed |= set(asked.get("images", ()))
        done = {row for row, _ in asked["labels"]}
        queue = [i for i in range(N) if i not in done][: asked["batch"]]
        return {
            "queue": np.array(queue, int),
            "queue_p": np.full(len(queue), 0.5),
            "reason": np.array([f"p = 0.50, row {i}" for i in queue], str),
            "p": np.linspace(0, 1, N),
            "f1": np.array([0.7]),
            "precision": np.array([0.8]),
            "recall": np.array([0.6]),
            "advice": np.array(["Go on: F1 still rises."]),
            "missing_images": np.array([r for r in done if r >= N and r not in self.placed], int),
        }

    async def submit(self, study: str, values: Any, data: str, owner: str) -> str:
        self.asked.append(("submit", dict(values)))
        return "new"


class Frame(Asker):
    """Stands for the page's frame; work in the background is done at once."""

    present = False
    entry = ENTRY

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.service = Service(store)
        doc = SimpleNamespace(
            add_periodic_callback=lambda act, _: act, remove_periodic_callback=lambda _: None
        )
        self.visit = SimpleNamespace(doc=doc, owner="me")
        self.opened: list[str] = []

    def background(
        self,
        work: Any,
        then: Callable[[Any], None],
        refused: Callable[[str], None] | None = None,
        last: Callable[[], None] = lambda: None,
    ) -> None:
        try:
            then(asyncio.run(work))
        except (BadInput, NotAllowed, Unavailable) as error:
            (refused or (lambda _: None))(str(error))
        last()

    def submit(self, values: Any, data: str) -> Any:
        return self.service.submit("clamp", values, data, self.visit.owner)

    def open(self, run: str) -> None:
        self.opened.append(run)

    def turn(self, *acts: Callable[[], None]) -> None:
        for act in acts:
            act()

    def address(self) -> None: ...

    def read(self, at_once: bool = False) -> None: ...

    def link(self, **query: Any) -> str:
        return "./clamp?"


def run(metadata: dict[str, Any] | None = None, **settings: Any) -> Any:
    return SimpleNamespace(
        id="r",
        metadata=METADATA | (metadata or {}),
        report=Report((), arrays()),
        record=SimpleNamespace(
            settings=ClampSettings.parse({"expert": "you"} | settings).values(), data="demo"
        ),
        recorded=False,
    )


class Press:
    """A desk whose browser is this test."""

    def __init__(
        self, frame: Any, monkeypatch: pytest.MonkeyPatch, metadata: dict[str, Any] | None = None
    ) -> None:
        self.heard: list[dict[str, Any]] = []
        self.batches: list[int] = []
        monkeypatch.setattr(Component, "_send_msg", lambda _, data: self.heard.append(data))
        self.session = LabelingSession(
            frame, lambda _, labels: self.batches.append(len(labels)), lambda: None
        )
        self.session.open(run(metadata))
        self.turn = 0

    def __call__(self, act: str, who: str = "ada", **more: Any) -> dict[str, Any]:
        self.turn += 1
        message = {"act": act, "turn": self.turn, "who": who, **more}
        self.session.widget._handle_msg(message)
        answers = [h for h in self.heard if h.get("turn") == self.turn]
        return answers[-1] if answers else {}

    @property
    def queue(self) -> list[int]:
        return [one["row"] for one in self.session.widget.queue]
