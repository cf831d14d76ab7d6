"""List of the visitor's runs and the demonstrations: open one, or compare up to six."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import param
from panel.custom import JSComponent

from scant.runs.naming import run_name
from scant.store import RunRecord
from scant.store.trouble import StoreTrouble
from scant_dashboard.controls.compare import MAX_RUNS, Comparison, began
from scant_dashboard.controls.status import NAMES
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import style
from scant_dashboard.translate import ENGLISH, later, spoken, tr

MAX_ROWS = 30  # most recent runs in the list
HEADS = (
    later("Compare"),
    later("Run"),
    later("State"),
    later("Settings that differ from the defaults"),
)


class RunTable(JSComponent):
    """Rows {id, href, name, compare, state, differs}, each with a checkbox; `chosen` holds ids."""

    heads = param.List(default=[])
    rows = param.List(default=[])
    chosen = param.List(default=[])
    most = param.Integer(default=MAX_RUNS)

    def still(self) -> str:
        """Return the static markup for a page without scripts, without visitors' own runs."""
        rows = "".join(
            f"<tr><td><label class='check' data-live><input type='checkbox' "
            f"aria-label='{escape(row['compare'])}'></label></td>"
            f"<td><a href='{escape(row['href'])}'>{escape(row['name'])}</a></td>"
            f"<td>{escape(row['state'])}</td><td>{escape(row['differs'])}</td></tr>"
            for row in self.rows
        )
        head = "".join(f"<th scope='col'>{name}</th>" for name in self.heads)
        return (
            f"<div class='scroll'><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
            f"<p class='quiet'><a href='?live=over'>{tr('Your own runs')}</a></p>"
        )

    _esm = """
    export function render({model, el}) {
      const draw = () => {
        const table = document.createElement('table')
        const heads = model.heads.map((name) => `<th scope="col">${name}</th>`)
        table.innerHTML = `<thead><tr>${heads.join('')}</tr></thead>`
        const body = table.createTBody()
        for (const row of model.rows) {
          const tr = body.insertRow()
          const box = document.createElement('input')
          box.type = 'checkbox'
          box.setAttribute('aria-label', row.compare)
          box.checked = model.chosen.includes(row.id)
          box.disabled = !box.checked && model.chosen.length >= model.most
          box.addEventListener('change', () => {
            const others = model.chosen.filter((id) => id !== row.id)
            model.chosen = box.checked ? [...others, row.id] : others
          })
          tr.insertCell().append(box)
          const link = document.createElement('a')
          link.href = row.href
          link.textContent = row.name
          tr.insertCell().append(link)
          tr.insertCell().textContent = row.state
          tr.insertCell().textContent = row.differs
        }
        const frame = document.createElement('div')
        frame.className = 'scroll'
        frame.append(table)
        el.replaceChildren(frame)
      }
      model.on('rows', draw)
      model.on('chosen', draw)
      draw()
    }
    """


class RunList:
    """The runs of this page's study, and a comparison of the chosen ones."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._names: dict[str, str] = {}  # by run, whose settings and data do not change
        self.table = RunTable(
            heads=[tr(head) for head in HEADS],
            stylesheets=[style("text")],
            sizing_mode="stretch_width",
            margin=0,
        )
        self.comparison = Comparison(page)
        self.refresh()
        self.table.param.watch(lambda event: self.comparison.show(event.new), "chosen")
        self.panel = column(self.table, self.comparison.panel, css=":host { gap: 24px; }")

    def tick(self, runs: Sequence[str]) -> None:
        """Choose runs to compare, from a link."""
        self.table.chosen = list(runs[:MAX_RUNS])

    def refresh(self) -> None:
        """Reload the list."""
        try:
            runs = self._page.service.store.runs(self._page.visit.owner)
        except StoreTrouble:
            return  # keep the list; the page shows the error
        runs_here = [run for run in runs if run.study == self._page.entry.name]
        self.table.rows = [self._row(run) for run in runs_here[:MAX_ROWS]]
        self.comparison.show(self.table.chosen)  # a chosen run may have ended

    def _name(self, run: RunRecord) -> str:
        if run.id not in self._names:
            self._names[run.id] = run_name(run, self._page.service.store)
        return self._names[run.id]

    def _row(self, run: RunRecord) -> dict[str, Any]:
        parts = (tr(part) for part in self._name(run).split(" · "))
        name = f"{' · '.join(parts)}, {began(run)}"
        return {
            "id": run.id,
            "href": f"./{run.study}?run={run.id}",
            "name": name,
            "compare": tr("compare {run}", run=name),
            "state": tr(NAMES[run.state]),
            "differs": differs(self._page.entry.settings, run.settings),
        }


def differs(settings: Any, values: Any) -> str:
    """List the settings that differ from their defaults, in one line."""
    english = spoken() == ENGLISH
    defaults = {n: settings.param[n].default for n in settings.names()}
    changed = [
        f"{n.replace('_', ' ') if english else tr(str(settings.param[n].label))} {tr(str(v))}"
        for n, v in values.items()
        if n in defaults and v != defaults[n]
    ]
    return ", ".join(changed) or tr("none")
