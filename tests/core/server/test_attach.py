"""An attached console: its own adapter of the port, over a real socket; who gets in, what is shown, what counts."""

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aileron_core import errors
from aileron_core.audit.device_answers import DeviceAnswers
from aileron_core.audit.owners import OWNERS_REQUESTS
from aileron_core.connectors.store import SIGNED_FILE
from aileron_core.console.device_service import DeviceService
from aileron_core.console_port import events, intents
from aileron_core.console_port.codec import to_bytes, to_frame
from aileron_core.console_port.devices import ConfirmDevice, EndDevice, LinkMade, MakeLink
from aileron_core.console_port.standing import FieldTest, GrantTerms
from aileron_core.console_port.view_models import ApprovalView, HistoryQuery
from aileron_core.devices.pairing import MOST_DEVICES, Program
from aileron_core.devices.signed import SignedIntent, request_text
from aileron_core.server import attach_routes
from aileron_core.settings import ConsoleSettings, Settings
from aileron_core.vault.secret import Secret
from aileron_tui.cli import attach
from aileron_tui.cli.attach import AttachedCore, dial
from tests.support.core_harness import (
    DRAFT,
    PASSPHRASE,
    PATIENCE,
    Core,
    Mailbox,
    audit_problems,
    protected_home,
    unlock,
    writes,
)
from tests.support.frozen_clock import FrozenClock
from tests.support.paired_devices import new_key, sign
from tests.support.published import signed
from tests.support.review_harness import Review, serving

QUICK = Settings(console=ConsoleSettings(arm_ms=0))
pytestmark = pytest.mark.core(settings=QUICK)
_T = TypeVar("_T")
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of P-256: with (r, s) also (r, ORDER - s) is a signature."""
TERMS = GrantTerms(number=1, tests=(("args.id", FieldTest("any")),), seconds=60, uses=1)


def port_of(core: Core) -> AttachedCore:
    return AttachedCore(partial(dial, core.app.home.path))


class Console:
    """One attached console, as the screen uses it, and what it was told."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.port = port_of(core)
        self.words: tuple[str, ...] = ()
        self.snapshot: events.Snapshot | None = None
        self.told: list[events.CoreEvent] = []

    async def pair(self) -> None:
        self.words = await asyncio.to_thread(self.port.pair)
        await asyncio.to_thread(self.port.follow)

    async def confirmed(self, *, as_owners: bool = False) -> "Console":
        await self.pair()
        (device,) = [d for d in self.core.app.devices.views() if d.words == self.words]
        id_ = device.device_id
        await self.core.do(ConfirmDevice(device_id=id_, words=self.words, as_owners=as_owners))
        return await self.opened()

    async def confirm(self, phrase: str = PASSPHRASE) -> None:
        await asyncio.to_thread(self.port.confirm, self.words, phrase)

    async def opened(self) -> "Console":
        assert await asyncio.to_thread(self.port.wait, PATIENCE)
        self.snapshot = self.port.subscribe(self.told.append)
        return self

    async def ask(self, intent: intents.Intent) -> None:
        await asyncio.to_thread(self.port.submit, intent)

    async def hears(self, kind: type[_T], ready: Callable[[_T], object] = lambda _: True) -> _T:
        return await self.core.until(
            lambda: next((e for e in self.told if isinstance(e, kind) and ready(e)), None)
        )

    async def sees(self, draft: str = DRAFT) -> ApprovalView:
        """Return a call that the agent asks for once it was sent."""
        view = await self.core.ask(draft)
        await self.hears(events.ApprovalUpdated, lambda e: e.view == view)
        return view

    async def refused(self, intent: intents.Intent) -> str:
        """Return the sentence with which *intent* is refused."""
        self.told.clear()
        await self.ask(intent)
        return (await self.hears(events.IntentRefused)).message

    async def post(self, body: Any, path: str = "/v1/attach/intent") -> str:
        """Send a request as a program would that has its key; return the class of the refusal, "" for none."""
        try:
            await asyncio.to_thread(self.port._post, path, body)  # pyright: ignore[reportPrivateUsage]
        except errors.ConsoleErrorResponse as error:
            return error.failure.class_
        return ""


