"""Calls of a connector that needs an account wait for it, use it, show whose it is; what a person does with accounts."""

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port.account_intents import BindAccount, RebindAccount, RevokeAccount
from aileron_core.console_port.account_views import AccountChanged, AccountRefused, AccountsUpdated
from aileron_core.console_port.intents import ChooseAccount
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.credentials.binding import Binding
from aileron_core.errors import Conflict
from aileron_core.vault.secret import Secret
from tests.support.core_harness import PASSPHRASE, Core, Start
from tests.support.scripted_guest import furnish_guest
from tests.support.tls_service import TlsService, tls_service

CANARY = "canary-9d2f-key-of-the-account"
NEEDS_KEY = '[capabilities.credential]\nkind = "api_key"\nheader = "X-Key"\nformat = "{key}"\n'


@dataclass
class Place:
    """A home with the gated action `act` and the free one `see`, and the service that both ask."""

    home: Path
    service: TlsService

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("x-key") for request in self.service.seen]


@pytest.fixture
def place(home: Path, tmp_path: Path) -> Iterator[Place]:
    with tls_service(tmp_path) as service:
        request = {"url": f"https://{service.place}/x", "credential": "api_key"}
        furnish_guest(home, [request], [service.place], more=NEEDS_KEY)
        yield Place(home, service)


@pytest.fixture
def start(place: Place) -> Start:
    return partial(Core.open, place.home, make_outgoing=place.service.client)


async def bind(core: Core, identity: str = "work", key: str = CANARY) -> Binding:
    """Bind an account; of a vault that is made for it, once the library is under its key."""
    is_new = core.app.vault.state == "absent"
    bound = await core.bind(key, f"{identity}@example.com", identity)
    if is_new:
        await core.until_record("library.authenticated", 3)
    return bound


async def waiting_call(core: Core, action: str = "act", key: str | None = None) -> ApprovalView:
    answer = await core.call(action, {}, key=key)
    return await core.view(answer.row.approval_id, lambda v: v.state == "awaiting_vault")


async def test_a_call_waits_for_an_account_and_goes_on(start: Start, place: Place) -> None:
    """Nothing is asked of the service before; the preview and the effect both use the account.

    So does a call that runs unasked once it has one; opened in a later console, both name it.
    """
    async with start() as core:
        view = await waiting_call(core)
        assert (view.account_need.reason, view.account_need.kind) == ("unbound", "api_key")
        assert (view.digest, place.service.seen) == ("", [])
        with pytest.raises(Conflict, match="waits for its account"):
            await core.app.approvals.approve(view.approval_id, "")
        bound = await bind(core)
        asked = await core.looked(view.approval_id)
        assert (asked.account_need, asked.gated) == (None, True)
        assert [each.account for each in asked.accounts] == ["work@example.com"]
        assert place.keys == [CANARY]
        assert (await core.run(asked)).state == "completed"
        assert place.keys == [CANARY] * 3  # preview, recheck, effect
        (needed,) = await core.records("run.requested")
        assert (needed["state"], needed["needs"]) == ("awaiting_vault", "unbound")
        (ready,) = await core.records("run.has_account")
        assert ready["accounts"] == [bound.name]
        await core.app.bindings.delete(bound.name)
        free = await waiting_call(core, "see")
        again = await bind(core)
        ended = await core.ended(free)
        assert (ended.state, ended.gated) == ("completed", False)
    async with start() as core:
        for each, name in ((view, bound.name), (free, again.name)):
            opened = (await core.opened(each.run_id)).approval
            assert [account.name for account in opened.accounts] == [name]


async def test_a_locked_vault_holds_every_call_that_needs_it(core: Core, place: Place) -> None:
    """Also one that was shown already: it is fetched and shown anew after the unlock.

    What was shown is void from then on, also where the service answers a refresh only then.
    """
    await bind(core)
    shown = await core.ask_for("act", {})
    sent, release = len(place.service.seen), threading.Event()
    place.service.answer = lambda _: {"done": release.wait(30)}
    refresh = asyncio.create_task(core.app.approvals.refresh(shown.approval_id))
    await core.until(lambda: len(place.service.seen) > sent)
    core.app.vault.lock()
    locked = await core.view(shown.approval_id, lambda v: v.state == "awaiting_vault")
    assert locked.account_need.reason == "locked"
    release.set()
    await refresh
    opened = (await core.opened(shown.run_id)).approval
    assert (opened.state, opened.preview.status) == ("awaiting_vault", "none")
    with pytest.raises(Conflict):
        await core.approve(shown)
    sent = len(place.service.seen)
    core.app.vault.unlock(Secret(PASSPHRASE))
    again = await core.looked(shown.approval_id, after=locked.version)
    assert len(place.service.seen) == sent + 1
    assert (await core.run(again)).state == "completed"


