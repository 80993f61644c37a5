"""Which hosts the sandboxes of sessions were refused, and which a person allowed them."""

import asyncio
from dataclasses import dataclass, field

from aileron_core.console_port.view_models import RefusedHost

MAX_REFUSED = 64
"""Hosts of one session that are kept; more are counted."""


@dataclass(slots=True)
class _Hosts:
    refused: dict[str, str] = field(default_factory=dict[str, str])
    allowed: list[str] = field(default_factory=list[str])
    further: int = 0


class SessionHosts:
    """The hosts of open sessions, in memory; the audit has them too.

    What a host is called is the agent's: hostile text.
    """

    def __init__(self) -> None:
        self._by_session: dict[str, _Hosts] = {}
        self._changed = asyncio.Event()

    def refuse(self, session_id: str, host: str, problem: str) -> bool:
        """Note a refused host; return whether it is new and kept.

        Args:
            host: `name:port`.
            problem: why it cannot be allowed, as a clause; empty where it is merely not listed.
        """
        hosts = self._by_session.setdefault(session_id, _Hosts())
        if hosts.refused.get(host) == problem or (host in hosts.allowed and not problem):
            return False
        if host not in hosts.refused and len(hosts.refused) >= MAX_REFUSED:
            hosts.further += 1
            return False
        hosts.refused[host] = problem
        return True

    def forget_refusal(self, session_id: str, host: str) -> None:
        """Take back what `refuse` noted."""
        if (hosts := self._by_session.get(session_id)) is not None:
            hosts.refused.pop(host, None)

    def allow(self, session_id: str, host: str) -> None:
        """Note that a person allows *host*, and wake those that wait for a change."""
        hosts = self._by_session.setdefault(session_id, _Hosts())
        hosts.refused.pop(host, None)
        if host not in hosts.allowed:
            hosts.allowed.append(host)
        self._changed.set()
        self._changed = asyncio.Event()

    def remove(self, session_id: str) -> None:
        self._by_session.pop(session_id, None)

    def can_be_allowed(self, session_id: str, host: str) -> bool:
        """Return whether *host* was refused only because it is not listed."""
        return self._by_session.get(session_id, _Hosts()).refused.get(host) == ""

    def refused(self, session_id: str) -> tuple[RefusedHost, ...]:
        """Return the refused hosts in the order in which they were refused first."""
        refused = self._by_session.get(session_id, _Hosts()).refused
        return tuple(RefusedHost(host, problem) for host, problem in refused.items())

    def allowed(self, session_id: str) -> tuple[str, ...]:
        return tuple(self._by_session.get(session_id, _Hosts()).allowed)

    def further(self, session_id: str) -> int:
        """Return how often a host was refused that is not among the kept ones."""
        return self._by_session.get(session_id, _Hosts()).further

    @property
    def changed(self) -> asyncio.Event:
        """Set once another host is allowed, to any session."""
        return self._changed
