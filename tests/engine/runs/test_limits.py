"""Who may do what to runs and tables, how many runs there may be, and how long one may take."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from scant.errors import BadInput, NotAllowed
from scant.events import Changed, Checkpoint, Finished, Progress, Started, State
from scant.runs import RunService, limited
from scant.runs.access import address_code, presenter_code, presenter_named
from scant.runs.limits import Cost, Limits, Size, check_cost, cost_of
from scant.runs.memory import out_of_memory
from scant.runs.workers.protocol import Ended, Message
from scant.store import Store
from scant.store.records import ADJUDICATOR, new_id
from scant.store.schema import LABEL_ROLES
from scant.studies import Entry, entry
from scant_dashboard.cli.main import app
from tests.engine.runs.fake_worker_client import FakeWorkerClient, until

pytestmark = [pytest.mark.usefixtures("toy", "quick"), pytest.mark.timeout(60)]
KEY = "k" * 40
MEMORY = 11_600_000_000


class TroubledClient(FakeWorkerClient):
    """A client whose worker can be silent, full, or be replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed: list[tuple[str, int]] = []

    async def memory(self) -> int | None:
        return MEMORY

    async def slots(self) -> dict[str, int]:
        return {"worker": 2}

    async def renew(self, address: str, run: str, attempt: int) -> None:
        self.renewed.append((run, attempt))

    def beat(self, **more: Any) -> None:
        """A sign of life of the last attempt sent out."""
        job = self.begun[-1]
        self.inbox.put_nowait(Message(job["run"], job["attempt"], "worker", b"", **more))

    def break_off(self, error: str) -> None:
        """The last attempt's task ends without a word of its own."""
        self.inbox.put_nowait(Ended(self.begun[-1]["run"], self.begun[-1]["attempt"], error))


def service(url: str, **options: Any) -> tuple[RunService, TroubledClient]:
    client = TroubledClient()
    return RunService(Store.open(url), key=KEY, client=client, **options), client


# --- who may do what ---


async def paused(made: RunService, client: TroubledClient, **about: Any) -> str:
    """A run of ada's that rests, with a checkpoint."""
    run = await made.submit("toy", {}, "demo", "ada", **about)
    await until(lambda: client.begun and client.begun[-1]["run"] == run)
    client.say(Started("cpu", 40), Progress(1, -1.0, 0.1, -1.0, -1.0), Checkpoint(1, b"one"))
    await until(lambda: made.store.run(run).state is State.RUNNING)
    await made.pause(run, "ada")
    client.say(Finished(State.PAUSED, "Paused."))
    await until(lambda: made.store.run(run).state is State.PAUSED)
    return run


ACTS: dict[str, Callable[[RunService, str, str, str], Any]] = {
    "pause": lambda made, run, table, who: made.pause(run, who),
    "resume": lambda made, run, table, who: made.resume(run, who),
    "stop": lambda made, run, table, who: made.stop(run, who),
    "delete a table": lambda made, run, table, who: asyncio.to_thread(
        made.store.delete_upload, table, who
    ),
    "take back a label": lambda made, run, table, who: asyncio.to_thread(
        made.store.add_label, run, 3, "", "Ada", who
    ),
}


@pytest.mark.parametrize("act", ACTS)
async def test_what_is_anothers_is_left_as_it_is(act: str, url: str) -> None:
    """A stranger, a browser without a cookie, and who made up to be the presenter."""
    made, client = service(url)
    await made.start()
    run = await paused(made, client, presenter=made.presenter("teacher"))
    table = made.store.add_upload(pd.DataFrame({"y": [1.0]}), owner="ada", name="t", study="toy")
    made.store.add_label(run, 3, "clamp", "Ada", "ada")
    for who in ("bob", "", made.presenter("teacher"), made.presenter("ada"), "user:ada"):
        with pytest.raises(NotAllowed):
            await ACTS[act](made, run, table, who)
    assert made.store.run(run).state is State.PAUSED
    assert made.store.upload(table).deleted is None
    assert [v.label for v in made.store.labels(run)] == ["clamp"]
    assert client.told == [(run, "pause")]
    await ACTS[act](made, run, table, "ada")
    await made.close(0.1)


