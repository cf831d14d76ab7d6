"""A run as one HTML file: its page, with parts that change as they did during training.

The file contains the final page, readable without scripts. `assets/replay.js` exchanges parts for
those of another step (`frames`). It makes no requests to any server.

`python -m scant_dashboard.static_page.replay RUN` prints the file; standard input is the store's
address.
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
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from bokeh.util.paths import static_path

from scant.errors import BadInput, NotFound
from scant.store import Store
from scant.studies import entry
from scant_dashboard.controls.status import duration
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.lesson import SECTIONS
from scant_dashboard.page_parts.widgets import column, section
from scant_dashboard.server.apart import REFUSED
from scant_dashboard.static_page.frames import STYLES, Frame, Frames, topmost
from scant_dashboard.static_page.make import ReadOnlyService, opened, prepare
from scant_dashboard.static_page.page import SHELL, colors
from scant_dashboard.study_page.page import StudyPage
from scant_dashboard.template import assets, style, text

MAX_STEPS = 60  # number of training steps shown
LARGEST = 5_000_000  # bytes
VISIBLE_SECTIONS = {
    "story",
    "training",
    "result",
    "limits-and-sources",
}  # the other sections need a server
ELSEWHERE = re.compile(r"<a [^>]*href=(['\"])(?!https?:|#).*?\1[^>]*>(.*?)</a>", re.DOTALL)
ON_DARK = "@media screen and (prefers-color-scheme: dark) {{ :root {{ {} }} }}"


class SilentService(ReadOnlyService):
    """A read-only run service that never answers queries."""

    async def explore(self, run: str, question: str, query: Any) -> Any:
        """Wait forever, since the file contains no answers."""
        await asyncio.Event().wait()


async def replay_file(run: str, store: Store) -> str:
    """Return a finished run as HTML of at most 5 MB.

    Args:
        run: The run's id.
        store: Store that holds it.

    Raises:
        NotFound: There is no such run.
        BadInput: The run has not finished.
    """
    record = store.run(run)
    if not record.state.final:
        raise BadInput(f"Run {run} is {record.state.value}; export it once it has ended.")
    hide = ",".join(set(SECTIONS) - VISIBLE_SECTIONS)
    with opened(record.study, SilentService(store), {"run": run, "hide": hide}) as page:
        page.everything.panel.visible = False
        page.panel.append(column(section("Data and settings", text(_about(page))), name="body"))
        frames = Frames(page, live=False)
        end = frames.capture()
        sequence = _sequence(page, frames)
        assert page.run is not None, "the run of the address is on show"
        title = f"{page.entry.title}, run {run} · Scant"
    html = _html(title, end, sequence)
    while len(html.encode()) > LARGEST and sequence:
        sequence = sequence[::2] if len(sequence) > 1 else []
        html = _html(title, end, sequence)
    return html


def _sequence(page: StudyPage, frames: Frames) -> list[tuple[int, Frame]]:
    """Return frames of the page at selected steps of the run; empty if it has no curve."""
    run = page.run
    if run is None or len(run.trace) < 2:
        return []
    shots = page.service.store.snapshots(run.id)
    before, sequence = None, []
    for step in _selected_steps(run.trace.step.tolist(), [shot.step for shot in shots]):
        shot = next((s for s in reversed(shots) if s.step <= step), shots[0] if shots else None)
        page.show_recorded(step, None if shot is before else shot, 0)
        before = shot
        sequence.append((step, frames.capture()))
    return sequence


def _selected_steps(steps: Sequence[int], shots: Sequence[int]) -> list[int]:
    """Return the steps of snapshots, plus evenly spaced ones up to the maximum number."""
    within = {steps[0], *(shot for shot in shots if steps[0] <= shot <= steps[-1])}
    selected = _thinned(sorted(within), MAX_STEPS)
    return sorted({*selected, *_thinned(steps, MAX_STEPS - len(selected))})


def _thinned(steps: Sequence[int], limit: int) -> list[int]:
    """Return at most `limit` evenly spaced steps, including the first and the last."""
    at = np.linspace(0, len(steps) - 1, min(limit, len(steps))).round().astype(int)
    return [steps[i] for i in at]


def _html(title: str, end: Frame, sequence: Sequence[tuple[int, Frame]]) -> str:
    names = ["tiles", "figures", *(["replay"] if sequence else [])]
    script = ";\n".join([_bokeh(), *((assets() / f"{n}.js").read_text("utf-8") for n in names)])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    sheets = colors(ON_DARK) + SHELL + style("plots") + style("replay")
    player = (
        "<div class='player' role='group' aria-label='Replay' hidden><span>Recorded</span>"
        "<button type='button'>Play</button><input type='range' min='0' "
        f"max='{len(sequence)}' value='{len(sequence)}' aria-label='Step of the recording'><output>"
        f"</output></div><script type='text/plain' id='film'>{_packed(end, sequence)}</script>"
    )
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><meta name='color-scheme' content='light dark'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<link rel='icon' href='data:,'><style>{sheets}</style></head>"
        f"<body>{_without_links(end, STYLES)}<main>"
        f"{_without_links(end, end.root)}</main>{player if sequence else ''}"
        f"<script>{script}</script></body></html>"
    )


@cache
def _bokeh() -> str:
    """Return BokehJS, as live pages load it."""
    return (static_path() / "js" / "bokeh.min.js").read_text(encoding="utf-8")


def _packed(end: Frame, sequence: Sequence[tuple[int, Frame]]) -> str:
    """Encode the parts that change, with their texts at each step, for `replay.js`."""
    every = [frame for _, frame in sequence] + [end]
    changing = {key for one, after in pairwise(every) for key in after.since(one)}
    keys = topmost(changing, end)
    # Texts of the same part are similar and compress well next to each other.
    texts: dict[str, int] = {}
    columns = [
        [texts.setdefault(_without_links(frame, key), len(texts)) for frame in every]
        for key in keys
    ]
    made: dict[str, Any] = {
        "steps": [step for step, _ in sequence], "keys": keys, "texts": list(texts),
        "frames": list(zip(*columns)) or [()] * len(every),
    }  # fmt: skip
    return base64.b64encode(gzip.compress(json.dumps(made).encode(), 9, mtime=0)).decode()


def _without_links(frame: Frame, key: str) -> str:
    """Return a part without relative links, which would be broken in the file."""
    return ELSEWHERE.sub(r"\2", frame.html(key))


def _about(page: StudyPage) -> str:
    """Return tables of the run's data and of all settings."""
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
    values, parameters = study.settings.parse(record.settings).values(), study.settings.param
    settings = "".join(
        f"<tr><th scope='row'>{escape(str(parameters[name].label))}</th>"
        f"<td>{escape(str(value))}</td><td>{escape(str(parameters[name].doc or ''))}</td></tr>"
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
    """Return the name of the table and, if known, its number of rows."""
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
