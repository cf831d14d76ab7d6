"""The presenter's side of a wall: starts it, and keeps its figure current."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

from scant.errors import BadInput
from scant.studies import Entry
from scant_dashboard.engine_text import translated
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.plots.base import View
from scant_dashboard.plots.wall import TITLE, WallPlot
from scant_dashboard.room.card import RoomCard
from scant_dashboard.room.room import Room
from scant_dashboard.room.wall import PRESENTER, Wall
from scant_dashboard.room.wall_presets import PRESETS, SAMPLE, SEED, Variation
from scant_dashboard.room.wall_runner import WallRunner
from scant_dashboard.study_page.collected import Collected
from scant_dashboard.study_page.figure import Figure
from scant_dashboard.translate import ntr, tr

TOGETHER = 400  # ms for which changes of runs are collected


class WallPage(Protocol):
    """The page, as far as a wall uses it."""

    entry: Entry
    visit: SessionContext

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Steps of present mode: (title of a figure, text)."""

    def turn(self, *acts: Any) -> None:
        """Call these on the session's document."""


class WallView(View):
    """The figure's view: the plot of the current wall, if any."""

    title = TITLE

    def __init__(self) -> None:
        self.plot: WallPlot | None = None
        self.panel = column()

    @property
    def alt(self) -> str:
        """The plot's text alternative."""
        return self.plot.alt if self.plot is not None else ""

    def say(self) -> None:
        if self.plot is not None:
            self.plot.say()


class WallController:
    """Starts a wall on the presenter's request, and shows its runs.

    Attributes:
        view: The view of the wall.
    """

    def __init__(self, page: WallPage, card: RoomCard) -> None:
        self._page, self._card = page, card
        self._room: Room | None = None
        self._on_news = Collected(page.turn, page.visit.doc, TOGETHER, self._show)
        self.view = WallView()
        preset = PRESETS.get(page.entry.name)
        if preset is not None:
            setting, low, high = preset.setting
            card.wall = {
                "about": tr(preset.about), "usual": preset.usual,
                "choices": [[SEED, tr(preset.seed)], [SAMPLE, tr(preset.sample)]],
                "setting": setting, "low": low, "high": high,
            }  # fmt: skip
        card.param.watch(lambda _: self._on_request(), "wall_request")

    @cached_property
    def figure(self) -> Figure:
        """The figure at the end of the page, hidden without a wall."""
        step = len(self._page.steps)
        self._card.wall_step = step
        made = Figure(self.view, full_width=True, step=step)
        made.panel.visible = self.view.plot is not None
        return made

    def take(self, room: Room) -> None:
        """Show the wall of a room, now or later."""
        self._room = room
        room.wall_changed = self._on_news
        self._show()

    def end(self) -> None:
        """The room has ended."""
        self._room = None
        self._show()

    def _on_request(self) -> None:
        room, request = self._room, self._card.wall_request
        if room is None or not request:
            return
        name = request.get("name")
        if not name:
            room.end_wall()
            return
        try:
            variation = Variation.parse(self._page.entry.name, request)
        except BadInput as error:
            self._card.wall_fault = translated(str(error))
            return
        self._card.wall_fault = ""
        wall = Wall(variation)
        WallRunner(self._page.visit.site.service, wall, room.code, room.is_present).start()
        room.start_wall(wall)
        wall.join(PRESENTER)
        self._show()

    def _show(self) -> None:
        """Show the current wall."""
        wall = self._room.wall if self._room is not None else None
        view = self.view
        if wall is None:
            view.plot = None
            view.panel.objects = []
        elif view.plot is None or view.plot.wall is not wall:
            view.plot = WallPlot(wall, self._read)
            view.panel.objects = [view.plot.panel]
        else:
            view.plot.show()
        self._card.wall_count = _count(wall)
        if "figure" in self.__dict__:
            self.figure.panel.visible = wall is not None
            self._read()

    def _read(self) -> None:
        self.figure.read()


def _count(wall: Wall | None) -> str:
    if wall is None:
        return ""
    return ntr("{n} run", "{n} runs", len(wall.runs))