@pytest.mark.parametrize("owner", ["", "ada"])
async def test_a_demonstration_and_a_run_of_nobodys_are_steered_by_nobody(
    owner: str, url: str
) -> None:
    made, _ = service(url)
    run = made.store.add_run("toy", {}, "demo", owner="")
    for verb in (made.pause, made.resume, made.stop):
        with pytest.raises(NotAllowed, match="You cannot"):
            await verb(run, owner)
    with pytest.raises(NotAllowed, match="cookie"):
        await made.submit("toy", {}, "demo", "")
    assert made.store.run(run).state is State.QUEUED


async def test_the_presenter_of_a_lesson_may_steer_what_is_started_from_it(url: str) -> None:
    made, client = service(url)
    await made.start()
    run = await paused(made, client, presenter=made.presenter("teacher"))
    record = made.store.run(run)
    assert made.may_steer(record, "teacher")
    assert not made.may_steer(record, "bob")
    await made.resume(run, "teacher")
    await until(lambda: len(client.begun) == 2)
    client.say(Started("cpu", 40, 1))
    await made.stop(run, "teacher")
    assert client.told[-1] == (run, "stop")
    alone = await made.submit("toy", {}, "demo", "ada", presenter="made up; nobody's")
    assert made.store.origin(alone)[1] == ""
    await made.close(0.1)


def test_codes_give_nothing_away_and_need_the_servers_key() -> None:
    code = presenter_code("ada", KEY)
    assert presenter_named(code) == code != presenter_code("bob", KEY)
    assert code != presenter_code("ada", "another key")
    assert "ada" not in code
    assert presenter_code("", KEY) == presenter_code("ada", "") == presenter_named("x" * 99) == ""


def test_ids_of_tables_and_runs_cannot_be_guessed(url: str) -> None:
    store, frame = Store.open(url), pd.DataFrame({"y": [1.0]})
    ids = [store.add_upload(frame, owner="ada", name="t", study="toy") for _ in range(20)]
    ids += [store.add_run("toy", {}, "demo", "ada") for _ in range(20)]
    assert len(set(ids)) == 40
    assert min(map(len, ids)) >= 16  # of 64 signs: 96 bits
    assert store.uploads("bob") == store.runs("bob") == []
    store.close()


# --- how many ---


async def test_an_address_has_no_more_runs_for_every_cookie_it_drops(url: str) -> None:
    made, _ = service(url)  # no worker is up: all of them wait
    answers = await asyncio.gather(
        *(made.submit("toy", {}, "demo", f"visitor {i}", address="10.1.2.3") for i in range(18)),
        return_exceptions=True,
    )
    refused = [str(a) for a in answers if isinstance(a, BadInput)]
    assert len(refused) == 10
    assert "Visitors from your network address have 8 runs queued or running" in refused[0]
    assert await made.submit("toy", {}, "demo", "next door", address="10.1.2.4")
    assert await made.submit("toy", {}, "demo", "a notebook")
    made.store.close()
    again, _ = service(url)  # after a restart, or beside it
    for who, where in (("visitor 99", "10.1.2.3"), ("visitor 98", "::ffff:10.1.2.3")):
        with pytest.raises(BadInput, match="network address"):
            await again.submit("toy", {}, "demo", who, address=where)


async def test_a_class_that_trains_the_same_watches_one_run_and_nobody_is_refused(url: str) -> None:
    made, client = service(url)
    await made.start()  # a worker with room for two
    students = [f"student {i}" for i in range(12)]

    async def train(**values: Any) -> list[str]:
        asked = (made.join("toy", values, "demo", who, address="10.1.2.3") for who in students)
        return await asyncio.gather(*asked)

    runs = await train()
    assert len(set(runs)) == 2
    assert {made.store.run(run).owner for run in runs} < set(students)
    assert await train() == [runs[0]] * 12  # both are in progress now
    other = await made.join("toy", {"seed": 7}, "demo", "student 5", address="10.1.2.3")
    assert other not in runs
    await until(lambda: len(client.begun) == 2)
    for run in set(runs):
        await made.stop(run, made.store.run(run).owner)
    after = await made.join("toy", {}, "demo", "student 6", address="10.1.2.3")
    assert after not in runs  # nobody is led to a run that its owner has stopped
    made.store.close()


