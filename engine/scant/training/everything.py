"""Fitting again on everything: after the report, a fit on all rows, from which predictions come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scant.events import Event, Finished, Fitted, Note, Progress, Report, State
from scant.studies import Settings
from scant.studies.split import EVERYTHING

QUIET = {"baselines": False, "repeats": 1}  # what only a report needs is left out


def once(settings: Settings) -> Settings:
    """The settings of the fit that is scored."""
    return changed(settings, refit="no")


def on_everything(settings: Settings) -> Settings:
    """The settings of the fit on all rows, which is not scored."""
    return changed(settings, refit=EVERYTHING, **QUIET)


def refitted(
    events: Iterator[Event], rows: int, step: int, restart: int, seconds: float, report: Report
) -> Iterator[Event]:
    """What to say of a fit on everything that follows a fit that was scored.

    Its steps go on counting as further restarts. Snapshots and scores stay those of the split, for
    the rows held out there are learned from here. If it is paused, the last event is `Finished`
    with that state, and the fit on everything begins anew when the run is resumed.

    Args:
        events: Of the training on everything.
        rows: How many it learns from.
        step: Steps of the fit before.
        restart: Restarts of the fit before.
        seconds: That it took.
        report: What it came to.
    """
    model: Fitted | None = None
    for event in events:
        match event:
            case Progress():
                yield replace(
                    event,
                    step=step + event.step,
                    restart=restart + event.restart,
                    seconds=seconds + event.seconds,
                )
            case Note():
                yield event
            case Fitted():
                model = event
            case Finished(state=State.PAUSED):
                yield event
            case Finished():
                text = (
                    f"Predictions come from a fit on everything ({rows:,} training rows); the "
                    "scores are those of the split."
                )
                if model is None or event.state is State.DIVERGED:
                    text = f"Predictions come from the split. On everything: {event.reason}"
                else:
                    yield model
                yield Note(text)
                yield replace(event, report=replace(report, notes=(*report.notes, text)))


def changed(settings: Settings, **values: object) -> Settings:
    """The settings with these values, of those that the study has."""
    own = {name: value for name, value in values.items() if name in settings.names()}
    return type(settings)(**{**settings.values(), **own}) if own else settings
