"""The form that composes a lesson's link."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import panel as pn
import panel_material_ui as pmui

from scant.errors import BadInput
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.lesson import LONGEST, SECTIONS, Lesson
from scant_dashboard.page_parts.widgets import collapsible, column, slug
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

CURRENT_RUN = later("the current run")
FORM = later("the settings in the form")
TOP = later("the top of the page")
FIELDS = """
:host { display: grid !important; gap: 14px 24px; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 280px), 1fr)); }
:host > * { width: auto !important; min-width: 0; }
"""
FIELD_AND_BUTTON = """
:host { display: grid !important; grid-template-columns: minmax(0, 1fr) auto; gap: 10px; }
:host > * { width: auto !important; }
"""
HELP = later(
    "A lesson's link opens this page with the chosen settings, without the hidden parts, and with "
    "a short text above the figures. From this browser you can pause and stop the runs that are "
    "started from it."
)


class LessonLink:
    """Collapsible form in the Keep section: choose a lesson's settings, copy its link.

    The link is updated with every change. Opening it needs no account and affects nobody else.
    """

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._form = column(css=":host { gap: 14px; }")
        self.panel = column(*collapsible(tr("Make a lesson link"), self._form))
        self._form.param.watch(lambda _: self._on_expand(), "visible")

    def _on_expand(self) -> None:
        """Build the form when it is first expanded, since few visitors need it."""
        if self._form.visible and not self._form.objects:
            self._form.objects = self._layout()
        self.write()

    def _layout(self) -> list[Any]:
        page = self._page
        common: dict[str, Any] = {"size": "small", "margin": 0, "sizing_mode": "stretch_width"}
        tick: dict[str, Any] = {"value": False, "margin": 0}
        begin = {tr(CURRENT_RUN): CURRENT_RUN, tr(FORM): FORM}
        begin |= {_named(tr(preset)): _key(preset) for preset in page.entry.presets}
        self.begin = pmui.Select(label=tr("Opens with"), options=begin, value=CURRENT_RUN, **common)
        self.hide = pmui.MultiChoice(label=tr("Hidden"), options=self._parts(), value=[], margin=0,
                                    sizing_mode="stretch_width")  # fmt: skip
        steps = {tr(title): i + 1 for i, (title, _) in enumerate(page.steps)}
        self.step = pmui.Select(
            label=tr("Starts at"), options={tr(TOP): 0} | steps, value=0, **common
        )
        self.text_input = pmui.TextAreaInput(
            label=tr("Text above the figures (at most {longest} characters)", longest=LONGEST),
            value="", max_length=LONGEST, rows=2, margin=0, sizing_mode="stretch_width",
        )  # fmt: skip
        self.guess = pmui.Checkbox(
            label=tr("Guess first: answers are hidden until revealed"), **tick
        )
        self.present = pmui.Checkbox(label=tr("Present: large type, no controls"), **tick)
        self.link = pmui.TextInput(label=tr("Link to this lesson"), value="", **common)
        for widget in (self.begin, self.hide, self.step, self.guess, self.present):
            widget.param.watch(lambda _: self.write(), "value")
        self.text_input.param.watch(lambda _: self.write(), "value_input")
        copy = pmui.Button(label=tr("Copy lesson link"), variant="outlined", size="small", margin=0)
        copy.js_on_click(
            args={"field": self.link}, code="navigator.clipboard.writeText(field.data.value)"
        )
        return [
            text(f"<p class='quiet'>{tr(HELP)}</p>"),
            column(self.begin, self.step, self.hide, css=FIELDS),
            self.text_input,
            pn.FlexBox(self.guess, self.present, gap="4px 24px", margin=0),
            column(self.link, copy, css=FIELD_AND_BUTTON),
        ]

    def write(self) -> None:
        """Update the link if it is visible."""
        if self._form.visible:
            self.link.value = self.address()

    def address(self) -> str:
        """Return the link to the lesson."""
        page = self._page
        lesson = Lesson(
            frozenset(self.hide.value or ()),
            " ".join((self.text_input.value_input or self.text_input.value or "").split())[
                :LONGEST
            ],
            self.step.value or None,
            bool(self.guess.value),
            presenter=page.service.presenter(page.visit.owner),
        )
        query = self._settings() | lesson.query()
        if self.present.value:
            query["present"] = "1"
        return f"{page.visit.base}{page.entry.name}?" + urlencode(query)

    def _settings(self) -> dict[str, str]:
        page, chosen = self._page, self.begin.value
        if chosen == CURRENT_RUN and page.run is not None:
            return {"run": page.run.id}
        data = {} if page.data.value in ("demo", "", None) else {"data": page.data.value}
        for name in page.entry.presets:
            if chosen == _key(name):
                values = page.form.raw_values()
                seeds = {n: str(values.get(n, "")) for n in ("data_seed", "seed")}
                return data | {"preset": name} | seeds
        settings_type = page.entry.settings
        try:
            settings = settings_type.parse(page.form.raw_values())
        except BadInput as error:
            page.say(str(error), "error")
            return data
        link = page.entry.link(page.data.value, settings)
        return data | {name: str(value) for name, value in link.items()}

    def _parts(self) -> dict[str, str]:
        figures = {tr(view.title): slug(view.title) for view in self._page.views.every()}
        return {tr(title): name for name, title in SECTIONS.items()} | figures


def _named(preset: str) -> str:
    return tr("the preset: {name}", name=preset)


def _key(preset: str) -> str:
    return f"preset:{preset}"
