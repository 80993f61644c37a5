"""How a head names where a call goes: the one host, or of how many; afterwards those that were asked; one that
stands for another in both spellings.
"""

from dataclasses import replace

import pytest

from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.file_page import file_blocks
from aileron_tui.draw.formats import hidden_characters_of
from aileron_tui.draw.header import approval_head
from aileron_tui.draw.text import plain_text
from tests.support.screens.calls import approval, fixtures
from tests.support.screens.home import not_accepted

MANY = tuple(f"athena.{number}.example:443" for number in range(34))


def head(view: ApprovalView) -> str:
    return "\n".join(plain_text(line) for line in approval_head(view, (), 0.0, 100, compact=False))


@pytest.mark.parametrize(
    ("op_hosts", "hosts", "expected"),
    [
        (MANY[1:2], MANY[1:2], "on athena.1.example"),
        (MANY, MANY, "on one of 34 hosts, see the record"),
        (MANY[1:2], MANY[:3], "on athena.1.example, later 2 more, see the record"),
    ],
)
def test_before_anything_was_asked_no_host_is_guessed(
    op_hosts: tuple[str, ...], hosts: tuple[str, ...], expected: str
) -> None:
    """The first of a list is no answer; what later steps reach is not left out."""
    view = replace(fixtures(0.0)[0], hosts=hosts, op_hosts=op_hosts)
    assert expected in head(view)


def test_a_call_that_is_over_names_the_hosts_that_were_asked() -> None:
    ended = {"hosts_asked": (MANY[7], MANY[3]), "state": "completed", "ended_at": 1.0}
    view = replace(fixtures(0.0)[0], hosts=MANY, op_hosts=MANY, **ended)
    assert "on athena.7.example and athena.3.example" in head(view)


NOW = 1_791_468_120.0
HOST = "xn--pypal-4ve.com:443"
DESCRIPTION = "xn--pypal-4ve.com is pаypal.com, not paypal.com"


def test_a_call_to_a_punycode_host_says_what_it_stands_for() -> None:
    view = approval(1, NOW, hosts=(HOST, "api.github.com:443"))
    lines = [plain_text(block.pieces) for block in approval_blocks(view, NOW)]
    assert HOST in lines
    assert DESCRIPTION in lines
    assert hidden_characters_of(view).warnings() == ["1 look-alike name"]
    assert hidden_characters_of(approval(1, NOW)).warnings() == []


def test_a_connector_that_asks_for_such_a_host_says_so_before_it_is_accepted() -> None:
    held = replace(not_accepted(), kind="connector", hosts=(HOST,))
    assert DESCRIPTION in [plain_text(block.pieces) for block in file_blocks(held)]
