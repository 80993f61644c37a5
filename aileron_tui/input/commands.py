"""The one registry of keys. Bindings, footer, help and palette derive from it; nothing else names a key."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from textual.binding import Binding, BindingsMap

KeyContext = Literal[
    "waiting",
    "activity",
    "audit",
    "library",
    "sessions",
    "accounts",
    "deny",
    "filter",
    "stop",
    "stop_run",
    "end",
    "search",
    "link",
    "passphrase",
    "account",
    "bind",
    "login",
    "rebind",
    "revoke",
    "reader",
    "palette",
    "help",
]
VIEW_CONTEXTS: tuple[KeyContext, ...] = (
    "waiting",
    "activity",
    "audit",
    "library",
    "sessions",
    "accounts",
)
PANEL_CONTEXTS: tuple[KeyContext, ...] = (
    "deny", "filter", "stop", "stop_run", "end", "search", "link", "passphrase", "account",
    "bind", "login", "rebind", "revoke",
)  # fmt: skip
"""What is asked at the foot of a view."""
CommandHandlers: TypeAlias = dict[str, Callable[[], object]]
"""What is done for each command, by its id."""
_TABLES: tuple[KeyContext, ...] = ("activity", "audit", "library", "sessions", "accounts")
_MOVE: tuple[KeyContext, ...] = (*VIEW_CONTEXTS, "reader", "help")
_DOCUMENT: tuple[KeyContext, ...] = (*VIEW_CONTEXTS, "reader")

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
class Command:
    """One thing that a key does.

    `keys` are Textual's names, the first is the one that footer and help write. `label` is a verb in
    lower case. `decides`: a press can change the world; `asks`: it asks something first. `moves`: it
    only looks elsewhere, so it counts however fast it is repeated. `footer_rank` orders the footer, from the
    left; None keeps it out. `paired_with`: the command whose key is
    written beside this one's.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    contexts: tuple[KeyContext, ...]
    help: str = ""
    decides: bool = False
    asks: bool = False
    moves: bool = False
    footer_rank: int | None = None
    paired_with: str = ""
    fixed: bool = False
    """No other key can be given to it."""


def _answers(
    question: KeyContext,
    enter: str,
    leave: str,
    *,
    key: str = "enter",
    decides: bool = False,
    help: str = "",  # noqa: A002 - the field's name
) -> tuple[Command, ...]:
    """Return the two keys that every question has: *enter* and *leave* are their labels, *key* the first's."""
    return (
        Command(
            id=f"{question}_enter", keys=(key,), label=enter, decides=decides, footer_rank=0,
            fixed=True, help=help, contexts=(question,),
        ),
        Command(
            id=f"{question}_leave", keys=("escape",), label=leave, footer_rank=3, fixed=True,
            contexts=(question,),
        ),
    )  # fmt: skip


