"""What a guest's requests may do and what the result says of them; each check holds alone."""

import json
import time
from collections.abc import Callable, Collection
from typing import Any

import pytest

from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.http.target import RequestTarget
from aileron_core.connectors.protocol import Limits, OpResult, Route
from aileron_core.connectors.wasm import host
from aileron_core.connectors.wasm.engine import WasmEngine
from tests.support.guests import HOSTS, Guest, MakeEngine, call, escaped, failed, requesting, wat

API_KEY = '[capabilities.credential]\nkind = "api_key"\n'


def envelope(path: str = "/x", **more: Any) -> str:
    return json.dumps({"url": f"https://api.example{path}"} | more)


@pytest.fixture
def call_guest(guest: Guest, routed: WasmEngine, service: Any) -> Callable[..., OpResult]:
    """Call a guest that makes requests of the routed service and then says something."""
    service.reply("/x")

    def run(*envelopes: str, more: str = "", **options: Any) -> OpResult:
        says = {"say": options.pop("say")} if "say" in options else {}
        return call(guest(requesting(*envelopes, **says), HOSTS, on=routed, more=more), **options)

    return run


Ask = Callable[..., OpResult]


def test_a_request_is_counted_announced_and_answered(call_guest: Ask, service: Any) -> None:
    """on_request comes before the request, once for each."""
    service.reply("/x", status=201)
    seen_at: list[int] = []
    ask = envelope()
    result = call_guest(ask, ask, on_request=lambda: seen_at.append(len(service.seen)))
    reached: dict[str, Any] = {
        "hosts_asked": HOSTS,
        "last_status": 201,
        "last_status_host": HOSTS[0],
    }
    assert result == OpResult(output={"done": True}, requests_sent=2, **reached)
    assert seen_at == [0, 1]


def test_an_unlisted_host_wins_over_whatever_was_printed(guest: Guest) -> None:
    """The guest goes on and claims success; the host remembers what it refused."""
    result = call(guest(requesting(envelope()), ("other.example:443",)))
    failure = failed(result)
    assert (failure.class_, failure.boundary) == ("capability_denied", "sandbox")
    assert failure.details["requested"] == "network:api.example:443"
    assert (result.output, result.requests_sent) == (None, 0)


def test_a_later_success_clears_what_failed_before(call_guest: Ask) -> None:
    result = call_guest(json.dumps({"url": "https://evil.example/"}), envelope())
    assert (result.failure, result.requests_sent) == (None, 1)


@pytest.mark.parametrize("method", ["POST", "put", "OPTIONS", "X"])
def test_a_preview_only_reads(call_guest: Ask, service: Any, method: str) -> None:
    result = call_guest(envelope(method=method), read_only=True)
    assert failed(result).class_ == "capability_denied"
    assert "a preview may only read" in failed(result).message
    assert (result.requests_sent, service.seen) == (0, [])


@pytest.mark.parametrize("method", ["GET", "head"])
def test_a_redirected_preview_only_reads(call_guest: Ask, service: Any, method: str) -> None:
    service.reply("/x", status=307, Location="/y")
    service.reply("/y")
    assert call_guest(envelope(method=method), read_only=True).failure is None
    assert [seen for seen, *_ in service.seen] == [method.upper()] * 2


@pytest.mark.parametrize("more", ["", API_KEY])
def test_a_credential_is_declared_and_bound(
    guest: Guest, call_guest: Ask, service: Any, more: str
) -> None:
    """A route opens no kind that the manifest does not declare: who tries a connector so finds that out."""
    failure = failed(call_guest(envelope(credential="oauth2"), more=more))
    assert (failure.class_, failure.boundary) == ("capability_denied", "connector_manifest")
    assert service.seen == []
    result = call(guest(requesting(envelope(credential="api_key")), HOSTS, more=API_KEY))
    failure = failed(result)
    assert (failure.class_, failure.boundary) == ("binding_required", "action")
    assert (failure.details["capability_kind"], result.requests_sent) == ("api_key", 0)


BAD: tuple[Any, ...] = (
    *({"url": 5}, {"headers": "x"}, {"headers": {"X": "a\r\nHost: b"}}, {"body": {}}),
    *({"method": "GET /x HTTP/1.1"}, {"method": "CONNECT"}),
    *({"url": "https://u:p@api.example/"}, {"url": "file:///etc/passwd"}),
)


