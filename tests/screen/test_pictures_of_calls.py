"""Pictures of one call in every state it can be in. Each docstring names the promise in sight."""

from dataclasses import replace

from aileron_core.console_port.account_views import AccountNeed, AccountView
from aileron_core.console_port.events import ApprovalUpdated, VaultStatus
from aileron_core.console_port.field_views import DriftView, FieldChangeView, PreviewView
from aileron_core.console_port.view_models import ApprovalView, NotAcceptedView
from tests.screen.driving import NOW, Console, mail, short, start
from tests.screen.picturing import (
    Look,
    Scenario,
    Snap,
    at_rest,
    dark,
    dark_and_light,
    every_look,
    picture_in,
    picture_of,
)
from tests.support.screens.calls import later_steps, snapshot

WITHOUT = PreviewView(status="none")


@dark
def test_one_call_read_to_its_end_has_a_filled_key(snap_compare: Snap, look: Look) -> None:
    """`✓ All seen.` and what the filled key does; the three words at the right."""
    assert picture_in(snap_compare, look, Console.read_all, start(short()))


@dark
@picture_of(start(mail()))
async def test_half_of_a_long_mail_is_read(shown: Console) -> None:
    """How many lines are left is said, and the track at the right shows where they are."""
    await shown.rest()
    await shown.press("space")
    await shown.rest()


@dark
def test_approve_with_lines_unread_asks_for_a_second_press(snap_compare: Snap, look: Look) -> None:
    """The status line counts what was not seen; the key says so too, and is filled for the second press."""
    long = mail()
    body = replace(long.preview.fields[-1], value="\n".join(f"line {n}" for n in range(60)))
    view = replace(long, preview=replace(long.preview, fields=(*long.preview.fields[:-1], body)))

    async def scenario(shown: Console) -> None:
        await shown.press_rested("a", "Press a again")
        await shown.rest()

    assert picture_in(snap_compare, look, scenario, start(view))


@dark
@picture_of(start(snapshot(NOW).approvals[2]))
async def test_approve_without_a_preview_asks_for_a_second_press(shown: Console) -> None:
    """`Preview unavailable` with its reason stands above the inputs; once more, and it is a yes."""
    await shown.read_all()
    await shown.press_alone("a", "Press a again")
    await shown.rest()


@dark
def test_an_action_without_a_preview_says_that_nothing_was_looked_at(
    snap_compare: Snap, look: Look
) -> None:
    """`not looked at`: what stands there are the agent's words alone, behind their bar."""
    assert picture_in(snap_compare, look, Console.read_all, start(short(preview=WITHOUT)))


@dark
def test_later_steps_say_what_is_decided_while_running(snap_compare: Snap, look: Look) -> None:
    """Every step stands there before the first yes; references as they are written."""
    assert picture_in(snap_compare, look, at_rest, start(snapshot(NOW).approvals[6]))


@dark
def test_a_later_step_asks_with_its_inputs_filled_in(snap_compare: Snap, look: Look) -> None:
    """What is done is done, what is asked now shows the values it would go out with."""
    view = replace(
        snapshot(NOW).approvals[6], steps=later_steps("asked"), times_asked=1,
        stopped_waiting_at=None,
    )  # fmt: skip
    assert picture_in(snap_compare, look, at_rest, start(view))


@dark_and_light
def test_the_end_of_an_item_says_who_asks(snap_compare: Snap, look: Look) -> None:
    """The kernel's facts first; the agent's own ids below them, behind the dotted bar."""
    first = snapshot(NOW).approvals[0]
    brief = replace(first, preview=replace(first.preview, fields=first.preview.fields[:1]))
    state = replace(snapshot(NOW), approvals=(brief, *snapshot(NOW).approvals[7:]), not_accepted=())

    async def scenario(shown: Console) -> None:
        await shown.read_all()
        while "call_9fQ2" not in shown.text or "SAME ACTION" not in shown.text:
            before = shown.text
            await shown.press("J")
            await shown.until(lambda: shown.text != before, "one line down")  # noqa: B023
        await shown.rest()

    assert picture_in(snap_compare, look, scenario, state)


