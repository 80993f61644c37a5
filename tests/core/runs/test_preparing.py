"""What is compiled before anything is asked, and what a person sees of it and of too large an answer."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.protocol import Connector, OpResult
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.runs.preview.fetcher import MAX_SHOWN_CHARACTERS, MAX_SHOWN_LINES
from tests.support.core_harness import (
    DRAFT,
    PATIENCE,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    install_examples,
    run,
)
from tests.support.frozen_clock import FrozenClock


class Compiling:
    """A connector of the port that has to be prepared, until the test lets it be."""

    def __init__(self, real: Connector, output: Json = None) -> None:
        self.identity, self.hosts = real.identity, real.hosts
        self.prepared = False
        self.go = asyncio.Event()
        self.called = self.waited_for = 0
        self._output = output

    credential_requirement = None
    account = ""
    consented_account = None

    def hosts_for(self, _args: JsonObject) -> tuple[str, ...]:
        return self.hosts

    async def prepare(self, **_options: object) -> None:
        self.waited_for += 1
        await self.go.wait()
        self.prepared = True

    async def call(self, _op: str, _args: JsonObject, **_options: object) -> OpResult:
        assert self.prepared
        self.called += 1
        return OpResult(output=self._output)


def put_in(core: Core, output: Json = None) -> Compiling:
    """Put such a connector in place of the one that is installed."""
    ((digest, real),) = core.app.library._files.connectors.items()
    compiling = Compiling(real, output)
    core.app.library._files.connectors = {digest: compiling}  # type: ignore[dict-item]
    return compiling


async def test_a_person_sees_that_the_connector_is_prepared_and_the_preview_counts_after_it(
    core: Core, clock: FrozenClock
) -> None:
    """The service is not "asked" for ten of at most five seconds while a compiler runs."""
    compiling = put_in(core, {"text": "hello"})
    answer = await core.call()
    approval = answer.row.approval_id or ""
    view = await core.view(approval, lambda v: v.preview.preparing)
    assert (view.preview.status, compiling.called) == ("fetching", 0)
    asked = view.preview.updated_at
    clock.advance(12)
    compiling.go.set()
    view = await core.view(approval, lambda v: not v.preview.preparing, after=view.version)
    assert (view.preview.status, view.preview.updated_at) == ("fetching", asked + 12)
    looked = await core.looked(approval)
    assert looked.preview.status == "ready"


@pytest.mark.actions(update_draft=UPDATE_DRAFT)
async def test_calls_of_other_connectors_do_not_wait_for_one_that_is_prepared(core: Core) -> None:
    """The same session goes on: four previews and eight calls at once were all it had."""
    real = dict(core.app.library._files.connectors)
    compiling = put_in(core)
    for number in range(5):
        await core.call(args={"draft_id": f"r-{number}"})
    waiting = [asyncio.create_task(core.call("update-draft", {"id": DRAFT})) for _ in range(9)]
    async with asyncio.timeout(PATIENCE):
        while compiling.waited_for < 14:
            await asyncio.sleep(0)
    core.app.library._files.connectors = real
    assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"
    assert (await core.ask()).preview.status == "ready"
    assert not any(call.done() for call in waiting)
    compiling.go.set()
    assert {(await call).row.state for call in waiting} == {"completed"}


@pytest.mark.parametrize(
    "text", ["x" * (MAX_SHOWN_CHARACTERS + 1), "\n" * MAX_SHOWN_LINES], ids=["long", "lines"]
)
async def test_a_preview_that_nobody_could_read_is_not_drawn(core: Core, text: str) -> None:
    """Drawing megabytes kept the console busy for half a minute; what is not shown may be as large."""
    compiling = put_in(core, {"text": text})
    compiling.go.set()
    view = await core.ask()
    assert view.preview.status == "unavailable"
    assert view.preview.fields == ()
    assert "1,048,576 and 20,000 at most" in view.preview.reason
    compiling._output = {"text": text[10:], "raw": text * 2}
    assert (await core.ask("r-2")).preview.status == "ready"


def test_what_is_called_most_is_compiled_first(
    home: Path, monkeypatch: pytest.MonkeyPatch, mailbox: Mailbox
) -> None:
    """At start, one after the other, by what the database knows of earlier calls."""
    install_examples(home)
    store = ConnectorStore(home)
    (mail,) = (each.identity for each in store.list())
    other = store.install_bytes(
        store.read(mail.hash)[0],
        b'[connector]\nname = "local://aileron/other"\nversion = "1.0.0"\n'
        b'[capabilities.network]\nhosts = ["gmail.googleapis.com:443"]\n',
    )
    used = (
        UPDATE_DRAFT.replace("update-draft", "use-other")
        .replace('local://aileron/mail-drafts"', 'local://aileron/other"')
        .replace('version = "0.1.0"\nhash', 'version = "1.0.0"\nhash')
        .replace(mail.hash, other.identity.hash)
    )
    (home / "actions" / "use-other.md").write_text(used, encoding="utf-8")
    prepared: list[str] = []
    first = WasmConnector.prepare

    async def prepare(self: WasmConnector, *, background: bool = False) -> None:
        if background:
            prepared.append(self.identity.fqn)
        await first(self, background=background)

    async def calls(names: Sequence[str], mailbox: Mailbox) -> None:
        prepared.clear()
        async with Core.open(home, mailbox) as core:
            for name in names:
                await core.call(name, {"id": DRAFT})
            await core.until(lambda: len(prepared) == 2 or None)

    monkeypatch.setattr(WasmConnector, "prepare", prepare)
    run(calls(["use-other"] * 2, mailbox))
    run(calls(["get-draft"] * 3, mailbox))
    assert prepared[0] == "local://aileron/other"
    run(calls([], mailbox))
    assert prepared[0] == "local://aileron/mail-drafts"
