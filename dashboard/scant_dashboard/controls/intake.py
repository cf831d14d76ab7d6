"""Files dropped anywhere on the page, and pasted tables: both open the upload wizard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from panel.custom import JSComponent

from scant_dashboard.template import assets
from scant_dashboard.translate import later, tr

ADDRESS = later(
    "This server does not download files from web addresses. Download the file, then drop it "
    "here; or copy the table's cells and paste them."
)


class Intake(JSComponent):
    """Listens on the whole page; invisible.

    Files are passed to the wizard's own field, which applies its limits. Addresses are refused.

    Args:
        opened: Called when a file arrives, so that the wizard shows its field.
        refused: Called with a message on refused input.
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
            self._refused(tr(ADDRESS))
