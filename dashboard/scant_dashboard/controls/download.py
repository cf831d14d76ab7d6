"""A button for downloading a file that is generated on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from io import BytesIO
from typing import Any

import panel_material_ui as pmui

from scant.errors import BadInput, NotFound, Unavailable
from scant_dashboard.engine_text import translated
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
    """Return a button that downloads one file.

    Args:
        page: Shows the error message if the file cannot be generated; the file contains it, too.
        label: Label of the button.
        filename: Name of the file.
        make: Generates the content; a coroutine function if that takes long. Panel delivers the
            result of a plain function more reliably.
        **params: Parameters of the button.
    """

    def file(made: Made) -> BytesIO:
        return BytesIO(made.encode() if isinstance(made, str) else made)

    def as_text(error: Exception) -> BytesIO:
        page.turn(lambda: page.say(str(error), "error"))
        return file(translated(str(error)))

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
