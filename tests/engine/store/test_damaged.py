"""What is damaged in the database, or came damaged, is known and ends in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save
from sqlalchemy import Table, insert, select, update

from scant.errors import BadInput, NotFound
from scant.events import Checkpoint, Finished, Fitted, Progress, Report, Snapshot, Started, State
from scant.package_data import package_file
from scant.store import Damaged, Store, recordings
from scant.store.schema import CHECKPOINTS, MODELS, REPORTS, SNAPSHOTS

SHOTS = [Snapshot(step, {"a": np.full(3, float(step))}) for step in (1, 2)]
HOW = {"flipped": lambda b: b[:-1] + bytes([b[-1] ^ 1]), "cut": lambda b: b[: len(b) // 2]}


@pytest.fixture
def run(store: Store) -> str:
    run = store.add_run("redshift", {}, "demo", "ada")
    step = Progress(1, -1.0, 0.1, -1.0, -1.0)
    store.write(
        run, [Started("cpu", 9), step, *SHOTS, Checkpoint(1, b"one"), Checkpoint(2, b"two")]
    )
    return run


def finish(store: Store, run: str) -> None:
    report = Report(arrays={"rows": np.arange(4.0)})
    store.write(run, [Fitted(save({"w": np.ones(2)})), Finished(State.STOPPED, "Stopped.", report)])


def damage(store: Store, table: Table, how: str, **where: int) -> None:
    rows = select(table.c.blob)
    change = update(table)
    for name, value in where.items():
        rows, change = rows.where(table.c[name] == value), change.where(table.c[name] == value)
    with store.engine.begin() as db:
        blob = db.execute(rows).scalar_one()
        db.execute(change.values(blob=HOW[how](bytes(blob))))


@pytest.mark.parametrize("how", HOW)
def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(
    store: Store, run: str, how: str
) -> None:
    damage(store, CHECKPOINTS, how)
    attempt, checkpoint, note = store.begin_attempt(run)
    assert (attempt, checkpoint) == (1, Checkpoint(1, b"one"))
    assert note == (
        "The checkpoint of step 2 is damaged in the database; the run goes on from the one "
        "before, of step 1."
    )
    store.write(run, [Started("cpu", 9, step=1), Checkpoint(2, b"anew")])
    assert store.begin_attempt(run) == (2, Checkpoint(2, b"anew"), "")
    damage(store, CHECKPOINTS, how)
    assert store.checkpoint(run) == Checkpoint(1, b"one")


def test_a_checkpoint_put_down_twice_leaves_the_one_before(store: Store, run: str) -> None:
    store.write(run, [Checkpoint(2, b"two")])
    damage(store, CHECKPOINTS, "cut")
    assert store.checkpoint(run) == Checkpoint(1, b"one")


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_model_or_report_is_a_sentence(store: Store, run: str, how: str) -> None:
    finish(store, run)
    damage(store, MODELS, how)
    damage(store, REPORTS, how)
    with pytest.raises(Damaged, match=rf"The model of run {run} is damaged"):
        store.model(run)
    with pytest.raises(Damaged, match=rf"The report of run {run} is damaged"):
        store.report(run)


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_snapshot_is_left_out(store: Store, run: str, how: str) -> None:
    damage(store, SNAPSHOTS, how, step=2)
    assert [shot.step for shot in store.snapshots(run)] == [1]
    latest = store.latest_snapshot(run)
    assert latest.step == 1


def test_blobs_of_the_first_version_are_read_and_known_when_they_are_cut_short(
    store: Store, run: str
) -> None:
    old = save({"w": np.ones(2)})
    with store.engine.begin() as db:
        db.execute(insert(MODELS).values(run=run, blob=old))
    assert store.model(run) == old
    damage(store, MODELS, "cut")
    with pytest.raises(Damaged):
        store.model(run)


@pytest.mark.parametrize("how", ["cut", "flipped"])
def test_a_damaged_recording_keeps_no_other_from_being_shown(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    for study in ("redshift", "genes"):
        with package_file("recordings", f"{study}.scant").open("rb") as source:
            (tmp_path / f"{study}.scant").write_bytes(source.read())
    bad = tmp_path / "redshift.scant"
    whole = bad.read_bytes()
    middle = len(whole) // 2
    bad.write_bytes(whole[:middle] if how == "cut" else
                    whole[:middle] + bytes(b ^ 255 for b in whole[middle:middle + 99])
                    + whole[middle + 99:])  # fmt: skip
    monkeypatch.setattr(recordings, "package_file", lambda _, name: tmp_path / name)
    with pytest.raises(BadInput, match="not a recording"):
        store.import_recording(bad.read_bytes())
    assert store.import_shipped() == ["demo-genes"]
    with pytest.raises(NotFound, match="demonstration that came with this installation"):
        store.run("demo-redshift")
