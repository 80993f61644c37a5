"""`aileron attach`: a second console on a home whose server runs already, over its socket.

It makes a key, shows its three words, and gets nothing until a person confirmed it (docs/attach.md). Then it is a
`ConsolePort` like the core's own thread; each answer is signed, and all but answers and readings stays where it is.
"""

import contextlib
import hashlib
import http.client
import json
import queue
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast, get_args

import click

from aileron_core.canonical import Json, sha256_hex
from aileron_core.clock import SystemClock
from aileron_core.console_port.account_intents import AccountIntent, BindAccount
from aileron_core.console_port.account_views import AccountRefused
from aileron_core.console_port.codec import (
    event_from_frame,
    fresh_randoms,
    from_json,
    to_bytes,
    to_frame,
    to_signed,
)
from aileron_core.console_port.events import (
    CoreEvent,
    CoreLost,
    IntentRefused,
    Snapshot,
    VaultRefused,
)
from aileron_core.console_port.intents import (
    Approve,
    AttachedIntent,
    Deny,
    Intent,
    MarkReadBackSeen,
    OwnersIntent,
    TouchVault,
    VaultIntent,
)
from aileron_core.console_port.view_models import FINAL_STATES, ApprovalView, RecordView
from aileron_core.devices import CONSOLE
from aileron_core.devices.signed import Decision, intent_text, request_text
from aileron_core.errors import (
    AileronError,
    ConsoleErrorResponse,
    ConsoleUnavailable,
    Failure,
    Unavailable,
)
from aileron_core.home.client import HomeConnection
from aileron_core.home.layout import Home
from aileron_core.settings import Settings, load_settings
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CliError, CommandContext
from aileron_tui.cli.process import close_memory, drop_key_variables
from aileron_tui.cli.vault import ask_unseen
from aileron_tui.words.views import THE_CONSOLE

SILENT_SECONDS: Final = 2.5
"""Without a line of the server, which sends one a second: then nothing can be decided here any more."""
_LOOK_SECONDS: Final = 0.25
_REQUEST_SECONDS: Final = 30.0
_PROMPT: Final = "The vault's passphrase: "
_TRIES: Final = 3
_ELSEWHERE: Final = "An attached console answers calls and reads. Do this in the console itself."
_UNLOCK_THERE: Final = (
    "No passphrase leaves an attached console. Run `aileron vault unlock` on its server's machine, or do this "
    "in the console itself."
)
_CHANGED: Final = "The call changed while you answered. Nothing was decided."
_SILENT: Final = "Its server has not answered for 3 s. Quit with q, then attach again."
_GONE: Final = "Its server has ended, or cut this console off. Quit with q, then attach again."
_BROKEN: Final = (
    "An unexpected error ended this console's connection ({}). Quit with q, then attach again."
)
_WORD: Final = re.compile("[a-z]+")


