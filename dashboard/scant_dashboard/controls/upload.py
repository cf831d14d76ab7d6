"""The upload wizard, a dialog over the page: drop a table, check it, say what its columns are."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import panel_material_ui as pmui

from scant.data_sources.human_fertility import is_rates, read_births
from scant.errors import NotFound
from scant.store import UPLOAD_DAYS, StoreTrouble
from scant.studies import Entry
from scant.studies.suits import Suit, better, of_images
from scant.tables.choices import OUT, choose
from scant.tables.column_matching import is_aside, schema_names, with_identifiers
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats import files
from scant.tables.images.image_table import SIDE, image_folders, is_archive, read_image_table
from scant.tables.opening import Reading
from scant.tables.read import inspect_table, read_table
from scant.tables.schema import Preview, Question, Table
from scant_dashboard.controls.column_table import AGAIN, AS_IS, VIEW, ColumnTable
from scant_dashboard.controls.file_dropper import BoundedDropper
from scant_dashboard.controls.image_preview import pictured
from scant_dashboard.controls.intake import Intake
from scant_dashboard.controls.wizard_words import (
    PROBLEMS,
    ask,
    elsewhere,
    head,
    images,
    learns,
    many,
    of_file,
    paragraphs,
    whereabouts,
)
from scant_dashboard.limits.uploads import Received
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text

MOST_SIDE = 105  # pixels of an image
# FilePond fades its second lines below what can be read.
READABLE = ".filepond--file-info-sub, .filepond--file-status-sub { opacity: 1 !important; }"
HEAD = """
:host { display: grid !important; grid-template-columns: minmax(0, 1fr) auto; gap: 16px;
  align-items: center; }
