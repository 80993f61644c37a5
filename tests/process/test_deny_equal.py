"""Equal calls denied together, at a real console: the keys, the rows, the records, the agents' answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.support.server_harness import DRAFT, eventually

REST = 0.9


@pytest.fixture
def console(home: Path, mailbox: Mailbox) -> Iterator[ScreenConsole]:
    sat = ScreenConsole(home, mailbox)
    yield sat
    sat.close()


def test_one_press_denies_two_equal_calls_with_the_reason_and_leaves_others(
    console: ScreenConsole,
) -> None:
    """Each denial is a record of its own; a call with other arguments and another session's wait on."""
    one, other = (console.session(label=label)["token"] for label in ("one", "other"))
    asked_for: list[str] = []
    for number, (token, draft) in enumerate(
        ((one, DRAFT), (one, DRAFT), (one, "r-none"), (other, DRAFT))
    ):
        asked = console.run("send-draft", {"draft_id": draft}, token, idempotency_key=str(number))
        assert asked.status == 202
        asked_for.append(asked.json["approval_id"])
    console.pty.until(lambda: " 4 " in console.pty.cells.lines[0], "all wait")
    console.pty.shows("WILL HAPPEN  fetched")
    console.pty.settle(REST)
    console.pty.type(b"d")
    console.pty.shows("1 identical call of this session waits too.")
    console.pty.settle(REST)
    console.pty.type(b"wrong list\x13")  # in one burst: that is text, and no key
    console.pty.until(lambda: "wrong list" in console.pty.cells.lines[-2], "it is text")
    console.pty.settle(REST)
    assert console.rows("state") == [("pending",)] * 4
    console.pty.type(b"\x13")
    console.pty.shows("2 identical calls.")
    eventually(lambda: console.rows("state").count(("denied",)) == 2, "two are denied")
    assert console.rows("state").count(("pending",)) == 2
    assert console.rows("reason").count(("wrong list",)) == 2
    denied = [each for each in console.records() if each["event"] == "approval.denied"]
    assert len(denied) == 2
    assert {each["actor"] for each in denied} == {"person"}
    reasons = [
        console.get(f"/v1/action-approvals/{approval_id}/result", token=one).raw.decode()
        for approval_id in asked_for[:3]
    ]
    assert ["wrong list" in each for each in reasons] == [True, True, False]
