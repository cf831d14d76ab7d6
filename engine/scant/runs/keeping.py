"""Putting a run's events down so that one which the database refuses takes no other with it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from scant.events import Event, Finished, Note, Progress, Report, Snapshot, State
from scant.store import Store, StoreTrouble, TakenOver

log = logging.getLogger(__name__)


def put_down(
    store: Store, run: str, events: Sequence[Event], data_hash: str, server: str
) -> list[Event]:
    """Write events; returns those that watchers should see. May be called again with the same.

    What the database refuses for good is left out, and the run has a note on it.

    Raises:
        StoreTrouble: The database is in trouble; nothing is lost, try again.
        TakenOver: The run is in another server's care.
    """
    try:
        return store.write(run, events, data_hash, server)
    except (StoreTrouble, TakenOver):
        raise
    except Exception:
        log.exception("events of run %s were refused; they are stored one at a time", run)
    stored: list[Event] = []
    refused: list[Event] = []
    for event in events:
        for attempt in _attempts(event):
            try:
                stored += store.write(run, [attempt], data_hash, server)
                break
            except (StoreTrouble, TakenOver):
                raise
            except Exception as error:
                log.error("refused of run %s: %s: %s", run, type(event).__name__, error)
        else:
            refused.append(event)
    if refused:
        stored += store.write(run, [Note(_sentence(refused))])  # no claim: the end may be written
    return stored


def _attempts(event: Event) -> list[Event]:
    """What may stand for an event: a run's end must be put down, if need be without its report."""
    if not isinstance(event, Finished):
        return [event]
    text = "The result of this run could not be stored."
    bare = replace(event, report=Report(notes=(text,)))
    return [event, bare, Finished(State.FAILED, text)]


def _sentence(refused: Sequence[Event]) -> str:
    steps = [event.step for event in refused if isinstance(event, Progress)]
    shots = sum(isinstance(event, Snapshot) for event in refused)
    others = len(refused) - len(steps) - shots
    parts = []
    if steps:
        parts.append(f"{len(steps)} points of the curve (steps {steps[0]} to {steps[-1]})")
    if shots:
        parts.append(f"{shots} snapshots")
    if others:
        parts.append(f"{others} other messages")
    return f"The database refused {', '.join(parts)} of this run; they are lost."
