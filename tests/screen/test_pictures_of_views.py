"""Pictures of views 2 to 5 and of the keys of each. Each docstring names the promise in sight."""

from dataclasses import replace

import pytest

from aileron_core.console_port.account_views import LoginUpdated
from aileron_core.console_port.events import AuditVerified, Recorded, Snapshot
from aileron_core.console_port.view_models import ToolCallsView, WentAroundView
from tests.screen.bound_accounts import ANA, CHANGED, ENDED, LOGIN, accounts
from tests.screen.driving import NOW, Console, denied, mail, short, start
from tests.screen.picturing import (
    LARGE,
    SMALL,
    Look,
    Scenario,
    Snap,
    dark,
    dark_and_light,
    every_look,
    opened,
    picture,
    picture_in,
    picture_of,
    to_row,
)
from tests.screen.test_accounts_view import UNLOCKED
from tests.support.screens.calls import snapshot
from tests.support.screens.home import library_items, not_accepted, problems, record_views, sessions

CLAUDE = {"agent": "claude", "session_label": "", "session_id": sessions(NOW)[1].session_id}
HOME = start(
    mail(1), mail(2), mail(3, **CLAUDE), mail(4, **CLAUDE), held=(not_accepted(),),
    library=library_items(NOW), problems=problems(), sessions=sessions(NOW),
)  # fmt: skip
NOTHING = start(sessions=(), records=(), library=(), actions_ready=0, head_words=None)


def with_a_past() -> Snapshot:
    """The fixtures, and what the calls of their records were about."""
    gists = (
        "Q3 numbers, final → 3 people",
        "Offer 2291 → sam@helio.example",
        "Release notes → all",
    )
    ended = {"run.completed": "completed", "run.unknown": "unknown", "approval.denied": "denied"}
    ends = [r for r in record_views(NOW) if r.event in ended and r.action == "send-draft"]
    views = (
        short(
            20 + number, run_id=each.run_id, state=ended[each.event], decided_at=each.at,
            ended_at=each.at, decided_by="person", can_fetch_again=each.event == "run.unknown",
            reason="wrong list" if each.event == "approval.denied" else "",
            preview=replace(
                mail().preview, gist=gists[number % len(gists)], updated_at=each.at - 20
            ),
        )
        for number, each in enumerate(ends)
    )  # fmt: skip
    state = snapshot(NOW)
    return replace(state, approvals=(*state.approvals, *views))


def view(key: str, text: str) -> Scenario:
    """Return the way to another view, by its key."""

    async def scenario(shown: Console) -> None:
        await shown.go(key, text)
        await shown.rest()

    return scenario


def row(key: str, text: str, name: str, heading: str = "") -> Scenario:
    """Return the way to a row of another view, and with *heading* into it."""

    async def scenario(shown: Console) -> None:
        await shown.go(key, text)
        await to_row(shown, name)
        await shown.rest()
        if heading:
            await opened(shown, heading)

    return scenario


# Activity


@dark
def test_activity_before_anything_happened(snap_compare: Snap, look: Look) -> None:
    """It says that nothing is on record yet; no key that needs a row is named."""
    assert picture_in(snap_compare, look, view("2", "No records yet."), NOTHING)


@dark_and_light
def test_activity_names_each_call_once_with_what_became_of_it(
    snap_compare: Snap, look: Look
) -> None:
    """State in sign and word, newest first; what the selected one last did stands below."""
    assert picture_in(snap_compare, look, view("2", "Newest first."), with_a_past())


@dark
def test_a_call_of_the_past_tells_its_whole_story(snap_compare: Snap, look: Look) -> None:
    """Every record of it, oldest first, with who and number."""
    scenario = row("2", "Newest first.", "? unknown", "OUTCOME  unknown")
    assert picture_in(snap_compare, look, scenario, with_a_past())


@dark
@picture_of()
async def test_rows_that_came_in_above_are_counted(shown: Console) -> None:
    """The cursor stays on its row; one key follows the newest again."""
    await shown.go("2", "Newest first.")
    await shown.go("j", "f follow")
    await shown.go("j", "f follow")
    newest = record_views(NOW)[-2]
    for number in range(3):
        later = replace(newest, seq=100 + number, run_id=f"run-{number}-later", at=NOW)
        shown.port.tell(Recorded(record=later, head_words=("olive", "pixel")))
    await shown.shows("3 new above")


# Audit


@dark
def test_an_audit_without_a_record(snap_compare: Snap, look: Look) -> None:
    """Empty, and said so."""
    assert picture_in(snap_compare, look, view("3", "No records yet."), NOTHING)


@every_look
def test_the_audit_has_every_record_by_its_number(snap_compare: Snap, look: Look) -> None:
    """Number, time, event, who and what; that it was not verified yet is said."""
    assert picture_in(snap_compare, look, view("3", "not verified since"))


