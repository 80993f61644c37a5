"""A credential leaves with the requests that name it, for its hosts alone, and comes back in nothing, whatever is tried."""

import base64
import http.server
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args
from urllib.parse import quote

import pytest

from aileron_core.clock import SystemClock
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.http.scrubber import REPLACEMENT, Scrubber
from aileron_core.connectors.protocol import CredentialKind, Limits, OpResult, RequestToSign
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.credentials.kinds import (
    AccountCredential,
    ApiKey,
    AwsSignature,
    BasicPassword,
    CheckedCredential,
)
from aileron_core.credentials.sigv4 import AwsKeys
from aileron_core.errors import BindingFailed
from aileron_core.vault.secret import Secret
from tests.core.connectors.conftest import LOOPBACK, Service
from tests.support.guests import HOSTS, Guest, MakeEngine, call, escaped, failed, wat
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
        hosts = (self.place, self.other)
        connector = self.guest(reading(*envelopes), hosts, on=self.engine, more=self.declared)
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
    assert (failed(result).class_, setting.service.seen) == ("capability_denied", [])


def test_a_routed_host_gets_nothing(guest: Guest, routed: WasmEngine, service: Any) -> None:
    """Whatever is bound: a route leads to a program of this machine, in plain HTTP."""
    service.reply("/x")
    text = reading({"url": "https://api.example/x", "credential": "api_key"})
    connector = guest(text, HOSTS, on=routed, more=DECLARED)
    assert call(connector, credential=Key(hosts=HOSTS)).failure is None
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
        assert ("[removed]" in text, "canary" in text, output["b"]) == (True, False, "kept")
        assert spelling[4:-4].decode() not in text


def test_the_answer_to_a_redirect_is_searched_too(setting: Setting) -> None:
    def echo(handler: HttpRequest) -> None:
        reply(handler, 200, json.dumps({"got": handler.headers["x-api-key"]}).encode(), {})

    setting.service.answers["/echo"] = echo
    setting.service.reply("/same", status=307, Location="/echo")
    assert setting.run(setting.request("/same")).output == {"got": "[removed]"}


CANARY = "canary/7F+zQ~w:9&x!d<y>"
TOKEN = "canary-session/T+0ken"


def credential(kind: str, host: str, secret: str = CANARY, token: str = TOKEN) -> AccountCredential:
    """An account's credential of *kind*, as a binding for *host* gives it."""
    hosts = frozenset({host})
    if kind == "basic":
        return BasicPassword(user="ana", password=Secret(secret), hosts=hosts)
    if kind == "oauth2":
        return ApiKey(secret=Secret(secret), hosts=hosts, kind="oauth2")
    if kind == "api_key":
        return ApiKey(secret=Secret(secret), hosts=hosts, header="X-Api-Key", format="{key}")
    of_aws = {"secret": Secret(secret), "session_token": Secret(token)}
    keys = AwsKeys(access_key_id="AKIACANARYIDEXAMPLE1", **of_aws)
    return AwsSignature(
        keys=keys, service="athena", hosts=hosts, clock=SystemClock(), region="eu-west-1"
    )


OF_KIND = {
    "basic": "",
    "api_key": 'header = "X-Api-Key"\nformat = "{key}"\n',
    "aws_sigv4": 'service = "athena"\n',
    "oauth2": '[capabilities.credential.oauth2]\nauthorize_url = "https://api.example/a"\n'
    'token_url = "https://api.example/t"\nclient_id = "c"\nscopes = ["s"]\n',
}
KINDS: tuple[str, ...] = tuple(each for each in get_args(CredentialKind) if each != "environment")
HEADER_OF = {"api_key": "x-api-key", "oauth2": "authorization", "basic": "authorization"}


@dataclass
class Attempt(Setting):
    """One guest, its service, and an account of its kind."""

    def run(self, *envelopes: Mapping[str, Any], key: Any = None, **options: Any) -> OpResult:
        given = key or credential(self.kind, self.place)
        if not isinstance(given, Key):
            given = CheckedCredential(given, lambda: None)
        return super().run(*envelopes, key=given, **options)


def attempt(setting: Setting, kind: str) -> Attempt:
    declared = f'[capabilities.credential]\nkind = "{kind}"\n{OF_KIND[kind]}'
    return Attempt(**{**vars(setting), "kind": kind, "declared": declared})


@pytest.fixture(params=KINDS)
def attack(setting: Setting, request: pytest.FixtureRequest) -> Attempt:
    """Every kind in turn."""
    return attempt(setting, request.param)


@pytest.fixture
def by_key(setting: Setting) -> Attempt:
    return attempt(setting, "api_key")


