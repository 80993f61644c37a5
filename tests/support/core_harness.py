"""A real core for tests: an App on a temporary home, the example connector, the real mailbox.

    async with Core.open(home, mailbox) as core:
        view = await core.ask()
        assert (await core.run(view)).state == "completed"

Nothing here waits for a fixed time: `until` wakes on each event that the core publishes.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import fields
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import httpcore2
import httpx
import pytest
import wasmtime

from aileron_core.app import App, AppOptions
from aileron_core.audit.read import verify_home
from aileron_core.audit.verify import ChainProblem
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Route
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.modules import CompiledModules, _deserialized
from aileron_core.console_port.account_intents import BindAccount
from aileron_core.console_port.events import ApprovalUpdated, CoreEvent, LibraryUpdated
from aileron_core.console_port.field_views import ReadBack
from aileron_core.console_port.intents import Intent
from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.console_port.view_models import ApprovalView, CallView
from aileron_core.credentials.accounts import credential_user
from aileron_core.credentials.binding import Binding, CredentialUser
from aileron_core.errors import Failure
from aileron_core.home.layout import Home
from aileron_core.runs import Call, GateAnswer, LiveRun
from aileron_core.runs.model import RunRecord
from aileron_core.sessions.model import OpenedSession, Session
from aileron_core.settings import Settings
from aileron_core.storage.open import open_reader
from aileron_core.vault.secret import Secret
from examples.mailbox import Mailbox

ROOT = Path(__file__).parents[2]
DRAFT = "r-8842190447"
"""The first draft in a fresh mailbox: to Anna Brandt, `Q3 numbers`."""
PATIENCE = 60.0
"""Seconds after which a test that waits has failed."""
PASSPHRASE = "correct horse battery"
"""Of every vault that a test does not give one of its own."""
SESSION_SECONDS = 20 * 365 * 86400.0
_T = TypeVar("_T")


def run(test: Coroutine[Any, Any, _T]) -> _T:
    """Run one test's coroutine on a loop of its own, bounded."""

    async def bounded() -> _T:
        async with asyncio.timeout(60):
            return await test

    return asyncio.run(bounded())


SEND_DRAFT = (ROOT / "examples" / "actions" / "send-draft.md").read_text(encoding="utf-8")
SHORT_OF_TIME = SEND_DRAFT.replace("[approval]\n", "[limits]\nwall_seconds = 1\n\n[approval]\n")
REPEATABLE = SEND_DRAFT.replace("idempotent = false", "idempotent = true")


def _update_draft() -> str:
    """Return an ungated action over the example connector's `update_draft`."""
    text = (ROOT / "examples" / "actions" / "get-draft.md").read_text(encoding="utf-8")
    requires = text[text.index("[[requires.connectors]]") : text.index("[match]")]
    inputs = "".join(
        f'[[inputs]]\nname = "{name}"\ntype = "string"\nrequired = {required}\n'
        f'description = "{name} of the draft"\n\n'
        for name, required in (("id", "true"), ("to", "false"), ("bcc", "false"))
    )
    return (
        '+++\nname = "update-draft"\nversion = "0.1.0"\n'
        'source = "local://aileron/mail-drafts/actions/update-draft@0.1.0"\n\n'
        + requires.replace('"get_draft"', '"update_draft"')
        + '[match]\nintent = "change a draft"\n\n'
        + inputs
        + '[[execute]]\nid = "update"\nconnector = "local://aileron/mail-drafts"\n'
        'op = "update_draft"\nidempotent = true\n'
        'inputs = { id = "${args.id}", to = "${args.to}", bcc = "${args.bcc}" }\n+++\n\n# Change\n'
    )


UPDATE_DRAFT = _update_draft()


def readdress(changes: str, effect: str = "change") -> str:
    """Return a gated action over `update_draft` whose preview has the lines *changes*."""
    preview = (
        f'[approval]\nrequired = true\neffect = "{effect}"\n[approval.preview]\nop = "get_draft"\n'
        f'args = {{ id = "${{args.id}}" }}\n{changes}'
        '[approval.preview.render]\nTo = "message.payload.headers.To"\n'
        'Subject = "message.payload.headers.Subject"\n'
    )
    text = UPDATE_DRAFT.replace("update-draft", "readdress").replace("+++\n\n", f"{preview}+++\n\n")
    return text.replace('"update_draft"]', '"update_draft", "get_draft"]')


