"""A session: one launched agent, its tokens, where it works."""

from dataclasses import dataclass

from aileron_core.console_port.session_terms import NO_TERMS, ProcessView, SessionTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What is known of a session. Agent, label and cwd are claims; pid and executable are the kernel's."""

    session_id: str
    agent: str
    label: str
    cwd: str
    pid: int | None
    executable: str
    opened_by: str
    """`relay` (it opened itself), `launch`, or `contained` (by the launcher, in its sandbox)."""
    token_hash: str
    gateway_hash: str
    opened_at: float
    expires_at: float
    ended_at: float | None = None
    held: bool = False
    """A hold stream was opened, so the session ends when it is lost."""
    last_record: int = 0
    process: ProcessView | None = None
    """Who opened it, as the kernel described it then; kept in the record of the opening, not in the row."""
    placeholder_hash: str = ""
    """Of what its agent sends in place of API keys of the vault; kept in that record too."""
    terms: SessionTerms = NO_TERMS
    """Kept in that record too, as is `containment`."""
    containment: str = ""
    """The line of its last record that says what contained it."""

    @property
    def self_opened(self) -> bool:
        """Whether no launcher vouches for what it claims about itself."""
        return self.opened_by == "relay"

    @property
    def claims_contained(self) -> bool:
        """Whether who opened it says that its agent is contained; `SessionRegistry.containment` knows more."""
        return self.opened_by == "contained"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSession:
    """A new session with its tokens, which exist in clear only here."""

    session: Session
    token: str
    gateway_token: str
    placeholder: str = ""
    """Empty where it may use no provider's key."""

    def __repr__(self) -> str:
        return f"OpenedSession({self.session.session_id}, tokens hidden)"
