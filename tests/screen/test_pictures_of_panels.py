"""Pictures of what is asked, held, hidden or told over the lists. Docstrings name the promise in sight."""

from dataclasses import replace

from textual import events

from aileron_core.console_port.events import Snapshot
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.errors import Problem
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
    select,
)
from tests.support.screens.calls import fixtures, snapshot
from tests.support.screens.home import sessions
from tests.support.screens.states import Undrawable

PROBLEMS = (
    Problem(
        file="actions/pay.md",
        line=12,
        key="execute.op",
        message="The connector billing has no op pay; it has post_invoice.",
    ),
    Problem(file="connectors/billing/manifest.toml", message="It is not valid TOML."),
)


def busy() -> Snapshot:
    """Forty calls of every kind wait."""
    kinds = [view for view in fixtures(NOW) if view.state == "pending"]
    views = (
        replace(
            kinds[number % len(kinds)],
            approval_id=f"act-20261008T140152-{number:016x}",
            run_id=f"run-{number:026d}",
            requested_at=NOW - 400 + number,
            expires_at=NOW + 200 + 10 * number,
        )
        for number in range(40)
    )
    return replace(snapshot(NOW), approvals=tuple(views))


# The waiting list


@dark_and_light
def test_a_list_longer_than_its_pane_counts_what_is_out_of_sight(
    snap_compare: Snap, look: Look
) -> None:
    """How many rows are above and below; the nearest deadline of all of them."""
    assert picture_in(snap_compare, look, select(20), busy())


@dark
@picture_of(start(actions_ready=0, sessions=(), records=()))
async def test_an_empty_home_says_how_to_begin(shown: Console) -> None:
    """No action, no agent, no decision yet: the sentence names the two commands."""
    await shown.shows("Nothing is waiting.")


@dark
def test_a_file_problem_is_read_in_the_waiting_list(snap_compare: Snap, look: Look) -> None:
    """File, line, key and message; nothing there is to be decided."""
    assert picture_in(snap_compare, look, select(1), start(short(), problems=PROBLEMS))


@dark
def test_a_connector_that_changed_is_not_accepted(snap_compare: Snap, look: Look) -> None:
    """What it is, that it changed on disk, on which hosts it could be used; one key takes it in."""
    held = NotAcceptedView(
        kind="connector",
        name="gmail 1.3.0",
        file="store/connectors/sha256/77fe",
        digest="77fe" * 16,
        change="changed",
        gated=None,
        connector="",
        hosts=("gmail.googleapis.com:443", "oauth2.googleapis.com:443"),
    )
    assert picture_in(snap_compare, look, at_rest, start(held=(held,)))


@dark
def test_what_cannot_be_drawn_says_so_and_waits(snap_compare: Snap, look: Look) -> None:
    """A fault of ours in one item: it is not decided here, the others go on."""

    fields = (FieldView(label="Body", value=Undrawable("x"), multiline=True),)
    preview = PreviewView(status="ready", fields=fields, gist="a mail", host="h", updated_at=NOW)

    async def scenario(shown: Console) -> None:
        await shown.shows("This cannot be shown")

    assert picture_in(snap_compare, look, scenario, start(short(1, preview=preview), short(2)))


@dark
@picture_of(start(short(1), short(2)))
async def test_keys_that_came_at_once_decided_nothing(shown: Console) -> None:
    """It is said how many came; the item waits as before."""
    await shown.rest()
    shown.paste(*(events.Key("a", "a") for _ in range(3)))
    await shown.settled()
    shown.clock.advance(0.05)
    await shown.shows("3 keys arrived at once")
    shown.clock.advance(0.5)


@dark
@picture_of(start(short(1), short(2)))
async def test_quitting_while_something_waits_asks_once_more(shown: Console) -> None:
    """It says what becomes of what waits, and the key that quits all the same."""
    await shown.rest()
    await shown.go("q", "Press q again to quit")


# The filter


def _filter(text: str, then: str = "", shows: str = "") -> Scenario:
    async def scenario(shown: Console) -> None:
        await shown.rest()
        await shown.go("slash", "Show rows that match:")
        await shown.type(text)
        if then:
            await shown.go(then, shows)
        elif shows:
            await shown.shows(shows)

    return scenario


@dark
def test_the_filter_asks_which_rows(snap_compare: Snap, look: Look) -> None:
    """Open and empty, it shows how a filter is written; the item above stays readable."""
    assert picture_in(snap_compare, look, _filter(""))


@dark_and_light
def test_the_list_follows_the_filter_as_it_is_typed(snap_compare: Snap, look: Look) -> None:
    """How many match stands beside the question."""
    assert picture_in(snap_compare, look, _filter("agent:goose", shows="2 of 8 match"))


@dark
def test_a_filter_that_is_kept_stands_above_the_rows(snap_compare: Snap, look: Look) -> None:
    """What it is, how many match, and that `esc` shows all."""
    assert picture_in(snap_compare, look, _filter("agent:goose", "enter", "esc shows all"))


@dark
def test_a_filter_that_is_not_understood_is_explained(snap_compare: Snap, look: Look) -> None:
    """What is wrong with it and how it is said; nothing is lost."""
    assert picture_in(snap_compare, look, _filter("goose age:soon", shows="soon is not a time"))