def install_examples(home: Path, **extra: str) -> None:
    """Put the example's actions and connector into *home*, and each of *extra* as `<name>.md`."""
    actions = home / "actions"
    actions.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in (ROOT / "examples" / "actions").glob("*.md"):
        shutil.copy(path, actions / path.name)
    for name, text in extra.items():
        (actions / f"{name.replace('_', '-')}.md").write_text(text, encoding="utf-8")
    ConnectorStore(home).install(ROOT / "examples" / "connectors" / "mail-drafts")


@contextmanager
def compiled_once(*files: Path) -> Iterator[None]:
    """Have each of these modules compiled once: what wasmtime made of it is what it makes again."""
    shared = {file.read_bytes() for file in files}
    made: dict[bytes, bytes] = {}
    load = CompiledModules.load

    @wraps(load)
    def load_once(
        modules: CompiledModules, name: str, module: Callable[[], bytes], **named: Any
    ) -> wasmtime.Module:
        code = module()
        # An engine without a compiler is a trial's, and may compile it otherwise.
        if modules._compiler is None or code not in shared:
            return load(modules, name, module, **named)
        if code not in made:
            made[code] = bytes(load(modules, name, module, **named).serialize())
        return _deserialized(modules._engine, made[code])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledModules, "load", load_once)
        yield


@contextmanager
def certificates_read_once() -> Iterator[None]:
    """Have all clients share what they trust, those of SDKs too, but those that are given something else."""
    trust = httpx.create_ssl_context(trust_env=False)
    make = OutgoingClient.__init__

    @wraps(make)
    def make_trusting(client: OutgoingClient, **named: Any) -> None:
        make(client, **{"ssl_context": trust, **named})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutgoingClient, "__init__", make_trusting)
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


def change_rows(home: Path, *statements: str) -> None:
    """Run *statements* on the database of *home*, each by itself, as another program would."""
    opened = sqlite3.connect(home / "aileron.db", isolation_level=None, timeout=10)
    with closing(opened) as connection:
        for statement in statements:
            connection.execute(statement)


def audit_problems(home: Path) -> list[ChainProblem]:
    """Return what `aileron audit verify` finds in *home*."""
    with closing(open_reader(home / "aileron.db")) as connection:
        return list(verify_home(connection, home).problems)


def problem_kinds(home: Path) -> set[str]:
    return {each.kind for each in audit_problems(home)}


def problem_messages(home: Path) -> list[str]:
    return [each.message for each in audit_problems(home)]


def writes(mailbox: Mailbox) -> list[str]:
    """Return what reached the mailbox, in order, as `METHOD last-part-of-path`."""
    return [_short(each) for each in mailbox.state()["requests"]]


def _short(seen: dict[str, str]) -> str:
    return f"{seen['method']} {seen['path'].rpartition('/')[2]}"


async def records(app: App, event: str | None = None) -> list[dict[str, Any]]:
    query = "SELECT body FROM audit ORDER BY seq"
    found = await app.database.read(lambda c: c.execute(query).fetchall())
    bodies = [json.loads(body) for (body,) in found]
    return [body for body in bodies if event is None or body["event"] == event]


async def wait_for_request(mailbox: Mailbox, request: str, times: int) -> None:
    """Return once *request* (as `writes` has it) has reached the mailbox *times* times."""
    async with asyncio.timeout(PATIENCE):
        while (await asyncio.to_thread(writes, mailbox)).count(request) < times:
            pass


class _Watched(list[dict[str, str]]):
    """The requests that have reached a mailbox; as one of them does, something happens once."""

    def __init__(self, had: list[dict[str, str]], request: str, then: Callable[[], object]) -> None:
        super().__init__(had)
        self._request = request
        self._then: Callable[[], object] | None = then

    def append(self, seen: dict[str, str], /) -> None:
        super().append(seen)
        if self._then is not None and _short(seen) == self._request:
            then, self._then = self._then, None
            then()


def run_on_request(mailbox: Mailbox, request: str, then: Callable[[], object]) -> None:
    """Have *then* happen as *request* (as `writes` has it) next reaches the mailbox.

    On the mailbox's own thread, so that it answers neither this nor anything else before *then* is over.
    """
    mailbox._state.requests = _Watched(mailbox._state.requests, request, then)