@pytest.mark.parametrize("text", ["not json", *(envelope(**each) for each in BAD)])
def test_a_bad_request_is_the_connectors_fault(call_guest: Ask, service: Any, text: str) -> None:
    result = call_guest(text)
    assert failed(result).class_ == "connector_runtime_error"
    assert "cannot be sent" in failed(result).message
    assert (result.requests_sent, service.seen) == (0, [])


@pytest.mark.parametrize(("status", "retriable"), [(404, False), (429, True), (503, True)])
def test_an_external_error_carries_the_status_that_the_host_saw(
    call_guest: Ask, service: Any, status: int, retriable: bool
) -> None:
    """429 and 5xx are worth another try; the number is the host's, not the guest's word."""
    service.reply("/x", status=status)
    say = '{"error": {"class": "external_api_error", "message": "no", "status": 200}}'
    failure = failed(call_guest(envelope(), say=say))
    assert (failure.class_, failure.retriable) == ("external_api_error", retriable)
    assert failure.details == {"status": status}


def test_a_service_that_breaks_off_counts_as_reached(call_guest: Ask, service: Any) -> None:
    """Whether it did anything is not known, so the request counts."""
    service.hang_up("/x")
    result = call_guest(envelope(method="POST"))
    assert (failed(result).class_, failed(result).retriable) == ("network_error", True)
    assert (result.requests_sent, result.last_status) == (1, None)


@pytest.mark.parametrize(
    ("method", "status", "location", "counts"),
    [
        ("GET", 200, "", (1, 0, 0)),
        ("HEAD", 200, "", (1, 0, 0)),
        ("delete", 500, "", (1, 1, 0)),
        ("OPTIONS", 200, "", (1, 1, 0)),
        ("POST", 303, "/y", (2, 1, 0)),
        ("POST", 307, "/y", (2, 2, 0)),
        ("POST", 307, "https://evil.example/", (1, 1, 0)),
    ],
)
def test_requests_that_may_change_something_are_counted_apart(
    call_guest: Ask, service: Any, method: str, status: int, location: str, counts: tuple[int, ...]
) -> None:
    service.reply("/x", status=status, **({"Location": location} if location else {}))
    service.reply("/y")
    result = call_guest(envelope(method=method))
    assert (result.requests_sent, result.writes_sent, result.writes_unanswered) == counts


def test_a_crash_after_an_answered_write_is_not_the_connectors_own_word(call_guest: Ask) -> None:
    crash = call_guest(envelope(method="POST"), say="{")
    assert (failed(crash).class_, crash.reported_by_connector) == ("connector_runtime_error", False)
    assert (crash.writes_sent, crash.writes_unanswered) == (1, 0)
    answered = call_guest(envelope(method="POST"), say='{"error": {"message": "no such draft"}}')
    assert (failed(answered).message, answered.reported_by_connector) == ("no such draft", True)


def test_a_lost_write_stays_lost_after_one_that_got_through(call_guest: Ask, service: Any) -> None:
    """The later success clears the error for the guest, not what nobody knows."""
    service.hang_up("/x")
    service.reply("/y")
    result = call_guest(envelope(method="POST"), envelope("/y"))
    assert result.failure is None
    assert (result.requests_sent, result.writes_sent, result.writes_unanswered) == (2, 1, 1)


def test_the_wall_limit_includes_a_silent_service(
    guest: Guest, service: Any, leaping: Any, make_client: Any, make_engine: MakeEngine
) -> None:
    service.hold("/x")
    route = Route(host=HOSTS[0], address="127.0.0.1", port=service.port)
    engine = make_engine(make_client(routes=[route], clock=leaping))
    connector = guest(requesting(envelope()), HOSTS, on=engine)
    began = time.monotonic()
    # It has time to send its request, and 0.4 s from there on.
    limits = Limits(wall_seconds=20)
    result = call(connector, limits=limits, on_request=lambda: leaping.leap(19.6))
    assert (failed(result).details["limit"], result.requests_sent) == ("wall_time", 1)
    late = "api.example did not answer before the connector's time of 20s was over"
    assert failed(result).message == late
    assert time.monotonic() - began < 15


