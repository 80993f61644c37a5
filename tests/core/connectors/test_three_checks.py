"""Action subset, manifest, sandbox: each holds with the other two off (the action's: test_executor)."""

import json
from collections.abc import Callable, Collection
from typing import Any

import pytest

from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.http.target import RequestTarget
from aileron_core.connectors.protocol import OpResult, Route
from aileron_core.connectors.wasm import host
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import Failure
from tests.core.connectors.guests import Guest, MakeEngine, call, requesting


class Unguarded(OutgoingClient):
    """The sandbox's own check off: whatever the manifest's check lets through is sent."""

    def check_host(self, target: RequestTarget, allowed: Collection[str]) -> None:
        pass


def failed(result: OpResult) -> Failure:
    assert result.failure is not None
    return result.failure


@pytest.mark.parametrize("url", ["https://api.example/x", "https://API.example.:443/x"])
def test_the_manifest_alone_refuses_a_host_that_it_does_not_list(guest: Guest, make_engine: MakeEngine, service: Any, url: str) -> None:  # fmt: skip
    """No action asked for it, and the sandbox would let it pass: the request does not leave."""
    service.reply("/x")
    route = Route(host="api.example:443", address="127.0.0.1", port=service.port)
    client = Unguarded(routes=[route])
    engine = make_engine(client)
    text = requesting(json.dumps({"url": url}))
    refused = call(guest(text, ("other.example:443",), on=engine))
    assert (failed(refused).class_, failed(refused).boundary) == ("capability_denied", "sandbox")
    assert (refused.requests_sent, service.seen) == (0, [])
    assert call(guest(text, ("api.example:443",), on=engine)).failure is None
    client.close()


def test_the_manifest_alone_refuses_a_credential_that_it_does_not_declare(
    guest: Guest, make_engine: MakeEngine
) -> None:
    """A boundary of its own, and nothing leaves."""
    client = Unguarded()
    text = requesting(json.dumps({"url": "https://api.example/", "credential": "oauth2"}))
    result = call(guest(text, ("api.example:443",), on=make_engine(client)))
    assert failed(result).boundary == "connector_manifest"
    assert result.requests_sent == 0
    client.close()


@pytest.fixture
def no_manifest_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest's check off: every request of a guest reaches the sandbox's client."""
    for name in ("check_target", "check_method", "check_credential"):
        monkeypatch.setattr(host, name, lambda *_args, **_options: None)


@pytest.mark.usefixtures("no_manifest_check")
def test_the_sandbox_alone_refuses_a_host_that_is_not_listed(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """The client holds each hop against the list itself."""
    service.reply("/x")
    text = requesting(json.dumps({"url": "https://api.example/x"}))
    result = call(guest(text, ("other.example:443",), on=routed))
    assert (failed(result).class_, service.seen) == ("capability_denied", [])


@pytest.mark.usefixtures("no_manifest_check")
def test_the_sandbox_alone_refuses_a_redirect_out_of_the_list(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """The first hop was listed; the second is not."""
    service.reply("/x", status=307, Location="https://evil.example/")
    result = call(guest(requesting(json.dumps({"url": "https://api.example/x"})), ("api.example:443",), on=routed))  # fmt: skip
    assert failed(result).details["requested"] == "network:evil.example:443"
    assert len(service.seen) == 1


@pytest.mark.usefixtures("no_manifest_check")
@pytest.mark.parametrize(
    "host_name", ["inside.example", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"]
)
def test_the_sandbox_alone_refuses_an_address_inside(guest: Guest, make_client: Callable[..., OutgoingClient], make_engine: MakeEngine, resolver: Any, service: Any, host_name: str) -> None:  # fmt: skip
    """Listed or not, in whatever spelling: no connector reaches this machine."""
    resolver.table["inside.example"] = ["127.0.0.1"]
    engine = make_engine(make_client(resolver=resolver, guard=AddressGuard()))
    place = f"{host_name}:{service.port}"
    text = requesting(json.dumps({"url": f"http://{place}/x"}))
    result = call(guest(text, (place,), on=engine))
    assert failed(result).class_ == "capability_denied"
    assert "no connector may reach it" in failed(result).message
    assert service.seen == []
