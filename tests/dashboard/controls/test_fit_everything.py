"""Fit on everything is offered once, after a fit that has held rows out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scant.events import State
from scant.studies import entry
from scant_dashboard.controls.fit_everything import FitEverything


def run(state: State, **settings: Any) -> Any:
    return SimpleNamespace(state=state, record=SimpleNamespace(settings=settings, data="upload:1"))


@pytest.mark.parametrize(
    ("study", "shown", "offered"),
    [
        ("redshift", run(State.CONVERGED, seed=3), True),
        ("redshift", run(State.CONVERGED, refit="everything"), False),
        ("redshift", run(State.RUNNING), False),
        ("clamp", run(State.CONVERGED), False),  # it learns from the labels that it is given
    ],
)
def test_it_is_offered_where_rows_were_held_out(study: str, shown: Any, offered: bool) -> None:
    sent: list[Any] = []
    page: Any = SimpleNamespace(
        entry=entry(study),
        present=False,
        run=shown,
        submit=lambda values, data: (values, data),
        background=lambda work, then: sent.append(work),
    )
    control = FitEverything(page)
    control.show(shown)
    assert control.panel.visible == offered
    if offered:
        control.button.clicks += 1
        assert sent == [({"seed": 3, "refit": "everything"}, "upload:1")]