def test_a_request_has_a_limit_of_its_own(call_guest: Ask, service: Any) -> None:
    """Shorter than the run's, it is a network error and not wall time."""
    service.hold("/x")
    result = call_guest(envelope(), limits=Limits(wall_seconds=20, http_seconds=0.3))
    assert failed(result).class_ == "network_error"


def test_a_listener_that_fails_stops_the_request(call_guest: Ask, service: Any) -> None:
    """What cannot be announced does not leave; the failure is ours and quotes nothing."""

    def refuse() -> None:
        raise RuntimeError("s3cret detail")

    message = failed(call_guest(envelope(), on_request=refuse)).message
    assert ("bug in Aileron" in message, "s3cret" in message) == (True, False)
    assert service.seen == []


def test_a_body_is_read_whole_or_not_at_all(guest: Guest, routed: WasmEngine, service: Any) -> None:
    """The whole answer, again from its start each time; a range outside memory is -1."""
    service.reply("/x", b'{"output": "from the service"}')
    text = envelope()
    body = f"""
      (drop (call $request (i32.const 1024) (i32.const {len(text)})))
      (if (i32.ne (call $read (i32.const 65530) (i32.const 100)) (i32.const -1)) (then unreachable))
      (if (i32.ne (call $read (i32.const 4096) (i32.const 4)) (i32.const 4)) (then unreachable))
      (if (i32.ne (call $read (i32.const 4096) (i32.const -1)) (call $size)) (then unreachable))
      (call $print (i32.const 1) (i32.const 4096) (call $size))"""
    result = call(guest(wat(body, data=escaped(text)), HOSTS, on=routed))
    assert result.output == "from the service"


class Unguarded(OutgoingClient):
    """The sandbox's own check off: whatever the manifest's check lets through is sent."""

    def check_host(self, target: RequestTarget, allowed: Collection[str]) -> None:
        pass


@pytest.mark.parametrize("url", ["https://api.example/x", "https://API.example.:443/x"])
def test_the_manifest_alone_refuses_a_host_that_it_does_not_list(
    guest: Guest, make_engine: MakeEngine, service: Any, url: str
) -> None:
    """No action asked for it, and the sandbox would let it pass: the request does not leave."""
    service.reply("/x")
    route = Route(host="api.example:443", address="127.0.0.1", port=service.port)
    client = Unguarded(routes=[route])
    engine = make_engine(client)
    text = requesting(json.dumps({"url": url}))
    refused = call(guest(text, ("other.example:443",), on=engine))
    assert (failed(refused).class_, failed(refused).boundary) == ("capability_denied", "sandbox")
    assert (refused.requests_sent, service.seen) == (0, [])
    assert call(guest(text, HOSTS, on=engine)).failure is None
    client.close()


@pytest.fixture
def no_manifest_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest's check off: every request of a guest reaches the sandbox's client."""
    for name in ("check_target", "check_method", "check_credential"):
        monkeypatch.setattr(host, name, lambda *_args, **_options: None)


@pytest.mark.usefixtures("no_manifest_check")
def test_the_sandbox_alone_refuses_what_is_not_listed(call_guest: Ask, service: Any) -> None:
    """The client holds each hop against the list itself."""
    result = call_guest(json.dumps({"url": "https://evil.example/x"}))
    assert (failed(result).class_, service.seen) == ("capability_denied", [])
    service.reply("/x", status=307, Location="https://evil.example/")
    assert failed(call_guest(envelope())).details["requested"] == "network:evil.example:443"
    assert len(service.seen) == 1


@pytest.mark.usefixtures("no_manifest_check")
@pytest.mark.parametrize("name", ["inside.example", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_the_sandbox_alone_refuses_an_address_inside(
    guest: Guest, make_client: Any, make_engine: MakeEngine, resolver: Any, service: Any, name: str
) -> None:
    """Listed or not, in whatever spelling: no connector reaches this machine."""
    resolver.table["inside.example"] = ["127.0.0.1"]
    engine = make_engine(make_client(resolver=resolver, guard=AddressGuard()))
    place = f"{name}:{service.port}"
    text = requesting(json.dumps({"url": f"http://{place}/x"}))
    failure = failed(call(guest(text, (place,), on=engine)))
    assert failure.class_ == "capability_denied"
    assert "no request may go there" in failure.message
    assert service.seen == []
