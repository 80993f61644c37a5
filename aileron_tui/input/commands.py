"""Commands that keys do, and the registry of them: bindings, footer, help and palette derive from it; nothing else names a key."""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args

from textual.binding import Binding, BindingsMap

from aileron_core.console_port.intents import Intent
from aileron_tui.words.status import ONLY_ROW

View = Literal["waiting", "activity", "audit", "library", "sessions", "accounts", "rules"]
BlockedBy = Literal[
    "none", "lost", "storage", "small", "empty", "sending", "checking", "vault", "over", "fetching",
    "deadline", "drawing", "undrawable",
]  # fmt: skip
"""Reasons for which nothing can be approved here, however long one waits."""
Change = Literal["cursor", "item", "list", "screen"]
"""What moved last under the person's eye."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCall:
    """A call whose steps run now."""

    run_id: str
    name: str
    """Its title, or its action's name: foreign text."""
    started_at: float
    """Epoch seconds."""


KeyContext: TypeAlias = str
"""Where a key counts: a view, a question's name, `reader`, `palette` or `help`."""
VIEWS: tuple[KeyContext, ...] = get_args(View)
TABLES = VIEWS[1:]
DOCUMENT = (*VIEWS, "reader")
MOVE = (*DOCUMENT, "help")

Now = TypeVar("Now")
On = TypeVar("On")

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


def _no_reason(_: object) -> str:
    return ""


def _no_intents(_: object) -> Iterable[Intent]:
    return ()


@dataclass(frozen=True)
class Command(Generic[Now, On]):
    """One thing that a key does in a situation `Now`, on a page or a question, `On`.

    `keys` are Textual's names, the first is the one that footer and help write. `label` is a verb in
    lower case. `decides`: a press can change the world; `asks`: it asks something first. `moves`: it
    only looks elsewhere, so it counts however fast it is repeated.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    contexts: tuple[KeyContext, ...] = ()
    help: str = ""
    _: KW_ONLY
    decides: bool = False
    asks: bool = False
    moves: bool = False
    mouse: bool = True
    """A click may do it, where it does not decide."""
    fixed: bool = False
    """No other key can be given to it."""
    ends: bool = False
    """What it decides ends something: it is drawn so."""
    footer_rank: int | None = None
    """Orders the footer, from the left; None keeps it out."""
    rank_now: Callable[[Now], int] | None = None
    """The rank where that depends on the situation."""
    label_now: Callable[[Now], str] = _no_reason
    """Another label in this situation; empty: the usual one."""
    paired_with: str = ""
    """The command whose key is written beside this one's."""
    needs: Literal["", "core", "owner", "document"] = ""
    """What has to be there: a core that can write, which only an owner's console asks this, or a document on screen."""
    after: Literal["", "opened", "read"] = ""
    """It decides only in an opened row, or only what was read there to the end."""
    why_not: Callable[[Now], str] = _no_reason
    """Why it does nothing now, as it stands after `did nothing:`; empty where it is offered."""
    phrase: str = ""
    """What a second press does, as it stands after `Press x again to`; empty: the label says it."""
    never_with: str = ""
    """A command that is never available together with it, so that they may share a key."""
    at_end: str = ONLY_ROW
    """Why it moved nothing."""
    intents: Callable[[Now], Iterable[Intent]] = _no_intents
    """What it asks of the core."""
    said: str = ""
    """What is said once that was asked."""
    do: Callable[[On], object] | None = None
    """What it does here, where it asks nothing of the core."""


AnyCommand: TypeAlias = Command[Any, Any]


def key_label(key: str) -> str:
    """Return how a person writes *key*, a name of Textual's."""
    return _FACES.get(key, key)


@dataclass(slots=True)
class CommandRegistry:
    """All commands, with the keys that this console gives them now."""

    commands: tuple[AnyCommand, ...]
    """Replaced when the keys of `config.toml` come into force."""

    def command(self, command_id: str) -> AnyCommand:
        """Return the command with *command_id*.

        Raises:
            KeyError: there is none.
        """
        for each in self.commands:
            if each.id == command_id:
                return each
        raise KeyError(command_id)

    def key_label(self, command_id: str) -> str:
        return key_label(self.command(command_id).keys[0])

    def key_labels(self, each: AnyCommand) -> str:
        """Return the key of *each*, and the one that is written beside it."""
        own = key_label(each.keys[0])
        return f"{own} {self.key_label(each.paired_with)}" if each.paired_with else own

    def in_context(self, context: KeyContext) -> tuple[AnyCommand, ...]:
        return tuple(each for each in self.commands if context in each.contexts)

    def footer_order(self, context: KeyContext) -> tuple[AnyCommand, ...]:
        """Return the commands of *context* that the footer names, from left to right."""
        named = [each for each in self.in_context(context) if each.footer_rank is not None]
        return tuple(sorted(named, key=lambda each: each.footer_rank or 0))

    def deciding_keys(self) -> frozenset[str]:
        """Return the keys that can change the world somewhere."""
        return frozenset(key for each in self.commands if each.decides for key in each.keys)

    def moving_keys(self) -> frozenset[str]:
        """Return the keys that only look elsewhere, wherever they are pressed."""
        other = {key for each in self.commands if not each.moves for key in each.keys}
        return frozenset(k for each in self.commands if each.moves for k in each.keys) - other

    def bindings_for(self, *contexts: KeyContext) -> BindingsMap:
        """Return the bindings of every command in one of *contexts*, and no other.

        The action of each is `do('<id of the command>')`.
        They are priority bindings: a key is judged when it arrives at the application, before any
        widget sees it, so that the time of the press and the judgement of it belong together.
        """
        bindings = [
            Binding(
                ",".join(each.keys),
                f"do('{each.id}')",
                each.label,
                show=False,
                priority=True,
                id=f"aileron.{each.id}",
            )
            for each in self.commands
            if set(each.contexts) & set(contexts)
        ]
        return BindingsMap(bindings)
