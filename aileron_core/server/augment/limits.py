"""How much one request of an agent may set off."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentLimits:
    """Each ends in an error in the provider's shape."""

    request_bytes: int = 32 * 1024 * 1024
    """Of the agent's own request; a longer one passes unread."""
    buffered_bytes: int = 128 * 1024 * 1024
    """Of the requests of all sessions that are being answered, and the answers; what goes beyond it is refused."""
    turns: int = 32
    """Requests to the model."""
    calls: int = 128
    """Calls of our tools."""
    bytes: int = 64 * 1024 * 1024
    """Of all answers of the model."""
    seconds: float = 3600.0
    keep_alive_seconds: float = 10.0
    """Between two signs of life to an agent whose stream waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """What is remembered of one session; beyond it the oldest is forgotten."""

    entries: int = 256
    bytes: int = 32 * 1024 * 1024
