"""A page and its websocket: their session belongs to the visitor who opened the page.

Only the server makes session ids, a new one for every page, and signs them. Sessions named by an
address or header are ignored. A websocket cannot open a session: it joins that of a page sent
shortly before, and only for the same browser (by cookie and, if required, login). The token by
which the page names its session contains nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from typing import Any
from weakref import WeakKeyDictionary

from bokeh.protocol.exceptions import MessageError, ProtocolError, ValidationError
from bokeh.server.session import ServerSession
from bokeh.util.token import (
    check_token_signature,
    generate_jwt_token,
    generate_session_id,
    get_session_id,
    get_token_payload,
)
from panel.io.resources import Resources
from panel.io.server import DocHandler, server_html_page_for_session
from panel.io.state import set_curdoc
from tornado.web import HTTPError, RequestHandler, authenticated

from scant_dashboard.auth.same_origin import from_own_page
from scant_dashboard.auth.sessions import login_of
from scant_dashboard.auth.visitor_cookie import COOKIE, verify
from scant_dashboard.server import headers
from scant_dashboard.server.page_protocol import PageProtocol, closing
from scant_dashboard.upstream.socket_steps import SocketSteps

log = logging.getLogger(__name__)

SOCKETS = 2  # connections per page: one, and a second while the first is being lost
FAULTS = 20  # invalid messages after which a connection is closed

# The visitor who opened each page.
_openers: WeakKeyDictionary[ServerSession, str] = WeakKeyDictionary()


def signing_key(key: str) -> bytes:
    """Derive the key for session ids and tokens from the server's secret."""
    return hmac.digest(key.encode(), b"scant page sessions", hashlib.sha256)


def visitor(handler: RequestHandler, key: str) -> str | None:
    """Return the visitor and login session of a request; None without a cookie."""
    present = handler.request.cookies.get(COOKIE)
    result = verify(present.value if present is not None else None, key)
    login = login_of(handler.request)
    return None if result is None else f"{result} {login.id if login is not None else ''}"


class PageHandler(DocHandler):
    """Handler of a page, with a new session."""

    def initialize(self, key: str, policy: headers.Policy, **_: Any) -> None:
        """Store the server's secret and policy; the remaining arguments are Bokeh's."""
        self.key, self.policy = key, policy

    @authenticated
    async def get(self, *args: str, **kwargs: str) -> None:
        """Send the page."""
        session = await self.get_session()
        with set_curdoc(session.document):
            page = server_html_page_for_session(
                session,
                resources=Resources.from_bokeh(self.application.resources()),
                title=session.document.title,
                token=session.token,
                template=session.document.template,
                template_variables=session.document.template_variables,
            )
        page, nonce = headers.add_nonces(page)
        self._prepare_answer(nonce)
        self.write(page)

    @authenticated
    async def head(self, *args: str, **kwargs: str) -> None:
        """Send the headers of GET without building a session."""
        self._prepare_answer("")
        await self.flush()  # otherwise a wrong Content-Length would be sent

    async def get_session(self) -> ServerSession:  # type: ignore[override]
        """Create a session bound to the visitor."""
        app = self.application
        self.request.arguments = _own_arguments(self.request.arguments)
        session_id = generate_session_id(secret_key=app.secret_key, signed=True)
        token = generate_jwt_token(
            session_id,
            secret_key=app.secret_key,
            signed=True,
            expiration=app.session_token_expiration,
        )
        session = await self.application_context.create_session_if_needed(
            session_id, self.request, token
        )
        opener = visitor(self, self.key)
        if opener is not None:
            _openers[session] = opener
        return session

    def _prepare_answer(self, nonce: str) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Security-Policy", self.policy.page(nonce, self.request))


class PageSocket(SocketSteps):
    """The websocket of a page."""

    _ending = False
    _faults = 0

    def initialize(self, key: str, **_: Any) -> None:  # type: ignore[override]
        """Store the server's secret."""
        self.key = key

    async def prepare(self) -> None:
        """Reject pages of other sites and visitors who did not open the page, before the handshake.

        `check_origin` would be too late: tornado does not call it if `Origin` equals `Host`, or if
        `Sec-Fetch-Site` says so.
        """
        if not from_own_page(self.request, self.application.websocket_origins):
            raise HTTPError(403)
        await super().prepare()
        if self.current_user is None:  # was rejected
            return
        session = self._joined(self._offered_token())
        if session is None:
            log.info("a websocket at %s was refused: not its visitor's page", self.request.path)
            raise HTTPError(403)
        if session.connection_count >= SOCKETS:
            raise HTTPError(429)

    async def join_session(self, token: str) -> None:
        """Join the session if it still exists and has a free connection."""
        session = self._joined(token)
        if session is None:  # ended since the handshake; Bokeh would create it again
            self.close(4404, "The page's session has ended.")
            return
        if session.connection_count >= SOCKETS:  # simultaneous handshakes
            self.close(4429, "The page is open already.")
            return
        await super().join_session(token)
        self.handler = PageProtocol()

    async def on_message(self, fragment: str | bytes) -> None:
        """Handle a message fragment, once the session is joined and until the end."""
        if self._ending:
            return
        if self.receiver is None:
            self.close(4400, closing("This page sent too early", "no session was joined yet"))
            return
        await super().on_message(fragment)

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        """Close the connection, and ignore further messages."""
        self._ending = True
        super().close(code, reason)

    def on_close(self) -> None:
        """End the session with its page, which never reconnects to it (`template.reconnect`)."""
        session = self.session
        super().on_close()
        if session is not None and not session.connection_count:
            session.request_expiration()

    async def answer(self, message: Any) -> Any:
        """Handle a message; close the connection after `FAULTS` invalid ones."""
        work = await super().answer(message)
        if work is not None and work.msgtype == "ERROR":
            self._faults += 1
            if self._faults >= FAULTS:  # each is logged with its traceback
                self.close(4400, "This page sent too much that the server does not take.")
        return work

    async def read(self, fragment: str | bytes) -> Any:
        """Read a message fragment; close the connection if it is invalid."""
        try:
            return await self.receiver.consume(fragment)
        except (MessageError, ProtocolError, ValidationError) as error:
            self.close(4400, closing("This page sent what the server does not take", str(error)))
            return None
        except Exception:
            self.unreadable("a message could not be read")
            return None

    def unreadable(self, message: str) -> None:
        """Close the connection with a message."""
        self.close(4400, closing("This page sent what the server cannot read"))

    def failed(self, message: str) -> None:
        """Close the connection with a message."""
        self.close(4500, closing("The server could not take what this page sent"))

    def _offered_token(self) -> str:
        """Return the token that the page offers as a subprotocol."""
        protocols = self.request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        return protocols[1].strip() if len(protocols) == 2 else ""

    def _joined(self, token: str) -> ServerSession | None:
        """Return the live session named by the token, if this visitor opened it."""
        app = self.application
        try:
            if not check_token_signature(token, secret_key=app.secret_key, signed=True):
                return None
            if get_token_payload(token)["session_expiry"] <= time.time():
                return None
            session = self.application_context.get_session(get_session_id(token))
        except Exception:  # an invalid token, or one of an ended session
            return None
        opener, comer = _openers.get(session), visitor(self, self.key)
        return session if opener is not None and opener == comer else None


def _own_arguments(arguments: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Return the query arguments that visitors may set, as valid text.

    Bokeh's and Panel's own are dropped: session ids, tokens, and addresses of scripts.
    """
    return {
        name: [value.decode("utf-8", "replace").encode() for value in values]
        for name, values in arguments.items()
        if not name.startswith("bokeh-")
    }
