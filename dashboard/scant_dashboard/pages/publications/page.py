"""Contents of `/publications`: tables, figures, conclusions and settings of publications."""

from __future__ import annotations

from collections import Counter
from html import escape

from panel.viewable import Viewable

from scant.html_table import html_table
from scant.reproduce.claims import every_claim
from scant.reproduce.figures import TABLE, definitions_of, results_of
from scant.reproduce.items import Item, Publication, Status, items, publications
from scant.reproduce.tables import as_tables
from scant.studies import STUDIES, Entry, entry
from scant.studies.published import settings
from scant_dashboard.page_parts.citations import citations
from scant_dashboard.page_parts.conclusions import confirmed, not_confirmed, place
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.pages.publications.figure import drawing
from scant_dashboard.template import text
from scant_dashboard.translate import as_number, later, tr

TITLE = later("Publications")
LEDE = later(
    "Every table and figure of the five publications with its status here, the conclusions that "
    "did not reproduce, and the settings of our presets."
)
MEANING = {
    Status.REPRODUCED: later(
        "on the publication's data and with its settings, every printed score is reached and every "
        "conclusion that our results can test holds"
    ),
    Status.CONCLUSIONS_HOLD: later(
        "every conclusion that our results can test holds, on other data or with other settings"
    ),
    Status.DIFFERS: later("a printed score is not reached, or a conclusion does not hold"),
    Status.UNCLEAR: later("our repeats show no clear difference where the publication has one"),
    Status.SHOWN: later(
        "our results are shown; no printed score or conclusion at hand compares with them"
    ),
    Status.SHOWN_LIVE: later("a figure of a study's page draws the same quantity of a run"),
    Status.NOT_YET: later("it has not been run or drawn"),
    Status.NOT_POSSIBLE: later("its data or programs are not available"),
    Status.NO_RESULT: later("an illustration, a definition, or a derivation"),
}
REACHED = later(
    "A printed score is reached if ours is at least as good, or worse by no more than two "
    "deviations over repeats. Methods differ clearly if their means do by more than two of their "
    "deviations, without regard to repeats that share a split; with one repeat none are clear."
)
HEADS = later("as published"), later("default"), later("where")
STYLE = """
:host { max-width: 70rem; margin: 0 auto; padding: 28px clamp(16px, 3vw, 48px) 72px;
  box-sizing: border-box; }
h2 { margin-top: 56px; }
h3 { margin-top: 28px; }
.item { display: grid; grid-template-columns: 8rem minmax(0, 1fr) 11rem; gap: 2px 20px;
  padding: 10px 0; border-bottom: 1px solid var(--line); }
.item > * { min-width: 0; }
.item .status { font-weight: 600; color: var(--quiet); }
.item .status.ours { color: var(--accent); }
.item .status.differs { color: var(--ink); }
.item :is(details, .live) { grid-column: 2 / -1; }
dl { display: grid; grid-template-columns: 11rem minmax(0, 1fr); gap: 4px 20px; max-width: 68ch; }
dt { font-weight: 600; }
dd { margin: 0; color: var(--quiet); }
.conclusions li { margin-top: 8px; }
details { margin-top: 8px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 20px; margin: 12px 0 4px; padding: 0;
  list-style: none; }
.panels { display: grid; gap: 12px; margin-bottom: 20px;
  max-width: calc(34rem * var(--columns)); grid-template-columns:
  repeat(auto-fit, minmax(min(100%, max(16rem, 100% / var(--columns) - 12px)), 1fr)); }
.panels > div { min-width: 0; }
.panels > .wide { overflow-x: auto; }
:root.present & .panels { grid-template-columns: minmax(0, 1fr); --bk-title-text-font-size: 24px;
  --bk-axis-label-text-font-size: 24px; --bk-major-label-text-font-size: 24px; }
.legend li { margin: 0; font-size: var(--small, .875rem); }
.settings :is(td, th) { text-align: left !important; }
.settings td:last-child { grid-column: 1 / -1; }
@media (max-width: 600px) {
  .item, dl { grid-template-columns: minmax(0, 1fr); }
  .item :is(details, .live) { grid-column: 1; }
}
"""


def publications_page(scale: float = 1.0) -> Viewable:
    """Return the page in the language spoken.

    Args:
        scale: Size of type in figures, relative to the usual one.
    """
    meanings = "".join(f"<dt>{tr(s)}</dt><dd>{tr(MEANING[s])}.</dd>" for s in Status)
    top = f"<h1>{tr(TITLE)}</h1><p class='lede'>{tr(LEDE)}</p><dl>{meanings}</dl>"
    parts = (_publication(one, scale) for one in publications())
    sources = "".join(map(_sources, map(entry, STUDIES)))
    last = f"<h2>{tr('All sources, by study')}</h2>{sources}"
    pane = text("".join([top, f"<p class='quiet'>{tr(REACHED)}</p>", *parts, last]))
    pane.stylesheets = [*pane.stylesheets, STYLE]
    return column(pane)


