"""`O`: a link that pairs a browser, three words, and the key that confirms; devices in view 5."""

from dataclasses import replace

import pytest
import segno

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port import devices as pairing
from aileron_core.console_port.events import ApprovalUpdated, IntentRefused
from aileron_core.console_port.intents import SetPause
from aileron_tui.draw.devices import qr_code
from aileron_tui.draw.times import clock_seconds
from tests.support.screens.home import devices
from tests.support.screens.play import Play, rested
from tests.support.screens.port import LINK
from tests.support.screens.states import NOW, mail, recorded_event, short, snapshot_of

PHONE, FIREFOX = devices(NOW)
NEW = replace(FIREFOX, words=())
WORDS = "olive · raven · cedar"
HAND = "amber-fox-lantern"


def made_link(play: Play, remote: str = "") -> Play:
    play.go("O", "Making a link …")
    play.asks(pairing.MakeLink())
    play.port.intents.clear()
    play.port.tell(pairing.LinkMade(url=LINK, expires_at=play.clock.now() + 60, elsewhere=remote))
    play.shows("This link pairs one browser with this console, once, within 60 s.")
    return play


def with_devices(play: Play, *views: pairing.DeviceView) -> Play:
    play.tell(pairing.DevicesUpdated(devices=views))
    return play


def test_a_device_is_confirmed_by_a_key_at_rest_with_the_words_that_were_shown() -> None:
    play = with_devices(made_link(Play(snapshot_of(mail()))), NEW)
    play.shows("Let this browser see and decide what waits here?")
    play.shows("/usr/lib/firefox-esr/firefox-esr, process 4711")
    assert "the words are the same" not in play.keys
    play.press_rested("y", "y did nothing: it has not shown its key yet.")
    with_devices(play, FIREFOX)
    play.press_alone("y", "Too soon: the screen changed.")
    play.asks_nothing()
    play.rest()
    play.press("y")
    play.port.tell(pairing.DevicesUpdated(devices=(replace(FIREFOX, program="/tmp/x"),)))
    play.clock.advance(0.03)
    play.shows("The screen changed as you pressed the key.")
    with_devices(play, FIREFOX)
    play.asks_nothing()
    play.press_rested("y")
    play.asks(pairing.ConfirmDevice(device_id=FIREFOX.device_id, words=FIREFOX.words))
    with_devices(play, replace(FIREFOX, confirmed=True))
    play.shows(f"✓ {WORDS} can now see and decide what waits here.")


@pytest.mark.parametrize("key", ["x", "escape"])
def test_refusing_ends_the_device_and_leaving_the_question_does_not(key: str) -> None:
    play = with_devices(made_link(Play(snapshot_of(mail()))), FIREFOX)
    play.press_alone(key)
    if key == "escape":
        play.asks_nothing()
    else:
        play.asks(pairing.EndDevice(device_id=FIREFOX.device_id))
        with_devices(play)
        play.shows(f"The pairing of {WORDS} has ended.")
    assert "Let this browser" not in play.text


def test_the_link_leads_to_the_call_and_is_shown_as_text_and_qr_code() -> None:
    remote = LINK.replace("http://127.0.0.1:8517", "https://box.example")
    play = made_link(Play(snapshot_of(mail())), remote)
    page = f"/review/{mail().approval_id}#"
    shown = "".join(each.partition("┃")[2].strip(" ▀▄█") for each in play.lines)
    assert LINK.replace("/review#", page) in shown
    assert remote.replace("/review#", page) in shown
    assert play.text.count("█▀▀▀▀▀█") == 3
    play.press_alone("c")
    assert play.asked_of_app == [("copy", remote.replace("/review#", page))]
    play.resize(80, 20)
    assert "█▀▀▀▀▀█" not in play.text
    play.shows("In a larger window, the link is shown as a QR code too.")


def test_the_qr_code_has_every_square_and_a_border() -> None:
    rows = ["".join(piece.text for piece in each) for each in qr_code(LINK)]
    halves = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    squares = [[halves[cell][half] for cell in row] for row in rows for half in (0, 1)]
    made = [list(row) for row in segno.make(LINK, error="l").matrix_iter(border=2)]
    assert squares[: len(made)] == made
    assert not any(map(any, squares[len(made) :]))


def test_a_link_that_nobody_opened_expires_and_one_that_is_refused_says_why() -> None:
    play = made_link(Play(snapshot_of(), start_view="sessions"))
    play.port.tell(pairing.LinkMade(url=LINK.replace("#", "#0"), expires_at=play.clock.now()))
    play.shows("This link pairs one browser")
    play.port.tell(pairing.LinkMade(url=LINK, expires_at=play.clock.now()))
    play.shows("The link is over")
    play.go("escape", "agent")
    made_link(play)
    play.passes(61)
    play.shows("The link is over")
    play.go("escape", "agent")
    play.go("O", "Making a link …")
    play.port.tell(IntentRefused(call_id="", message="Four devices are paired already."))
    play.shows("Four devices are paired already.")
    assert "Making a link" not in play.text


