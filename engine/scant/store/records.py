"""Records of the store as frozen dataclasses."""

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

TEMPORARY = "room:"  # begins the owner of a run that is deleted once it has ended


def new_id() -> str:
    """Return a random id of 96 bits that does not start with a dash."""
    while (token := secrets.token_urlsafe(12)).startswith("-"):
        pass
    return token


@dataclass(frozen=True)
class RunRecord:
    """Record of a run; times are Unix times in seconds.

    Attributes:
        id: Secret id, with which anyone may open the run.
        study: Name of the study.
        settings: Settings by name.
        data: "demo", the name of a downloaded data set, or "upload:<id>".
        data_hash: SHA-256 of the table, or "" before it is read by a worker.
        owner: Visitor or user who submitted the run.
        state: Current state.
        reason: Sentence on the reason for the state.
        attempt: Number of attempts so far.
        losses: Number of attempts that lost their worker.
        created: Time of submission.
        started: Start of training.
        finished: End of the run.
        heartbeat: Time of the last write.
        version: Version of this package at submission.
        demonstration: True for an example that is visible to all visitors.
        total_steps: Maximum number of training steps; 0 before the start.
        device: Device of training.
        metadata: Labels of arrays as JSON types (see `events.Started`).
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
        """Create from a database row, with current names of study and settings."""
        named = {
            "study": current_study(row["study"]),
            "settings": recorded_settings(row["study"], row["settings"]),
            "metadata": row["words"],
            "state": State(row["state"]),
        }
        return cls(**{k: v for k, v in row.items() if k != "words"} | named)


@dataclass(frozen=True)
class Trace:
    """Training curve of a run, with one entry per step (see `events.Progress`)."""

    step: Int[ndarray, " t"]
    restart: Int[ndarray, " t"]
    elbo: Float[ndarray, " t"]
    seconds: Float[ndarray, " t"]
    best: Float[ndarray, " t"]
    score: Float[ndarray, " t"]

    @classmethod
    def of(cls, rows: list[tuple[Any, ...]]) -> Trace:
        """Create from rows (step, restart, elbo, seconds, best, score)."""
        columns = list(zip(*rows)) if rows else [()] * 6
        whole = [np.array(c, dtype=np.int64) for c in columns[:2]]
        return cls(*whole, *(np.array(c, dtype=np.float64) for c in columns[2:]))


@dataclass(frozen=True)
class UploadRecord:
    """Record of an uploaded table; times are Unix times in seconds.

    Attributes:
        id: Secret id.
        owner: Visitor who uploaded the table.
        name: File name.
        study: Study whose schema was used to read the table.
        rows: Number of rows.
        columns: Names of the columns.
        sha256: SHA-256 of the uploaded file.
        created: Time of the upload.
        deleted: Time of deletion; None if the table exists.
        notes: Notes on inferred and dropped data.
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
        """Create from a database row, with the current name of the study."""
        return cls(**{**row, "study": current_study(row["study"])})


UNSURE = "unsure"  # stored instead of a class for an uncertain label
ADJUDICATOR, IMPORTED = "adjudicator", "imported"


@dataclass(frozen=True)
class Label:
    """Label of an item of a run or upload.

    `scant.store.label_agreement.standing` selects among several labels of an item.

    Attributes:
        item: Row of the item.
        label: Class; "" to take back the label of this annotator and role.
        labeler: Displayed name of the annotator.
        created: Unix time in seconds.
        visitor: Visitor who gave or imported the label; "" without a server and for labels of
            earlier versions.
        role: "" for an ordinary label, `ADJUDICATOR` for a decision between annotators who
            disagree, `IMPORTED` for a label from a file.
        unsure: True if the annotator was uncertain; `label` is then `UNSURE`.
    """

    item: int
    label: str
    labeler: str
    created: float
    visitor: str = ""
    role: str = ""
    unsure: bool = False
