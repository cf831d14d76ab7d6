"""Login sessions, which end at once on all servers after a logout."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Engine, delete, insert, or_, select, update

from scant.store.schema import LOGINS
from scant.store.trouble import StoreTrouble

IDLE_DAYS = 14.0  # without use, after which a session ends
MAX_DAYS = 30.0  # maximum duration of a session
_DAY = 86_400.0
_USE_SECONDS = 600.0  # resolution of the time of last use, to limit writes


@dataclass(frozen=True)
class LoginRecord:
    """Login session.

    Attributes:
        id: Hash of the secret in the cookie, which cannot be used to log in.
        user: Name of the user.
        credential: `scant_dashboard.auth.accounts.Accounts.credential` at the time of the login.
        created: Unix time of the login in seconds.
        used: Unix time of the last use in seconds, accurate to ten minutes.
    """

    id: str
    user: str
    credential: str
    created: float
    used: float


class LoginRepository:
    """Repository of login sessions, with blocking methods."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add_login(self, login: str, user: str, credential: str) -> None:
        """Store a new session and delete expired ones."""
        now = time.time()
        over = or_(LOGINS.c.created < now - MAX_DAYS * _DAY, LOGINS.c.used < now - IDLE_DAYS * _DAY)
        values = {"id": login, "user": user, "credential": credential, "created": now, "used": now}
        with self.engine.begin() as db:
            db.execute(delete(LOGINS).where(over))
            db.execute(insert(LOGINS).values(values))

    def logins(self, ids: Collection[str]) -> dict[str, LoginRecord]:
        """Return the sessions that have not expired, by id."""
        now = time.time()
        query = select(LOGINS).where(
            LOGINS.c.id.in_(list(ids)),
            LOGINS.c.created >= now - MAX_DAYS * _DAY,
            LOGINS.c.used >= now - IDLE_DAYS * _DAY,
        )
        with self.engine.connect() as db:
            return {row.id: LoginRecord(**row._mapping) for row in db.execute(query)}

    def use_login(self, login: str) -> LoginRecord | None:
        """Return a session and update its last use; None if it does not exist or has expired."""
        record = self.logins([login]).get(login)
        now = time.time()
        if record is not None and now - record.used > _USE_SECONDS:
            used = update(LOGINS).where(LOGINS.c.id == login).values(used=now)
            with suppress(StoreTrouble), self.engine.begin() as db:
                db.execute(used)  # database errors do not end a session
        return record

    def end_login(self, login: str) -> None:
        """Delete a session if it exists."""
        with self.engine.begin() as db:
            db.execute(delete(LOGINS).where(LOGINS.c.id == login))
