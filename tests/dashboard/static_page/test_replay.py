"""A run as one file: what is in it, what it may load, and which runs have one."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from scant.errors import BadInput, NotFound, Unavailable
from scant.events import Finished, Note, Progress, Started
from scant.store import Store
from scant.studies import entry
from scant_dashboard.cli.main import app
from scant_dashboard.server import apart
from scant_dashboard.static_page import replay

EVIL = "<script>alert(1)</script>"
DEMO = "demo-clamp"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """With the recordings, and a run on a table whose columns and name are markup."""
    made = Store.open(f"sqlite:///{tmp_path_factory.mktemp('store') / 'scant.db'}")
    made.import_shipped(["clamp", "redshift"])
    yield made
    made.close()


@pytest.fixture(scope="module")
def own(store: Store) -> str:
    demo, shots = store.run("demo-redshift"), store.snapshots("demo-redshift")
    table = pd.DataFrame({EVIL: np.arange(90.0), "b": np.arange(90.0), "z": np.arange(90.0)})
    upload = store.add_upload(table, owner="o", name=f"{EVIL}.csv", study="redshift")
    run: str = store.add_run("redshift", demo.settings, f"upload:{upload}", "o")
    names = [EVIL, *demo.metadata["features"][1:]]
    store.write(run, [Started("cpu", 9, 0, {**demo.metadata, "features": names}), Note(EVIL)])
    for shot in shots[:3]:
        store.write(run, [Progress(shot.step, 1.0, 2.0, 3.0, 4.0), shot])
    store.write(run, [Finished(demo.state, EVIL, store.report("demo-redshift"))])
    return run


@pytest.fixture(scope="module")
def file(store: Store) -> str:
    return made(store, DEMO)


def made(store: Store, run: str) -> str:
    replay.prepare()
    return asyncio.run(replay.replay_file(run, store))


def film(html: str) -> dict[str, Any]:
    """What the script unpacks."""
    packed = re.search(r"id='film'>([^<]*)<", html)
    assert packed is not None
    unpacked: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return unpacked


class Addresses(HTMLParser):
    """All that elements name to be loaded or gone to, and the elements themselves."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "srcset", "href", "xlink:href", "action", "data", "poster"):
                (self.linked if tag == "a" else self.loaded).append(value or "")


@pytest.mark.slow
def test_the_file_names_nothing_that_lies_elsewhere(file: str) -> None:
    for html in (file, "".join(film(file)["texts"])):
        named = Addresses(html)
        assert all(one.startswith("data:") for one in named.loaded)
        assert all(one.startswith("https://") for one in named.linked)
        assert not {"iframe", "object", "embed", "base", "form"} & set(named.tags)
        without = re.sub("<script.*?</script>", "", html, flags=re.DOTALL)
        assert "url(" not in without
        assert "@import" not in without
        assert "data-live" not in html


