"""The values of a policy: what is known about a call, a rule, what the rules say of the call; rules and grants as text. Pure.

As text, in words or as lines of `policy.toml`, both hold what a file or a service says: whoever draws the words makes
hidden characters visible, the lines escape them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from aileron_core.actions.interpolate import number_text
from aileron_core.canonical import Json
from aileron_core.console_port.standing import FieldTest, FieldTests

Decision = Literal["allow", "ask", "deny"]
DECISIONS: Final[tuple[Decision, ...]] = ("allow", "ask", "deny")
READING: Final = ("Read", "Glob", "Grep")
WRITING: Final = ("Write", "Edit")
COMMAND: Final = "Bash"
TOOLS: Final = (*READING, *WRITING, COMMAND)
ANY_FURTHER_WORDS: Final = "*"
RULE_KEY: Final = "rule"
"""The member of a record that says why the rules had a call asked, run or denied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What a command changed in a rehearsal of it."""

    done: bool
    """False: it could not be rehearsed."""
    paths: tuple[str, ...] = ()
    """Of everything that it made, changed or deleted: relative to the project, absolute outside."""
    own_changes: int = 0
    """How many more there are in the home and the caches of the sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a call before it runs; never the content of a file."""

    tool: str
    """One of `TOOLS`."""
    path: str | None = None
    """Of the file or folder, relative to the project and without links; None for a command, and outside."""
    outside: bool = False
    """The path leaves the project."""
    target: str = ""
    """Where it leads then, absolute."""
    command: str = ""
    """As the agent wrote it."""
    simple: bool = False
    """The command is literal words alone, which are *argv*: no expansion, redirection, assignment or operator."""
    argv: tuple[str, ...] = ()
    program: str = ""
    """Absolute path of what the first word runs; empty where it was not found."""
    program_writable: bool = True
    """The session could change that program, or put another in its place."""
    named: tuple[str, ...] = ()
    """Files of the project that words of the command name, as *path*."""

    rehearsal: Rehearsal | None = None
    """None before a command was rehearsed."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that the call is known to concern."""
        place = self.place
        return (place, *self.named) if place else self.named

    @property
    def place(self) -> str:
        """The file or folder itself: relative to the project, absolute outside; empty for a command."""
        return self.target if self.outside else self.path or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What to do with calls of some tools: with all, or only those of some paths or of one command."""

    tools: tuple[str, ...]
    decision: Decision
    paths: tuple[str, ...] = ()
    """Patterns (`aileron_core.path_patterns`); empty: any path."""
    except_paths: tuple[str, ...] = ()
    """Patterns of what *paths* does not mean, of a rule that denies or asks."""
    argv: tuple[str, ...] = ()
    """The words of a command, the last of which may be `*` for any further words; empty: any command."""
    changes: tuple[str, ...] | None = None
    """Patterns of all that a rehearsed command may have changed, for what allows; None: it is not about that."""
    reason: str = ""
    """A clause, such as "files of this name may hold secrets"."""
    source: str = ""
    """Where a person wrote it, such as `policy.toml:12`; empty for the rules that Aileron has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the rules say of one call."""

    decision: Decision
    reason: str
    """A clause that quotes nothing of the call: it goes on record, which keeps no arguments."""
    about: str = ""
    """What of the call it is about, such as a path; empty for the whole."""
    place: str = ""
    """`Facts.place` of the call."""
    rule: Rule | None = None
    """None where no rule for the built-in tools decided."""
    source: str = ""
    """Of a call of an action: which rule or grant says so, as `policy.toml:12` or `grant g3`."""
    looked_at: tuple[str, ...] = ()
    """The fields that it looked at."""
    asks_nobody: bool = False
    """The action is not gated; only what is fetched may still have a rule ask or deny."""
    before_rehearsal: Facts | None = None
    """What was known of a command that a rule may allow by what it changes: judge it again once it was rehearsed."""

    @property
    def text(self) -> str:
        """The reason, and what it is about."""
        return f"{self.reason}: {self.about}" if self.about else self.reason

    @property
    def whole_text(self) -> str:
        """The text, and where it answered the call which fields it looked at."""
        return answered_text(self.text, () if self.decision == "ask" else self.looked_at)

    def to_record(self) -> dict[str, Json]:
        """Return what a record of the call says of it: why, which rule or grant says so, the fields that it looked at."""
        by: dict[str, Json] = {"by": self.source, "looked_at": list[Json](self.looked_at)}
        return {RULE_KEY: self.reason, **(by if self.source else {})}


def answered_text(reason: str, looked_at: Sequence[str]) -> str:
    """Return *reason* with the fields that were looked at, if any were."""
    return f"{reason}, which looked at {', '.join(looked_at)}" if looked_at else reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRule:
    """What to do with calls of some actions, from files or of connectors' ops: with all, or those of one shape."""

    actions: tuple[str, ...]
    """Names, in which `*` stands for any characters."""
    decision: Decision
    effects: tuple[str, ...] = ()
    """Empty: any, and none stated."""
    agents: tuple[str, ...] = ()
    """Names of launched agents; empty: any."""
    contained: bool | None = None
    """Only calls of sessions that are contained, or that are not; None: either."""
    where: Mapping[str, FieldTest] = field(default_factory=dict[str, FieldTest])
    """By `args.NAME` and `fetched.LABEL`."""
    is_open: bool = False
    """One that allows lets what *where* does not name be anything."""
    grants: bool = True
    """False: a person can make no grant for these calls."""
    reason: str = ""
    source: str = ""
    """Where a person wrote it, such as `policy.toml:12`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a person's `policy.toml` says; nothing, where there is none."""

    rules: tuple[Rule, ...] = ()
    action_rules: tuple[ActionRule, ...] = ()
    secret_exceptions: tuple[str, ...] = ()
    """Patterns of files that hold no secrets although their names look like it."""
    text: str = ""
    """Of the file, as it was read."""

    def restrictions(self) -> "Policy":
        """Return what counts of it before it is accepted: what it denies and asks, not what it allows."""
        kept = tuple(rule for rule in self.rules if rule.decision != "allow")
        actions = tuple(rule for rule in self.action_rules if rule.decision != "allow")
        return replace(self, rules=kept, action_rules=actions, secret_exceptions=())


