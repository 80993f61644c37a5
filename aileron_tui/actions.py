"""The one registry of keys. Bindings, footer and help derive from it; nothing else names a key."""

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding, BindingType

__all__ = ["ACTIONS", "Action", "Context", "action", "bindings_for", "footer_order"]

Context = Literal["waiting", "activity", "panel", "help"]
_LISTS: tuple[Context, ...] = ("waiting", "activity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that a key does.

    `keys` are Textual's names, `face` is how the footer and the help write them. `label` is a verb
    in lower case. `decides`: a press can change the world; `asks`: it asks something first.
    `moves`: it only looks elsewhere, so it counts however fast it is repeated.
    `rank` orders the footer, from the left; None keeps it out of the footer.
    """

    id: str
    keys: tuple[str, ...]
    face: str
    label: str
    help: str
    contexts: tuple[Context, ...]
    decides: bool = False
    asks: bool = False
    rank: int | None = None
    moves: bool = False


ACTIONS: tuple[Action, ...] = (
    Action(
        id="read_on",
        moves=True,
        keys=("space",),
        face="space",
        label="read on",
        help="read on: one pane less two lines",
        contexts=("waiting",),
        rank=0,
    ),
    Action(
        id="approve",
        keys=("a",),
        face="a",
        label="approve",
        help="approve what stands on screen, exactly",
        contexts=("waiting",),
        decides=True,
        rank=1,
    ),
    Action(
        id="take_in",
        keys=("t",),
        face="t",
        label="take in",
        help="take in the file, exactly as it is",
        contexts=("waiting",),
        decides=True,
        rank=2,
    ),
    Action(
        id="deny",
        keys=("d",),
        face="d",
        label="deny",
        help="deny; asks what the agent shall be told",
        contexts=("waiting",),
        asks=True,
        rank=3,
    ),
    Action(
        id="refresh",
        keys=("r",),
        face="r",
        label="refetch",
        help="fetch the preview again",
        contexts=("waiting",),
        rank=4,
    ),
    Action(
        id="next",
        moves=True,
        keys=("j", "down"),
        face="j k",
        label="move",
        help="next, previous row (also the arrows)",
        contexts=_LISTS,
        rank=5,
    ),
    Action(
        id="previous",
        moves=True,
        keys=("k", "up"),
        face="k",
        label="previous",
        help="",
        contexts=_LISTS,
    ),
    Action(
        id="read_back",
        moves=True,
        keys=("b", "shift+space"),
        face="b",
        label="read back",
        help="read back",
        contexts=("waiting",),
    ),
    Action(
        id="line_down",
        moves=True,
        keys=("J",),
        face="J K",
        label="scroll",
        help="scroll the document by one line",
        contexts=("waiting",),
    ),
    Action(
        id="line_up",
        moves=True,
        keys=("K",),
        face="K",
        label="scroll back",
        help="",
        contexts=("waiting",),
    ),
    Action(
        id="first",
        moves=True,
        keys=("home",),
        face="home end",
        label="first",
        help="first, last row",
        contexts=_LISTS,
    ),
    Action(
        id="last", moves=True, keys=("end",), face="end", label="last", help="", contexts=_LISTS
    ),
    Action(
        id="page_down",
        moves=True,
        keys=("pagedown",),
        face="pgup pgdn",
        label="page",
        help="a page of rows up, down",
        contexts=_LISTS,
    ),
    Action(
        id="page_up",
        moves=True,
        keys=("pageup",),
        face="pgup",
        label="page up",
        help="",
        contexts=_LISTS,
    ),
    Action(
        id="view_waiting",
        keys=("1",),
        face="1",
        label="waiting",
        help="what waits for you",
        contexts=_LISTS,
        rank=6,
    ),
    Action(
        id="view_activity",
        keys=("2",),
        face="2",
        label="activity",
        help="what was recorded, newest first",
        contexts=_LISTS,
        rank=7,
    ),
    Action(
        id="quit",
        keys=("q", "ctrl+q", "ctrl+c"),
        face="q",
        label="quit",
        help="quit; asks once more if anything waits",
        contexts=_LISTS,
        rank=8,
    ),
    Action(
        id="help",
        keys=("question_mark",),
        face="?",
        label="help",
        help="this page",
        contexts=_LISTS,
        rank=9,
    ),
    Action(
        id="panel_enter",
        keys=("enter",),
        face="enter",
        label="deny",
        help="deny with this reason",
        contexts=("panel",),
        decides=True,
        rank=0,
    ),
    Action(
        id="panel_leave",
        keys=("escape",),
        face="esc",
        label="leave it waiting",
        help="leave it waiting",
        contexts=("panel",),
        rank=1,
    ),
    Action(
        id="close",
        keys=("escape", "q", "question_mark"),
        face="esc",
        label="close",
        help="",
        contexts=("help",),
    ),
)


def action(action_id: str) -> Action:
    """Return the action with *action_id*.

    Raises:
        KeyError: there is none.
    """
    for each in ACTIONS:
        if each.id == action_id:
            return each
    raise KeyError(action_id)


def bindings_for(*contexts: Context) -> list[BindingType]:
    """Return the bindings of every action in one of *contexts*.

    They are priority bindings: a key is judged when it arrives at the application, before any
    widget sees it, so that the time of the press and the judgement of it belong together.
    """
    return [
        Binding(
            ",".join(each.keys),
            each.id,
            each.label,
            show=False,
            priority=True,
            id=f"aileron.{each.id}",
        )
        for each in ACTIONS
        if set(each.contexts) & set(contexts)
    ]


def footer_order(context: Context) -> tuple[Action, ...]:
    """Return the actions of *context* that the footer names, from left to right."""
    named = [each for each in ACTIONS if each.rank is not None and context in each.contexts]
    return tuple(sorted(named, key=lambda each: each.rank or 0))
