"""A credential leaves with the requests that name it, for its hosts alone, and comes back in no answer."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import OpResult, RequestToSign
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import BindingFailed
from tests.core.connectors.conftest import LOOPBACK, Service
from tests.support.guests import Guest, MakeEngine, call, escaped, failed, wat
from tests.support.http_service import HttpRequest, reply

SECRET = "canary/7F+zQ~é:w9&x"
DECLARED = '[capabilities.credential]\nkind = "api_key"\nheader = "X-Api-Key"\nformat = "{key}"\n'


@dataclass(frozen=True, kw_only=True)
class Key:
    """A credential of a test: one header."""

    hosts: tuple[str, ...]
    kind: str = "api_key"
    problem: Exception | None = None

    def headers(self, request: RequestToSign) -> Mapping[str, str]:
        assert request.host
        if self.problem:
            raise self.problem
        return {"X-Api-Key": SECRET}

    def environment(self) -> Mapping[str, str]:
        return {}

    def secrets(self) -> Sequence[bytes]:
        return [SECRET.encode()]

    def note_answer(self, status: int, body: bytes) -> None:
        pass


def reading(*envelopes: Mapping[str, Any]) -> str:
    """A guest that makes these requests and returns the last answer, whatever it is, as its output."""
    texts = [json.dumps(each, ensure_ascii=False) for each in envelopes]
    at, calls = 1024, ""
    for text in texts:
        length = len(text.encode())
        calls += f"(drop (call $request (i32.const {at}) (i32.const {length})))"
        at += length
    body = f"""(local $n i32) {calls}
      (local.set $n (call $read (i32.const 65536) (i32.const 60000)))
      (if (i32.gt_s (local.get $n) (i32.const 0))
        (then (call $print (i32.const 1) (i32.const {at}) (i32.const 10))
              (call $print (i32.const 1) (i32.const 65536) (local.get $n))
              (call $print (i32.const 1) (i32.const {at + 10}) (i32.const 1))))"""
    return wat(body, data=escaped("".join(texts) + '{"output":}'), pages=2)


@dataclass
class Setting:
    """A guest behind TLS and a real service, and how to call it."""

    service: Service
    guest: Guest
    engine: WasmEngine
    place: str
    other: str
    kind: str = "api_key"
    declared: str = DECLARED

    def request(self, path: str = "/x", **more: Any) -> dict[str, Any]:
        return {"url": f"https://{self.place}{path}", "credential": self.kind, **more}

    def run(self, *envelopes: Mapping[str, Any], key: Any = None, **options: Any) -> OpResult:
        connector = self.guest(
            reading(*envelopes), (self.place, self.other), on=self.engine, more=self.declared
        )
        return call(connector, credential=key or Key(hosts=(self.place,)), **options)

    @property
    def seen(self) -> list[dict[str, str]]:
        """The headers of each request that arrived, their names in lower case."""
        headers = [each[2] for each in self.service.seen]
        return [{name.lower(): value for name, value in each.items()} for each in headers]


@pytest.fixture
def setting(
    guest: Guest,
    make_engine: MakeEngine,
    make_client: Callable[..., OutgoingClient],
    resolver: Any,
    service_over_tls: Any,
) -> Setting:
    service, trust = service_over_tls
    resolver.table |= {"also.example": ["127.0.0.1"], "127.0.0.1": ["127.0.0.1"]}
    client = make_client(resolver=resolver, guard=LOOPBACK, ssl_context=trust)
    service.reply("/x")
    place, other = f"api.example:{service.port}", f"also.example:{service.port}"
    return Setting(service, guest, make_engine(client), place, other)


AS_HEADER = SECRET.encode("latin-1").decode("latin-1")
"""What the service's own reading of a header makes of it."""


def test_it_is_added_where_the_request_names_it(setting: Setting) -> None:
    """A header of that name from the guest is replaced; a request that names none gets none."""
    headers = {"x-api-key": "mine", "Accept-Encoding": "gzip"}
    plain = {"url": f"https://{setting.place}/x"}
    assert setting.run(setting.request(headers=headers), plain).failure is None
    first, second = setting.seen
    assert (first["x-api-key"], first["accept-encoding"]) == (AS_HEADER, "identity")
    assert "x-api-key" not in second


