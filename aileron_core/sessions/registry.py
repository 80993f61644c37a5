"""The sessions that are open now: who a token belongs to, when a session ends, how it was seen to be contained."""

import asyncio
import hmac
from collections.abc import Iterable
from dataclasses import replace

from aileron_core.clock import Clock
from aileron_core.console_port.session_terms import NO_TERMS, SessionTerms
from aileron_core.console_port.view_models import NO_HOSTS, HostsView, RefusedHost
from aileron_core.containment.detection import Containment, weaker_containment
from aileron_core.ids import new_placeholder, new_session_id, new_token, token_hash
from aileron_core.sessions.model import OpenedSession, Session

MAX_REFUSED = 64
"""Hosts of one session that are kept; more are counted."""
HOLD_GRACE_SECONDS = 5.0
"""Seconds after the loss of a hold stream until the session ends."""
RESTART_GRACE_SECONDS = 30.0
"""The same after a restart of the console."""


class SessionHosts:
    """The hosts of open sessions, in memory; the audit has them too.

    What a host is called is the agent's: hostile text.
    """

    def __init__(self) -> None:
        self._by_session: dict[str, HostsView] = {}
        self._changed = asyncio.Event()

    def of(self, session_id: str) -> HostsView:
        return self._by_session.get(session_id, NO_HOSTS)

    def refuse(self, session_id: str, host: str, problem: str) -> bool:
        """Note a refused host; return whether it is new and kept.

        Args:
            host: `name:port`.
            problem: why it cannot be allowed, as a clause; empty where it is merely not listed.
        """
        hosts, refusal = self.of(session_id), RefusedHost(host, problem)
        if refusal in hosts.refused or (host in hosts.allowed and not problem):
            return False
        refused = {each.host: each for each in hosts.refused}
        is_kept = host in refused or len(refused) < MAX_REFUSED
        if is_kept:
            hosts = replace(hosts, refused=tuple((refused | {host: refusal}).values()))
        else:
            hosts = replace(hosts, further=hosts.further + 1)
        self._by_session[session_id] = hosts
        return is_kept

    def forget_refusal(self, session_id: str, host: str) -> None:
        """Take back what `refuse` noted."""
        hosts = self.of(session_id)
        refused = tuple(each for each in hosts.refused if each.host != host)
        self._by_session[session_id] = replace(hosts, refused=refused)

    def allow(self, session_id: str, host: str) -> None:
        """Note that a person allows *host*, and wake those that wait for a change."""
        self.forget_refusal(session_id, host)
        hosts = self.of(session_id)
        if host not in hosts.allowed:
            self._by_session[session_id] = replace(hosts, allowed=(*hosts.allowed, host))
        self._changed.set()
        self._changed = asyncio.Event()

    def remove(self, session_id: str) -> None:
        self._by_session.pop(session_id, None)

    @property
    def changed(self) -> asyncio.Event:
        """Set once another host is allowed, to any session."""
        return self._changed


