"""The panel of a grant: what `A` offers, what each key changes, and when `enter` counts."""

from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port.events import ApprovalUpdated, GrantEnded
from aileron_core.console_port.intents import Approve, Deny, ReadOffers, TryShape
from aileron_core.console_port.standing import FieldTest, GrantTerms
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.support.screens.grants import ANY, INPUTS, lunch, offers, past, put_to, read, tried
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, mail, record, short, start

VIEW = lunch()
OFFERED = offers(VIEW)


def opened(view: ApprovalView = VIEW, size: tuple[int, int] = (80, 24), **changes: Any) -> Play:
    """Play a console on which the panel has its offers, and asked about the first."""
    play = rested(start(view), size)
    play.press_alone("A", "Looking at what can be granted …")
    assert play.port.intents == [ReadOffers(approval_id=view.approval_id)]
    play.port.intents.clear()
    play.port.tell(read(view, **changes))
    play.settled()
    return play


def answers(play: Play, view: ApprovalView = VIEW, **said: Any) -> None:
    """Have the core answer what was tried last, and read every field of the panel."""
    play.port.tell(tried(view, play.asked(TryShape)[-1].tests, **said))
    for _ in INPUTS:
        play.go("j", "")
    play.port.intents.clear()
    play.rest()


def test_enter_approves_this_call_and_makes_the_grant_that_was_chosen() -> None:
    """Under the digest of the panel's first moment; what another press of each key chose is in it. A paste
    that ends in a line end is a burst of keys, of which the last would be `enter`.
    """
    play = opened()
    assert play.asks_for(TryShape).tests == put_to(OFFERED, 1)
    play.go("3", "● 3 what it reaches stays", "location     any")
    play.go("h", "in 4 hours (h)")
    play.go("u", "after 100 calls (u)")
    play.go("s", "in this project, any session (s)")
    answers(play)
    play.shows("Matches this call. enter approves it")
    play.press("j", "enter")
    assert play.asked(Approve) == []
    play.press_rested("enter")
    terms = GrantTerms(
        number=3, tests=put_to(OFFERED, 3), seconds=14_400, uses=100, scope="project"
    )
    play.asks(Approve(approval_id=VIEW.approval_id, digest=VIEW.digest, grant=terms))
    play.shows("space read on") if play.model.scrollable else play.settled()
    assert play.model.panel == "none"


def test_every_field_is_a_row_and_each_test_and_value_can_be_changed() -> None:
    play = opened(size=(120, 36))
    for label, test, shown in (
        ("Calendar", "stays", "Team"), ("title", "stays", "Lunch"), ("location", "absent", "(absent now)"),
    ):  # fmt: skip
        (row,) = (each for each in play.lines if f" {label} " in each and f"  {test}  " in each)
        assert shown in row
    assert sum("reach" in each for each in play.lines) == 2 + ("what it reaches" in play.text)
    play.go("j", "")
    play.go("j", "▌agent's")
    play.go("space", "title        plain 200")
    play.go("e", "title: plain  A number of characters.")
    play.press(*["backspace"] * 3)
    play.type("9")
    play.go("enter", "title        plain 9")
    play.go("space", "title        any")
    play.go("e", "title: only")
    play.press(*["backspace"] * 5)
    play.type("Lunch*,Dinner")
    play.go("enter", "title        like         Lunch*, Dinner")
    (*_, last) = play.asked(TryShape)
    assert last.tests == put_to(OFFERED, 1, title=FieldTest("like", ("Lunch*", "Dinner")))


def test_until_the_core_has_answered_for_the_present_tests_enter_does_nothing() -> None:
    """Nor where a field of this very call does not match; the line says which. The core's answer may come
    while the hand is on its way: it has to rest like the call.
    """
    play = opened()
    first = play.asks_for(TryShape).tests
    play.press_rested("enter", "still looking at what it would let through")
    play.go("2", "● 2 other text")
    play.port.tell(tried(VIEW, first))  # of another shape
    play.press_rested("enter", "still looking at what it would let through")
    play.rest()
    play.port.tell(tried(VIEW, play.asked(TryShape)[-1].tests))
    play.passes(0.1)
    play.press_alone("enter", "Too soon: the screen changed.")
    answers(play, misfits=("args.title",))
    play.press_rested("enter", "this very call does not match: title")
    assert play.asked(Approve) == []


def test_a_call_that_changed_under_the_panel_is_not_approved() -> None:
    play = opened()
    answers(play)
    play.port.tell(ApprovalUpdated(view=replace(VIEW, version=2, digest="7" * 64)))
    play.shows("The call has changed since this panel opened.")
    play.press_rested("enter", "enter did nothing: the call has changed")
    play.go("escape", "not seen yet")
    play.asks_nothing()