:host > * { width: auto !important; }
"""
# Questions on a file in the order in which they follow from each other, and those whose answer
# makes all later ones and the columns others.
ASKED = ("part", "join", "decimal", "closed", "missing_codes")
ANEW = ("part", "join", "decimal")
LEAST_BANDS = 3  # named by columns: then a table is of that field, whatever else it may suit
SEVERAL = ", or several at once (or in a ZIP): each a task, or values and a map of their places"
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
        self._questions: dict[tuple[str, str], Question] = {}
        self._answers: dict[str, Any] = {}  # to those that are not on columns, by `Reading`
        self._better: Suit | None = None  # another page, which the table suits
        self._offer = ""
        self._id = ""
        self._drop = BoundedDropper(
            page, self._let_go, self._dropped, self._refused, stylesheets=[READABLE]
        )
        self._terms = text(
            "<p class='quiet'>Drop a file here or anywhere on the page, choose one, or paste a "
            "table from a spreadsheet. "
            f"A table of at most {LIMIT_BYTES // 10**6} MB: {files.READABLE}"
            f"{images(page.entry.table) if self._takes_images else ''}"
            f"{SEVERAL if page.entry.table.boxes else ''}"
            f"{RATES if page.entry.table.rates else ''}. "
            "It goes to this server's data folder and nowhere else; only you, and whoever has the "
            f"link of a run on it, can reach it. It is deleted after {UPLOAD_DAYS:.0f} days, or "
            f"when you say so. <a href='./templates/{page.entry.name}.csv' download>"
            "A template</a> shows the form.</p>"
        )
        self._head = text("", visible=False)
        self._table = ColumnTable(self._assign, self._answer)
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
            self._about.object = whereabouts(record)

    def _dropped(self, files: dict[str, bytes | str]) -> None:
        if not files:  # emptied below
            return
        name, content = next(iter(files.items()))
        self._let_go()
        self._file = (name, content.encode() if isinstance(content, str) else content)
        self._drop.value = {}
        self._hide()
        self._say(f"<p class='quiet' role='note'>Reading {html.escape(name)}…</p>")
        self._inspect()

    def _let_go(self) -> None:
        """Another file begins to come; memory is counted for one."""
        self._file = self._preview = self._whole = self._better = None
        self._mapping, self._questions, self._answers = {}, {}, {}
        self._page.visit.site.carried.withdraw(self._offer)

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
            self._look(
                self._inspected, _inspected, self._page.entry, content, name=name,
                mapping=self._mapping or None, target=self._target(), **self._answers,
            )  # fmt: skip

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
            paragraphs(table.notes[:PROBLEMS], "quiet", "note")
            + shown
            + self._page.estimate.of_table(table.frame)
        )
        self._use.visible = True

    def _refused(self, sentence: str) -> None:
        self._say(paragraphs([sentence], "error", "alert"))

    def _inspected(self, seen: tuple[Preview, Suit | None]) -> None:
        if self._file is None:
            return
        preview, suit = seen
        self._preview = preview
        if not self._mapping:
            self._mapping = dict(preview.mapping)
            self._suggest(suit)
        for question in preview.questions:
            self._questions.setdefault((question.about, question.column), question)
            if question.about != "mapping":
                self._answers.setdefault(question.about, question.guess)
        suggestion = elsewhere(self._better, self._offer) if self._better else ""
        self._head.param.update(
            object=head(preview, self._file[0]) + suggestion,
            visible=bool(preview.names or suggestion),
        )
        self._terms.visible = not preview.names
        self._table.take(
            preview, self._mapping, self._page.entry.table.with_target(self._target()),
            [(question, self._taken(question)) for question in self._questions.values()],
        )  # fmt: skip
        # What is only not mapped yet is a question, and cells are judged once it is answered: a
        # gap in what turns out to be the target is no error.
        wrong = () if preview.absent else preview.problems
        self._say(
            many([ask(preview.absent)] if preview.absent else [], "message warning", "note")
            + many(wrong, "error", "alert")
            + (
                paragraphs([learns(preview)], "", "note")
                if preview.features and not preview.problems
                else ""
            )
            + many(of_file(preview.warnings, self._file[0]), "quiet", "note")
            + (
                self._page.estimate.of(preview.n_rows, len(preview.names), preview.counts)
                if preview.n_rows
                else ""
            )
        )
        self._use.visible = not preview.problems and preview.n_rows > 0

    def _suggest(self, suit: Suit | None) -> None:
        """Offer the file to the page that it suits, if that is another one."""
        carried = self._page.visit.site.carried
        carried.withdraw(self._offer)
        self._better = suit
        if suit is not None:
            self._offer = carried.offer(self._page.visit.owner, self._hand_over)

    def _hand_over(self) -> Received:
        """The file goes to another page, and its memory with it."""
        assert self._file is not None
        made = Received(*self._file, self._drop.hand_over())
        self._let_go()
        return made

    def bring(self, secret: str) -> None:
        """Open the wizard with a file that another page of this visitor has offered.

        Raises:
            NotFound: There is none of that name.
        """
        received = self._page.visit.site.carried.take(self._page.visit.owner, secret)
        self.open()
        self._drop.handle(received)

    def _taken(self, question: Question) -> Any:
        """The answer to a question as it stands now."""
        if question.about != "mapping":
            return self._answers.get(question.about)
        names = tuple(n for n, to in self._mapping.items() if to == question.column)
        return names if len(names) > 1 else next(iter(names), OUT)

    def _answer(self, question: Question, answer: Any) -> None:
        """Take an answer for the whole file; of another part or style all else is asked anew."""
        if question.about == "mapping":
            self._map(question.column, [answer] if isinstance(answer, str) else answer)
            return
        self._answers[question.about] = answer
        if question.about in ANEW:
            kept = ASKED[: ASKED.index(question.about) + 1]
            self._questions = {k: q for k, q in self._questions.items() if k[0] in kept}
            self._answers = {k: a for k, a in self._answers.items() if k in kept}
            self._mapping = {}
        self._inspect()

    def _map(self, known: str, names: Sequence[str]) -> None:
        """Take columns for what the study knows as `known`."""
        if self._preview is None:
            return
        columns = {column.name: column for column in self._preview.columns}
        schema = self._page.entry.table.with_target(self._target())
        self._mapping = choose(self._mapping, columns, schema, known, [n for n in names if n])
        self._inspect()

    def _assign(self, names: Sequence[str], role: str) -> None:
        """Use columns as the visitor chose in their heads."""
        schema = self._page.entry.table.with_target(self._target())
        own = schema_names(schema)
        view = role.removeprefix(VIEW) if role.startswith(VIEW) else ""
        if role not in (AS_IS, OUT) and not view:
            self._map(role, names)
            return
        for name in names:
            other = name in own or is_aside(name, schema)  # to whoever reads the kept table
            as_is = f"{name}{AGAIN}" if other else name
            to = f"{view}.{name}" if view else as_is
            self._mapping[name] = OUT if role == OUT else to
        self._inspect()

    def _store(self) -> None:
        if self._file is None:
            return
        name, content = self._file
        page = self._page

        whole, mapping, target = self._whole, dict(self._mapping), self._target()
        answers = self._answers
        own = next((theirs for theirs, ours in mapping.items() if ours == target), target)
        if target is not None and own is not None and whole is None:
            mapping[own], target = own, own  # it keeps its name, which the setting then holds

        def keep() -> str:
            table = whole or read_table(
                content, page.entry.table, name=name, mapping=mapping, target=target, **answers
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


def _inspected(
    study: Entry, content: bytes, name: str, **reading: Unpack[Reading]
) -> tuple[Preview, Suit | None]:
    """What the wizard shows of a file and, at first sight of it, the study that suits it better."""
    made = inspect_table(content, study.table, name=name, **reading)
    if reading["mapping"] is not None:
        return made, None
    if not made.names and (pictures := image_folders(content)):
        return made, of_images(pictures)
    known = not made.questions and _bands(study, made) >= LEAST_BANDS  # of this field, surely
    return made, None if known else better(study.name, made.columns, made.n_rows)


def _bands(study: Entry, preview: Preview) -> int:
    """How many quantities of the study's own field the columns name."""
    band = study.table.band
    return len({b for n in preview.features if (b := band(n))}) if band else 0
