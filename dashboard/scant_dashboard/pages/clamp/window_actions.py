"""What a person did in one window, which can be undone, and the patches skipped there."""

from __future__ import annotations

from scant.store.records import ADJUDICATOR
from scant_dashboard.pages.clamp.session_labels import SessionLabels

LABEL, SKIP = "label", "skip"


class WindowActions:
    """Labels, skips and decisions of a window, the latest last.

    Attributes:
        skips: Rows skipped and not asked again, in the order in which they were skipped.
    """

    def __init__(self) -> None:
        self._acts: list[tuple[str, int]] = []
        self.skips: list[int] = []

    def __len__(self) -> int:
        return len(self._acts)

    def append(self, act: str, row: int) -> None:
        """Add an action: `LABEL`, `SKIP` or `ADJUDICATOR`."""
        self._acts.append((act, row))
        if act == SKIP:
            self.skips.append(row)

    def pop(self, labels: SessionLabels) -> tuple[str, int] | None:
        """Remove and return the latest action that still stands; None if there is none.

        Args:
            labels: All current labels: another window may have removed one of this window.
        """
        while self._acts:
            act, row = self._acts.pop()
            if act == SKIP:
                self.skips = [skipped for skipped in self.skips if skipped != row]
                return act, row
            if labels.decided(row) if act == ADJUDICATOR else row in labels.own:
                return act, row
        return None
