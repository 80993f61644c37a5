"""The way in of an attached console: the port of the console itself, over the home's socket alone (docs/attach.md).

Every program of this user can reach the socket, so each has a key of its own and nothing else. Until a person
confirmed that key it gets nothing. Then it reads what the console shows; each of its answers is signed.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, cast, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from aileron_core import tasks
from aileron_core.app import App
from aileron_core.audit.owners import only_stops
from aileron_core.canonical import JsonObject, in_utf8, sha256_hex
from aileron_core.console.service import ConsoleService
from aileron_core.console_port.account_intents import (
    BeginLogin,
    BindAccount,
    RebindAccount,
)
from aileron_core.console_port.account_views import LoginUpdated
from aileron_core.console_port.codec import (
    RANDOM_BYTES,
    intent_from_frame,
    to_bytes,
    to_frame,
    to_json,
    to_signed,
)
from aileron_core.console_port.devices import DevicesUpdated
from aileron_core.console_port.events import (
    AccountsUpdated,
    ApprovalsRead,
    ApprovalUpdated,
    CoreEvent,
    EverythingStopped,
    GrantEnded,
    LibraryUpdated,
    PauseChanged,
    Recorded,
    SessionsUpdated,
    StandingUpdated,
    StorageHealth,
    VaultStatus,
)
from aileron_core.console_port.intents import (
    Accept,
    AcceptSuite,
    Approve,
    AttachedIntent,
    ChooseAccount,
    Deny,
    OwnersIntent,
)
from aileron_core.console_port.view_models import FINAL_STATES, ApprovalView, NotAcceptedView
from aileron_core.devices import CONSOLE, Hand
from aileron_core.devices.pairing import Device
from aileron_core.devices.signed import MAX_NUMBER, SignedDecision, SignedIntent, intent_text
from aileron_core.errors import (
    AileronError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
)
from aileron_core.events import EventBus
from aileron_core.server.auth import drop_connection
from aileron_core.server.request_parsing import (
    app_of,
    json_object,
    require_peer,
    watch_disconnect,
)
from aileron_core.server.review_routes import (
    LineStream,
    hex_bytes,
    live_run,
    signed_decision,
    signing_device,
)
from aileron_core.server.route_spec import RouteSpec
from aileron_core.vault.secret import Secret

_BEAT_SECONDS: Final = 1.0
_RECORDS: Final = 50
"""In one line of the snapshot."""
_AT_ONCE: Final = 32
"""Events that are encoded in one go, on a thread."""
_MOST_QUEUED: Final = 20_000
"""Events that wait for a console which reads too slowly; with more it is cut off."""
_KINDS: Final[Mapping[str, type[AttachedIntent]]] = {
    each.__name__: each for each in get_args(AttachedIntent)
}
_State: TypeAlias = (
    ApprovalUpdated
    | SessionsUpdated
    | LibraryUpdated
    | PauseChanged
    | EverythingStopped
    | Recorded
    | StorageHealth
    | VaultStatus
    | AccountsUpdated
    | DevicesUpdated
    | StandingUpdated
    | GrantEnded
)
"""What every console is told. All else answers one of them: a link's secret and a login are for that one alone."""


class _Sent(NamedTuple):
    """A call as a console was sent it last."""

    shown: str
    """SHA-256, hex, of the codec's bytes of its view."""
    version: int
    digest: str
    at: float
    """Monotonic: since when it is sent in this version."""


_File: TypeAlias = tuple[str, str, str, str]
"""Kind, name, digest and the key that signed it; of what may be accepted with others also `suite` and the file."""


class _Line(NamedTuple):
    """One line of the stream, with the calls in it."""

    body: bytes
    calls: tuple[tuple[ApprovalView, str], ...] = ()
    """Each with the SHA-256 of its bytes."""
    files: tuple[NotAcceptedView, ...] | None = None
    """All that can be accepted, where the line has them."""
    accounts: AccountsUpdated | None = None
    """Where the line has them."""