_WORDS: Final = {
    "at_most": "at most",
    "at_least": "at least",
    "absent": "absent",
    "any": "anything",
}
_NUMBERS: Final = ("plain", "at_most", "at_least")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def in_words(test: FieldTest) -> str:
    """Return what a field has to be, as it stands after the field's name."""
    if test.name == "plain":
        return f"text of up to {int(test.values[0]):,} characters, without links"
    found = ", ".join(test.values)
    if test.name in ("is", "only") and not test.values:
        found = "nothing"
    return f"{_WORDS.get(test.name, test.name)} {found}".rstrip()


def limits_in_words(rule: ActionRule) -> tuple[str, ...]:
    """Return to which calls of its actions *rule* is limited, besides its tests."""
    found = [f"effect {' or '.join(rule.effects)}"] if rule.effects else []
    if rule.agents:
        found.append(f"agent {' or '.join(rule.agents)}")
    if rule.contained is not None:
        found.append("contained sessions" if rule.contained else "sessions without a sandbox")
    return tuple(found)


def rule_in_words(rule: ActionRule) -> str:
    """Return what *rule* is about, in one line."""
    limits = limits_in_words(rule)
    text = ", ".join(rule.actions) + (f" ({', '.join(limits)})" if limits else "")
    parts = [f"{key} {in_words(test)}" for key, test in rule.where.items()]
    parts += [] if rule.grants else ["no grants"]
    return f"{text}: {'; '.join(parts)}" if parts else text


def to_toml(action: str, decision: Decision, tests: FieldTests) -> str:
    """Return a rule for calls of *action* as lines of `policy.toml`.

    `parse_policy` refuses them where a value is longer than a rule can hold.
    """
    lines = ["[[rule]]", f"actions = [{_quoted(action)}]", f'decision = "{decision}"']
    lines += ["", "[rule.where]"] if tests else []
    lines += [f"{_quoted(key)} = {_test(test)}" for key, test in tests]
    return "\n".join((*lines, ""))


def _test(test: FieldTest) -> str:
    if test.name in ("absent", "any"):
        return f'"{test.name}"'
    # A number that TOML's floats would round stays a text.
    exact = test.name in _NUMBERS and all(number_text(float(e)) == e for e in test.values)
    values = list(test.values) if exact else [_quoted(each) for each in test.values]
    is_one = len(values) == 1 and test.name != "only"
    written = values[0] if is_one else f"[{', '.join(values)}]"
    return f"{{ {test.name} = {written} }}"


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
