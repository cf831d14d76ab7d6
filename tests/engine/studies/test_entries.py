"""Tables of arrays in the studies' entries."""

from __future__ import annotations

import pytest

from scant.studies.base import ArraySpec, array_specs


def test_a_line_is_a_spec_and_indented_lines_go_on() -> None:
    specs = array_specs("""
        mean (n q) [1/y] posterior means,
            of some rows
        pit (n) [probability] of the values
    """)
    assert specs == (
        ArraySpec("mean", "n q", "1/y", "posterior means, of some rows"),
        ArraySpec("pit", "n", "probability", "of the values"),
    )


@pytest.mark.parametrize("line", ["mean n q [1] means", "mean (n q) means", "mean (n q) [1]"])
def test_a_line_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="spec of an array"):
        array_specs(line)