def test_only_the_script_of_the_file_may_run_and_nothing_be_asked(file: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', file)
    scripts = re.findall(r"<script>(.*?)</script>", file, re.DOTALL)
    assert policy is not None
    assert file.index("Content-Security-Policy") < file.index("<title>")
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert len(scripts) == 1
    others = re.findall("<script ([^>]*)>", file[: file.rindex("<script>")])
    assert all("type='application/json'" in one or "type='text/plain'" in one for one in others)
    assert not re.search(r"\son\w+=", re.sub(r"<script.*?</script>", "", file, flags=re.DOTALL))


def test_the_end_stands_in_the_file_and_the_moments_before_it_in_the_film(file: str) -> None:
    told = film(file)
    assert told["steps"] == sorted(set(told["steps"]))
    assert len(told["frames"]) == len(told["steps"]) + 1 <= replay.MAX_STEPS + 1
    for place, key in enumerate(told["keys"]):
        last = told["texts"][told["frames"][-1][place]]
        assert last in file, key
        assert f"data-part='{key}'" in last[: last.index(">")]
        assert len({row[place] for row in told["frames"]}) > 1
    first = "".join(told["texts"][i] for i in told["frames"][0])
    assert f"replaying a recording, step {told['steps'][0]} of" in first
    assert "replaying a recording" not in re.sub(r"<script.*?</script>", "", file)
    for words in ("<h2 id='result'>", "<h2 id='data-and-settings'>", "Training took", "role='img'"):
        assert words in file


@pytest.mark.slow
def test_words_from_a_table_stay_text(store: Store, own: str) -> None:
    html = made(store, own)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;.csv (90 rows)" in html
    for part in (html, "".join(film(html)["texts"])):
        assert "<script>alert" not in part
        assert "alert" in part


@pytest.mark.slow
def test_a_run_of_which_only_the_report_is_left_is_one_page_without_a_player(
    store: Store, own: str
) -> None:
    record, report = store.run(own), store.report(own)
    run = store.add_run("redshift", record.settings, "upload:gone", "o")
    store.write(run, [Started("cpu", 4, 0, record.metadata)])
    store.write(run, [Finished(record.state, record.reason, report)])
    html = made(store, run)
    assert "a deleted table" in html
    assert "<h2 id='result'>" in html
    assert "id='film'" not in html
    assert "class='player'" not in html


def test_a_run_that_is_not_over_or_not_there_has_no_file(store: Store) -> None:
    run = store.add_run("redshift", entry("redshift").parse("demo", {}).values(), "demo", "o")
    with pytest.raises(BadInput, match=f"Run {run} is queued; export it once it has ended"):
        made(store, run)
    with pytest.raises(NotFound):
        made(store, "nowhere")


@pytest.mark.slow
def test_a_file_that_would_be_too_large_has_fewer_moments(
    store: Store, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "LARGEST", len(file.encode()) - 1)
    smaller = made(store, DEMO)
    assert len(smaller.encode()) < len(file.encode())
    every, kept = film(file), film(smaller)
    assert kept["steps"] in [every["steps"][::by] for by in (2, 4, 8)]
    last, whole = (f["texts"][f["frames"][-1][0]] for f in (kept, every))
    assert last == whole


def test_moments_are_those_of_snapshots_and_others_between_them() -> None:
    steps = list(range(1, 1001))
    few = replay._selected_steps(steps, [10, 500, 2000])
    assert {1, 10, 500, 1000} <= set(few) <= set(steps)
    assert 50 <= len(few) <= replay.MAX_STEPS
    many = replay._selected_steps(steps, list(range(5, 1000, 5)))
    assert len(many) == replay.MAX_STEPS
    assert set(many) <= {1, *range(5, 1000, 5)}
    assert replay._selected_steps([3, 4], []) == [3, 4]


@pytest.mark.slow
def test_a_server_has_files_made_by_other_processes(store: Store, file: str) -> None:
    replays = apart.Replays(SimpleNamespace(store=store))
    assert asyncio.run(replays.made(DEMO)).decode() == file


def test_such_a_process_says_in_a_sentence_what_it_cannot_do(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(apart.database(store)))
    with pytest.raises(SystemExit) as ended:
        replay.main("nowhere")
    assert ended.value.code == apart.REFUSED
    out, said = capsys.readouterr()
    assert out == ""
    assert "There is no run" in said.strip().splitlines()[-1]

    # Any module that refuses its arguments, by the status that means so everywhere.
    with pytest.raises(BadInput, match="one of the arguments"):
        asyncio.run(apart.run_process("zipfile", ""))
    with pytest.raises(RuntimeError, match="No module named"):
        asyncio.run(apart.run_process("nowhere", ""))


def test_files_are_made_one_at_a_time_and_not_for_any_number_who_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[int] = [0, 0]

    async def slow(*_: str) -> bytes:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.01)
        running[0] -= 1
        return b"file"

    async def crowd() -> list[Any]:
        replays = apart.Replays(SimpleNamespace(store=store))
        asked = [replays.made(DEMO) for _ in range(apart.WAITING + 2)]
        return await asyncio.gather(*asked, return_exceptions=True)

    monkeypatch.setattr(apart, "run_process", slow)
    answers = asyncio.run(crowd())
    assert [a for a in answers if a == b"file"] == [b"file"] * apart.WAITING
    assert sum(isinstance(a, Unavailable) for a in answers) == 2
    assert running == [0, 1]


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def test_the_command_writes_a_page_a_notebook_or_all_of_it(
    store: Store, own: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def made_before(run: str, at: Store) -> str:
        assert at.run(run).state.final
        return file

    monkeypatch.setattr(replay, "replay_file", made_before)
    monkeypatch.setenv("DATABASE_URL", apart.database(store))
    monkeypatch.chdir(tmp_path)
    assert command(DEMO, "--out", "deep.HTML").exit_code == 0
    assert Path("deep.HTML").read_text(encoding="utf-8") == file
    assert command(DEMO, "--format", "ipynb").exit_code == 0
    nbformat.validate(nbformat.read(f"{DEMO}.ipynb", as_version=4))
    assert command(own, "--out", "run.zip").exit_code == 0
    with zipfile.ZipFile("run.zip") as packed:
        packed.extractall("run")
    names = {f.name for f in Path("run").iterdir()}
    assert names >= {"replay.html", "settings.json", "run.ipynb", "run.py", "table.csv",
                     "metrics.csv", "model_card.md", "model_card.html"}  # fmt: skip
    assert pd.read_csv("run/table.csv").shape == (90, 3)
    assert sorted(f.name for f in tmp_path.iterdir()) == [
        "deep.HTML", f"{DEMO}.ipynb", "run", "run.zip",
    ]  # fmt: skip
    for arguments, words in (
        ((DEMO, "--format", "pdf"), "must be one of html, ipynb, zip; got 'pdf'"),
        (("nowhere",), "There is no run"),
        ((DEMO, "--out", "no/where.ipynb"), "cannot be written"),
    ):
        refused = command(*arguments)
        assert refused.exit_code == 2
        assert words in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1


def test_a_demonstration_needs_no_server_and_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    assert command(DEMO, "--out", "a.ipynb").exit_code == 0
    assert [f.name for f in tmp_path.iterdir()] == ["a.ipynb"]
    assert "no database scant.db" in command("abc").stderr
