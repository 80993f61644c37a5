"""A person's MCP server as a `Connector`: its ops are its tools, each used by the word that the person gave it."""

import asyncio
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Unpack

from aileron_core.canonical import JsonObject
from aileron_core.connectors.manifest import ManifestConnector
from aileron_core.connectors.protocol import CallOptions, Limits, OpResult
from aileron_core.connectors.servers.call import ServerCall
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.process import ServerKey, ServerProcesses
from aileron_core.connectors.servers.started import Mode
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.connectors.stop_request import StopRequest, StopRequested, stopped_by_person
from aileron_core.errors import (
    AileronError,
    BindingRequired,
    CapabilityDenied,
    ResourceLimitExceeded,
    Unavailable,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerConnector(ManifestConnector):
    """One accepted server; any number of calls may run at a time, in one process or two.

    Args:
        definitions: its tools, as they were accepted.
        check: called on the server's thread before its start and each call; raises `HashMismatch` if what was accepted is
            not in the store any more.
    """

    definitions: tuple[ToolDefinition, ...]
    servers: ServerProcesses
    check: Callable[[], None] = lambda: None
    prepared = True

    @property
    def table(self) -> ServerTable:
        assert self.manifest.server is not None
        return self.manifest.server

    async def prepare(self, *, background: bool = False) -> None:
        pass  # it is started at its first call

    async def call(self, op: str, args: JsonObject, **how: Unpack[CallOptions]) -> OpResult:
        """Call the tool *op* once; see `protocol.Connector.call`.

        A preview's output has `json` (what is structured, or a text that parses), `text`, and `data`, which
        is what is structured where the text says something else; that of any other call has `content` and
        `structuredContent`, as the server sent them. The wall-clock limit
        starts once the server can be called.
        """
        read_only = how.get("read_only", False)
        if (refusal := self._refusal(op, read_only=read_only)) is not None:
            return OpResult(failure=refusal.to_failure())
        stop = how.get("stop") or StopRequest()
        call = ServerCall(
            server=self._name,
            tool=op,
            args=args,
            is_gated=self.table.word(op) == "ask",
            is_look=read_only,
            credential=how.get("credential"),
            on_request=how.get("on_request"),
        )
        try:
            return await self._made(call, self._key(call), how["limits"], stop)
        except StopRequested:
            return OpResult(failure=stopped_by_person().to_failure())
        except AileronError as error:
            return OpResult(failure=error.to_failure())

    @property
    def _name(self) -> str:
        return self.identity.fqn.rpartition("/")[2]

    def _refusal(self, op: str, *, read_only: bool) -> CapabilityDenied | None:
        word = self.table.word(op)
        if word in (("run", "look") if read_only else ("run", "ask")):
            return None
        use = "a preview may not use it" if read_only else "no agent may call it"
        return CapabilityDenied(
            f"The tool {op} of the MCP server {self._name} has the word {word}: {use}. Nothing was sent.",
            details={"requested": op, "word": word},
        )

    def _key(self, call: ServerCall) -> ServerKey:
        credential = call.credential
        secrets: Mapping[str, str] = {} if credential is None else credential.environment()
        if missing := [each for each in self.table.secrets if each not in secrets]:
            raise BindingRequired(
                f"The MCP server {self._name} needs an account with {', '.join(missing)}. Nothing was sent."
            )
        mode: Mode = "write" if call.is_gated and self.table.has_files else "read"
        if credential is not None and self.table.url:  # another key, another session
            secrets = {str(n): each.decode() for n, each in enumerate(credential.secrets())}
        return ServerKey(identity=self.identity, mode=mode, secrets=secrets, credential=credential)

    async def _made(
        self, call: ServerCall, key: ServerKey, limits: Limits, stop: StopRequest
    ) -> OpResult:
        for _ in range(2):  # it may end between the two steps
            process = self.servers.process(key, self.table, self.definitions, self.check)
            if not process.ready.done():
                await _until(process.ready, stop)
            if (error := process.ready.result()) is not None:
                raise error
            if process.submit(call):
                break
        else:
            raise Unavailable(f"The MCP server {self._name} ended at once. Nothing was sent.")
        try:
            await _until(call.done, stop, limits.wall_seconds)
        except StopRequested:
            return process.give_up(call, stopped_by_person(), is_hung=False)
        except asyncio.CancelledError:
            process.give_up(call, Unavailable("The call was cancelled."), is_hung=False)
            raise
        if not call.done.done():
            configured = f"{limits.wall_seconds:g}s"
            late = ResourceLimitExceeded(
                f"The MCP server {self._name} did not answer {call.tool} within {configured}.",
                details={"limit": "wall_time", "configured": configured},
            )
            return process.give_up(call, late, is_hung=True)
        return call.done.result()


async def _until(done: "Future[Any]", stop: StopRequest, seconds: float = math.inf) -> None:
    """Wait for *done*, which another thread ends, but for no longer than so many seconds.

    Raises:
        StopRequested: a person stopped the run first.
    """
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wake(_: "Future[Any]") -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(over.set)

    done.add_done_callback(wake)
    timer = loop.call_later(seconds, over.set)
    try:
        with stop.stopping(over.set):
            await over.wait()
    finally:
        timer.cancel()
    if stop.is_made and not done.done():
        raise StopRequested
