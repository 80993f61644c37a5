"""The gateway: which requests may pass (of an open session, 256 at once), and which are sent a second time."""

import asyncio
import contextlib
import logging
import resource
import sys
from collections.abc import Callable, Generator, MutableMapping
from typing import Any, Protocol, TypeAlias, cast

from starlette.types import Receive

from aileron_core.app import App
from aileron_core.console_port.events import CoreEvent, SessionsUpdated, VaultStatus
from aileron_core.credentials.upstreams import Provider, Upstream, upstream_at, upstreams
from aileron_core.errors import AileronError
from aileron_core.server.auth import assign_connection, check_address, session_socket_of
from aileron_core.server.gateway.augmenting import (
    UNRECORDED,
    AugmentRoom,
    GatewaySide,
    is_augmented,
)
from aileron_core.server.gateway.client import ConnectionPool, UpstreamConnection
from aileron_core.server.gateway.client_request import CLIENT_REQUEST, PREFIX, ClientRequest
from aileron_core.server.gateway.connect import Dialer
from aileron_core.server.gateway.forwarding import Forwarding, Inspector, request_head, safe_copy
from aileron_core.server.gateway.key_injection import (
    LOCKED,
    KeyedForwarding,
    KeyedRequest,
    with_key,
)
from aileron_core.server.gateway.providers import GatewayError, error_body, provider_of
from aileron_core.server.gateway.tunnel import Tunnel
from aileron_core.server.shares import Shares
from aileron_core.sessions.model import Session
from aileron_core.sessions.traffic import GatewayRequest
from aileron_core.settings import GatewaySettings
from aileron_core.tracing.spans import remote_span

Scope: TypeAlias = MutableMapping[str, Any]

_MOST_OPEN = 256
"""Requests of one session at once. All sessions share a quarter of the files that may be open: each
request takes two, and others need some."""
_log = logging.getLogger(__name__)


class _Open(Protocol):
    def cut(self) -> None: ...


class _Answering(_Open, Protocol):
    @property
    def client_disconnected(self) -> bool: ...