@pytest.fixture
async def stranger(review: Review) -> AsyncIterator[Console]:
    """A console that nobody has confirmed."""
    made = Console(review.core)
    yield made
    made.port.close()


@pytest.fixture
async def console(stranger: Console) -> Console:
    return await stranger.confirmed()


def yes(view: Any) -> intents.Approve:
    return intents.Approve(approval_id=view.approval_id, digest=view.digest, unseen_lines=3)


async def test_a_confirmed_console_approves_calls(stranger: Console, mailbox: Mailbox) -> None:
    core, console = stranger.core, stranger
    await console.pair()
    (device,) = core.app.devices.views()
    assert (device.kind, device.words, device.confirmed) == ("console", console.words, False)
    assert device.pid == os.getpid()
    view = await core.ask()
    assert await console.post({"intent": to_frame(yes(view))}) == "unauthorized"
    assert not await asyncio.to_thread(console.port.wait, 1.5)  # beats, and nothing else
    await core.do(ConfirmDevice(device_id=device.device_id, words=console.words))
    await console.opened()
    assert console.snapshot is not None
    assert (console.snapshot.attached, console.snapshot.approvals) == ("attached 1", (view,))
    assert console.snapshot.records[-1].event == "device.paired"
    second = await console.sees("r-8842189950")
    await console.ask(yes(view))
    ended = await core.ended(view)
    assert (ended.state, ended.decided_by, ended.hand) == ("completed", "person", "attached 1")
    assert writes(mailbox).count("POST send") == 1
    (approved,) = await core.records("approval.approved")
    signed = json.loads(approved["signed"])
    assert (approved["hand"], signed["unseen"]) == ("attached 1", 3)
    assert signed["approval"] == view.approval_id
    assert audit_problems(core.app.home.path) == []
    own = await console.hears(events.ApprovalUpdated, lambda e: e.view.state == "completed")
    assert own.view.hand == "console"  # which is "you" on its screen
    await core.do(intents.Deny(approval_id=second.approval_id))
    theirs = await console.hears(events.ApprovalUpdated, lambda e: e.view.state == "denied")
    assert theirs.view.hand == "the console"


async def test_only_the_process_that_attached_may_use_its_key(console: Console) -> None:
    """A key that got out is of no use: over the port of the pages, or from another process."""
    pairings = console.core.app.devices.pairings
    (device,) = pairings.devices()
    key = console.port._key  # pyright: ignore[reportPrivateUsage]

    def request(number: int, peer: int | None) -> None:
        path = "/v1/attach/intent"
        signature = bytes.fromhex(key.sign(request_text(pairings.start, "POST", path, number, b"")))
        pairings.authenticate(device.device_id, number, signature, path, b"", peer=peer)

    request(98, os.getpid())
    with pytest.raises(errors.AileronError, match="not paired"):
        request(98, os.getpid())  # sent again
    for elsewhere in (None, 1):
        with pytest.raises(errors.AileronError, match="not paired"):
            request(99, elsewhere)
    request(99, os.getpid())
    device.program = Program(pid=1, executable="/sbin/init")
    assert await console.post({}) == "unauthorized"