@dark
def test_a_filter_that_nothing_matches_says_the_way_back(snap_compare: Snap, look: Look) -> None:
    """Nothing matches, `esc` shows all; the item under the cursor stays."""
    scenario = _filter("agent:codex action:pay", "enter", "No item matches")
    assert picture_in(snap_compare, look, scenario)


# What is asked first


@every_look
@picture_of()
async def test_stop_everything_says_what_it_would_stop(shown: Console) -> None:
    """How many calls, sessions and runs; the key is filled in red, or in reverse."""
    await shown.rest()
    await shown.go("ctrl+k", "Stop everything?")
    await shown.rest()


@dark
@picture_of(start(short(1), short(2), sessions=sessions(NOW)), answers=True)
async def test_everything_was_stopped(shown: Console) -> None:
    """What that did, in numbers, where nothing waits any more."""
    await shown.rest()
    await shown.go("ctrl+k", "Stop everything?")
    await shown.press_rested("enter", "Everything stopped")
    await shown.until(lambda: "2 calls denied" in shown.status_line)


@dark
@picture_of(start(short(1), short(2)))
async def test_a_question_has_just_been_asked(shown: Console) -> None:
    """An empty reason is fine; the key that denies is not filled before it has rested."""
    await shown.press_rested("d", "Reason (codex will read it):")


@every_look
@picture_of(start(*(short(number, args_sha256="5a" * 32) for number in range(1, 5))), answers=True)
async def test_a_question_counts_equal_calls_and_offers_earlier_reasons(shown: Console) -> None:
    """How many wait besides this one; both keys that deny are filled, and `↑` is there."""
    await shown.rest()
    await shown.go("d", "Reason (codex will read it):")
    await shown.type("wrong list")
    await shown.press_rested("enter")
    await shown.until(lambda: shown.selected != short(1).approval_id, "the next call")
    await shown.passes(10)  # the row of the first one has left
    await shown.rest()
    await shown.go("d", "2 identical calls of this session wait too.")
    await shown.type("too early")
    await shown.rest()


@dark
@picture_of(start(short(1), short(2, agent="claude")), answers=True)
async def test_a_no_is_reported_with_what_the_agent_is_told(shown: Console) -> None:
    """The reason in quotes; the cursor is on the next call, which is not armed by that key."""
    await shown.rest()
    await shown.go("d", "Reason (codex will read it):")
    await shown.type("wrong list")
    await shown.press_rested("enter", 'codex will read: "wrong list"')
    await shown.until(lambda: shown.drawn, "drawn")


# Held, hidden, gone


@every_look
@picture_of(start(short(1), short(2), sessions=sessions(NOW)), answers=True)
async def test_while_all_calls_are_held(shown: Console) -> None:
    """The banner says since when; the key that lets them go on stands first, filled."""
    await shown.press_rested("P", "All calls are on hold")
    await shown.rest()


@dark
@picture_of(start(paused_at=NOW - 600, sessions=sessions(NOW)))
async def test_while_all_calls_are_held_and_nothing_waits(shown: Console) -> None:
    """An empty list says that calls are held, not that agents ask for nothing."""
    await shown.shows("All calls are on hold")


@dark_and_light
@picture_of(start(mail(1), short(2)), lock_seconds=60.0)
async def test_a_locked_console_shows_a_count_and_nothing_else(shown: Console) -> None:
    """No name, no title, no address; any key shows it again and does nothing else."""
    await shown.rest()
    shown.clock.advance(70)
    await shown.shows("Locked. 2 calls are waiting.")


# Told


@dark
@picture_of(start(mail()))
async def test_what_was_copied_is_said(shown: Console) -> None:
    """Which field, in what form, how much of it, and what the key does next."""
    await shown.rest()
    await shown.go("y", "Copied")


@dark
@picture_of(start(mail()))
async def test_a_terminal_that_cannot_be_lent_to_a_pager(shown: Console) -> None:
    """It is said in the status line; the item stands as before."""
    await shown.rest()
    await shown.go("p", "pager cannot be opened")


@dark
@picture_of(start(short(1), short(2)))
async def test_a_click_on_a_key_says_to_press_it(shown: Console) -> None:
    """The mouse decides nothing."""
    await shown.rest()
    column = shown.keys.index("approve")
    await shown.click("#keys", offset=(column, 0))
    await shown.shows("The mouse decides nothing.")


# Every command by name


@every_look
@picture_of()
async def test_the_palette_lists_what_is_possible_here(shown: Console) -> None:
    """Name, what it does and its key; nothing that decides is in it."""
    await shown.rest()
    await shown.go("colon", "every command by name")
    await shown.until(lambda: "run it" in shown.text)


@dark
@picture_of()
async def test_the_palette_follows_what_is_typed(shown: Console) -> None:
    """The first that is meant is chosen."""
    await shown.rest()
    await shown.go("colon", "every command by name")
    await shown.type("view")
    await shown.until(lambda: shown.lines[-2].strip() == "view", "typed")


@dark
@picture_of()
async def test_the_palette_says_that_nothing_is_called_so(shown: Console) -> None:
    """A sentence in place of the keys."""
    await shown.rest()
    await shown.go("colon", "every command by name")
    await shown.type("make tea")
    await shown.shows("No command matches here.")
