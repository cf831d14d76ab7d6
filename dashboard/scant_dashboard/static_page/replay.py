"""A run as one file of HTML: its page, the parts of which change as they did during training.

The page stands in it as it is at the end, and can be read without scripts. `assets/replay.js` puts
the parts that a moment of the recording has in the places of those that are shown (`frames`).
Nothing is asked of any server.

`python -m scant_dashboard.static_page.replay RUN` prints the file; it is told the store's address
by standard input.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import re
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from scant.errors import BadInput, NotFound
from scant.store import Store
from scant.studies import entry
from scant_dashboard.controls.status import duration
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.lesson import SECTIONS
from scant_dashboard.page_parts.widgets import column, section
from scant_dashboard.server.apart import REFUSED
from scant_dashboard.static_page.frames import STYLES, Frame, Frames, topmost
from scant_dashboard.static_page.make import Shown, opened, prepare
from scant_dashboard.static_page.page import SHELL, colors
from scant_dashboard.study_page.page import StudyPage
from scant_dashboard.template import assets, style, text

MOST = 60  # moments of training
LARGEST = 5_000_000  # bytes
SHOWN = {"story", "training", "result", "limits-and-sources"}  # sections; no other has a use here
ELSEWHERE = re.compile(r"<a [^>]*href=(['\"])(?!https?:|#).*?\1[^>]*>(.*?)</a>", re.DOTALL)
ON_DARK = "@media screen and (prefers-color-scheme: dark) {{ :root {{ {} }} }}"


class Recorded(Shown):
    """What the page of a recording needs, which asks the model nothing."""

    async def explore(self, run: str, question: str, query: Any) -> Any:
        """Never answer: what could be asked is not in the file."""
        await asyncio.Event().wait()


async def replay_file(run: str, store: Store) -> str:
    """A run that is over, as HTML of at most 5 MB.

    Args:
        run: Its id.
        store: Where it is.

    Raises:
        NotFound: There is no such run.
        BadInput: It is not over yet.
    """
    record = store.run(run)
    if not record.state.final:
        raise BadInput(f"Run {run} is {record.state.value}; export it once it has ended.")
    hide = ",".join(set(SECTIONS) - SHOWN)
    with opened(record.study, Recorded(store), {"run": run, "hide": hide}) as page:
        page.everything.panel.visible = False
        page.panel.append(column(section("Data and settings", text(_about(page))), name="body"))
        frames = Frames(page, live=False)
        end = frames.look()
        film = _film(page, frames)
        assert page.run is not None, "the run of the address is on show"
        title = f"{page.entry.title}, run {run} · Scant"
    html = _html(title, end, film)
    while len(html.encode()) > LARGEST and film:
        film = film[::2] if len(film) > 1 else []
        html = _html(title, end, film)
    return html


def _film(page: StudyPage, frames: Frames) -> list[tuple[int, Frame]]:
    """The page at moments of the run on show, with their steps; none where no curve is kept."""
    run = page.run
    if run is None or len(run.trace) < 2:
        return []
    shots = page.service.store.snapshots(run.id)
    before, film = None, []
    for step in _moments(run.trace.step.tolist(), [shot.step for shot in shots]):
        shot = next((s for s in reversed(shots) if s.step <= step), shots[0] if shots else None)
        page.show_recorded(step, None if shot is before else shot, 0)
        before = shot
        film.append((step, frames.look()))
    return film


def _moments(steps: Sequence[int], shots: Sequence[int]) -> list[int]:
    """Steps to stop at: those of snapshots, and others between them while there is room."""
    within = {steps[0], *(shot for shot in shots if steps[0] <= shot <= steps[-1])}
    kept = _thinned(sorted(within), MOST)
    return sorted({*kept, *_thinned(steps, MOST - len(kept))})


def _thinned(steps: Sequence[int], most: int) -> list[int]:
    """At most so many of them, evenly, with the first and the last."""
    at = np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int)
    return [steps[i] for i in at]


def _html(title: str, end: Frame, film: Sequence[tuple[int, Frame]]) -> str:
    script = (assets() / "replay.js").read_text(encoding="utf-8") if film else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    sheets = colors(ON_DARK) + SHELL + style("static_figures") + style("replay")
    player = (
        "<div class='player' role='group' aria-label='Replay' hidden><span>Recorded</span>"
        "<button type='button'>Play</button><input type='range' min='0' "
        f"max='{len(film)}' value='{len(film)}' aria-label='Step of the recording'><output>"
        f"</output></div><script type='text/plain' id='film'>{_packed(end, film)}</script>"
        f"<script>{script}</script>"
    )
    return (
        "<!DOCTYPE html><html lang='en' class='first'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><meta name='color-scheme' content='light dark'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<link rel='icon' href='data:,'><style>{sheets}</style></head><body>{_alone(end, STYLES)}"
        f"<main>{_alone(end, end.root)}</main>{player if film else ''}</body></html>"
    )


def _packed(end: Frame, film: Sequence[tuple[int, Frame]]) -> str:
    """What `replay.js` reads: the parts that change, as each moment has them."""
    every = [frame for _, frame in film] + [end]
    changing = {key for one, after in pairwise(every) for key in after.since(one)}
    keys = topmost(changing, end)
    # What one part is at one moment after another is alike, and packs well beside each other.
    texts: dict[str, int] = {}
    columns = [
        [texts.setdefault(_alone(frame, key), len(texts)) for frame in every] for key in keys
    ]
    made: dict[str, Any] = {
        "steps": [step for step, _ in film], "keys": keys, "texts": list(texts),
        "frames": list(zip(*columns)) or [()] * len(every),
    }  # fmt: skip
    return base64.b64encode(gzip.compress(json.dumps(made).encode(), 9, mtime=0)).decode()


def _alone(frame: Frame, key: str) -> str:
    """A part without links to pages that are not where the file is."""
    return ELSEWHERE.sub(r"\2", frame.html(key))


def _about(page: StudyPage) -> str:
    """What the run was trained on, and all of its settings."""
    run = page.run
    assert run is not None, "the run of the address is on show"
    record, study = run.record, entry(run.record.study)
    facts = {
        "Data": _data(page, run),
        "SHA-256 of the table": record.data_hash,
        "Run": run.id,
        "Trained": time.strftime("%d %B %Y", time.gmtime(record.created)),
        "Training took": duration(float(run.trace.seconds[-1])) if len(run.trace) else "",
        "Scant": record.version,
    }
    values, words = study.settings.parse(record.settings).values(), study.settings.param
    settings = "".join(
        f"<tr><th scope='row'>{escape(str(words[name].label))}</th><td>{escape(str(value))}</td>"
        f"<td>{escape(str(words[name].doc or ''))}</td></tr>"
        for name, value in values.items()
    )
    pairs = "".join(
        f"<tr><th scope='row'>{name}</th><td>{escape(value)}</td></tr>"
        for name, value in facts.items()
        if value
    )
    return (
        f"<div class='scroll'><table>{pairs}</table></div><h3>Settings</h3>"
        f"<div class='scroll'><table>{settings}</table></div>"
    )


def _data(page: StudyPage, run: RunState) -> str:
    """What the table is called, and how many rows it has where that is known."""
    data = run.record.data
    if not data.startswith("upload:"):
        return next((s.title for s in page.entry.sources if s.name == data), data)
    try:
        upload = page.service.store.upload(data.removeprefix("upload:"))
    except NotFound:
        return "a deleted table"
    return f"{upload.name} ({upload.rows:,} rows)"


def main(run: str) -> None:
    """Print the file."""
    store = Store.open(sys.stdin.read())
    try:
        with redirect_stdout(sys.stderr):
            prepare()
            made = asyncio.run(replay_file(run, store))
    except (BadInput, NotFound) as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)
    sys.stdout.buffer.write(made.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