class _Key:
    """A key that this process makes, and that never leaves it."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key()
        self.point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def sign(self, text: bytes) -> str:
        """Return `r || s` in hex."""
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        r, s = decode_dss_signature(self._key.sign(text, ECDSA(SHA256())))
        return (r.to_bytes(32) + s.to_bytes(32)).hex()


class AttachedCore:
    """A `ConsolePort`: the core of the process that owns a home, over its socket.

    Args:
        dial: makes a connection there.
        gone: what to say once there is none any more.
        elsewhere: the other machine that the home is on; empty: this one.
    """

    def __init__(
        self,
        dial: Callable[[float | None], HomeConnection],
        gone: str = _GONE,
        elsewhere: str = "",
    ) -> None:
        self._dial, self._gone, self._elsewhere = dial, gone, elsewhere
        self._key = _Key()
        self._device = self._start = self._home = ""
        self._number = 0
        self.has_console = True
        """The server has a console of its own, in which this one is confirmed."""
        self._asked: queue.SimpleQueue[Intent | None] = queue.SimpleQueue()
        self._telling = threading.Lock()
        self._sink: Callable[[CoreEvent], None] | None = None
        self._early: list[CoreEvent] = []
        self._shown: dict[str, tuple[str, str]] = {}
        """Of each open call, as it was sent last: its digest, and the SHA-256 of its bytes."""
        self._snapshot: Snapshot | None = None
        self._calls: list[ApprovalView] = []
        self._records: list[RecordView] = []
        self._ready = threading.Event()
        self._heard_at = 0.0
        self._stream: HomeConnection | None = None
        self.over = ""
        """Why it has ended, as a sentence; empty while it has not."""

    # Pairing

    def pair(self) -> tuple[str, ...]:
        """Show the server a new key; return its words. Then `follow` waits until a person confirmed it.

        Raises:
            ConsoleUnavailable: no console owns the home.
            ConsoleErrorResponse: it refuses this one.
        """
        random = secrets.token_bytes(32)
        commitment = hashlib.sha256(self._key.point + random).hexdigest()
        found = self._post("/v1/attach", {"commitment": commitment}, signed=False)
        self._device, self._start = found["device"], found["start"]
        self._home, self.has_console = found["home"], found["has_console"]
        shown = {"device": self._device, "key": self._key.point.hex(), "random": random.hex()}
        return tuple(self._post("/v1/attach/key", shown, signed=False)["words"])

    def confirm(self, words: Sequence[str], passphrase: str) -> None:
        """Confirm the console of these words with the vault's passphrase, at a server that has no console.

        Raises:
            ConsoleUnavailable, ConsoleErrorResponse: it is not confirmed.
        """
        body = {"words": list(words), "passphrase": passphrase}
        self._post("/v1/attach/confirm", body, signed=False)

    def follow(self) -> None:
        """Begin to read the stream; `wait` returns once there is something to show.

        Raises:
            ConsoleUnavailable, ConsoleErrorResponse: there is none.
        """
        stream, response = self._open("/v1/attach/events", b"{}", timeout=None)
        self._stream = stream
        self._heard_at = time.monotonic()
        for work in (lambda: self._read(stream, response), self._watch, self._send):
            threading.Thread(target=work, name="aileron-attach", daemon=True).start()

    def wait(self, seconds: float | None = None) -> bool:
        """Return whether everything is here that a console draws first, or (`over`) it has ended."""
        return self._ready.wait(seconds)

    def close(self) -> None:
        """End the pairing, and nothing else."""
        self._asked.put(None)
        if self._stream is not None:
            self._stream.abort()

    # The port

    def submit(self, intent: Intent) -> None:
        """Hand *intent* over and return at once. What an attached console may not do is refused here."""
        if not isinstance(intent, TouchVault | MarkReadBackSeen):  # nobody asked for these
            self._asked.put(intent)

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        """Return the present state; *sink* is called on threads of this object for every later event.

        Raises:
            Unavailable: it has ended.
        """
        if self._snapshot is None or self.over:
            raise Unavailable(self.over or self._gone)
        with self._telling:
            for event in self._early:
                sink(event)
            self._early.clear()
            self._sink = sink
        return self._snapshot

    # Reading

    def _read(self, connection: HomeConnection, response: http.client.HTTPResponse) -> None:
        with (
            contextlib.suppress(OSError, ValueError, http.client.HTTPException),
            contextlib.closing(connection),
            response,
        ):
            while raw := response.readline():
                self._heard_at = time.monotonic()
                self._take(json.loads(raw))
        self._end(self._gone)

    def _take(self, line: Mapping[str, Any]) -> None:
        ((kind, found),) = line.items()
        match kind:
            case "snapshot":
                start = from_json(Snapshot, found)
                self._snapshot = replace(start, elsewhere=self._elsewhere)
            case "call":
                self._calls.append(self._view(found))
            case "records":
                seen = self._as_seen_here(found)
                self._records += [from_json(RecordView, each) for each in seen]
            case "ready" if self._snapshot is not None:
                self._snapshot = replace(
                    self._snapshot, approvals=tuple(self._calls), records=tuple(self._records)
                )
                self._ready.set()
            case "event":
                self._event(found)
            case "over":
                self._end(str(found))
            case _:
                pass  # a beat

    def _event(self, frame: Mapping[str, Any]) -> None:
        ((name, stored),) = frame.items()
        if name == "ApprovalUpdated":
            self._note(stored["view"])
        elif name == "ApprovalsRead":
            for each in stored["views"]:
                self._note(each)
        self._tell(event_from_frame({name: self._as_seen_here(stored)}))

    def _view(self, stored: Mapping[str, Any]) -> ApprovalView:
        self._note(stored)
        return from_json(ApprovalView, self._as_seen_here(stored))

    def _note(self, stored: Mapping[str, Any]) -> None:
        """Note the bytes of a view as it was sent: an answer is signed over them."""
        if stored["state"] in FINAL_STATES:
            self._shown.pop(stored["approval_id"], None)
        else:
            self._shown[stored["approval_id"]] = (stored["digest"], sha256_hex(to_bytes(stored)))

    def _as_seen_here(self, value: Any) -> Any:
        """Return JSON of views in which "console", which is "you" on a screen, is this console's own hand."""
        if isinstance(value, list):
            return [self._as_seen_here(each) for each in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, Any]", value)
        seen = {name: self._as_seen_here(each) for name, each in members.items()}
        own = self._snapshot.attached if self._snapshot is not None else None
        if isinstance(hand := members.get("hand"), str):
            seen["hand"] = {own: CONSOLE.name, CONSOLE.name: THE_CONSOLE}.get(hand, hand)
        return seen

    def _tell(self, event: CoreEvent) -> None:
        with self._telling:
            if self._sink is None:
                self._early.append(event)
            else:
                with contextlib.suppress(RuntimeError):  # the screen has ended
                    self._sink(event)

    def _watch(self) -> None:
        while not self.over:
            if time.monotonic() - self._heard_at > SILENT_SECONDS:
                self._end(_SILENT)
            time.sleep(_LOOK_SECONDS)

    def _end(self, why: str) -> None:
        with self._telling:
            if self.over:
                return
            self.over = why
        self._tell(CoreLost(message=why))
        self._ready.set()
        self.close()

    # Asking

    def _send(self) -> None:
        while (intent := self._asked.get()) is not None and not self.over:
            try:
                refused = self._ask(intent)
            except Exception as error:  # noqa: BLE001 - a server that answers nonsense, or a fault of ours
                self._end(_BROKEN.format(type(error).__name__))
                return
            finally:
                if isinstance(intent, BindAccount):
                    intent.wipe()
            if refused is not None:
                self._tell(refused)

    def _ask(self, intent: Intent) -> CoreEvent | None:
        """Have *intent* carried out; return what refuses it. No passphrase leaves this process."""
        owns = self._snapshot is not None and self._snapshot.is_owners
        mine = isinstance(intent, OwnersIntent)
        has_passphrase = getattr(intent, "passphrase", None) is not None
        taken = isinstance(intent, get_args(AttachedIntent)) and not has_passphrase
        if not taken or (mine and not owns):
            if isinstance(intent, VaultIntent):
                return VaultRefused(message=_ELSEWHERE if mine else _UNLOCK_THERE)
            return _refused(intent, _ELSEWHERE)
        body: dict[str, Json] = {"intent": to_frame(intent)}
        try:
            if isinstance(intent, Approve | Deny):
                body |= self._signed(intent)
            elif mine:
                body |= self._signed_intent(intent)
            self._post("/v1/attach/intent", body)
        except AileronError as error:
            return _refused(intent, error.message)
        return None

    def _signed(self, intent: Approve | Deny) -> dict[str, Json]:
        """Return a signed decision.

        Raises:
            Unavailable: the call is not as it was when a person answered.
        """
        approves = isinstance(intent, Approve)
        # Of a call that has ended nothing is kept: the server says whose answer counted.
        ended = (intent.digest if approves else "", "0" * 64)
        digest, shown = self._shown.get(intent.approval_id, ended)
        if approves and intent.digest != digest:
            raise Unavailable(_CHANGED)
        decision = Decision(
            home=self._home,
            approval=intent.approval_id,
            digest=digest,
            shown=shown,
            verdict="approve" if approves else "deny",
            reason=sha256_hex(("" if approves else intent.reason).encode()),
            unseen=intent.unseen_lines if approves else 0,
            device=self._device,
            at=int(SystemClock().now() * 1000),
        )
        stored = json.loads(decision.text().partition(b"\0")[2])
        return {"decision": stored, "signature": self._key.sign(decision.text())}

    def _signed_intent(self, intent: OwnersIntent) -> dict[str, Json]:
        """Return what signs *intent*, as it goes with the next request."""
        at, number, randoms = (
            int(SystemClock().now() * 1000),
            self._number + 1,
            fresh_randoms(intent),
        )
        signed = to_signed(intent, randoms)
        text = intent_text(self._home, self._device, number, at, signed)
        sent = {name: each.hex() for name, each in randoms.items()}
        return {"at": at, "signature": self._key.sign(text), "randoms": sent}

    def _post(self, path: str, body: Mapping[str, Json], *, signed: bool = True) -> Any:
        connection, response = self._open(path, to_bytes(body), _REQUEST_SECONDS, signed=signed)
        try:
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConsoleUnavailable(self._gone) from error
        finally:
            connection.close()
        return json.loads(text) if text else None

    def _open(
        self, path: str, body: bytes, timeout: float | None, *, signed: bool = True
    ) -> tuple[HomeConnection, http.client.HTTPResponse]:
        """Send a request, signed; return the connection and the beginning of its answer."""
        headers = {"Content-Type": "application/json"}
        if signed:
            self._number += 1
            text = request_text(self._start, "POST", path, self._number, body)
            headers |= {
                "Aileron-Device": self._device,
                "Aileron-Number": str(self._number),
                "Aileron-Signature": self._key.sign(text),
            }
        connection = self._dial(timeout)
        try:
            connection.request("POST", path, body=body, headers=headers)
            response = connection.getresponse()
            if response.status < 400:
                return connection, response
            refusal = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            connection.close()
            raise ConsoleUnavailable(self._gone) from error
        connection.close()
        raise ConsoleErrorResponse(Failure.from_json(refusal["error"]))


