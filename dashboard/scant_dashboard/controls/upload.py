"""The upload wizard, a dialog: drop a table, check it, assign roles to its columns."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import pandas as pd
import panel_material_ui as pmui

from scant.data_sources.human_fertility import is_rates, read_births
from scant.data_sources.ranking import suits_of
from scant.errors import NotFound
from scant.store import UPLOAD_DAYS, StoreTrouble
from scant.studies import Entry
from scant.studies.query import names_in
from scant.studies.suits import Suit
from scant.tables.choices import OUT, choose
from scant.tables.column_matching import suggest, with_identifiers
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats import files
from scant.tables.images.image_table import SIDE, is_archive, read_image_table
from scant.tables.opening import Reading
from scant.tables.questions import class_question
from scant.tables.read import inspect_table, read_table
from scant.tables.schema import Preview, Question, Table
from scant_dashboard.controls.column_table import AGAIN, AS_IS, VIEW, ColumnTable
from scant_dashboard.controls.file_dropper import BoundedDropper
from scant_dashboard.controls.image_preview import pictured
from scant_dashboard.controls.intake import Intake
from scant_dashboard.controls.wizard_words import (
    PROBLEMS,
    ask,
    collapsed_paragraphs,
    data_location,
    elsewhere,
    feature_list,
    head,
    images,
    of_file,
    paragraphs,
)
from scant_dashboard.engine_text import translated
from scant_dashboard.limits.uploads import Received
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

MAX_SIDE = 105  # maximum height and width of an image in pixels
# FilePond's secondary lines have too little contrast.
READABLE = """
.filepond--file-info-sub, .filepond--file-status-sub { opacity: 1 !important; }
[data-filepond-item-state="processing-complete"] .filepond--item-panel {
  background-color: #1f7a4d !important; }  /* its own green has a contrast of 3.6 */
"""
HEAD = """
:host { display: grid !important; grid-template-columns: minmax(0, 1fr) auto; gap: 16px;
  align-items: center; }
:host > * { width: auto !important; }
"""
# Questions on a file, each of which may depend on earlier answers, and those whose answer resets
# the later questions and the columns.
QUESTION_ORDER = ("part", "join", "decimal", "closed", "missing_codes")
RESETTING = ("part", "join", "decimal")
MIN_BANDS = 3  # with so many band columns, no other study is suggested
FILES = later(
    "Drop a file here or anywhere on the page, choose one, or paste a table from a spreadsheet. "
    "A table of at most {megabytes} MB: {formats}."
)
SEVERAL = later(
    "Several tables at once (or in a ZIP) work, too: one for each task, or values and a map of "
    "their places."
)
RATES = later("The file asfrRRbo.txt of the Human Fertility Database works, too.")
TERMS = later(
    "Files go to this server's data folder and nowhere else; only you, and whoever has the link "
    "of a run on them, can reach them. They are deleted after {days:.0f} days, or when you say so. "
    "<a href='{template}' download>A template</a> shows the form."
)


class Upload:
    """From a dropped file to a table in the store.

    Args:
        page: The page of the wizard.
        stored: Called with the upload's id, and the settings that questions were about, once a
            table is stored.
        deleted: Called when a table was deleted.
    """

    def __init__(
        self,
        page: ControlsContext,
        stored: Callable[[str, Mapping[str, str]], None],
        deleted: Callable[[], None],
    ) -> None:
        self._page, self._stored, self._deleted = page, stored, deleted
        self._file: tuple[str, bytes] | None = None
        self._preview: Preview | None = None
        self._whole: Table | None = None  # read from a file that needs no mapping, such as a ZIP
        self._mapping: dict[str, str] = {}
        self._questions: dict[tuple[str, str], Question] = {}
        self._answers: dict[str, Any] = {}  # to questions on the whole file, by key of `Reading`
        self._settings: dict[str, str] = {}  # answers that are settings, by name
        self._better: Suit | None = None  # the study that suits the table better, if any
        self._offer = ""
        self._id = ""
        self._drop = BoundedDropper(
            page.visit,
            self._takes_images,
            self._reset,
            self._dropped,
            self._refused,
            stylesheets=[READABLE],
        )
        self._terms = text(f"<p class='quiet'>{self._terms_of_use()}</p>")
        self._head = text("", visible=False)
        self._table = ColumnTable(self._assign, self._answer)
        self._message = text("", visible=False)
        self._use = pmui.Button(
            label=tr("Use this table"), on_click=lambda _: self._store(), margin=0, visible=False,
        )  # fmt: skip
        self._delete = pmui.Button(
            label=tr("Delete this table"), on_click=lambda _: self._remove(), variant="outlined",
            color="error", size="small", margin=0, visible=False,
        )  # fmt: skip
        self._about = text("")
        self.panel = column(
            self._about, self._delete, visible=False, css=":host { gap: 10px; }"
        )  # fmt: skip
        self.dialog = pmui.Dialog(
            title=tr("Use your own data"), show_close_button=True, close_on_click=True,
            width_option="xl", sizing_mode="stretch_width", margin=0,
        )  # fmt: skip
        self.dialog.param.watch(lambda event: self._opened(event.new), "open")
        self.intake = Intake(self.open, self._refused)

    def _terms_of_use(self) -> str:
        """Describe the files that the study takes, and what becomes of them."""
        table = self._page.entry.table
        sentences = [
            tr(FILES, megabytes=LIMIT_BYTES // 10**6, formats=tr(files.READABLE)),
            images(table) if self._takes_images else "",
            tr(SEVERAL) if table.boxes else "",
            tr(RATES) if table.rates else "",
            tr(TERMS, days=UPLOAD_DAYS, template=f"./templates/{self._page.entry.name}.csv"),
        ]
        return " ".join(filter(None, sentences))

    def open(self) -> None:
        """Open the wizard."""
        self.dialog.open = True

    def _opened(self, opened: bool) -> None:
        """Fill the dialog while it is open; the file field redraws all the time while on a page."""
        self.dialog.objects = [
            column(
                self._drop, self._terms, column(self._head, self._use, css=HEAD), self._table,
                self._message,
                css=":host { gap: 10px; padding-bottom: 12px; }",
            )
        ] if opened else []  # fmt: skip
        if not opened:
            self._reset()
            self._drop.release()
            self._hide()

    def _hide(self) -> None:
        for part in (self._head, self._table, self._message, self._use):
            part.visible = False
        self._terms.visible = True

    def show(self, data: str) -> None:
        """Show where an upload ("upload:<id>") is stored; nothing for other data."""
        self._id = data.removeprefix("upload:") if data.startswith("upload:") else ""
        self.panel.visible, self._delete.visible = bool(self._id), False
        if self._id:
            try:
                record = self._page.service.store.upload(self._id)
            except (NotFound, StoreTrouble) as error:
                message = html.escape(translated(str(error)))
                self._about.object = f"<p class='error'>{message}</p>"
                return
            self._delete.visible = record.owner == self._page.visit.owner and not record.deleted
            self._about.object = data_location(record)

    def _dropped(self, files: dict[str, bytes | str]) -> None:
        if not files:  # cleared below
            return
        name, content = next(iter(files.items()))
        self._reset()
        self._file = (name, content.encode() if isinstance(content, str) else content)
        self._drop.value = {}
        self._hide()
        self._say(paragraphs([tr("Reading {file}…", file=name)], "quiet", "note"))
        self._inspect()

    def _reset(self) -> None:
        """Discard the file, since memory is reserved for one only."""
        self._file = self._preview = self._whole = self._better = None
        self._mapping, self._questions, self._answers, self._settings = {}, {}, {}, {}
        self._page.visit.site.carried.withdraw(self._offer)

    def _inspect(self) -> None:
        if self._file is None:
            return
        name, content = self._file
        schema = self._page.entry.table
        if schema.rates and is_rates(content):
            self._read(self._show_table, read_births, content, schema, name=name)
        elif self._takes_images and is_archive(name, content):
            size = self._image_side()
            self._read(self._show_table, read_image_table, content, schema, size=size, name=name)
        else:
            self._read(
                self._show_inspection, _inspect_file, self._page.entry, content, name=name,
                check=self._page.estimate.own_check(self._settings),
                mapping=self._mapping or None, target=self._target(), **self._answers,
            )  # fmt: skip

    def _read(
        self, then: Callable[[Any], None], read: Callable[..., Any], *of: Any, **how: Any
    ) -> None:
        """Read the dropped file off the event loop."""
        self._page.background(asyncio.to_thread(read, *of, **how), then, refused=self._refused)

    def _show_table(self, table: Table) -> None:
        """Preview a table read in full; the bytes of the file are freed."""
        if self._file is None:
            return
        self._whole, self._file = table, (self._file[0], b"")
        preview = pictured(table, self._page.entry.table) if self._takes_images else ""
        self._say(
            paragraphs(table.notes[:PROBLEMS], "quiet", "note")
            + preview
            + self._page.estimate.of_table(table.frame)
        )
        self._use.visible = True

    def _refused(self, sentence: str) -> None:
        self._say(paragraphs([sentence], "error", "alert"))

    def _show_inspection(self, inspection: tuple[Preview, Suit | None]) -> None:
        if self._file is None:
            return
        preview, suit = inspection
        self._preview = preview
        if not self._mapping:
            self._mapping = dict(preview.mapping)
            self._suggest(suit)
        for question in preview.questions:
            self._questions.setdefault((question.about, question.column), question)
            if question.about != "mapping":
                self._answers.setdefault(question.about, question.guess)
        if self._ask_class(preview):
            self._inspect()
            return
        suggestion = elsewhere(self._better, self._offer) if self._better else ""
        self._head.param.update(
            object=head(preview, self._file[0]) + suggestion,
            visible=bool(preview.names or suggestion),
        )
        self._terms.visible = not preview.names
        schema = self._page.entry.table.with_target(self._target())
        self._table.take(
            preview, self._mapping, schema,
            [(question, self._current_answer(question)) for question in self._questions.values()],
        )  # fmt: skip
        # While required columns are not mapped, problems of cells are not shown: a missing value
        # in a column that becomes the target is no error.
        wrong = () if preview.absent else preview.problems
        self._say(
            collapsed_paragraphs(
                [ask(preview.absent, schema)] if preview.absent else [],
                "message warning",
                "note",
            )
            + collapsed_paragraphs(wrong, "error", "alert")
            + paragraphs([preview.refusal] if preview.refusal else [], "error", "alert")
            + (
                paragraphs([feature_list(preview)], "", "note")
                if preview.features and not preview.problems
                else ""
            )
            + collapsed_paragraphs(of_file(preview.warnings, self._file[0]), "quiet", "note")
            + (
                self._page.estimate.of(preview.n_rows, len(preview.names), preview.counts)
                if preview.n_rows
                else ""
            )
        )
        self._use.visible = not preview.problems and preview.n_rows > 0

    def _ask_class(self, preview: Preview) -> bool:
        """Ask which class to tell from the others; return whether the table was checked without it.

        Classes that the form names stand, if the table has them.
        """
        schema = self._page.entry.table
        setting = schema.class_setting
        if not setting:
            return False
        label = next(c.name for c in schema.columns if c.target and c.kind == "label")
        rows = preview.counts.get(label, {})
        question = class_question(setting, rows)
        self._questions.pop((setting, ""), None)
        if question is not None:
            self._questions[setting, ""] = question
        checked = self._settings.get(setting, str(self._page.form.widgets[setting].value))
        named = names_in(checked)
        if not named or not set(named) <= set(rows):
            named = [str(question.guess)] if question is not None else []
        self._settings[setting] = ", ".join(named)
        return named != names_in(checked)

    def _suggest(self, suit: Suit | None) -> None:
        """Offer the file to the page of the study that suits it better, if any."""
        carried = self._page.visit.site.carried
        carried.withdraw(self._offer)
        self._better = suit
        if suit is not None:
            self._offer = carried.offer(self._page.visit.owner, self._hand_over)

    def _hand_over(self) -> Received:
        """Transfer the file, with its memory, to another page."""
        assert self._file is not None
        made = Received(*self._file, self._drop.hand_over())
        self._reset()
        return made

    def bring(self, secret: str) -> None:
        """Open the wizard with a file that another page of this visitor has offered.

        Raises:
            NotFound: There is no such offer.
        """
        received = self._page.visit.site.carried.take(self._page.visit.owner, secret)
        self.open()
        self._drop.handle(received)

    def _current_answer(self, question: Question) -> Any:
        """Return the current answer to a question."""
        if question.about != "mapping":
            return {**self._answers, **self._settings}.get(question.about)
        names = tuple(n for n, to in self._mapping.items() if to == question.column)
        return names if len(names) > 1 else next(iter(names), OUT)

    def _answer(self, question: Question, answer: Any) -> None:
        """Apply an answer; those of `RESETTING` discard later answers and the mapping."""
        if question.about == "mapping":
            self._map(question.column, [answer] if isinstance(answer, str) else answer)
            return
        of_settings = question.about in self._settings
        (self._settings if of_settings else self._answers)[question.about] = answer
        if question.about in RESETTING:
            earlier = QUESTION_ORDER[: QUESTION_ORDER.index(question.about) + 1]
            self._questions = {k: q for k, q in self._questions.items() if k[0] in earlier}
            self._answers = {k: a for k, a in self._answers.items() if k in earlier}
            self._mapping = {}
        self._inspect()

    def _map(self, column_name: str, names: Sequence[str]) -> None:
        """Map columns of the file to `column_name` of the schema."""
        if self._preview is None:
            return
        columns = {column.name: column for column in self._preview.columns}
        schema = self._page.entry.table.with_target(self._target())
        self._mapping = choose(self._mapping, columns, schema, column_name, [n for n in names if n])
        self._inspect()

    def _assign(self, names: Sequence[str], role: str) -> None:
        """Give columns the role chosen in their heads."""
        schema = self._page.entry.table.with_target(self._target())
        view = role.removeprefix(VIEW) if role.startswith(VIEW) else ""
        if role not in (AS_IS, OUT) and not view:
            self._map(role, names)
            return
        for name in names:
            self._mapping[name] = f"{view}.{name}" if view else OUT
            if role == AS_IS:  # its name may have another meaning in the stored table
                stored = [to for to in self._mapping.values() if to]
                meaning = suggest([*stored, name], schema)[name]
                self._mapping[name] = name if meaning == name else f"{name}{AGAIN}"
        self._inspect()

    def _store(self) -> None:
        if self._file is None:
            return
        name, content = self._file
        page = self._page

        whole, mapping, target = self._whole, dict(self._mapping), self._target()
        answers, settings = self._answers, dict(self._settings)
        own = next((theirs for theirs, ours in mapping.items() if ours == target), target)
        if target is not None and own is not None and whole is None:
            mapping[own], target = own, own  # keep its name, which the setting then gets

        def keep() -> str:
            table = whole or read_table(
                content, page.entry.table, name=name, mapping=mapping, target=target, **answers
            )
            frame = with_identifiers(table, page.entry.table)
            if target in frame:  # first, where `DataPanel` expects it
                frame = frame[[target, *(n for n in frame if n != target)]]
            made: str = page.service.store.add_upload(
                frame, owner=page.visit.owner, name=name, study=page.entry.name,
                sha256=table.sha256, notes=table.notes,
            )  # fmt: skip
            return made

        def finish(upload: str) -> None:
            self.dialog.open = False
            self._stored(upload, settings)

        page.background(
            asyncio.to_thread(keep),
            finish,
            refused=self._refused,
        )

    def _remove(self) -> None:
        self._page.background(
            asyncio.to_thread(
                self._page.service.store.delete_upload, self._id, self._page.visit.owner
            ),
            lambda _: self._deleted(),
        )

    def _say(self, markup: str) -> None:
        self._message.object = markup
        self._message.visible = True

    def _target(self) -> str | None:
        setting = self._page.entry.table.target_setting
        return str(self._page.form.widgets[setting].value) if setting else None

    @property
    def _takes_images(self) -> bool:
        return self._page.entry.table.images

    def _image_side(self) -> int:
        """Return the side of images in pixels, from the settings."""
        size = str(self._page.form.raw_values().get("size", ""))
        return int(size) if size.isdigit() and 2 <= int(size) <= MAX_SIDE else SIDE


def _inspect_file(
    study: Entry,
    content: bytes,
    name: str,
    check: Callable[[pd.DataFrame, str], None] | None,
    **reading: Unpack[Reading],
) -> tuple[Preview, Suit | None]:
    """Inspect a file and, on the first reading, find a study that suits it better."""
    made = inspect_table(content, study.table, name=name, check=check, **reading)
    if reading["mapping"] is not None:
        return made, None
    own_field = not made.questions and _bands(study, made) >= MIN_BANDS  # certainly this field
    best = None if own_field else next(iter(suits_of(made, content)), None)
    return made, best if best is not None and best.study != study.name else None


def _bands(study: Entry, preview: Preview) -> int:
    """Return the number of bands named by the columns, if the study has bands."""
    band = study.table.band
    return len({b for n in preview.features if (b := band(n))}) if band else 0