async def test_an_owner_has_no_more_runs_by_servers_or_by_pausing(url: str) -> None:
    made, client = service(url, limit_per_owner=1)
    await made.start()
    runs = [await paused(made, client) for _ in range(3)]
    answers = await asyncio.gather(
        *(made.resume(run, "ada") for run in (*runs, *runs)), return_exceptions=True
    )
    assert sum(made.store.run(run).state is not State.PAUSED for run in runs) == 1
    assert sum(isinstance(a, BadInput) for a in answers) == 4  # and one said twice
    other, _ = service(url, limit_per_owner=1)
    with pytest.raises(BadInput, match="1 run queued or running, and the limit is 1"):
        await other.submit("toy", {}, "demo", "ada")
    await made.close(0.1)


def test_subscribers_of_a_network_are_one_address() -> None:
    assert address_code("2001:db8::1", KEY) == address_code("2001:db8::ffff", KEY)
    assert address_code("2001:db8::1", KEY) != address_code("2001:db8:0:1::1", KEY)
    assert address_code("::ffff:10.0.0.1", KEY) == address_code("10.0.0.1", KEY)
    assert address_code("10.0.0.1", KEY) != address_code("10.0.0.2", KEY)
    assert address_code("", KEY) == ""
    assert len(address_code("a name behind a proxy", KEY)) == 32


# --- how long, and how large ---


async def test_a_fit_beyond_all_hours_or_memory_is_refused_with_both_numbers(url: str) -> None:
    made, _ = service(url)
    endless = {
        "training_size": 1_000_000,
        "n_basis": 1000,
        "errors": "as noise",
        "restarts": 20,
    }
    with pytest.raises(BadInput, match=r"would take about \d+ h; this server allows 2 h a run"):
        await made.submit("redshift", endless, "demo", "ada")
    large = made.store.add_upload(
        pd.DataFrame({n: [0.5] * 40_000 for n in ("y", "x", "replica", "output")}),
        owner="ada", name="t", study="genes",
    )  # fmt: skip
    exact = {"model": "dhgp", "max_steps": 1, "baselines": False}
    with pytest.raises(BadInput, match=r"needs about [\d.]+ GB .* worker here has 11.6 GB"):
        await made.submit("genes", exact, f"upload:{large}", "ada")
    assert made.store.runs() == []
    assert await made.submit("redshift", {}, "demo", "ada")


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (Cost(1944450.9 * 3600, 1e9), "about 1944451 h; this server allows 2 h a run"),
        (Cost(60, 91e9), "about 91 GB of memory; a worker here has 11.6 GB"),
        (Cost(float("inf"), 1e9), "cannot be estimated"),
        (Cost(60, float("nan")), "cannot be estimated"),
        (Cost(3.9 * 3600, 11e9), ""),
    ],
)
def test_costs_are_judged_by_what_there_is(cost: Cost, said: str) -> None:
    if not said:
        check_cost(cost, 2.0, MEMORY)
        return
    with pytest.raises(BadInput) as refused:
        check_cost(cost, 2.0, MEMORY)
    assert said in str(refused.value)
    if cost.seconds < 3e9 and cost.seconds > 60:
        check_cost(cost, 0.0, None)


@pytest.mark.parametrize("estimate", [lambda *_: (float("nan"), 1.0), lambda *_: (1 / 0, 1.0)])
def test_an_estimate_that_breaks_is_beyond_all_limits(estimate: Any) -> None:
    result = replace(entry("toy"), estimate=estimate)
    cost = cost_of(result, None, Size(50, 1, {}))
    with pytest.raises(BadInput, match="cannot be estimated"):
        check_cost(cost, 0.0, None)


