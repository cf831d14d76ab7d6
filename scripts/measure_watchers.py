"""What visitors meet, and what they cost, as a table in Markdown.

    python scripts/measure_watchers.py                       # all parts, which takes an hour
    python scripts/measure_watchers.py gets paint --pages /redshift
    python scripts/measure_watchers.py follow --followers 300 40
    python scripts/measure_watchers.py gets --python ../before/.venv/bin/python

A server of its own is started for it, by `--python`: that of an environment in which another
version of Scant is installed measures that one. Run it where nothing else runs: the load is
said above the table. Parts: `gets` (many open a page at once), `paint` (first paint in Chromium),
`click` (Train), `label` (a labeling session), `film` (what stands on the screen at set times, as
pictures under `--film`), `follow` (many follow a run), `visits` and `runs` (memory, disk), `start`
(to /healthz).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from tornado.httpclient import AsyncHTTPClient

from measuring import browser, film, followers, gets, runs, visits
from measuring.server import Server, serving, starts
from measuring.table import Row, show
from scant.studies import STUDIES

PARTS = ("start", "gets", "paint", "film", "click", "label", "follow", "visits", "runs")
LONG = {"max_steps": 5000, "patience": 0, "restarts": 20}  # a run that outlasts the measurement


def main() -> None:
    """Measure what is asked for, and print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("parts", nargs="*", default=PARTS, metavar="part")
    options.add_argument("--pages", nargs="+", default=["/", *(f"/{s}" for s in STUDIES)])
    options.add_argument("--crowds", nargs="+", type=int, default=[30, 300])
    options.add_argument("--followers", nargs="+", type=int, default=[300, 40])
    options.add_argument("--seconds", type=float, default=20, help="of a span of training")
    options.add_argument("--times", type=int, default=5, help="that a figure is taken")
    options.add_argument("--labels", type=int, default=100, help="given by keys")
    options.add_argument("--visits", type=int, default=500)
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--film", type=Path, default=Path("film"), help="a folder for pictures")
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--port", type=int, default=7290)
    given = options.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        options.error(f"there is no part {unknown.pop()!r}; there are {', '.join(PARTS)}")
    AsyncHTTPClient.configure(None, max_clients=1000, max_body_size=2**28)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(given.python, given.port, folder) as server:
            server.settle()
            print(f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
            show([Row("measured", "target", "result"), Row("---", "---", "---")])
            for part in PARTS:
                if part in given.parts and part != "start":
                    show(_measured(part, server, given))
        if "start" in given.parts:
            seconds = starts(given.python, given.port, folder, given.times)
            show([Row("server start to /healthz", "< 3 s", f"{seconds.min():.1f} s at best")])


def _measured(part: str, server: Server, given: argparse.Namespace) -> list[Row]:
    studies = [page for page in given.pages if page != "/"]
    if part == "gets":
        return asyncio.run(gets.rows(server.url, given.pages, given.crowds))
    if part == "paint":
        return browser.paints(server.url, given.pages, given.times)
    if part == "film":
        return film.strips(server.url, given.pages, given.film)
    if part == "click":
        return browser.clicks(server.url, studies, given.times)
    if part == "label":
        return browser.labels(server.url, given.labels)
    if part == "visits":
        return asyncio.run(visits.rows(server, studies, given.visits))
    if part == "runs":
        return runs.rows(server, given.runs)
    with browser.chromium() as chromium:
        run = browser.train(chromium, f"{server.url}/redshift?{urlencode(LONG)}")
    made = []
    for count in given.followers:
        made += asyncio.run(followers.rows(server, run, count, given.times, given.seconds))
    return made


if __name__ == "__main__":
    main()
