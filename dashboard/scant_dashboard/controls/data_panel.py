"""Choice of data: the demonstration, a fetched data set, or an uploaded table."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

import panel_material_ui as pmui
from panel.viewable import Viewable

from scant.errors import NotFound
from scant.store import UploadRecord
from scant.store.trouble import StoreTrouble
from scant_dashboard.controls.fetch import FetchButton
from scant_dashboard.controls.upload import Upload
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text
from scant_dashboard.translate import moment, ntr, tr


class DataPanel:
    """Choice of a source, including the visitor's tables, to which the upload wizard adds."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._listeners: list[Callable[[], None]] = []
        self._showing = False
        self._own_target = False  # whether the form names a target of an uploaded table
        self._own_class = False  # whether it names a class of one
        self._asked: dict[str, Mapping[str, str]] = {}  # settings from the wizard, by data
        self._foreign: dict[str, str] = {}  # uploads of other visitors used by the current run
        self.upload = Upload(page, self._uploaded, self.refresh)
        self.fetch = FetchButton(page)
        self._about = text("")
        self._choice = pmui.Select(
            label=tr("Source"), options={}, size="small", sizing_mode="stretch_width", margin=0
        )
        self.refresh()
        self._choice.param.watch(lambda _: self._chosen(), "value")
        self.panel = column(
            self._choice,
            self._about,
            self.fetch.panel,
            self.upload.panel,
            css=":host { gap: 8px; }",
        )
        self._chosen()

    @property
    def value(self) -> str:
        """The chosen data: "demo", the name of a fetched data set, or "upload:<id>"."""
        return str(self._choice.value)

    @property
    def missing_data(self) -> str:
        """Reason why the chosen data cannot be used yet, as a sentence; "" if they can."""
        return self.fetch.missing_data

    @property
    def wizard(self) -> Sequence[Viewable]:
        """The upload wizard, and the component that accepts files dropped anywhere on the page."""
        return [self.upload.dialog, self.upload.intake]

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed()` when other data are chosen or have arrived."""
        self._listeners.append(changed)

    def show(self, data: str) -> None:
        """Choose the data of the current run or of a link."""
        if data not in self._choice.options.values() and data.startswith("upload:"):
            try:
                name = self._page.service.store.upload(data.removeprefix("upload:")).name
                label = tr("Table of the run: {name}", name=name)
            except NotFound:
                label = tr("Table of the run, deleted")
            except StoreTrouble:
                label = tr("Table of the run")
            self._foreign = {label: data}
            self.refresh()
        if data in self._choice.options.values():
            self._showing = True  # the run's settings already name its target
            self._choice.value = data
            self._showing = False

    def refresh(self) -> None:
        """Reload the visitor's tables."""
        previous = self._choice.value
        try:
            uploads = self._page.service.store.uploads(self._page.visit.owner)
        except StoreTrouble:
            if self._choice.options:
                return  # keep the choice; the page shows the error
            uploads = []
        own = _named([u for u in uploads if u.study == self._page.entry.name])
        foreign = {k: v for k, v in self._foreign.items() if v not in own.values()}
        sources = {tr(source.title): source.name for source in self._page.entry.sources}
        options = {**sources, **own, **foreign}
        value = previous if previous in options.values() else next(iter(sources.values()))
        self._choice.param.update(options=options, value=value)

    def try_demonstration(self) -> None:
        """Choose the demonstration's data."""
        self._choice.value = self._page.entry.sources[0].name

    def _uploaded(self, upload: str, settings: Mapping[str, str] = {}) -> None:
        data = f"upload:{upload}"
        self._asked[data] = settings
        self.refresh()
        self._choice.value = data

    def _chosen(self) -> None:
        value = self._choice.value
        self.upload.show(str(value))
        self._name_target(str(value))
        self._name_class(str(value))
        source = next((s for s in self._page.entry.sources if s.name == value), None)
        self.fetch.show(source.name if source is not None and source.kind == "fetched" else "")
        about = tr(source.doc) if source is not None else ""
        self._about.object = (
            f"<p class='quiet'>{html.escape(about.rstrip('.'))}.</p>" if about else ""
        )
        self.changed()

    def _name_target(self, data: str) -> None:
        """Set the target in the form to the first column of the chosen table."""
        entry, form = self._page.entry, self._page.form
        if not entry.table.target_setting:
            return
        widget = form.widgets[entry.table.target_setting]
        default = str(entry.settings.param[entry.table.target_setting].default)
        if not data.startswith("upload:"):
            if self._own_target:
                widget.value, self._own_target = default, False
            return
        try:
            columns = self._page.service.store.upload(data.removeprefix("upload:")).columns
        except (NotFound, StoreTrouble):
            return
        if columns and not (self._showing and widget.value in columns):
            widget.value = default if default in columns else columns[0]
        self._own_target = widget.value != default

    def _name_class(self, data: str) -> None:
        """Set the class to tell from the others as the wizard asked, or else the default."""
        setting = self._page.entry.table.class_setting
        if not setting:
            return
        if self._showing:  # the run's settings already name it
            self._own_class = data.startswith("upload:")
            return
        chosen = self._asked.get(data, {}).get(setting)
        if chosen is not None or self._own_class:
            self._page.form.widgets[setting].value = chosen or ""
        self._own_class = bool(chosen)

    def changed(self) -> None:
        """Notify listeners that the choice, or its table, has changed."""
        for changed in self._listeners:
            changed()


def _named(uploads: Sequence[UploadRecord]) -> dict[str, str]:
    """Map unique labels to the visitor's tables; equal names get their upload times."""
    named: dict[str, str] = {}
    plain = [ntr("{name} ({n:,} row)", "{name} ({n:,} rows)", u.rows, name=u.name) for u in uploads]
    for upload, label in zip(uploads, plain):
        if plain.count(label) > 1:
            label = tr("{table}, uploaded {time}", table=label, time=moment(upload.created))
        while label in named:
            label = tr("{table} again", table=label)
        named[label] = f"upload:{upload.id}"
    return named