@dark
def test_a_record_stands_whole_as_it_is_stored(snap_compare: Snap, look: Look) -> None:
    """What it says, its hash and the one before, and the very text that was hashed."""

    async def scenario(shown: Console) -> None:
        await row("3", "not verified since", "run.unknown")(shown)
        await shown.go("s", "AS STORED")
        await shown.rest()

    assert picture_in(snap_compare, look, scenario)


@every_look
@picture_of(start(mail(), mail(2)), answers=True)
async def test_the_screen_as_it_was_seen_says_that_it_is_not_live(shown: Console) -> None:
    """Head and document as they stood at the yes; the banner says when, and what was unread."""
    await shown.press_rested("a", "Press a again")
    await shown.press_rested("a", "✓ Approved")
    shown.clock.advance(60)
    await shown.go("3", "records")
    await to_row(shown, "approval.approved")
    await shown.go("enter", "not live")
    await shown.rest()


@dark
@picture_of(start(mail(), denied(2), denied(3)))
async def test_a_decided_call_of_an_earlier_console(shown: Console) -> None:
    """The list of decisions has the cursor; one line says that what was shown is not kept."""
    await shown.go("h", "Not kept:")


@dark_and_light
@picture_of()
async def test_an_audit_that_was_verified_says_when(shown: Console) -> None:
    """How many records, that no number is missing, and until when the chain holds."""
    await shown.go("3", "not verified since")
    await shown.go("V", "chain verified")


@dark_and_light
@picture_of()
async def test_an_audit_that_does_not_hold_names_what_is_wrong(shown: Console) -> None:
    """Each problem by its record; red, and a sign before it."""
    wrong = (
        "Record 7 was changed after it was written.",
        "Record 9 is missing.",
        "The head outside the database names another record 36.",
    )
    shown.port.deaf = True
    await shown.go("3", "not verified since")
    await shown.go("V", "verifying")
    shown.port.tell(AuditVerified(records=36, problems=wrong, at=NOW, seconds=1.25))
    await shown.shows("3 problems")


@dark
@picture_of()
async def test_an_audit_is_being_verified(shown: Console) -> None:
    """It says so, and does not offer to begin once more."""
    shown.port.deaf = True
    await shown.go("3", "not verified since")
    await shown.go("V", "verifying")


@dark
def test_a_record_that_is_missing_leaves_its_place(snap_compare: Snap, look: Look) -> None:
    """A gap in the numbers is shown where it is."""
    state = snapshot(NOW)
    gap = replace(state, records=tuple(each for each in state.records if each.seq != 30))
    assert picture_in(snap_compare, look, view("3", "no such record"), gap)


@dark
@picture_of()
async def test_a_filter_over_the_audit_says_how_far_it_looked(shown: Console) -> None:
    """What it found, of how many."""
    await shown.go("3", "not verified since")
    await shown.go("slash", "Show rows that match:")
    await shown.type("agent:claude")
    await shown.go("enter", "match agent:claude")


# Actions and connectors


@every_look
def test_actions_and_connectors_with_how_they_stand(snap_compare: Snap, look: Look) -> None:
    """Ready, not accepted, in error; which ask and which run free; on which hosts."""
    assert picture_in(snap_compare, look, view("4", "invalid"), HOME)


@dark
def test_a_home_without_an_action_says_how_one_comes(snap_compare: Snap, look: Look) -> None:
    """One sentence, one command."""
    assert picture_in(snap_compare, look, view("4", "No actions are installed."), NOTHING)


@dark
def test_the_list_says_why_a_file_is_not_accepted(snap_compare: Snap, look: Look) -> None:
    """Below the rows; its key opens the facts first."""
    assert picture_in(snap_compare, look, row("4", "invalid", "post-invoice"), HOME)


@dark_and_light
def test_an_action_is_read_before_it_is_accepted(snap_compare: Snap, look: Look) -> None:
    """Gated or not, effect, op, preview, hosts, digest, and what follows; then the key is filled."""
    assert picture_in(snap_compare, look, row("4", "invalid", "post-invoice", "THE FILE"), HOME)


@dark
@picture_of(HOME, answers=True)
async def test_an_action_that_was_accepted_counts(shown: Console) -> None:
    """Who accepted it and when; now it could be withdrawn."""
    await row("4", "invalid", "post-invoice", "THE FILE")(shown)
    await shown.press_alone("t", "Accepted: post-invoice")
    await shown.shows("● ready")


@dark
def test_a_ready_action_can_be_withdrawn(snap_compare: Snap, look: Look) -> None:
    """What that does to agents is said before the key."""
    assert picture_in(snap_compare, look, row("4", "invalid", "send-draft", "THE FILE"), HOME)


@dark
def test_an_action_that_asks_nobody_is_warned_of(snap_compare: Snap, look: Look) -> None:
    """`runs without asking you`, in the list and in the head."""
    assert picture_in(snap_compare, look, row("4", "invalid", "list-drafts", "THE FILE"), HOME)


@dark
def test_a_file_in_error_names_its_problems(snap_compare: Snap, look: Look) -> None:
    """Line, key and message; no key decides about it."""
    assert picture_in(snap_compare, look, row("4", "invalid", "pay", "PROBLEMS"), HOME)


