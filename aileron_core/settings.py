"""The person's settings: `config.toml`, strict, with WIRE.md's defaults."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from aileron_core.errors import FileProblems, Problem

__all__ = ["Settings", "load_settings", "parse_route"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `config.toml` may say in this version."""

    listen_host: str = "127.0.0.1"
    listen_port: int = 0
    """0: the port that was first given is taken again if it is free."""
    expires_seconds: int = 1800
    """0: approvals never expire."""
    hold_seconds: float = 25.0
    """How long the MCP server holds a gated call at most."""


_KEYS: Mapping[str, frozenset[str]] = {
    "server": frozenset({"listen"}),
    "approval": frozenset({"expires_seconds"}),
    "mcp": frozenset({"hold_seconds"}),
}
_LISTEN = re.compile(r"127\.0\.0\.1:(\d{1,5})")


def load_settings(path: Path) -> Settings:
    """Return what *path* says; the defaults if there is no such file.

    Raises:
        FileProblems: it cannot be read, is not TOML, or says what Aileron does not know.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        raise FileProblems(
            [_problem(path, f"cannot be read: {error}", class_="parse_error")]
        ) from error
    problems = list(_unknown(path, content))
    settings = _read(path, content, problems)
    if problems:
        raise FileProblems(problems)
    return settings


def _problem(path: Path, message: str, key: str = "", class_: str = "validation_error") -> Problem:
    return Problem(file=path.name, key=key, message=message, class_=class_)


def _unknown(path: Path, content: Mapping[str, Any]) -> list[Problem]:
    problems: list[Problem] = []
    for section, table in content.items():
        known = _KEYS.get(section)
        if known is None or not isinstance(table, Mapping):
            problems.append(_problem(path, "is no section that Aileron knows", section))
            continue
        keys = cast("Mapping[str, Any]", table)
        problems += [
            _problem(
                path, f"is unknown; known here: {', '.join(sorted(known))}", f"{section}.{key}"
            )
            for key in keys
            if key not in known
        ]
    return problems


def _read(path: Path, content: Mapping[str, Any], problems: list[Problem]) -> Settings:
    def value(section: str, key: str, default: Any) -> Any:
        table = content.get(section)
        return (
            cast("Mapping[str, Any]", table).get(key, default)
            if isinstance(table, Mapping)
            else default
        )

    def bounded(section: str, key: str, default: float, least: float, most: float) -> float:
        found = value(section, key, default)
        if (
            isinstance(found, bool)
            or not isinstance(found, int | float)
            or not least <= found <= most
        ):
            problems.append(
                _problem(path, f"must be from {least:g} to {most:g}", f"{section}.{key}")
            )
            return default
        return found

    listen = value("server", "listen", "127.0.0.1:0")
    match = _LISTEN.fullmatch(listen) if isinstance(listen, str) else None
    if match is None or int(match[1]) > 65535:
        problems.append(_problem(path, 'must be "127.0.0.1:PORT"', "server.listen"))
    return Settings(
        listen_port=int(match[1]) if match else 0,
        expires_seconds=int(bounded("approval", "expires_seconds", 1800, 0, 30 * 86400)),
        hold_seconds=bounded("mcp", "hold_seconds", 25.0, 0, 600),
    )


_ROUTE = re.compile(r"([A-Za-z0-9.-]+:\d{1,5})=(127\.0\.0\.1|\[::1\]):(\d{1,5})")


def parse_route(text: str) -> tuple[str, str, int]:
    """Return `(host:port, address, port)` of a `--route HOST:PORT=127.0.0.1:PORT`.

    Raises:
        ValueError: it is not of that form.
    """
    match = _ROUTE.fullmatch(text)
    if match is None or int(match[3]) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT=127.0.0.1:PORT")
    return match[1].lower(), match[2].strip("[]"), int(match[3])