@contextmanager
def hold_answers(mailbox: Mailbox, request: str) -> Iterator[Callable[[], Awaitable[None]]]:
    """Have the mailbox answer nothing from *request* (as `writes` has it) on, until the block ends.

    Yields what waits for that request. A delay in its place may be over before the test has its turn.
    """
    there, over = threading.Event(), threading.Event()

    def stand() -> None:
        there.set()
        over.wait(PATIENCE)

    async def reached() -> None:
        assert await asyncio.to_thread(there.wait, PATIENCE), f"{request} never came"

    run_on_request(mailbox, request, stand)
    try:
        yield reached
    finally:
        over.set()


class Core:
    """A running core, what it has published, and one agent's session."""

    def __init__(self, app: App, session: Session, token: str) -> None:
        self.app = app
        self.session = session
        self.token = token
        # As a front end begins: what is there already, and then what changes.
        waiting = app.publisher.approvals()
        self.events: list[CoreEvent] = [ApprovalUpdated(view=view) for view in waiting]
        self._heard = asyncio.Event()
        app.events.subscribe(self._on_event)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        home: Path,
        mailbox: Mailbox | None = None,
        *,
        clock: Clock | None = None,
        settings: Settings | None = None,
        accept: bool = True,
        routes: tuple[Route, ...] = (),
        **more: Any,
    ) -> AsyncGenerator["Core", None]:
        """Open *home* (see `install_examples`) with requests to Gmail routed to *mailbox*, others by *routes*."""
        if mailbox:
            gmail = Route(host="gmail.googleapis.com:443", address="127.0.0.1", port=mailbox.port)
            routes = (gmail, *routes)
        more |= {"routes": routes, "accept_installed": accept}
        options = AppOptions(settings=settings or Settings(), **more)
        async with App.open(Home(home), options, clock) as app:
            opened = await open_session(app)
            yield cls(app, opened.session, opened.token)

    def _on_event(self, event: CoreEvent) -> None:
        self.events.append(event)
        self._heard.set()

    async def until(self, ready: Callable[[], _T | None]) -> _T:
        """Return the first true answer of *ready*, asked again after each event.

        And ten times a second: some of what an event reports is in memory only a moment later.
        """
        async with asyncio.timeout(PATIENCE):
            while True:
                self._heard.clear()
                if found := ready():
                    return found
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._heard.wait(), 0.1)

    def views(self, approval_id: str) -> list[ApprovalView]:
        """Return what was published of an approval so far, oldest first."""
        return [
            event.view
            for event in self.events
            if isinstance(event, ApprovalUpdated) and event.view.approval_id == approval_id
        ]

    async def view(
        self, approval_id: str, ready: Callable[[ApprovalView], bool], *, after: int = -1
    ) -> ApprovalView:
        """Return the first published view of version greater than *after* that is *ready*."""
        return await self.until(
            lambda: next(
                (v for v in self.views(approval_id) if v.version > after and ready(v)), None
            )
        )

    async def call(
        self,
        action: str = "send-draft",
        args: Json = None,
        *,
        key: str | None = None,
        session: Session | None = None,
    ) -> GateAnswer:
        """Make an agent's call, as the route does."""
        given: Json = {"draft_id": DRAFT} if args is None else args
        call = Call(session=session or self.session, action=action, args=given, idempotency_key=key)
        return await self.app.gate.run(call)

    async def ask(self, draft: str = DRAFT, **options: Any) -> ApprovalView:
        """Ask for `send-draft` and return the view once its preview has answered."""
        return await self.ask_for("send-draft", {"draft_id": draft}, **options)

    async def ask_for(self, action: str, args: Json, **options: Any) -> ApprovalView:
        """Ask for *action* and return the view once it can be decided on."""
        answer = await self.call(action, args, **options)
        assert answer.row.approval_id is not None
        return await self.looked(answer.row.approval_id)

    async def looked(self, approval_id: str, *, after: int = -1) -> ApprovalView:
        """Return the view once it can be decided on."""
        return await self.view(
            approval_id,
            lambda v: v.state == "pending" and bool(v.digest) and v.preview.status != "fetching",
            after=after,
        )

    async def approve(self, view: ApprovalView) -> None:
        await self.app.approvals.approve(view.approval_id, view.digest)

    async def run(self, view: ApprovalView) -> ApprovalView:
        """Say yes to exactly what *view* shows, and return the view at its end."""
        await self.approve(view)
        return await self.ended(view)

    async def ended(self, view: ApprovalView) -> ApprovalView:
        return await self.view(view.approval_id, lambda v: v.ended_at is not None)

    async def read_back(self, view: ApprovalView) -> ReadBack:
        """Return what was published once the service has been asked after the run."""
        found = await self.view(
            view.approval_id, lambda v: v.read_back is not None and v.read_back.status != "reading"
        )
        assert found.read_back is not None
        return found.read_back

    async def result(self, approval_id: str) -> RunRecord:
        """Return what the session's agent reads of it by now."""
        return await self.app.approvals.wait_for_result(self.session.session_id, approval_id, 0)

    async def failure(self, view: ApprovalView) -> Failure:
        found = (await self.result(view.approval_id)).failure
        assert found is not None
        return found

    def ready(self) -> list[str]:
        return [action.name for action in self.app.library.ready()]

    def live(self, view: ApprovalView) -> LiveRun:
        found = self.app.registry.by_approval(view.approval_id)
        assert found is not None
        return found

    async def do(self, intent: Intent) -> None:
        """Carry out what a person asks for in the console; what refuses it is raised."""
        await self.app.console.carry_out(intent)

    async def approvals(self) -> tuple[ApprovalView, ...]:
        return (await self.app.console.snapshot()).approvals

    async def opened(self, run_id: str) -> CallView:
        found = (await self.app.console.calls.read(run_id)).call
        assert found is not None
        return found

    def user(self, action: str = "act") -> CredentialUser:
        """Return the user of an account that the connector of *action* is."""
        (connector,) = self.app.library.find(action).connectors.values()
        found = credential_user(connector)
        assert found is not None
        return found

    async def bind(
        self, secret: str, account: str = "ana", identity: str = "work", **more: Any
    ) -> Binding:
        """Bind an account for `act`, in a vault that is made for it where there is none."""
        if self.app.vault.state == "absent":
            self.app.vault.create(Secret(PASSPHRASE))
        user = self.user()
        return await self.app.bindings.bind(
            user,
            BindAccount(
                connector_hash=user.identity.hash,
                identity=identity,
                account=account,
                secret=Secret(secret),
                **more,
            ),
        )

    def last(self, kind: type[_T]) -> _T:
        return next(event for event in reversed(self.events) if isinstance(event, kind))

    async def back(self, view: ApprovalView) -> ApprovalView:
        """Return the view once it waits for the person again after *view* was answered."""
        await self.view(view.approval_id, lambda v: v.state == "checking", after=view.version)
        later = view.version + 1
        return await self.view(view.approval_id, lambda v: v.state == "pending", after=later)

    async def records(self, event: str | None = None) -> list[dict[str, Any]]:
        return await records(self.app, event)

    async def until_record(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        async with asyncio.timeout(PATIENCE):
            while len(found := await self.records(event)) < count:
                self._heard.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._heard.wait(), 0.1)
        return found

    async def another_session(self) -> Session:
        return (await open_session(self.app)).session


