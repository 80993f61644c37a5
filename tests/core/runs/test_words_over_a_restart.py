"""The three words of a waiting call after a restart: the same with a vault, others without."""

from pathlib import Path

from tests.core.adversary.test_under_the_vaults_key import protected_home, unlock
from tests.support.core_harness import Core, Mailbox, install_examples


async def test_words_stay_over_a_restart_with_a_vault(home: Path, mailbox: Mailbox) -> None:
    """Also those of a call that was made while the vault was locked; no two calls share a nonce."""
    await protected_home(home)
    async with Core.open(home, mailbox, accept=False) as core:
        early = await core.call()
        await unlock(core)
        assert early.row.approval_id is not None
        first = await core.looked(early.row.approval_id)
        second = await core.ask("r-8842190312")
        runs = [core.app.registry.by_approval(each.approval_id) for each in (first, second)]
        assert len({run.nonce for run in runs if run is not None}) == 2
        core.app.vault.lock()
        waits = await core.view(first.approval_id, lambda v: v.state == "awaiting_vault")
        await unlock(core)
        again = await core.looked(first.approval_id, after=waits.version)
        assert (again.digest, again.words) == (first.digest, first.words)
    async with Core.open(home, mailbox, accept=False) as core:
        await unlock(core)
        for view in (first, second):
            again = await core.looked(view.approval_id)
            assert (again.digest, again.words) == (view.digest, view.words)
        await core.approve(again)
        assert (await core.ended(again)).state == "completed"


async def test_without_a_vault_words_are_new_after_a_restart(home: Path, mailbox: Mailbox) -> None:
    """A nonce in a file would let any program of the account work the words out."""
    install_examples(home)
    async with Core.open(home, mailbox) as core:
        view = await core.ask()
    async with Core.open(home, mailbox) as core:
        again = await core.looked(view.approval_id)
        assert again.digest != view.digest
