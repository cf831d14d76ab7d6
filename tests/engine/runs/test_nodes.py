"""What Dask adds to the log beside the service's own lines."""

from __future__ import annotations

import logging

import pytest

from scant.runs.workers import nodes

assert nodes  # its import sets the filters


@pytest.mark.parametrize(
    ("logger", "text", "logged"),
    [
        ("distributed.scheduler", "broadcast to tls://127.0.0.1:1 failed: OSError", False),
        ("distributed.scheduler", "Task x marked as failed", True),
        ("distributed.worker.state_machine", "Async instruction for <Task cancelled>", False),
        ("distributed.worker.state_machine", "Compute failed", True),
    ],
)
def test_the_loss_of_a_worker_is_logged_once(logger: str, text: str, logged: bool) -> None:
    record = logging.LogRecord(logger, logging.ERROR, "", 1, text, None, None)
    assert bool(logging.getLogger(logger).filter(record)) is logged
