"""View 7: grants and rules as rows and documents; a grant is revoked, copied as a rule, and leads to its calls."""

from dataclasses import replace

from aileron_core.console_port.events import StandingUpdated
from aileron_core.console_port.intents import EndGrant, ReadCall
from aileron_core.console_port.standing import FieldTest
from aileron_core.policy.policy_file import parse_policy
from tests.support.screens.drawn import Drawn
from tests.support.screens.play import Play
from tests.support.screens.rules import LUNCH, NO_SAM, OPEN, POST, READS, STRIPE
from tests.support.screens.states import snapshot_of


def view7(size: tuple[int, int] = (120, 36)) -> Play:
    shown = snapshot_of(grants=(NO_SAM, POST, LUNCH), rules=(READS, STRIPE, OPEN))
    play = Play(shown, size, answers=True)
    play.press_rested("7", "create_event")
    play.rest()
    return play


def row(play: Play, name: str) -> str:
    return " ".join(next(each for each in play.lines if name in each).split())


def test_each_grant_and_rule_is_a_row_with_its_shape_its_end_and_its_use() -> None:
    play = view7((80, 24))
    g3 = "▌ g3 allow create_event what it reaches stays 40 min 4/20"
    assert row(play, "create_event").startswith(g3)
    assert "g2 allow post_message rests: outcome unknown 11 min 1/5" in row(play, "post_message")
    assert "d1 deny send_mail To sam@helio.example 40 min 2" in row(play, "send_mail")
    assert row(play, "get_*").startswith("allow get_*, list_* policy.toml:4 - 212")
    assert "ask stripe.* policy.toml:9, no grants - 1" in row(play, "stripe.*")
    wide = view7()
    assert "policy.toml:14, any other arguments, not accepted" in row(wide, "add_label")
    assert "3 grants, 1 at rest · 3 rules" in wide.text


def test_what_an_agent_or_a_service_wrote_is_drawn_as_such() -> None:
    hostile = "a\u202eb\n g9   allow  everything"
    tests = (("fetched.To", FieldTest("is", (hostile,))),)
    drawn = Drawn(snapshot_of(grants=(replace(NO_SAM, action="x\u202ey", tests=tests),)))
    drawn.go("rules", "d1")
    assert "\u202e" not in drawn.list_texts
    assert len(drawn.rows) == 1
    drawn.go("rules", "d1", opened=True)
    assert "\u202e" not in drawn.item


def test_an_opened_grant_shows_its_tests_and_enter_its_calls_newest_first() -> None:
    play = view7()
    play.press_alone("enter", "FITS")
    assert "┃ is Team" in row(play, "Calendar")
    assert "┊ text of up to 2,000 characters, without links" in row(play, "description")
    assert "or after 16 more calls" in play.text
    for run in ("run-2", "run-1"):
        play.go("enter", "")
        assert play.port.reads[-1] == ReadCall(run_id=run)
    play.go("escape", "ANSWERED")
    play.go("escape", "3 grants")
    play.go("enter", "ANSWERED")


def test_x_ends_a_grant_at_once_and_nothing_else() -> None:
    play = view7()
    play.press_rested("x")
    play.asks(EndGrant(grant_id="g3"))
    play.shows("Grant g3 ended: a person revoked it.")
    assert "create_event" not in play.text
    play.press("end")
    play.press_rested("x", "x did nothing: no grant is selected; a rule stands in policy.toml.")
    assert len(play.port.intents) == 1


def test_an_attached_console_ends_none() -> None:
    play = Play(snapshot_of(grants=(LUNCH,), attached="attached 2", is_owners=True))
    play.press_rested("7", "create_event")
    play.press_rested("x", "x did nothing: only the console itself does this")
    play.asks_nothing()


def test_y_copies_the_grant_as_a_rule_unless_none_can_hold_it() -> None:
    play = view7()
    play.press_rested("y", "Copied 9 lines for policy.toml.")
    (copied,) = play.asked_of_app
    (rule,) = parse_policy(copied[1]).action_rules
    assert (rule.actions, rule.decision) == (("create_event",), "allow")
    assert rule.where == dict(LUNCH.tests)
    body = (("args.body", FieldTest("is", ("x" * 401,))),)
    play.port.tell(StandingUpdated(grants=(replace(LUNCH, tests=body),), rules=()))
    play.press_rested("y", "Not copied: a rule cannot hold a value of more than 400 characters")
    assert len(play.asked_of_app) == 1


def test_without_any_it_says_so() -> None:
    play = Play(snapshot_of())
    play.press_rested("7", "No grants, and no rules for actions in policy.toml.")
