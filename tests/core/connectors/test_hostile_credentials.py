"""What a guest and a service try in order to get hold of a credential, on the real wire."""

import base64
import http.server
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args
from urllib.parse import quote

import pytest

from aileron_core.clock import SystemClock
from aileron_core.connectors.http.scrubber import REPLACEMENT, Scrubber
from aileron_core.connectors.protocol import CredentialKind, Limits, OpResult
from aileron_core.credentials.kinds import (
    AccountCredential,
    ApiKey,
    AwsSignature,
    BasicPassword,
    CheckedCredential,
)
from aileron_core.credentials.sigv4 import AwsKeys
from aileron_core.vault.secret import Secret
from tests.core.connectors.test_credentials_on_the_wire import Key, Setting, setting
from tests.support.guests import failed
from tests.support.http_service import reply

__all__ = ["setting"]

CANARY = "canary/7F+zQ~w:9&x!d<y>"
TOKEN = "canary-session/T+0ken"
AWS_KEY_ID = "AKIACANARYIDEXAMPLE1"


def credential(kind: str, host: str, secret: str = CANARY, token: str = TOKEN) -> AccountCredential:
    """An account's credential of *kind*, as a binding for *host* gives it."""
    hosts = frozenset({host})
    if kind == "basic":
        return BasicPassword(user="ana", password=Secret(secret), hosts=hosts)
    if kind == "oauth2":
        return ApiKey(secret=Secret(secret), hosts=hosts, kind="oauth2")
    if kind == "api_key":
        return ApiKey(secret=Secret(secret), hosts=hosts, header="X-Api-Key", format="{key}")
    keys = AwsKeys(access_key_id=AWS_KEY_ID, secret=Secret(secret), session_token=Secret(token))
    return AwsSignature(
        keys=keys, service="athena", hosts=hosts, clock=SystemClock(), region="eu-west-1"
    )


DECLARED = {
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
    declared = f'[capabilities.credential]\nkind = "{kind}"\n{DECLARED[kind]}'
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
def test_no_failure_quotes_it(
    attack: Attempt, status: int, caplog: pytest.LogCaptureFixture
) -> None:
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
        assert not leaks(repr(result))
        assert "[removed]" in repr(result.output)
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
    result = by_key.run(by_key.request())
    assert result.failure is None
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
    place = by_key.place
    name = place.partition(":")[0]
    by_key.service.reply("/x", b"{}", 307, Location=location.format(place=place, name=name))
    result = by_key.run(by_key.request())
    assert failed(result).class_ in {"capability_denied", "network_error"}
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


def test_a_fault_of_our_own_quotes_nothing(
    by_key: Attempt, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    result = by_key.run(by_key.request(), key=Key(hosts=(by_key.place,), problem=KeyError(CANARY)))
    assert failed(result).class_ == "binding_failed"
    assert not leaks(repr(result) + caplog.text)


def test_an_answer_that_is_too_late_says_nothing_of_it(by_key: Attempt) -> None:
    by_key.service.hold("/x")
    result = by_key.run(by_key.request(), limits=Limits(wall_seconds=10, http_seconds=0.5))
    assert "in time" in failed(result).message
    assert not leaks(repr(result))


SECRET = "k3y/of+the&ac'count!(x)~*<z>\"==>>>~~~"
IN_JSON = json.dumps(SECRET)[1:-1]
IN_BASE64 = base64.b64encode(b"x" + SECRET.encode() + b"yz").decode()
REMOVED = {
    "JavaScript": quote(SECRET, safe="!*'()"),
    "JavaScript, whole address": quote(SECRET, safe="!*'();/?:@&=+$,#"),
    "Go, path": quote(SECRET, safe="$&+=:@"),
    "Java, form": quote(SECRET, safe="*").replace("~", "%7E"),
    "JSON of Go": IN_JSON.translate({60: "\\u003c", 62: "\\u003e", 38: "\\u0026"}),
    "JSON of .NET": "".join(f"\\u{ord(c):04X}" if c in "\"&'+<>`" else c for c in SECRET),
    "base64 in JSON of .NET": IN_BASE64.replace("+", "\\u002B"),
}
NOT_REMOVED = {
    "HTML": SECRET.replace("&", "&amp;"),
    "hexadecimal": SECRET.encode().hex(),
    "percent-encoded twice": quote(quote(SECRET, safe=""), safe=""),
    "in two parts": SECRET[:8] + "\n" + SECRET[8:],
    "backwards": SECRET[::-1],
}


@pytest.mark.parametrize("spelled", REMOVED.values(), ids=REMOVED)
def test_what_common_encoders_make_of_it_is_removed(spelled: str) -> None:
    scrubbed = Scrubber([SECRET.encode()]).scrub(f'<"{spelled}">'.encode())
    assert REPLACEMENT in scrubbed
    assert spelled[6:-6].encode() not in scrubbed
    assert len(scrubbed) <= len(REPLACEMENT) + 12


@pytest.mark.parametrize("spelled", NOT_REMOVED.values(), ids=NOT_REMOVED)
def test_what_is_not_removed_is_what_the_documents_say(spelled: str) -> None:
    """Nobody is to believe more: a service that works with the connector can always spell it anew."""
    assert Scrubber([SECRET.encode()]).scrub(spelled.encode()) == spelled.encode()
