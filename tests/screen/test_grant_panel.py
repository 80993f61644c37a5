"""The panel of a grant: what `A` offers, what each key changes, and when `enter` counts. The deny panel likewise."""

from dataclasses import replace
from typing import Any

import pytest
from textual import events

from aileron_core.console_port.events import ApprovalUpdated, GrantEnded
from aileron_core.console_port.intents import Approve, Deny, ReadOffers, TryShape
from aileron_core.console_port.standing import FieldTest, GrantTerms
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from aileron_tui.state.deny_panel import ReasonHistory
from tests.screen.driving import drive_console
from tests.support.screens.grants import (
    ANY,
    INPUTS,
    lunch,
    offers,
    offers_read,
    past,
    put_to,
    tried,
)
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, mail, record, short, snapshot_of

VIEW = lunch()
OFFERED = offers(VIEW)
OTHER_SESSION = "ses-00000000000000000000000002"


def with_panel(view: ApprovalView = VIEW, size: tuple[int, int] = (80, 24), **changes: Any) -> Play:
    play = rested(snapshot_of(view), size)
    play.press_alone("A", "Looking at what can be granted …")
    assert play.port.intents == [ReadOffers(approval_id=view.approval_id)]
    play.port.intents.clear()
    play.tell(offers_read(view, **changes))
    return play


def answer_tries(play: Play, view: ApprovalView = VIEW, **said: Any) -> None:
    play.port.tell(tried(view, play.asked(TryShape)[-1].tests, **said))
    for _ in INPUTS:
        play.go("j", "")
    play.port.intents.clear()
    play.rest()


def test_enter_approves_this_call_and_makes_the_grant_that_was_chosen() -> None:
    """Under the digest of the panel's first moment; what another press of each key chose is in it. A paste
    that ends in a line end is a burst of keys, of which the last would be `enter`.
    """
    play = with_panel()
    assert play.asks_for(TryShape).tests == put_to(OFFERED, 1)
    play.go("3", "● 3 what it reaches stays", "location     any")
    play.go("h", "in 4 hours (h)")
    play.go("u", "after 100 calls (u)")
    play.go("s", "in this project, any session (s)")
    answer_tries(play)
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
    play = with_panel(size=(120, 36))
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
    play = with_panel()
    first = play.asks_for(TryShape).tests
    play.press_rested("enter", "still looking at what it would let through")
    play.go("2", "● 2 other text")
    play.port.tell(tried(VIEW, first))  # of another shape
    play.press_rested("enter", "still looking at what it would let through")
    play.rest()
    play.port.tell(tried(VIEW, play.asked(TryShape)[-1].tests))
    play.passes(0.1)
    play.press_alone("enter", "Too soon: the screen changed.")
    answer_tries(play, misfits=("args.title",))
    play.press_rested("enter", "this very call does not match: title")
    assert play.asked(Approve) == []


def test_a_call_that_changed_under_the_panel_is_not_approved() -> None:
    play = with_panel()
    answer_tries(play)
    play.port.tell(ApprovalUpdated(view=replace(VIEW, version=2, digest="7" * 64)))
    play.shows("The call has changed since this panel opened.")
    play.press_rested("enter", "enter did nothing: the call has changed")
    play.go("escape", "not seen yet")
    play.asks_nothing()


@pytest.mark.parametrize("unread", [True, False])
def test_a_second_press_is_asked_for_by_a_denied_answer_and_by_what_is_unread(unread: bool) -> None:
    view = mail() if unread else VIEW
    play = with_panel(view)
    denied = [past(n, denied=why) for n, why in enumerate(("not Jo", "nor him", "x"), start=1)]
    answer_tries(play, view, matching=(*(() if unread else denied), past(4)))
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
    play = with_panel(inputs=(*INPUTS, *more))
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
    play = rested(snapshot_of(short()))
    play.press_alone("A")
    why = "An action whose effect is pay is asked about each time."
    play.port.tell(offers_read(short(), offers=(), why_none=why))
    play.shows(why)
    assert play.model.panel == "none"
    play.port.tell(GrantEnded(grant_id="g3", why="the vault was locked"))
    play.shows("Grant g3 ended: the vault was locked.")


