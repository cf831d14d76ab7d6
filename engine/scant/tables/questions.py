"""Questions to the user on a file: its part, decimal mark and missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scant.tables.cells import Cells
from scant.tables.column_matching import listed
from scant.tables.formats.registry import Content
from scant.tables.limits import without_limits
from scant.tables.schema import Question
from scant.tables.sentinels import sentinels
from scant.tables.several import ALL


def part_question(content: Content) -> Question:
    """Ask for the sheet, file or group to read."""
    options = tuple((part, part) for part in content.parts)
    return Question("part", "Which of its tables is to be read?", options, content.part)


def tables_question(names: Sequence[str], guess: str) -> Question:
    """Ask whether to read all tables of an archive together, or one of them."""
    every = f"all {len(names)} together: each a task, or values joined with a map"
    options = ((ALL, every), *((name, name) for name in names))
    return Question("part", "Which of its tables is to be read?", options, guess)


def decimal_question(column: str, cell: str, guess: str) -> Question:
    """Ask whether a mark that is always followed by three digits is a decimal mark."""
    mark = "," if "," in cell else "."
    whole, point = cell.replace(mark, ""), cell.replace(",", ".")
    meanings = {mark: f"decimals: {point}", "," if mark == "." else ".": f"thousands: {whole}"}
    text = f"In the column “{column}” there is {cell}. What does its point or comma separate?"
    return Question("decimal", text, tuple(meanings.items()), guess)


def class_question(setting: str, rows: Mapping[str, int]) -> Question | None:
    """Ask which of three or more classes to tell from the others; None if two can be learned.

    Args:
        setting: Setting that names it (`TableSchema.class_setting`).
        rows: Number of rows by class; those with commas cannot be named in a setting.
    """
    if len(rows) < 3:
        return None
    named = {name: n for name, n in rows.items() if "," not in name}
    if not named:
        return None
    options = tuple((name, f"{name} ({n:,} rows)") for name, n in named.items())
    rarest = min(named, key=lambda name: named[name])
    return Question(setting, "Which class is to be told from the others?", options, rarest)


def missing_question(cells: Mapping[str, Cells], mapping: Mapping[str, str]) -> list[Question]:
    """Ask whether outlying codes such as -99 mean "not measured"; an empty list without such codes.

    The answer has the form of `missing_codes`: codes by header.
    """
    suspects = {
        name: tuple(s.code for s in sentinels(without_limits(name, cells, mapping)))
        for name, c in cells.items()
        if mapping.get(name, name) and not c.is_text
    }
    suspects = {name: codes for name, codes in suspects.items() if codes}
    if not suspects:
        return []
    codes = listed([f"{code:g}" for code in sorted({c for s in suspects.values() for c in s})])
    where = listed([f"“{name}”" for name in suspects], 4)
    text = f"{codes} is far from the other numbers of {where}. Does it mean “not measured”?"
    options: tuple[tuple[Any, str], ...] = (
        (suspects, "Yes, those cells are empty"),
        ({}, "No, it is a number"),
    )
    return [Question("missing_codes", text, options, suspects)]