def _refused(intent: Intent, message: str) -> CoreEvent:
    if isinstance(intent, AccountIntent):
        return AccountRefused(message=message)
    about = getattr(intent, "approval_id", "") or getattr(intent, "call_id", "")
    return IntentRefused(call_id=about, message=message)


# The command


def attach_console(
    context: CommandContext, *, address: str | None, plain: bool, confirm: str, stdio: bool
) -> int:
    """Attach a console to the server that owns the home; return the exit code once it is closed.

    Args:
        address: of another machine, whose home it is.
        confirm: the words of a console that asks for it, which this confirms; empty: none.
        stdio: only pass bytes on, for a console on another machine.
    """
    if context.json:
        raise CliError(EXIT.USAGE, "A console draws on the terminal and cannot print JSON.")
    if stdio:
        from aileron_tui.cli.remote import relay

        return relay(context)
    close_memory()
    drop_key_variables()
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise CliError(EXIT.FAILED, "A console needs a terminal.")
    if confirm:
        _confirm(AttachedCore(partial(dial, context.home)), tuple(_WORD.findall(confirm.lower())))
        click.echo("It is confirmed, as yours.")
        return EXIT.DONE
    settings = load_settings(Home(context.home).config)
    if address is None:
        return _attach(AttachedCore(partial(dial, context.home)), settings, context, plain=plain)
    from aileron_tui.cli.remote import RemoteHome

    remote = RemoteHome(address)
    with contextlib.closing(remote):
        core = AttachedCore(remote.dial, remote.gone, remote.host)
        return _attach(core, settings, context, plain=plain, host=remote.host)


