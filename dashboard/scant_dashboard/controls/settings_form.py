"""The form of a study's settings, generated from its `Settings` class.

Widgets are not linked to parameters, because linked ones silently revert invalid values. Their
text is read when the visitor presses Train, by the same `Settings.parse` that reads links and the
command line; invalid values are marked in the form.
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
from scant_dashboard.engine_text import translated
from scant_dashboard.page_parts.widgets import collapsible, column
from scant_dashboard.template import text
from scant_dashboard.translate import ENGLISH, later, spoken, tr

SCARCITY = "training_size"  # the setting for the number of training rows
ROWS = later("Scarcity: rows to learn from")
ROWS_OF = later("Scarcity: rows to learn from, of {rows:,}")
USED_ROWS = later("Scarcity: {used:,} rows to learn from, of {rows:,}")
_LADDER = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
# Steps of settings that only one data set has.
_SHORT_LADDER = [0, 1, 2, 5, 10, 15, 20, 30, 50, 100]


class SettingsForm:
    """Widgets for all settings: the essential ones visible, the others collapsed.

    Args:
        settings: The study's settings class.
        presets: Values of each preset, by name.
        scarcities: Names of the settings that reduce a single data set each.
    """

    def __init__(
        self,
        settings: type[Settings],
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        scarcities: Collection[str] = (),
    ) -> None:
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
        self.panel = column(*self._layout(), self._message)

    def fill(self, values: Mapping[str, Any]) -> None:
        """Show these settings, with defaults for the others."""
        self._filling = True
        for name, widget in self.widgets.items():
            value = values.get(name, self.settings.param[name].default)
            widget.value = value if _typed(widget) else str(value)
        self._filling = False
        self._changed()
        self.clear()

    def rebased(self, before: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings equal to their default in `before`, with their default in `start`."""
        changed = {}
        for name in {**before, **start}:
            default = self.settings.param[name].default
            if str(self.widgets[name].value) == str(before.get(name, default)):
                changed[name] = start.get(name, default)
        return changed

    def start_from(self, before: Mapping[str, Any], start: Mapping[str, Any]) -> None:
        """Replace unchanged defaults of `before` by those of `start`."""
        for name, value in self.rebased(before, start).items():
            self.widgets[name].value = value if _typed(self.widgets[name]) else str(value)

    def set_row_count(self, rows: int | None, used: int | None = None) -> None:
        """Show in the slider's label how many rows of the chosen data are learned from.

        Args:
            rows: Rows of the data; None if unknown.
            used: Rows learned from, which may be others than set: rows of other tasks come on top.
        """
        if self.scarcity is not None:
            message = ROWS if rows is None else USED_ROWS if used and rows else ROWS_OF
            self.scarcity.label = tr(message, used=used, rows=rows)

    def show_scarcity(self, name: str) -> None:
        """Show the scarcity setting of the chosen data set only; "" hides all."""
        for setting, slider in self._scarcities.items():
            slider.visible = self.widgets[setting].visible = setting == name

    def fill_from_query(
        self, query: Mapping[str, str], start: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Show the settings of a link, then those of `start`, then the defaults.

        Args:
            query: Query of the address; parameters that are no settings are ignored.
            start: Values of the start or preset.

        Returns:
            A warning for each invalid setting.
        """
        warnings = []
        good: dict[str, Any] = dict(start or {})
        for name, value in recorded_settings(self.settings.study, query, start).items():
            try:
                parsed = self.settings.parse({name: value})
                good[name] = getattr(parsed, name)
            except BadInput as error:
                if name == "data_seed" and name not in query:
                    continue  # derived from `seed`, which has its own warning
                ignored = tr("One part of the link is ignored.")
                warnings.append(f"{ignored} {translated(str(error))}")
        self.fill(good)
        return warnings

    def read(self) -> dict[str, Any]:
        """Return all settings.

        Raises:
            BadInput: A setting is invalid; it is marked, with the message below the form.
        """
        self.clear()
        raw_values = self.raw_values()
        try:
            for name, value in raw_values.items():
                self._check(name, value)
            return self.settings.parse(raw_values).values()
        except BadInput as error:
            message = html.escape(translated(str(error)))
            self._message.object = f"<p role='alert' class='error'>{message}</p>"
            self._message.visible = True
            raise

    def raw_values(self) -> dict[str, Any]:
        """Return the values of the widgets, not validated."""
        return {name: widget.value for name, widget in self.widgets.items()}

    def clear(self) -> None:
        """Remove the marks of invalid settings."""
        for widget in self.widgets.values():
            if "error_state" in widget.param and widget.error_state:
                widget.error_state = False
        self._message.visible = False

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed()` after a setting has changed, once if several change together."""
        self._listeners.append(changed)

    def _check(self, name: str, value: Any) -> None:
        try:
            self.settings.parse({name: value})
        except BadInput:
            if "error_state" in self.widgets[name].param:
                self.widgets[name].error_state = True
            raise

    def _layout(self) -> list[Any]:
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
            parts += collapsible(tr("More settings"), folded)
        return parts

    def _preset_buttons(self) -> dict[str, pmui.Button]:
        # Plain buttons: in a group of radio buttons, one would always have to be selected.
        made = {}
        for name, values in self.presets.items():
            made[name] = pmui.Button(
                label=tr(name),
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
        """Highlight the preset that equals the form's values, if any."""
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
        options = {**{tr("{n:,}", n=n): n for n in steps}, tr("all"): 0}
        return self._slider(SCARCITY, tr(ROWS), options)

    def _own_slider(self, name: str) -> pmui.DiscreteSlider:
        parameter = self.settings.param[name]
        low, high = parameter.bounds
        named = tr(str(parameter.label))
        if spoken() == ENGLISH:  # a German noun keeps its capital
            named = f"{named[0].lower()}{named[1:]}"
        label = tr("Scarcity: {setting}", setting=named)
        return self._slider(name, label, {str(n): n for n in _SHORT_LADDER if low <= n <= high})

    def _slider(self, name: str, label: str, options: dict[str, int]) -> pmui.DiscreteSlider:
        """Return a slider coupled to a setting's text field.

        A typed number moves the slider to the nearest step; 0 is a separate step, never the nearest
        to another number.
        """
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

        def slid(event: Any) -> None:
            if widget.value.strip().isdigit():  # keep a typed number near this step
                typed = int(widget.value)
                if typed and min(steps, key=lambda n: abs(n - typed)) == event.new:
                    return
            widget.value = str(event.new)

        widget.param.watch(nearest, "value")
        slider.param.watch(slid, "value")
        return slider


def _typed(widget: Any) -> bool:
    return not isinstance(widget, pmui.TextInput)


def _widget(name: str, parameter: param.Parameter) -> Any:
    common: dict[str, Any] = {
        "label": tr(str(parameter.label)),  # from the name, unless the catalog has a better one
        "description": tr(parameter.doc or "") or None,
        "sizing_mode": "stretch_width",
        "margin": (0, 0, 14, 0),
        "size": "small",
    }
    if isinstance(parameter, param.Boolean):
        return pmui.Checkbox(value=parameter.default, **{**common, "margin": (0, 0, 4, 0)})
    if isinstance(parameter, param.Selector):
        options = {tr(str(choice)): choice for choice in parameter.objects}
        return pmui.Select(options=options, value=parameter.default, **common)
    return pmui.TextInput(value=str(parameter.default), **common)
