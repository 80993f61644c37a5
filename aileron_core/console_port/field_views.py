"""What is shown of a call's values: fields, previews, and how what was read again differs.

Text in these values is hostile unless a field says otherwise; `aileron_core.text` draws it.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

ValueShape: TypeAlias = Literal["text", "json", "lines"]
"""What a value is: a text (or a number, or a truth value), JSON, or a list with one item a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """One labelled value. `value` is raw text from outside; `missing` draws as n/a."""

    label: str
    value: str = ""
    missing: bool = False
    multiline: bool = False
    shape: ValueShape = "text"
    count: int = 1
    """How many values the action file's path led to; `value` has all of them, in the answer's order."""
    format: str = ""
    """What `value` is written in (`html`, `markdown`, `json`, `diff`, `addresses`); empty: as it is."""
    spellings: tuple[str, ...] = ()
    """The names that they stand under, where one is there several times or written otherwise."""
    name: str = ""
    """Of an argument as it is edited, which alone has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewView:
    """What Aileron fetched itself.

    `none`: the action declares no preview. `fetching`: asked at `since`, at most `limit_seconds`.
    `unavailable`: `reason` says why.
    """

    status: Literal["none", "fetching", "ready", "unavailable"]
    fields: tuple[FieldView, ...] = ()
    gist: str = ""
    """One line from the action file's template over the fetched fields; empty without one."""
    reason: str = ""
    host: str = ""
    """Who was asked (`a and b`; empty: nobody); while it is fetched, who can be (`one of 3 hosts`)."""
    accepted_reads: tuple[tuple[str, str], ...] = ()
    """What it was allowed to read by POST, and who accepted each (`person`, `--accept-installed`)."""
    updated_at: float = 0.0
    """Epoch seconds at which it was asked for (fetching) or answered (otherwise)."""
    limit_seconds: float = 5.0
    preparing: bool = False
    """While fetching: its connector is being compiled, and the service was not asked yet."""
    not_found: bool = False
    """Unavailable because the service has no such thing (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChangeView:
    """A shown field that differs. `None` is n/a or, where the preview went away, nothing."""

    label: str
    before: str | None
    after: str | None
    multiline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftView:
    """Two readings that differ, set once a recheck or refresh found a difference."""

    before_at: float
    after_at: float
    changed: tuple[FieldChangeView, ...]
    same_count: int
    other_paths: tuple[str, ...]
    """Paths outside the shown fields that differ, as dotted paths (a Bcc, say)."""
    other_count: int
    """How many such paths there are in all; `other_paths` holds the first 50."""
    words_before: tuple[str, str, str] | None
    unavailable: str = ""
    """Set where a preview was there before and is not now: the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBackDifference:
    """A shown field that does not hold what was approved."""

    approved: FieldView
    found: FieldView
    """What the service holds: its words."""
    from_agent: bool
    """`approved` is the agent's words; otherwise it was fetched before the run, and was to stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """What the service held after the run, compared with what was approved.

    `reading`: it is being asked. `unavailable`: `reason` says why.
    """

    status: Literal["reading", "held", "differs", "unavailable"]
    at: float
    """Epoch seconds at which it was answered; while it is being asked, at which that began."""
    reason: str = ""
    """Empty where only a record is left of it."""
    compared: int = 0
    """How many fields were compared."""
    differing: tuple[ReadBackDifference, ...] = ()
    """Empty where only a record is left of it."""
    labels: tuple[str, ...] = ()
    """Of the fields that differ."""
    seen: bool = False
    """A person saw how it differs."""

    @property
    def waits_to_be_seen(self) -> bool:
        """Whether it differs, and no person has seen how."""
        return self.status == "differs" and not self.seen


@dataclass(frozen=True, slots=True, kw_only=True)
class LookView:
    """What a person read at the service after a call whose outcome is unknown."""

    preview: PreviewView
    """`none` where only a record is left of it."""
    comparison: ReadBack | None = None
    """With what was approved; None where what was read cannot tell whether the call took effect."""
    is_unchanged: bool = False
    """Every shown field holds what it held before the run."""

    @property
    def at(self) -> float:
        """Epoch seconds at which it was answered."""
        return self.preview.updated_at
