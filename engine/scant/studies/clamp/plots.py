"""The clamp study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(elements: Elements) -> dict[str, Any]:
    """F1 by labels given, of this session and of the methods compared, and the pool."""
    a, metadata = elements.arrays, elements.metadata
    labels = ("labels", "F1 on held-out rows")
    result = {
        "Label efficiency": elements.lines(a["labels"], a["f1"], metadata["methods"], labels),
        "The pool": elements.groups(
            a["pool_xy"][:, 0],
            a["pool_xy"][:, 1],
            a["truth"],
            metadata["classes"],
            ("first principal component", "second principal component"),
        ),
    }
    if elements.has("compare_f1"):
        result["Beside other methods"] = elements.lines(
            a["labels"], a["compare_f1"], metadata["compared"], labels
        )
    return result
