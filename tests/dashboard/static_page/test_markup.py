"""Components as HTML."""

from __future__ import annotations

import panel as pn

from scant_dashboard.page_parts.widgets import collapsible, column
from scant_dashboard.static_page.markup import Markup


def test_a_collapsed_part_opens_with_its_contents_and_is_there_once() -> None:
    panel = column(*collapsible("Read on", column(pn.pane.HTML("<p>more</p>"))), pn.pane.HTML("z"))
    html = Markup().of(panel)
    fold, after = html.split("</details>")
    assert "<summary>Read on</summary>" in fold
    assert fold.count("<p>more</p>") == 1
    assert "z" in after
    assert "<template" not in html
