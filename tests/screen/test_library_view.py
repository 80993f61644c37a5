"""View 4: what lies in the home; a key decides about a file where its facts stand, and nowhere else."""

from dataclasses import replace

from aileron_core.console_port.events import LibraryUpdated
from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.intents import Accept, WithdrawAcceptance
from tests.screen.driving import NOW, Console, console, start
from tests.support.screens.home import library, not_accepted, problems

STATE = start(held=(not_accepted(),), library=library(NOW), problems=problems())
HELD = next(item for item in library(NOW) if item.state == "held_back")
READY = next(item for item in library(NOW) if item.name == "send-draft")


async def to(shown: Console, name: str) -> None:
    """Go to the row of *name* in view 4."""
    await shown.go("4", "invalid")
    while name not in shown.row:
        shown.clock.advance(0.5)
        before = shown.row
        await shown.press_alone("j")
        await shown.until(lambda b=before: shown.row != b, "another row")


async def test_accept_shows_the_facts_first_and_then_accepts_exactly_that_digest() -> None:
    """In the list `t` opens; hosts, digest, gated, effect and preview stand there; `t` again decides."""
    async with console(STATE, answers=True) as shown:
        await to(shown, "post-invoice")
        assert "t accept…" in shown.keys
        await shown.press_rested("t", "THE FILE")
        assert shown.port.intents == []
        for fact in (HELD.digest, "api.billing.example:443", "CREATE", "billing.get_invoice"):
            assert fact in shown.text
        await shown.press_alone("t")
        await shown.passes(0.1)
        assert shown.port.intents == [], "the page was not there for 400 ms"
        await shown.rest()
        assert " t  accept" in shown.keys
        await shown.press_alone("t")
        await shown.asks(Accept(kind="action", name="post-invoice", digest=HELD.digest))
        await shown.shows("✓ Accepted: post-invoice.")
        assert "● ready" in shown.text


async def test_withdrawing_takes_what_is_ready_away_from_agents() -> None:
    """`x` shows the facts first as well, and says what it would do."""
    async with console(STATE, answers=True) as shown:
        await to(shown, "send-draft")
        await shown.press_rested("x", "THE FILE")
        await shown.rest()
        assert "x withdraws acceptance: agents can no longer see send-draft." in shown.status_line
        await shown.press_alone("x")
        await shown.asks(WithdrawAcceptance(kind="action", name="send-draft", digest=READY.digest))
        await shown.shows("✓ Acceptance withdrawn: send-draft.")


async def test_a_file_that_changes_while_one_reads_rests_anew_and_is_not_accepted() -> None:
    """The key is about the bytes that stood there, not about the name."""
    other = replace(HELD, digest="cd" * 32, reason="It changed on disk.")

    async with console(STATE) as shown:
        await to(shown, "post-invoice")
        await shown.go("enter", "THE FILE")
        await shown.rest()
        await shown.press("t")
        items = tuple(other if item.name == "post-invoice" else item for item in STATE.library)
        held = (replace(not_accepted(), digest=other.digest),)
        update = LibraryUpdated(not_accepted=held, problems=(), actions_ready=2, library=items)
        shown.port.tell(update)
        await shown.shows("It changed on disk.")
        await shown.passes(0.03)
        assert shown.port.intents == []
        assert not shown.armed
        await shown.press_rested("t")
        await shown.asks()
        assert shown.port.intents[0] == Accept(
            kind="action", name="post-invoice", digest=other.digest
        )


async def test_unread_facts_want_a_second_press() -> None:
    """In a small pane the first `t` says how many lines are unread."""
    hosts = tuple(f"h{number}.example:443" for number in range(40))
    items = tuple(
        replace(item, hosts=hosts) if item.name == "post-invoice" else item
        for item in STATE.library
    )

    async with console(replace(STATE, library=items), size=(80, 24)) as shown:
        await to(shown, "post-invoice")
        await shown.go("enter", "THE FILE")
        await shown.press_rested("t", "Press t again to accept it anyway.")
        assert shown.port.intents == []
        await shown.press_rested("t")
        await shown.asks()


async def test_what_is_hidden_in_a_file_wants_a_second_press_here_too() -> None:
    """Although every line was read; the first press names what was found."""
    content = FileContentView(text="Posts an\u202e invoice")
    items = tuple(
        replace(item, content=content) if item.name == "post-invoice" else item
        for item in STATE.library
    )

    async with console(replace(STATE, library=items), size=(120, 60)) as shown:
        await to(shown, "post-invoice")
        await shown.go("enter", "THE FILE")
        await shown.read_all()
        await shown.press_alone("t", "RLO. Press t again")
        assert shown.port.intents == []
        await shown.press_rested("t")
        await shown.asks_for(Accept)
