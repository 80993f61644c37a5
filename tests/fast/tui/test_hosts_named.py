"""How a head names where a call goes: the one host, or of how many; afterwards those that were asked."""

from dataclasses import replace

import pytest

from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.header import approval_head
from aileron_tui.draw.text import plain_text
from tests.support.screens.calls import fixtures

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
    """Also where it could have reached others."""
    asked = (MANY[7], MANY[3])
    view = replace(
        fixtures(0.0)[0],
        hosts=MANY, op_hosts=MANY, hosts_asked=asked, state="completed", ended_at=1.0,
    )  # fmt: skip
    assert "on athena.7.example and athena.3.example" in head(view)
