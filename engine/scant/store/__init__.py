"""Database of runs, events, checkpoints, results, uploads and labels.

SQLite (WAL) in the data directory of the user, or the database in `DATABASE_URL`. Stored objects
are safetensors, JSON or Parquet, never pickle.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Engine

from scant.store.checkpoints import CheckpointRepository
from scant.store.claims import ClaimRepository, TakenOver
from scant.store.database import connect
from scant.store.events import EventRepository
from scant.store.labels import LabelRepository
from scant.store.limits import LimitRepository
from scant.store.logins import LoginRecord, LoginRepository
from scant.store.quota import Quota
from scant.store.recordings import RecordingRepository
from scant.store.records import Label, RunRecord, Trace, UploadRecord
from scant.store.runs import RunRepository
from scant.store.sealed import Damaged
from scant.store.space import give_back
from scant.store.trouble import StoreTrouble
from scant.store.uploads import UPLOAD_DAYS, UploadRepository

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


class Store:
    """Thread-safe interface to a database; every method is one transaction.

    Methods are those of the repositories, and raise `StoreTrouble` while the database cannot be
    reached or written.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        runs, events = RunRepository(engine), EventRepository(engine)
        checkpoints = CheckpointRepository(engine)
        self._recordings = recordings = RecordingRepository(engine, runs, events)
        limits, quota = LimitRepository(engine, runs), Quota(engine)
        uploads, labels = UploadRepository(engine, quota), LabelRepository(engine)
        claims, logins = ClaimRepository(engine), LoginRepository(engine)

        self.add_run = runs.add_run
        self.runs = runs.runs
        self.delete_run = runs.delete_run
        self.delete_temporary_runs = runs.delete_temporary_runs
        self.update_run = runs.update_run
        self.typical_seconds = runs.typical_seconds

        self.write = events.write
        self.trace = events.trace
        self.snapshots = events.snapshots
        self.latest_snapshot = events.latest_snapshot
        self.notes = events.notes
        self.report = events.report
        self.model = events.model

        self.begin_attempt = checkpoints.begin_attempt
        self.checkpoint = checkpoints.checkpoint

        self.run = recordings.run
        self.export_recording = recordings.export_recording
        self.import_recording = recordings.import_recording
        self.import_shipped = recordings.import_shipped

        self.live_runs = limits.live_runs
        self.live_runs_from = limits.live_runs_from
        self.add_run_from = limits.add_run_from
        self.origin = limits.origin
        self.used_seconds = limits.used_seconds
        self.last_step = limits.last_step
        self.set_used_seconds = limits.set_used_seconds
        self.remove_run = limits.remove_run

        self.check_disk = quota.check_disk
        self.check_uploads = quota.check_uploads

        self.add_upload = uploads.add_upload
        self.upload = uploads.upload
        self.uploads = uploads.uploads
        self.upload_parquet = uploads.upload_parquet
        self.upload_table = uploads.upload_table
        self.delete_upload = uploads.delete_upload
        self.purge_uploads = uploads.purge_uploads

        self.add_label = labels.add_label
        self.add_labels = labels.add_labels
        self.labels = labels.labels

        self.sign_in = claims.sign_in
        self.sign_out = claims.sign_out
        self.claim = claims.claim
        self.acquire_orphans = claims.acquire_orphans
        self.read_requests = claims.read_requests
        self.wish = claims.wish
        self.served = claims.served
        self.is_claimed = claims.is_claimed

        self.add_login = logins.add_login
        self.logins = logins.logins
        self.use_login = logins.use_login
        self.end_login = logins.end_login

    @property
    def damaged(self) -> Mapping[str, str]:
        """Messages on damaged example recordings of the package, by run id."""
        return self._recordings.damaged

    @classmethod
    def open(cls, url: str | None = None) -> Store:
        """Open a database and create missing tables.

        Args:
            url: SQLAlchemy URL such as "sqlite:///runs.db" or "postgres://…"; None for
                `DATABASE_URL`, else `scant.db` in the data directory.
        """
        return cls(connect(url))

    def give_back(self) -> bool:
        """Return disk space to the system (see `scant.store.space`); True if there is more."""
        return give_back(self.engine)

    def close(self) -> None:
        """Close the connections to the database."""
        self.engine.dispose()
