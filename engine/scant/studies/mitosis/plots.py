"""The mitosis study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(made: Elements) -> dict[str, Any]:
    """The latent space in its two most relevant dimensions, and the scores of held-out rows."""
    a, metadata = made.arrays, made.metadata
    drawn: dict[str, Any] = {}
    if a["latent_mean"].shape[1] > 1:
        first, second = a["relevance"].argsort()[::-1][:2]
        drawn["Where the rows lie"] = made.groups(
            a["latent_mean"][:, first],
            a["latent_mean"][:, second],
            a["latent_class"],
            metadata["classes"],
            (f"latent dimension {first + 1}", f"latent dimension {second + 1}"),
        )
    drawn["Relevance of the dimensions"] = made.bars(
        [str(q + 1) for q in range(len(a["relevance"]))], a["relevance"], "relevance"
    )
    if made.has("pr"):
        drawn["Precision and recall"] = made.lines(
            a["pr"][:, 2], a["pr"][:, 1], metadata["methods"], ("recall", "precision")
        )
    return drawn
