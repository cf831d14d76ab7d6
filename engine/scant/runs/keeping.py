"""Storing of events such that an event rejected by the database does not affect others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from scant.events import Event, Finished, Note, Progress, Report, Snapshot, State
from scant.store import Store, StoreTrouble, TakenOver

log = logging.getLogger(__name__)


def store_events(
    store: Store, run: str, events: Sequence[Event], data_hash: str, server: str
) -> list[Event]:
    """Write events and return those to publish; safe to repeat with the same events.

    Events that the database rejects permanently are dropped with a note.

    Raises:
        StoreTrouble: The database is not available; the call can be repeated without loss.
        TakenOver: The run belongs to another server.
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
        stored += store.write(
            run, [Note(_sentence(refused))]
        )  # no claim, since the run may have ended
    return stored


def _attempts(event: Event) -> list[Event]:
    """Return alternatives to store; the end of a run is stored without its report if needed."""
    if not isinstance(event, Finished):
        return [event]
    text = "The result of this run could not be stored."
    without_report = replace(event, report=Report(notes=(text,)))
    return [event, without_report, Finished(State.FAILED, text)]


def _sentence(refused: Sequence[Event]) -> str:
    steps = [event.step for event in refused if isinstance(event, Progress)]
    shots = sum(isinstance(event, Snapshot) for event in refused)
    others = len(refused) - len(steps) - shots
    parts = []
    if steps:
        parts.append(
            f"{len(steps)} point{'s' * (len(steps) != 1)} of the curve (steps {steps[0]} to "
            f"{steps[-1]})"
        )
    if shots:
        parts.append(f"{shots} snapshot{'s' * (shots != 1)}")
    if others:
        parts.append(f"{others} other message{'s' * (others != 1)}")
    return f"The database refused {', '.join(parts)} of this run; they are lost."
