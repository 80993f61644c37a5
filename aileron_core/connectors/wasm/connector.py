"""A WASM connector as a `Connector`: from the event loop into a worker thread and back."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, Unpack

from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.manifest import ManifestConnector
from aileron_core.connectors.protocol import CallOptions, OpResult
from aileron_core.connectors.stop_request import StopRequest, StopRequested, stopped_by_person
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.connectors.wasm.guest_result import build_result, guest_result
from aileron_core.connectors.wasm.invocation import GuestExit, Invocation
from aileron_core.errors import AileronError, HashMismatch, NotFound

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WasmConnector(ManifestConnector):
    """One installed connector; any number of calls may run at a time, isolated from one another."""

    store: ConnectorStore
    engine: WasmEngine

    async def call(self, op: str, args: JsonObject, **how: Unpack[CallOptions]) -> OpResult:
        """Run *op* once; see `protocol.Connector.call`.

        The wall-clock limit starts with the call; compiling a module for the first time does not
        count.
        """
        clock = self.engine.clock
        began, limits = clock.monotonic(), how["limits"]
        invocation = Invocation(
            manifest=self.manifest,
            op=op,
            hosts=self.hosts_for(args),
            limits=limits,
            read_only=how.get("read_only", False),
            accepted_reads=how.get("accepted_reads", ()),
            credential=how.get("credential"),
            on_request=how.get("on_request"),
            clock=clock,
            slots=self.engine.slots,
            ticker=self.engine.ticker,
            deadline=began + limits.wall_seconds,
            secrets=lambda: _strings(args),
            stop_count_at_start=self.engine.stop_count,
        )
        stop = how.get("stop") or StopRequest()
        try:
            if stop.is_made or not self.prepared:
                await stop.interrupt(self._compiled())
                invocation.deadline += clock.monotonic() - began
            future = self.engine.submit(lambda: self._run(invocation, op, args))
        except HashMismatch:
            raise
        except StopRequested:
            return OpResult(failure=stopped_by_person().to_failure())
        except AileronError as error:
            return OpResult(failure=error.to_failure())
        cancel = partial(invocation.stop, "cancelled")
        try:
            # Its thread ends it, also out of a sleep or a request, and says what had been sent.
            with stop.stopping(partial(invocation.stop, "stopped")):
                return await _await_worker(future, cancel, begin_within=limits.wall_seconds)
        except _NotStarted:
            invocation.stop("wall")
            return guest_result(GuestExit(ending="not_started"), invocation)

    @property
    def prepared(self) -> bool:
        return self.engine.is_ready(self.identity.hash)

    async def prepare(self, *, background: bool = False) -> None:
        """Verify and compile it now; see `protocol.Connector.prepare`.

        Raises:
            HashMismatch: the bytes no longer match its identity.
            ConnectorRuntimeError: it is not a module that can run here.
        """
        await self._compiled(background=background)

    async def _compiled(self, *, background: bool = False) -> None:
        if self.prepared:
            return
        # Not in a thread of the pool: calls of other connectors need those.
        waiting = self.engine.prepare(
            self.identity.hash, self._module, check=self._check, background=background
        )
        await asyncio.wrap_future(waiting)

    def _module(self) -> bytes:
        return self.store.read(self.identity.hash)[0]

    def _check(self) -> None:
        """Verify the bytes in the store against the identity.

        Raises:
            HashMismatch: they differ, or are gone.
        """
        try:
            self.store.verify(self.identity.hash)
        except NotFound as error:
            raise HashMismatch(
                f"connector {self.identity.fqn} {self.identity.version} is no longer in the store; "
                "install it again",
                details={"expected": self.identity.hash, "computed": None},
            ) from error

    def _run(self, invocation: Invocation, op: str, args: JsonObject) -> OpResult:
        # Checked before every run, although what runs is in memory: a change on disk must not go unseen.
        self._check()
        try:
            pre = self.engine.prepare(self.identity.hash, self._module).result()
            with self.engine.guest_slot(invocation):
                end = self.engine.run(pre, invocation, _stdin(op, args))
                return guest_result(end, invocation)
        except AileronError as error:
            return build_result(invocation, failure=error.to_failure())


class _NotStarted(Exception):
    """No worker thread was free in time."""


async def _await_worker(
    future: Future[_T], stop: Callable[[], None], *, begin_within: float | None = None
) -> _T:
    """Wait for a worker. If cancelled, stop it and wait until it has ended before raising.

    Raises:
        _NeverBegun: no thread took the work within *begin_within* seconds, and none will.
    """
    waiter = asyncio.wrap_future(future)
    try:
        await asyncio.wait({waiter}, timeout=begin_within)
        if not waiter.done() and future.cancel():
            raise _NotStarted
        return await waiter
    except asyncio.CancelledError:
        if not future.cancel():
            stop()
            await _wait_until_done(asyncio.wrap_future(future))
        raise


async def _wait_until_done(waiter: asyncio.Future[_T]) -> None:
    """Wait until *waiter* is done, even if this wait is cancelled repeatedly."""
    while not waiter.done():
        try:
            await asyncio.wait({waiter})
        except asyncio.CancelledError:
            continue
    if not waiter.cancelled():
        waiter.exception()


def _stdin(op: str, args: JsonObject) -> bytes:
    """Return a guest's input, with text unescaped so that even a minimal JSON parser can read it."""
    given = {"op": op, "args": args}
    try:
        return json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(given).encode()


def _strings(value: Json) -> frozenset[str]:
    """Return all strings in the arguments: they must not appear in a log."""
    if isinstance(value, str):
        return frozenset({value})
    if isinstance(value, Mapping):
        return frozenset[str]().union(*(_strings(item) for item in value.values()))
    if isinstance(value, Sequence):
        return frozenset[str]().union(*(_strings(item) for item in value))
    return frozenset()
