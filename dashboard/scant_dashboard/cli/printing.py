"""Tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

REDIRECTED = 10_000  # columns of a file or pipe, whose lines must stay whole for other programs


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table on standard output, at most as wide as the terminal; long cells are wrapped.

    Args:
        header: Names of the columns.
        rows: Cells; numbers are aligned right, NaN and None are empty.
    """
    from rich.console import Console
    from rich.table import Table

    lines = [list(row) for row in rows]
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = REDIRECTED
    table = Table(box=None, pad_edge=False, header_style="")
    for k, name in enumerate(header):
        numeric = bool(lines) and all(isinstance(line[k], int | float) for line in lines)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for line in lines:
        table.add_row(*map(_cell, line))
    console.print(table)


def _cell(value: Any) -> str:
    if value is None or value != value:  # NaN
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
