"""A button that hands the visitor a file, made when it is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import panel_material_ui as pmui

from engine.errors import BadInput, NotFound, Unavailable

if TYPE_CHECKING:
    from dashboard.pages.study_page import StudyPage

Made = str | bytes


def download(
    page: StudyPage,
    label: str,
    filename: str,
    make: Callable[[], Made | Awaitable[Made]],
    **params: Any,
) -> pmui.FileDownload:
    """A button for one file.

    Args:
        page: Says the sentence where the file is refused, which the file then holds as well.
        label: Of the button.
        filename: Under which it is kept.
        make: What is in it; awaited where it takes its time.
        **params: Of the button.
    """

    async def content() -> BytesIO:
        try:
            made = make()
            made = await made if isawaitable(made) else made
        except (BadInput, NotFound, Unavailable) as error:
            made = sentence = str(error)
            page.turn(lambda: page.say(sentence, "error"))
        return BytesIO(made.encode() if isinstance(made, str) else made)

    return pmui.FileDownload(
        callback=content, filename=filename, label=label, embed=False, auto=True,
        variant="outlined", size="small", margin=0, **params,
    )  # fmt: skip
