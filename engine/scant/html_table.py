"""Tables of numbers as HTML, with a responsive layout.

In narrow frames, `STYLE` displays each row of a table with many columns as a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

FEW, MANY = 3, 6  # maximum columns of tables without blocks, and with the narrow limit
_BLOCKS = """
  .stacks{0}, .stacks{0} tbody {{ display: block; min-width: 0; }}
  .stacks{0} thead {{ display: none; }}
  .stacks{0} tr {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr));
    gap: 2px 10px; padding: 6px 0; border-bottom: 1px solid var(--line, #ddd); }}
  .stacks{0} :is(th, td) {{ display: block; padding: 0; border: 0; text-align: left; }}
  .stacks{0} th {{ grid-column: 1 / -1; }}
  .stacks{0} td:empty {{ display: none; }}
  .stacks{0} td::before {{ content: attr(data-head); display: block; font-size: .75rem;
    color: var(--quiet, #595959); }}
"""
STYLE = (
    ".frame { overflow-x: auto; max-width: 100%; container-type: inline-size; }\n"
    ".spread { white-space: nowrap; }\n"
    f"@container (max-width: 800px) {{{_BLOCKS.format('.many')}}}\n"
    f"@container (max-width: 560px) {{{_BLOCKS.format('')}}}\n"
)
_ROLES = {"table": "table", "tbody": "rowgroup", "tr": "row", "td": "cell"}


def html_table(
    heads: Sequence[str],
    rows: Iterable[tuple[str, Sequence[str]] | str],
    corner: str = "",
    stacks: bool = False,
) -> str:
    """Return a table with labeled rows as HTML.

    Args:
        heads: Names of the columns as HTML.
        rows: Pairs of a label and the cells as HTML; a string is a heading for the following rows.
        corner: Name of the column of labels.
        stacks: Whether rows are blocks in narrow frames although there are few columns.
    """
    stacks = stacks or len(heads) > FEW
    kind = " ".join(["stacks"] * stacks + ["many"] * (len(heads) > MANY))
    names = [re.sub("<[^>]+>", " ", head).strip() for head in heads]
    body = ""
    for row in rows:
        if isinstance(row, str):
            body += f"<tr><th scope='rowgroup' colspan='{len(heads) + 1}'>{row}</th></tr>"
            continue
        label, cells = row
        figures = "".join(
            f"<td class='number' data-head='{name}'>{_bound(cell)}</td>"
            for name, cell in zip(names, cells, strict=True)
        )
        body += f"<tr><th scope='row'>{label}</th>{figures}</tr>"
    head = "".join(f"<th scope='col' class='number'>{name}</th>" for name in heads)
    first = f"<th scope='col'>{corner}</th>" if corner else "<td></td>"
    html = (
        f"<table class='{kind}'><thead><tr>{first}{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    if stacks:  # explicit roles for screen readers, since blocks lose them
        for tag, role in _ROLES.items():
            html = re.sub(rf"<{tag}\b", f"<{tag} role='{role}'", html)
        html = re.sub("<th scope='row", "<th role='rowheader' scope='row", html)
    return f"<div class='scroll frame' tabindex='0' role='group' aria-label='Figures'>{html}</div>"


def _bound(cell: str) -> str:
    """Allow a line break before a standard deviation, but not within it."""
    return re.sub(r"± \S+?(?=<|$)", r"<span class='spread'>\g<0></span>", cell)