def echo_headers(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Answer with every header of the request, as a debugging page does, and honour a range."""
    body = json.dumps(dict(handler.headers)).encode()
    wanted, status = handler.headers["Range"], 200
    if wanted:
        first, last = map(int, wanted.removeprefix("bytes=").split("-"))
        body, status = json.dumps({"part": body[first : last + 1].decode()}).encode(), 206
    reply(handler, status, body, {})


def values_sent(attack: Attempt) -> list[str]:
    """What of the secret was in the requests: it has to be there, or nothing was shown."""
    name = HEADER_OF.get(attack.kind, "x-amz-security-token")
    return [headers[name] for headers in attack.seen if name in headers]


def leaks(text: str) -> bool:
    pair = base64.b64encode(f"ana:{CANARY}".encode()).decode()
    return any(each in text for each in (CANARY[:9], TOKEN[:9], "canary", pair[:12], pair[-12:]))


@pytest.mark.parametrize("status", [200, 401, 206])
def test_no_failure_says_it(attack: Attempt, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = TOKEN if attack.kind == "aws_sigv4" else ""
    body = json.dumps({"error": f"bad credential {CANARY} {token}"}).encode()
    attack.service.reply("/x", body, status, WWW_Authenticate=f'Bearer error="{CANARY}"')
    result = attack.run(attack.request())
    assert values_sent(attack)
    assert not leaks(repr(result) + caplog.text)


BROKEN = {
    "no status": f"HTTP/1.1 2x0 {CANARY}\r\n{CANARY}\r\n\r\n",
    "no header": f"HTTP/1.1 200 OK\r\n{CANARY} : \0\r\n\r\n",
    "half a body": f"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{CANARY}",
    "no chunk": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{CANARY}\r\n",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_no_malformed_answer_gets_it_into_an_error(
    by_key: Attempt, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.wfile.write(broken.encode())
        handler.close_connection = True

    by_key.service.answers["/x"] = answer
    result = by_key.run(by_key.request(method="POST", body="x"))
    assert failed(result).class_ == "network_error"
    assert values_sent(by_key)
    assert not leaks(repr(result) + caplog.text)


def test_an_answer_in_chunks_is_searched_as_a_whole(by_key: Attempt) -> None:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        body = json.dumps({"got": handler.headers["X-Api-Key"]}).encode()
        chunks = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in body)
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        handler.wfile.write(head + chunks + b"0\r\n\r\n")

    by_key.service.answers["/x"] = answer
    assert by_key.run(by_key.request()).output == {"got": "[removed]"}


def test_a_range_cannot_cut_it_in_two(by_key: Attempt) -> None:
    """The header is left out of the request, so the answer comes whole; it is sent where none is bound."""
    by_key.service.answers["/x"] = echo_headers
    for headers in ({"Range": "bytes=0-30"}, {"rAnGe": "bytes=31-400", "If-Range": "x"}):
        result = by_key.run(by_key.request(headers=headers))
        assert (leaks(repr(result)), "[removed]" in repr(result.output)) == (False, True)
    assert all("range" not in headers for headers in by_key.seen)


def test_two_headers_of_encodings_hide_nothing(by_key: Attempt) -> None:
    encodings = "Content-Encoding: identity\r\nContent-Encoding: gzip"
    answer = f"HTTP/1.1 200 OK\r\n{encodings}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    by_key.service.answers["/x"] = lambda request: request.wfile.write(answer)
    assert "compressed" in failed(by_key.run(by_key.request())).message


def test_where_a_request_was_sent_on_to_cannot_send_it_back_with_it(by_key: Attempt) -> None:
    """Otherwise a second host of the manifest would choose the path that the key is sent to."""
    service, place, other = by_key.service, by_key.place, by_key.other
    service.reply("/x", status=307, Location=f"https://{other}/second")
    service.reply("/second", status=307, Location=f"https://{place}/chosen")
    service.reply("/chosen")
    assert by_key.run(by_key.request()).failure is None
    assert [headers["host"] for headers in by_key.seen] == [place, other, place]
    assert ["x-api-key" in headers for headers in by_key.seen] == [True, False, False]


@pytest.mark.parametrize(
    "location", ["https://{other}/x?key={raw}", "/again?key={percent}", "https://{raw}.{other}/"]
)
def test_a_redirect_that_repeats_it_is_not_followed(
    by_key: Attempt, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be in the next request's address, and its host in an error and the record."""
    caplog.set_level(logging.DEBUG)
    secret = "canary-key-7f2a"
    percent = "".join(f"%{byte:02X}" for byte in secret.encode())
    where = location.format(other=by_key.other, raw=secret, percent=percent)
    by_key.service.reply("/x", b"{}", 302, Location=where)
    result = by_key.run(by_key.request(), key=credential("api_key", by_key.place, secret=secret))
    assert "with the credential in it" in failed(result).message
    assert len(by_key.seen) == 1
    assert "canary" not in repr(result) + caplog.text


@pytest.mark.parametrize(
    "location",
    [
        "http://{place}/x",
        "https://{name}:1/x",
        "https://ana:pw@{place}/x",
        "https://{place}@elsewhere.example/x",
        "//elsewhere.example/x",
        "https://{name}.elsewhere.example/x",
        "ftp://{place}/x",
    ],
)
def test_no_redirect_takes_it_elsewhere(by_key: Attempt, location: str) -> None:
    place, name = by_key.place, by_key.place.partition(":")[0]
    by_key.service.reply("/x", b"{}", 307, Location=location.format(place=place, name=name))
    assert failed(by_key.run(by_key.request())).class_ in {"capability_denied", "network_error"}
    assert len(by_key.seen) == 1


@pytest.mark.parametrize("spelled", [str.lower, str.title])
def test_a_guest_sets_no_header_that_a_credential_is_sent_in(attack: Attempt, spelled: Any) -> None:
    """Whether the request names the credential or not, and where it is redirected to."""
    name = spelled(HEADER_OF.get(attack.kind, "authorization"))
    of_guest = dict.fromkeys([name, "Proxy-Authorization", "Cookie"], "of the guest")
    token = {"x-Amz-Security-Token": "of the guest"} if attack.kind == "aws_sigv4" else {}
    mine = {**of_guest, **token}
    attack.service.reply("/away", status=307, Location=f"https://{attack.other}/x")
    plain = {"url": f"https://{attack.place}/x", "headers": mine}
    result = attack.run(attack.request(headers=mine), plain, attack.request("/away", headers=mine))
    assert (result.failure, len(attack.seen)) == (None, 4)
    assert "of the guest" not in repr(attack.seen)
    assert len(values_sent(attack)) == 2


@pytest.mark.parametrize("wanted", [*KINDS, "API_KEY", "api_key ", "", "nothing"])
def test_a_kind_that_the_manifest_does_not_declare_is_refused(by_key: Attempt, wanted: str) -> None:
    if wanted == "api_key":
        return
    result = by_key.run(by_key.request() | {"credential": wanted})
    assert not any("x-api-key" in headers for headers in by_key.seen)
    if wanted:
        assert failed(result).class_ == "capability_denied"


@pytest.mark.parametrize(
    "bad", ["line\r\nX-Smuggled: 1", "caf\u20ac-canary", "nul\0canary", "\u00e9canary"]
)
@pytest.mark.parametrize("kind", ["api_key", "oauth2", "aws_sigv4"])
def test_a_secret_that_no_header_can_hold_is_refused_without_a_word_of_it(
    setting: Setting, kind: str, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    """However it got into the vault: AWS's session token is sent as it is too."""
    caplog.set_level(logging.DEBUG)
    attack = attempt(setting, kind)
    secret = CANARY if kind == "aws_sigv4" else bad
    result = attack.run(attack.request(), key=credential(kind, setting.place, secret, token=bad))
    assert failed(result).class_ in {"binding_failed", "network_error"}
    assert setting.service.seen == []
    for part in ("canary", "X-Smuggled", "u20ac", "\u20ac", "xe9"):
        assert part not in repr(result) + caplog.text


def test_a_fault_of_ours_quotes_nothing(by_key: Attempt, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    result = by_key.run(by_key.request(), key=Key(hosts=(by_key.place,), problem=KeyError(CANARY)))
    assert failed(result).class_ == "binding_failed"
    assert not leaks(repr(result) + caplog.text)


def test_an_answer_that_is_too_late_says_nothing_of_it(by_key: Attempt) -> None:
    by_key.service.hold("/x")
    result = by_key.run(by_key.request(), limits=Limits(wall_seconds=10, http_seconds=0.5))
    assert "in time" in failed(result).message
    assert not leaks(repr(result))


WORD = "k3y/of+the&ac'count!(x)~*<z>\"==>>>~~~"
IN_JSON = json.dumps(WORD)[1:-1]
IN_BASE64 = base64.b64encode(b"x" + WORD.encode() + b"yz").decode()
REMOVED = {
    "JavaScript": quote(WORD, safe="!*'()"),
    "JavaScript, whole address": quote(WORD, safe="!*'();/?:@&=+$,#"),
    "Go, path": quote(WORD, safe="$&+=:@"),
    "Java, form": quote(WORD, safe="*").replace("~", "%7E"),
    "JSON of Go": IN_JSON.translate({60: "\\u003c", 62: "\\u003e", 38: "\\u0026"}),
    "JSON of .NET": "".join(f"\\u{ord(c):04X}" if c in "\"&'+<>`" else c for c in WORD),
    "base64 in JSON of .NET": IN_BASE64.replace("+", "\\u002B"),
}
NOT_REMOVED = {
    "HTML": WORD.replace("&", "&amp;"),
    "hexadecimal": WORD.encode().hex(),
    "percent-encoded twice": quote(quote(WORD, safe=""), safe=""),
    "in two parts": WORD[:8] + "\n" + WORD[8:],
    "backwards": WORD[::-1],
}


@pytest.mark.parametrize("spelled", REMOVED.values(), ids=REMOVED)
def test_what_common_encoders_make_of_it_is_removed(spelled: str) -> None:
    scrubbed = Scrubber([WORD.encode()]).scrub(f'<"{spelled}">'.encode())
    assert REPLACEMENT in scrubbed
    assert spelled[6:-6].encode() not in scrubbed
    assert len(scrubbed) <= len(REPLACEMENT) + 12


@pytest.mark.parametrize("spelled", NOT_REMOVED.values(), ids=NOT_REMOVED)
def test_what_is_not_removed_is_what_the_documents_say(spelled: str) -> None:
    """Nobody is to believe more: a service that works with the connector can always spell it anew."""
    assert Scrubber([WORD.encode()]).scrub(spelled.encode()) == spelled.encode()
