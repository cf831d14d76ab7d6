"""Tables of figures as HTML."""

from __future__ import annotations

import re

from scant.html_table import html_table


def test_a_table_of_many_columns_can_turn_its_rows_into_blocks() -> None:
    heads = ["F<sub>1</sub>", "recall", "<i>p</i>", "ECE"]
    made = html_table(heads, ["Baselines", ("forest", ["0.5 ± 0.1", "", "1", "2"])], "method")
    assert "class='stacks'" in made
    assert re.findall("data-head='([^']*)'", made) == ["F 1", "recall", "p", "ECE"]
    assert "0.5 <span class='spread'>± 0.1</span>" in made
    assert "scope='rowgroup' colspan='5'>Baselines</th>" in made
    roles = [
        re.search(r"role='(\w+)'", tag) for tag in re.findall("<(?:table|tbody|tr|td)[^>]*>", made)
    ]
    assert all(roles), "a block is a table to a screen reader by its roles alone"
    assert "many" in html_table([*heads, *heads], [])
    assert "stacks" not in html_table(heads[:3], [("a", ["1", "2", "3"])])
