"""Consequences of a user's choice of columns: one target, and no target among the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scant.tables.column_kinds import Columns, other_targets
from scant.tables.column_matching import schema_names
from scant.tables.schema import TableSchema

OUT = ""  # the role of a column that is left out


def choose(
    mapping: Mapping[str, str],
    columns: Columns,
    schema: TableSchema,
    role: str,
    names: Sequence[str],
) -> dict[str, str]:
    """Update a mapping after columns were chosen for a name of the schema.

    Columns previously mapped to the name are left out. For a target, so are the other targets of
    the schema and columns that look like targets, which would reveal it.

    Args:
        mapping: Headers to names, as for `read_table`.
        columns: Previews of the columns.
        schema: Schema of the study.
        role: Name in the schema.
        names: Headers chosen for it, possibly none.
    """
    result = {n: OUT if to == role else to for n, to in mapping.items()}
    result |= dict.fromkeys(names, role)
    if not names or role not in schema.targets:
        return result
    if schema.one_target:
        others = {c.name for c in schema.columns if c.target and role not in (c.name, c.beside)}
        result = {n: OUT if to in others else to for n, to in result.items()}
    if schema.features and not schema.boxes:
        own = schema_names(schema)
        free = {
            n: c for n, c in columns.items() if n in names or result.get(n, n) not in {*own, OUT}
        }
        result |= dict.fromkeys(other_targets(free, names[0]), OUT)
    return result