async def test_a_person_picks_among_several_accounts(core: Core, place: Place) -> None:
    await bind(core, "home", "canary-of-home")
    work = await bind(core)
    view = await waiting_call(core)
    need = view.account_need
    assert need.reason == "choice"
    assert [each.account for each in need.candidates] == ["home@example.com", "work@example.com"]
    with pytest.raises(Conflict, match="that choice"):
        await choose_account(core, view, "api_key/x/y")
    await choose_account(core, view, work.name)
    asked = await core.looked(view.approval_id)
    assert [each.name for each in asked.accounts] == [work.name]
    await core.run(asked)
    assert set(place.keys) == {CANARY}


async def heard(core: Core, view: ApprovalView) -> ApprovalView:
    end = await core.ended(view)
    await core.app.approvals.mark_delivered(view.approval_id)
    return end


async def choose_account(core: Core, view: ApprovalView, name: str, **more: bool) -> None:
    connector, call = view.account_need.connector, view.approval_id
    await core.do(ChooseAccount(approval_id=call, connector=connector, binding=name, **more))


async def test_a_choice_is_remembered_until_it_is_forgotten(start: Start, place: Place) -> None:
    async with start() as core:
        await bind(core, "home", "canary-of-home")
        work = await bind(core)
        first = await waiting_call(core, "see", key="4")
        await choose_account(core, first, work.name, remember=True)
        assert (await heard(core, first)).state == "completed"
        again = await core.call("see", {}, key="1")
        assert (again.row.state, again.attached) == ("completed", False)
        other = await waiting_call(core, "act")
        assert other.account_need.reason == "choice"
        await core.app.approvals.deny(other.approval_id, "")
        (kept,) = await core.records("binding.remembered")
        assert (kept["binding"], kept["for_action"], kept["actor"]) == (work.name, "see", "person")
    async with start() as core:
        core.app.vault.unlock(Secret(PASSPHRASE))
        await core.until(lambda: core.app.accounts._unverified() is None)
        call = await core.call("see", {}, key="2")
        assert (call.row.state, set(place.keys)) == ("completed", {CANARY})
        used = core.app.bindings.get(work.name).last_used_at
        assert used == pytest.approx(core.app.clock.now(), abs=60)
        await core.app.bindings.forget(work.name, "see")
        held = await waiting_call(core, "see", key="5")
        assert held.account_need.reason == "choice"
        assert len(await core.records("binding.forgotten")) == 1
        see = core.app.library.find("see").file
    # What another program writes is not under the vault's key: the vault from before is used, and says so.
    file = place.home / "vault.json"
    document = json.loads(file.read_text())
    document["entries"][work.name]["metadata"]["remembered_for"] = {see.name: see.sha256}
    file.write_text(json.dumps(document))
    async with start() as core:
        core.app.vault.unlock(Secret(PASSPHRASE))
        assert "vault.json" in core.app.vault.problem
        assert len(core.app.bindings.all()) == 2
        assert not any(each.remembered_for for each in core.app.bindings.all())


async def test_a_choice_ends_with_its_file_or_account(start: Start, place: Place) -> None:
    """Another text under the action's name, or another login under the account's, is asked for anew."""
    async with start() as core:
        await bind(core, "home", "canary-of-home")
        work = await bind(core)
        first = await waiting_call(core, "see", key="6")
        await choose_account(core, first, work.name, remember=True)
        await heard(core, first)
        user = core.user()
        await core.app.bindings.rebind(work.name, user)
        held = await waiting_call(core, "see", key="7")
        await choose_account(core, held, work.name, remember=True)
        await heard(core, held)
        again = await core.call("see", {}, key="3")
        assert (again.row.state, again.attached) == ("completed", False)
    file = place.home / "actions" / "see.md"
    file.write_text(file.read_text() + "\nMore.\n")
    async with start(accept=False) as core:
        core.app.vault.unlock(Secret(PASSPHRASE))
        await core.until(lambda: core.app.accounts._unverified() is None)
        (new,) = await core.until(core.app.library.not_accepted)
        await core.app.library.accept("action", "see", new.digest, by="person")
        changed = await waiting_call(core, "see", key="8")
        assert changed.account_need.reason == "choice"


