"""What a person does with accounts in the console, on the real core: no passphrase is asked for, a key is enough."""

from pathlib import Path

import pytest

from aileron_core.console_port.account_intents import BindAccount, RebindAccount, RevokeAccount
from aileron_core.console_port.account_views import AccountChanged, AccountRefused, AccountsUpdated
from aileron_core.vault.secret import Secret
from tests.core.runs.test_accounts import CANARY, Place, bind, place, start, waiting
from tests.support.core_harness import PASSPHRASE, Core

__all__ = ["place", "start"]


async def test_an_account_is_bound_and_a_call_that_waited_goes_on(core: Core, place: Place) -> None:
    """Its secret is overwritten in the intent, and in no event."""
    core.app.vault.create(Secret(PASSPHRASE))
    view = await waiting(core, "see")
    (user,) = core.app.console.accounts.accounts().users
    intent = BindAccount(
        connector_hash=user.hash, identity="work", account="ana@x.org", secret=Secret(CANARY)
    )
    await core.app.console.submit(intent)
    end = await core.ended(view)
    assert (end.state, end.decided_by) == ("completed", "")
    assert (await core.result(view.approval_id)).output["output"] == {"done": True}
    assert place.keys == [CANARY]
    assert len(intent.secret) == 0
    done = AccountChanged(change="bound", name="api_key/scripted/work", account="ana@x.org")
    assert core.last(AccountChanged) == done
    listed = core.last(AccountsUpdated)
    assert [(each.name, each.problem) for each in listed.accounts] == [
        ("api_key/scripted/work", "")
    ]
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


async def test_an_account_is_revoked_and_its_calls_wait(core: Core) -> None:
    bound = await bind(core)
    await core.app.console.submit(RevokeAccount(name=bound.name))
    assert core.last(AccountChanged)
    view = await waiting(core, "see")
    need = view.account_need
    assert (need.reason, need.command.partition(" local")[0]) == (
        "unbound",
        "aileron binding setup",
    )


async def test_a_call_names_the_command_for_what_does_not_count(core: Core, tmp_path: Path) -> None:
    """Of an account that there is, that binds it again, not one that makes another."""
    bound = await bind(core)
    changed = {**bound.to_metadata(), "connector_hash": "sha256:" + "0" * 64}
    core.app.vault.put_metadata(bound.name, changed)
    view = await waiting(core)
    need = view.account_need
    assert need.command == f"aileron binding rebind {bound.name}"
