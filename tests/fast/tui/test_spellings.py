"""A host that stands for another: both spellings, in a call and in a connector to accept."""

from aileron_core.console_port.view_models import NotAcceptedView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.file_page import file_blocks
from aileron_tui.draw.formats import hidden_characters_of
from aileron_tui.draw.text import plain_text
from tests.support.screens.calls import approval

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
    """That is when it matters most."""
    held = NotAcceptedView(
        kind="connector",
        name="pay",
        file="store",
        digest="ab" * 32,
        change="new",
        gated=None,
        connector="",
        hosts=(HOST,),
    )
    assert DESCRIPTION in [plain_text(block.pieces) for block in file_blocks(held)]
