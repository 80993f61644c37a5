"""A canary of each kind of credential: it is in the requests, and nowhere else, whatever happens."""

import base64
import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

from aileron_core.connectors.protocol import CredentialKind
from aileron_core.credentials.binding import Binding
from aileron_core.credentials.oauth_tokens import OAuthClient, Tokens
from aileron_core.vault.secret import Secret
from tests.core.runs.test_hostile_accounts import for_agent
from tests.support.core_harness import Core
from tests.support.scripted_guest import furnish_guest
from tests.support.tls_service import Request, TlsService, tls_service

KINDS: Sequence[str] = [each for each in get_args(CredentialKind) if each != "environment"]
SECRET = "canary-Secret/7f2a+91x"
TOKEN = "canary-Token/55c0+1de"
RENEWAL = "canary-Renewal/8a31+f00"
CLIENT = "canary-Client/20bb+c4e"
PASSPHRASE = "canary-Passphrase-61d9"
ALL = (SECRET, TOKEN, RENEWAL, CLIENT, PASSPHRASE)
PAIR = f"ana:{SECRET}"
DUMPED = 131072
"""Bytes of the guest's memory that it returns, the answer to its request among them."""
MANIFEST = {
    "api_key": 'header = "X-Key"\nformat = "key={key}"\n',
    "basic": "",
    "aws_sigv4": 'service = "athena"\nregion = "eu-west-1"\n',
    "oauth2": '[capabilities.credential.oauth2]\nauthorize_url = "https://api.example/a"\n'
    'token_url = "https://api.example/t"\nclient_id = "mine"\nscopes = ["all"]\n',
}
SENT = {
    "api_key": ("x-key", f"key={SECRET}"),
    "basic": ("authorization", "Basic " + base64.b64encode(PAIR.encode()).decode()),
    "aws_sigv4": ("x-amz-security-token", TOKEN),
    "oauth2": ("authorization", f"Bearer {SECRET}"),
}


def dumping_guest(envelope: str) -> str:
    """A guest that sends *envelope*, reads the answer, and returns all of its memory in hexadecimal."""
    data = '{"output":{"done":"' + '"}}' + "0123456789abcdef" + envelope
    text = "".join(f"\\{byte:02x}" for byte in data.encode())
    digits = 1024 + 19 + 3
    byte = "(i32.load8_u (local.get $i))"
    high, low = (
        f"(i32.load8_u (i32.add (i32.const {digits}) {half}))"
        for half in (f"(i32.shr_u {byte} (i32.const 4))", f"(i32.and {byte} (i32.const 15))")
    )
    at = f"(i32.add (i32.const {DUMPED}) (i32.shl (local.get $i) (i32.const 1)))"
    return f"""(module
      (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
      (import "aileron_host" "http_request" (func $request (param i32 i32) (result i32)))
      (import "aileron_host" "http_response_read" (func $read (param i32 i32) (result i32)))
      (import "aileron_host" "log" (func $log (param i32 i32 i32 i32)))
      (memory (export "memory") {DUMPED * 3 // 65536 + 1})
      (data (i32.const 1024) "{text}")
      (func $print (param $at i32) (param $length i32)
        (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $length))
        (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
      (func (export "_start") (local $i i32)
        (drop (call $request (i32.const {digits + 16}) (i32.const {len(envelope.encode())})))
        (drop (call $read (i32.const 65536) (i32.const 60000)))
        (call $log (i32.const {digits}) (i32.const 1) (i32.const 65536) (i32.const 400))
        (loop $next
          (i32.store8 {at} {high})
          (i32.store8 (i32.add {at} (i32.const 1)) {low})
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $i) (i32.const {DUMPED}))))
        (call $print (i32.const 1024) (i32.const 19))
        (call $print (i32.const {DUMPED}) (i32.const {DUMPED * 2}))
        (call $print (i32.const {1024 + 19}) (i32.const 3))))"""


def spellings(secret: str) -> Iterator[str]:
    yield secret
    yield secret.encode().hex()
    yield secret[:14]  # a half
    yield secret[-14:]
    for offset in range(3):
        yield base64.b64encode(b"x" * offset + secret.encode()).decode()[4:-4]


def leaked(text: str) -> list[str]:
    """Return which secrets are in *text*, in any spelling that a guest or a file could hold them in."""
    return [spelled for secret in (*ALL, PAIR) for spelled in spellings(secret) if spelled in text]