class SessionRegistry:
    """The open sessions, in memory; `SessionService` writes them to the database."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_id: dict[str, Session] = {}
        self._by_token: dict[str, str] = {}
        self._by_gateway: dict[str, str] = {}
        self._by_key_id: dict[str, str] = {}
        self._holds: dict[str, int] = {}
        self._lost_at: dict[str, float] = {}
        self._claims: dict[str, tuple[tuple[str, str], ...]] = {}
        self._containment: dict[str, Containment] = {}
        self.hosts = SessionHosts()

    def load(self, sessions: Iterable[Session]) -> None:
        """Take sessions over from an earlier process of the console; a held one has `RESTART_GRACE_SECONDS` to come back."""
        for session in sessions:
            self.add(session)
            if session.held:
                back_by = self._clock.monotonic() + RESTART_GRACE_SECONDS
                self._lost_at[session.session_id] = back_by - HOLD_GRACE_SECONDS

    def draft(
        self,
        *,
        agent: str,
        label: str,
        cwd: str,
        pid: int | None,
        executable: str,
        ttl: float,
        opened_by: str = "relay",
        terms: SessionTerms = NO_TERMS,
    ) -> OpenedSession:
        """Return a new session with fresh tokens, not yet registered."""
        now = self._clock.now()
        token, gateway = new_token(), new_token()
        placeholder = new_placeholder() if terms.key_providers else ""
        session = Session(
            session_id=new_session_id(now),
            agent=agent,
            label=label,
            cwd=cwd,
            pid=pid,
            executable=executable,
            opened_by=opened_by,
            token_hash=token_hash(token),
            gateway_hash=token_hash(gateway),
            opened_at=now,
            expires_at=now + ttl,
            placeholder_hash=token_hash(placeholder) if placeholder else "",
            terms=terms,
        )
        return OpenedSession(
            session=session, token=token, gateway_token=gateway, placeholder=placeholder
        )

    def add(self, session: Session) -> None:
        """Put a session whose opening is durable into the registry."""
        self._by_id[session.session_id] = session
        self._by_token[session.token_hash] = session.session_id
        self._by_gateway[session.gateway_hash] = session.session_id
        self._by_key_id[_key_id(session)] = session.session_id

    def remove(self, session_id: str) -> None:
        """Take a session out; its tokens open nothing from now on."""
        session = self._by_id.pop(session_id, None)
        if session is not None:
            del self._by_token[session.token_hash]
            self._by_gateway.pop(session.gateway_hash, None)
            self._by_key_id.pop(_key_id(session), None)
        self._lost_at.pop(session_id, None)
        self._holds.pop(session_id, None)
        self._claims.pop(session_id, None)
        self._containment.pop(session_id, None)
        self.hosts.remove(session_id)

    def get(self, session_id: str) -> Session | None:
        return self._by_id.get(session_id)

    def authenticate(self, token: str) -> Session | None:
        offered = token_hash(token)
        session = self._by_id.get(self._by_token.get(offered, ""))
        # The look-up is over hashes of 256 random bits; the comparison is constant-time besides.
        if session is None or not hmac.compare_digest(session.token_hash, offered):
            return None
        return session if session.expires_at > self._clock.now() else None

    def authenticate_gateway(self, token: str) -> Session | None:
        """Return the session whose gateway token this is, if it is open; no other token counts."""
        offered = token_hash(token)
        session = self._by_id.get(self._by_gateway.get(offered, ""))
        if session is None or not hmac.compare_digest(session.gateway_hash, offered):
            return None
        return session if session.expires_at > self._clock.now() else None

    def by_key_id(self, key_id: str) -> Session | None:
        """Return the session whose token's hash has this short name, for the address proof."""
        return self._by_id.get(self._by_key_id.get(key_id, ""))

    def all(self) -> tuple[Session, ...]:
        return tuple(self._by_id.values())

    def is_connected(self, session_id: str) -> bool:
        return self._holds.get(session_id, 0) > 0

    def set_claims(self, session_id: str, claims: tuple[tuple[str, str], ...]) -> bool:
        """Set what the session's client claims about itself; return whether it changed."""
        if session_id not in self._by_id or self._claims.get(session_id, ()) == claims:
            return False
        self._claims[session_id] = claims
        return True

    def claims(self, session_id: str) -> tuple[tuple[str, str], ...]:
        """Return what the session's client said of itself last, as (our label, its text)."""
        return self._claims.get(session_id, ())

    def observe_containment(self, session_id: str, containment: Containment) -> bool:
        """Note how one connection of the session was seen to be contained; return whether it changed.

        What was seen least contained counts, for as long as the session is open.
        """
        before = self._containment.get(session_id)
        after = containment if before is None else weaker_containment(before, containment)
        if session_id not in self._by_id or before == after:
            return False
        self._containment[session_id] = after
        return True

    def containment(self, session: Session) -> Containment:
        """Return how a session's agent is contained, as far as that is known."""
        return (
            self._containment.get(session.session_id, "claimed")
            if session.claims_contained
            else "none"
        )

    def hold(self, session_id: str) -> None:
        self._holds[session_id] = self._holds.get(session_id, 0) + 1
        self._lost_at.pop(session_id, None)

    def release(self, session_id: str) -> None:
        """Note that a hold stream was lost; the session ends `HOLD_GRACE_SECONDS` later unless one comes back."""
        if session_id not in self._by_id:
            return
        left = self._holds.get(session_id, 0) - 1
        self._holds[session_id] = max(left, 0)
        if left <= 0:
            self._lost_at[session_id] = self._clock.monotonic()

    def wait_longer(self, session_id: str) -> None:
        """Give a session whose hold stream is lost its time to reconnect once more."""
        if session_id in self._lost_at:
            self._lost_at[session_id] = self._clock.monotonic()

    def overdue(self) -> tuple[tuple[Session, str], ...]:
        """Return the sessions that are to be ended now, each with the reason."""
        now, tick = self._clock.now(), self._clock.monotonic()
        ended: list[tuple[Session, str]] = []
        for session in self._by_id.values():
            lost = self._lost_at.get(session.session_id)
            if session.expires_at <= now:
                ended.append((session, "it expired"))
            elif lost is not None and tick - lost >= HOLD_GRACE_SECONDS:
                ended.append((session, "its agent disconnected"))
        return tuple(ended)


def _key_id(session: Session) -> str:
    # Anybody may ask with any name, so it has to be found without going through all sessions.
    return token_hash(session.token_hash)[:16]
