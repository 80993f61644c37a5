"""The keys of every view, of the list of commands and of the help."""

from collections.abc import Callable

from aileron_core.console_port.intents import SetPause
from aileron_tui import words
from aileron_tui.input.commands import DOCUMENT, VIEWS, Command, View
from aileron_tui.pages.command import unless
from aileron_tui.pages.page import Page
from aileron_tui.state.situation import Situation

_Key = Command[Situation, Page]


def _request(command: str) -> Callable[[Page], None]:
    """Return what has the application do *command*."""
    return lambda page: page.surface.request(command)


def view_key(view: View, key: str, text: str, *, rank: int | None = None) -> _Key:
    """Return the command that shows *view*."""
    command, why = f"view_{view}", "this view is already shown"
    label = "actions" if view == "library" else view
    return _Key(
        command, (key,), label, VIEWS, text, footer_rank=rank,
        why_not=unless(lambda now: now.view != view, why), do=_request(command),
    )  # fmt: skip


EVERYWHERE = (
    view_key("waiting", "1", "the calls and files that wait for you", rank=80),
    view_key("activity", "2", "what agents did, newest first", rank=81),
    view_key("audit", "3", "every audit record", rank=82),
    view_key("library", "4", "actions and connectors: ready, not accepted, invalid", rank=83),
    view_key("sessions", "5", "connected agents", rank=84),
    _Key(  # at once, without rest: pausing changes no call, and going on has to rest
        "pause", ("P",), "pause", DOCUMENT, "put all calls on hold until you resume", footer_rank=66,
        never_with="go_on",
        needs="owner",
        why_not=unless(lambda now: now.model.paused_at is None, "all calls are already on hold"),
        intents=lambda _: (SetPause(paused=True),),
    ),
    _Key(
        "stop_everything", ("ctrl+k",), "stop everything", DOCUMENT,
        "deny all, end every session, stop every run; asks first", asks=True, needs="owner",
        do=lambda page: page.panel.ask("stop"),
    ),
    _Key(
        "palette", ("colon", "ctrl+p"), "commands", VIEWS, "every command by name (also ctrl+p)",
        footer_rank=70, do=_request("palette"),
    ),
    _Key(
        "quit", ("q", "ctrl+q", "ctrl+c"), "quit", DOCUMENT, "quit; asks first if anything waits",
        footer_rank=90, do=_request("quit"),
    ),
    _Key(
        "help", ("question_mark",), "help", DOCUMENT, "show this help", footer_rank=99, do=_request("help"),
    ),
)  # fmt: skip

OVER_PAGES = (
    _Key("palette_enter", ("enter",), "run it", ("palette",), fixed=True, footer_rank=0),
    _Key(
        "palette_down", ("down",), "choose", ("palette",), moves=True, fixed=True, footer_rank=1,
        paired_with="palette_up",
    ),
    _Key("palette_up", ("up",), "choose above", ("palette",), moves=True, fixed=True),
    _Key("palette_leave", ("escape",), "back", ("palette",), fixed=True, footer_rank=2),
    _Key("close", ("escape", "q", "question_mark"), "close", ("help",), fixed=True, footer_rank=0),
)  # fmt: skip
"""What these do is with their screens."""

NEXT_SCENE = _Key(
    "next_scene", ("S",), "next scene", VIEWS, "go to the next scene, or skip this one", footer_rank=31,
    needs="core",
    why_not=unless(
        lambda now: now.model.guide is not None and now.model.guide.has_next, words.status.ONLY_ROW
    ),
    do=_request("next_scene"),
)  # fmt: skip
"""A key that only the console of `aileron demo` has."""
