"""What outlives a process: runs, events, checkpoints, results, uploads, labels.

SQLite (WAL) in the user's data directory, or what `DATABASE_URL` names. Everything that is read
back is safetensors, JSON or Parquet; never pickle.
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
    """One database. Safe to share between threads; every method is one transaction.

    Every method raises `StoreTrouble` while the database cannot be reached or written. Each is that
    of the repository which has its tables; who uses the store need not know which.
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
        self.put_used = limits.put_used
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
        self.attend = claims.attend
        self.wish = claims.wish
        self.served = claims.served
        self.in_care = claims.in_care

        self.add_login = logins.add_login
        self.logins = logins.logins
        self.use_login = logins.use_login
        self.end_login = logins.end_login

    @property
    def damaged(self) -> Mapping[str, str]:
        """Sentences on the shipped recordings that are damaged, by the id of a demonstration."""
        return self._recordings.damaged

    @classmethod
    def open(cls, url: str | None = None) -> Store:
        """Open a database by its SQLAlchemy address, made ready if it is new.

        Args:
            url: For instance "sqlite:///runs.db" or "postgres://…"; None: `DATABASE_URL`, else
                `scant.db` in the data directory.
        """
        return cls(connect(url))

    def give_back(self) -> bool:
        """Return disk space to the system (see `scant.store.space`); whether there is more."""
        return give_back(self.engine)

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()
