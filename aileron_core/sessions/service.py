"""Opening, holding and ending sessions: durable, on record, and published to front ends."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import Clock, rfc3339
from aileron_core.console_port.session_terms import NO_TERMS, ProcessView, SessionTerms
from aileron_core.console_port.view_models import RefusedHost
from aileron_core.containment.detection import Containment
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import AileronError, Conflict
from aileron_core.ids import token_hash
from aileron_core.sessions import session_table
from aileron_core.sessions.containment_line import containment_line
from aileron_core.sessions.model import OpenedSession, Session
from aileron_core.sessions.processes import is_ancestor, is_stopped, read_process
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.storage.database import Database, Tx


class SessionService:
    """Opens, holds and ends sessions.

    Args:
        containment_changed: called with the id of a session once a connection shows that its containment differs.
    """

    def __init__(
        self,
        *,
        registry: SessionRegistry,
        database: Database,
        clock: Clock,
        changed: Callable[[], None],
        ended: Callable[[str], None],
        containment_changed: Callable[[str], None],
    ) -> None:
        self.registry = registry
        self._database = database
        self._clock = clock
        self._changed = changed
        self._ended = ended
        self._containment_changed = containment_changed

    async def load(self) -> dict[str, Session]:
        """Take over the sessions of the last process; return every session ever opened, by id."""
        now = self._clock.now()
        still_open = await self._database.read(lambda c: session_table.open_sessions(c, now))
        self.registry.load(still_open)
        for session_id in await self._database.read(
            lambda c: session_table.seen_uncontained(c, still_open)
        ):
            self.registry.observe_containment(session_id, "none")
        for event, session_id, host, problem in await self._database.read(
            lambda c: session_table.host_records(c, still_open)
        ):
            if event == AuditEvent.SESSION_HOST_ALLOWED:
                self.registry.hosts.allow(session_id, host)
            else:
                self.registry.hosts.refuse(session_id, host, problem)
        stored = await self._database.read(session_table.all_sessions)
        known = {session.session_id: session for session in stored}
        return known | {session.session_id: session for session in self.registry.all()}

    async def sweep(self) -> None:
        """End the sessions whose time or whose agent is gone. Called every half second.

        A launcher that was stopped (Ctrl-Z) cannot reconnect to a console that restarted meanwhile,
        so its session waits.
        """
        for session, why in self.registry.overdue():
            in_time = session.expires_at > self._clock.now()
            if in_time and session.process is not None and is_stopped(session.process):
                self.registry.wait_longer(session.session_id)
                continue
            await self.end(session.session_id, why)

    async def open(
        self,
        *,
        agent: str,
        label: str,
        cwd: str,
        claimed_pid: int | None,
        peer_pid: int,
        ttl: float,
        opened_by: Literal["relay", "launch", "contained"] = "relay",
        terms: SessionTerms = NO_TERMS,
    ) -> OpenedSession:
        """Open a session for the process at the other end of the home's socket.

        A pid that it claims counts only if that is the process itself or one of its parents.
        """
        pid = claimed_pid if claimed_pid and is_ancestor(claimed_pid, peer_pid) else peer_pid
        process = read_process(pid)
        draft = self.registry.draft(
            agent=agent,
            label=label,
            cwd=cwd,
            pid=pid,
            executable=process.executable if process else "",
            ttl=ttl,
            opened_by=opened_by,
            terms=terms,
        )

        def unit(tx: Tx) -> Session:
            session = replace(draft.session, last_record=tx.next_seq(), process=process)
            session_table.insert(tx, session)
            extra = {"token_hash": session.token_hash, "gateway_hash": session.gateway_hash}
            extra |= {"pid": pid, "opened_by": session.opened_by}
            if terms.key_providers:
                extra |= {"placeholder_hash": session.placeholder_hash}
            extra |= self._containment_entry(session) | _process_entry(process)
            record = _record(self._clock, AuditEvent.SESSION_OPENED, "A session was opened", extra)
            tx.record(replace(record, session=session.session_id))
            return session

        session = await self._database.write(unit)
        self.registry.add(session)
        self._changed()
        return replace(draft, session=session)

    async def end(
        self, session_id: str, why: str, *, by: Actor = "aileron", hand: Hand = CONSOLE
    ) -> bool:
        """End a session; the second time nothing happens. Its open approvals stay, marked.

        Returns:
            Whether it was open.

        Raises:
            StorageUnavailable: it could not be written, and so goes on: else it would live again
                after a restart.
        """
        session = self.registry.get(session_id)
        if session is None:
            return False

        def unit(tx: Tx) -> None:
            session_table.end(tx, session_id, self._clock.now())
            extra = self._containment_entry(session) | _process_entry(session.process)
            extra |= hand.mark()
            record = _record(
                self._clock, AuditEvent.SESSION_ENDED, f"A session ended: {why}", extra
            )
            tx.record(replace(record, session=session_id, by=by))

        await self._database.write(unit)
        if self.registry.get(session_id) is None:
            return False  # another caller ended it first
        self.registry.remove(session_id)
        self._changed()
        self._ended(session_id)
        return True

    def _containment_entry(self, session: Session) -> dict[str, Any]:
        """Return what a record keeps of the session's containment: a line for people, and what it is made from."""
        seen = self.registry.containment(session)
        return {"containment": containment_line(session, seen)} | session.terms.to_json()

    def set_claims(self, session_id: str, claims: tuple[tuple[str, str], ...]) -> None:
        """Keep what the session's client claims about itself, as (our label, its text); in memory only."""
        if self.registry.set_claims(session_id, claims):
            self._changed()

    async def observe_containment(self, session_id: str, containment: Containment) -> None:
        """Note how a process that connected as this session is contained; if it is not, that is recorded.

        The record outlives the console, so a restart does not forget what was seen once.
        """
        if not self.registry.observe_containment(session_id, containment):
            return
        self._changed()
        self._containment_changed(session_id)
        if containment != "none":
            return

        def unit(tx: Tx) -> None:
            summary = "A session reported as contained was seen outside any sandbox"
            record = _record(self._clock, AuditEvent.SESSION_SEEN_OUTSIDE, summary, {})
            tx.record(replace(record, session=session_id))

        with suppress(AileronError):  # then only the screen shows it
            await self._database.write(unit)

    async def note_refused_host(self, session_id: str, host: str, problem: str) -> None:
        """Note that the session's sandbox refused its agent a host; each is recorded once, up to a limit.

        Args:
            host: `name:port`, as the agent named it.
            problem: why a person cannot allow it, as a clause; empty where it is merely not listed.
        """
        if self.registry.get(session_id) is None:
            return
        if self.registry.hosts.refuse(session_id, host, problem):
            extra = {"host": host, "problem": problem}
            try:
                await self.record(
                    AuditEvent.SESSION_HOST_REFUSED, "The sandbox refused a host", session_id, extra
                )
            except AileronError:
                self.registry.hosts.forget_refusal(session_id, host)  # it is reported again
                raise
        self._changed()

    async def allow_host(self, session_id: str, host: str) -> None:
        """Have a person allow a refused host to a session until it ends. It is on record before it counts.

        Raises:
            Conflict: the session has ended, or the host was not refused to it, or cannot be allowed.
            StorageUnavailable: it could not be recorded; nothing is allowed.
        """
        # One with a problem cannot be allowed.
        asked = RefusedHost(host) in self.registry.hosts.of(session_id).refused
        if self.registry.get(session_id) is None or not asked:
            raise Conflict("This host is not one that the session asks for. Nothing was allowed.")
        summary = "A host was allowed to the session until it ends"
        await self.record(AuditEvent.SESSION_HOST_ALLOWED, summary, session_id, {"host": host})
        if self.registry.get(session_id) is not None:
            self.registry.hosts.allow(session_id, host)
            self._changed()

    async def record(
        self, event: AuditEvent, summary: str, session_id: str, extra: dict[str, Any]
    ) -> None:
        """Put something that happened in a session on record.

        Raises:
            StorageUnavailable: it could not be written.
        """
        record = replace(_record(self._clock, event, summary, extra), session=session_id)
        await self._database.write(lambda tx: tx.record(record))

    async def has_ended(self, session_id: str, token: str) -> bool:
        """Return whether *token* was this session's own and the session has ended."""
        offered = token_hash(token)
        return await self._database.read(lambda c: session_table.has_ended(c, session_id, offered))

    async def hold(self, session_id: str) -> None:
        """Note that the session's hold stream is open; the first time, durably, so that the next process knows."""
        session = self.registry.get(session_id)
        self.registry.hold(session_id)
        self._changed()
        if session is not None and not session.held:
            self.registry.add(replace(session, held=True))
            await self._note_hold(session_id)

    async def _note_hold(self, session_id: str) -> None:
        def unit(tx: Tx) -> None:
            session_table.mark_held(tx, session_id)
            record = _record(self._clock, AuditEvent.SESSION_HELD, "A session is held open", {})
            tx.record(replace(record, session=session_id))

        with suppress(AileronError):  # then it ends with its time, not with its agent
            await self._database.write(unit)

    def release(self, session_id: str, *, draining: bool) -> None:
        """Note that the session's hold stream was lost, by its agent unless the console stops."""
        if not draining:
            self.registry.release(session_id)
            self._changed()


def _record(clock: Clock, event: AuditEvent, summary: str, extra: dict[str, Any]) -> AuditRecord:
    return AuditRecord(at=rfc3339(clock.now()), event=event, summary=summary, extra=extra)


def _process_entry(process: ProcessView | None) -> dict[str, Any]:
    """Return what a record keeps of *process*: with it the opener outlives a restart."""
    return {"process": process.to_json()} if process else {}


def unknown_session(session_id: str) -> Session:
    """Return a placeholder for a session that the database does not have."""
    return Session(
        session_id=session_id,
        agent="unknown",
        label="",
        cwd="",
        pid=None,
        executable="",
        opened_by="relay",
        token_hash="",
        gateway_hash="",
        opened_at=0.0,
        expires_at=0.0,
    )