Start: TypeAlias = Callable[..., AbstractAsyncContextManager[Core]]
"""What opens a core, with options of `Core.open`."""


async def open_session(app: App, **terms: Any) -> OpenedSession:
    """Open a session as the home's socket does, for this very process, on other *terms* if wanted.

    It outlives every day that a test's clock passes over: housekeeping goes by real time, and would end it or not.
    """
    usual: dict[str, Any] = {
        "agent": "claude", "label": "", "cwd": "/tmp", "claimed_pid": None,
        "peer_pid": os.getpid(), "ttl": SESSION_SECONDS,
    }  # fmt: skip
    given = {each.name: terms.pop(each.name) for each in fields(SessionTerms) if each.name in terms}
    return await app.session_service.open(**usual | terms, terms=SessionTerms(**given))


async def protected_home(home: Path) -> None:
    """Make a home whose files were accepted under a vault's key, and close it."""
    install_examples(home)
    async with Core.open(home) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)


async def unlock(core: Core) -> None:
    """Unlock the vault, and wait until what was accepted has been verified and shown."""
    core.app.vault.unlock(Secret(PASSPHRASE))
    settings = core.app.accepted_settings
    await core.until(lambda: settings.count or settings.problem)
    seen = len(core.events)
    await core.app.library.load()
    await core.until(lambda: any(isinstance(e, LibraryUpdated) for e in core.events[seen:]))