def test_foreign_text_of_a_field_or_a_caution_is_marked_and_stays_in_its_column() -> None:
    view = lunch(arguments=())
    play = with_panel(view, inputs=(("title", "Lunch\u202e\n▌ approve"), ("body", "x" * 3000)))
    answer_tries(play, view, cautions=("It may write any text (To: a\u202eb).",))
    assert "\u202e" not in play.text
    play.shows("… the document has all of it")
    play.go("k", "Lunch‹RLO›", "▲ It may write any text (To: a‹RLO›b).")
    (row,) = (each for each in play.lines if "Lunch‹RLO›" in each)
    assert "▌ approve" not in row[:30]
    assert all(len(each) <= 80 for each in play.lines)


def test_the_mouse_and_an_attached_console_make_no_grant() -> None:
    play = rested(snapshot_of(VIEW))
    play.pressed_by_mouse("grant")
    play.shows("The mouse decides nothing.")
    attached = rested(snapshot_of(VIEW, attached="attached 2", is_owners=True))
    attached.press_alone("A", "only the console itself does this")
    assert play.port.intents == attached.port.intents == []


def test_a_denial_stands_for_what_the_call_reaches_once_that_was_shown() -> None:
    play = rested(snapshot_of(VIEW))
    play.press_alone("d")
    play.go("ctrl+d", "still looking")
    play.press_rested("enter", "enter did nothing")
    play.port.tell(offers_read(VIEW))
    play.shows("Also denied in this session, for 1 hour: create-event with", "Calendar: Team")
    play.type("not now")
    play.press_rested("enter")
    terms = GrantTerms(decision="deny", tests=put_to(OFFERED, 1)[:2], seconds=3600, uses=100)
    assert play.asked(Deny) == [Deny(approval_id=VIEW.approval_id, reason="not now", grant=terms)]


def test_a_denial_stands_for_the_arguments_where_nothing_is_reached_or_for_one_call() -> None:
    view = lunch()
    fields = tuple(replace(each, is_reach=False) for each in OFFERED.fields)
    play = rested(snapshot_of(view))
    play.press_alone("d")
    play.go("ctrl+d", "")
    play.port.tell(offers_read(view, fields=fields))
    play.shows("attendees: sarah@acme.example")
    assert "Calendar: Team" not in play.lines[-6:]
    play.go("ctrl+d", "later calls too")
    play.press_rested("enter")
    assert [each.grant for each in play.asked(Deny)] == [None]
    assert ANY not in {test for _, test in put_to(OFFERED, 1)}


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
    play = rested(snapshot_of(view, records=(answered,)))
    play.press("h")
    play.shows(f"{by} ")
    text = "\n".join(plain_text(each.pieces) for each in approval_blocks(view, NOW))
    assert f"  {by}" in text
    assert "approved because: allowed by it" in text
    forged = lunch(**done, decided_by="person, with a key")
    assert "with a key" not in str(approval_blocks(forged, NOW))
    play.go("2", by)


def gone(number: int, **changes: object) -> ApprovalView:
    return short(number, **{"requester_gone": True, **changes})


def denied_ids(play: Play) -> set[str]:
    return {each.approval_id for each in play.asked(Deny)}


def open_panel(play: Play, text: str = "") -> None:
    play.press_rested("d", "(codex will read it)")
    play.type(text)
    play.rest()


def field(play: Play) -> str:
    return play.lines[-2].strip()


def test_the_calls_of_ended_sessions_are_denied_together() -> None:
    views = (
        gone(1),
        gone(2, session_id=OTHER_SESSION, action="drop-draft"),
        short(3),
        gone(4),
        gone(5, state="checking"),
        gone(6, state="awaiting_vault"),
        gone(7, expires_at=NOW + 2),  # a no that would lose the race is not promised
    )
    play = Play(snapshot_of(*views))
    open_panel(play, "wrong list")
    play.shows("3 other calls of ended sessions wait too.")
    assert " ctrl+s  all of ended sessions" in play.keys
    play.press_alone("ctrl+s")
    play.asks(
        *(
            Deny(approval_id=view.approval_id, reason="wrong list", on_screen=view is views[0])
            for view in (views[0], views[1], views[3], views[5])
        )
    )


