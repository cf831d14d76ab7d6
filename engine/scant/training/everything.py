"""Refit on all rows after the report, for the model that is used for predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scant.events import Event, Finished, Fitted, Note, Progress, Report, State
from scant.studies import Settings
from scant.studies.auto import training_seconds
from scant.studies.split import EVERYTHING

QUIET = {"baselines": False, "repeats": 1}  # settings without work that only a report needs
# Share of the time budget for the refit, and share of the refit for training. Training is as long
# as in the scored fit (70 % of the rest), whose weights and temperatures are reused; the refit has
# no report.
REFIT_SHARE, REFIT_TRAINING_SHARE = 0.45, 0.8


def refits(settings: Settings) -> bool:
    """Return True if a fit on all rows follows the scored one."""
    return getattr(settings, "refit", "") == EVERYTHING


def once(settings: Settings) -> Settings:
    """Return the settings of the scored fit."""
    share = 1 - REFIT_SHARE if refits(settings) else 1.0
    return changed(settings, refit="no", **_budget(settings, share))


def on_everything(settings: Settings) -> Settings:
    """Return the settings of the fit on all rows, which is not scored."""
    return changed(settings, refit=EVERYTHING, **QUIET, **_budget(settings, REFIT_SHARE))


def _budget(settings: Settings, share: float) -> dict[str, float]:
    if training_seconds(settings) is None:  # the number of steps is the user's
        return {}
    return {"time_budget": max(1.0, share * settings.values()["time_budget"])}


def refitted(
    events: Iterator[Event], rows: int, step: int, restart: int, seconds: float, report: Report
) -> Iterator[Event]:
    """Convert the events of a fit on all rows that follows a scored fit.

    Its steps are counted as further restarts. Snapshots and scores are omitted, since held-out rows
    are used for training; the report gets the limits of this fit, which predicts. If the fit is
    paused, the last event is `Finished` with this state, and the fit on all rows starts again after
    resumption.

    Args:
        events: Events of the fit on all rows.
        rows: Number of training rows.
        step: Steps of the scored fit.
        restart: Restarts of the scored fit.
        seconds: Training time of the scored fit.
        report: Report of the scored fit.
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
                usable = None if event.state is State.DIVERGED else model
                text = (
                    "Predictions come from the fit on the training rows. The fit on everything "
                    f"gave no model: {event.reason}"
                )
                if usable is not None:
                    text = (
                        f"Predictions come from a fit on everything ({rows:,} training rows); the "
                        "scores are those of the split."
                    )
                    report = replace(report, limits=event.report.limits)
                yield Note(text)
                if usable is not None:
                    yield usable
                yield replace(event, report=replace(report, notes=(*report.notes, text)))


def changed(settings: Settings, **values: object) -> Settings:
    """Return the settings with these values; ignore names that the study does not have."""
    supported = {name: value for name, value in values.items() if name in settings.names()}
    return type(settings)(**{**settings.values(), **supported}) if supported else settings
