"""Files dropped anywhere on the page, tables pasted into it: both open the upload wizard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from panel.custom import JSComponent

from scant_dashboard.template import assets

ADDRESS = (
    "This server fetches nothing from an address. Download the file, then drop it here; or copy "
    "the table's cells and paste them."
)


class Intake(JSComponent):
    """Listens on the whole page; takes no room on it.

    A file goes to the wizard's own field, whose limits then hold for it. An address is refused.

    Args:
        opened: Called when a file comes: the wizard must show its field.
        refused: Called with a sentence on what cannot be taken.
    """

    _esm = assets() / "intake.js"

    def __init__(self, opened: Callable[[], None], refused: Callable[[str], None]) -> None:
        super().__init__(width=0, height=0, margin=0, styles={"position": "absolute"})
        self._opened, self._refused = opened, refused

    def _handle_msg(self, data: Any) -> None:
        act = data.get("act") if isinstance(data, dict) else None
        if act == "open":
            self._opened()
        elif act == "address":
            self._opened()
            self._refused(ADDRESS)
