"""Markup of the upload wizard's messages on a file."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Sequence
from typing import Any

from scant.store import UPLOAD_DAYS
from scant.studies import entry
from scant.studies.suits import Suit
from scant.tables.column_matching import listed
from scant.tables.images.archives import IMAGE_LIMIT_BYTES
from scant.tables.schema import Preview, TableSchema

PROBLEMS = 5  # shown at once


def images(table: TableSchema) -> str:
    """Describe the ZIP of images that a study takes; its folders replace columns."""
    size = f", or a ZIP of at most {IMAGE_LIMIT_BYTES // 10**6} MB"
    if table.cut:
        return (
            f"{size} of photographs (JPEG or PNG), which are cut into patches; with labels beside "
            "them (Label Studio, COCO, YOLO or CSV), their boxes are the patches"
        )
    needed = "/".join(column.name for column in table.columns if column.required)
    every = "/".join(column.name for column in table.columns)
    more = f" or <code>{every}/</code>" if every != needed else ""
    return (
        f"{size} with images in folders <code>{needed}/</code>{more}, brought to the size in the "
        "settings"
    )


def data_location(record: Any) -> str:
    if record.deleted:
        return (
            "<p class='quiet'>This table was deleted; its runs keep their curves and figures.</p>"
        )
    day = time.strftime("%d %B %Y", time.localtime(record.created + UPLOAD_DAYS * 86400))
    notes = paragraphs(of_file(record.notes[:PROBLEMS], record.name), "quiet", "note")
    return (
        f"<p class='quiet'>{html.escape(record.name)}: {record.rows:,} rows, {len(record.columns)} "
        f"columns, kept in this server's data folder until {day}.</p>{notes}"
    )


def head(preview: Preview, file: str) -> str:
    """Describe the size of the file."""
    if not preview.names:
        return ""
    n_missing = sum(c.missing for c in preview.columns)
    missing = f", {n_missing:,} empty {'cell' if n_missing == 1 else 'cells'}" if n_missing else ""
    return (
        f"<p><strong>{html.escape(file)}</strong>: {preview.n_rows:,} rows, "
        f"{len(preview.names):,} columns{missing}. Each column's head says what it is used as; "
        "change it where the guess is wrong.</p>"
    )


def ask(absent: Sequence[str], table: TableSchema) -> str:
    """Ask for the columns that a file lacks."""
    questions = [column.question for column in table.columns if column.name in absent]
    which = "it" if len(questions) == 1 else "them"
    return f"{' '.join(questions)} Choose {which} in the heads of the table."


def elsewhere(suit: Suit, secret: str) -> str:
    """Suggest another study for the table, with a link that takes the table there."""
    title = html.escape(entry(suit.study).title)
    return (
        f"<p class='message' role='note'>{html.escape(suit.sentence())} "
        f"<a href='./{suit.study}?file={secret}'>Open it on {title}</a></p>"
    )


def feature_list(preview: Preview) -> str:
    """List the feature columns by their names in the file."""
    own = {ours: theirs for theirs, ours in preview.mapping.items() if ours}
    names = [own.get(name, name) for name in preview.features]
    return f"To learn from, {len(names):,} column{'s' * (len(names) > 1)}: {listed(names)}."


def of_file(sentences: Sequence[str], name: str) -> list[str]:
    """Remove the file's name from the beginning of sentences."""
    short = (re.sub(rf"^{re.escape(name)}(, |: | )", "", sentence) for sentence in sentences)
    own = (f"It {s}" if s.startswith(("is ", "has ", "was ")) else s for s in short)
    return [sentence[:1].upper() + sentence[1:] for sentence in own]


def collapsed_paragraphs(sentences: Sequence[str], kind: str, role: str) -> str:
    """Return sentences as paragraphs, those after the first `PROBLEMS` collapsed."""
    visible, more = sentences[:PROBLEMS], sentences[PROBLEMS:]
    if not more:
        return paragraphs(visible, kind, role)
    rest = f"<details><summary>{len(more)} more</summary>{paragraphs(more, kind, 'note')}</details>"
    return paragraphs(visible, kind, role) + rest


def paragraphs(sentences: Sequence[str], kind: str, role: str) -> str:
    return "".join(f"<p class='{kind}' role='{role}'>{html.escape(s)}</p>" for s in sentences)
