"""Tables in the terminal: no wider than it, and whole lines for other programs."""

from __future__ import annotations

import pytest

from scant_dashboard.cli.printing import print_table

LONG = "a data set with a description that is much longer than a line of this terminal"


@pytest.mark.parametrize("terminal", [True, False])
def test_long_cells_wrap_in_a_terminal_only(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    print_table(("name", "rows", "text"), [("a[b]", 12, LONG), ("c", 1.23456789, None)])
    lines = capsys.readouterr().out.splitlines()
    assert (max(len(line.rstrip()) for line in lines) <= 40) == terminal
    assert (LONG in lines[1]) == (not terminal)
    assert lines[1].startswith("a[b]")  # no markup
    assert "1.2346" in lines[-1]