def test_devices_are_rows_below_the_sessions_and_keys_confirm_and_end_them() -> None:
    play = Play(snapshot_of(mail()))
    with_devices(play, PHONE, FIREFOX)
    play.shows("▲ A browser has redeemed a link. 5, then t on its row, asks about it.")
    play.go("5", "2 devices")
    play.press("end", "k")
    play.shows("amber · fox · lantern", "cannot be known")
    play.go("x", "amber · fox · lantern")
    play.asks(pairing.EndDevice(device_id=PHONE.device_id))
    play.go("t", "t did nothing: this device is already confirmed.")
    play.press("end")
    play.go("enter", "nobody has confirmed it: it gets nothing")
    play.go("t", "Let this browser see and decide what waits here?")
    play.press_rested("y")
    assert play.port.intents[1:] == [
        pairing.ConfirmDevice(device_id=FIREFOX.device_id, words=FIREFOX.words)
    ]


def test_a_console_and_no_page_is_confirmed_as_yours_by_a_key_of_its_own() -> None:
    console = replace(FIREFOX, kind="console")
    play = with_devices(Play(snapshot_of(mail())), console)
    play.go("5", "1 device")
    play.press("end")
    play.go("t", "Let this console see all that this one shows, approve and deny?")
    play.shows(
        "As mine, it may also accept files, bind accounts, pause, end sessions and stop everything."
    )
    play.press_rested("o")
    play.asks(
        pairing.ConfirmDevice(device_id=console.device_id, words=console.words, as_owners=True)
    )
    with_devices(play, replace(console, confirmed=True, is_owners=True))
    play.shows("● is yours")
    page = with_devices(made_link(Play(snapshot_of(mail()))), FIREFOX)
    page.press_rested("o", "o did nothing: a page only answers calls.")
    page.asks_nothing()

    yours = Play(replace(snapshot_of(mail()), attached="attached 1", is_owners=True))
    yours.press_rested("P")
    yours.asks(SetPause(paused=True))
    yours.press_rested("O", "O did nothing: only the console itself does this")
    other = Play(replace(snapshot_of(mail()), attached="attached 1"))
    other.press_rested("P", "P did nothing: only the console itself does this, or an attached one")
    other.asks_nothing()


@pytest.mark.parametrize("pressed_here_too", [False, True])
def test_an_answer_of_another_hand_is_nowhere_said_to_be_yours(pressed_here_too: bool) -> None:
    play = rested(snapshot_of(mail(), short(2), records=()))
    if pressed_here_too:
        play.read_all()
        play.press_alone("a")
    done = replace(
        mail(), state="denied", decided_at=NOW + 5, decided_by="person", hand=HAND,
        ended_at=NOW + 5, reason="not this one",
    )  # fmt: skip
    of_call = {"run_id": mail().run_id, "actor": "person", "hand": HAND}
    play.port.tell(ApprovalUpdated(view=done))
    play.port.tell(recorded_event(1, AuditEvent.APPROVAL_DENIED, **of_call))
    play.shows(f"Send a mail draft: denied by {HAND}. Nothing else changed here.", f"{HAND}, ")
    play.go("h", f"{HAND}")
    assert any("Decided" in each and HAND in each for each in play.lines)
    play.go("escape", "WAITING")
    play.go("2", f'{HAND}: "not this one"')
    play.go("3", "approval.denied")
    assert any("approval.denied" in each and HAND in each for each in play.lines)
    assert "you" not in play.text


@pytest.mark.parametrize("state", ["denied", "checking", "completed"])
def test_a_press_on_a_call_that_another_hand_answered_says_whose(state: str) -> None:
    play = rested(snapshot_of(mail(), short(2)))
    play.read_all()
    ended = NOW + 5 if state != "checking" else None
    done = replace(
        mail(), state=state, decided_at=NOW + 5, decided_by="person", hand=HAND, ended_at=ended,
        version=mail().version + 1,
    )  # fmt: skip
    play.port.tell(ApprovalUpdated(view=done))
    play.passes(1)
    did = "denied" if state == "denied" else "approved"
    since = "; it is completed now" if state == "completed" else ""
    play.press_alone("a", f"{HAND} {did} it at {clock_seconds(NOW + 5)}{since}.")
    play.asks_nothing()
