"""The upload wizard, a dialog over the page: drop a table, check it, say what its columns are."""

from __future__ import annotations

import asyncio
import html
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import panel_material_ui as pmui
from scant.dashboard.controls.column_table import AGAIN, AS_IS, OUT, ColumnTable
from scant.dashboard.controls.file_dropper import BoundedDropper
from scant.dashboard.controls.image_preview import pictured
from scant.dashboard.controls.intake import Intake
from scant.dashboard.frame.template import text
from scant.dashboard.study_page.context import ControlsContext
from scant.dashboard.study_page.widgets import column
from scant.data_sources.human_fertility import is_rates, read_births
from scant.errors import NotFound
from scant.store import UPLOAD_DAYS, StoreTrouble
from scant.tables.column_matching import listed, schema_names, with_identifiers
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats import files
from scant.tables.images.archives import IMAGE_LIMIT_BYTES
from scant.tables.images.image_table import SIDE, is_archive, read_image_table
from scant.tables.read import inspect_table, read_table
from scant.tables.schema import Preview, Question, Table, TableSchema

PROBLEMS = 5  # shown at once
MOST_SIDE = 105  # pixels of an image
# FilePond fades its second lines below what can be read.
READABLE = ".filepond--file-info-sub, .filepond--file-status-sub { opacity: 1 !important; }"
HEAD = """
:host { display: grid !important; grid-template-columns: minmax(0, 1fr) auto; gap: 16px;
  align-items: center; }
:host > * { width: auto !important; }
"""
RATES = ", or the file asfrRRbo.txt of the Human Fertility Database"