@dataclass(slots=True)
class AttachedStream:
    """What goes to one attached console, in order, and what it was sent of each call."""

    everybody: EventBus[CoreEvent]
    """The core's own."""
    queue: deque[CoreEvent] = field(default_factory=deque[CoreEvent])
    came: asyncio.Event = field(default_factory=asyncio.Event)
    answers: EventBus[CoreEvent] = field(default_factory=EventBus[CoreEvent])
    """What answers this console's own intents."""
    sent: dict[str, _Sent] = field(default_factory=dict[str, _Sent])
    files: dict[_File, float] = field(default_factory=dict[_File, float])
    """What it was sent last of the files that can be accepted, each since when (monotonic)."""
    connectors: dict[str, float] = field(default_factory=dict[str, float])
    """The hashes that it was sent last of connectors which ask for an account, each since when (monotonic)."""
    logins: set[str] = field(default_factory=set[str])
    """Begun by this console: nobody else can finish them."""
    is_over: bool = False

    def __post_init__(self) -> None:
        self.answers.subscribe(self.answer)

    def put(self, event: CoreEvent) -> None:
        self.queue.append(event)
        self.came.set()

    def answer(self, event: CoreEvent) -> None:
        """Tell this console what answers it; what its intent changed, everybody is told."""
        if isinstance(event, LoginUpdated):
            self.logins.add(event.login.login_id)
        if isinstance(event, _State):
            self.everybody.publish(event)
        else:
            self.put(event)

    def heard(self, event: CoreEvent) -> None:
        if isinstance(event, _State):
            self.put(event)

    def note(self, line: _Line, at: float) -> bytes:
        """Note what a line shows as it is sent, and return it."""
        now = at
        for view, shown in line.calls:
            at = now
            if view.state in FINAL_STATES:
                self.sent.pop(view.approval_id, None)
                continue
            before = self.sent.get(view.approval_id)
            if before is not None and (before.version, before.digest) == (
                view.version,
                view.digest,
            ):
                at = before.at
            self.sent[view.approval_id] = _Sent(shown, view.version, view.digest, at)
        if line.files is not None:
            names = {(f.kind, f.name, f.digest, f.signed_with) for f in line.files}
            names |= {("suite", f.file, f.digest, f.signed_with) for f in line.files}
            self.files = {each: self.files.get(each, now) for each in names}
        if line.accounts is not None:
            hashes = {each.hash for each in line.accounts.users}
            self.connectors = {each: self.connectors.get(each, now) for each in hashes}
        return line.body

    def require_sent(self, given: OwnersIntent, app: App) -> None:
        """Check that what a file, a connector or a call is given is about it as the console was sent it last.

        Raises:
            NotFound: there is no such call.
            Conflict: it was sent others, or has them only just now.
        """
        if isinstance(given, BindAccount | RebindAccount | BeginLogin):
            since = self.connectors.get(given.connector_hash)
            if since is None:
                raise Conflict("This connector is not what the console was sent last.")
            _require_rested(since, app)
        elif isinstance(given, ChooseAccount):
            self._require_current(self.sent.get(given.approval_id), given.approval_id, app)
        files: list[_File] = []
        if isinstance(given, Accept):
            files = [(given.kind, given.name, given.digest, given.signed_with)]
        elif isinstance(given, AcceptSuite):
            keys = dict(given.signed_with)
            files = [("suite", *each, keys.get(each[0], "")) for each in given.files]
        if any(each not in self.files for each in files):
            raise Conflict("This is not what the console was sent last. Nothing was accepted.")
        for each in files:
            _require_rested(self.files[each], app)

    @staticmethod
    def _require_current(sent: _Sent | None, approval_id: str, app: App) -> None:
        """Check that a call is as the console was *sent* it, and has been for a while.

        Raises:
            NotFound, Conflict: it is not.
        """
        now = app.publisher.view(live_run(app, approval_id))
        if sent is None or (sent.version, sent.digest) != (now.version, now.digest):
            raise Conflict("The call changed while you answered. Nothing was decided.")
        _require_rested(sent.at, app)

    def end_logins(self, app: App) -> None:
        """Forget the logins that this console, which has ended, began and did not finish."""
        self.is_over = True
        for each in self.logins:
            with suppress(NotFound):
                app.authorizations.cancel(each)

    def hand(self, device: Device, signed: SignedDecision, app: App, given: Approve | Deny) -> Hand:
        """Return the hand of an answer that is exactly what was signed, about what was shown.

        Raises:
            AileronError: it is something else, or the call is not as it was shown.
        """
        decision = signed.decision
        if isinstance(given, Approve):
            answer = ("approve", given.digest, "", given.unseen_lines)
            require = app.approvals.require_waiting
        else:
            answer = ("deny", decision.digest, given.reason, 0)
            require = app.approvals.require_open
        verdict, digest, reason, unseen = answer
        about = (decision.approval, decision.verdict, decision.digest, decision.unseen)
        if about != (given.approval_id, verdict, digest, unseen) or (
            sha256_hex(reason.encode()) != decision.reason
        ):
            raise InvalidRequest("'decision' is another answer than 'intent'.")
        if given.grant is not None:
            raise Forbidden("An attached console answers one call at a time. Nothing was decided.")
        run = live_run(app, given.approval_id)
        # Before all else, so that whose answer counted is said.
        require(run)
        sent = self.sent.get(given.approval_id)
        if sent is None or (sent.shown, sent.digest) != (decision.shown, decision.digest):
            raise Conflict("This is not what the console was sent last. Nothing was decided.")
        self._require_current(sent, given.approval_id, app)
        still = partial(app.devices.pairings.require_confirmed, device)
        return Hand(name=device.name, proof=signed.to_record(), require=still)


