"""The form of a study's settings, made from its one `Settings` class.

Widgets are not linked to parameters (linked ones silently revert what is not allowed): their words
are read when the visitor presses Train, by the same `Settings.parse` that reads links and the
command line, and what it refuses is marked where it stands.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Mapping
from typing import Any

import panel_material_ui as pmui
import param

from scant.errors import BadInput
from scant.studies import Settings
from scant.studies.aliases import recorded_settings
from scant_dashboard.page_parts.widgets import collapsible, column
from scant_dashboard.template import text

SCARCITY = "training_size"  # the setting that says how little data the model may learn from
SLIDER = "Scarcity: rows to learn from"
_LADDER = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
_FEW = [0, 1, 2, 5, 10, 15, 20, 30, 50, 100]  # steps of what only one data set has


class SettingsForm:
    """Widgets for every setting: the essential ones open, the rest folded."""

    def __init__(
        self,
        settings: type[Settings],
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        scarcities: Collection[str] = (),
    ) -> None:
        """Presets by name, and settings that make only one of the data sets scarce."""
        self.settings = settings
        self.presets = dict(presets or {})
        self.widgets = {n: _widget(n, settings.param[n]) for n in settings.names()}
        self._filling = False
        self._listeners: list[Callable[[], None]] = []
        self._message = text("", visible=False)
        self._preset = self._preset_buttons()
        self.scarcity = self._rows_slider()
        self._scarcities = {name: self._own_slider(name) for name in scarcities}
        self.show_scarcity("")
        self.panel = column(*self._laid_out(), self._message)

    def fill(self, values: Mapping[str, Any]) -> None:
        """Show these settings, and the defaults for the rest."""
        self._filling = True
        for name, widget in self.widgets.items():
            value = values.get(name, self.settings.param[name].default)
            widget.value = value if _typed(widget) else str(value)
        self._filling = False
        self._changed()
        self.clear()

    def moved(self, before: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that nobody has changed since one start, as they are at another."""
        changed = {}
        for name in {**before, **start}:
            default = self.settings.param[name].default
            if str(self.widgets[name].value) == str(before.get(name, default)):
                changed[name] = start.get(name, default)
        return changed

    def start_from(self, before: Mapping[str, Any], start: Mapping[str, Any]) -> None:
        """Show what `moved` says."""
        for name, value in self.moved(before, start).items():
            self.widgets[name].value = value if _typed(self.widgets[name]) else str(value)

    def say_rows(self, rows: int | None) -> None:
        """Tell beside the slider how many rows the chosen data have."""
        if self.scarcity is not None:
            self.scarcity.label = SLIDER if rows is None else f"{SLIDER}, of {rows:,}"

    def show_scarcity(self, name: str) -> None:
        """Show the setting that makes the chosen data set scarce; hide those of others."""
        for own, slider in self._scarcities.items():
            slider.visible = self.widgets[own].visible = own == name

    def fill_from_query(
        self, query: Mapping[str, str], start: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Show settings that came in a link, over those of a preset, `start`, and the defaults.

        Returns a warning for each that makes no sense.
        """
        warnings = []
        good: dict[str, Any] = dict(start or {})
        for name, word in recorded_settings(self.settings.study, query, start).items():
            try:
                parsed = self.settings.parse({name: word})
                good[name] = getattr(parsed, name)
            except BadInput as error:
                if name == "data_seed" and name not in query:
                    continue  # it is the seed's, which is warned of
                warnings.append(f"One part of the link is ignored. {error}")
        self.fill(good)
        return warnings

    def read(self) -> dict[str, Any]:
        """The settings as they stand, every one of them.

        Raises:
            BadInput: One of them is not allowed; it is marked, and the sentence stands below.
        """
        self.clear()
        raw_values = self.raw_values()
        try:
            for name, word in raw_values.items():
                self._check(name, word)
            return self.settings.parse(raw_values).values()
        except BadInput as error:
            self._message.object = f"<p role='alert' class='error'>{html.escape(str(error))}</p>"
            self._message.visible = True
            raise

    def raw_values(self) -> dict[str, Any]:
        """What the widgets hold, unchecked."""
        return {name: widget.value for name, widget in self.widgets.items()}

    def clear(self) -> None:
        """Take away the marks of an earlier refusal."""
        for widget in self.widgets.values():
            if "error_state" in widget.param and widget.error_state:
                widget.error_state = False
        self._message.visible = False

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed()` called when a setting has changed, or all of them at one blow."""
        self._listeners.append(changed)

    def _check(self, name: str, word: Any) -> None:
        try:
            self.settings.parse({name: word})
        except BadInput:
            if "error_state" in self.widgets[name].param:
                self.widgets[name].error_state = True
            raise

    def _laid_out(self) -> list[Any]:
        first = [n for n in self.settings.essential if n in self.widgets] or list(self.widgets)
        first = [n for n in first if n not in self._scarcities]
        rest = [n for n in self.widgets if n not in (*first, *self._scarcities)]
        parts: list[Any] = []
        if self._preset:
            row = ":host { display: flex !important; flex-flow: row wrap; gap: 8px; }"
            parts = [column(*self._preset.values(), css=row), column(css=":host { height: 14px; }")]
        for name, slider in self._scarcities.items():
            parts += [slider, self.widgets[name]]
        for name in first:
            if name == SCARCITY and self.scarcity is not None:
                parts.append(self.scarcity)
            parts.append(self.widgets[name])
        if rest:
            folded = column(*(self.widgets[n] for n in rest))
            parts += collapsible("More settings", folded)
        return parts

    def _preset_buttons(self) -> dict[str, pmui.Button]:
        # Plain buttons: a group of radio buttons always insists that one of them holds.
        made = {}
        for name, values in self.presets.items():
            made[name] = pmui.Button(
                label=name,
                on_click=lambda _, values=values: self.fill(values),
                variant="outlined",
                size="small",
                margin=0,
            )
        for widget in self.widgets.values():
            widget.param.watch(lambda _: self._changed(), "value")
        return made

    def _changed(self) -> None:
        if not self._filling:
            self._name_preset()
            for changed in self._listeners:
                changed()

    def _name_preset(self) -> None:
        """Mark the preset that the form shows now, if it is one."""
        raw_values = {name: str(value) for name, value in self.raw_values().items()}
        default = {n: str(self.settings.param[n].default) for n in self.widgets}
        for name, preset in self.presets.items():
            holds = raw_values == default | {n: str(v) for n, v in preset.items()}
            self._preset[name].variant = "contained" if holds else "outlined"

    def _rows_slider(self) -> pmui.DiscreteSlider | None:
        if SCARCITY not in self.widgets:
            return None
        low, high = self.settings.param[SCARCITY].bounds
        steps = sorted({n for n in _LADDER if low <= n <= high})
        return self._slider(SCARCITY, SLIDER, {**{_spaced(n): n for n in steps}, "all": 0})

    def _own_slider(self, name: str) -> pmui.DiscreteSlider:
        parameter = self.settings.param[name]
        low, high = parameter.bounds
        named = str(parameter.label)
        label = f"Scarcity: {named[0].lower()}{named[1:]}"
        return self._slider(name, label, {str(n): n for n in _FEW if low <= n <= high})

    def _slider(self, name: str, label: str, options: dict[str, int]) -> pmui.DiscreteSlider:
        """A slider beside a setting's field, each of which follows the other; 0 is a step of its
        own, which no other number is near to."""
        widget = self.widgets[name]
        steps = [n for n in options.values() if n]
        slider = pmui.DiscreteSlider(
            label=label,
            options=options,
            value=self.settings.param[name].default,
            sizing_mode="stretch_width",
            margin=(0, 8, 4, 8),
        )

        def nearest(event: Any) -> None:
            if event.new.strip().isdigit():
                typed = int(event.new)
                slider.value = min(steps, key=lambda n: abs(n - typed)) if typed else 0

        def pushed(event: Any) -> None:
            if widget.value.strip().isdigit():  # an exact number typed by hand stays as it is
                typed = int(widget.value)
                if typed and min(steps, key=lambda n: abs(n - typed)) == event.new:
                    return
            widget.value = str(event.new)

        widget.param.watch(nearest, "value")
        slider.param.watch(pushed, "value")
        return slider


def _spaced(n: int) -> str:
    return f"{n:,}".replace(",", "\u202f")


def _typed(widget: Any) -> bool:
    return not isinstance(widget, pmui.TextInput)


def _widget(name: str, parameter: param.Parameter) -> Any:
    common: dict[str, Any] = {
        "label": parameter.label,  # its name in words, unless the catalog has better ones
        "description": parameter.doc or None,
        "sizing_mode": "stretch_width",
        "margin": (0, 0, 14, 0),
        "size": "small",
    }
    if isinstance(parameter, param.Boolean):
        return pmui.Checkbox(value=parameter.default, **{**common, "margin": (0, 0, 4, 0)})
    if isinstance(parameter, param.Selector):
        return pmui.Select(options=list(parameter.objects), value=parameter.default, **common)
    return pmui.TextInput(value=str(parameter.default), **common)