def test_the_key_wants_a_rest_as_enter_does_and_is_there_only_with_another_such_call() -> None:
    play = Play(snapshot_of(gone(1), gone(2)))
    open_panel(play, "no")
    play.shows("1 other call of ended sessions waits too.")
    play.pressed_by_mouse("deny_others")
    play.press("x", "ctrl+s")
    play.clock.advance(0.2)
    play.press_alone("ctrl+s")
    play.asks_nothing()
    play.press_rested("ctrl+s")
    assert len(play.port.intents) == 2
    alone = Play(snapshot_of(short(1), gone(2)))
    open_panel(alone)
    assert "ended sessions" not in alone.text
    alone.press_alone("ctrl+s")
    alone.asks_nothing()


def test_what_comes_while_the_panel_stands_there_is_not_denied_unread() -> None:
    play = Play(snapshot_of(gone(1), gone(2), gone(3)))
    open_panel(play)
    play.shows("2 other calls of ended sessions wait too.")
    play.port.tell(
        ApprovalUpdated(view=gone(4)),
        ApprovalUpdated(view=gone(2, state="withdrawn", ended_at=NOW)),
    )
    play.shows("1 other call of ended sessions waits too.")
    play.press_rested("ctrl+s")
    assert denied_ids(play) == {gone(1).approval_id, gone(3).approval_id}


@pytest.mark.parametrize(
    "come",
    [(events.Key("ctrl+s", None), events.Key("a", "a")), (events.Paste("never\x13\r\x1b[A"),)],
    ids=["burst", "paste"],
)
async def test_a_burst_or_paste_with_the_key_denies_nothing(come: tuple[Any, ...]) -> None:
    """Its first byte came at rest; what came with it shows that no hand pressed it."""
    async with drive_console(snapshot_of(gone(1), gone(2))) as shown:
        await shown.press_rested("d", "(codex will read it)")
        await shown.rest()
        shown.paste(*come)
        await shown.until(lambda: shown.lines[-2].strip() in ("a", "never"), "it is text")
        await shown.passes(0.05)
        await shown.asks_nothing()


def test_a_call_that_was_withdrawn_first_is_not_reported_as_approved() -> None:
    """The agent was faster than the person's no. `enter` denies one call, whatever else waits."""
    play = Play(snapshot_of(gone(1), short(2), gone(3)))
    open_panel(play)
    play.press_alone("enter")
    assert denied_ids(play) == {gone(1).approval_id}
    play.port.tell(ApprovalUpdated(view=gone(1, state="withdrawn", ended_at=NOW)))
    play.shows("withdrawn, not by you")
    assert "✓ Approved" not in play.text


def test_earlier_reasons_come_back_newest_first_and_each_once() -> None:
    """Up goes back to the first, down comes forward to what the person had written.

    Without one there is nothing to go to, and a no without a reason leaves none behind.
    """
    reasons = ReasonHistory()
    reasons.add("")
    assert not reasons.has_earlier
    for reason in ("wrong list", "too early", "wrong list"):
        reasons.add(reason)
    reasons.reset()
    seen = ["dr"]
    for _ in range(3):
        seen.append(reasons.earlier(seen[-1]))
    assert not reasons.has_earlier
    for _ in range(3):
        seen.append(reasons.later(seen[-1]))
    assert seen[1:] == ["wrong list", "too early", "too early", "wrong list", "dr", "dr"]
    assert not reasons.has_later


def test_a_reason_that_came_back_has_to_rest_before_it_goes_out() -> None:
    play = Play(snapshot_of(short(1), short(2), short(3)), answers=True)
    open_panel(play, "wrong list")
    assert "↑ earlier" not in play.keys
    play.press_alone("enter")
    assert play.selected == short(2).approval_id
    open_panel(play)
    assert "↑ earlier" in play.keys
    play.press("x", "up")
    assert field(play) == "x"
    play.clock.advance(0.1)
    play.press_alone("up")
    play.press_alone("enter")
    play.passes(1)
    assert field(play) == "wrong list"
    assert len(play.port.intents) == 1
    play.press_alone("down")
    assert field(play) == "x"
    play.rest()
    play.pressed_by_mouse("reason_earlier")
    assert field(play) == "wrong list"
    play.clock.advance(0.1)
    play.press_alone("enter")
    play.rest()
    assert len(play.port.intents) == 1
    play.press_alone("enter")
    assert play.port.intents[1:] == [Deny(approval_id=short(2).approval_id, reason="wrong list")]
