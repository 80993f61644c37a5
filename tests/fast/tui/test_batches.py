"""Calls of one shape in one row: which come together, what of them is shown, and what an answer is about."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port.account_views import AccountView
from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.intents import Approve, Deny
from aileron_core.console_port.view_models import ApprovalView
from tests.support.screens.calls import drifted, later_steps
from tests.support.screens.play import Play
from tests.support.screens.states import NOW, key_of, short, snapshot_of

ODD = 5
"""The issue that alone was blocked."""


def issue(number: int, title: str = "", **changes: Any) -> ApprovalView:
    """A call that closes an issue: its number and title differ from those of the others, and *changes*."""
    state = "Blocked" if number == ODD else "In review"
    values = {"Issue": f"PLAT-{number}", "Title": title or f"Title of issue {number}"}
    values |= {"State": state, "Team": "Platform"}
    fields = tuple(FieldView(label=label, value=value) for label, value in values.items())
    wanted = FieldView(label="State", value="Done")
    view = short(
        number, action="update-issue", title="Update an issue", effect="CHANGE",
        action_sha256="ab" * 32, arguments=(wanted,), new_values=(wanted,),
        preview=PreviewView(status="ready", fields=fields, host="api.example", updated_at=NOW - 4),
    )  # fmt: skip
    return replace(view, **changes)


def issues(last: int) -> list[ApprovalView]:
    return [issue(number) for number in range(1, last + 1)]


def approved_calls(play: Play) -> list[str]:
    """Return which calls were approved, each with the digest of what it shows."""
    asked = play.asked(Approve)
    assert all(int(each.digest, 16) == int(each.approval_id[-16:], 16) for each in asked)
    return [each.approval_id for each in asked]


def item(play: Play) -> str:
    return "\n".join("".join(p.text for p in each) for each in play.document.layout.lines)


def test_calls_of_one_shape_are_one_row() -> None:
    play = Play(snapshot_of(short(90), *issues(12), short(91)))
    assert [key.partition(" ")[0] for key in play.waiting] == [key_of(90), "batch", key_of(91)]
    play.shows("● CHANGE 12 calls  Update an issue · State…")
    assert play.model.queue.waiting == 14


@pytest.mark.parametrize(
    "other",
    [
        {"effect": "PAY"},
        {"effect": "DELETE"},
        {"action": "aileron.Bash"},
        {"session_id": "ses-00000000000000000000000002"},
        {"action_sha256": "cd" * 32},
        {"accounts": (AccountView(name="api_key/issues/home", account="home"),)},
        {"arguments": (FieldView(label="State", value="Done"), FieldView(label="comment"))},
        {"hosts": ("elsewhere.example:443",)},
        {"state": "awaiting_vault"},
        {"preview": PreviewView(status="unavailable", reason="503"), "new_values": ()},
        {"preview": PreviewView(status="fetching"), "digest": "", "new_values": ()},
        {"drift": drifted(NOW)},
        {"steps": later_steps("asked")},
        {"requester_gone": True},
        {"note": "The console stopped before it began."},
        {"arguments": (FieldView(label="State", value="Done" * 600),), "new_values": ()},
    ],
    ids=lambda other: " ".join(other),
)
def test_what_is_of_another_kind_or_weighs_more_has_a_row_of_its_own(other: dict[str, Any]) -> None:
    play = Play(snapshot_of(issue(1), issue(2), issue(3, **other)))
    assert play.waiting[1:] == [key_of(3)]
    if set(other) & {"effect", "state", "drift", "steps", "note", "preview"}:
        play = Play(snapshot_of(issue(1, **other), issue(2, **other)))
        assert play.waiting == [key_of(1), key_of(2)]


def test_calls_that_come_later_never_change_the_row_under_the_cursor() -> None:
    play = Play(snapshot_of(issue(1), short(90)))
    play.rest()
    play.tell(*(ApprovalUpdated(view=issue(number)) for number in (2, 3, 4)))
    assert play.waiting == [key_of(number) for number in (1, 90, 2, 3, 4)]
    play.go("u", "")
    assert (play.selected, len(play.waiting)) == (key_of(1), 3)
    play.go("j", "")
    assert (play.selected, len(play.waiting)) == (key_of(90), 2)
    play.go("k", "4 calls")
    play.port.tell(ApprovalUpdated(view=issue(6)))
    play.press_rested("a")
    assert approved_calls(play) == [key_of(number) for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_all_that_differs_is_in_the_table_whole(width: int) -> None:
    title = "A title of more words than one column has cells, with a_word_" + "so_long" * 20
    more = [FieldView(label=f"Field {number}", value=f"value {number}") for number in range(9)]
    wide = issue(1, title)
    wide = replace(wide, preview=replace(wide.preview, fields=(*wide.preview.fields, *more)))
    for view in (issue(1, title), wide):
        play = Play(snapshot_of(view, issue(2)), (width, 36))
        table = item(play).partition("DIFFER")[2]
        assert "…" not in table
        fields = (*view.preview.fields[:2], *issue(2).preview.fields[:2], *view.preview.fields[4:])
        wanted = Counter("".join(field.value for field in fields).replace(" ", ""))
        assert wanted <= Counter(table)


def test_no_text_passes_for_another_column_or_the_agents_for_a_fetched_one() -> None:
    play = Play(snapshot_of(issue(1, "x   ┃ Blocked"), issue(2, "y\u202e"), issue(3)), (160, 36))
    play.shows("‹bar› Blocked")
    row = next(line for line in item(play).splitlines() if "PLAT-1" in line)
    assert row.count("┃") == 2
    assert "▲ 1 hidden character" in play.text


def test_a_yes_is_one_for_each_call_that_is_in_and_what_alone_differs_is_left_out() -> None:
    play = Play(snapshot_of(*issues(12)), answers=True)
    play.shows("[ ]  ┃ PLAT-5", "▲ Blocked")
    play.go("enter", "▌[x]  ┃ PLAT-1")
    play.go("x", "▌[ ]  ┃ PLAT-1")
    play.press_rested("a")
    assert approved_calls(play) == [key_of(number) for number in range(2, 13) if number != ODD]
    play.shows("✓ Approved: Update an issue, 10 calls together")
    assert play.selected == key_of(1)
    play.go("u", "")
    waiting = [each.key for each in play.model.queue.items if each.is_waiting]
    assert waiting == [key_of(1), key_of(ODD)]
    assert play.model.decision_screens.find(issue(2).run_id, play.clock.now()) is not None


def test_nothing_is_approved_before_each_row_that_is_in_was_on_screen() -> None:
    play = Play(snapshot_of(*issues(19)), (80, 24))
    play.rest()
    play.go("a", "a did nothing:")
    play.go("a", "a did nothing:")
    play.asks_nothing()
    play.passes(5)  # the refusal goes
    play.read_all()
    play.press_alone("a")
    assert len(approved_calls(play)) == 18


def test_in_the_table_a_call_is_put_in_or_opened_and_answered_alone() -> None:
    play = Play(snapshot_of(*issues(7), short(90)), answers=True)
    play.go("enter", "▌[x]  ┃ PLAT-1")
    play.go("x", "▌[ ]  ┃ PLAT-1")
    for _ in range(4):
        play.press("j")
    play.go("x", "▌[x]  ┃ PLAT-5")
    play.go("enter", "RECORD")
    play.press_rested("a")
    assert approved_calls(play) == [key_of(ODD)]
    play.shows("6 calls")
    play.go("escape", "")
    play.press_rested("d", "Deny 5 of 6 calls")
    play.type("not now")
    play.press_rested("enter", "5 calls together")
    ids = [key_of(number) for number in (2, 3, 4, 6, 7)]
    assert play.asked(Deny) == [Deny(approval_id=each, reason="not now") for each in ids]
    assert play.selected == key_of(90)


def test_a_call_that_changes_leaves_the_open_batch_and_disarms_it() -> None:
    play = Play(snapshot_of(*issues(4)))
    play.rest()
    play.tell(ApprovalUpdated(view=issue(2, version=2, digest="f" * 64, drift=drifted(NOW))))
    assert not play.armed
    assert play.waiting[1:] == [key_of(2)]
    play.press_rested("a")
    assert approved_calls(play) == [key_of(number) for number in (1, 3, 4)]


def test_the_last_call_of_a_batch_is_a_row_like_any_other() -> None:
    play = Play(snapshot_of(*issues(3), short(90)), (80, 24))
    play.go("enter", "▌[x]  ┃ PLAT-1")
    ended: dict[str, Any] = {"state": "withdrawn", "ended_at": NOW}
    for number in (1, 2):
        play.tell(ApprovalUpdated(view=issue(number, **ended)))
    assert play.selected == key_of(3)
    play.shows("WILL HAPPEN")
    play.press_rested("a")
    assert approved_calls(play) == [key_of(3)]


def test_of_more_than_twenty_the_number_is_typed() -> None:
    play = Play(snapshot_of(*issues(24)), (120, 50))
    play.press_rested("a", "Approve 23 calls. Type their number:")
    play.type("24")
    play.press_rested("enter", "type how many calls you approve")
    play.asks_nothing()
    play.press("backspace")
    play.type("3")
    play.press_rested("enter")
    assert len(approved_calls(play)) == 23


def test_a_batch_has_neither_a_grant_nor_a_denial_that_stands() -> None:
    play = Play(snapshot_of(*issues(4)))
    play.press_rested("A", "a batch has no grant")
    play.press_rested("d")
    play.go("ctrl+d", "a batch has no grant")
    assert play.port.intents == []
