"""What stands on the screen in each state, in words: a call, a list, a view; a play shows what the console
shows. Colours are in `test_pictures`.
"""

import logging
from dataclasses import replace

import pytest

from aileron_core.console_port.events import ApprovalUpdated, Snapshot
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.intents import Accept, Approve
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Problem
from aileron_tui import words
from tests.screen.driving import drive_console
from tests.screen.offered_files import connector, offered
from tests.screen.test_pictures import HOME, with_a_past
from tests.support.screens.calls import fixtures, later_steps, snapshot, vanished
from tests.support.screens.home import library_items, not_accepted, problems
from tests.support.screens.play import Play
from tests.support.screens.states import (
    NOW,
    TO,
    Undrawable,
    change,
    denied,
    mail,
    short,
    snapshot_of,
)
from tests.support.variants import ALL

CALLS = snapshot(NOW).approvals
NOTHING = snapshot_of(sessions=(), records=(), library=(), actions_ready=0, head_words=None)
ROUTE = "gmail.googleapis.com:443 -> 127.0.0.1:9001"
NO_PREVIEW = PreviewView(status="none")
UNFETCHABLE = PreviewView(status="unavailable", reason="timed out", updated_at=NOW - 2)
ASKED_BY_THE_KERNELS_WORD = snapshot_of(
    replace(CALLS[0], preview=replace(CALLS[0].preview, fields=()))
)
NOW_SENT = replace(change(TO).preview, fields=change(TO).preview.fields[:2])
CHANGE_WITHOUT_NEW_VALUES = snapshot_of(
    change(TO, preview=NOW_SENT, new_values=(), other_arguments=())
)
SIZES = [(40, 10), (80, 24), (120, 36), *([(60, 16), (200, 50)] if ALL else ())]
KEYS = ["j", "space", "v", "escape", "tab", "d", "x", "escape", "h", "escape", "2", "enter", "4", "j", "enter", "3", "5", "6", "1"]  # fmt: skip
STATES = {
    "fixtures": lambda: snapshot(NOW),
    "mails": lambda: snapshot_of(
        mail(1), short(2), denied(3), routes=("a.example:443 -> 127.0.0.1:1",)
    ),
    "empty": snapshot_of,
}


def creation() -> Snapshot:
    sent = (
        FieldView(label="Title", value="INC-2291 post-mortem"),
        FieldView(label="Start", value="2026-10-08"),
    )
    view = short(effect="CREATE", title="Create an event", action="create-event", arguments=sent)
    fields = (FieldView(label="That day", value="09:00 Stand-up"),)
    return snapshot_of(replace(view, preview=replace(view.preview, fields=fields, gist="Team")))


def busy() -> Snapshot:
    kinds = [view for view in fixtures(NOW) if view.state == "pending"]
    return snapshot_of(
        *(
            replace(
                kinds[number % len(kinds)], approval_id=f"act-20261008T140152-{number:016x}",
                run_id=f"run-{number:026d}", requested_at=NOW - 400 + number,
                expires_at=NOW + 200 + 10 * number,
            )
            for number in range(40)
        )
    )  # fmt: skip


def broken_call() -> ApprovalView:
    fields = (FieldView(label="Body", value=Undrawable("x"), multiline=True),)
    preview = PreviewView(status="ready", fields=fields, gist="a mail", host="h", updated_at=NOW)
    return short(1, preview=preview)


def at(name: str, *more: str) -> tuple[str, ...]:
    return ("4", *"j" * [each.name for each in library_items(NOW)].index(name), *more)


MALFORMED = Problem(file="connectors/billing/manifest.toml", message="It is not valid TOML.")
PROBLEMS = (*problems(), MALFORMED)

