"""View 4: what lies in the home; a key decides about a file where its facts stand, and nowhere else."""

from dataclasses import replace

from aileron_core.console_port.events import LibraryUpdated
from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.intents import Accept, WithdrawAcceptance
from tests.screen.driving import NOW, start
from tests.support.screens.home import library_items, not_accepted, problems
from tests.support.screens.play import Play

STATE = start(held=(not_accepted(),), library=library_items(NOW), problems=problems())
HELD = next(item for item in library_items(NOW) if item.state == "held_back")
READY = next(item for item in library_items(NOW) if item.name == "send-draft")


def to(play: Play, name: str) -> None:
    """Go to the row of *name* in view 4."""
    play.go("4", "invalid")
    while name not in play.row:
        play.clock.advance(0.5)
        before = play.row
        play.press_alone("j")
        play.until(lambda b=before: play.row != b, "another row")


def test_accept_shows_the_facts_first_and_then_accepts_exactly_that_digest() -> None:
    """In the list `t` opens; hosts, digest, gated, effect and preview stand there; `t` again decides."""
    play = Play(STATE, answers=True)
    to(play, "post-invoice")
    assert "t accept…" in play.keys
    play.press_rested("t", "THE FILE")
    assert play.port.intents == []
    for fact in (HELD.digest, "api.billing.example:443", "CREATE", "billing.get_invoice"):
        assert fact in play.text
    play.press_alone("t")
    play.passes(0.1)
    assert play.port.intents == [], "the page was not there for 400 ms"
    play.rest()
    assert " t  accept" in play.keys
    play.press_alone("t")
    play.asks(Accept(kind="action", name="post-invoice", digest=HELD.digest))
    play.shows("✓ Accepted: post-invoice.")
    assert "● ready" in play.text


def test_withdrawing_takes_what_is_ready_away_from_agents() -> None:
    """`x` shows the facts first as well, and says what it would do."""
    play = Play(STATE, answers=True)
    to(play, "send-draft")
    play.press_rested("x", "THE FILE")
    play.rest()
    assert "x withdraws acceptance: agents can no longer see send-draft." in play.status_line
    play.press_alone("x")
    play.asks(WithdrawAcceptance(kind="action", name="send-draft", digest=READY.digest))
    play.shows("✓ Acceptance withdrawn: send-draft.")


def test_a_file_that_changes_while_one_reads_rests_anew_and_is_not_accepted() -> None:
    """The key is about the bytes that stood there, not about the name."""
    other = replace(HELD, digest="cd" * 32, reason="It changed on disk.")

    play = Play(STATE)
    to(play, "post-invoice")
    play.go("enter", "THE FILE")
    play.rest()
    play.press("t")
    items = tuple(other if item.name == "post-invoice" else item for item in STATE.library)
    held = (replace(not_accepted(), digest=other.digest),)
    update = LibraryUpdated(not_accepted=held, problems=(), actions_ready=2, library=items)
    play.port.tell(update)
    play.shows("It changed on disk.")
    play.passes(0.03)
    assert play.port.intents == []
    assert not play.armed
    play.press_rested("t")
    play.asks()
    assert play.port.intents[0] == Accept(kind="action", name="post-invoice", digest=other.digest)


def test_what_is_hidden_in_a_file_wants_a_second_press_here_too() -> None:
    """Although every line was read; the first press names what was found."""
    content = FileContentView(text="Posts an\u202e invoice")
    items = tuple(
        replace(item, content=content) if item.name == "post-invoice" else item
        for item in STATE.library
    )

    play = Play(replace(STATE, library=items), size=(120, 60))
    to(play, "post-invoice")
    play.go("enter", "THE FILE")
    play.read_all()
    play.press_alone("t", "RLO. Press t again")
    assert play.port.intents == []
    play.press_rested("t")
    play.asks_for(Accept)
