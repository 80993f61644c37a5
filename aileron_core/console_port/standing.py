"""Rules and grants as a person sees them: what may answer a call in their place, and what it answered."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from aileron_core.console_port.field_views import FieldView

TestName: TypeAlias = Literal[
    "is", "only", "within", "like", "at_most", "at_least", "plain", "absent", "any"
]
TEST_NAMES: Final[tuple[TestName, ...]] = get_args(TestName)
GrantScope: TypeAlias = Literal["session", "project"]
MAX_GRANT_SECONDS: Final = 86_400
MAX_GRANT_USES: Final = 100


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One test of one field of a call."""

    name: TestName
    values: tuple[str, ...] = ()
    """What it compares with: of `plain` the number of characters, of `absent` and `any` nothing."""


FieldTests: TypeAlias = tuple[tuple[str, FieldTest], ...]
"""By `args.NAME` and `fetched.LABEL`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTerms:
    """What a person chose of a grant beside an answer."""

    decision: Literal["allow", "deny"] = "allow"
    number: int = 0
    """As `GrantOffer.number`; 0 for a denial."""
    tests: FieldTests
    seconds: float
    uses: int
    scope: GrantScope = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedField:
    """A declared input or fetched field of a waiting call, with the tests that a grant may put to it."""

    key: str
    """`args.NAME` or `fetched.LABEL`."""
    field: FieldView
    """As it stands; `missing` where it is not there."""
    tests: tuple[FieldTest, ...]
    """Each that this call passes, narrowest first."""
    is_reach: bool = False
    """The action file says that it tells what the call reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantOffer:
    """A shape that a person may choose."""

    number: Literal[1, 2, 3]
    """1: this very call. 2: other text. 3: what it reaches stays."""
    tests: tuple[FieldTest, ...]
    """One for each offered field, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffersView:
    """What a person may grant beside a yes to one waiting call."""

    approval_id: str
    fields: tuple[OfferedField, ...] = ()
    offers: tuple[GrantOffer, ...] = ()
    """Narrowest first; empty where none may be made."""
    why_none: str = ""
    """Why none may be made, as a sentence."""
    uses: int = 20
    seconds: int = 3600
    can_span_sessions: bool = False
    """It may also hold for this project and agent, beyond the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call that a person answered, and that a shape would have answered."""

    run_id: str
    at: float
    """Epoch seconds at which it was answered."""
    approved: bool
    what: str
    """What it was about: hostile text."""
    reason: str = ""
    """What the person wrote on denying it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedShape:
    """What a shape would do."""

    misfits: tuple[str, ...]
    """Fields of this very call that keep it from being made."""
    cautions: tuple[str, ...]
    """What it lets through, as sentences of our own."""
    looked_at: int = 0
    """How many answers of the past were looked at."""
    matching: tuple[PastCall, ...] = ()
    """Those of them that it would have answered, denied ones first."""
    unread: int = 0
    """How many answers could not be read, since what was shown is sealed or was not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantView:
    """A standing answer that a person gave."""

    grant_id: str
    decision: Literal["allow", "deny"]
    action: str
    number: int
    """Of its shape, as `GrantOffer.number`; 0 for a denial."""
    tests: FieldTests
    scope: GrantScope
    session_id: str
    made_at: float
    ends_at: float
    """Epoch seconds."""
    uses: int
    used: int
    last_used: float | None = None
    calls: tuple[str, ...] = ()
    """The runs that it answered, oldest first."""
    rests: str = ""
    """Why it answers nothing until a person has looked, as a clause; empty while it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A rule of `policy.toml` for actions."""

    source: str
    """`policy.toml:12`."""
    decision: Literal["allow", "ask", "deny"]
    actions: tuple[str, ...]
    limits: tuple[str, ...] = ()
    """To which calls of theirs it is limited besides its tests, in words."""
    tests: FieldTests = ()
    is_open: bool = False
    """What it does not name may be anything."""
    grants: bool = True
    used: int = 0
    last_used: float | None = None
    counts: bool = True
    """False: it allows, and the file is not accepted."""