SHOWN: dict[str, tuple[Snapshot, tuple[str, ...], tuple[str, ...]]] = {
    # A call: its state, the keys pressed, what stands there then
    "declares no preview": (snapshot_of(short(preview=NO_PREVIEW)), (),
        ("WILL HAPPEN  no preview: the action file declares none", "CODEX SENT", "draft_id    ┊")),
    "a server's tool declares no preview": (
        snapshot_of(short(preview=NO_PREVIEW, connector="mcp://local/notes")), (),
        ("WILL HAPPEN  no preview: nothing else is known of it", "CODEX SENT")),
    "a later step asks": (snapshot_of(replace(CALLS[6], steps=later_steps("asked"), times_asked=1)), (),
        ("STEPS  one after another; 1 is set at run time", "┃ ✓ done",
         "┃ needs your approval now, with these inputs", "issue       ┃ 4182",
         "┃ ${create.number}")),
    "the kernel says who asks": (ASKED_BY_THE_KERNELS_WORD, ("space",),
        ("WHO ASKS  confirmed by the kernel", "process     │ 48112 codex ← zsh ← tmux: server",
         "program     │ /usr/bin/codex", "tool call   ┊ call_9fQ2", "thread      ┊ 0199-7c1e")),
    "its requester is gone": (snapshot_of(short(requester_gone=True)), (),
        ("▲ The agent's session has ended", "session ended   4:")),
    "its agent stopped waiting": (snapshot_of(short(times_asked=3, stopped_waiting_at=NOW - 40)), (),
        ("Asked       │ 14:01:48  3 times",)),
    "its session opened itself": (
        snapshot_of(short(self_opened=True, containment="none", agent="claude", session_label="a relay")), (),
        (" s ago · not contained · in ~/work/q3", "▌         ┊ claude",
         "▲ Unverified agent: it connected by itself and chose this name.", "THE AGENT SENT")),
    "a route answers it": (snapshot_of(short(routed=(ROUTE,)), routes=(ROUTE,)), (),
        ("▲ Test route: gmail.googleapis.com:443 is answered by 127.0.0.1:9001.",
         f"Routed      │ {ROUTE}")),
    "its deadline is near": (snapshot_of(short(expires_at=NOW + 40)), (), ("0:36 left",)),
    "its preview went away": (
        snapshot_of(short(version=2, preview=UNFETCHABLE, drift=vanished(NOW))), (),
        ("▲ Changed after you looked   ▲ No preview",
         "CHANGED  nothing has run; the preview can no longer be fetched",
         "┃ Preview unavailable: timed out", "To          ┃ − sam@helio.example",
         "Cc          ┃ − n/a", "┃ − the invoice", "○ No preview. Press a to send")),
    "is looked at once more": (
        snapshot_of(short(state="checking", decided_at=NOW - 1, decided_by="person"), short(2)), (),
        ("… checking", "Decided     │ 14:01:59  you", "Checking once more before it runs …",
         "d deny…")),
    "runs": (snapshot_of(short(state="executing", decided_at=NOW - 1, decided_by="person"), short(2)), (),
        ("▶ running.", "X stop the run…")),
    "is still looked at": (snapshot_of(CALLS[5]), (),
        ("┃ ·····", "Fetching the preview. You can approve once it arrives or fails.", "d deny…")),
    "changes without new values": (CHANGE_WITHOUT_NEW_VALUES, (),
        ("NOW  fetched by Aileron", "To          ┃ ben@northwind.example",
         "✓ All seen. Press a to")),
    "creates": (creation(), (),
        ("NOW  fetched by Aileron", "That day    ┃ 09:00 Stand-up",
         "CODEX WANTS  to be created exactly as shown", "Title       ┊ INC-2291 post-mortem")),
    # Files
    "a connector": (snapshot_of(held=(connector(),)), (),
        ("Accept this connector?", "▲ allows more than before: + host collect.example:443",
         "┃ different code: 131,072 bytes,", "┃ − hosts = [\"notes.example:443\"]",
         "┃ collect.example:443")),
    "a new action": (snapshot_of(held=(offered(),)), (),
        ("Accept this action?", "New action. Agents can't use it until you accept it.",
         "Runs        ┃", "Digest      ┃")),
    "a file with a problem": (snapshot_of(short(), problems=PROBLEMS), ("j",),
        ("A file has a problem", "! FILE   actions/pay.md:12 execute.op",
         "File        ┃ actions/pay.md:12", "it has post_invoice.",
         "Nothing to decide here. Fix the file")),
    # The list
    "more than its pane holds": (busy(), tuple("j" * 20),
        ("▴ 10 above  ▾ 19 more", "next expiry in 3:")),
    "an empty home": (snapshot_of(actions_ready=0, sessions=(), records=()), (),
        ("Nothing is waiting.", "`aileron init --example` or `aileron action add PATH`")),
    "nothing waits": (snapshot_of(*(view for view in CALLS if view.state in ("denied", "unknown"))), (),
        ("Nothing is waiting.", "denied 1 min ago", "2 agents are connected.")),
    "held and empty": (snapshot_of(paused_at=NOW - 600), (),
        ("▲ All calls are on hold (since 13:52). P resumes them.", "Nothing is waiting.",
         " P  resume")),
    # Activity and audit
    "no call yet": (NOTHING, ("2",), ("No records yet.", " P pause   : commands")),
    "a call of the past": (with_a_past(), ("2", "enter"),
        ("? unknown", "OUTCOME  unknown at 14:01:10, took 10 s", "Decided     │ 14:01:10  you",
         "WHAT WAS SHOWN  as fetched at 14:00:50")),
    "no record yet": (NOTHING, ("3",), ("No records yet.", " V verify   x export")),
    "a record as stored": (snapshot(NOW), ("3", "j", "enter", "s"),
        ("Record 35  run.unknown", "CHAIN  each record's hash covers the one before it",
         "AS STORED  the text that was hashed", '│ {"action":"send-draft","actor":"aileron"')),
    "a call of an earlier console": (snapshot_of(mail(), denied(2), denied(3)), ("h",),
        ("OUTCOME  denied at 13:53:40", "Reason      │ not to the board",
         "│ Not kept: what was shown")),
    "a filtered audit": (snapshot(NOW), ("3", "/", *"agent:claude", "enter"),
        ("match agent:claude",)),
    # Actions and connectors
    "no action": (NOTHING, ("4",), ("No actions are installed.",)),
    "why a file is not accepted": (HOME, at("post-invoice"), ("▌", "not accepted")),
    "an action that asks nobody": (HOME, at("list-drafts", "enter"),
        ("▲ runs without asking you", "┃ ▲ agents can run it at any time without asking you")),
    "a file in error": (HOME, at("pay", "enter"),
        ("pay  ! invalid", "PROBLEMS  1 problem",
         "line 12     ┃ The connector billing has no op pay;", "Nothing to decide here.")),
    "an accepted connector": (HOME, at("gmail 1.2.0", "enter"),
        ("connector · file store/connectors/sha256/9f3c", "it can reach only these hosts",
         "Hosts       ┃ gmail.googleapis.com:443")),
    # Sessions
    "no session": (NOTHING, ("5",), ("No agent is connected. Start one with `aileron launch`.",)),
    "a session that nothing contains": (HOME, ("5", "j", "enter"),
        ("▲ not contained",
         "▲ not sandboxed: it can do whatever your account can, even without Aileron",
         "Contained   ┃ ▲ no: it can do what your account can")),
    "a session that opened itself": (HOME, ("5", "end", "enter"),
        ("agent ┊ WILL HAPPEN‹ZWSP›", "▲ Unverified agent: it connected by itself",
         "SEEN  nothing: the kernel did not report who connected")),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_what_stands_there(name: str) -> None:
    state, keys, texts = SHOWN[name]
    play = Play(state)
    play.passes(2)
    for key in keys:
        play.go(key, "")
    play.passes(2)
    for text in texts:
        assert text in play.text, f"{text}\n{play.text}"


def test_the_track_tells_what_is_in_view_and_whether_the_rest_was_seen() -> None:
    play = Play(snapshot_of(mail()), size=(80, 24))
    assert {line[-1] for line in play.lines[5:-2]} == {"█", "┃", "│"}
    play.read_all()
    assert {line[-1] for line in play.lines[5:-2]} == {"█", "│"}


@pytest.mark.parametrize(
    ("state", "size"),
    [*(("fixtures", size) for size in SIZES), ("mails", (120, 36)), ("empty", (80, 24))],
)
async def test_a_play_has_the_lines_of_the_console(state: str, size: tuple[int, int]) -> None:
    """After each of some keys that go everywhere; what the field shows of itself is Textual's."""
    made = STATES[state]
    async with drive_console(made(), size) as shown:
        play = Play(made(), size)
        for key in ("", *KEYS):
            if key:
                await shown.press_alone(key)
                play.press_alone(key)
            await shown.passes(2)
            await shown.passes(2)
            play.passes(2)
            play.passes(2)
            seen, played = ([each.rstrip() for each in one.lines] for one in (shown, play))
            if play.model.panel == "deny":
                del seen[-2], played[-2]
            assert seen == played, f"after {key!r}"


def test_an_item_that_cannot_be_drawn_waits_undecided(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "aileron_tui"):
        play = Play(snapshot_of(broken_call(), short(2)))
        play.shows(words.status.UNDRAWABLE)
        play.passes(2)
        assert words.status.UNDRAWABLE in play.status_line
        assert "Fault     ┃ Aileron could not draw this because of a bug." in play.text
        assert play.row.startswith("▌✗ This cannot be shown")
        assert "approve" not in play.keys
        assert "deny" not in play.keys
        for key in ("a", "a", "d", "enter", "r", "t"):
            play.go(key)
        assert play.port.intents == []
    (message,) = [r.getMessage() for r in caplog.records if r.name.startswith("aileron_tui")]
    assert message.startswith("an item could not be drawn: RuntimeError at ")
    assert "what nobody may log" not in message
    play.press("j")
    play.rest()
    assert "✓ All seen." in play.status_line
    play.press_alone("a")
    assert play.asks_for(Approve).approval_id == short(2).approval_id
    play.press("k")
    assert words.status.UNDRAWABLE in play.status_line


def test_content_that_comes_anew_can_be_drawn_and_decided_and_a_drift_takes_that_away() -> None:
    play = Play(snapshot_of(broken_call()))
    play.shows(words.status.UNDRAWABLE)
    play.tell(ApprovalUpdated(view=replace(short(), version=2)))
    assert words.status.UNDRAWABLE not in play.text
    play.rest()
    play.port.tell(ApprovalUpdated(view=replace(broken_call(), version=3)))
    play.shows(words.status.UNDRAWABLE)
    play.clock.advance(2)
    play.in_vain("a")
    play.tell(ApprovalUpdated(view=replace(short(), version=4)))
    assert words.status.UNDRAWABLE not in play.text
    play.press_rested("a")
    play.asks()


def test_a_file_that_cannot_be_drawn_is_not_accepted() -> None:
    held = replace(not_accepted(), file=Undrawable("a.md"), hosts=(Undrawable("h"),))
    play = Play(snapshot_of(held=(held,)))
    play.shows(words.status.UNDRAWABLE)
    play.clock.advance(2)
    play.press_alone("t")
    assert not play.asked(Accept)
