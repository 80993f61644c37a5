"""A session: one launched agent, its tokens, where it works."""

from dataclasses import dataclass

__all__ = ["OpenedSession", "Session"]


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
    """`relay` (it opened itself) or `launch`."""
    token_hash: str
    gateway_hash: str
    opened_at: float
    expires_at: float
    ended_at: float | None = None
    held: bool = False
    """A hold stream was opened, so the session ends when it is lost."""
    last_record: int = 0

    @property
    def self_opened(self) -> bool:
        """Whether no launcher vouches for what it says of itself."""
        return self.opened_by != "launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSession:
    """A new session with its tokens, which exist in clear only here."""

    session: Session
    token: str
    gateway_token: str

    def __repr__(self) -> str:
        return f"OpenedSession({self.session.session_id}, tokens hidden)"
