"""`policy.toml` counts in exactly the bytes that a person accepted; before, it only restricts."""

from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port.intents import Accept
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.library.accepted_settings import load_policy
from aileron_core.policy.evaluate import evaluate
from aileron_core.policy.model import Decision, Facts
from aileron_core.vault.secret import Secret
from tests.support.core_harness import PASSPHRASE, Core, change_rows, unlock

NOTES = '[[rule]]\ntools = ["Write"]\npaths = ["notes/**"]\ndecision = "allow"\n'
NO_GREP = '[[rule]]\ntools = ["Grep"]\ndecision = "deny"\n'
ANY_PEM = '[secrets]\nexcept = ["*.pem"]\n'


def with_policy(home: Path, text: str | None = None, **more: Any) -> Any:
    path = home / "policy.toml"
    if text is not None:
        home.mkdir(mode=0o700, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Core.open(home, policy=load_policy(path), **more)


async def unlock_rules(core: Core) -> None:
    await unlock(core)
    await core.until(lambda: core.app.accepted_policy.count or core.app.accepted_policy.problem)


def offered_policies(core: Core) -> list[NotAcceptedView]:
    return [each for each in core.app.library.not_accepted() if each.kind == "policy"]


async def accept_policy(core: Core) -> None:
    (item,) = offered_policies(core)
    await core.do(Accept(kind="policy", name=item.name, digest=item.digest))


def decisions(core: Core) -> dict[str, Decision]:
    """Return what is decided of one call that each of the rules above is about."""
    facts = {
        "notes": Facts(tool="Write", path="notes/a"),
        "grep": Facts(tool="Grep", path="a"),
        "pem": Facts(tool="Read", path="a.pem"),
    }
    return {name: evaluate(core.app.policy.rules(), each).decision for name, each in facts.items()}


UNCHANGED = {"notes": "ask", "grep": "allow", "pem": "deny"}
RESTRICTED = UNCHANGED | {"grep": "deny"}
IN_FORCE = {"notes": "allow", "grep": "deny", "pem": "allow"}


@pytest.mark.parametrize("vault", [False, True])
async def test_it_only_restricts_until_it_is_accepted_and_then_counts_after_a_restart(
    home: Path, *, vault: bool
) -> None:
    """Also with `--accept-installed`, which the harness sets: rules are not installed."""
    async with with_policy(home, NOTES + NO_GREP + ANY_PEM) as core:
        (item,) = offered_policies(core)
        assert (item.name, item.change, item.before) == ("policy.toml", "new", None)
        assert decisions(core) == RESTRICTED
        assert await core.records("library.unverified") == []
        if vault:
            core.app.vault.create(Secret(PASSPHRASE))
            await core.until_record("library.authenticated", 3)
            assert decisions(core) == RESTRICTED  # a vault accepts nothing by being made
        await accept_policy(core)
        assert (offered_policies(core), decisions(core)) == ([], IN_FORCE)
        assert "of policy.toml" in (await core.records("library.accepted"))[-1]["summary"]
    async with with_policy(home) as core:
        if vault:
            assert (offered_policies(core), decisions(core)) == ([], RESTRICTED)
            await unlock_rules(core)
        assert (offered_policies(core), decisions(core)) == ([], IN_FORCE)


async def test_without_the_file_there_is_nothing_to_accept(home: Path) -> None:
    async with with_policy(home) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)
        assert (offered_policies(core), decisions(core)) == ([], UNCHANGED)
    async with with_policy(home) as core:
        await unlock_rules(core)
        assert (offered_policies(core), core.app.accepted_policy.count) == ([], True)


async def test_what_was_accepted_before_a_vault_is_under_its_key_afterwards(home: Path) -> None:
    async with with_policy(home, NOTES) as core:
        await accept_policy(core)
    async with with_policy(home) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 4)
    change_rows(home, "DELETE FROM meta WHERE key = 'hmac of policy'")
    async with with_policy(home) as core:
        await unlock_rules(core)
        assert decisions(core) == UNCHANGED
        assert len(offered_policies(core)) == 1
        assert len(await core.records("library.unverified")) == 1


@pytest.mark.parametrize("vault", [False, True])
async def test_a_change_is_shown_beside_what_was_accepted_whose_restrictions_stay(
    home: Path, *, vault: bool
) -> None:
    """Else a program could lift a prohibition by deleting its line."""
    async with with_policy(home, NO_GREP) as core:
        if vault:
            core.app.vault.create(Secret(PASSPHRASE))
            await core.until_record("library.authenticated", 3)
        await accept_policy(core)
    async with with_policy(home, NOTES) as core:
        if vault:
            await unlock_rules(core)
        (item,) = offered_policies(core)
        assert item.before is not None
        assert (item.change, item.before.text) == ("changed", NO_GREP)
        assert [(each.kind, each.after or each.before) for each in item.before.wider] == [
            ("rule_allows", "Write: notes/**"),
            ("rule_denies", "Grep"),
        ]
        assert decisions(core) == RESTRICTED
    (home / "policy.toml").unlink()
    async with with_policy(home) as core:
        if vault:
            await unlock_rules(core)
        assert decisions(core) == RESTRICTED
        await accept_policy(core)
        assert (offered_policies(core), decisions(core)) == ([], UNCHANGED)


async def test_an_older_copy_is_not_shown_as_accepted(home: Path) -> None:
    """It was accepted once, so only the newest record tells it from what was accepted last."""
    for text in (ANY_PEM, NO_GREP):
        async with with_policy(home, text) as core:
            await accept_policy(core)
    (home / "store" / "accepted-policy.toml").write_text(ANY_PEM, encoding="utf-8")
    async with with_policy(home, NOTES) as core:
        (item,) = offered_policies(core)
        assert item.before is not None
        assert item.before.text is None


async def test_an_accepted_older_policy_does_not_count_again(home: Path) -> None:
    """The file and its genuine HMAC, both put back from before."""
    async with with_policy(home, NOTES) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)
        await accept_policy(core)
        query = "SELECT value FROM meta WHERE key = 'hmac of policy'"
        older = await core.app.database.read(lambda c: c.execute(query).fetchone()[0])
    async with with_policy(home, NO_GREP) as core:
        await unlock_rules(core)
        await accept_policy(core)
    change_rows(home, f"UPDATE meta SET value = '{older}' WHERE key = 'hmac of policy'")
    async with with_policy(home, NOTES) as core:
        await unlock_rules(core)
        assert "older copy" in core.app.accepted_policy.problem
        assert decisions(core)["notes"] == "ask"
