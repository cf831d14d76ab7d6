"""Which studies suit a file that nobody has said more of."""

from __future__ import annotations

from scant.data_sources.human_fertility import is_rates
from scant.errors import BadInput
from scant.studies import entry
from scant.studies.suits import Suit, of_images, suits
from scant.tables.images.image_table import image_folders
from scant.tables.read import inspect_table
from scant.tables.schema import Preview

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
    found = suits_of(preview, content)
    if not preview.names and not found and preview.problems:
        raise BadInput(preview.problems[0])
    first: dict[str, Suit] = {}
    for suit in found:
        first.setdefault(suit.study, suit)
    return list(first.values())


def suits_of(preview: Preview, content: bytes) -> list[Suit]:
    """The studies that suit a file by its columns, or by its images; the best first.

    Args:
        preview: Of the file.
        content: The file.
    """
    if not preview.names and (folders := image_folders(content)):
        return [of_images(folders)]
    return suits(preview.columns, preview.n_rows)