class Upload:
    """From a dropped file to a table in the store.

    `kept(upload_id)` is called once a table is stored; `gone()` when one was deleted.
    """

    def __init__(
        self, page: ControlsContext, kept: Callable[[str], None], gone: Callable[[], None]
    ) -> None:
        self._page, self._kept, self._gone = page, kept, gone
        self._file: tuple[str, bytes] | None = None
        self._preview: Preview | None = None
        self._whole: Table | None = None  # of a file that needs no mapping, such as a ZIP
        self._mapping: dict[str, str] = {}
        self._id = ""
        self._drop = BoundedDropper(
            page, self._let_go, self._dropped, self._refused, stylesheets=[READABLE]
        )
        self._terms = text(
            "<p class='quiet'>Drop a file here or anywhere on the page, choose one, or paste a "
            "table from a spreadsheet. "
            f"A table of at most {LIMIT_BYTES // 10**6} MB: {files.READABLE}"
            f"{_images(page.entry.table) if self._takes_images else ''}"
            f"{RATES if page.entry.table.rates else ''}. "
            "It goes to this server's data folder and nowhere else; only you, and whoever has the "
            f"link of a run on it, can reach it. It is deleted after {UPLOAD_DAYS:.0f} days, or "
            f"when you say so. <a href='./templates/{page.entry.name}.csv' download>"
            "A template</a> shows the form.</p>"
        )
        self._head = text("", visible=False)
        self._table = ColumnTable(self._assign)
        self._found = text("", visible=False)
        self._use = pmui.Button(
            label="Use this table", on_click=lambda _: self._store(), margin=0, visible=False,
        )  # fmt: skip
        self._delete = pmui.Button(
            label="Delete this table", on_click=lambda _: self._remove(), variant="outlined",
            color="error", size="small", margin=0, visible=False,
        )  # fmt: skip
        self._about = text("")
        self.panel = column(
            self._about, self._delete, visible=False, css=":host { gap: 10px; }"
        )  # fmt: skip
        self.dialog = pmui.Dialog(
            title="Use your own data", show_close_button=True, close_on_click=True,
            width_option="xl", sizing_mode="stretch_width", margin=0,
        )  # fmt: skip
        self.dialog.param.watch(lambda event: self._opened(event.new), "open")
        self.intake = Intake(self.open, self._refused)

    def open(self) -> None:
        """Open the wizard over the page."""
        self.dialog.open = True

    def _opened(self, opened: bool) -> None:
        """Fill the dialog while it is open: its field redraws itself for as long as it is there."""
        self.dialog.objects = [
            column(
                self._drop, self._terms, column(self._head, self._use, css=HEAD), self._table,
                self._found,
                css=":host { gap: 10px; padding-bottom: 12px; }",
            )
        ] if opened else []  # fmt: skip
        if not opened:
            self._let_go()
            self._drop.release()
            self._hide()

    def _hide(self) -> None:
        for part in (self._head, self._table, self._found, self._use):
            part.visible = False
        self._terms.visible = True

    def show(self, data: str) -> None:
        """Show the whereabouts of an upload ("upload:<id>"); nothing of other data."""
        self._id = data.removeprefix("upload:") if data.startswith("upload:") else ""
        self.panel.visible, self._delete.visible = bool(self._id), False
        if self._id:
            try:
                record = self._page.service.store.upload(self._id)
            except (NotFound, StoreTrouble) as error:
                self._about.object = f"<p class='error'>{html.escape(str(error))}</p>"
                return
            self._delete.visible = record.owner == self._page.visit.owner and not record.deleted
            self._about.object = _whereabouts(record)

    def _dropped(self, files: dict[str, bytes | str]) -> None:
        if not files:  # emptied below
            return
        name, content = next(iter(files.items()))
        self._file = (name, content.encode() if isinstance(content, str) else content)
        self._drop.value = {}
        self._mapping, self._whole, self._preview = {}, None, None
        self._hide()
        self._say(f"<p class='quiet' role='note'>Reading {html.escape(name)}…</p>")
        self._inspect()

    def _let_go(self) -> None:
        """Another file begins to come; memory is counted for one."""
        self._file = self._preview = self._whole = None

    def _inspect(self) -> None:
        if self._file is None:
            return
        name, content = self._file
        schema = self._page.entry.table
        if schema.rates and is_rates(content):
            self._look(self._seen, read_births, content, schema, name=name)
        elif self._takes_images and is_archive(name, content):
            size = self._side()
            self._look(self._seen, read_image_table, content, schema, size=size, name=name)
        else:
            mapping, target = self._mapping or None, self._target()
            self._look(self._inspected, inspect_table, content, schema, name=name,
                       mapping=mapping, target=target)  # fmt: skip

    def _look(
        self, then: Callable[[Any], None], read: Callable[..., Any], *of: Any, **how: Any
    ) -> None:
        """Read what was dropped, off the event loop."""
        self._page.background(asyncio.to_thread(read, *of, **how), then, refused=self._refused)

    def _seen(self, table: Table) -> None:
        """Show what a ZIP held; it is kept as read, and its bytes are let go."""
        if self._file is None:
            return
        self._whole, self._file = table, (self._file[0], b"")
        shown = pictured(table, self._page.entry.table) if self._takes_images else ""
        self._say(
            _list(table.notes[:PROBLEMS], "quiet", "note")
            + shown
            + self._page.estimate.of_table(table.frame)
        )
        self._use.visible = True

    def _refused(self, sentence: str) -> None:
        self._say(_list([sentence], "error", "alert"))

    def _inspected(self, preview: Preview) -> None:
        if self._file is None:
            return
        self._preview = preview
        self._mapping = self._mapping or dict(preview.mapping)
        self._head.param.update(object=_head(preview, self._file[0]), visible=bool(preview.names))
        self._terms.visible = not preview.names
        self._table.take(preview, self._mapping, self._page.entry.table.with_target(self._target()))
        # What is only not mapped yet is a question, and cells are judged once it is answered: a
        # gap in what turns out to be the target is no error.
        wrong = () if preview.absent else preview.problems
        self._say(
            (_list([_ask(preview.absent)], "message warning", "note") if preview.absent else "")
            + _many([_asked(q) for q in preview.questions], "message warning", "note")
            + _many(wrong, "error", "alert")
            + (
                _list([_learns(preview)], "", "note")
                if preview.features and not preview.problems
                else ""
            )
            + _many(_of_file(preview.warnings, self._file[0]), "quiet", "note")
            + (
                self._page.estimate.of(preview.n_rows, len(preview.names), preview.counts)
                if preview.n_rows
                else ""
            )
        )
        self._use.visible = not preview.problems and preview.n_rows > 0

    def _map(self, known: str, source: str) -> None:
        """Take `source` for what the study knows as `known`; what was taken for it is left out."""
        for name, meaning in self._mapping.items():
            if meaning == known:
                self._mapping[name] = OUT
        if source:
            self._mapping[source] = known
        self._inspect()

    def _assign(self, names: Sequence[str], role: str) -> None:
        """Use columns as the visitor chose in their heads."""
        own = schema_names(self._page.entry.table.with_target(self._target()))
        if role not in (AS_IS, OUT):
            self._map(role, names[0])
            return
        for name in names:
            as_is = name if name not in own else f"{name}{AGAIN}"
            self._mapping[name] = as_is if role == AS_IS else OUT
        self._inspect()

    def _store(self) -> None:
        if self._file is None:
            return
        name, content = self._file
        page = self._page

        whole, mapping, target = self._whole, dict(self._mapping), self._target()
        own = next((theirs for theirs, ours in mapping.items() if ours == target), target)
        if target is not None and own is not None and whole is None:
            mapping[own], target = own, own  # it keeps its name, which the setting then holds

        def keep() -> str:
            table = whole or read_table(
                content, page.entry.table, name=name, mapping=mapping, target=target
            )
            frame = with_identifiers(table, page.entry.table)
            if target in frame:  # first, by which the list of sources knows it
                frame = frame[[target, *(n for n in frame if n != target)]]
            made: str = page.service.store.add_upload(
                frame, owner=page.visit.owner, name=name, study=page.entry.name,
                sha256=table.sha256, notes=table.notes,
            )  # fmt: skip
            return made

        def kept(upload: str) -> None:
            self.dialog.open = False
            self._kept(upload)

        page.background(
            asyncio.to_thread(keep),
            kept,
            refused=self._refused,
        )

    def _remove(self) -> None:
        self._page.background(
            asyncio.to_thread(
                self._page.service.store.delete_upload, self._id, self._page.visit.owner
            ),
            lambda _: self._gone(),
        )

    def _say(self, markup: str) -> None:
        self._found.object = markup
        self._found.visible = True

    def _target(self) -> str | None:
        setting = self._page.entry.table.target_setting
        return str(self._page.form.widgets[setting].value) if setting else None

    @property
    def _takes_images(self) -> bool:
        return self._page.entry.table.images

    def _side(self) -> int:
        """The side of an image as the settings have it."""
        word = str(self._page.form.raw_values().get("size", ""))
        return int(word) if word.isdigit() and 2 <= int(word) <= MOST_SIDE else SIDE