def test_rivals_cost_time_where_the_table_is_the_user_s() -> None:
    spec = replace(entry("genes"), estimate=lambda *_: (10.0, 1.0))
    size = Size(2000, 5, {})

    def seconds(own: bool, study: Entry = spec, size: Size = size, **values: Any) -> float:
        cost = cost_of(study, study.settings.parse({"max_steps": 5, **values}), size, own)
        return cost.seconds

    assert seconds(False) == 10.0
    assert 13.0 < seconds(True) < 23.0  # 6.4 s measured
    assert seconds(True, baselines=False) == 10.0
    assert seconds(True, refit="everything") == seconds(True) + 10.0
    cost = cost_of(spec, spec.settings.parse({"refit": "everything"}), size)
    assert cost.bytes > 1.0  # both fits are in memory
    assert 18 < seconds(True, size=Size(10**5, 20, {})) - 10.0 < 72  # 36 s
    views = replace(entry("multiview"), estimate=lambda s, *_: (10.0 if s.stack else 4.0, 1.0))
    assert seconds(True, views, refit="everything") == seconds(True, views) + 4.0
    classes = replace(entry("mitosis"), estimate=lambda *_: (10.0, 1.0))
    few, many = ({"label": {str(i): 100 for i in range(n)}} for n in (2, 10))
    assert 11.0 < seconds(True, classes, Size(2000, 10, few)) < 14.0  # 2.0 s measured
    assert 13.5 < seconds(True, classes, Size(2000, 10, many)) < 24.0  # 7.0 s


@pytest.mark.parametrize("hours", [-1.0, float("nan"), float("inf")])
def test_hours_that_are_no_limit_are_refused(hours: float) -> None:
    with pytest.raises(BadInput, match="hours of a run must be a number of at least 0"):
        Limits(hours=hours)


HOURS = 0.3 / 3600


async def begun(made: RunService, client: TroubledClient) -> str:
    run = await made.submit("toy", {}, "demo", "ada")
    await until(lambda: client.begun and client.begun[-1]["run"] == run)
    client.say(Started("cpu", 40), Progress(1, -1.0, 0.1, -1.0, -1.0), Checkpoint(1, b"one"))
    return run