@dark
def test_a_requester_that_is_gone_is_warned_of(snap_compare: Snap, look: Look) -> None:
    """In the head, before the yes."""
    view = short(1, requester_gone=True)
    assert picture_in(snap_compare, look, Console.read_all, start(view))


@dark
def test_a_call_asked_for_three_times_whose_agent_stopped_waiting(
    snap_compare: Snap, look: Look
) -> None:
    """How often it was asked for, and since when nobody waits for the answer."""
    view = short(1, times_asked=3, stopped_waiting_at=NOW - 40)
    assert picture_in(snap_compare, look, Console.read_all, start(view))


@dark
def test_a_session_that_opened_itself_is_not_called_by_its_name(
    snap_compare: Snap, look: Look
) -> None:
    """It chose its name itself: no line of ours repeats it, and nothing contains the session."""
    view = short(
        1, self_opened=True, containment="none", agent="claude", session_label="opened by a relay"
    )
    assert picture_in(snap_compare, look, Console.read_all, start(view))


@dark
def test_a_routed_call_says_where_it_really_goes(snap_compare: Snap, look: Look) -> None:
    """On the call itself and above all views, for as long as the console is open."""
    route = "gmail.googleapis.com:443 -> 127.0.0.1:9001"
    view = short(1, routed=(route,))
    assert picture_in(snap_compare, look, Console.read_all, start(view, routes=(route,)))


@dark
def test_a_call_whose_action_file_changed(snap_compare: Snap, look: Look) -> None:
    """Approving will not run it: the head says so, and the file waits below to be accepted."""
    held = NotAcceptedView(
        kind="action",
        name="send-draft",
        file="actions/send-draft.md",
        digest="ab" * 32,
        change="changed",
        gated=True,
        connector="gmail",
        hosts=("gmail.googleapis.com:443",),
    )
    assert picture_in(snap_compare, look, Console.read_all, start(short(), held=(held,)))


@dark
def test_a_deadline_within_the_minute(snap_compare: Snap, look: Look) -> None:
    """The seconds that are left stand in the status line, with what comes then."""
    view = short(1, expires_at=NOW + 40)
    assert picture_in(snap_compare, look, Console.read_all, start(view))


@dark
@picture_of(start(snapshot(NOW).approvals[4]))
async def test_code_points_of_what_hides(shown: Console) -> None:
    """Every mark with its code point, nothing folded; `u` folds it again."""
    await shown.press_rested("u", "U+202E")
    await shown.rest()


@dark
def test_a_preview_that_went_away_after_the_look(snap_compare: Snap, look: Look) -> None:
    """What was there as removed lines, why nothing is there now, and no second reading."""
    fields = {"To": "sam@helio.example", "Cc": None, "Body": "Hi Sam,\nthe invoice"}
    drift = DriftView(
        before_at=NOW - 60,
        after_at=NOW - 2,
        changed=tuple(FieldChangeView(label=k, before=v, after=None) for k, v in fields.items()),
        same_count=0,
        other_paths=(),
        other_count=0,
        words_before=("olive", "ember", "falcon"),
        unavailable="timed out",
    )
    preview = PreviewView(
        status="unavailable", reason="timed out", host="gmail.googleapis.com", updated_at=NOW - 2
    )
    view = short(1, version=2, preview=preview, drift=drift)
    assert picture_in(snap_compare, look, at_rest, start(view))


@dark
@picture_of(start(short(1, state="checking", decided_at=NOW - 1, decided_by="person"), short(2)))
async def test_a_call_is_looked_at_once_more_before_it_runs(shown: Console) -> None:
    """The yes is taken, nothing has run yet, and a no still wins."""
    await shown.shows("Checking once more")


def _held(number: int, **need: object) -> ApprovalView:
    """A call that waits for the vault or an account."""
    needs = AccountNeed(connector="github://aileron/mail", kind="api_key", **need)
    return short(
        number, state="awaiting_vault", digest="", words=None, preview=WITHOUT, account_need=needs
    )


