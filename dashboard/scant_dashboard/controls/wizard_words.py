"""Markup of the upload wizard's messages on a file."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from scant.store import UPLOAD_DAYS
from scant.studies import entry
from scant.studies.suits import Suit
from scant.tables.column_matching import listed
from scant.tables.images.archives import IMAGE_LIMIT_BYTES
from scant.tables.schema import Preview, TableSchema
from scant_dashboard.engine_text import translated
from scant_dashboard.translate import ENGLISH, day, later, ntr, spoken, tr

PROBLEMS = 5  # shown at once
PHOTOGRAPHS = later(
    "A ZIP of at most {megabytes} MB of photographs (JPEG or PNG) works, too: they are cut into "
    "patches. If it has labels beside them (Label Studio, COCO, YOLO or CSV), their boxes are the "
    "patches."
)
IMAGES = later(
    "A ZIP of at most {megabytes} MB with images in folders {folders} works, too; the images are "
    "resized to the size in the settings."
)
VIEWS = later(
    "A ZIP of at most {megabytes} MB of images works, too: each image gets views of colors, "
    "gradients and binary patterns and, where the server has the extra 'vision', one of a "
    "pretrained network. Folders are classes; or put a table beside the images that names the "
    "image of each row, and its columns are learned from, too."
)
HEAD = later("Each column's head says what it is used as; change it where the guess is wrong.")


def images(table: TableSchema) -> str:
    """Describe the ZIP of images that a study takes; its folders replace columns."""
    megabytes = IMAGE_LIMIT_BYTES // 10**6
    if table.cut or table.views:
        return tr(PHOTOGRAPHS if table.cut else VIEWS, megabytes=megabytes)
    needed = "/".join(column.name for column in table.columns if column.required)
    every = "/".join(column.name for column in table.columns)
    folders = [f"<code>{folder}/</code>" for folder in dict.fromkeys((needed, every))]
    return tr(IMAGES, megabytes=megabytes, folders=f" {tr('or')} ".join(folders))


def data_location(record: Any) -> str:
    if record.deleted:
        deleted = tr("This table was deleted; its runs keep their curves and figures.")
        return f"<p class='quiet'>{deleted}</p>"
    notes = paragraphs(of_file(record.notes[:PROBLEMS], record.name), "quiet", "note")
    stored = tr(
        "{file}: {rows:,} rows, {columns} columns, kept in this server's data folder until {day}.",
        file=record.name,
        rows=record.rows,
        columns=len(record.columns),
        day=day(record.created + UPLOAD_DAYS * 86400),
    )
    return f"<p class='quiet'>{html.escape(stored)}</p>{notes}"


def head(preview: Preview, file: str) -> str:
    """Describe the size of the file."""
    if not preview.names:
        return ""
    n_missing = sum(c.missing for c in preview.columns)
    parts = [ntr("{n:,} row", "{n:,} rows", preview.n_rows)]
    parts.append(ntr("{n:,} column", "{n:,} columns", len(preview.names)))
    if n_missing:
        parts.append(ntr("{n:,} empty cell", "{n:,} empty cells", n_missing))
    return f"<p><strong>{html.escape(file)}</strong>: {', '.join(parts)}. {tr(HEAD)}</p>"


def ask(absent: Sequence[str], table: TableSchema) -> str:
    """Ask for the columns that a file lacks."""
    questions = [translated(column.question) for column in table.columns if column.name in absent]
    choose = ntr(
        "Choose it in the heads of the table.",
        "Choose them in the heads of the table.",
        len(questions),
    )
    return " ".join([*questions, choose])


def elsewhere(suit: Suit, secret: str) -> str:
    """Suggest another study for the table, with a link that takes the table there."""
    page, reason = tr(entry(suit.study).title), translated(suit.reason)
    why = tr("This table suits {page} because {reason}.", page=page, reason=reason)
    link = tr("Open it on {page}", page=page)
    return (
        f"<p class='message' role='note'>{html.escape(why)} "
        f"<a href='./{suit.study}?file={secret}'>{html.escape(link)}</a></p>"
    )


def feature_list(preview: Preview) -> str:
    """List the feature columns by their names in the file."""
    own = {ours: theirs for theirs, ours in preview.mapping.items() if ours}
    names = [own.get(name, name) for name in preview.features]
    return ntr(
        "{n:,} column to learn from: {names}.",
        "{n:,} columns to learn from: {names}.",
        len(names),
        names=translated(listed(names)),
    )


def of_file(sentences: Sequence[str], name: str) -> list[str]:
    """Remove the file's name from the beginning of sentences, in the session's language."""
    ends = "(, |: | )" if spoken() == ENGLISH else "(, |: )"  # else it may be the subject
    short = (re.sub(rf"^{re.escape(name)}{ends}", "", translated(s)) for s in sentences)
    own = (f"It {s}" if s.startswith(("is ", "has ", "was ")) else s for s in short)
    return [sentence[:1].upper() + sentence[1:] for sentence in own]


def collapsed_paragraphs(sentences: Sequence[str], kind: str, role: str) -> str:
    """Return sentences as paragraphs, those after the first `PROBLEMS` collapsed."""
    visible, more = sentences[:PROBLEMS], sentences[PROBLEMS:]
    if not more:
        return paragraphs(visible, kind, role)
    summary = tr("{n} more", n=len(more))
    rest = f"<details><summary>{summary}</summary>{paragraphs(more, kind, 'note')}</details>"
    return paragraphs(visible, kind, role) + rest


def paragraphs(sentences: Sequence[str], kind: str, role: str) -> str:
    """Return sentences, the engine's or translated ones, as paragraphs."""
    own = (html.escape(translated(sentence)) for sentence in sentences)
    return "".join(f"<p class='{kind}' role='{role}'>{sentence}</p>" for sentence in own)