@pytest.mark.parametrize("gone", ["locked", "unbound", "another"])
async def test_a_call_whose_account_is_gone_waits(core: Core, place: Place, gone: str) -> None:
    """Nothing is sent without it, and the call goes on by itself after; with another account, with that one's key."""
    bound = await bind(core)
    core.app.pause.pause(core.app.clock.now())
    call = asyncio.create_task(core.call("see", {}))
    run = await core.until(lambda: next(iter(core.app.registry), None))
    assert run.row.state == "new"
    if gone == "locked":
        core.app.vault.lock()
    else:
        await core.app.bindings.delete(bound.name)
    if gone == "another":
        await bind(core, "home", "canary-of-home")
    core.app.pause.resume()
    row = (await call).row
    if gone == "another":
        assert (row.state, place.keys) == ("completed", ["canary-of-home"])
        return
    assert (row.state, place.service.seen) == ("awaiting_vault", [])
    held = await core.view(row.approval_id, lambda v: v.state == "awaiting_vault")
    assert held.account_need.reason == gone
    assert (await core.call("see", {})).row.approval_id == row.approval_id
    if gone == "locked":
        core.app.vault.unlock(Secret(PASSPHRASE))
    else:
        await bind(core)
    assert (await core.ended(held)).state == "completed"
    assert place.keys == [CANARY]


async def test_an_account_bound_while_a_call_is_written_counts(core: Core, place: Place) -> None:
    """The call was found to have none, and its row is not written yet."""
    await core.app.bindings.delete((await bind(core, "home")).name)
    await core.until(lambda: core.app.accounts._unverified() is None)
    await core.app.account_waits.sweep()  # after it nothing looks again by itself
    store, begun, go_on = core.app.gate.store, asyncio.Event(), asyncio.Event()
    insert = store.insert

    async def slow(*args: Any) -> None:
        begun.set()
        await go_on.wait()
        await insert(*args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "insert", slow)
        call = asyncio.create_task(core.call("see", {}))
        await begun.wait()
        await bind(core)
        # What looks at waiting calls has its turns: it finds one that is no row yet.
        for _ in range(20):
            await asyncio.sleep(0)
        go_on.set()
        row = (await call).row
    await core.view(row.approval_id, lambda v: v.state == "completed")
    assert place.keys == [CANARY]


async def test_an_account_is_bound_and_a_call_that_waited_goes_on(core: Core, place: Place) -> None:
    """Its secret is overwritten in the intent, and in no event."""
    core.app.vault.create(Secret(PASSPHRASE))
    view = await waiting_call(core, "see")
    (user,) = core.app.console.accounts.accounts().users
    name, secret = "api_key/scripted/work", Secret(CANARY)
    about = {"connector_hash": user.hash, "identity": "work", "account": "ana@x.org"}
    intent = BindAccount(**about, secret=secret)
    await core.app.console.submit(intent)
    end = await core.ended(view)
    assert (end.state, end.decided_by) == ("completed", "")
    assert (await core.result(view.approval_id)).output["output"] == {"done": True}
    assert (place.keys, len(intent.secret)) == ([CANARY], 0)
    done = AccountChanged(change="bound", name=name, account="ana@x.org")
    assert core.last(AccountChanged) == done
    listed = core.last(AccountsUpdated).accounts
    assert [(each.name, each.problem) for each in listed] == [(name, "")]
    assert CANARY not in repr(core.events)


@pytest.mark.parametrize(
    "intent",
    [
        RebindAccount(name="api_key/scripted/work", connector_hash="sha256:" + "0" * 64),
        BindAccount(connector_hash="sha256:" + "0" * 64, identity="x", account="", secret=Secret("12345678")),
        RevokeAccount(name="api_key/scripted/none"),
    ],
)  # fmt: skip
async def test_what_is_about_something_else_by_now_changes_nothing(
    core: Core, intent: RebindAccount | BindAccount | RevokeAccount
) -> None:
    """A connector of other bytes than those shown, an account that is gone."""
    bound = await bind(core)
    await core.app.console.submit(intent)
    assert core.last(AccountRefused)
    assert [each.name for each in core.app.bindings.all()] == [bound.name]
    assert not any(isinstance(each, AccountChanged) for each in core.events)


async def test_a_call_names_the_command_for_what_it_lacks(core: Core) -> None:
    """Of an account that does not count, that binds it again; of one that was revoked, that makes another."""
    bound = await bind(core)
    changed = {**bound.to_metadata(), "connector_hash": "sha256:" + "0" * 64}
    core.app.vault.put_metadata(bound.name, changed)
    need = (await waiting_call(core)).account_need
    assert need.command == f"aileron binding rebind {bound.name}"
    await core.app.console.submit(RevokeAccount(name=bound.name))
    assert core.last(AccountChanged)
    need = (await waiting_call(core, "see")).account_need
    expected = ("unbound", "aileron binding setup")
    assert (need.reason, need.command.partition(" local")[0]) == expected