def _publication(publication: Publication, scale: float) -> str:
    own = [item for item in items() if item.publication == publication.key]
    counts = Counter(item.status for item in own)
    counted = ", ".join(f"{counts[s]} {tr(s)}" for s in Status if counts[s])
    claims = [claim for claim in every_claim() if claim.publication == publication.key]
    studies = dict.fromkeys(item.study for item in own if item.study)
    presets = "".join(_settings(entry(study)) for study in studies)
    listed = "".join(
        _item(item, _ours(item, scale)) for item in own if item.status != Status.NO_RESULT
    )
    return (
        f"<h2>{escape(publication.name)}</h2><p>{escape(publication.citation)}</p>"
        f"<p class='quiet'>{tr('{n} tables and figures', n=len(own))}: {counted}.</p>"
        f"{not_confirmed(claims)}{confirmed(claims)}"
        f"<h3>{tr('Tables and figures')}</h3>{listed}{_without_result(own)}"
        f"<h3>{tr('Settings of the preset as published')}</h3>{presets}"
    )


def _without_result(own: list[Item]) -> str:
    """Return the illustrations, collapsed; "" if there are none."""
    illustrations = [item for item in own if item.status == Status.NO_RESULT]
    if not illustrations:
        return ""
    summary = tr("Illustrations and definitions: {n}", n=len(illustrations))
    return f"<details><summary>{summary}</summary>{''.join(map(_item, illustrations))}</details>"


def _item(item: Item, ours: str = "") -> str:
    reached = item.status in (Status.REPRODUCED, Status.CONCLUSIONS_HOLD)
    kind = "ours" if reached else "differs" if item.status == Status.DIFFERS else ""
    name = f"<b>{escape(place(item.name))}</b> <span class='quiet'>{escape(item.section)}</span>"
    reason = " ".join([*_counts(item), escape(tr(item.reason))])
    return (
        f"<div class='item'><span>{name}</span><span>{escape(tr(item.title))}"
        f"<br><span class='quiet'>{reason}</span></span>"
        f"<span class='status {kind}'>{tr(item.status)}</span>{ours}</div>"
    )


def _counts(item: Item) -> list[str]:
    """Say how many printed scores are reached, and how many conclusions hold."""
    reached, printed = item.reached
    holding, tested = sum(c.holds is True for c in item.claims), len(item.claims)
    scores = tr("{n} of {all} printed scores are reached.", n=reached, all=printed)
    conclusions = tr("{n} of {all} conclusions hold.", n=holding, all=tested)
    nothing = tr("No printed score or conclusion at hand compares with them.")
    if item.status == Status.NOT_YET and reached < printed:  # those measured are reached
        absent = printed - reached
        return [tr("{n} of {all} printed scores have not been measured.", n=absent, all=printed)]
    if not printed and not tested:
        return [nothing] * bool(item.experiments)
    return [scores] * (printed > 0) + [conclusions] * (tested > 0)


def _ours(item: Item, scale: float) -> str:
    """Return our results beside the printed ones, collapsed, and how to measure them again.

    Figures are drawn as in the publication, above the table of all rows.
    """
    if not item.study:
        return ""
    link = f"<a href='./{item.study}'>{escape(tr(entry(item.study).title))}</a>"
    if not item.experiments:
        return f"<span class='live'>{link}</span>" if item.status == Status.SHOWN_LIVE else ""
    table = as_tables(results_of(item), level=4)
    command = f"<code>scant reproduce {item.study} --data FOLDER</code>"
    again = tr("To measure it again: {command}.", command=command)
    return (
        f"<details><summary>{tr('Ours beside theirs')}</summary>"
        f"{_drawn(item, scale)}{table}"
        f"<p class='quiet'>{again} {link}</p></details>"
    )


def _drawn(item: Item, scale: float) -> str:
    """Return a figure as in the publication, or the reason for a table alone; "" for a table."""
    definitions = definitions_of(item)
    if not definitions:
        return ""
    if definitions[0].kind == TABLE:
        reason = escape(tr(definitions[0].reason))
        return f"<p class='quiet'>{tr('Not drawn as published: {reason}.', reason=reason)}</p>"
    return drawing(item, scale)


def _settings(study: Entry) -> str:
    """Return the settings of the preset as published, with the section of each, collapsed."""
    heads = [escape(tr(head)) for head in HEADS]
    rows = []
    for name, stated in settings(study.name).items():
        setting = study.settings.param[name]
        cells = (_value(stated.value), _value(setting.default), escape(tr(stated.where)))
        rows.append((escape(tr(str(setting.label))), cells))
    summary = f"{escape(tr(study.title))}: {tr('{n} settings', n=len(rows))}"
    return (
        f"<details class='settings'><summary>{summary}</summary>"
        f"{html_table(heads, rows, tr('setting'), stacks=True)}</details>"
    )


def _value(value: object) -> str:
    if isinstance(value, bool):
        return tr("yes") if value else tr("no")
    if isinstance(value, int | float):
        return as_number(f"{value:,}")
    return escape(tr(str(value))) or "–"


def _sources(study: Entry) -> str:
    title = escape(tr(study.title))
    return f"<h3><a href='./{study.name}'>{title}</a></h3>{citations(study)}"
