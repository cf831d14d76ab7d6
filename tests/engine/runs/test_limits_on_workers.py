"""What true workers do with runs that take all memory, all hours, or one step for ever."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from distributed import worker_memory

from scant.errors import BadInput
from scant.events import State
from scant.runs import limited
from scant.runs.limits import Limits
from scant.runs.memory import out_of_memory, ran_out
from tests.engine.runs.driver import Driver, database, trust_toy

pytestmark = [
    pytest.mark.usefixtures("toy"),
    pytest.mark.timeout(180),
    pytest.mark.slow("engine/scant/runs", "engine/scant/store", "engine/scant/training"),
]
LIMIT = 1_500_000_000  # bytes


@pytest.fixture(scope="module")
def driver(toy: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    trust_toy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_memory.system, "MEMORY_LIMIT", LIMIT)
        driver = Driver(database(tmp_path_factory.mktemp("memory")), workers=1)
        yield driver
        driver.close()


@pytest.mark.skipif(sys.platform != "linux", reason="nothing else counts a process's data")
def test_a_run_that_takes_all_memory_fails_with_a_sentence_and_its_worker_lives(
    driver: Driver,
) -> None:
    driver.end(driver.submit(max_steps=2))
    (before,) = driver.on(None, os.getpid).values()
    run = driver.submit(max_steps=4000, hold=60)
    assert driver.end(run) is State.FAILED
    record = driver.store.run(run)
    assert record.reason == out_of_memory(LIMIT)
    assert "its limit is 1.5 GB" in record.reason
    assert (record.attempt, record.losses) == (1, 0)
    assert len(driver.steps(run)) > 5
    assert driver.end(driver.submit(max_steps=2)) is State.HIT_LIMIT
    (after,) = driver.on(None, os.getpid).values()
    assert after == before


def test_a_worker_says_how_much_it_may_hold(driver: Driver) -> None:
    assert driver.call(driver.service.lifecycle.client.memory()) == LIMIT


def test_a_run_past_its_hours_leaves_a_model(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = driver.submit(max_steps=90_000, delay=0.02)
    driver.until_step(run, 3)
    monkeypatch.setattr(driver.service.policy, "limits", Limits(hours=0.1 / 3600))
    assert driver.end(run) is State.STOPPED
    assert "that this server allows a run and was stopped. After" in driver.store.run(run).reason
    assert driver.store.model(run)


def test_a_run_whose_step_does_not_end_is_replaced_with_its_worker(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "HEED_SECONDS", 1.0)
    run = driver.submit(stuck_at=3)
    driver.until_step(run, 2)
    monkeypatch.setattr(driver.service.policy, "limits", Limits(hours=0.1 / 3600))
    assert driver.end(run) is State.FAILED
    assert "one step took too long" in driver.store.run(run).reason
    monkeypatch.undo()
    assert driver.end(driver.submit(max_steps=2)) is State.HIT_LIMIT


def test_what_libraries_raise_for_want_of_memory_is_told_from_other_errors() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as huge:
        torch.ones(2**58, dtype=torch.float64)
    with pytest.raises(MemoryError) as array:
        np.ones(2**55)
    wrapped = BadInput("The table cannot be read.")
    wrapped.__cause__ = array.value
    for error in (huge.value, array.value, wrapped, RuntimeError("CUDA out of memory. Tried")):
        assert ran_out(error)
    for error in (None, ArithmeticError("the toy broke"), ValueError("out of memory range")):
        assert not ran_out(error)
