"""Login sessions, so that logging out ends one at once, on every server of the database."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Engine, delete, insert, or_, select, update

from scant.store.schema import LOGINS
from scant.store.trouble import StoreTrouble

IDLE_DAYS = 14.0  # after which a login session ends that nobody used
MAX_DAYS = 30.0  # after which every login session ends
_DAY = 86_400.0
_USE_SECONDS = 600.0  # to which the last use is known; not every page view need write


@dataclass(frozen=True)
class LoginRecord:
    """One login session.

    Attributes:
        id: A hash of the secret in the browser's cookie: who reads the database cannot log in.
        user: The user's name.
        credential: Of `scant_dashboard.auth.accounts.Accounts.credential` when the user logged in.
        created: Seconds since the epoch, as is `used`, the last use to within ten minutes.
    """

    id: str
    user: str
    credential: str
    created: float
    used: float


class LoginRepository:
    """The login sessions. Methods block."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add_login(self, login: str, user: str, credential: str) -> None:
        """Begin a login session, and clear away those that are over."""
        now = time.time()
        over = or_(LOGINS.c.created < now - MAX_DAYS * _DAY, LOGINS.c.used < now - IDLE_DAYS * _DAY)
        values = {"id": login, "user": user, "credential": credential, "created": now, "used": now}
        with self.engine.begin() as db:
            db.execute(delete(LOGINS).where(over))
            db.execute(insert(LOGINS).values(values))

    def logins(self, ids: Collection[str]) -> dict[str, LoginRecord]:
        """Those of some login sessions that are not over, by id."""
        now = time.time()
        query = select(LOGINS).where(
            LOGINS.c.id.in_(list(ids)),
            LOGINS.c.created >= now - MAX_DAYS * _DAY,
            LOGINS.c.used >= now - IDLE_DAYS * _DAY,
        )
        with self.engine.connect() as db:
            return {row.id: LoginRecord(**row._mapping) for row in db.execute(query)}

    def use_login(self, login: str) -> LoginRecord | None:
        """A login session, which somebody uses now; None when it is over or never was."""
        record = self.logins([login]).get(login)
        now = time.time()
        if record is not None and now - record.used > _USE_SECONDS:
            used = update(LOGINS).where(LOGINS.c.id == login).values(used=now)
            with suppress(StoreTrouble), self.engine.begin() as db:
                db.execute(used)  # a full disk or a locked database logs nobody out
        return record

    def end_login(self, login: str) -> None:
        """End a login session, if it is there."""
        with self.engine.begin() as db:
            db.execute(delete(LOGINS).where(LOGINS.c.id == login))
