"""What the gateway and augment mode are to each other; neither's code is here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.types import Receive

from aileron_core.credentials.upstreams import Provider, Upstream
from aileron_core.server.gateway.client import ConnectionPool
from aileron_core.server.gateway.client_request import ClientRequest
from aileron_core.server.gateway.key_injection import KeyedRequest
from aileron_core.sessions.model import Session
from aileron_core.sessions.traffic import GatewayRequest, TrafficMeter

UNRECORDED = "Aileron cannot write its audit record, so it forwards nothing. Ask the user to check the Aileron console."
_PATHS = frozenset((b"/v1/messages", b"/v1/chat/completions", b"/v1/responses"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySide:
    """A client's request, and what the gateway lends for its answer."""

    client: ClientRequest
    target: bytes
    """Path and query behind our prefix."""
    path: bytes
    session: Session
    provider: Provider
    upstream: Upstream
    passing: GatewayRequest
    """Of the first request to the upstream."""
    traffic: TrafficMeter
    pool: ConnectionPool
    keyed_pool: ConnectionPool
    keyed: Callable[[], KeyedRequest | None]
    """Puts the provider's key into the request; raises GatewayError where that may not be."""
    is_locked: Callable[[], bool]
    """Whether nothing is forwarded, since the vault is locked."""


class AugmentedExchange(Protocol):
    """One request in augment mode."""

    @property
    def client_disconnected(self) -> bool: ...

    def cut(self) -> None: ...

    async def run(self, receive: Receive) -> Receive | None:
        """Answer it; return how to receive it once more where it is to pass as it is."""
        ...


class AugmentRoom(Protocol):
    """What `aileron_core.server.augment.room` is to the gateway."""

    @property
    def session_ids(self) -> tuple[str, ...]: ...

    def exchange(self, side: GatewaySide) -> AugmentedExchange: ...

    def forget(self, session_id: str) -> None: ...


def is_augmented(session: Session, client: ClientRequest, path: bytes) -> bool:
    """Return whether augment mode has a say in this request."""
    return (
        session.terms.augment and client.method == b"POST" and path in _PATHS and not client.upgrade
    )
