"""The content of an action file as values, with its tool's name, title and description, names, versions, and what marks a read."""

import re
from dataclasses import dataclass, field

from aileron_core.canonical import Json, JsonObject

SCHEMES = ("github", "gitlab", "hub", "local")

_IDENTIFIERS = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)"
    rf"(?:-{_IDENTIFIERS}(?:\.{_IDENTIFIERS})*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_MOST_CHARACTERS = 256
"""Of a version; int() of one with thousands of digits fails."""
_URI_CHARACTERS = re.compile(r"[A-Za-z0-9._~/+-]*")


def is_semver(text: str) -> bool:
    """Return whether *text* is a strict Semantic Version of at most 256 characters, without a leading v."""
    return len(text) <= _MOST_CHARACTERS and _SEMVER.fullmatch(text) is not None


def semver_order(version: str) -> tuple[object, ...]:
    """Return what a strict Semantic Version is compared by (SemVer 2.0.0, 11)."""
    core, _, pre = version.partition("+")[0].partition("-")
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in pre.split(".") if part
    )
    return (*map(int, core.split(".")), not pre, parts)


def fqn_problem(text: str) -> str | None:
    """Return why *text* is not `<scheme>://<owner>/<path>`, or None."""
    scheme, separator, rest = text.partition("://")
    if "@" in rest:
        return "must not contain @<version>: write the version under the key version"
    if not separator or _URI_CHARACTERS.fullmatch(rest) is None:
        return "not a valid URI of the form <scheme>://<owner>/<path>"
    if scheme not in SCHEMES:
        return f"scheme not recognized (expected one of {', '.join(SCHEMES)})"
    owner, _, path = rest.partition("/")
    if not owner:
        return "missing owner segment"
    if not path:
        return "missing path segment"
    if any(segment in ("", ".", "..") for segment in (owner, *path.split("/"))):
        return "not a valid URI: a path segment is empty or consists of dots"
    return None


def source_problem(text: str) -> str | None:
    """Return why *text* is not `<scheme>://<owner>/<path>@<version>`, or None."""
    fqn, separator, version = text.rpartition("@")
    if not separator:
        return "missing @<version> suffix"
    if not is_semver(version):
        return "version must be strict SemVer (e.g. 1.2.3)"
    return fqn_problem(fqn)


INPUT_TYPES = ("string", "integer", "number", "boolean", "array", "object")
ITEM_TYPES = ("string", "integer", "number", "boolean", "object")
ANY = "any"
"""The type of an input that takes any JSON; no file can write it (see `actions.compat`)."""

UNBOUND_HASH = "sha256:bound-at-release"
"""What published suites write in place of a connector's hash; `action add` binds it."""

FORMATS = ("html", "markdown", "json", "diff", "addresses", "text")
"""What a text may be written in; a person is shown it as that."""

EFFECTS = ("read", "create", "change", "delete", "send", "pay", "run")

MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader agrees on (RFC 8259, 6)."""

MAX_DEPTH = 64
"""Levels of nesting in a template and in an argument."""

TOOL_NAME_LENGTH = 48
BUILT_IN_TOOLS = frozenset({"check_action_status", "withdraw_action"})
"""Names of the MCP tools that are no actions."""
GATED_NOTE = (
    "A person is asked before this runs. The call may answer that approval is pending; "
    "then use check_action_status."
)

BUILTIN_PREFIX = "builtin."
"""Begins the names of the built-in tools' actions; no file's action may have it."""

_NOT_TOOL = re.compile(r"[^a-z0-9_]")
_NOT_OP_TOOL = re.compile(r"[^A-Za-z0-9_-]")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorIdentity:
    """What a run's digest records of a connector: name, version, and hash of its bytes."""

    fqn: str
    """`<scheme>://<owner>/<path>`, without `@version`."""
    version: str
    hash: str
    """`sha256:` and the hex SHA-256 of the concatenated bytes of binary and manifest."""

    @property
    def ref(self) -> str:
        """`fqn@version`."""
        return f"{self.fqn}@{self.version}"

    @property
    def names(self) -> tuple[str, ...]:
        """What a person may call it: its hash, its name or the last word of it, with or without version."""
        names = (self.fqn, self.fqn.rpartition("/")[2])
        return (self.hash, *names, *(f"{name}@{self.version}" for name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRequirement(ConnectorIdentity):
    """A `[[requires.connectors]]` entry: an exact pin and the ops that the action may use of it."""

    capabilities: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputType:
    """One type that an argument may have, with what its own declaration says of it."""

    type: str
    items_type: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An `[[inputs]]` entry; `items_type` is the type of an array's items where it is stated."""

    name: str
    type: str
    description: str
    required: bool = True
    label: str | None = None
    multiline: bool = False
    items_type: str | None = None
    format: str | None = None
    """What its text is written in, one of `FORMATS`."""
    declarations: tuple[InputType, ...] = ()
    """Of an input that is declared more than once, every declaration: any of them may fit."""

    @property
    def types(self) -> tuple[InputType, ...]:
        """The types that an argument may have, at least one."""
        own = InputType(type=self.type, items_type=self.items_type, description=self.description)
        return self.declarations or (own,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An `[[execute]]` entry."""

    id: str
    connector: str
    op: str
    idempotent: bool | None = None
    inputs: JsonObject | None = None
    """None: the file has no `inputs` table, and the op gets the call's arguments as they are."""
    takes_any: bool = False
    """The op gets every argument of the call, declared or not; never of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`[approval.preview]`: the read-only op that is asked, and the fields of its answer to show."""

    op: str
    args: JsonObject = field(default_factory=dict[str, Json])
    render: tuple[tuple[str, str], ...] = ()
    """Label and path of each shown field, in the file's order."""
    multiline: frozenset[str] = frozenset()
    gist: str | None = None
    """A template over the shown fields for a one-line summary."""
    formats: tuple[tuple[str, str], ...] = ()
    """Label of a shown field, and what its text is written in, one of `FORMATS`."""
    changes: tuple[tuple[str, str], ...] = ()
    """Label of a shown field, and a template over the arguments for the value that it gets."""
    omits_missing: bool = False
    """A field that the answer lacks is left out, where others show that it is not there."""
    reach: tuple[str, ...] = ()
    """Labels of the shown fields that say what a call reaches; a grant can have them stay while the rest varies."""
    read_back: JsonObject | None = None
    """The op's arguments when it is asked after the run, where they hold a step's output; None: `args`."""
    is_rehearsal: bool = False
    """The op is the first step's with its very arguments, and what it would do is tried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """`[approval]`: whether a person is asked, what kind of effect it has, what the person is shown."""

    required: bool = False
    effect: str | None = None
    preview: Preview | None = None
    grants: bool = True
    """False: a person can let no later call run without asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLimits:
    """`[limits]`: seconds of a whole run, MiB of guest memory."""

    wall_seconds: int = 30
    memory_mib: int = 64
    has_wall_seconds: bool = False
    """The file says `wall_seconds` itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action file. `sha256` is the lower-case hex digest of the file's bytes."""

    name: str
    version: str
    source: str
    requires: tuple[ConnectorRequirement, ...]
    intent: str
    inputs: tuple[Input, ...] = ()
    steps: tuple[Step, ...] = ()
    approval: Approval = Approval()
    limits: ActionLimits = ActionLimits()
    body: str = ""
    sha256: str = ""
    file: str = ""
    tool: str = ""
    """The name of its MCP tool; empty for that of a file, which is made from `name`."""
    schema: JsonObject | None = None
    """The JSON Schema of its arguments as an MCP server states it; None: it is made of `inputs`."""

    @property
    def gated(self) -> bool:
        """Whether a person is asked before it runs."""
        return self.approval.required

    @property
    def is_read_only(self) -> bool:
        """Whether the file marks it as one that only reads: by its effect, or else by its steps.

        Published suites state no effect, but mark what may be done twice: their reads, and no write
        that runs unasked.
        """
        if self.approval.effect is not None:
            return self.approval.effect == "read"
        return all(step.idempotent is True for step in self.steps)

    @property
    def tool_name(self) -> str:
        """The name as an MCP tool; of a file's action what is not in `[a-z0-9_]` is `_`."""
        return self.tool or _NOT_TOOL.sub("_", self.name)[:TOOL_NAME_LENGTH]

    @property
    def title(self) -> str:
        """The first Markdown heading of the body, else the name; of a server's tool the name."""
        return self.name if self.is_of_server else _first_heading(self.body) or self.name

    @property
    def description(self) -> str:
        """What agents read: the body without its leading heading, else the intent."""
        own = self.body if self.is_of_server else _without_leading_heading(self.body)
        text = own or self.intent
        return f"{text}\n\n{GATED_NOTE}" if self.gated else text

    @property
    def is_of_server(self) -> bool:
        """Whether it is a tool of an MCP server: what it says of itself is what the server says."""
        return self.schema is not None

    @property
    def takes_any_arguments(self) -> bool:
        """Whether a call may have arguments that are not declared."""
        return any(step.takes_any for step in self.steps)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, in the file's order."""
        return tuple(entry.name for entry in self.inputs)

    def requirement(self, fqn: str) -> ConnectorRequirement | None:
        return next((entry for entry in self.requires if entry.fqn == fqn), None)

    @property
    def steps_without_capability(self) -> tuple[Step, ...]:
        """The steps whose op is not among the capabilities that the file lists: with one it cannot run."""
        granted = {entry.fqn: frozenset(entry.capabilities) for entry in self.requires}
        return tuple(step for step in self.steps if step.op not in granted.get(step.connector, ()))


def op_tool_name(name: str) -> str:
    """Return the MCP tool's name of `<plugin>.<op>`: `<plugin>_<op>`, with `_` for what no tool's name may hold."""
    plugin, _, op = name.rpartition(".")
    return _NOT_OP_TOOL.sub("_", f"{plugin}_{op}")[:TOOL_NAME_LENGTH]


def is_builtin(name: str) -> bool:
    """Return whether *name* is that of a built-in tool's action."""
    return name.startswith(BUILTIN_PREFIX)


def shown_name(name: str) -> str:
    """Return the action *name* as people and agents know it: a built-in tool by the tool's own name."""
    return name.removeprefix(BUILTIN_PREFIX).capitalize() if is_builtin(name) else name


def _heading(line: str) -> str | None:
    """Return the text of an ATX heading (CommonMark 4.2), or None for another line."""
    match = _HEADING.fullmatch(line)
    if match is None:
        return None
    text = (match.group(2) or "").strip()
    bare = text.rstrip("#")  # a closing run of # counts only after a blank
    return bare.rstrip() if not bare or bare[-1] in " \t" else text


def _first_heading(body: str) -> str:
    """Return the first heading that is not inside a code fence, where `#` starts a comment."""
    fence = ""
    for line in body.split("\n"):
        marker = _FENCE.match(line)
        if fence:
            if marker and marker.group(1).startswith(fence):
                fence = ""
        elif marker:
            fence = marker.group(1)
        elif text := _heading(line):
            return text
    return ""


def _without_leading_heading(body: str) -> str:
    first, _, rest = body.strip().partition("\n")
    return rest.strip() if _heading(first) is not None else body.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFile:
    """An action as it was accepted."""

    name: str
    sha256: str
    """Of its file, hex."""