WORK = AccountView(name="api_key/mail/work", account="ana@example.com")
PRIVATE = AccountView(name="api_key/mail/home", account="ana@home.example")
WAITING = start(
    _held(1, reason="locked", candidates=(WORK,)),
    _held(2, reason="choice", candidates=(WORK, PRIVATE)),
    _held(
        3,
        reason="unbound",
        problem="api_key/mail/old cannot be used: the connector changed",
        command="aileron binding rebind api_key/mail/old",
    ),
    short(4, accounts=(WORK,)),
    vault=VaultStatus(state="locked", entries=2),
)


@every_look
@picture_of(WAITING)
async def test_a_call_that_waits_for_the_vault(shown: Console) -> None:
    """It cannot be approved, and says until when."""
    await shown.shows("The vault is locked")


@every_look
@picture_of(WAITING)
async def test_the_passphrase_is_typed_unseen(shown: Console) -> None:
    """What waits for it is named, and a dot stands for each character."""
    await shown.press_rested("U", "Passphrase of the vault:")
    await shown.type("unseen")
    await shown.shows("••••••")


@every_look
@picture_of(WAITING)
async def test_the_account_of_a_call_is_picked(shown: Console) -> None:
    await shown.press_rested("j")
    await shown.press_rested("C", "Which account")


@every_look
@picture_of(WAITING)
async def test_a_call_without_an_account_says_how_to_bind_one(shown: Console) -> None:
    await shown.press_rested("j")
    await shown.press_alone("j", "aileron binding rebind api_key/mail/old")


@every_look
@picture_of(WAITING)
async def test_a_call_shows_the_account_that_it_uses(shown: Console) -> None:
    await shown.rest()
    for _ in range(3):
        shown.clock.advance(0.1)
        await shown.press_alone("j")
    await shown.shows("ana@example.com")
    await shown.rest()


def _ends(state: str, outcome: str = "") -> Scenario:
    """Return how the call under the cursor ends without a key of the person."""

    async def scenario(shown: Console) -> None:
        await shown.rest()
        decided = NOW - 3 if state in ("failed", "unknown") else None
        end = short(
            1, state=state, outcome=outcome, decided_at=decided, ended_at=NOW - 1,
            can_fetch_again=state == "unknown", awaits_acknowledgement=state == "unknown",
        )  # fmt: skip
        shown.port.tell(ApprovalUpdated(view=end))
        await shown.until(lambda: "approve" not in shown.keys, state)
        # A report of it is spoken first, and goes by itself.
        shown.clock.advance(20)
        await shown.until(
            lambda: "without a key of yours" not in shown.status_line, "the report is over"
        )
        await shown.rest()

    return scenario


@dark
def test_a_call_that_failed_under_the_cursor(snap_compare: Snap, look: Look) -> None:
    """Its outcome is the first section, in the head and in the status line; no key decides it."""
    scenario = _ends("failed", "Nothing ran: the action file changed after you looked.")
    assert picture_in(snap_compare, look, scenario, start(short(1), short(2)))


@dark_and_light
def test_a_call_of_which_nobody_knows_whether_it_ran(snap_compare: Snap, look: Look) -> None:
    """Said loudly, with the key that looks again; it is never repeated."""
    scenario = _ends("unknown", "The connection broke after the request had gone out.")
    assert picture_in(snap_compare, look, scenario, start(short(1), short(2)))


@dark
def test_a_call_that_expired_under_the_cursor(snap_compare: Snap, look: Look) -> None:
    """It stays to be read until the cursor leaves."""
    assert picture_in(snap_compare, look, _ends("expired"), start(short(1), short(2)))


@dark
def test_a_call_that_was_withdrawn_under_the_cursor(snap_compare: Snap, look: Look) -> None:
    """Its agent took it back; nothing is left to decide."""
    assert picture_in(snap_compare, look, _ends("withdrawn"), start(short(1), short(2)))


@dark
def test_a_call_that_runs(snap_compare: Snap, look: Look) -> None:
    """It was approved, the cursor is on it, and no key stops or repeats it."""

    async def scenario(shown: Console) -> None:
        await shown.shows("▶ running.")

    running = short(1, state="executing", decided_at=NOW - 1, decided_by="person")
    assert picture_in(snap_compare, look, scenario, start(running, short(2)))
