"""The pretended device computes what the processor does, and refuses what CUDA refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.engine.pretended import DEVICE, pretended


def test_a_step_of_adam_is_that_of_the_processor() -> None:
    def stepped(device: torch.device) -> list[Tensor]:
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 3).double().to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        x = torch.linspace(0, 1, 9, dtype=torch.float64, device=device).view(3, 3)
        K = model(x) @ model(x).T + torch.tensor([1.0, 2.0, 3.0], device=device).diag()
        torch.linalg.cholesky(K).diagonal().log().sum().backward()
        optimizer.step()
        assert all(p.device == p.grad.device for p in model.parameters() if p.grad is not None)
        return list(model.parameters())

    ours = stepped(torch.device("cpu"))
    with pretended() as device:
        theirs = stepped(device)
        assert all(p.device == DEVICE for p in theirs)
        back = [p.detach().cpu() for p in theirs]
    assert all(map(torch.equal, ours, back))


@pytest.mark.parametrize(
    "mixed",
    [
        lambda x: x + torch.zeros(3),
        lambda x: torch.cat([x, torch.zeros(1)]),
        lambda x: torch.stack([x[0], torch.tensor(0.0)]),
        lambda x: torch.zeros(3, 3) @ x,
        lambda x: torch.zeros(3)[x.long()],
        lambda x: torch.tensor(0.0).add_(x[0]),
        lambda x: torch.randn(3, device=x.device, generator=torch.Generator()),
        lambda x: x.numpy(),
    ],
)
def test_what_cuda_refuses_is_refused(mixed: Callable[[Tensor], object]) -> None:
    with pretended() as device, pytest.raises(RuntimeError):
        mixed(torch.ones(3, device=device))


def test_what_cuda_allows_is_allowed() -> None:
    with pretended() as device:
        x = torch.arange(3.0, device=device)
        assert (x + torch.tensor(1.0)).tolist() == [1, 2, 3]
        assert x[torch.tensor([2, 0])].cpu().tolist() == [2, 0]
        x[:2] = torch.tensor([5.0, 6.0])
        assert x.sum().item() == 13


def test_values_put_in_place_of_others_are_seen() -> None:
    with pretended() as device:
        x = torch.empty(3, dtype=torch.float64, device=device)
        assert x.isnan().all()
        x.data = torch.ones(3, dtype=torch.float64, device=device)
        assert x.tolist() == [1, 1, 1]


def test_a_shape_changed_in_place_is_seen() -> None:
    """As PyTorch does within a vector times a matrix."""
    with pretended() as device:
        x = torch.ones(1, 3, device=device).squeeze_(0)
        assert x.shape == (3,)
        assert (x @ torch.eye(3, device=device) @ x).item() == 3