COMMANDS: tuple[Command, ...] = (
    # Reading
    Command(
        id="read_on", moves=True, keys=("space",), label="read on", footer_rank=0,
        help="read on by a page, keeping two lines", contexts=_MOVE,
    ),
    Command(
        id="read_back", moves=True, keys=("b", "shift+space"), label="page back",
        help="back by a page, keeping two lines", contexts=_MOVE,
    ),
    Command(
        id="line_down", moves=True, keys=("J",), label="scroll", paired_with="line_up",
        help="scroll the document down, up by one line", contexts=_DOCUMENT,
    ),
    Command(
        id="line_up", moves=True, keys=("K",), label="scroll up", contexts=_DOCUMENT,
    ),
    Command(
        id="read_whole", keys=("v",), label="full screen",
        help="read the document full screen; again: back", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="reader_leave", keys=("escape", "v"), label="back", footer_rank=1, fixed=True,
        help="back to the item, where you can decide", contexts=("reader",),
    ),
    Command(
        id="switch_pane", keys=("tab",), label="document",
        help="switch the movement keys to the document or back", contexts=("waiting",),
    ),
    Command(
        id="search", keys=("slash",), label="search", footer_rank=60,
        help="search the document (after tab)", contexts=_DOCUMENT,
    ),
    Command(
        id="next_match", moves=True, keys=("n",), label="next match", paired_with="previous_match",
        footer_rank=4, help="next, previous match", contexts=_DOCUMENT,
    ),
    Command(
        id="previous_match", moves=True, keys=("N",), label="previous match", contexts=_DOCUMENT,
    ),
    Command(
        id="document_start", moves=True, keys=("g",), label="first line", paired_with="document_end",
        help="first, last line of the document", contexts=_DOCUMENT,
    ),
    Command(
        id="document_end", moves=True, keys=("G",), label="last line", contexts=_DOCUMENT,
    ),
    Command(
        id="links", keys=("L",), label="links", footer_rank=64, asks=True,
        help="show the next link's address; enter opens it",
        contexts=_DOCUMENT,
    ),
    # Deciding
    Command(
        id="go_on", keys=("P",), label="resume", decides=True, footer_rank=8,
        help="resume the calls on hold", contexts=VIEW_CONTEXTS, fixed=True,
    ),
    Command(
        id="approve", keys=("a",), label="approve", decides=True, footer_rank=10,
        help="approve exactly what is on screen", contexts=("waiting",),
    ),
    Command(
        id="approve_session", keys=("A",), label="approve for the session", decides=True, footer_rank=12,
        help="approve, and run identical calls of this session without asking", contexts=("waiting",),
    ),
    Command(
        id="accept", keys=("t",), label="accept", decides=True, footer_rank=20,
        help="accept the file, exactly as it is", contexts=("waiting", "library"),
    ),
    Command(
        id="accept_rest", keys=("T",), label="accept the rest", decides=True, footer_rank=20,
        help="accept what was added together, except what to review first", contexts=("waiting",),
    ),
    Command(
        id="withdraw_acceptance", keys=("x",), label="withdraw", decides=True, footer_rank=21,
        help="withdraw the acceptance: agents can no longer see it", contexts=("library",),
    ),
    Command(
        id="allow_host", keys=("t",), label="allow the host", decides=True, footer_rank=21,
        help="let the session reach the host that it was refused, until it ends", contexts=("sessions",),
    ),
    Command(
        id="end_session", keys=("x",), label="end the session", asks=True, footer_rank=22,
        help="end the session; asks first", contexts=("sessions",),
    ),
    Command(
        id="deny", keys=("d",), label="deny", asks=True, footer_rank=30,
        help="deny, with a reason that the agent will read", contexts=("waiting",),
    ),
    Command(
        id="whole", keys=("x",), label="whole", footer_rank=35,
        help="show the whole new preview; again: the changes", contexts=("waiting",),
    ),
    Command(
        id="refresh", keys=("r",), label="refetch", footer_rank=40,
        help="fetch the preview again", contexts=("waiting",),
    ),
    Command(
        id="look_again", keys=("l",), label="look again", footer_rank=6,
        help="look at the service again after an unknown outcome",
        contexts=("waiting", "activity"),
    ),
    Command(
        id="acknowledge", keys=("m",), label="acknowledge", decides=True, footer_rank=7,
        help="acknowledge an unknown outcome: the call no longer waits",
        contexts=("waiting",),
    ),
    Command(
        id="stop_run", keys=("X",), label="stop the run", asks=True, footer_rank=11,
        help="stop the call that is running; asks first", contexts=("waiting", "activity"),
    ),
    Command(
        id="undo_run", keys=("z",), label="undo", decides=True, footer_rank=9,
        help="take back what this call of a built-in tool wrote", contexts=("activity",),
    ),
    # The vault and its accounts
    Command(
        id="unlock_vault", keys=("U",), label="unlock the vault", asks=True, footer_rank=9,
        help="unlock the vault, or create it where a call waits for one; asks for the passphrase",
        contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="lock_vault", keys=("Z",), label="lock the vault",
        help="lock the vault at once; calls that need it wait", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="choose_account", keys=("C",), label="pick the account", asks=True, footer_rank=8,
        help="pick the account that the call uses", contexts=("waiting",),
    ),
    Command(
        id="view_accounts", keys=("6",), label="accounts",
        help="accounts that connectors log in with: bind, bind again, delete", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="bind_account", keys=("B",), label="bind an account", asks=True, footer_rank=20,
        help="bind an account to the row's connector; asks for its secret, unseen", contexts=("accounts",),
    ),
    Command(
        id="rebind_account", keys=("R",), label="bind again", asks=True, footer_rank=21,
        help="let a connector that has changed use the account; says what is new", contexts=("accounts",),
    ),
    Command(
        id="log_in_again", keys=("l",), label="log in again", asks=True, footer_rank=22,
        help="log in to the account's service again", contexts=("accounts",),
    ),
    Command(
        id="revoke_account", keys=("x",), label="delete", asks=True, footer_rank=23,
        help="delete the account from the vault; asks first", contexts=("accounts",),
    ),
    Command(
        id="forget_choice", keys=("F",), label="ask again", footer_rank=24,
        help="forget that actions use this account without asking", contexts=("accounts",),
    ),
    # The rows of the lists
    Command(
        id="open", keys=("enter",), label="open", footer_rank=5,
        help="open the row and show everything about it", contexts=_TABLES, fixed=True,
    ),
    Command(
        id="show_record", keys=("s",), label="the record", footer_rank=7,
        help="switch between the stored record and its call",
        contexts=("audit",),
    ),
    Command(
        id="decided", keys=("h",), label="decided", footer_rank=56,
        help="decided calls with results; again: what waits", contexts=("waiting",),
    ),
    Command(
        id="verify", keys=("V",), label="verify", footer_rank=23,
        help="verify the whole hash chain, in the background", contexts=("audit",),
    ),
    Command(
        id="export", keys=("x",), label="export", footer_rank=25,
        help="write every record to a new file in the home", contexts=("audit",),
    ),
    Command(
        id="follow", keys=("f",), label="follow", footer_rank=24,
        help="follow the newest row again", contexts=("activity", "audit"),
    ),
    Command(
        id="unfold", keys=("u",), label="code points", footer_rank=35,
        help="show the source, unfolded, with code points", contexts=_DOCUMENT,
    ),
    Command(
        id="wrap_marks", keys=("w",), label="wrap marks", contexts=_DOCUMENT,
        help="show ↩ where a long line continues",
    ),
    Command(
        id="next", moves=True, keys=("j", "down"), label="move", paired_with="previous", footer_rank=50,
        help="next, previous row (also the arrows)", contexts=_MOVE,
    ),
    Command(id="previous", moves=True, keys=("k", "up"), label="previous", contexts=_MOVE),
    Command(
        id="first", moves=True, keys=("home",), label="first", paired_with="last",
        help="first, last row", contexts=_MOVE,
    ),
    Command(id="last", moves=True, keys=("end",), label="last", contexts=_MOVE),
    Command(
        id="page_up", moves=True, keys=("pageup",), label="page up", paired_with="page_down",
        help="one page of rows up, down", contexts=_MOVE,
    ),
    Command(id="page_down", moves=True, keys=("pagedown",), label="page down", contexts=_MOVE),
    Command(
        id="order", keys=("o",), label="order",
        help="sort the list by deadline; again: by arrival", contexts=("waiting",),
    ),
    Command(
        id="filter", keys=("slash",), label="filter", footer_rank=60,
        help="filter by words, or by agent: action: state: age:", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="back", keys=("escape",), label="back", footer_rank=58,
        help="go back; decides nothing", contexts=VIEW_CONTEXTS, fixed=True,
    ),
    # What can be done with the item in view
    Command(
        id="copy", keys=("y",), label="copy", footer_rank=62,
        help="copy a field as shown; again: the next one", contexts=_DOCUMENT,
    ),
    Command(
        id="pager", keys=("p",), label="page", footer_rank=63,
        help="open the longest field in view in $PAGER", contexts=_DOCUMENT,
    ),
    Command(
        id="open_review", keys=("O",), label="open in the browser",
        help="open this call's page in the browser", contexts=("waiting",),
    ),
    # Everywhere
    Command(
        id="view_waiting", keys=("1",), label="waiting", footer_rank=80,
        help="the calls and files that wait for you", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="view_activity", keys=("2",), label="activity", footer_rank=81,
        help="what agents did, newest first", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="view_audit", keys=("3",), label="audit", footer_rank=82,
        help="every audit record", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="view_library", keys=("4",), label="actions", footer_rank=83,
        help="actions and connectors: ready, not accepted, invalid", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="view_sessions", keys=("5",), label="sessions", footer_rank=84,
        help="connected agents", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="pause", keys=("P",), label="pause", footer_rank=66,
        help="put all calls on hold until you resume", contexts=_DOCUMENT,
    ),
    Command(
        id="stop_everything", keys=("ctrl+k",), label="stop everything", asks=True,
        help="deny all, end every session, stop every run; asks first", contexts=_DOCUMENT,
    ),
    Command(
        id="palette", keys=("colon", "ctrl+p"), label="commands", footer_rank=70,
        help="every command by name (also ctrl+p)", contexts=VIEW_CONTEXTS,
    ),
    Command(
        id="quit", keys=("q", "ctrl+q", "ctrl+c"), label="quit", footer_rank=90,
        help="quit; asks first if anything waits", contexts=_DOCUMENT,
    ),
    Command(
        id="help", keys=("question_mark",), label="help", footer_rank=99,
        help="show this help", contexts=_DOCUMENT,
    ),
    # Questions
    *_answers("deny", "deny", "leave it waiting", decides=True, help="deny with this reason"),
    *_answers("stop", "stop everything", "cancel", decides=True),
    *_answers("stop_run", "stop the run", "let it run", decides=True),
    *_answers("end", "end the session", "cancel", decides=True),
    *_answers("filter", "keep the filter", "show all"),
    *_answers("search", "go to match", "end the search"),
    *_answers("link", "open in the browser", "cancel", help="open this address in the browser"),
    *_answers("passphrase", "unlock", "leave it"),
    *_answers("account", "use this account", "leave it waiting", decides=True),
    *_answers("bind", "next", "cancel"),
    *_answers("login", "yes, store it", "no, forget it", key="y", decides=True),
    *_answers("rebind", "yes", "cancel", key="y", decides=True),
    *_answers("revoke", "delete it", "cancel", key="y", decides=True),
    Command(
        id="deny_equal", keys=("ctrl+s",), label="identical calls too", decides=True, footer_rank=1, fixed=True,
        help="deny with this reason, and identical calls of this session too; once the session has ended, all calls of ended sessions", contexts=("deny",),
    ),
    Command(
        id="reason_earlier", moves=True, keys=("up",), label="earlier", footer_rank=2, fixed=True,
        help="use an earlier reason", contexts=("deny",),
    ),
    Command(
        id="reason_later", moves=True, keys=("down",), label="later", fixed=True,
        help="a later reason, and last what you had typed", contexts=("deny",),
    ),
    Command(
        id="link_next", keys=("L", "down"), label="next link", footer_rank=1, fixed=True,
        help="the next link in the document", contexts=("link",),
    ),
    Command(
        id="account_remember", keys=("R",), label="and for later calls", decides=True, footer_rank=1,
        fixed=True, help="use this account for later calls of the action too", contexts=("account",),
    ),
    Command(
        id="account_next", moves=True, keys=("down", "j"), label="choose", paired_with="account_previous",
        footer_rank=1, fixed=True, contexts=("account",),
    ),
    Command(
        id="account_previous", moves=True, keys=("up", "k"), label="choose above", fixed=True,
        contexts=("account",),
    ),
    Command(
        id="account_number", keys=("1", "2", "3", "4", "5", "6", "7", "8", "9"), label="by number",
        fixed=True, contexts=("account",),
    ),
    Command(
        id="login_open", keys=("enter",), label="open the browser", footer_rank=0, fixed=True,
        contexts=("login",),
    ),
    Command(
        id="palette_enter", keys=("enter",), label="run it", footer_rank=0, fixed=True,
        contexts=("palette",),
    ),
    Command(
        id="palette_down", moves=True, keys=("down",), label="choose", paired_with="palette_up", footer_rank=1,
        fixed=True, contexts=("palette",),
    ),
    Command(
        id="palette_up", moves=True, keys=("up",), label="choose above", fixed=True,
        contexts=("palette",),
    ),
    Command(
        id="palette_leave", keys=("escape",), label="back", footer_rank=2, fixed=True,
        contexts=("palette",),
    ),
    Command(
        id="close", keys=("escape", "q", "question_mark"), label="close", footer_rank=0, fixed=True,
        contexts=("help",),
    ),
)  # fmt: skip

