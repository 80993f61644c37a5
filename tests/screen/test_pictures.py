"""Pictures: what only the whole screen shows. Each has a colour, a look or a layout that no other has.

What stands there in words is proven by plays. `docs/generate.py` takes the pages' pictures from here.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port.events import ApprovalUpdated, CoreLost, Snapshot, VaultStatus
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.intents import TryShape
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.styles.tokens import DARK, LIGHT, PLAIN
from tests.screen.bound_accounts import ANA, CHANGED, ENDED, UNLOCKED, accounts
from tests.screen.driving import Console, app_on
from tests.screen.offered_files import changed, suite_of_515
from tests.support.frozen_clock import FrozenClock
from tests.support.screens import states
from tests.support.screens.calls import snapshot
from tests.support.screens.grants import lunch, offers_read, past, tried
from tests.support.screens.home import library_items, not_accepted, problems, record_views, sessions
from tests.support.screens.port import RecordingPort
from tests.support.screens.rules import LUNCH, NO_SAM, OPEN, POST, READS, STRIPE
from tests.support.screens.states import NOW, WORK, held_call, mail, need, short, snapshot_of
from tests.support.screens.tool_calls import command, edit

CLAUDE = {"agent": "claude", "session_label": "", "session_id": sessions(NOW)[1].session_id}
HOME = snapshot_of(
    mail(1), mail(2), mail(3, **CLAUDE), mail(4, **CLAUDE), held=(not_accepted(),),
    library=library_items(NOW), problems=problems(), sessions=sessions(NOW),
)  # fmt: skip
TARGET = "https://pay.example.org/invoice/881?to=ana&amount=200"


Scenario = Callable[[Console], Awaitable[None]]

_SIZES = {"80x24": (80, 24), "120x36": (120, 36), "200x60": (200, 60)}
_THEMES = {"": DARK, "light": LIGHT, "plain": PLAIN}
UNBOUND = need("unbound", problem="api_key/mail/old cannot be used: the connector changed")
WAITING = snapshot_of(
    held_call(need("locked", WORK)),
    held_call(need("choice", WORK, states.HOME), 2),
    held_call(replace(UNBOUND, command="aileron binding rebind api_key/mail/old"), 3),
    short(4, accounts=(WORK,)),
    vault=VaultStatus(state="locked", entries=2),
)
_ISSUES = ("Retry budget", "Spinner left behind", "Docs: setup on macOS", "Keys rotate unnoticed")
_NEW = states.DRAFT.replace("line 9.", "line nine, and longer.")
_OFFER = "Hi Sam,\n\nthe offer is attached.\nIt stands until Friday.\n\nBest,\nAna"
_INPUTS = (
    FieldView(name="to", label="To", value="sam@helio.example"),
    FieldView(name="subject", label="Subject", value="Offer 2291"),
    FieldView(name="body", label="Body", value=_OFFER, multiline=True),
    FieldView(name="cc", label="Cc", missing=True),
)
LETTER = (
    "<style>p{margin:0}</style><h2>Invoice 881</h2><p>Dear <b>Ana</b>, your invoice of "
    "<s>EUR 100</s> EUR 200 is due. Please pay at "
    f'<a href="{TARGET}">https://bank.example.com/pay</a>.</p>'
    '<p style="font-size:0">Forward this mail to everybody you know.</p>'
    "<table><tr><th>Item</th><th>EUR</th></tr><tr><td>Tea</td><td>200</td></tr></table>"
    "<!-- sent by a program -->"
)
"""A mail in HTML with what a mail reader would not show."""
FORMATS = (
    FieldView(label="To", value="ana@a.example, ben@b.example"),
    FieldView(label="Body", value=LETTER, format="html"),
    FieldView(label="Meta", value='{"retries":2,"tags":["due","eur"]}'),
    FieldView(label="Patch", value="@@ -1 +1 @@\n-due: 100\n+due: 200", format="diff"),
)


def picture_of(
    state: Snapshot | None = None, looks: str = "120x36", *, answers: bool = False, **options: Any
) -> Callable[[Scenario], Callable[..., None]]:
    """Make a scenario a test that compares what it leaves on the screen with its stored picture.

    *state*: what it starts from, the fixtures unless given. *looks*: size and theme of each picture.
    *answers*: what is asked of the core happens. *options*: the App's.
    """

    def as_test(scenario: Scenario) -> Callable[..., None]:
        def test(snap_compare: Callable[..., bool], look: str) -> None:
            size, _, theme = look.partition("-")
            clock = FrozenClock()
            start = state if state is not None else snapshot(NOW)
            port = RecordingPort(start, clock=clock, answers=answers)
            app = app_on(clock, port, start_theme=_THEMES[theme], **options)
            shown = Console(app, port, clock)

            async def before(pilot: Any) -> None:
                shown.pilot = pilot
                await shown.settled()
                await scenario(shown)
                await shown.settled()
                shown.clock.advance(0.2)
                await shown.quiet()

            try:
                assert snap_compare(app, terminal_size=_SIZES[size], run_before=before)
            finally:
                port.close()

        test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
        test.__module__, test.__qualname__ = scenario.__module__, scenario.__qualname__
        return pytest.mark.parametrize("look", looks.split())(test)

    return as_test


async def to_row(shown: Console, name: str) -> None:
    """Go down a list of view 2 to 6 until the selected row has *name*."""
    while name not in (before := shown.row):
        await shown.go("j", "")
        await shown.until(lambda row=before: shown.row != row, f"a row below {before!r}")


async def select(shown: Console, number: int) -> None:
    """Go to row *number* of the waiting list, counted from 0."""
    for _ in range(number):
        await shown.press_alone("j")
    shown.clock.advance(0.5)
    await shown.quiet()


@picture_of(looks="80x24 120x36 200x60 120x36-light 120x36-plain")
async def test_a_mail_that_waits(shown: Console) -> None:
    """List, item and, in a wide terminal, the rail; regions by shade, without colour by blanks."""
    await shown.rest()


@picture_of(glyphs=Glyphs(ascii=True))
async def test_in_ascii(shown: Console) -> None:
    """The same places in other signs."""
    await shown.rest()


@picture_of(looks="120x36 120x36-plain")
async def test_what_changed_after_the_look(shown: Console) -> None:
    await select(shown, 3)


@picture_of()
async def test_hostile_text(shown: Console) -> None:
    """Marks for what hides; a forged heading stands right of the bar."""
    await select(shown, 4)


@picture_of(looks="80x24 80x24-light 80x24-plain")
async def test_the_reason_for_a_no(shown: Console) -> None:
    """The key that denies is filled in red, or in reverse; the cursor is seen."""
    await shown.press_rested("d")
    shown.clock.advance(0.1)
    await shown.press(*"wrong")
    await shown.rest()


@picture_of(snapshot_of(lunch()), "80x24 120x36")
async def test_the_panel_of_a_grant(shown: Console) -> None:
    await shown.press_rested("A")
    shown.port.tell(offers_read(lunch()))
    await shown.shows("● 1 this very call")
    await shown.go("3", "● 3 what it reaches stays")
    said = "It may write any text (Calendar: Team; New to you: nobody)."
    answers = (past(1, denied="not Jo"), *map(past, range(2, 15)))
    tests = shown.asked(TryShape)[-1].tests
    shown.port.tell(tried(lunch(), tests, cautions=(said,), matching=answers))
    await shown.shows("14 of your last 500 answers would match")


@picture_of(snapshot_of(), "120x36-plain")
async def test_nothing_waits(shown: Console) -> None:
    """A nearly empty screen is calm in every look."""
    await shown.shows("Nothing is waiting.")


@picture_of(looks="120x36 120x36-light 120x36-plain")
async def test_the_core_has_ended(shown: Console) -> None:
    """What stands there greys, without colour it is dim; the banner does not."""
    await shown.rest()
    shown.port.tell(CoreLost(message="The database was taken over by another console."))
    await shown.shows("THE SERVER HAS STOPPED")


@picture_of(snapshot_of(short(1), short(2), short(3)))
async def test_a_call_that_was_answered_stays_for_a_moment_dimmed(shown: Console) -> None:
    await shown.read_all()
    await shown.press_alone("a")
    await shown.asks()
    view = replace(short(1), state="completed", decided_at=NOW, ended_at=NOW)
    shown.port.tell(ApprovalUpdated(view=replace(view, decided_by="person")))
    await shown.shows("✓ done")
    await shown.until(lambda: shown.drawn, "drawn")
    shown.clock.advance(0.6)
    await shown.until(lambda: shown.armed, "armed")


@picture_of(WAITING, "80x24-plain")
async def test_a_call_that_waits_for_the_vault(shown: Console) -> None:
    await shown.shows("The vault is locked")


@picture_of(WAITING, "120x36 120x36-light")
async def test_the_passphrase_is_typed_unseen(shown: Console) -> None:
    await shown.press_rested("U", "Passphrase of the vault:")
    await shown.type("unseen")
    await shown.shows("••••••")


@picture_of(snapshot_of(short(1), short(2)))
async def test_a_call_that_failed_under_the_cursor(shown: Console) -> None:
    await shown.rest()
    outcome = "Nothing ran: the action file changed after you looked."
    ended = short(1, state="failed", outcome=outcome, decided_at=NOW - 3, ended_at=NOW - 1)
    shown.port.tell(ApprovalUpdated(view=ended))
    await shown.until(lambda: "approve" not in shown.keys, "failed")
    # A report of it is spoken first, and goes by itself.
    shown.clock.advance(20)
    await shown.until(lambda: "without a key" not in shown.status_line, "the report is over")
    await shown.rest()


def _closed_issue(number: int) -> ApprovalView:
    """A call that closes one of twelve issues; one of them was blocked."""
    wanted = FieldView(label="State", value="Done")
    fields = (
        FieldView(label="Issue", value=f"PLAT-{880 + number}"),
        FieldView(label="Title", value=f"{_ISSUES[number % 4]} ({number})"),
        FieldView(label="State", value="Blocked" if number == 7 else "In review"),
        FieldView(label="Team", value="Platform"),
    )
    preview = PreviewView(status="ready", fields=fields, host="api.linear.app", updated_at=NOW - 4)
    return short(
        number, action="update-issue", title="Update an issue", effect="CHANGE", connector="linear",
        op="update_issue", hosts=("api.linear.app:443",), action_sha256="ab" * 32, preview=preview,
        arguments=(wanted,), new_values=(wanted,), accounts=(WORK,),
    )  # fmt: skip


@picture_of(snapshot_of(*map(_closed_issue, range(1, 13)), short(20)), "120x36 80x24")
async def test_many_calls_in_one_row(shown: Console) -> None:
    await shown.rest()


@picture_of(
    snapshot_of(states.change(states.TO, FieldView(label="Body", value=_NEW, multiline=True))),
    "120x36 80x24",
)
async def test_a_change_in_sight(shown: Console) -> None:
    await shown.rest()


@picture_of(snapshot_of(mail(1, inputs=_INPUTS)), "120x36 80x24-plain")
async def test_the_arguments_of_a_call_as_a_form(shown: Console) -> None:
    await shown.rest()
    in_field = ("up", "up", "up", "end", *(["backspace"] * 7), *"1 May.")
    for each in ("e", "j", "j", "enter", *in_field, "ctrl+s"):
        shown.clock.advance(0.1)
        await shown.press(each)


@picture_of(snapshot_of(edit(NOW)))
async def test_a_change_of_a_file_is_shown_as_its_difference(shown: Console) -> None:
    await shown.rest()


@picture_of(snapshot_of(command(NOW)))
async def test_a_command_shows_what_its_rehearsal_did(shown: Console) -> None:
    await shown.shows("made old/notes.md")
    await shown.rest()


@picture_of(snapshot_of(short(preview=replace(short().preview, fields=FORMATS))))
async def test_a_mail_in_html_as_readable_text(shown: Console) -> None:
    await shown.rest()


@picture_of(snapshot_of(held=(changed(),)))
async def test_a_changed_action_begins_with_what_it_allows_more(shown: Console) -> None:
    await shown.rest()


@picture_of(snapshot_of(held=suite_of_515()))
async def test_515_files_are_one_item_that_begins_with_those_to_look_at(shown: Console) -> None:
    await shown.rest()


@picture_of()
async def test_a_filter_that_is_kept_stands_above_the_rows(shown: Console) -> None:
    await shown.rest()
    await shown.go("slash", "Show rows that match:")
    await shown.type("agent:goose")
    await shown.go("enter", "esc shows all")


@picture_of(looks="120x36 80x24-plain")
async def test_stop_everything_says_what_it_would_stop(shown: Console) -> None:
    await shown.rest()
    await shown.go("ctrl+k", "Stop everything?")
    await shown.rest()


@picture_of(snapshot_of(short(1), short(2), sessions=sessions(NOW)), answers=True)
async def test_while_all_calls_are_held(shown: Console) -> None:
    await shown.press_rested("P", "All calls are on hold")
    await shown.rest()


@picture_of(looks="120x36 120x36-light 80x24-plain")
async def test_the_palette_lists_what_is_possible_here(shown: Console) -> None:
    await shown.rest()
    await shown.go("colon", "every command by name")
    await shown.until(lambda: "run it" in shown.text)


def with_a_past() -> Snapshot:
    """The fixtures, and what the calls of their records were about."""
    gists = "Q3 numbers, final → 3 people", "Offer 2291 → sam@helio.example", "Release notes → all"
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


@picture_of(with_a_past())
async def test_activity_names_each_call_once_with_what_became_of_it(shown: Console) -> None:
    await shown.go("2", "Newest first.")
    await shown.rest()


@picture_of(snapshot_of(mail(), mail(2)), "120x36 120x36-light", answers=True)
async def test_the_screen_as_it_was_seen_says_that_it_is_not_live(shown: Console) -> None:
    await shown.press_rested("a", "Press a again")
    await shown.press_rested("a", "✓ Approved")
    shown.clock.advance(60)
    await shown.go("3", "records")
    await to_row(shown, "approval.approved")
    await shown.go("enter", "not live")
    await shown.rest()


@picture_of()
async def test_an_audit_that_was_verified_says_when(shown: Console) -> None:
    await shown.go("3", "not verified since")
    await shown.go("V", "chain verified")


@picture_of(snapshot_of(mail()), answers=True)
async def test_a_link_that_pairs_a_browser_is_text_and_qr_code(shown: Console) -> None:
    """Dark on light in every theme, so that a camera reads it."""
    await shown.go("O", "This link pairs one browser")


@picture_of(HOME, "120x36 120x36-light")
async def test_actions_and_connectors_with_how_they_stand(shown: Console) -> None:
    await shown.go("4", "invalid")
    await shown.rest()


@picture_of(HOME)
async def test_an_action_is_read_before_it_is_accepted(shown: Console) -> None:
    await shown.go("4", "invalid")
    await to_row(shown, "post-invoice")
    await shown.rest()
    await shown.go("enter", "THE FILE")
    await shown.rest()


@picture_of(HOME, "120x36 80x24-plain")
async def test_sessions_say_who_is_there_and_what_contains_them(shown: Console) -> None:
    await shown.go("5", "sessions open")
    await shown.rest()


@picture_of(snapshot_of(vault=UNLOCKED, accounts=accounts(ANA, CHANGED, ENDED)))
async def test_the_accounts_say_which_cannot_be_used(shown: Console) -> None:
    await shown.go("6", "3 accounts, 2 cannot be used")
    await to_row(shown, "api_key/mail/home")
    await shown.rest()


@picture_of(
    snapshot_of(mail(1), grants=(NO_SAM, POST, LUNCH), rules=(READS, STRIPE, OPEN)),
    "120x36 80x24-plain",
)
async def test_grants_and_rules_say_what_they_answer(shown: Console) -> None:
    await shown.go("7", "3 grants, 1 at rest")
    await shown.rest()


@picture_of()
async def test_help(shown: Console) -> None:
    await shown.press_rested("question_mark")


@picture_of(snapshot_of(short(1), short(2)))
async def test_help_ends_with_the_signs(shown: Console) -> None:
    """What each sign on the screen means."""
    await shown.rest()
    await shown.go("question_mark", "KEYS")
    await shown.press_alone("end", "claimed by the agent")
