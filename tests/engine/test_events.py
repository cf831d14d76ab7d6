"""Events survive the way from worker to server, whatever they hold."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scant import events
from scant.events import (
    Changed,
    Checkpoint,
    Finished,
    Fitted,
    Metric,
    Note,
    Progress,
    Queued,
    Report,
    Snapshot,
    Started,
    State,
    decode,
    encode,
)

numbers = st.floats()  # NaN and infinities among them
steps = st.integers(0, 10**9)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
dtypes = st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_])
arrays = st.dictionaries(
    names,
    dtypes.flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0))),
    max_size=3,
)
metrics = st.builds(Metric, names, names, numbers, st.none() | numbers)
reports = st.builds(
    Report, st.lists(metrics, max_size=3).map(tuple), arrays, st.tuples(names),
    limits=st.tuples(names, names),
)  # fmt: skip
started_metadata = st.dictionaries(names, st.lists(names), max_size=2)
any_event = st.one_of(
    st.builds(Queued, steps, st.none() | numbers),
    st.builds(Changed, st.sampled_from(State), names),
    st.builds(Started, names, steps, steps, started_metadata),
    st.builds(Progress, steps, numbers, numbers, numbers, numbers, steps),
    st.builds(Snapshot, steps, arrays),
    st.builds(Note, names),
    st.builds(Checkpoint, steps, st.binary()),
    st.builds(Fitted, st.binary()),
    st.builds(Finished, st.sampled_from(State), names, reports),
)


def same(a: object, b: object) -> bool:
    """Equal to the bit, NaN being equal to NaN and arrays compared with their types."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)
        )
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return a == b


@given(st.lists(any_event, max_size=6))
@settings(deadline=None, max_examples=150)
def test_what_goes_out_comes_in(batch: list[events.Event]) -> None:
    assert same(decode(encode(batch)), batch)


def test_every_kind_of_event_is_in_the_codec() -> None:
    assert set(events._KINDS.values()) == set(events.Event.__args__)


def test_a_transposed_array_keeps_its_values() -> None:
    array = np.arange(6.0).reshape(2, 3).T
    (snapshot,) = decode(encode([Snapshot(1, {"a": array})]))
    assert np.array_equal(snapshot.arrays["a"], array)


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_what_is_no_message_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match="not a message"):
        decode(message)


@pytest.mark.parametrize("cut", [9, 60, -1])
def test_a_message_cut_short_is_refused(cut: int) -> None:
    message = encode([Snapshot(3, {"a": np.ones(50)})])
    with pytest.raises(ValueError, match="not a message"):
        decode(message[:cut])


def test_states_know_what_is_over_and_what_is_usable() -> None:
    told = {State.CONVERGED, State.FINISHED, State.LEARNED_NOTHING}
    over = told | {State.STOPPED, State.HIT_LIMIT, State.DIVERGED, State.FAILED}
    assert {s for s in State if s.final} == over
    assert {s for s in State if s.usable} == over - {State.DIVERGED, State.FAILED}
    assert {s for s in State if s.still} == over | {State.PAUSED}