def dial(home: Path, timeout: float | None) -> HomeConnection:
    """Return a connection to the server that owns *home*, which connects when it is used."""
    return HomeConnection(home, timeout=cast("float", timeout))


def _attach(
    core: AttachedCore, settings: Settings, context: CommandContext, *, plain: bool, host: str = ""
) -> int:
    words = core.pair()
    try:
        core.follow()
        _have_confirmed(core, words, context, host)
        return _front_end(core, settings, plain=plain)
    except KeyboardInterrupt:
        return EXIT.INTERRUPTED
    finally:
        core.close()


def _have_confirmed(
    core: AttachedCore, words: Sequence[str], context: CommandContext, host: str
) -> None:
    """Return once a person has confirmed this console.

    Raises:
        CliError: nobody did.
    """
    shown, where = " · ".join(words), host or escape(str(context.home))
    if core.has_console:
        click.echo(f"The words of this console: {shown}")
        click.echo(
            f"Confirm it in the open console of {where}: press 5, then t on its row, and "
            "compare the words. Ctrl-C gives up."
        )
    elif host:  # the passphrase is typed on its own machine, and passes through no other
        click.echo(f"The words of this console: {shown}")
        click.echo(
            f"No console is open on {host}. Confirm this one there with the vault's passphrase; Ctrl-C gives up:\n"
            f"    aileron attach --confirm {'-'.join(words)}"
        )
    else:
        click.echo("No console is open on this server. The vault's passphrase confirms this one.")
        _confirm(core, words)
    while not core.wait(0.5):
        pass
    if core.over:
        raise CliError(EXIT.NOT_ALLOWED, f"This console was not confirmed. {core.over}")


def _confirm(core: AttachedCore, words: Sequence[str]) -> None:
    for left in range(_TRIES - 1, -1, -1):
        passphrase = ask_unseen(_PROMPT)
        try:
            core.confirm(words, passphrase.reveal_text())
        except ConsoleErrorResponse as error:
            if "attempts" not in error.failure.details or not left:
                raise
            click.echo(escape(error.failure.message), err=True)
        else:
            return
        finally:
            passphrase.wipe()


def _front_end(core: AttachedCore, settings: Settings, *, plain: bool) -> int:
    def drawn() -> None:
        pass  # nothing waits for the first frame

    if plain:
        from aileron_tui.cli.plain import plain_console

        return plain_console(core, settings, drawn).run()
    import asyncio

    from aileron_tui.cli.screen import console_app, show

    with asyncio.Runner() as runner:
        return runner.run(show(console_app(core, settings, drawn)))
