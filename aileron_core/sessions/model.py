"""A session: one launched agent, its tokens, where it works."""

from dataclasses import dataclass

from aileron_core.console_port.process_views import ProcessView


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
    """Of what its agent sends in place of the API keys of `key_providers`; kept in that record too."""
    key_providers: tuple[str, ...] = ()
    """The providers whose keys in the vault its model requests may use."""
    network: str = ""
    """What its sandbox reaches, as its launcher reported: `all`, `hosts` or `offline`; kept in that record too."""
    hosts: tuple[str, ...] = ()
    """With `hosts`: which. Kept there too, as are `writes` and `containment`."""
    writes: tuple[str, ...] = ()
    """What it can write besides its project."""
    builtins: str = ""
    """Whether it has the built-in tools: `beside` its agent's own, or `instead` of them; kept there too."""
    plugin_tools: tuple[str, ...] = ()
    """The ops of connectors that it has as tools, as `<plugin>.<op>`; kept there too."""
    augment: bool = False
    """Whether its model gets Aileron's tools through the gateway; kept there too."""
    base_url: str = ""
    """Where all its model requests go in place of a provider's address; kept there too."""
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
