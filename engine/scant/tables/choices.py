"""What follows from a visitor's choice of columns: of two targets one is learned, none an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scant.tables.column_matching import schema_names
from scant.tables.guesses import Columns, other_targets
from scant.tables.schema import TableSchema

OUT = ""  # the role of a column that is left out


def choose(
    mapping: Mapping[str, str],
    columns: Columns,
    schema: TableSchema,
    known: str,
    names: Sequence[str],
) -> dict[str, str]:
    """The mapping once columns were chosen for a name of the schema.

    What had been taken for it is left out. So is, beside a target, what gives it away: other
    targets of the schema, where one is learned, and columns that look like targets.

    Args:
        mapping: Of the file's headers, as of `read_table`.
        columns: What they hold.
        schema: What the study takes.
        known: The name in the schema.
        names: The headers that are taken for it; none: nothing is.
    """
    made = {n: OUT if to == known else to for n, to in mapping.items()}
    made |= dict.fromkeys(names, known)
    if not names or known not in schema.targets:
        return made
    if schema.one_target:
        others = {c.name for c in schema.columns if c.target and known not in (c.name, c.beside)}
        made = {n: OUT if to in others else to for n, to in made.items()}
    if schema.features and not schema.boxes:
        own = schema_names(schema)
        free = {n: c for n, c in columns.items() if n in names or made.get(n, n) not in {*own, OUT}}
        made |= dict.fromkeys(other_targets(free, names[0]), OUT)
    return made
