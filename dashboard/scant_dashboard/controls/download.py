"""A button for downloading a file that is generated on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from io import BytesIO
from typing import Any

import panel_material_ui as pmui

from scant.errors import BadInput, NotFound, Unavailable
from scant_dashboard.page_parts.context import PageContext

Made = str | bytes
REFUSED = (BadInput, NotFound, Unavailable)


def download(
    page: PageContext,
    label: str,
    filename: str,
    make: Callable[[], Made] | Callable[[], Awaitable[Made]],
    **params: Any,
) -> pmui.FileDownload:
    """A button for one file.

    Args:
        page: Says the sentence where the file is refused, which the file then holds as well.
        label: Of the button.
        filename: Under which it is kept.
        make: What is in it; a coroutine function where that takes its time. Panel sends the file
            more surely where there is nothing to wait for.
        **params: Of the button.
    """

    def file(made: Made) -> BytesIO:
        return BytesIO(made.encode() if isinstance(made, str) else made)

    def as_text(error: Exception) -> BytesIO:
        page.turn(lambda: page.say(str(error), "error"))
        return file(str(error))

    def now() -> BytesIO:
        try:
            return file(make())  # type: ignore[arg-type]
        except REFUSED as error:
            return as_text(error)

    async def later() -> BytesIO:
        try:
            return file(await make())  # type: ignore[misc]
        except REFUSED as error:
            return as_text(error)

    return pmui.FileDownload(
        callback=later if iscoroutinefunction(make) else now, filename=filename, label=label,
        embed=False, auto=True, variant="outlined", size="small", margin=0, **params,
    )  # fmt: skip
