"""The addresses of listed names: resolved outside the sandbox, checked, and kept for a while."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from aileron_core.connectors.http.addresses import AddressGuard, Resolver
from aileron_core.launch.network.host_list import HTTPS_PORT, HostList

_RESOLVE_SECONDS = 10.0
_FRESH_SECONDS, _FAILED_SECONDS = 30.0, 2.0
"""How long a name is not resolved again: clients ask for both kinds of addresses at once."""


@dataclass(frozen=True, slots=True)
class ResolvedHost:
    """What became of one name."""

    addresses: tuple[str, ...]
    """None where the name could not be resolved."""
    problem: str
    """Why it is not reached, as a clause; empty where it is."""
    until: float
    """When it is resolved again, in monotonic seconds."""


class HostResolver:
    """Resolves listed names; belongs to one event loop."""

    def __init__(self, hosts: HostList, resolver: Resolver, guard: AddressGuard) -> None:
        self._hosts = hosts
        self._resolver = resolver
        self._guard = guard
        self._resolved: dict[str, ResolvedHost] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def resolve(self, name: str) -> ResolvedHost:
        """Return the addresses of *name*, which are all allowed, or why it is not reached."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            known = self._resolved.get(name)
            if known is not None and time.monotonic() < known.until:
                return known
            found = self._resolved[name] = await self._ask(name)
            return found

    async def _ask(self, name: str) -> ResolvedHost:
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                addresses = await _in_thread(lambda: self._resolver.resolve(name, HTTPS_PORT))
        except (OSError, UnicodeError):  # TimeoutError is an OSError
            until = time.monotonic() + _FAILED_SECONDS
            return ResolvedHost((), "its name cannot be resolved", until)
        private = self._hosts.may_be_private(name)
        problems = [
            f"it leads to {each}, which {problem}"
            for each in addresses
            if (problem := self._guard.problem(each, is_listed=private)) is not None
        ]
        if not problems and all(":" in each for each in addresses):
            problems = ["it has no IPv4 address"]
        until = time.monotonic() + _FRESH_SECONDS
        return ResolvedHost(tuple(addresses), "".join(problems[:1]), until)


async def _in_thread(call: Callable[[], list[str]]) -> list[str]:
    """Return what *call* returns, on a thread that does not keep this program alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[str]] = loop.create_future()

    def settle(result: list[str] | None, error: Exception | None) -> None:
        if not done.done():
            if result is not None:
                done.set_result(result)
            else:
                done.set_exception(error or OSError())

    def run() -> None:
        result, failed = None, None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="network-resolver", daemon=True).start()
    return await done
