"""Authentication, and the checks that every request passes first.

Plain ASGI, outermost: exact Host, no Origin, bounded body, then the principal, and how many requests
a session has open. What each principal may do stands with the routes.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aileron_core.console.device_service import DeviceService
from aileron_core.containment.detection import Containment
from aileron_core.errors import (
    AileronError,
    Forbidden,
    InvalidRequest,
    PayloadTooLarge,
    RateLimited,
)
from aileron_core.home.owner import Peer
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.error_responses import error_response
from aileron_core.sessions.model import Session

MAX_BODY = 1024 * 1024
MAX_REVIEW_BODY = 64 * 1024
REVIEW_API = "/review/api/"
MAX_RESULT_BODY = 5 * 1024 * 1024
"""Of a result of a built-in tool, which the person's own launcher carries."""
SESSION_SOCKET = "aileron.own_socket"
"""Scope extension: the id of the session whose own socket the request came over."""
DROP_CONNECTION = "aileron.drop"
"""Scope extension: a function that ends the connection at once, whatever is still to be sent."""
ASSIGN_CONNECTION = "aileron.admit"
"""Scope extension: a function that assigns the connection to the session of a valid token."""
_MOST_REQUESTS = 128
"""Of one session at once, over sockets. The relay needs two standing ones and one for each call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """On whose behalf a request is made."""

    kind: Literal["anonymous", "session"]
    session: Session | None = None
    peer: Peer | None = None
    """Set when it came over the home's own socket, from a process of this user."""


def request_principal(scope: Scope) -> Principal:
    """Return the principal that `Guard` determined."""
    principal = scope.get("aileron.principal")
    return principal if isinstance(principal, Principal) else Principal(kind="anonymous")


def bearer_token(scope: Scope) -> str:
    """Return the bearer token of a request, whatever it opens; empty without one."""
    for name, value in scope["headers"]:
        if name.lower() == b"authorization":
            scheme, _, token = value.partition(b" ")
            if scheme.lower() == b"bearer":
                return str(token.strip().decode("latin-1"))
    return ""


def challenge_proof(token_hash: str, nonce: str, address: str) -> str:
    """Return what a console at *address* answers to a challenge for the token with this hash.

    It names the address, so a stranger on a console's old port cannot pass on the proof of the
    console that now listens elsewhere.
    """
    return hmac.new(token_hash.encode(), f"{nonce}:{address}".encode(), hashlib.sha256).hexdigest()


def _check_length(stated: bytes, limit: int) -> None:
    if not stated.isdigit():
        raise InvalidRequest("Content-Length is not a number.")
    if len(stated) > 9 or int(stated) > limit:
        raise PayloadTooLarge(f"The body is larger than {limit} bytes.")


def came_over_tcp(scope: Scope) -> bool:
    """Return whether a request came over no Unix socket."""
    return _peer(scope) is None and session_socket_of(scope) is None


def check_address(scope: Scope, hosts: Collection[str]) -> None:
    """Check that a request over TCP names this console, and that none comes from a web page.

    Raises:
        Forbidden: it must not be answered.
    """
    _check_host(scope, hosts)
    if any(name == b"origin" for name, _ in scope["headers"]):
        raise Forbidden("Requests from web pages (with an Origin header) are not accepted.")


def check_review(scope: Scope, hosts: Collection[str], origins: Collection[str]) -> None:
    """Check that a request for the review page's API is of a page at one of *origins*, by POST.

    Browsers alone write these headers, and no page can have them say anything else.

    Raises:
        Forbidden: it must not be answered.
    """
    _check_host(scope, hosts)
    named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
    sites = [value for name, value in scope["headers"] if name == b"sec-fetch-site"]
    known = len(named) == 1 and named[0] in origins and sites == [b"same-origin"]
    if scope["method"] != "POST" or not known:
        raise Forbidden("Only the review page itself may ask this.")


