"""A session as it was opened: by whom, and for what; one value from the launcher's request to its record and the screen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTerms:
    """What a session has and may reach, as its launcher reports it: nothing where an agent connected by itself."""

    key_providers: tuple[str, ...] = ()
    """The providers whose keys in the vault its model requests may use; in a request, those that it asks for."""
    network: str = ""
    """What its sandbox reaches: `all`, `hosts` or `offline`; empty where nothing contains it, or it is not known."""
    hosts: tuple[str, ...] = ()
    """With `hosts`: which, as `name:port`."""
    writes: tuple[str, ...] = ()
    """What it can write besides its project."""
    builtins: str = ""
    """Whether it has the built-in tools: `beside` its agent's own, or `instead` of them."""
    plugin_tools: tuple[str, ...] = ()
    """The ops of connectors that it has as tools, as `<plugin>.<op>`."""
    own_servers: tuple[str, ...] = ()
    """Its agent's own MCP servers that Aileron has too and that it starts, with the reason."""
    augment: bool = False
    """Whether its model gets Aileron's tools through the gateway."""
    base_url: str = ""
    """Where all its model requests go in place of a provider's address."""

    def to_json(self) -> dict[str, Any]:
        """Return what is set, for a request or a record."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
            for name, value in given.items()
            if value
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "SessionTerms":
        """Return the terms among the keys of *stored*; one of another type counts as absent."""
        given: dict[str, Any] = {}
        for each in fields(cls):
            value = stored.get(each.name)
            if isinstance(value, list):
                value = tuple(map(str, cast("list[object]", value)))
            if isinstance(value, type(each.default)):
                given[each.name] = value
        return cls(**given)


NO_TERMS: Final = SessionTerms()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """Who opened a session, as the kernel saw it when it did (Linux; elsewhere there is none)."""

    pid: int
    executable: str
    """Empty where the kernel does not say."""
    cwd: str
    parents: tuple[tuple[int, str], ...]
    """(pid, name) of its parents, the nearest first; at most 8."""
    started_at: float | None
    """Epoch seconds; None where the kernel does not say."""

    def to_json(self) -> dict[str, Any]:
        """Return it as the record of a session's opening keeps it."""
        return {
            "pid": self.pid,
            "executable": self.executable,
            "cwd": self.cwd,
            "parents": [[pid, name] for pid, name in self.parents],
            "started_at": self.started_at,
        }

    @classmethod
    def from_json(cls, stored: object) -> "ProcessView | None":
        """Read what `to_json` returned; None for anything else (another program wrote it)."""
        if not isinstance(stored, Mapping):
            return None
        fields = cast("Mapping[str, Any]", stored)
        try:
            parents = cast("Sequence[tuple[Any, Any]]", fields["parents"])
            started = fields["started_at"]
            return cls(
                pid=int(fields["pid"]),
                executable=str(fields["executable"]),
                cwd=str(fields["cwd"]),
                parents=tuple((int(pid), str(name)) for pid, name in parents),
                started_at=None if started is None else float(started),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
