"""Rows on several processes give the sums of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from scant.models.gpz.distributed import DistributedRows, Processes
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.models.gpz.row_sums import Pattern, RowSums


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    made = Processes(2)
    yield made
    made.close()


def table() -> tuple[Tensor, Tensor, GPz]:
    """Rows with gaps, and a model away from its start."""
    g = torch.Generator().manual_seed(1)
    X = torch.randn(401, 3, generator=g, dtype=torch.float64)
    y = X[:, 0].sin() + 0.1 * torch.randn(401, generator=g, dtype=torch.float64)
    X[::5, 1] = torch.nan
    model = GPz(3, 8)
    model.init_from_data(X, y, g)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=g, dtype=p.dtype))
    return X, y, model


def gradient(log_evidence: LogEvidence) -> tuple[float, Tensor]:
    value = log_evidence()
    slopes = torch.autograd.grad(value, list(log_evidence.model.parameters()))
    return value.item(), torch.cat([s.ravel() for s in slopes])


@pytest.mark.slow
def test_two_processes_give_the_evidence_of_one(processes: Processes) -> None:
    X, y, model = table()

    def place(patterns: list[Pattern], m: int) -> RowSums:
        return DistributedRows(patterns, m, processes)

    value, slope = gradient(LogEvidence(model, X, y))
    there = LogEvidence(model, X, y, place=place)
    assert len(processes.addresses()) == 2
    found, other = gradient(there)
    assert found == pytest.approx(value, rel=1e-10)
    torch.testing.assert_close(other, slope, rtol=1e-10, atol=1e-10 * float(slope.abs().max()))


@pytest.mark.slow
def test_a_lost_process_takes_no_row_with_it(processes: Processes) -> None:
    X, y, model = table()

    def place(patterns: list[Pattern], m: int) -> RowSums:
        return DistributedRows(patterns, m, processes)

    there = LogEvidence(model, X, y, place=place)
    before = gradient(there)
    processes.client.retire_workers(processes.addresses()[:1], close_workers=True)
    after = gradient(there)
    assert after[0] == pytest.approx(before[0], rel=1e-10)
    torch.testing.assert_close(after[1], before[1], rtol=1e-9, atol=1e-9)