async def test_what_was_not_signed_or_shown_is_refused(
    console: Console, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what was: what a call is now may be on its way and not have been sent."""
    core = console.core
    view, other = await core.ask(), await console.sees("r-8842189950")
    good = console.port._signed(yes(view))  # pyright: ignore[reportPrivateUsage]
    key = console.port._key._key  # pyright: ignore[reportPrivateUsage]

    def answer(intent: intents.Intent, *, by: Any = key, **changed: Any) -> dict[str, Any]:
        decision = {**good["decision"], **changed}  # pyright: ignore[reportGeneralTypeIssues]
        text = json.dumps(decision, sort_keys=True, separators=(",", ":")).encode()
        signature = sign(by, b"aileron decision v1\0" + text).hex()
        return {"intent": to_frame(intent), "decision": decision, "signature": signature}

    given = yes(view)
    denial = intents.Deny(approval_id=view.approval_id, grant=replace(TERMS, decision="deny"))
    wrong = {
        "no signature": {"intent": to_frame(given)},
        "another key": answer(given, by=new_key()),
        "another home": answer(given, home="/elsewhere"),
        "another call": answer(replace(given, approval_id=other.approval_id)),
        "a deny": answer(intents.Deny(approval_id=view.approval_id)),
        "another digest": answer(replace(given, digest=other.digest)),
        "fewer unseen lines": answer(replace(given, unseen_lines=0)),
        "another item": answer(given, shown="0" * 64),
        "a grant": answer(replace(given, grant=TERMS)),
        "a denial that stands": answer(denial, verdict="deny", unseen=0),
        "a digest of another": answer(replace(given, digest=other.digest), digest=other.digest),
    }
    for what, body in wrong.items():
        refused = await console.post(body)
        assert refused == "forbidden" if "grant" in what or "stands" in what else refused, what
    sent, encoded = threading.Event(), attach_routes._encoded  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(attach_routes, "_encoded", lambda e: sent.wait(PATIENCE) and encoded(e))
    await core.app.approvals.refresh(view.approval_id)
    newer = await core.looked(view.approval_id, after=view.version)
    try:
        assert newer.digest == view.digest
        assert "changed while you answered" in await console.refused(given)
    finally:
        sent.set()
    assert await console.post(answer(given)) == "conflict"  # as it was before
    assert writes(mailbox).count("POST send") == 0
    await console.hears(events.ApprovalUpdated, lambda e: e.view.version == newer.version)
    await console.ask(yes(newer))
    await core.ended(newer)
    # After another's answer it is told whose, without the call's id, which says nothing to a person.
    await core.do(intents.Deny(approval_id=other.approval_id))
    await console.hears(events.ApprovalUpdated, lambda e: e.view.state == "denied")
    for late in (yes(other), intents.Deny(approval_id=other.approval_id)):
        told = await console.refused(late)
        assert told.startswith("This call was answered already: the console denied it at ")


async def test_a_body_that_is_too_large_or_no_frame_decides_nothing(console: Console) -> None:
    """One error body each, the console goes on, and so does its stream."""
    view = await console.sees()
    call, deep = {"approval_id": view.approval_id}, list[Any]()
    for _ in range(900):
        deep = [deep]
    for intent in (
        {"Deny": {**call, "reason": "x" * 70_000}},
        {"Deny": {**call, "reason": "\ud800"}},
        {"Approve": {**call, "digest": view.digest, "unseen_lines": -1}},
        {"Deny": deep},
        {"Deny": {"approval_id": deep}},
        [],
        {"Deny": {}, "Approve": {}},
    ):
        assert await console.post({"intent": intent}) in ("invalid_request", "payload_too_large")
    signed: dict[str, Any] = console.port._signed(yes(view))  # pyright: ignore[reportPrivateUsage, reportAssignmentType]
    good = signed["decision"]
    for decision in ([], deep, {**good, "at": 2**60}, {**good, "home": "\ud800"}):
        body = {"intent": to_frame(yes(view)), **signed, "decision": decision}
        assert await console.post(body) == "invalid_request"
    await console.ask(yes(view))
    await console.core.ended(view)


async def test_what_is_no_answer_fails(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own process, so that no passphrase leaves it; and by the server, whatever a program sends."""
    owners = [intents.SetPause(paused=True), intents.StopEverything()]
    for intent in (*owners, MakeLink(), ConfirmDevice(device_id="dev-1", words=())):
        assert "in the console itself" in await console.refused(intent)
        refused = await console.post({"intent": to_frame(intent)})
        assert refused == ("forbidden" if intent in owners else "invalid_request")
    sent: list[bytes] = []
    monkeypatch.setattr(attach, "to_bytes", lambda given: sent.append(given) or to_bytes(given))
    await console.ask(intents.UnlockVault(passphrase=Secret(PASSPHRASE)))
    assert "in the console itself" in (await console.hears(events.VaultRefused)).message
    assert sent == []
    assert console.core.app.pause.paused_since is None


async def test_a_console_confirmed_as_the_owners_does_what_it_signed(stranger: Console) -> None:
    """Pause and stop, on record with its hand; altered, signed by another key or sent again, an intent does nothing."""
    core, console = stranger.core, stranger
    await console.confirmed(as_owners=True)
    assert console.snapshot is not None
    assert console.snapshot.is_owners
    assert set(OWNERS_REQUESTS) == {each.__name__ for each in get_args(intents.OwnersIntent)}
    port = console.port
    pause, resume = intents.SetPause(paused=True), intents.SetPause(paused=False)

    def signed(intent: Any, **changed: Any) -> dict[str, Any]:
        return {"intent": to_frame(intent), **port._signed_intent(pause), **changed}  # pyright: ignore[reportPrivateUsage]

    late = signed(pause)  # of a request before the ones that follow
    other_key = sign(new_key(), b"aileron intent v1\0{}").hex()
    no_text = {"intent": {"EndSession": {"session_id": "\ud800"}}}
    no_texts = {"intent": {"AcceptSuite": {"suite_id": "", "files": [["\ud800", "\ud800"]]}}}
    wrong: dict[str, Callable[[], dict[str, Any]]] = {
        "no signature": lambda: {"intent": to_frame(pause)},
        "a later number": lambda: late,
        "another intent": lambda: signed(intents.StopEverything()),
        "the opposite": lambda: signed(resume),
        "another time": lambda: signed(pause, at=1),
        "no time": lambda: signed(pause, at=2**53),
        "another key": lambda: signed(pause, signature=other_key),
        "a text that is none": lambda: signed(pause) | no_text,
        "a text in a list": lambda: signed(pause) | no_texts,
    }
    assert await console.post({"intent": {"SetPause": {}}})
    for what, body in wrong.items():  # each signed with the number of the request that it is in
        assert await console.post(body()) == "invalid_request", what
    assert core.app.pause.paused_since is None

    await console.ask(pause)
    (paused,) = await core.until_record("console.paused")
    assert any(isinstance(it, events.PauseChanged) for it in core.events)  # the console's screen
    (asked,) = await core.records("device.asked")
    assert (paused["hand"], paused["asked"]) == ("attached 1", asked["signature"])
    assert json.loads(asked["signed"])["intent"] == to_frame(pause)
    await console.ask(resume)
    await core.until_record("console.resumed")

    view = await core.ask()
    other = await Console(core).confirmed()
    (device,) = [each for each in core.app.devices.views() if not each.is_owners]
    await console.ask(EndDevice(device_id=device.device_id))
    assert "A person ended" in (await other.hears(events.CoreLost)).message
    await console.ask(intents.StopEverything())
    assert (await core.view(view.approval_id, lambda v: v.state == "denied")).hand == "attached 1"
    await console.hears(events.CoreLost)
    (stopped,) = await core.until_record("console.everything_stopped")
    assert stopped["hand"] == "attached 1"
    await core.until(lambda: any(isinstance(it, events.EverythingStopped) for it in core.events))
    assert audit_problems(core.app.home.path) == []

    bodies = await core.records()
    for number, each in enumerate(bodies):
        if "asked" in each:
            answers = DeviceAnswers()
            stripped = {name: value for name, value in each.items() if name != "asked"}
            changed = [*bodies[:number], stripped, *bodies[number + 1 :]]
            assert any(map(answers.problem, changed)), each["event"]
    over = {"event": "device.ended", "device": asked["device"], "hand": "attached 1"}
    for number, each in enumerate(bodies):
        if each["event"] == "device.asked":
            late = list(map(DeviceAnswers().problem, [*bodies[:number], over, each]))
            assert late[-1] == "its device had ended before"

    def verified(of: str, /, **changed: Any) -> list[str]:
        """Return what is wrong where the records of the event *of* say something else."""
        answers = DeviceAnswers()
        found = (each | (changed if each["event"] == of else {}) for each in bodies)
        return [problem for each in found if (problem := answers.problem(each))]

    r, s = (int(asked["signature"][at : at + 64], 16) for at in (0, 64))
    again = {**asked, "signature": f"{r:064x}{ORDER - s:064x}"}
    written = (again[each] for each in ("signed", "device_key", "signature"))
    assert SignedIntent.from_record(*written).holds
    answers = DeviceAnswers()
    assert "earlier" in [answers.problem(each) for each in [*bodies, again]][-1]

    first = {"asked": asked["signature"]}
    assert verified("", **first) == []
    for event, changed in {
        "device.paired": {"owners": False},
        "device.asked": {"signed": asked["signed"].replace("true", "false")},
        "approval.denied": {"event": "approval.approved"},
        "console.everything_stopped": first,
        "session.ended": {"hand": "attached 7"},
        "console.paused": {"asked": "00"},
        "console.resumed": {"asked": []},
    }.items():
        assert verified(event, **changed), event


@pytest.mark.parametrize("error", [errors.StorageUnavailable, errors.OwnerLost])
async def test_a_stop_that_was_not_recorded_is_proven_by_its_effects(
    stranger: Console, monkeypatch: pytest.MonkeyPatch, error: type[errors.AileronError]
) -> None:
    """It is carried out all the same; each record of what it did brings what was signed."""
    core, console = stranger.core, stranger
    await console.confirmed(as_owners=True)
    view = await core.ask()

    async def fails(*_: object) -> None:
        raise error("It could not be written.")

    monkeypatch.setattr(DeviceService, "record_asked", fails)
    await console.ask(intents.StopEverything())
    await core.view(view.approval_id, lambda v: v.state == "denied")
    await core.until_record("console.everything_stopped")
    assert await core.records("device.asked") == []
    assert audit_problems(core.app.home.path) == []
    bodies = await core.records()
    for each in bodies:
        if "unrecorded" in each:
            each["unrecorded"]["intent"] = "SetPause"
    assert any(map(DeviceAnswers().problem, bodies))


async def test_an_owners_console_accepts_a_file_as_it_was_sent_to_it(alone: Core) -> None:
    """The digest that it was sent last, with the key and the publisher that were shown."""
    console, library = Console(alone), alone.app.library
    await console.pair()
    await console.confirm()
    await console.opened()
    file = next(f for f in library.items() if f.kind == "connector")
    folder = alone.app.home.path / file.file
    parts = ((folder / each).read_bytes() for each in ("connector.wasm", "manifest.toml"))
    key = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
    (folder / SIGNED_FILE).write_bytes(signed(key, *parts))
    await library.poll()
    await alone.do(intents.WithdrawAcceptance(kind="connector", name=file.name, digest=file.digest))
    shown = library.not_accepted()[0].signed_with
    await console.hears(
        events.LibraryUpdated, lambda e: file.name in {f.name for f in e.not_accepted}
    )
    accept = intents.Accept(kind="connector", name=file.name, digest=file.digest, signed_with=shown)
    for other in (
        replace(accept, digest="0" * 64),
        replace(accept, signed_with="SHA256:other"),
        replace(accept, signed_with=shown.replace("aileron", "other")),
    ):
        assert "not what the console was sent" in await console.refused(other)
    await console.ask(accept)
    await alone.until(lambda: file.name not in {f.name for f in library.not_accepted()})
    accepted = (await alone.records("library.accepted"))[-1]
    assert (accepted["name"], accepted["hand"]) == (file.name, "attached 1")
    await console.hears(events.LibraryUpdated, lambda e: not e.not_accepted)
    assert "not what the console was sent" in await console.refused(accept)
    assert audit_problems(alone.app.home.path) == []
    bodies = await alone.records()
    for each in bodies:
        if each.get("kind") == "publisher":
            each["name"] = "github://other/mail-drafts"
    answers = DeviceAnswers()
    assert "another file" in "".join(answers.problem(each) for each in bodies)
    console.port.close()


async def test_what_answers_one_console_is_told_to_no_other(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link's secret is for the screen that asked for it; what is read here does not move the rows there."""
    core = console.core
    await core.do(MakeLink())
    await console.ask(intents.ReadHistory(query=HistoryQuery(), limit=10))
    await console.hears(events.HistoryRead)
    assert not [each for each in console.told if isinstance(each, LinkMade)]
    assert not [each for each in core.events if isinstance(each, events.HistoryRead)]
    # An error of its own ends it with a sentence.
    monkeypatch.setattr(console.port, "_post", None)
    await console.ask(intents.VerifyAudit())
    assert "(TypeError). Quit with q" in (await console.hears(events.CoreLost)).message


@pytest.mark.core(settings=Settings(console=ConsoleSettings(arm_ms=400)))
async def test_an_answer_too_soon_does_not_count(clock: FrozenClock, console: Console) -> None:
    """By the home's clock, whatever the screen says."""
    view = await console.sees()
    assert "too soon" in await console.refused(yes(view))
    clock.advance(0.5)
    await console.ask(yes(view))
    await console.core.ended(view)


async def test_a_program_of_a_session_cannot_attach(core: Core) -> None:
    async with serving(core):
        core.app.sessions.add(replace(core.session, pid=os.getpid()))
        with pytest.raises(errors.ConsoleErrorResponse, match="agent's session cannot attach"):
            await asyncio.to_thread(port_of(core).pair)
        (refused,) = await core.records("device.refused")
        assert refused["pids"] == [os.getpid()]


async def test_one_console_at_a_time_asks_and_four_are_attached(review: Review) -> None:
    """A program that asks again and again takes nobody's place, and is named."""
    consoles: list[Console] = []
    try:
        for _ in range(MOST_DEVICES):
            consoles.append(Console(review.core))
            await consoles[-1].confirmed()
        with pytest.raises(errors.ConsoleErrorResponse, match="no more can be"):
            await asyncio.to_thread(port_of(review.core).pair)
        consoles.pop().port.close()
        await review.core.until_record("device.ended")
        await asyncio.to_thread(port_of(review.core).pair)
        asks = f"Process {os.getpid()} .*asks to be attached"
        with pytest.raises(errors.ConsoleErrorResponse, match=asks):
            await asyncio.to_thread(port_of(review.core).pair)
    finally:
        for each in consoles:
            each.port.close()


async def test_the_end_of_a_pairing_is_said_and_ends_nothing_else(console: Console) -> None:
    core = console.core
    view = await core.ask()
    (device,) = core.app.devices.views()
    await core.do(EndDevice(device_id=device.device_id))
    assert "A person ended" in (await console.hears(events.CoreLost)).message
    second = await Console(core).confirmed()
    assert second.snapshot is not None
    assert (second.snapshot.attached, second.snapshot.approvals) == ("attached 2", (view,))
    second.port.close()
    await core.until_record("device.ended", 2)
    assert (core.app.devices.views(), core.views(view.approval_id)[-1].state) == ((), "pending")


async def test_a_server_that_is_silent_decides_nothing_within_3_seconds(console: Console) -> None:
    """The screen hears of it by itself, whatever the server's process does."""
    lost = threading.Event()
    console.port.subscribe(lambda event: lost.set() if isinstance(event, events.CoreLost) else None)
    began = time.monotonic()
    while not lost.is_set() and time.monotonic() - began < 10:
        time.sleep(0.05)  # the server's loop is this one
    assert time.monotonic() - began < 3.0 + 1.0  # its last line was up to a second before
    assert "has not answered" in console.port.over


async def test_a_console_that_does_not_read_is_cut_off(
    stranger: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, console = stranger.core, stranger
    held: list[Any] = []
    monkeypatch.setattr(console.port, "_read", lambda *streams: held.extend(streams))
    await console.pair()
    (device,) = core.app.devices.views()
    await core.do(ConfirmDevice(device_id=device.device_id, words=console.words))
    for _ in range(2_000):  # megabytes, more than the kernel keeps for it
        core.app.publisher.library_changed(core.app.library)
    await core.until_record("device.ended")
    for each in held:
        each.close()


@pytest.fixture
async def alone(home: Any, library: None, start: Any) -> AsyncIterator[Core]:
    """A core as `aileron serve` has it, with a vault."""
    await protected_home(home)
    async with start(has_console=False, accept=False) as core:
        await unlock(core)
        for each in core.app.sessions.all():  # also that of the core which made the vault
            core.app.sessions.add(replace(each, pid=None))
        async with serving(core):
            yield core


async def test_the_vaults_passphrase_confirms_a_console_at_serve(alone: Core) -> None:
    """A wrong one does not, and a server that has a console asks nobody for it."""
    console = Console(alone)
    await console.pair()
    assert not console.port.has_console
    with pytest.raises(errors.ConsoleErrorResponse, match="passphrase"):
        await console.confirm("another passphrase")
    assert not console.port.wait(0)
    await console.confirm()
    await console.opened()
    view = await console.sees()
    await console.ask(intents.Deny(approval_id=view.approval_id, reason="Not now."))
    denied = await alone.view(view.approval_id, lambda v: v.state == "denied")
    assert (denied.hand, denied.reason) == ("attached 1", "Not now.")
    alone.app.devices.has_console = True
    again = {"words": console.words, "passphrase": PASSPHRASE}
    assert await console.post(again, "/v1/attach/confirm") == "forbidden"
    console.port.close()


async def test_at_serve_no_program_holds_the_place_of_a_console(alone: Core) -> None:
    consoles = [Console(alone) for _ in range(2 * MOST_DEVICES)]
    for each in consoles[: MOST_DEVICES + 1]:
        await each.pair()
    assert len(alone.app.devices.views()) == MOST_DEVICES
    with pytest.raises(errors.ConsoleErrorResponse, match="No console of these words"):
        await consoles[0].confirm()
    for each in consoles[1 : MOST_DEVICES + 1]:
        await each.confirm()
        await each.opened()
    await consoles[-1].pair()
    with pytest.raises(errors.ConsoleErrorResponse, match="no more can be"):
        await consoles[-1].confirm()
    (refused,) = await alone.records("device.refused")
    assert refused["hand"] == "attached 1"
    for each in consoles:
        each.port.close()


async def test_two_passphrases_at_one_instant_make_no_fifth_device(alone: Core) -> None:
    """A place is taken before the confirmation is recorded; a third of the same console changes nothing."""
    consoles = [Console(alone) for _ in range(MOST_DEVICES + 1)]
    devices = alone.app.devices

    async def right() -> None:
        pass

    for each in consoles:
        await each.pair()
        if each in consoles[: MOST_DEVICES - 1]:
            await devices.confirm_with_passphrase(each.words, right)
    late = [consoles[-2], consoles[-1], consoles[-2]]
    confirming = (devices.confirm_with_passphrase(each.words, right) for each in late)
    told = await asyncio.gather(*confirming, return_exceptions=True)
    assert told[0] is None
    assert [type(each) for each in told[1:]] == [errors.Conflict, errors.NotFound]
    assert sum(each.confirmed for each in devices.views()) == MOST_DEVICES
    assert len(await alone.records("device.paired")) == MOST_DEVICES
    for each in consoles:
        each.port.close()
