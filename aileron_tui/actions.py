"""The one registry of keys. Bindings, footer, help and palette derive from it; nothing else names a key."""

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding, BindingsMap

__all__ = ["ACTIONS", "DEFAULT", "VIEW_CONTEXTS", "Action", "Context", "Registry", "face_of"]

Context = Literal["waiting", "activity", "deny", "help"]
VIEW_CONTEXTS: tuple[Context, ...] = ("waiting", "activity")

_FACES = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "up": "↑",
    "down": "↓",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that a key does.

    `keys` are Textual's names, the first is the one that footer and help write. `label` is a verb in
    lower case. `decides`: a press can change the world; `asks`: it asks something first. `moves`: it
    only looks elsewhere, so it counts however fast it is repeated. `rank` orders the footer, from the
    left; None keeps it out. `beside`: the action whose key is written beside this one's.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    contexts: tuple[Context, ...]
    help: str = ""
    decides: bool = False
    asks: bool = False
    moves: bool = False
    rank: int | None = None
    beside: str = ""
    fixed: bool = False
    """No other key can be given to it."""


ACTIONS: tuple[Action, ...] = (
    # Reading
    Action(
        id="read_on", moves=True, keys=("space",), label="read on", rank=0,
        help="read on: one pane less two lines", contexts=("waiting",),
    ),
    Action(
        id="read_back", moves=True, keys=("b", "shift+space"), label="read back",
        help="read back", contexts=("waiting",),
    ),
    Action(
        id="line_down", moves=True, keys=("J",), label="scroll", beside="line_up",
        help="scroll the document by one line", contexts=("waiting",),
    ),
    Action(
        id="line_up", moves=True, keys=("K",), label="scroll back", contexts=("waiting",),
    ),
    # Deciding
    Action(
        id="approve", keys=("a",), label="approve", decides=True, rank=10,
        help="approve what stands on screen, exactly", contexts=("waiting",),
    ),
    Action(
        id="take_in", keys=("t",), label="take in", decides=True, rank=20,
        help="take in the file, exactly as it is", contexts=("waiting",),
    ),
    Action(
        id="deny", keys=("d",), label="deny", asks=True, rank=30,
        help="deny; asks what the agent shall be told", contexts=("waiting",),
    ),
    Action(
        id="refresh", keys=("r",), label="refetch", rank=40,
        help="fetch the preview again", contexts=("waiting",),
    ),
    # What stands in the lists
    Action(
        id="next", moves=True, keys=("j", "down"), label="move", beside="previous", rank=50,
        help="next, previous row (also the arrows)", contexts=VIEW_CONTEXTS,
    ),
    Action(id="previous", moves=True, keys=("k", "up"), label="previous", contexts=VIEW_CONTEXTS),
    Action(
        id="first", moves=True, keys=("home",), label="first", beside="last",
        help="first, last row", contexts=VIEW_CONTEXTS,
    ),
    Action(id="last", moves=True, keys=("end",), label="last", contexts=VIEW_CONTEXTS),
    Action(
        id="page_up", moves=True, keys=("pageup",), label="page up", beside="page_down",
        help="a page of rows up, down", contexts=VIEW_CONTEXTS,
    ),
    Action(id="page_down", moves=True, keys=("pagedown",), label="page down", contexts=VIEW_CONTEXTS),
    # What can be done with what one reads
    # Everywhere
    Action(
        id="view_waiting", keys=("1",), label="waiting", rank=80,
        help="what waits for you", contexts=VIEW_CONTEXTS,
    ),
    Action(
        id="view_activity", keys=("2",), label="activity", rank=81,
        help="what agents did, newest first", contexts=VIEW_CONTEXTS,
    ),
    Action(
        id="quit", keys=("q", "ctrl+q", "ctrl+c"), label="quit", rank=90,
        help="quit; asks once more if anything waits", contexts=VIEW_CONTEXTS,
    ),
    Action(
        id="help", keys=("question_mark",), label="help", rank=99,
        help="this page", contexts=VIEW_CONTEXTS,
    ),
    # Panels
    Action(
        id="deny_enter", keys=("enter",), label="deny", decides=True, rank=0, fixed=True,
        help="deny with this reason", contexts=("deny",),
    ),
    Action(
        id="deny_leave", keys=("escape",), label="leave it waiting", rank=1, fixed=True,
        contexts=("deny",),
    ),
    Action(
        id="close", keys=("escape", "q", "question_mark"), label="close", rank=0, fixed=True,
        contexts=("help",),
    ),
)  # fmt: skip


def face_of(key: str) -> str:
    """Return how a person writes *key*, a name of Textual's."""
    return _FACES.get(key, key)


@dataclass(frozen=True, slots=True)
class Registry:
    """All actions, with the keys that this console gives them."""

    actions: tuple[Action, ...] = ACTIONS

    def action(self, action_id: str) -> Action:
        """Return the action with *action_id*.

        Raises:
            KeyError: there is none.
        """
        for each in self.actions:
            if each.id == action_id:
                return each
        raise KeyError(action_id)

    def face(self, action_id: str) -> str:
        """Return the key of *action_id* as a person writes it."""
        return face_of(self.action(action_id).keys[0])

    def faces(self, each: Action) -> str:
        """Return the key of *each*, and the one that is written beside it."""
        own = face_of(each.keys[0])
        return f"{own} {self.face(each.beside)}" if each.beside else own

    def here(self, context: Context) -> tuple[Action, ...]:
        """Return the actions of *context*."""
        return tuple(each for each in self.actions if context in each.contexts)

    def footer_order(self, context: Context) -> tuple[Action, ...]:
        """Return the actions of *context* that the footer names, from left to right."""
        named = [each for each in self.here(context) if each.rank is not None]
        return tuple(sorted(named, key=lambda each: each.rank or 0))

    def keys_that_decide(self) -> frozenset[str]:
        """Return the keys that can change the world somewhere."""
        return frozenset(key for each in self.actions if each.decides for key in each.keys)

    def keys_that_move(self) -> frozenset[str]:
        """Return the keys that only look elsewhere, wherever they are pressed."""
        other = {key for each in self.actions if not each.moves for key in each.keys}
        return frozenset(k for each in self.actions if each.moves for k in each.keys) - other

    def bindings_for(self, *contexts: Context) -> BindingsMap:
        """Return the bindings of every action in one of *contexts*, and no other.

        They are priority bindings: a key is judged when it arrives at the application, before any
        widget sees it, so that the time of the press and the judgement of it belong together.
        """
        bindings = [
            Binding(
                ",".join(each.keys),
                each.id,
                each.label,
                show=False,
                priority=True,
                id=f"aileron.{each.id}",
            )
            for each in self.actions
            if set(each.contexts) & set(contexts)
        ]
        return BindingsMap(bindings)


DEFAULT = Registry()
