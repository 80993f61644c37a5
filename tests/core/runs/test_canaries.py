"""What nobody learns: credentials, what a person is shown, and what calls contain, in no answer, record, trace or log."""

import base64
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from aileron_core.connectors.protocol import CredentialKind
from aileron_core.credentials.binding import Binding
from aileron_core.credentials.oauth_tokens import OAuthClient
from aileron_core.errors import NotFound
from aileron_core.server.agent_api import pending_body, result_body
from aileron_core.vault.secret import Secret
from tests.core.runs.test_hostile_accounts import for_agent, tokens
from tests.support.core_harness import DRAFT, Core, Mailbox, Start
from tests.support.scripted_guest import furnish_guest
from tests.support.tls_service import Request, TlsService, tls_service
from tests.support.traced import Traced

KINDS: Sequence[str] = [each for each in get_args(CredentialKind) if each != "environment"]
SECRET = "canary-Secret/7f2a+91x"
TOKEN = "canary-Token/55c0+1de"
RENEWAL = "canary-Renewal/8a31+f00"
CLIENT = "canary-Client/20bb+c4e"
PASSPHRASE = "canary-Passphrase-61d9"
PAIR = f"ana:{SECRET}"
ALL = (SECRET, TOKEN, RENEWAL, CLIENT, PASSPHRASE, PAIR)
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
    return [spelled for secret in ALL for spelled in spellings(secret) if spelled in text]


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
            client = OAuthClient(client_id="mine", client_secret=Secret(CLIENT))
            login = tokens(SECRET, refresh_token=Secret(RENEWAL), client=client)
            return await core.app.bindings.authorize(core.user(), "work", "ana", login)
        token = Secret(TOKEN) if self.kind == "aws_sigv4" else None
        user = "" if self.kind == "api_key" else "ana"
        return await core.bind(SECRET, user=user, session_token=token)

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
        url = f"https://{service.place}/x?q=1"
        asked = {"url": url, "credential": kind, "method": "GET", "headers": {"Accept": "*/*"}}
        more = f'[capabilities.credential]\nkind = "{kind}"\n{MANIFEST[kind]}'
        module = dumping_guest(json.dumps(asked))
        furnish_guest(home, [], [service.place], more=more, module=module)
        yield CanaryPlace(home, service, kind)


def echo_key(request: Request) -> object:
    """Answer with all that arrived but what differs from second to second, in several spellings."""
    headers = dict(request.headers)
    headers.pop("x-amz-date", None)
    names = ("x-key", "x-amz-security-token", "authorization")
    value = next(headers[name] for name in names if name in headers)
    bare = value.rpartition(" ")[2].removeprefix("key=")
    aligned = [base64.b64encode(b"-" * n + bare.encode() + b"-").decode() for n in range(3)]
    return {"headers": headers, "bare": bare, "base64": aligned}