def _require_rested(since: float, app: App) -> None:
    """Check that what was sent at *since* (monotonic) has been on the screen for a while."""
    if app.clock.monotonic() - since < app.devices.arm_ms / 1000:
        raise Conflict("That was too soon after the screen changed. Nothing was done.")


# Pairing


async def attach(request: Request) -> Response:
    """Take a console that has fixed its key; a person has to confirm it."""
    app, peer = app_of(request), require_peer(request)
    body = await json_object(request, ("commitment",))
    device = await app.devices.attach(hex_bytes(body, "commitment", 32), peer.pid)
    return _json(
        {
            "device": device.device_id,
            "start": app.devices.pairings.start,
            "home": in_utf8(str(app.home.path)),
            "has_console": app.devices.has_console,
        }
    )


async def show_key(request: Request) -> Response:
    """Take the key that a console had fixed, and say its words."""
    app, peer = app_of(request), require_peer(request)
    body = await json_object(request, ("device", "key", "random"))
    device_id = str(body.get("device"))[:64]
    if app.devices.pairings.find(device_id).program.pid != peer.pid:
        raise Forbidden("This is another process than the one that attached.")
    device = await app.devices.reveal(
        device_id, hex_bytes(body, "key", 65), hex_bytes(body, "random", 32)
    )
    return _json({"words": device.words})


async def confirm(request: Request) -> Response:
    """Confirm a console, which a person names by its words, with the vault's passphrase; where no console is open."""
    app, body = app_of(request), await json_object(request, ("words", "passphrase"))
    passphrase, words = body.get("passphrase"), body.get("words")
    if not isinstance(passphrase, str) or not isinstance(words, list):
        raise InvalidRequest("'passphrase' must be a string, and 'words' three of them.")
    secret, named = Secret(passphrase), tuple(map(str, cast("list[object]", words)))
    await app.devices.confirm_with_passphrase(named, lambda: app.vault_service.verify(secret))
    return Response(status_code=204)


async def _device(request: Request, *, confirmed: bool = True) -> Device:
    return await signing_device(request, confirmed=confirmed, peer=require_peer(request).pid)


# Showing


async def events(request: Request) -> Response:
    """Stream everything that the console shows, once the console that signed this is confirmed; until then, beats."""
    device = await _device(request, confirmed=False)
    await json_object(request, ())
    if device.streams:
        raise Conflict("This console reads already.")
    return LineStream(_lines(request, device))