def test_it_follows_a_redirect_to_the_same_host_and_no_other(setting: Setting) -> None:
    """Another port or name is another host, also where the manifest lists it and the account has it."""
    setting.service.reply("/same", status=307, Location="/x")
    key = Key(hosts=(setting.place, setting.other))
    assert setting.run(setting.request("/same"), key=key).failure is None
    assert [headers.get("x-api-key") for headers in setting.seen] == [AS_HEADER, AS_HEADER]
    setting.service.seen.clear()
    setting.service.reply("/away", status=302, Location=f"https://{setting.other}/x")
    result = setting.run(setting.request("/away"), key=key)
    assert [headers.get("x-api-key") for headers in setting.seen] == [AS_HEADER, None]
    assert result.hosts_asked == (setting.place, setting.other)


def test_a_host_that_the_account_is_not_bound_for_gets_nothing(setting: Setting) -> None:
    result = setting.run(setting.request(), key=Key(hosts=(setting.other,)))
    assert failed(result).class_ == "binding_required"
    assert "aileron binding setup local://tests/guest" in failed(result).message
    assert setting.service.seen == []


def test_plain_http_gets_nothing(setting: Setting) -> None:
    result = setting.run({"url": f"http://{setting.place}/x", "credential": "api_key"})
    assert failed(result).class_ == "capability_denied"
    assert setting.service.seen == []


def test_a_routed_host_gets_nothing(guest: Guest, routed: WasmEngine, service: Any) -> None:
    """Whatever is bound: a route leads to a program of this machine, in plain HTTP."""
    service.reply("/x")
    place = "api.example:443"
    text = reading({"url": "https://api.example/x", "credential": "api_key"})
    connector = guest(text, (place,), on=routed, more=DECLARED)
    assert call(connector, credential=Key(hosts=(place,))).failure is None
    ((_, _, headers, _),) = service.seen
    assert "x-api-key" not in {name.lower() for name in headers}


def test_what_cannot_be_used_ends_the_call_with_its_reason(setting: Setting) -> None:
    key = Key(hosts=(setting.place,), problem=BindingFailed("it was revoked"))
    failure = failed(setting.run(setting.request(), key=key))
    assert (failure.class_, failure.message) == ("binding_failed", "it was revoked")
    assert setting.service.seen == []


PADDED = [base64.b64encode(b"x" * shift + SECRET.encode() + b"yz") for shift in range(3)]
IN_URLS = bytes.maketrans(b"+/", b"-_")
SPELLINGS = {
    "verbatim": SECRET.encode(),
    "percent": quote(SECRET, safe="").encode(),
    "percent, lower case": "".join(f"%{byte:02x}" for byte in SECRET.encode()).encode(),
    "a query's": quote(SECRET, safe="/").encode(),
    "JSON": json.dumps(SECRET)[1:-1].encode(),
    "JSON with \\/": json.dumps(SECRET)[1:-1].replace("/", "\\/").encode(),
    **{f"base64 {at}": padded for at, padded in enumerate(PADDED)},
    **{f"base64url {at}": each.translate(IN_URLS) for at, each in enumerate(PADDED)},
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_an_answer_that_repeats_it_comes_back_without(setting: Setting, spelling: bytes) -> None:
    """Also to a later request of the same call that names no credential."""
    setting.service.reply("/x", b'{"a":"' + spelling + b'","b":"kept"}')
    named, plain = setting.request(), {"url": f"https://{setting.place}/x"}
    for envelopes in ([named], [named, plain]):
        output = setting.run(*envelopes).output
        assert isinstance(output, dict)
        text = json.dumps(output)
        assert "[removed]" in text
        assert output["b"] == "kept"
        assert "canary" not in text
        assert spelling[4:-4].decode() not in text


def test_the_answer_to_a_redirect_is_searched_too(setting: Setting) -> None:
    def echo(handler: HttpRequest) -> None:
        reply(handler, 200, json.dumps({"got": handler.headers["x-api-key"]}).encode(), {})

    setting.service.answers["/echo"] = echo
    setting.service.reply("/same", status=307, Location="/echo")
    assert setting.run(setting.request("/same")).output == {"got": "[removed]"}
