"""Buttons that train the same run with one thing changed, and compare the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

import param
from panel.custom import JSComponent

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.template import style


class Variant(NamedTuple):
    """A variant of a run.

    Attributes:
        train: Label of its button, an imperative sentence: "Train with …".
        expect: The expected effect; "" for none.
        settings: The settings to change.
    """

    train: str
    expect: str
    settings: dict[str, Any]


class VariantButtons(JSComponent):
    """A list of variants, each with a button that trains it next to the current run."""

    rows = param.List(default=[])  # of [label of the button, expected effect]

    def still(self) -> str:
        """Return the static markup for a page without scripts."""
        items = "".join(
            f"<li><button type='button' data-live>{escape(train)}</button>"
            + (f": {escape(expect)}" if expect else "")
            + "</li>"
            for train, expect in self.rows
        )
        return f"<ul>{items}</ul>" if items else ""

    _esm = """
    export function render({model, el}) {
      const draw = () => {
        const list = document.createElement('ul')
        list.append(...model.rows.map(([train, expect], i) => {
          const item = document.createElement('li'), button = document.createElement('button')
          button.type = 'button'
          button.textContent = train
          button.addEventListener('click', () => model.send_msg({pick: i}))
          item.append(button, expect ? `: ${expect}` : '')
          return item
        }))
        el.replaceChildren(...(model.rows.length ? [list] : []))
      }
      model.on('rows', draw)
      draw()
    }
    """

    def __init__(self, page: PageContext) -> None:
        css = "button { font: inherit; padding: 0; border: 0; background: none; cursor: pointer; "
        css += "color: var(--accent); text-decoration: underline; text-align: left; "
        css += "vertical-align: top; }"
        super().__init__(
            stylesheets=[style("text"), css], sizing_mode="stretch_width", margin=0
        )  # fmt: skip
        self._page = page
        self.variants: list[Variant] = []

    def offer(self, variants: Sequence[Variant]) -> None:
        """Replace the list of variants."""
        self.variants = list(variants)
        self.rows = [[v.train, v.expect] for v in self.variants]

    def _handle_msg(self, data: Any) -> None:
        pick = data.get("pick") if isinstance(data, dict) else None
        if isinstance(pick, int) and 0 <= pick < len(self.variants):
            self._page.train_variant(self.variants[pick].settings)


class Alternatives:
    """An explore view that lists variants of the current run.

    Args:
        page: The page of the view.
        title: Heading of the view.
        offer: Returns a sentence on a run, and its variants.
    """

    def __init__(
        self,
        page: PageContext,
        title: str,
        offer: Callable[[RunState], tuple[str, Sequence[Variant]]],
    ) -> None:
        self.title = title
        self.alt = ""
        self.panel = VariantButtons(page)
        self._offer = offer

    def open(self, run: RunState) -> None:
        """List the variants of this run."""
        self.alt, others = self._offer(run)
        self.panel.offer(others)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.alt = ""
        self.panel.offer(())