async def _lines(request: Request, device: Device) -> AsyncGenerator[bytes]:
    app = app_of(request)
    stream = AttachedStream(app.events)
    streams: dict[str, AttachedStream] = request.app.state.attached
    draining: asyncio.Event = request.app.state.draining
    unsubscribe: Callable[[], None] | None = None
    device.streams += 1
    try:
        async with watch_disconnect(request) as gone:
            ends = (device.ended, draining, gone)
            while not device.confirmed.is_set() and not any(each.is_set() for each in ends):
                yield _BEAT
                await tasks.any_set(device.confirmed, *ends, seconds=_BEAT_SECONDS)
            if not any(each.is_set() for each in ends):
                unsubscribe = app.events.subscribe(stream.heard)
                streams[device.device_id] = stream
                async for each in _snapshot(app, device):
                    yield stream.note(each, app.clock.monotonic())
            while not any(each.is_set() for each in ends):
                if len(stream.queue) > _MOST_QUEUED:
                    drop_connection(request.scope)
                    return
                if stream.queue:
                    taken = [
                        stream.queue.popleft() for _ in range(min(len(stream.queue), _AT_ONCE))
                    ]
                    for each in await asyncio.to_thread(_encoded, taken):
                        yield stream.note(each, app.clock.monotonic())
                    continue
                stream.came.clear()
                if not await tasks.any_set(stream.came, *ends, seconds=_BEAT_SECONDS):
                    yield _BEAT
        if device.ended.is_set():
            yield _line({"over": "A person ended the pairing of this console."})
    finally:
        if unsubscribe is not None:
            unsubscribe()
        device.streams -= 1
        streams.pop(device.device_id, None)
        stream.end_logins(app)
        tasks.spawn(app.devices.leave(device), name="an attached console left")


async def _snapshot(app: App, device: Device) -> AsyncGenerator[_Line]:
    """Yield everything that a console draws first, a call or some records to a line."""
    whole = await app.console.snapshot()
    start = replace(
        whole, approvals=(), records=(), attached=device.name, is_owners=device.is_owners
    )
    body = await asyncio.to_thread(lambda: _line({"snapshot": to_json(start)}))
    yield _Line(body, files=start.not_accepted, accounts=start.accounts)
    for view in whole.approvals:
        yield await asyncio.to_thread(_call, view)
    for at in range(0, len(whole.records), _RECORDS):
        some = whole.records[at : at + _RECORDS]
        yield _Line(_line({"records": [to_json(each) for each in some]}))
    yield _Line(_line({"ready": True}))


def _call(view: ApprovalView) -> _Line:
    stored = to_json(view)
    return _Line(_line({"call": stored}), ((view, sha256_hex(to_bytes(stored))),))


def _encoded(events: list[CoreEvent]) -> list[_Line]:
    return [_event(each) for each in events]


def _event(event: CoreEvent) -> _Line:
    views = ()
    if isinstance(event, ApprovalUpdated):
        views = (event.view,)
    elif isinstance(event, ApprovalsRead):
        views = event.views
    calls = tuple((each, sha256_hex(to_bytes(to_json(each)))) for each in views)
    files = event.not_accepted if isinstance(event, LibraryUpdated) else None
    accounts = event if isinstance(event, AccountsUpdated) else None
    return _Line(_line({"event": to_frame(event)}), calls, files, accounts)


def _line(content: JsonObject) -> bytes:
    return to_bytes(content) + b"\n"


_BEAT: Final = _line({"beat": True})


# Asking


async def intent(request: Request) -> Response:
    """Carry out what the console that signed this asks for; what comes of it is in its stream."""
    app, device = app_of(request), await _device(request)
    body = await json_object(request, ("intent", "decision", "signature", "at", "randoms"))
    streams: dict[str, AttachedStream] = request.app.state.attached
    stream, frame = streams.get(device.device_id), body.get("intent")
    if stream is None:
        raise NotFound("This console does not read its stream.")
    try:
        given = intent_from_frame(
            cast("dict[str, Any]", frame) if isinstance(frame, dict) else {}, _KINDS
        )
    except ValueError as error:
        raise InvalidRequest(
            f"This is nothing that an attached console may ask for: {error}."
        ) from error
    own = _own(app, stream)
    if isinstance(given, Approve | Deny):
        signed = signed_decision(device, body, in_utf8(str(app.home.path)))
        hand = stream.hand(device, signed, app, given)
        await tasks.uninterrupted(own.submit(given, hand), name="decide from a console")
    elif isinstance(given, OwnersIntent):
        try:
            signed = _signed_intent(app, device, given, body)
            stream.require_sent(given, app)
        except AileronError:
            _wipe(given)
            raise
        carrying = _for_the_owner(app, device, stream, given, signed)
        tasks.spawn(carrying, name="carry out what a console asks")
    else:
        tasks.spawn(own.submit(given, CONSOLE), name="read for a console")
    return Response(status_code=204)


