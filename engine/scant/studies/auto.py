"""Settings whose default is `auto`: chosen from the data within a time budget, with the reason.

A capacity setting (basis functions, inducing points, latent dimensions, steps) is an `AutoInteger`,
or a `Selector` with the word `auto`. Its study's catalog entry chooses the values
from the table's size (`Entry.capacity`), so that page, terminal and worker agree on them; what is
found only while training, the study chooses itself and says in its metadata under `CHOSEN`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import param

AUTO: Any = "auto"  # also a default of numbers
CHOSEN = "chosen"  # in a study's metadata: setting to the value and the reason
TRAINING_SHARE = 0.7  # of a time budget; the rest is for what follows
AVERAGE_SHARE = 0.6  # of what is left then, for members of an average and their weights
REPORT_SHARE = 0.6  # of what is left then, for other methods; the rest is for folds and rivals


class Choice(NamedTuple):
    """A value for a setting that was left to the program, and the reason in a few words."""

    value: Any
    why: str


Choices = Mapping[str, Choice]


class AutoInteger(param.Integer):
    """A whole number, or `auto`."""

    def _validate(self, val: Any) -> None:
        if val != AUTO:
            super()._validate(val)


def set_or(setting: Any, choice: Any) -> Any:
    """What the user set; where that is `auto`, the choice."""
    return choice if setting == AUTO else setting


def listed(choices: Choices) -> str:
    """The choices as a line of prose; empty where there is none."""
    if not choices:
        return ""
    parts = (f"{name} {_shown(value)} ({why})" for name, (value, why) in choices.items())
    return f"Chosen from the data: {'; '.join(parts)}."


def read(metadata: Mapping[str, Any]) -> dict[str, Choice]:
    """The choices in a study's metadata, or in a recorded run's."""
    return {name: Choice(*pair) for name, pair in metadata.get(CHOSEN, {}).items()}


def used(values: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A run's settings with what was chosen in place of `auto`."""
    return {**values, **{name: choice.value for name, choice in read(metadata).items()}}


def training_seconds(settings: Any) -> float | None:
    """Seconds after which training ends; None where the number of steps is the user's."""
    if getattr(settings, "max_steps", None) != AUTO:
        return None
    return TRAINING_SHARE * float(settings.time_budget)


def fit_seconds(settings: Any) -> float:
    """Seconds that a fit may take; infinite where the number of steps is the user's."""
    return math.inf if training_seconds(settings) is None else float(settings.time_budget)


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
