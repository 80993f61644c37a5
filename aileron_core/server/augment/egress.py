"""Sending requests of ours to the model, on the gateway's own connections and with its keys."""

import contextlib
from collections.abc import AsyncGenerator, Callable

from aileron_core.server.augment.upstream_answer import UpstreamAnswer
from aileron_core.server.gateway.augmenting import UNRECORDED, GatewaySide
from aileron_core.server.gateway.forwarding import request_head
from aileron_core.server.gateway.key_injection import LOCKED, StreamMask
from aileron_core.server.gateway.providers import GatewayError, Header
from aileron_core.sessions.traffic import GatewayRequest

_AGENTS_ONLY = frozenset(
    (
        b"content-length",
        b"transfer-encoding",
        b"trailer",
        b"expect",
        b"accept-encoding",
        b"range",
        b"if-range",
        b"idempotency-key",
        b"x-idempotency-key",
    )
)
"""Headers that are true of the agent's request, and not of ours."""


class Egress:
    """Sends what one request of an agent becomes, each time as a request of its own on record.

    Args:
        hold: see `UpstreamAnswer`.
    """

    def __init__(self, side: GatewaySide, hold: Callable[[int], None]) -> None:
        self._side = side
        self._hold = hold
        self._first: GatewayRequest | None = side.passing

    @contextlib.asynccontextmanager
    async def sent(self, body: bytes) -> AsyncGenerator[UpstreamAnswer, None]:
        """Send *body* with the agent's headers; the answer is read while this is entered.

        Raises:
            GatewayError: it could not be sent.
        """
        side, traffic = self._side, self._side.traffic
        passing, self._first = self._first, None
        is_first = passing is not None
        if passing is None:
            passing = traffic.start_request(
                side.session.session_id, side.provider, "POST", side.path.decode("latin-1")
            )
        try:
            async with self._connected(passing, body) as answer:
                yield answer
        except GatewayError as fault:
            if not is_first:  # of the first one, the gateway says it
                passing.is_own_error, passing.needs_vault = True, fault.kind == "locked"
            raise
        finally:
            if not is_first:
                traffic.end_request(passing)

    @contextlib.asynccontextmanager
    async def _connected(
        self, passing: GatewayRequest, body: bytes
    ) -> AsyncGenerator[UpstreamAnswer, None]:
        side = self._side
        if side.is_locked():
            raise GatewayError("locked", LOCKED)
        if side.traffic.is_full(side.session.session_id):
            raise GatewayError("unavailable", UNRECORDED)
        keyed = side.keyed()
        passing.had_key = keyed is not None
        pool = side.pool if keyed is None else side.keyed_pool
        connection = pool.take_idle(side.upstream) or await pool.open_new(side.upstream)
        answer = UpstreamAnswer(
            connection=connection,
            passing=passing,
            traffic=side.traffic,
            mask=None if keyed is None else StreamMask(keyed.key),
            address=side.upstream.address,
            hold=self._hold,
        )
        try:
            connection.expect_response(answer, bodiless=False)
            headers = _headers(side.client.headers if keyed is None else keyed.headers, body)
            head = request_head(side.client, side.upstream, side.target, headers)
            connection.write(head + body)
            side.traffic.add_sent(passing, len(body))
            await connection.drain()
            yield answer
        finally:
            if answer.ended and answer.reusable:
                pool.give_back(side.upstream, connection)
            else:
                connection.drop()


def _headers(headers: list[Header], body: bytes) -> list[Header]:
    return [
        *(each for each in headers if each[0].lower() not in _AGENTS_ONLY),
        (b"Content-Length", b"%d" % len(body)),
        (b"Accept-Encoding", b"identity"),
    ]
