"""The store's records: plain frozen dataclasses."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from scant.events import State
from scant.studies.aliases import current_study, recorded_settings


def new_id() -> str:
    """An id with 96 random bits that no command line takes for an option."""
    while (made := secrets.token_urlsafe(12)).startswith("-"):
        pass
    return made


@dataclass(frozen=True)
class RunRecord:
    """One run, as its row stands.

    Attributes:
        id: Unguessable; whoever has it may open the run.
        data: "demo", the name of a fetched data set, or "upload:<id>".
        data_hash: SHA-256 of the table, "" until a worker has seen it.
        owner: The browser (or person) that submitted it.
        reason: One sentence on why the state is what it is.
        attempt: How often the run was sent to a worker.
        losses: How many of these attempts were lost with their worker.
        created: Seconds since the epoch, as are `started`, `finished` and `heartbeat`.
        version: Of this package, when the run was submitted.
        demonstration: Shown to everybody.
        total_steps: The most steps there can be; 0 until training begins.
        metadata: JSON-able names that label arrays (see `events.Started`).
    """

    id: str
    study: str
    settings: Mapping[str, Any]
    data: str
    data_hash: str
    owner: str
    state: State
    reason: str
    attempt: int
    losses: int
    created: float
    started: float | None
    finished: float | None
    heartbeat: float | None
    version: str
    demonstration: bool
    total_steps: int
    device: str
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> RunRecord:
        """From a row of the table; study and settings take today's names."""
        named = {
            "study": current_study(row["study"]),
            "settings": recorded_settings(row["study"], row["settings"]),
            "metadata": row["words"],
            "state": State(row["state"]),
        }
        return cls(**{k: v for k, v in row.items() if k != "words"} | named)


@dataclass(frozen=True)
class Trace:
    """A run's curve: one entry a step, in the order of steps (see `events.Progress`)."""

    step: Int[ndarray, " t"]
    restart: Int[ndarray, " t"]
    elbo: Float[ndarray, " t"]
    seconds: Float[ndarray, " t"]
    best: Float[ndarray, " t"]
    score: Float[ndarray, " t"]

    @classmethod
    def of(cls, rows: list[tuple[Any, ...]]) -> Trace:
        """From rows (step, restart, elbo, seconds, best, score)."""
        columns = list(zip(*rows)) if rows else [()] * 6
        whole = [np.array(c, dtype=np.int64) for c in columns[:2]]
        return cls(*whole, *(np.array(c, dtype=np.float64) for c in columns[2:]))


@dataclass(frozen=True)
class UploadRecord:
    """A table that a person uploaded.

    Attributes:
        name: The file's name, as the person knows it.
        study: The study whose schema it was read with.
        columns: Its columns' names.
        sha256: Of the file as uploaded.
        created: Seconds since the epoch; `deleted` likewise, None while it is kept.
        notes: What was inferred or dropped when it was read.
    """

    id: str
    owner: str
    name: str
    study: str
    rows: int
    columns: list[str]
    sha256: str
    created: float
    deleted: float | None
    notes: list[str]

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> UploadRecord:
        """From a row of the table; the study takes today's name."""
        return cls(**{**row, "study": current_study(row["study"])})


UNSURE = "unsure"  # what stands in the place of a class where a labeler could not tell
ADJUDICATOR, IMPORTED = "adjudicator", "imported"


@dataclass(frozen=True)
class Label:
    """A label that `labeler` gave to `item` of a run or upload.

    Which of several counts says `scant.store.label_agreement.standing`.

    Attributes:
        item: Its row.
        label: The class; "" takes the labeler's own label of this role back.
        labeler: The name to show.
        created: When, in seconds since 1970.
        visitor: Who gave it, as the server knows them: "" of labels of an earlier version and
            outside of a server. Of imported labels: who brought them.
        role: "" of an answer; `ADJUDICATOR` of a decision between labelers who disagree;
            `IMPORTED` of a label that came with a file.
        unsure: Whether the labeler could not tell the class; `label` is `UNSURE` then.
    """

    item: int
    label: str
    labeler: str
    created: float
    visitor: str = ""
    role: str = ""
    unsure: bool = False