def _own(app: App, stream: AttachedStream) -> ConsoleService:
    """Return the service whose answers are for one console alone."""
    return replace(app.console, events=stream.answers)


def _signed_intent(
    app: App, device: Device, given: OwnersIntent, body: Mapping[str, Any]
) -> SignedIntent:
    """Return what the console signed, which is exactly *given*, in this request.

    The text is made here, of what came: so each commitment that was signed holds for the secret that is used.

    Raises:
        Forbidden: it was not confirmed as the owner's.
        InvalidRequest: it did not sign this, or a passphrase is in it.
    """
    if not device.is_owners:
        raise Forbidden(
            "This console was confirmed for answering calls and reading. Do this in the console itself."
        )
    at, signature = body.get("at"), hex_bytes(body, "signature", 64)
    if type(at) is not int or not 0 <= at <= MAX_NUMBER:
        raise InvalidRequest("'at' must be a whole number of milliseconds.")
    if getattr(given, "passphrase", None) is not None:
        raise InvalidRequest("The vault's passphrase is not for an attached console.")
    home, randoms = in_utf8(str(app.home.path)), body.get("randoms", {})
    if not isinstance(randoms, dict):
        raise InvalidRequest("'randoms' must be an object.")
    found = cast("dict[str, Any]", randoms)
    values = {name: hex_bytes(found, name, RANDOM_BYTES) for name in found}
    try:
        frame = to_signed(given, values)
        text = intent_text(home, device.device_id, device.number, at, frame)
    except ValueError as error:
        raise InvalidRequest(f"'intent' cannot be signed: {error}.") from error
    signed = SignedIntent(text=text, key=device.point, signature=signature)
    if not signed.holds:
        raise InvalidRequest("'signature' is not of this intent. Nothing was done.")
    return signed


async def _for_the_owner(
    app: App, device: Device, stream: AttachedStream, given: OwnersIntent, signed: SignedIntent
) -> None:
    """Record what is asked for, then carry it out; what only holds or stops is done whether or not it is recorded."""
    kind = type(given).__name__
    stops = only_stops(kind, getattr(given, "paused", None))
    own, hand = _own(app, stream), app.devices.unrecorded_hand(device, signed, kind)
    try:
        hand = await app.devices.record_asked(device, signed, kind)
    except AileronError as error:  # the disk, or another console that has taken the home over
        app.storage.report_failure(error.message)
        if not stops:
            own.refuse(given, error.message)
            _wipe(given)
            return
    if device.ended.is_set():
        _wipe(given)
        return
    if not stops:  # a stop ends this device itself
        hand = replace(hand, require=partial(app.devices.pairings.require_confirmed, device))
    await own.submit(given, hand)
    if stream.is_over:
        stream.end_logins(app)


def _wipe(refused: OwnersIntent) -> None:
    """Overwrite the secret in an intent that is not carried out."""
    if isinstance(refused, BindAccount):
        refused.wipe()


def _json(body: JsonObject) -> Response:
    return JSONResponse(body, headers={"cache-control": "no-store"})


ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec("POST", "/v1/attach", "socket", attach, {200: dict}),
    RouteSpec("POST", "/v1/attach/key", "socket", show_key, {200: dict}),
    RouteSpec("POST", "/v1/attach/confirm", "socket", confirm, {204: None}),
    RouteSpec("POST", "/v1/attach/events", "socket", events, {200: None}),
    RouteSpec("POST", "/v1/attach/intent", "socket", intent, {204: None}),
)
