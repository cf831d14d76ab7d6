"""Which studies suit a file that nobody has said more of."""

from __future__ import annotations

from scant.data_sources.human_fertility import is_rates
from scant.errors import BadInput
from scant.studies import entry
from scant.studies.suits import Suit, of_images, suits
from scant.tables.images.image_table import image_folders
from scant.tables.read import inspect_table

RATES = Suit("aggregation", "it holds rates of births by age and year, whose cells can be averaged")


def ranked(content: bytes, name: str) -> list[Suit]:
    """The studies that suit a file, the best first; none where there is nothing to learn.

    Args:
        content: A table in any format that can be uploaded, or a ZIP of images.
        name: Its name, which tells the format.

    Raises:
        BadInput: It cannot be read.
    """
    if is_rates(content):
        return [RATES]
    # Any study's reading finds the same columns; the redshift study's has the fewest of its own.
    preview = inspect_table(content, entry("redshift").table, name=name)
    if not preview.names and (folders := image_folders(content)):
        return [of_images(folders)]
    if not preview.names and preview.problems:
        raise BadInput(preview.problems[0])
    first: dict[str, Suit] = {}
    for suit in suits(preview.columns, preview.n_rows):
        first.setdefault(suit.study, suit)
    return list(first.values())
