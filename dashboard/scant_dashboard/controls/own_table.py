"""On the gallery: a table is dropped, and the pages that suit it are listed with the reasons."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Sequence
from functools import partial

import panel_material_ui as pmui
from panel.viewable import Viewable

from scant.data_sources.ranking import ranked
from scant.store import UPLOAD_DAYS
from scant.studies import STUDIES, entry
from scant.studies.suits import Suit
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats import files
from scant_dashboard.controls.file_dropper import BoundedDropper
from scant_dashboard.controls.intake import Intake
from scant_dashboard.controls.wizard_words import paragraphs
from scant_dashboard.engine_text import translated
from scant_dashboard.frame.background import Background, on_document
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.limits.uploads import Received
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import style, text
from scant_dashboard.translate import later, ntr, tr

TITLE = later("Use your own data")
INVITATION = later(
    "Drop a file anywhere on this page: Scant says which of the pages suit it, and why."
)
TERMS = later(
    "A table of at most {megabytes} MB: {formats}, or a ZIP of images in folders. It goes to this "
    "server and nowhere else. Nothing is kept until you choose a page and use the table there, and "
    "then for {days:.0f} days at most."
)
NONE = later(
    "No page suits this table as it is. A table needs a column to predict, whose values vary, and "
    "other columns to predict it from. If it has them, open it on one of these pages and choose "
    "the columns:"
)


def invitation(button: Viewable | None = None) -> Viewable:
    """Return the invitation to drop a table, with its button."""
    button = button or pmui.Button(label=tr(TITLE), variant="outlined", margin=0)
    invited = text(f"<h2>{tr('Your own table')}</h2><p>{tr(INVITATION)}</p>")
    return column(invited, button, css=style("own_table"))


class OwnTable:
    """Lists the pages that suit a dropped file, with links that take the file there.

    Args:
        visit: The session of the page.
    """

    def __init__(self, visit: SessionContext) -> None:
        self._visit = visit
        self._file: tuple[str, bytes] | None = None
        self._offer = ""
        self._background = Background(partial(on_document, visit.doc, self._refused), self._refused)
        self._drop = BoundedDropper(visit, True, self._reset, self._dropped, self._refused)
        self._found = text("")
        self.dialog = pmui.Dialog(
            title=tr(TITLE), show_close_button=True, close_on_click=True, width_option="md",
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip
        self.dialog.param.watch(lambda event: self._opened(event.new), "open")
        open_button = pmui.Button(
            label=tr(TITLE), on_click=lambda _: self._open(), variant="outlined", margin=0
        )
        self.panel = column(invitation(open_button), self.dialog, Intake(self._open, self._refused))

    def _open(self) -> None:
        self.dialog.open = True

    def _opened(self, opened: bool) -> None:
        """Fill the dialog while it is open; the file field redraws all the time while on a page."""
        megabytes, formats = LIMIT_BYTES // 10**6, tr(files.READABLE)
        terms = tr(TERMS, megabytes=megabytes, formats=formats, days=UPLOAD_DAYS)
        quiet = text(f"<p class='quiet'>{terms}</p>")
        self.dialog.objects = [self._drop, quiet, self._found] if opened else []
        if not opened:
            self._reset()
            self._drop.release()

    def _reset(self) -> None:
        """Discard the file, since memory is reserved for one only."""
        self._file = None
        self._found.object = ""
        self._visit.site.carried.withdraw(self._offer)

    def _dropped(self, dropped: dict[str, bytes | str]) -> None:
        if not dropped:  # cleared below
            return
        name, content = next(iter(dropped.items()))
        self._reset()
        self._file = (name, content.encode() if isinstance(content, str) else content)
        self._drop.value = {}
        self._found.object = paragraphs([tr("Reading {file}…", file=name)], "quiet", "note")
        ranking = asyncio.to_thread(ranked, self._file[1], name)
        self._background.start(ranking, partial(self._list, name))

    def _list(self, name: str, found: Sequence[Suit]) -> None:
        if self._file is None or self._file[0] != name:  # closed, or another file since
            return
        self._offer = self._visit.site.carried.offer(self._visit.owner, self._hand_over)
        self._found.object = listed(name, found, self._offer)

    def _hand_over(self) -> Received:
        """Transfer the file, with its memory, to the page that was chosen."""
        assert self._file is not None
        made = Received(*self._file, self._drop.hand_over())
        self._reset()
        return made

    def _refused(self, sentence: str) -> None:
        self._found.object = paragraphs([sentence], "error", "alert")


def listed(name: str, found: Sequence[Suit], offer: str) -> str:
    """Return the pages that suit a file, the best first, and the others.

    Args:
        name: Name of the file.
        found: The studies that suit it.
        offer: Secret with which a page takes the file (`limits.carried`).
    """

    def link(study: str, words: str) -> str:
        return f"<a href='./{study}?file={offer}'>{html.escape(words)}</a>"

    suited = {suit.study for suit in found}
    rest = ", ".join(link(s, tr(entry(s).title)) for s in STUDIES if s not in suited)
    if not found:
        return paragraphs([tr(NONE)], "message", "note") + f"<p>{rest}</p>"
    items = "".join(
        f"<li>{link(suit.study, tr(entry(suit.study).title))}: "
        f"{html.escape(translated(suit.reason))}.</li>"
        for suit in found
    )
    best = ntr(
        "This page suits {file}:",
        "These pages suit {file}, the best first:",
        len(found),
        file=f"<strong>{html.escape(name)}</strong>",
    )
    others = tr("Or open it on another page: {pages}.", pages=rest)
    others = f"<p class='quiet'>{others}</p>" if rest else ""
    return f"<p role='status'>{best}</p><ol>{items}</ol>{others}"
