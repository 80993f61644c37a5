"""What a person accepts: the content of a file, and how it differs from what was accepted before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

ChangeKind = Literal[
    "asks_no_more",
    "setting",
    "rule_opens",
    "rule_allows",
    "secret_except",
    "rule_denies",
    "rule_asks",
    "ops",
    "hosts",
    "effect",
    "declared_read",
    "connectors",
    "program",
    "tools",
    "files_write",
    "files_read",
    "secrets",
    "environment",
    "credential",
    "credential_part",
    "scopes",
    "imports",
    "no_grants",
    "reach",
    "preview",
    "preview_op",
    "preview_args",
    "shown_fields",
    "shown_from",
    "before_after",
    "idempotent",
    "arguments",
    "argument_optional",
    "argument_type",
    "wall_seconds",
    "memory_mib",
    "project_args",
    "project_env",
    "project_settings",
    "step_inputs",
    "steps",
    "connector_bytes",
    "version",
    "default_idempotency",
    "module",
    "text",
]
"""What differs; the most dangerous first."""

ONE_SIDED: Final = frozenset[ChangeKind](
    {
        *("tools", "files_write", "files_read", "secrets"),
        *("ops", "hosts", "connectors", "scopes", "imports", "arguments", "secret_except"),
        *("project_args", "project_env", "project_settings"),
        *("rule_opens", "rule_allows", "rule_asks", "rule_denies"),
    }
)
"""Kinds of which one thing is new, or gone: `name` is empty, and `after` or `before` is that thing."""

ChangeDirection = Literal["wider", "other", "narrower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceChangeView:
    """One difference between a file and what was accepted before it, as Aileron reads both."""

    kind: ChangeKind
    direction: ChangeDirection
    name: str = ""
    """What it is about, such as a host, an op or an argument: foreign text."""
    before: str = ""
    """Foreign text; empty where something is new."""
    after: str = ""
    """Foreign text; empty where something is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedBeforeView:
    """What a person accepted in place of a file that has changed since."""

    name: str
    """The file's name, or a connector's name and version."""
    digest: str
    accepted_at: float
    """Epoch seconds."""
    text: str | None
    """None: it was not kept, or its copy is damaged."""
    changes: tuple[AcceptanceChangeView, ...] = ()
    """The most dangerous first; empty where `text` is None."""

    @property
    def wider(self) -> tuple[AcceptanceChangeView, ...]:
        """What it allows that the accepted one does not."""
        return tuple(each for each in self.changes if each.direction == "wider")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContentView:
    """The whole content of a file, and what was accepted before it."""

    text: str
    """Of an action file all of it, of a connector its manifest: foreign text."""
    module: str = ""
    """Size and hash of a connector's module, our own sentence; empty for others."""
    server: "ServerView | None" = None
    """What an MCP server is, whose text goes on with each of its tools; None for others."""
    before: AcceptedBeforeView | None = None
    """None: nothing was accepted under its name, or exactly these bytes are."""
    allows: tuple[AcceptanceChangeView, ...] = ()
    """Of rules that nobody accepted before: what each allows."""
    is_kept: bool = False
    """It is what was accepted, which counts; its file has other bytes now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """What a person is asked to accept of an MCP server, beside its hosts and its account."""

    program: str
    """What is executed, as a command line with the package, or the URL of a remote one: foreign text."""
    is_remote: bool
    files_read: tuple[str, ...]
    files_write: tuple[str, ...]
    secrets: tuple[str, ...]
    """The names of the values that it is given."""
    is_rehearsed: bool
    tools: Mapping[str, tuple[str, ...]]
    """The names of its tools by their word, `run`, `ask`, `look` or `off`: foreign text."""