def _images(table: TableSchema) -> str:
    """What a ZIP may hold: folders stand for the columns that a table would have."""
    size = f", or a ZIP of at most {IMAGE_LIMIT_BYTES // 10**6} MB"
    if table.cut:
        return f"{size} of photographs (JPEG or PNG), which are cut into patches"
    needed = "/".join(column.name for column in table.columns if column.required)
    every = "/".join(column.name for column in table.columns)
    more = f" or <code>{every}/</code>" if every != needed else ""
    return (
        f"{size} with images in folders <code>{needed}/</code>{more}, brought to the size in the "
        "settings"
    )


def _whereabouts(record: Any) -> str:
    if record.deleted:
        return (
            "<p class='quiet'>This table was deleted; its runs keep their curves and figures.</p>"
        )
    day = time.strftime("%d %B %Y", time.localtime(record.created + UPLOAD_DAYS * 86400))
    notes = _list(_of_file(record.notes[:PROBLEMS], record.name), "quiet", "note")
    return (
        f"<p class='quiet'>{html.escape(record.name)}: {record.rows} rows, {len(record.columns)} "
        f"columns, kept in this server's data folder until {day}.</p>{notes}"
    )


def _head(preview: Preview, file: str) -> str:
    """How much the file holds."""
    if not preview.names:
        return ""
    gaps = sum(c.missing for c in preview.columns)
    missing = f", {gaps:,} empty {'cell' if gaps == 1 else 'cells'}" if gaps else ""
    return (
        f"<p><strong>{html.escape(file)}</strong>: {preview.n_rows:,} rows, "
        f"{len(preview.names):,} columns{missing}. Each column's head says what it is used as; "
        "change it where the guess is wrong.</p>"
    )


def _asked(question: Question) -> str:
    """A question of the reader, with the answer that is taken."""
    taken = next((label for answer, label in question.options if answer == question.guess), "")
    return f"{question.text} Taken: {taken}."


def _ask(absent: Sequence[str]) -> str:
    names = [f"“{name}”" for name in absent]
    which = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Which column is {which}? Choose it in the heads of the table."


def _learns(preview: Preview) -> str:
    """Which columns would be learned from, as the file calls them."""
    own = {ours: theirs for theirs, ours in preview.mapping.items() if ours}
    names = [own.get(name, name) for name in preview.features]
    return f"To learn from, {len(names):,} column{'s' * (len(names) > 1)}: {listed(names)}."


def _of_file(sentences: Sequence[str], name: str) -> list[str]:
    """Sentences without the name of the file where there is only the one to speak of."""
    short = (re.sub(rf"^{re.escape(name)}(, |: | )", "", sentence) for sentence in sentences)
    own = (f"It {s}" if s.startswith(("is ", "has ", "was ")) else s for s in short)
    return [sentence[:1].upper() + sentence[1:] for sentence in own]


def _many(sentences: Sequence[str], kind: str, role: str) -> str:
    """Sentences, some of them collapsed."""
    shown, more = sentences[:PROBLEMS], sentences[PROBLEMS:]
    if not more:
        return _list(shown, kind, role)
    rest = f"<details><summary>{len(more)} more</summary>{_list(more, kind, 'note')}</details>"
    return _list(shown, kind, role) + rest


def _list(sentences: Sequence[str], kind: str, role: str) -> str:
    return "".join(f"<p class='{kind}' role='{role}'>{html.escape(s)}</p>" for s in sentences)