class Gateway:
    """Passes requests below `/gw/<gateway token>/` on, byte for byte.

    Args:
        dialer: another one is for tests, in process only.
        open_room: makes augment mode, at its first session.
        inspector: reads answers, with `[gateway] inspect`.
    """

    def __init__(
        self,
        app: App,
        dialer: Dialer | None,
        open_room: Callable[[], AugmentRoom],
        inspector: Inspector | None,
    ) -> None:
        self._app = app
        self._open_room = open_room
        self._room: AugmentRoom | None = None
        settings = app.options.settings.gateway
        self._inspector = inspector
        self._upstreams = upstreams(settings)
        self._dialer = dialer or Dialer(
            own_port=lambda: int(app.address.url.rpartition(":")[2] or 0), ca_file=settings.ca_file
        )
        self._pool = ConnectionPool(self._dialer)
        self._keyed_pool = ConnectionPool(self._dialer)
        """Connections that carried a provider's key: what an agent sent with its own is never before it."""
        self._open: dict[str, set[_Open]] = {}
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._places = Shares(soft // 4 if soft > 0 else sys.maxsize, _MOST_OPEN)
        self._forget = app.events.subscribe(self._on_event)

    def close(self) -> None:
        self._forget()
        for session_id in tuple(self._open):
            self._cut(session_id)
        if self._inspector is not None:
            self._inspector.close()
        self._pool.close()
        self._keyed_pool.close()
        self._dialer.close()

    def _on_event(self, event: CoreEvent) -> None:
        if isinstance(event, SessionsUpdated):
            for session_id in [each for each in self._open if not self._app.sessions.get(each)]:
                self._cut(session_id)
            for session_id in self._room.session_ids if self._room is not None else ():
                if not self._app.sessions.get(session_id):
                    self.augment_room.forget(session_id)
        elif isinstance(event, VaultStatus) and self._waits_for_vault:
            # Each frame in them may be a request of its own; an answer that is under way is not.
            for session_id in tuple(self._open):
                self._cut(session_id, Tunnel)

    def _cut(self, session_id: str, kind: type = object) -> None:
        for each in tuple(self._open.get(session_id, ())):
            if isinstance(each, kind):
                each.cut()

    async def __call__(self, scope: Scope, receive: Receive) -> None:
        client: ClientRequest = scope["extensions"][CLIENT_REQUEST]
        token, target = _split(client.target)
        path = target.partition(b"?")[0]
        provider = provider_of(client.method, path, client.headers)
        try:
            session = self._admitted(scope, client, token)
        except GatewayError as fault:
            _answer(client, provider, fault)
            return
        passing = self._app.traffic.start_request(
            session.session_id, provider, client.method.decode("latin-1"), path.decode("latin-1")
        )
        parent = [v.decode("latin-1") for n, v in client.headers if n.lower() == b"traceparent"]
        span = self._app.options.tracer.begin(
            "gateway_request", remote_span(parent), session=session.session_id
        )
        try:
            if self._waits_for_vault:
                raise GatewayError("locked", LOCKED)
            if is_augmented(session, client, path):
                again = await self._augmented(client, receive, target, path, session, passing)
                if again is None:
                    return
                receive = again
            keyed, traffic = self._keyed(client, path, session, provider), self._app.traffic
            passing.had_key = keyed is not None
            if keyed is None:
                forwarding = Forwarding(client, passing, traffic)
            else:
                forwarding = KeyedForwarding(client, passing, traffic, keyed.key)
            if self._inspector is not None and not session.terms.augment:
                forwarding.copy = safe_copy(
                    self._inspector, session.session_id, client.method, path
                )
            upstream, target = self._way(session, provider, target)
            with self._answering(session.session_id, forwarding):
                await self._passed(client, receive, target, upstream, forwarding, keyed)
        except GatewayError as fault:
            passing.status, passing.is_own_error = _answer(client, provider, fault), True
            passing.needs_vault = fault.kind == "locked"
        finally:
            self._app.traffic.end_request(passing)
            span.end(status=passing.status)

    @property
    def augment_room(self) -> AugmentRoom:
        """Augment mode, which is made for the first request that needs it."""
        if self._room is None:
            self._room = self._open_room()
        return self._room

    async def _augmented(
        self,
        client: ClientRequest,
        receive: Receive,
        target: bytes,
        path: bytes,
        session: Session,
        passing: GatewayRequest,
    ) -> Receive | None:
        """Answer a request in augment mode; return how to receive it once more where it passes as it is."""
        provider = cast("Provider", passing.provider)

        def keyed() -> KeyedRequest | None:
            return self._keyed(client, path, session, provider)

        upstream, target = self._way(session, provider, target)
        side = GatewaySide(
            client=client,
            target=target,
            path=path,
            session=session,
            provider=provider,
            upstream=upstream,
            passing=passing,
            traffic=self._app.traffic,
            pool=self._pool,
            keyed_pool=self._keyed_pool,
            keyed=keyed,
            is_locked=lambda: self._waits_for_vault,
        )
        exchange = self.augment_room.exchange(side)
        with self._answering(session.session_id, exchange):
            return await exchange.run(receive)
        return None

    @property
    def _waits_for_vault(self) -> bool:
        """Nothing is forwarded: the vault is locked, and config.toml requires that it is not."""
        required = self._app.options.settings.gateway.require_unlocked
        return required and self._app.vault.state == "locked"

    def _way(self, session: Session, provider: Provider, target: bytes) -> tuple[Upstream, bytes]:
        """Return where a request goes, and for what it asks there."""
        if not session.terms.base_url:
            return self._upstreams[provider], target
        # As the provider's own SDK has it: a base URL of OpenAI's ends with the version.
        rest = target.removeprefix(b"/v1") if provider == "openai" else target
        return upstream_at(session.terms.base_url, configured=True), rest

    def _keyed(
        self, client: ClientRequest, path: bytes, session: Session, provider: Provider
    ) -> KeyedRequest | None:
        # A key goes to the address that it was stored for, whatever a row says.
        if session.terms.base_url or not session.terms.key_providers:
            return None
        upstream = self._upstreams[provider]
        keys = self._app.model_keys
        return with_key(
            client, path, session=session, provider=provider, upstream=upstream, keys=keys
        )

    def _admitted(self, scope: Scope, client: ClientRequest, token: bytes) -> Session:
        """Return the session whose request this is.

        Raises:
            GatewayError: it belongs to no open session, or may not pass now.
        """
        try:
            check_address(scope, self._app.address.hosts)
        except AileronError as error:
            raise GatewayError("forbidden", error.message) from None
        session = self._app.sessions.authenticate_gateway(token.decode("latin-1"))
        own = session_socket_of(scope)
        if session is None or (own is not None and own != session.session_id):
            raise GatewayError(
                "unauthorized",
                "This gateway address does not belong to an open Aileron session. Start the agent again.",
            )
        assign_connection(scope, session, streams=True)
        if client.method == b"CONNECT":
            raise GatewayError("invalid", "The gateway does not forward CONNECT.")
        if client.upgrade and _body_of(client)[0]:
            message = "A request with Upgrade must not have a body."
            raise GatewayError("invalid", message)
        if not self._places.fits(session.session_id):
            held = self._places.held(session.session_id)
            raise GatewayError(
                "too_many",
                f"This session has too many open requests ({held}). Wait until some have ended.",
            )
        settings = self._app.options.settings.gateway
        if (
            not self._app.accepted_settings.count
            and settings != GatewaySettings()
            and not self._waits_for_vault
        ):
            raise GatewayError(
                "unavailable",
                "config.toml has settings for model traffic, and is not verified: a person has to unlock "
                "the vault in the console, and accept config.toml where it asks for that.",
            )
        if self._app.traffic.is_full(session.session_id):
            raise GatewayError("unavailable", UNRECORDED)
        return session

    @contextlib.contextmanager
    def _answering(self, session_id: str, each: _Answering) -> Generator[None, None, None]:
        """Count *each* as open while entered, and cut it where its session ends or answering fails."""
        opened = self._open.setdefault(session_id, set())
        opened.add(each)
        self._places.add(session_id)
        try:
            yield
        except GatewayError:
            if not each.client_disconnected:
                raise
        except asyncio.CancelledError:
            each.cut()
            raise
        except Exception as error:  # noqa: BLE001 - the HTTP edge
            # Type only: the message may quote what passed.
            _log.error("a model request ended with %s", type(error).__name__)
            each.cut()
        finally:
            self._places.give_back(session_id)
            opened.discard(each)
            if not opened:
                self._open.pop(session_id, None)

    async def _passed(
        self,
        client: ClientRequest,
        receive: Receive,
        target: bytes,
        upstream: Upstream,
        forwarding: Forwarding,
        keyed: KeyedRequest | None,
    ) -> None:
        if not upstream.is_below_base_path(target.partition(b"?")[0]):
            message = "The gateway does not forward a path with `.` or `..` as a segment, in any encoding: "
            raise GatewayError(
                "invalid", f"{message}it could leave the base path of {upstream.host}."
            )
        client.listen(forwarding)
        head = request_head(client, upstream, target, keyed.headers if keyed else client.headers)
        pool = self._keyed_pool if keyed else self._pool
        has_body, chunked = _body_of(client)
        connection = pool.take_idle(upstream)
        while True:
            if connection is None:
                connection = await self._opened(pool, upstream, forwarding)
            if connection is None:
                return
            forwarding.attach(connection)
            if has_body:
                await forwarding.send_with_body(head, receive, chunked=chunked)
            else:
                forwarding.send(head)
            outcome = await forwarding.done
            if outcome != "stale" or has_body or client.method not in (b"GET", b"HEAD"):
                break
            connection = None
            forwarding.prepare_retry()
        if outcome == "whole":
            if forwarding.reusable:
                pool.give_back(upstream, connection)
            else:
                connection.close()
        elif outcome == "switched":
            await self._tunnelled(client, connection, forwarding)
        elif isinstance(forwarding, KeyedForwarding) and forwarding.encoded:
            raise GatewayError(
                "unreachable",
                f"{upstream.address} compressed its answer, although it was asked not to. Such an answer "
                "cannot be searched for the key, so it was not passed on.",
            )
        elif outcome in ("stale", "unanswered"):
            raise GatewayError(
                "unreachable", f"{upstream.address} closed the connection without an answer."
            )

    async def _opened(
        self, pool: ConnectionPool, upstream: Upstream, forwarding: Forwarding
    ) -> UpstreamConnection | None:
        """Return a new connection; None where the client did not wait for it."""
        loop = asyncio.get_running_loop()
        dialling = loop.create_task(pool.open_new(upstream), name="gateway dial")
        try:
            await asyncio.wait((dialling, forwarding.done), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not dialling.done():
                dialling.cancel()
        if not forwarding.done.done():
            return dialling.result()
        if not dialling.cancelled() and dialling.done() and dialling.exception() is None:
            dialling.result().close()
        return None

    async def _tunnelled(
        self, client: ClientRequest, connection: UpstreamConnection, forwarding: Forwarding
    ) -> None:
        passing, traffic = forwarding.request, self._app.traffic
        upstream = connection.detach_transport()
        if upstream is None or client.disconnected or self._waits_for_vault:
            if upstream is not None:
                upstream.abort()
            client.abort_response(at_once=True)
            return
        tunnel = Tunnel(
            client.connection,
            upstream,
            sent=lambda count: traffic.add_sent(passing, count),
            came=lambda count: traffic.add_received(passing, count),
        )
        opened = self._open[passing.session_id]
        opened.add(tunnel)
        try:
            tunnel.begin(forwarding.rest)
            await tunnel.ended.wait()
        finally:
            tunnel.cut()
            opened.discard(tunnel)


def _split(target: bytes) -> tuple[bytes, bytes]:
    """Return the token, and the rest of the target, which goes to the upstream."""
    rest = target[len(PREFIX) :]
    before, question, query = rest.partition(b"?")
    token, _, path = before.partition(b"/")
    return token, b"/%b%b%b" % (path, question, query)


def _body_of(client: ClientRequest) -> tuple[bool, bool]:
    """Return whether the request has a body, and whether that comes in chunks."""
    has_body = False
    for name, value in client.headers:
        lower = name.lower()
        if lower == b"transfer-encoding":
            return True, True
        if lower == b"content-length" and value.strip() != b"0":
            has_body = True
    return has_body, False


def _answer(client: ClientRequest, provider: Provider, fault: GatewayError) -> int:
    """Answer with an error of our own; return its status."""
    status, body = error_body(provider, fault)
    lines = [
        b"HTTP/1.1 %d %b\r\n" % (status, _REASONS[status]),
        b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body),
    ]
    if not client.is_complete:
        client.close_after()
    if not client.keeps_alive:
        lines.append(b"Connection: close\r\n")
    lines.append(b"\r\n")
    if client.method != b"HEAD":
        lines.append(body)
    client.start()
    client.write(lines)
    client.finish()
    return status


_REASONS = {
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
}
