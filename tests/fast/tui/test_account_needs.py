"""Every reason for which a call waits has its words, whatever else is known of it."""

from typing import get_args, get_type_hints

import pytest

from aileron_core.console_port.account_views import AccountNeed
from aileron_tui import words
from aileron_tui.draw.accounts import need_blocks, need_heading
from aileron_tui.draw.text import plain_text

REASONS = get_args(get_type_hints(AccountNeed)["reason"])


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_for_waiting_can_be_drawn_said_and_refused(reason: str) -> None:
    """Also where no account is needed, but the vault's key has to verify what was accepted."""
    need = AccountNeed(reason=reason, connector="local://x/y", kind="")  # type: ignore[arg-type]
    assert plain_text(need_heading(need).label)
    drawn = [*need_blocks(need, gated=True, unlock_key="U", choose_key="C", accounts_key="6")]
    assert "of kind" not in " ".join(plain_text(block.pieces) for block in drawn)
    for table in (words.vault.WARNINGS, words.vault.TAGS, words.vault.REFUSED):
        assert table[reason]
    said = words.vault.status(reason, "U", "C", "6", has_vault=True)
    assert ("vault is locked" in said) == (reason == "locked")
