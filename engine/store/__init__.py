"""What outlives a process: runs, events, checkpoints, results, uploads, labels.

SQLite (WAL) in the user's data directory, or what `DATABASE_URL` names. Everything that is read
back is safetensors, JSON or Parquet; never pickle.
"""

from __future__ import annotations

from sqlalchemy import Engine

from engine.store.claim_shelf import ClaimShelf, TakenOver
from engine.store.limit_shelf import LimitShelf
from engine.store.login_repository import LoginRecord, LoginRepository
from engine.store.recording_shelf import RecordingShelf
from engine.store.records import Label, RunRecord, Trace, UploadRecord
from engine.store.schema import connect
from engine.store.sealed import Damaged
from engine.store.trouble import StoreTrouble
from engine.store.upload_shelf import UPLOAD_DAYS, UploadShelf

__all__ = [
    "UPLOAD_DAYS",
    "Damaged",
    "Label",
    "LoginRecord",
    "RunRecord",
    "Store",
    "StoreTrouble",
    "TakenOver",
    "Trace",
    "UploadRecord",
]


class Store(RecordingShelf, LimitShelf, UploadShelf, ClaimShelf, LoginRepository):
    """One database. Safe to share between threads; every method is one transaction.

    Every method raises `StoreTrouble` while the database cannot be reached or written.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str | None = None) -> Store:
        """Open a database by its SQLAlchemy address, made ready if it is new.

        Args:
            url: For instance "sqlite:///runs.db" or "postgres://…"; None: `DATABASE_URL`, else
                `scant.db` in the data directory.
        """
        return cls(connect(url))

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()
