"""Login sessions of a server with `--auth`.

The cookie holds a signed random id and no name. The store holds the id's hash, so that logging out
ends the session on every server of the database; sessions become invalid when the user file no
longer has the user or the password changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from tornado.httputil import HTTPServerRequest
from tornado.ioloop import PeriodicCallback
from tornado.web import HTTPError, create_signed_value, decode_signed_value

from scant.store import Store, StoreTrouble
from scant.store.logins import MAX_DAYS, LoginRecord
from scant_dashboard.auth.accounts import Accounts

COOKIE = "scant_login"
CHECK_SECONDS = 5.0  # between checks whether users of open pages are still logged in
HASHERS = 2  # passwords checked at once, 32 MiB each
HASHES_WAITING = 16  # maximum queue; further attempts are rejected
_POLICY_VIOLATION = 1008  # websocket status code
_ATTRIBUTE = "scant_login"  # attribute of a checked request

T = TypeVar("T")
log = logging.getLogger(__name__)


class Busy(RuntimeError):
    """Too many passwords are waiting to be checked."""


@dataclass(frozen=True)
class Login:
    """A login session.

    Attributes:
        id: Id in the store, which differs from the cookie's value.
        user: Name of the user.
    """

    id: str
    user: str


def login_of(request: Any) -> Login | None:
    """Return the login session of a request checked by `LoginSessions.check`, otherwise None.

    Args:
        request: Tornado's request, or Bokeh's in `session_context.request`. Browsers cannot set the
            attribute that is read here.
    """
    result = getattr(request, _ATTRIBUTE, None)
    return result if isinstance(result, Login) else None


def login_user(request: Any) -> str | None:
    """Return the name of the logged-in user (see `login_of`)."""
    login = login_of(request)
    return login.user if login else None


class Connection(Protocol):
    """Connection of an open page: a websocket, or an event stream."""

    @property
    def ws_connection(self) -> Any:
        """The object that holds the socket."""

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        """End the connection."""


class LoginSessions:
    """Begins, checks and ends login sessions. Created and used on the event loop's thread.

    Args:
        store: Store of the sessions.
        accounts: The user accounts.
        key: Key that signs the cookie.
    """

    def __init__(self, store: Store, accounts: Accounts, key: str) -> None:
        self.store, self.accounts, self.key = store, accounts, key
        self._hashers = ThreadPoolExecutor(HASHERS, "scant-password")
        self._readers = ThreadPoolExecutor(2, "scant-login")
        self._hashing = 0
        self._sockets: dict[str, WeakSet[Connection]] = {}
        self._checking = PeriodicCallback(self.close_ended, 1000 * CHECK_SECONDS)
        self._checking.start()

    def close(self) -> None:
        """Stop checking open pages; requests during shutdown are still checked."""
        self._checking.stop()

    async def authenticate(self, name: str, password: str) -> str | None:
        """Return the user's credential for a new session; None if authentication fails.

        Raises:
            Busy: Too many passwords are being checked already.
        """
        if self._hashing >= HASHERS + HASHES_WAITING:
            raise Busy("too many passwords are being checked")
        self._hashing += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._hashers, self.accounts.authenticate, name, password
            )
        finally:
            self._hashing -= 1

    async def begin(self, user: str, credential: str) -> str:
        """Begin a session with a new id; return the cookie's value.

        Raises:
            HTTPError: 503, the store does not answer.
        """
        secret = secrets.token_urlsafe(32)
        await self._stored(self.store.add_login, _hashed(secret), user, credential)
        return create_signed_value(self.key, COOKIE, secret).decode()

    async def check(self, request: HTTPServerRequest) -> Login | None:
        """Return the login session of a request by its cookie; `login_of` returns it afterwards.

        Raises:
            HTTPError: 503, the store does not answer.
        """
        morsel = request.cookies.get(COOKIE)
        secret = decode_signed_value(
            self.key, COOKIE, morsel.value if morsel else None, max_age_days=MAX_DAYS
        )
        login = None
        if secret is not None:
            login = await self._stored(self._find, _hashed(secret.decode("utf-8", "replace")))
        setattr(request, _ATTRIBUTE, login)
        return login

    def attach(self, login: Login, socket: Connection) -> None:
        """Close this connection of an open page when its login session ends."""
        self._sockets.setdefault(login.id, WeakSet()).add(socket)

    async def end(self, login: Login) -> None:
        """End a session, with the connections of its open pages; other servers follow.

        Raises:
            HTTPError: 503, the store does not answer.
        """
        await self._stored(self.store.end_login, login.id)
        self._close(login.id)

    async def close_ended(self) -> None:
        """Close connections of open pages whose login session has ended on any server."""
        for login in [login for login, open_ in self._sockets.items() if not open_]:
            del self._sockets[login]
        if not self._sockets:
            return
        try:
            live = await self._stored(self._live, list(self._sockets))
        except HTTPError:
            return  # logged; the pages stay open until the store answers
        for login in [login for login in self._sockets if login not in live]:
            self._close(login)

    def _close(self, login: str) -> None:
        for socket in list(self._sockets.get(login, ())):
            connection = socket.ws_connection
            socket.close(_POLICY_VIOLATION, "logged out")
            stream = getattr(connection, "stream", None)
            if stream is not None:  # immediately, without waiting for the browser
                stream.close()

    def _find(self, login: str) -> Login | None:
        record = self.store.use_login(login)
        return Login(login, record.user) if record and self._valid(record) else None

    def _live(self, logins: list[str]) -> set[str]:
        records = self.store.logins(logins).values()
        return {record.id for record in records if self._valid(record)}

    def _valid(self, record: LoginRecord) -> bool:
        """Whether user and password are unchanged since the login."""
        return self.accounts.credential(record.user) == record.credential

    async def _stored(self, method: Callable[..., T], *arguments: Any) -> T:
        """Call the store in a thread, so that a slow database does not block other pages."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._readers, method, *arguments)
        except StoreTrouble as error:
            log.error("login sessions cannot be read or written: %s", error.why)
            raise HTTPError(503, reason="The database does not answer") from None


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
