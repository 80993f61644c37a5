"""What a person accepts: the content of a file, and how it differs from what was accepted before."""

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
    before: AcceptedBeforeView | None = None
    """None: nothing was accepted under its name, or exactly these bytes are."""
    allows: tuple[AcceptanceChangeView, ...] = ()
    """Of rules that nobody accepted before: what each allows."""
    is_kept: bool = False
    """It is what was accepted, which counts; its file has other bytes now."""