@pytest.mark.parametrize("status", [200, 401])
async def test_the_canary_is_in_the_requests_and_nowhere_else(
    canary_place: CanaryPlace, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    canary_place.service.answer, canary_place.service.status = echo_key, status
    said: list[str] = []
    async with Core.open(canary_place.home, make_outgoing=canary_place.service.client) as core:
        bound = await canary_place.bind(core)
        shown = await core.ask_for("act", {})
        await core.run(shown)
        seen = (await core.call("see", {})).row
        # Preview, recheck, effect, and `see`.
        assert canary_place.values == [SENT[canary_place.kind][1]] * 4
        rows = (await core.result(shown.approval_id), seen)
        memories = [bytes.fromhex(str(row.output["output"]["done"])) for row in rows]
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
    sent = [each.headers.get("authorization", "") for each in canary_place.service.seen]
    signatures = [each.rpartition("Signature=")[2] for each in sent if "Signature=" in each]
    for text in (*said, caplog.text):
        assert not leaked(text)
        assert not any(each in text for each in signatures)
    for path, text in canary_place.files():
        assert not leaked(text), path


CANARIES = ("CANARYBODY", "canary-to@nordlicht.example", "CANARYSUBJECT")


def _plant(mailbox: Mailbox, draft: str = DRAFT) -> None:
    body, to, subject = CANARIES
    mailbox.control(change={"id": draft, "to": to, "subject": subject, "body": body})


async def test_the_requester_learns_neither_preview_nor_nonce_nor_the_moment(
    start: Start, mailbox: Mailbox, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bodies: list[dict[str, Any]] = []
    secrets: list[str] = []
    cores: list[Core] = []
    statuses: set[str] = set()

    def observe(_step: str) -> None:
        for core in cores:
            for live_run in core.app.registry:
                body = result_body(live_run.row)
                bodies.append(body)
                statuses.add(f"{live_run.row.state}:{body['status']}")

    async with start(failpoint=observe) as core:
        cores.append(core)
        _plant(mailbox)
        view = await core.ask()
        assert CANARIES[1] in {field.value for field in view.preview.fields}
        bodies.append(pending_body((await core.call()).row, "http://127.0.0.1:1", attached=True))
        mailbox.control(change={"id": DRAFT, "cc": CANARIES[1]})
        await core.approve(view)  # drifts
        await core.back(view)
        mailbox.control(fail={"op": "get", "status": 500, "times": 1})
        await core.app.approvals.refresh(view.approval_id)  # becomes unavailable
        await core.app.approvals.refresh(view.approval_id)
        secrets.extend(live_run.nonce for live_run in core.app.registry)
        await core.app.approvals.deny(view.approval_id, "no")
        for draft, trouble in (
            ("r-8842190312", {"op": "send", "status": 422, "times": 1}),
            ("r-8842189950", None),
        ):
            _plant(mailbox, draft)
            if trouble:
                mailbox.control(fail=trouble)
            view = await core.ask(draft)
            secrets.extend(live_run.nonce for live_run in core.app.registry)
            await core.run(view)
        rows = await core.app.database.read(lambda c: c.execute("SELECT * FROM runs").fetchall())
        recorded = str(await core.records()) + str(rows)
    logs = [path.read_text() for path in (home / "log").rglob("*") if path.is_file()]
    public = "".join((str(bodies), recorded, caplog.text, *logs))
    for secret in (*CANARIES, *secrets):
        assert secret not in public
    told = {body["status"] for body in bodies if body.get("digest_words")}
    assert told == {"completed", "denied", "failed"}, "every run that has ended, and no other"
    # Until it is final the agent reads `pending_approval`, whatever it really is.
    unseen = ("checking", "approved", "executing")
    told_of = {each for each in statuses if each.split(":")[0] in unseen}
    assert told_of == {f"{each}:pending_approval" for each in unseen}
    assert {"denied:denied", "failed:failed", "completed:completed"} <= statuses


CONTENTS = (DRAFT, "Anna", "Q3 numbers", "googleapis", "canary")


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.fixture
async def core(start: Start, traced: Traced) -> AsyncIterator[Core]:
    async with start(tracer=traced.tracer) as running:
        yield running


def logged_calls(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    lines = [vars(each) for each in caplog.records if vars(each).get("event") == "call"]
    fields = ("run", "session", "action", "decided", "state")
    return [{name: line.get(name) for name in fields} for line in lines]


async def test_a_call_that_a_person_approves_is_one_trace_without_its_contents(
    core: Core, traced: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    view = await core.ask()
    await core.run(view)
    # One preview for the person, one for the recheck, one that reads back.
    run = traced.named("aileron.run")
    assert traced.names.index("aileron.wait") < traced.names.index("aileron.op")
    assert {"aileron.preview", "aileron.wait", "aileron.op", "aileron.run"} == {*traced.names}
    of_run = {
        "aileron.action": "send-draft",
        "aileron.run": view.run_id,
        "aileron.session": view.session_id,
    }
    decided = {"aileron.decision": "person"}
    assert run.parent is None
    assert run.attributes == of_run | decided | {"aileron.state": "completed"}
    wait = {"aileron.state": "checking"}
    assert traced.named("aileron.wait").attributes == of_run | decided | wait
    op = {"aileron.state": "completed", "http.response.status_code": 200}
    assert traced.named("aileron.op").attributes == of_run | op
    for span in traced.spans:
        assert span is run or span.parent == run.context
        assert not span.events
    for content in CONTENTS:
        assert content not in traced.text, content
    ended = {"run": view.run_id, "session": view.session_id, "action": "send-draft"}
    assert logged_calls(caplog) == [ended | {"decided": "person", "state": "completed"}]


async def test_a_failed_call(
    core: Core, traced: Traced, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason quotes the service, or the arguments; what does not become a run leaves no open span."""
    caplog.set_level(logging.INFO)
    answer = await core.call("get-draft", {"id": "canary"})
    assert answer.row.failure is not None
    run, op = traced.named("aileron.run"), traced.named("aileron.op")
    assert (run.attributes or {})["aileron.state"] == "failed"
    assert (op.attributes or {})["http.response.status_code"] == 404
    for span in traced.spans:
        assert not span.events
        assert span.status.description is None
    with pytest.raises(NotFound):
        await core.call("no-such-action", {"id": "canary"})
    expected = [("ungated", "failed"), (None, "refused")]
    assert [(each["decided"], each["state"]) for each in logged_calls(caplog)] == expected
    for content in CONTENTS:
        assert content not in traced.text + str(logged_calls(caplog)), content

    async def refuse(_row: object) -> None:
        raise NotFound("canary")

    monkeypatch.setattr(core.app.gate.argument_quota, "reserve", refuse)
    with pytest.raises(NotFound):
        await core.call("get-draft", {"id": DRAFT})
    assert (traced.spans[-1].name, traced.names.count("aileron.run")) == ("aileron.run", 2)
    assert (traced.spans[-1].attributes or {})["aileron.state"] == "refused"