@pytest.mark.parametrize("unread", [True, False])
def test_a_second_press_is_asked_for_by_a_denied_answer_and_by_what_is_unread(unread: bool) -> None:
    view = mail() if unread else VIEW
    play = opened(view)
    denied = [past(n, denied=why) for n, why in enumerate(("not Jo", "nor him", "x"), start=1)]
    answers(play, view, matching=(*(() if unread else denied), past(4)))
    if not unread:
        play.shows("4 of your last 500 answers would match: 1 approved, 3 denied")
        play.shows('“Lunch” → jo1@acme.example  you denied: "not Jo"', "and 1 more that you denied")
    play.press_alone("enter", "Press enter again")
    assert play.asked(Approve) == []
    play.press_rested("enter")
    (intent,) = play.asked(Approve)
    assert bool(intent.unseen_lines) == unread


def test_fields_that_were_not_in_view_want_a_second_press() -> None:
    more = tuple((f"other{n}", "x") for n in range(12))
    play = opened(inputs=(*INPUTS, *more))
    play.shows("▾")
    play.port.tell(tried(VIEW, play.asked(TryShape)[-1].tests))
    play.press_rested("enter", "of this panel not seen")
    assert play.asked(Approve) == []
    for _ in range(19):
        play.go("j", "")
    play.shows("▌")
    play.press_rested("enter")
    assert len(play.asked(Approve)) == 1


def test_why_no_grant_can_be_made_and_the_end_of_one_are_said() -> None:
    play = rested(start(short()))
    play.press_alone("A")
    why = "An action whose effect is pay is asked about each time."
    play.port.tell(read(short(), offers=(), why_none=why))
    play.shows(why)
    assert play.model.panel == "none"
    play.port.tell(GrantEnded(grant_id="g3", why="the vault was locked"))
    play.shows("Grant g3 ended: the vault was locked.")


def test_foreign_text_of_a_field_or_a_caution_is_marked_and_stays_in_its_column() -> None:
    view = lunch(arguments=())
    play = opened(view, inputs=(("title", "Lunch\u202e\n▌ approve"), ("body", "x" * 3000)))
    answers(play, view, cautions=("It may write any text (To: a\u202eb).",))
    assert "\u202e" not in play.text
    play.shows("… the document has all of it")
    play.go("k", "Lunch‹RLO›", "▲ It may write any text (To: a‹RLO›b).")
    (row,) = (each for each in play.lines if "Lunch‹RLO›" in each)
    assert "▌ approve" not in row[:30]
    assert all(len(each) <= 80 for each in play.lines)


def test_the_mouse_and_an_attached_console_make_no_grant() -> None:
    play = rested(start(VIEW))
    play.pressed_by_mouse("grant")
    play.shows("The mouse decides nothing.")
    attached = rested(replace(start(VIEW), attached="attached 2", is_owners=True))
    attached.press_alone("A", "only the console itself does this")
    assert play.port.intents == attached.port.intents == []


# A denial that stands


def test_a_denial_stands_for_what_the_call_reaches_once_that_was_shown() -> None:
    play = rested(start(VIEW))
    play.press_alone("d")
    play.go("ctrl+d", "still looking")
    play.press_rested("enter", "enter did nothing")
    play.port.tell(read(VIEW))
    play.shows("Also denied in this session, for 1 hour: create-event with", "Calendar: Team")
    play.type("not now")
    play.press_rested("enter")
    terms = GrantTerms(decision="deny", tests=put_to(OFFERED, 1)[:2], seconds=3600, uses=100)
    assert play.asked(Deny) == [Deny(approval_id=VIEW.approval_id, reason="not now", grant=terms)]


def test_a_denial_stands_for_the_arguments_where_nothing_is_reached_or_for_one_call() -> None:
    view = lunch()
    fields = tuple(replace(each, is_reach=False) for each in OFFERED.fields)
    play = rested(start(view))
    play.press_alone("d")
    play.go("ctrl+d", "")
    play.port.tell(read(view, fields=fields))
    play.shows("attendees: sarah@acme.example")
    assert "Calendar: Team" not in play.lines[-6:]
    play.go("ctrl+d", "later calls too")
    play.press_rested("enter")
    assert [each.grant for each in play.asked(Deny)] == [None]
    assert ANY not in {test for _, test in put_to(OFFERED, 1)}


# What rules and grants said


def test_the_document_says_at_its_end_why_no_grant_or_rule_answered() -> None:
    why = "grant g3 does not answer this, because of args.recurrence"
    lines = [
        plain_text((*each.label, *each.pieces)) for each in approval_blocks(lunch(rule=why), NOW)
    ]
    assert lines[-1] == f"RULESasked because: {why}"


@pytest.mark.parametrize("by", ["policy.toml:12", "grant g3"])
def test_a_call_that_was_answered_in_a_persons_place_names_what_did(by: str) -> None:
    done: dict[str, Any] = {"state": "completed", "decided_at": NOW - 5, "ended_at": NOW - 4}
    view = lunch(**done, decided_by=by, rule="allowed by it")
    answered = record(9, "approval.standing", run_id=view.run_id)
    play = rested(start(view, records=(answered,)))
    play.press("h")
    play.shows(f"{by} ")
    text = "\n".join(plain_text(each.pieces) for each in approval_blocks(view, NOW))
    assert f"  {by}" in text
    assert "approved because: allowed by it" in text
    forged = lunch(**done, decided_by="person, with a key")
    assert "with a key" not in str(approval_blocks(forged, NOW))
    play.go("2", by)
