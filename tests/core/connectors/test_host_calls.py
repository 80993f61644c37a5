"""What a guest's requests may do, and what the op's result says of them."""

import asyncio
import http.server
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Limits, OpResult, Route
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import Failure
from tests.core.connectors.guests import Guest, MakeEngine, call, escaped, requesting, wat

HOSTS = ("api.example:443",)
API_KEY = '[capabilities.credential]\nkind = "api_key"\n'


def envelope(path: str = "/x", **more: Any) -> str:
    return json.dumps({"url": f"https://api.example{path}", **more})


def failed(result: OpResult) -> Failure:
    assert result.failure is not None
    assert result.output is None
    return result.failure


def test_a_request_is_counted_announced_and_answered(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """on_request comes before the request, once for each."""
    service.reply("/x", status=201)
    seen_at: list[int] = []
    connector = guest(requesting(envelope(), times=2), HOSTS, on=routed)
    result = call(connector, on_request=lambda: seen_at.append(len(service.seen)))
    place = HOSTS[0]
    assert result == OpResult(
        output={"done": True},
        requests_sent=2,
        last_status=201,
        hosts_asked=(place,),
        last_status_host=place,
    )
    assert seen_at == [0, 1]


def test_an_unlisted_host_wins_over_whatever_was_printed(guest: Guest) -> None:
    """The guest goes on and claims success; the host remembers what it refused."""
    result = call(guest(requesting(envelope()), ("other.example:443",)))
    failure = failed(result)
    assert (failure.class_, failure.boundary) == ("capability_denied", "sandbox")
    assert failure.details["requested"] == "network:api.example:443"
    assert result.requests_sent == 0


def test_a_later_success_clears_what_failed_before(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """A connector that tries something else and gets through has succeeded."""
    service.reply("/x")
    bad, good = json.dumps({"url": "https://evil.example/"}), envelope()
    body = (
        f"(drop (call $request (i32.const 1024) (i32.const {len(bad)})))"
        f"(drop (call $request (i32.const {1024 + len(bad)}) (i32.const {len(good)})))"
    )
    result = call(guest(wat(body, data=escaped(bad + good)), HOSTS, on=routed))
    assert (result.failure, result.output, result.requests_sent) == (None, {}, 1)


@pytest.mark.parametrize("method", ["POST", "put", "DELETE", "PATCH", "OPTIONS", "X"])
def test_a_preview_only_reads(guest: Guest, routed: WasmEngine, service: Any, method: str) -> None:
    """Anything but GET and HEAD is refused before it leaves."""
    service.reply("/x")
    connector = guest(requesting(envelope(method=method)), HOSTS, on=routed)
    result = call(connector, read_only=True)
    assert failed(result).class_ == "capability_denied"
    assert "a preview may only read" in failed(result).message
    assert (result.requests_sent, service.seen) == (0, [])


@pytest.mark.parametrize("method", ["GET", "head"])
def test_a_preview_may_get_and_head(
    guest: Guest, routed: WasmEngine, service: Any, method: str
) -> None:
    """Reading is what it is for."""
    service.reply("/x")
    connector = guest(requesting(envelope(method=method)), HOSTS, on=routed)
    assert call(connector, read_only=True).failure is None


def test_a_preview_that_is_redirected_still_only_reads(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """No redirect turns a GET into anything else."""
    service.reply("/x", status=307, Location="/y")
    service.reply("/y")
    assert call(guest(requesting(envelope()), HOSTS, on=routed), read_only=True).failure is None
    assert [method for method, *_ in service.seen] == ["GET", "GET"]


def test_a_credential_that_nobody_bound_is_required(guest: Guest) -> None:
    """The request does not go out without it."""
    connector = guest(requesting(envelope(credential="api_key")), HOSTS, more=API_KEY)
    result = call(connector)
    failure = failed(result)
    assert (failure.class_, failure.boundary) == ("binding_required", "action")
    assert failure.details["capability_kind"] == "api_key"
    assert result.requests_sent == 0


@pytest.mark.parametrize("more", ["", API_KEY])
def test_a_credential_of_another_kind_is_denied(guest: Guest, more: str) -> None:
    """Only the kind that the manifest declares can be asked for."""
    result = call(guest(requesting(envelope(credential="oauth2")), HOSTS, more=more))
    assert failed(result).class_ == "capability_denied"
    assert failed(result).boundary == "connector_manifest"


def test_a_routed_request_goes_out_without_credential(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """A service of this machine gets no secret, and needs none."""
    service.reply("/x")
    connector = guest(requesting(envelope(credential="api_key")), HOSTS, on=routed, more=API_KEY)
    assert call(connector).failure is None
    assert "Authorization" not in service.seen[0][2]


@pytest.mark.parametrize("more", ["", API_KEY])
def test_a_route_opens_no_kind_that_the_manifest_does_not_declare(
    guest: Guest, routed: WasmEngine, service: Any, more: str
) -> None:
    """Who tries a connector against a service of their own finds that out."""
    service.reply("/x")
    connector = guest(requesting(envelope(credential="oauth2")), HOSTS, on=routed, more=more)
    assert failed(call(connector)).class_ == "capability_denied"
    assert service.seen == []


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        "{}",
        '{"url": ""}',
        '{"url": 5}',
        '{"url": "https://api.example/", "headers": {"a": 1}}',
        '{"url": "https://api.example/", "headers": "x"}',
        '{"url": "https://api.example/", "headers": {"X": "a\\r\\nHost: b"}}',
        '{"url": "https://api.example/", "body": {}}',
        '{"url": "https://api.example/", "method": 1}',
        '{"url": "https://api.example/", "method": "GET /x HTTP/1.1"}',
        '{"url": "https://api.example/", "method": "CONNECT"}',
        '{"url": "https://u:p@api.example/"}',
        '{"url": "file:///etc/passwd"}',
    ],
)
def test_a_malformed_request_is_the_connectors_fault(
    guest: Guest, routed: WasmEngine, service: Any, text: str
) -> None:
    """Nothing leaves, and the message says what is wrong with it."""
    service.reply("/")
    result = call(guest(requesting(text), HOSTS, on=routed))
    assert failed(result).class_ == "connector_runtime_error"
    assert "cannot be sent" in failed(result).message
    assert (result.requests_sent, service.seen) == (0, [])


@pytest.mark.parametrize(
    ("status", "retriable"), [(404, False), (400, False), (429, True), (500, True), (503, True)]
)
def test_an_external_error_carries_the_status_that_the_host_saw(guest: Guest, routed: WasmEngine, service: Any, status: int, retriable: bool) -> None:  # fmt: skip
    """429 and 5xx are worth another try; the number is the host's, not the guest's word."""
    service.reply("/x", status=status)
    say = '{"error": {"class": "external_api_error", "message": "no", "status": 200}}'
    failure = failed(call(guest(requesting(envelope(), say=say), HOSTS, on=routed)))
    assert (failure.class_, failure.retriable) == ("external_api_error", retriable)
    assert failure.details == {"status": status}


def test_a_service_that_breaks_off_counts_as_reached(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """Whether it did anything is not known, so the request counts."""

    def hang_up(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    service.answers["/x"] = hang_up
    result = call(guest(requesting(envelope(method="POST")), HOSTS, on=routed))
    assert (failed(result).class_, failed(result).retriable) == ("network_error", True)
    assert (result.requests_sent, result.last_status) == (1, None)


@pytest.mark.parametrize(
    ("method", "status", "location", "counts"),
    [
        ("GET", 200, "", (1, 0, 0)),
        ("HEAD", 200, "", (1, 0, 0)),
        ("POST", 200, "", (1, 1, 0)),
        ("delete", 500, "", (1, 1, 0)),
        ("OPTIONS", 200, "", (1, 1, 0)),
        ("POST", 303, "/y", (2, 1, 0)),
        ("POST", 307, "/y", (2, 2, 0)),
        ("POST", 307, "https://evil.example/", (1, 1, 0)),
    ],
)
def test_requests_that_may_change_something_are_counted_apart(guest: Guest, routed: WasmEngine, service: Any, method: str, status: int, location: str, counts: tuple[int, int, int]) -> None:  # fmt: skip
    """Each hop by the method that it really had."""
    service.reply("/x", status=status, **({"Location": location} if location else {}))
    service.reply("/y")
    result = call(guest(requesting(envelope(method=method)), HOSTS, on=routed))
    assert (result.requests_sent, result.writes_sent, result.writes_unanswered) == counts


def test_a_crash_after_an_answered_write_is_not_the_connectors_own_word(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """What the host saw of its end and what the connector said are told apart."""
    service.reply("/x")
    crash = call(guest(requesting(envelope(method="POST"), say="{"), HOSTS, on=routed))
    assert (failed(crash).class_, crash.reported_by_connector) == ("connector_runtime_error", False)
    assert (crash.writes_sent, crash.writes_unanswered) == (1, 0)
    say = '{"error": {"message": "no such draft"}}'
    answered = call(guest(requesting(envelope(method="POST"), say=say), HOSTS, on=routed))
    assert (failed(answered).message, answered.reported_by_connector) == ("no such draft", True)


def test_a_write_whose_answer_did_not_come_stays_lost_after_another_that_did(guest: Guest, routed: WasmEngine, service: Any) -> None:  # fmt: skip
    """The later success clears the error for the guest, not what nobody knows."""

    def hang_up(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    service.answers["/x"] = hang_up
    service.reply("/y")
    first, second = envelope(method="POST"), envelope("/y")
    body = (
        f"(drop (call $request (i32.const 1024) (i32.const {len(first)})))"
        f"(drop (call $request (i32.const {1024 + len(first)}) (i32.const {len(second)})))"
    )
    result = call(guest(wat(body, data=escaped(first + second)), HOSTS, on=routed))
    assert result.failure is None
    assert (result.requests_sent, result.writes_sent, result.writes_unanswered) == (2, 1, 1)


def test_the_wall_limit_includes_a_silent_service(guest: Guest, service: Any, leaping: Any, make_client: Callable[..., OutgoingClient], make_engine: MakeEngine) -> None:  # fmt: skip
    """A run's time is up while its request hangs: wall time, and one request possibly sent."""
    done = threading.Event()

    def silent(handler: http.server.BaseHTTPRequestHandler) -> None:
        done.wait(20)
        handler.close_connection = True

    service.answers["/x"] = silent
    route = Route(host=HOSTS[0], address="127.0.0.1", port=service.port)
    engine = make_engine(make_client(routes=[route], clock=leaping))
    connector = guest(requesting(envelope()), HOSTS, on=engine)
    began = time.monotonic()
    # It has time to send its request, and 0.4 s from there on.
    limits = Limits(wall_seconds=20)
    result = call(connector, limits=limits, on_request=lambda: leaping.leap(19.6))
    done.set()
    assert failed(result).details["limit"] == "wall_time"
    assert result.requests_sent == 1
    assert time.monotonic() - began < 15


def test_a_request_has_a_limit_of_its_own(guest: Guest, routed: WasmEngine, service: Any) -> None:
    """Shorter than the run's, it is a network error and not wall time."""
    done = threading.Event()

    def silent(handler: http.server.BaseHTTPRequestHandler) -> None:
        done.wait(20)
        handler.close_connection = True

    service.answers["/x"] = silent
    result = call(
        guest(requesting(envelope()), HOSTS, on=routed),
        limits=Limits(wall_seconds=20, http_seconds=0.3),
    )
    done.set()
    assert failed(result).class_ == "network_error"


async def test_cancelling_breaks_a_hanging_request(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """The guest is inside the host when it is cancelled; it still ends at once."""
    asked, done = threading.Event(), threading.Event()

    def silent(handler: http.server.BaseHTTPRequestHandler) -> None:
        asked.set()
        done.wait(20)
        handler.close_connection = True

    service.answers["/x"] = silent
    connector = guest(requesting(envelope()), HOSTS, on=routed)

    began = time.monotonic()
    task = asyncio.ensure_future(connector.call("x", {}, limits=Limits()))
    await asyncio.to_thread(asked.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    done.set()
    assert time.monotonic() - began < 15


def test_an_answer_that_is_too_large_is_a_limit(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """The guest never sees a truncated body."""
    service.reply("/x", b"x" * 5000)
    result = call(
        guest(requesting(envelope()), HOSTS, on=routed), limits=Limits(response_bytes=4000)
    )
    assert failed(result).details["limit"] == "response_body"
    assert result.requests_sent == 1


def test_a_listener_that_fails_stops_the_request(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """What cannot be announced does not leave; the failure is ours and quotes nothing."""
    service.reply("/x")

    def refuse() -> None:
        raise RuntimeError("s3cret detail")

    result = call(guest(requesting(envelope()), HOSTS, on=routed), on_request=refuse)
    assert "bug in Aileron" in failed(result).message
    assert "s3cret" not in failed(result).message
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