@dataclass
class CanaryPlace:
    """A home whose connector has an account of *kind*, and the service that it asks."""

    home: Path
    service: TlsService
    kind: str

    @property
    def values(self) -> list[str | None]:
        return [each.headers.get(SENT[self.kind][0]) for each in self.service.seen]

    async def bind(self, core: Core) -> Binding:
        core.app.vault.create(Secret(PASSPHRASE))
        if self.kind == "oauth2":
            tokens = Tokens(
                access_token=Secret(SECRET),
                refresh_token=Secret(RENEWAL),
                expires_at=None,
                client=OAuthClient(client_id="mine", client_secret=Secret(CLIENT)),
                token_url="https://api.example/t",
                scopes=("all",),
            )
            return await core.app.bindings.authorize(core.user(), "work", "ana", tokens)
        return await core.bind(
            SECRET,
            user="" if self.kind == "api_key" else "ana",
            session_token=Secret(TOKEN) if self.kind == "aws_sigv4" else None,
        )

    def files(self) -> Iterator[tuple[Path, str]]:
        """Every file of the home as text, byte by byte, and the database as its statements."""
        for path in sorted(self.home.rglob("*")):
            if path.is_file():
                yield path, path.read_bytes().decode("latin-1")
        connection = sqlite3.connect(self.home / "aileron.db")
        yield Path("the database"), "\n".join(connection.iterdump())


@pytest.fixture(params=KINDS)
def canary_place(
    home: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[CanaryPlace]:
    """Every kind in turn; the guest asks for the credential and returns its memory."""
    kind = request.param
    with tls_service(tmp_path) as service:
        envelope = {
            "url": f"https://{service.place}/x?q=1",
            "credential": kind,
            "method": "GET",
            "headers": {"Accept": "*/*"},
        }
        more = f'[capabilities.credential]\nkind = "{kind}"\n{MANIFEST[kind]}'
        furnish_guest(
            home, [], [service.place], more=more, module=dumping_guest(json.dumps(envelope))
        )
        yield CanaryPlace(home, service, kind)


def echo_key(request: Request) -> object:
    """Answer with all that arrived but what differs from second to second, in several spellings."""
    headers = dict(request.headers)
    headers.pop("x-amz-date", None)
    value = next(
        headers[name]
        for name in ("x-key", "x-amz-security-token", "authorization")
        if name in headers
    )
    bare = value.rpartition(" ")[2].removeprefix("key=")
    aligned = [base64.b64encode(b"-" * n + bare.encode() + b"-").decode() for n in range(3)]
    return {"headers": headers, "bare": bare, "base64": aligned}


@pytest.mark.parametrize("status", [200, 401])
async def test_the_canary_is_in_the_requests_and_nowhere_else(
    canary_place: CanaryPlace, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Guest memory, files of the home, database, record, events of the screen, log, the agent's answers."""
    caplog.set_level(logging.DEBUG)
    canary_place.service.answer, canary_place.service.status = echo_key, status
    said: list[str] = []
    memories: list[bytes] = []
    async with Core.open(canary_place.home, make_outgoing=canary_place.service.client) as core:
        bound = await canary_place.bind(core)
        answer = await core.call("act", {})
        shown = await core.looked(answer.row.approval_id)
        await core.run(shown)
        seen = (await core.call("see", {})).row
        assert (
            canary_place.values == [SENT[canary_place.kind][1]] * 4
        )  # preview, recheck, effect, and `see`
        for row in (await core.result(shown.approval_id), seen):
            output = row.output
            assert isinstance(output, dict)
            memories.append(bytes.fromhex(str(output["output"]["done"])))  # type: ignore[index,call-overload]
        said += [repr(core.events), json.dumps(await core.records()), repr(seen)]
        said.append(for_agent(await core.result(shown.approval_id)))
        await core.app.vault_service.lock()
        said += [text for _, text in canary_place.files()]
        core.app.vault.unlock(Secret(PASSPHRASE))
        await core.app.bindings.delete(bound.name)
        said += [repr(core.events), json.dumps(await core.records())]
    for memory in memories:
        assert b"[removed]" in memory, "the answer had been there"
    said += [memory.decode("latin-1") for memory in memories]
    signatures = [
        each.headers.get("authorization", "").rpartition("Signature=")[2]
        for each in canary_place.service.seen
    ]
    for text in (*said, caplog.text):
        assert not leaked(text)
        assert not any(
            each and each in text for each in signatures if canary_place.kind == "aws_sigv4"
        )
    for path, text in canary_place.files():
        assert not leaked(text), path