NEXT_SCENE = Command(
    id="next_scene", keys=("S",), label="next scene", footer_rank=31,
    help="go to the next scene, or skip this one",
    contexts=VIEW_CONTEXTS,
)  # fmt: skip
"""A key that only the console of `aileron demo` has."""


def key_label(key: str) -> str:
    """Return how a person writes *key*, a name of Textual's."""
    return _FACES.get(key, key)


@dataclass(slots=True)
class CommandRegistry:
    """All actions, with the keys that this console gives them now."""

    commands: tuple[Command, ...] = COMMANDS
    """Replaced when the keys of `config.toml` come into force."""

    def command(self, action_id: str) -> Command:
        """Return the action with *action_id*.

        Raises:
            KeyError: there is none.
        """
        for each in self.commands:
            if each.id == action_id:
                return each
        raise KeyError(action_id)

    def key_label(self, action_id: str) -> str:
        return key_label(self.command(action_id).keys[0])

    def key_labels(self, each: Command) -> str:
        """Return the key of *each*, and the one that is written beside it."""
        own = key_label(each.keys[0])
        return f"{own} {self.key_label(each.paired_with)}" if each.paired_with else own

    def in_context(self, context: KeyContext) -> tuple[Command, ...]:
        return tuple(each for each in self.commands if context in each.contexts)

    def footer_order(self, context: KeyContext) -> tuple[Command, ...]:
        """Return the actions of *context* that the footer names, from left to right."""
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


DEFAULT_REGISTRY = CommandRegistry()