def _check_host(scope: Scope, hosts: Collection[str]) -> None:
    # Made in this process, it has no address: every request that came over a socket has one.
    if came_over_tcp(scope) and scope.get("server") is not None:
        named = [value.strip(b" \t") for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or named[0].decode("latin-1") not in hosts:
            raise Forbidden("This Host is not accepted. Use the address that the console shows.")


class Guard:
    """Middleware: refuses requests that no route should see, and sets the principal."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        agents: AgentApi,
        hosts: Callable[[], frozenset[str]],
        devices: DeviceService,
        on_containment: Callable[[str, Containment], Awaitable[None]],
    ) -> None:
        self._app = app
        self._agents = agents
        self._hosts = hosts
        self._devices = devices
        self._on_containment = on_containment
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        # Blanks around a value are no part of it (RFC 9110, 5.5); the fast parser leaves the last ones.
        scope["headers"] = [(name.lower(), value.strip(b" \t")) for name, value in scope["headers"]]
        headers: dict[bytes, bytes] = dict(scope["headers"])
        peer = _peer(scope)
        own = session_socket_of(scope)
        is_result = peer is not None and scope["path"].endswith("/tool-results")
        limit = MAX_RESULT_BODY if is_result else MAX_BODY
        try:
            if scope["path"].startswith(REVIEW_API) and came_over_tcp(scope):
                limit = MAX_REVIEW_BODY
                check_review(scope, self._devices.hosts, self._devices.origins)
            elif scope["path"].startswith("/review"):  # a person's proxy may name itself there
                check_address(scope, self._devices.hosts)
            else:
                check_address(scope, self._hosts())
            _check_length(headers.get(b"content-length", b"0"), limit)
        except AileronError as error:
            await error_response(error)(scope, receive, send)
            return
        principal = (
            self._principal(scope, headers, peer) if own is None else self._socket_owner(own)
        )
        if own is None and principal.session is not None and principal.session.claims_contained:
            await self._record_other_way(principal.session, scope, peer)
        scope["aileron.principal"] = principal
        if principal.session is not None:
            assign_connection(scope, principal.session)
        if principal.session is None or scope.get("server") is None:
            await self._app(scope, _Bounded(receive, limit), send)
        else:
            await self._counted(principal.session, scope, receive, send)

    async def _counted(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a session's request, unless the session has too many open."""
        key = session.session_id
        if self._open[key] >= _MOST_REQUESTS:
            refusal = RateLimited(
                f"This session already has {_MOST_REQUESTS} open requests. Wait until some have ended."
            )
            await error_response(refusal)(scope, receive, send)
            return
        self._open[key] += 1
        try:
            await self._app(scope, _Bounded(receive, MAX_BODY), send)
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]

    async def _record_other_way(self, session: Session, scope: Scope, peer: Peer | None) -> None:
        """Record that a contained session's token came by another way than the session's own socket."""
        if (
            peer is not None
        ):  # a process that reaches the home's socket sees the home, so it is not contained
            await self._on_containment(session.session_id, "none")
        elif scope.get("server") is not None:
            await self._on_containment(session.session_id, "claimed")

    def _socket_owner(self, session_id: str) -> Principal:
        """Return the session that the socket belongs to; a token sent over it is ignored."""
        session = self._agents.session(session_id)
        return Principal(kind="session" if session else "anonymous", session=session)

    def _principal(self, scope: Scope, headers: dict[bytes, bytes], peer: Peer | None) -> Principal:
        if b"authorization" in headers:
            session = self._agents.authenticate(bearer_token(scope))
            if session is not None:
                return Principal(kind="session", session=session, peer=peer)
            # A wrong token is refused even where the socket alone would do.
            return Principal(kind="anonymous")
        return Principal(kind="anonymous", peer=peer)


def _peer(scope: Scope) -> Peer | None:
    extensions: dict[str, Any] = scope.get("extensions") or {}
    peer = extensions.get("aileron.peer")
    return peer if isinstance(peer, Peer) else None


def assign_connection(scope: Scope, session: Session, *, streams: bool = False) -> None:
    """Count the connection of a request, if it has one, among those of *session*.

    Args:
        scope: of a request with a valid token.
        streams: the request's body may take any time.
    """
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if assign := extensions.get(ASSIGN_CONNECTION):
        assign(session.session_id, streams=streams)


def hold_connection(scope: Scope, device_id: str) -> None:
    """Count the connection of a signed request as the device's own, so that no stranger's takes its place."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if assign := extensions.get(ASSIGN_CONNECTION):
        assign(device_id)


def drop_connection(scope: Scope) -> None:
    """End the connection of a request at once, whatever is still to be sent on it."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if drop := extensions.get(DROP_CONNECTION):
        drop()


def session_socket_of(scope: Scope) -> str | None:
    """Return the id of the session whose own socket the request came over, if it did."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    own = extensions.get(SESSION_SOCKET)
    return own if isinstance(own, str) else None


class _Bounded:
    """A `receive` that refuses a body over the limit, for requests without a Content-Length."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._seen = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            if self._seen > self._limit:
                raise PayloadTooLarge(f"The body is larger than {self._limit} bytes.")
        return message
