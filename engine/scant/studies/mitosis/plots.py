"""The mitosis study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(elements: Elements) -> dict[str, Any]:
    """Plot the two most relevant latent dimensions, and scores of the held-out rows."""
    a, metadata = elements.arrays, elements.metadata
    result: dict[str, Any] = {}
    if a["latent_mean"].shape[1] > 1:
        first, second = a["relevance"].argsort()[::-1][:2]
        result["Where the rows lie"] = elements.groups(
            a["latent_mean"][:, first],
            a["latent_mean"][:, second],
            a["latent_class"],
            metadata["classes"],
            (f"latent dimension {first + 1}", f"latent dimension {second + 1}"),
        )
    result["Relevance of the dimensions"] = elements.bars(
        [str(q + 1) for q in range(len(a["relevance"]))], a["relevance"], "relevance"
    )
    if elements.has("pr"):
        result["Precision and recall"] = elements.lines(
            a["pr"][:, 2], a["pr"][:, 1], metadata["methods"], ("recall", "precision")
        )
    return result
