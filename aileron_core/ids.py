"""Identifiers, tokens, and the hash that is kept of a token. Their forms are promised: `docs/wire.md#ids`."""

import hashlib
import re
import secrets
from datetime import UTC, datetime

APPROVAL_ID = re.compile(r"act-\d{8}T\d{6}-[0-9a-f]{16}")
RUN_ID = re.compile(r"run-[0-9a-hjkmnp-tv-z]{26}")
SESSION_ID = re.compile(r"ses-[0-9a-hjkmnp-tv-z]{26}")

PLACEHOLDER_END = "-aileron-placeholder"
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def _ordered(now: float) -> str:
    """26 base-32 characters: 48 bits of milliseconds, then 80 random bits, so text order is time order."""
    return _base32((int(now * 1000) << 80) | secrets.randbits(80))


def _base32(number: int) -> str:
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def new_run_id(now: float) -> str:
    """Return `run-<26 base32, time ordered>`, a run's audit id."""
    return "run-" + _ordered(now)


def first_run_id(at: float) -> str:
    """Return what every run id of *at*, in epoch seconds, or later is equal to or greater than."""
    number = min(max(int(at * 1000), 0), 2**48 - 1) << 80
    return "run-" + _base32(number)


def new_session_id(now: float) -> str:
    return "ses-" + _ordered(now)


def new_approval_id(now: float) -> str:
    """Return `act-<yyyymmddThhmmss>-<16 hex>`."""
    return f"act-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(8)}"


def new_exchange_id() -> str:
    """Return what tells one request of an agent in augment mode from every other; its calls' keys begin with it."""
    return "augment-" + secrets.token_hex(16)


def new_token() -> str:
    """Return 256 random bits as URL-safe text."""
    return secrets.token_urlsafe(32)


def new_placeholder() -> str:
    """Return 256 random bits that stand for a provider's API key, as an agent holds it.

    Its end is always the same: Claude Code remembers by the last 20 characters which keys it may use.
    """
    return new_token() + PLACEHOLDER_END


def is_placeholder(key: str) -> bool:
    """Return whether *key* looks like a placeholder of some session."""
    return key.endswith(PLACEHOLDER_END)


def token_hash(token: str) -> str:
    """Return what is kept of a token: its SHA-256."""
    return hashlib.sha256(token.encode()).hexdigest()