async def test_a_run_that_has_used_its_hours_is_stopped_in_order_and_says_why(url: str) -> None:
    made, client = service(url, hours_per_run=HOURS)
    await made.start()
    run = await begun(made, client)
    await until(lambda: client.told)
    assert client.told[0] == (run, "stop")
    client.say(Finished(State.STOPPED, "After step 1, as requested; the best step is kept."))
    await until(lambda: made.store.run(run).state is State.STOPPED)
    assert made.store.run(run).reason == (
        "It used the 0.005 min that this server allows a run and was stopped. "
        "After step 1; the best step is kept."
    )
    assert client.renewed == []
    await made.close(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("heeded", [False, True])
async def test_a_step_without_end_loses_its_worker_and_a_conclusion_gets_more_time(
    heeded: bool, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "HEED_SECONDS", 0.2)
    monkeypatch.setattr(limited, "CONCLUDE_SHARE", 1e6)
    made, client = service(url, hours_per_run=HOURS)
    await made.start()
    run = await begun(made, client)
    await until(lambda: client.told)
    if heeded:
        client.beat(heeded=True)
        await asyncio.sleep(0.6)
        assert made.store.run(run).state is State.STOPPING
        client.beat(heeded=False)
    await until(lambda: made.store.run(run).state is State.FAILED)
    assert "one step took too long, so its worker was replaced" in made.store.run(run).reason
    assert client.renewed == [(run, 1)]
    await until(lambda: made.status().running == 0)  # once that is put down
    await made.close(0.1)


async def test_hours_are_counted_on_over_a_restart(url: str) -> None:
    first, client = service(url, hours_per_run=1.0)
    await first.start()
    run = await begun(first, client)
    await until(lambda: first.store.used_seconds(run) > 0.3)
    await first.close(0.1)
    assert first.store.run(run).state is State.QUEUED
    second, other = service(url, hours_per_run=HOURS)
    await second.start()
    await until(lambda: other.begun)
    other.say(Started("cpu", 40, 1))
    await until(lambda: other.told)  # at once
    assert other.told[0] == (run, "stop")
    assert second.store.used_seconds(run) < 10
    await second.close(0.1)


async def test_a_worker_killed_for_its_memory_fails_the_run_and_not_the_next_worker(
    url: str,
) -> None:
    made, client = service(url)
    await made.start()
    run = await begun(made, client)
    client.beat(resident=int(0.85 * MEMORY), memory=MEMORY)
    client.break_off("KilledWorker: Attempted to run task 'x' on 4 different workers")
    await until(lambda: made.store.run(run).state is State.FAILED)
    assert made.store.run(run).reason == out_of_memory(MEMORY)
    assert "Dask" not in made.store.run(run).reason
    assert len(client.begun) == 1
    other = await begun(made, client)
    client.beat(resident=int(0.5 * MEMORY), memory=MEMORY)
    client.break_off("KilledWorker: lost")
    await until(lambda: len(client.begun) == 3)  # lost for another reason: tried again
    assert client.begun[-1]["run"] == other
    await made.close(0.1)


# --- the operator ---


def scant(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["runs", *arguments, "--data-dir", str(folder)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    return tmp_path


async def test_an_operator_stops_and_deletes_the_runs_of_a_living_server(
    folder: Path, url: str
) -> None:
    made, client = service(url)
    await made.start()
    run, rest = await begun(made, client), await paused(made, client)
    listed = await asyncio.to_thread(scant, folder, "list", "--json")
    rows = {row["id"]: row for row in json.loads(listed.stdout)}
    assert (rows[run]["owner"], rows[run]["step"], rows[rest]["state"]) == ("ada", 1, "paused")
    refused = await asyncio.to_thread(scant, folder, "delete", run)
    assert refused.exit_code == 2
    assert made.store.run(run).state is State.RUNNING
    told = await asyncio.to_thread(scant, folder, "stop", run, rest)
    assert told.exit_code == 0, told.output
    await until(lambda: (run, "stop") in client.told)
    await until(lambda: client.begun[-1]["wish"] == "stop")  # taken up, to be concluded
    assert client.begun[-1]["run"] == rest
    client.say(Finished(State.STOPPED, "Stopped."))
    await until(lambda: made.store.run(rest).state is State.STOPPED)
    gone = await asyncio.to_thread(scant, folder, "delete", rest)
    assert gone.exit_code == 0
    assert [r.id for r in made.store.runs() if r.study == "toy"] == [run]
    await made.close(0.1)


@pytest.mark.parametrize("old", ["--6V9x7JicQcMged", "-yV9x7JicQcMgedA"])
def test_an_id_that_begins_with_a_hyphen_is_no_option(folder: Path, url: str, old: str) -> None:
    store = Store.open(url)
    store.add_run("toy", {}, "demo", "user:ada", server="dead", run_id=old)
    assert scant(folder, "stop", old).exit_code == 0
    assert scant(folder, "delete", old).exit_code == 0
    assert store.runs() == []
    store.close()


def test_new_ids_begin_with_no_hyphen(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["-a", "--b", "c-"])
    monkeypatch.setattr("scant.store.records.secrets.token_urlsafe", lambda _: next(drawn))
    assert new_id() == "c-"


def test_an_operator_needs_no_server(folder: Path, url: str) -> None:
    store = Store.open(url)
    left, over = (store.add_run("toy", {}, "demo", "user:ada", server="dead") for _ in range(2))
    store.write(left, [Changed(State.RUNNING)])
    store.add_label(left, 3, "clamp", "Ada", "user:ada", role=ADJUDICATOR)
    assert "user:ada" in scant(folder, "list", "--live").stdout
    assert scant(folder, "stop", over).exit_code == 0
    assert store.run(over).state is State.STOPPED
    assert "no server was up" in store.run(over).reason
    assert scant(folder, "delete", left, over).exit_code == 2  # without --yes
    assert len(store.runs()) == 2
    assert scant(folder, "delete", "--stop", "--yes", left, over).exit_code == 0
    with store.engine.connect() as db:
        assert db.execute(select(LABEL_ROLES)).all() == []
    assert store.runs() == store.labels(left) == []
    assert scant(folder, "stop", left).exit_code == 2
    assert scant(folder / "nowhere", "list").exit_code == 2
    store.close()
    (folder / "other").mkdir()
    (folder / "other" / "scant.db").write_text("no database at all " * 100)
    damaged = scant(folder / "other", "list")
    assert damaged.exit_code == 2
    assert "cannot be opened: file is not a database" in damaged.output