@dark
def test_a_connector_with_its_hosts(snap_compare: Snap, look: Look) -> None:
    """What it may reach, and what actions may do with it."""
    assert picture_in(snap_compare, look, row("4", "invalid", "gmail 1.2.0", "THE FILE"), HOME)


# Sessions


@dark
def test_without_a_session(snap_compare: Snap, look: Look) -> None:
    """It says what starts one."""
    assert picture_in(snap_compare, look, view("5", "No agent is connected."), NOTHING)


@every_look
def test_sessions_say_who_is_there_and_what_contains_them(snap_compare: Snap, look: Look) -> None:
    """Connected or not, contained or not, what waits and runs; a self-given name behind its bar."""
    assert picture_in(snap_compare, look, view("5", "sessions open"), HOME)


@dark_and_light
def test_a_session_as_the_kernel_saw_it(snap_compare: Snap, look: Look) -> None:
    """Process, program, folder, parents behind the solid bar; below them what its client claims."""
    assert picture_in(snap_compare, look, row("5", "sessions open", "codex", "CLAIMED"), HOME)


@dark
def test_a_session_that_nothing_contains(snap_compare: Snap, look: Look) -> None:
    """Said in the head, with what it can do."""
    assert picture_in(snap_compare, look, row("5", "sessions open", "claude", "CLAIMED"), HOME)


@dark
@picture_of(HOME)
async def test_a_session_that_opened_itself(shown: Console) -> None:
    """No kernel told of it; its name is a claim like everything else it says."""
    await shown.go("5", "sessions open")
    await shown.go("end", "it connected by itself")
    await opened(shown, "the kernel did not report who connected")


@dark
@picture_of(HOME)
async def test_the_end_of_a_session_is_asked_first(shown: Console) -> None:
    """Whose it is, that its tokens open nothing, and that what it asked for stays."""
    await shown.go("5", "sessions open")
    await shown.go("x", "End the session of codex?")
    await shown.rest()


def around() -> Snapshot:
    """A console that inspects, with a session whose model called tools of the agent's own."""
    codex, claude, relay = sessions(NOW)
    calls = ToolCallsView(
        by_name=(("exec_command", 2), ("mcp__aileron.Read", 1_200)),
        unread=(("compressed", 2),),
        went_around=(
            WentAroundView("exec_command", NOW - 61),
            WentAroundView("apply_patch", NOW - 5),
        ),
    )
    counted = ToolCallsView(by_name=(("mcp__aileron__Bash", 4),))
    return start(
        sessions=(replace(codex, tool_calls=calls), replace(claude, tool_calls=counted), relay),
        inspects_models=True,
    )


@dark
@picture_of(around())
async def test_a_session_that_went_around_the_gate_is_marked_in_its_row(shown: Console) -> None:
    """What its model called and when, and above everything that model traffic is inspected."""
    await shown.go("5", "sessions open")


@dark
@picture_of(around())
async def test_an_opened_session_says_which_tools_its_model_called(shown: Console) -> None:
    """Each that does not go through the gate, with its time; the others counted, and what was not read."""
    await shown.go("5", "sessions open")
    await shown.go("enter", "AROUND THE GATE")


# Help


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("2", "Newest first."),
        ("3", "not verified since"),
        ("4", "invalid"),
        ("5", "sessions open"),
    ],
    ids=["activity", "audit", "actions", "sessions"],
)
def test_help_has_the_keys_of_its_view(snap_compare: Snap, key: str, text: str) -> None:
    """Those of the view that stands beside it, each with what it does; what decides is marked."""

    async def scenario(shown: Console) -> None:
        await shown.go(key, text)
        await shown.go("question_mark", "KEYS")

    assert picture(snap_compare, LARGE, scenario, HOME)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_help_ends_with_the_signs(snap_compare: Snap, size: tuple[int, int]) -> None:
    """What each sign on the screen means."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        await shown.go("question_mark", "KEYS")
        await shown.press_alone("end", "claimed by the agent")

    assert picture(snap_compare, size, scenario, start(short(1), short(2)))


# Accounts


@dark
@picture_of(start(vault=UNLOCKED, accounts=accounts(ANA, CHANGED, ENDED)))
async def test_the_accounts_say_which_cannot_be_used(shown: Console) -> None:
    """Status in sign and word, why below, and the connectors that have no account."""
    await shown.go("6", "3 accounts, 2 cannot be used")
    await to_row(shown, "api_key/mail/home")
    await shown.rest()


@dark
@picture_of(start(vault=UNLOCKED, accounts=accounts(ENDED)))
async def test_a_login_shows_what_it_asks_for_and_who_gets_the_tokens(shown: Console) -> None:
    """Before anything is opened: permissions, both hosts, and the address whole."""
    await shown.go("6", "1 account, 1 cannot be used")
    await to_row(shown, "oauth2/drive/ana")
    await shown.press_rested("l", "Starting the login")
    shown.port.tell(LoginUpdated(login=LOGIN))
    await shown.shows("Log in at this address")
    await shown.rest()
