"""Validation rules for single values of a connector's manifest; each returns what is wrong, or None."""

import re
from typing import Any, cast
from urllib.parse import urlsplit

from aileron_core.actions.names import is_semver
from aileron_core.actions.validate import MAX_WALL_SECONDS
from aileron_core.connectors.http.host_names import normalize_host_port
from aileron_core.connectors.names import MAX_NAME_LENGTH, Fqn

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 7230, 3.2.6
_OPERATION = re.compile(r"[a-z][a-z0-9_-]*")
_MAX_OUTPUT = 64 * 1024 * 1024


def any_text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def prose(value: Any) -> str | None:
    """Accept text for people, short enough for a screen."""
    if not isinstance(value, str):
        return "must be a string"
    return None if len(value) <= 4000 else "is longer than 4,000 characters"


def single_line(value: Any) -> str | None:
    """Accept text that may end up in a header."""
    if not isinstance(value, str):
        return "must be a string"
    return "must not contain a line break" if re.search(r"[\r\n\x00]", value) else None


def fqn(value: Any) -> str | None:
    """Accept a connector's name without version."""
    if not isinstance(value, str):
        return "must be a string"
    try:
        Fqn.parse(value)
    except ValueError as error:
        return str(error)
    return None


def version(value: Any) -> str | None:
    """Accept a strict semantic version."""
    good = isinstance(value, str) and len(value) <= MAX_NAME_LENGTH and is_semver(value)
    return None if good else "must be strict SemVer, such as 1.2.3"


def provenance_hash(value: Any) -> str | None:
    """Accept a hash prefixed with its algorithm."""
    good = isinstance(value, str) and value.startswith("sha256:")
    return None if good else "must start with sha256:"


def idempotency(value: Any) -> str | None:
    """Accept the default for steps that do not state their own."""
    return None if value in ("idempotent", "not_idempotent") else "must be idempotent or not_idempotent"  # fmt: skip


def credential_kind(value: Any) -> str | None:
    """Accept a kind of credential that a host can inject."""
    good = value in ("api_key", "oauth2", "aws_sigv4", "basic")
    return None if good else "must be api_key, oauth2, aws_sigv4 or basic"


def header_name(value: Any) -> str | None:
    good = isinstance(value, str) and _TOKEN.fullmatch(value)
    return None if good else "must be the name of a header"


def url(value: Any) -> str | None:
    """Accept an https URL, or http to this machine."""
    if (problem := single_line(value)) is not None:
        return problem
    try:
        parts = urlsplit(str(value))
        host = parts.hostname
    except ValueError:
        return "is not a URL"
    local = parts.scheme == "http" and host in {"localhost", "127.0.0.1"}
    return None if host and (parts.scheme == "https" or local) else "must be an https URL"


def string_list(value: Any) -> str | None:
    if not isinstance(value, list):
        return "must be a list of strings"
    items = cast("list[Any]", value)
    return None if all(isinstance(item, str) for item in items) else "must be a list of strings"


def host_list(value: Any) -> str | None:
    """Accept a list of exact `host:port` entries; the message names the first wrong one."""
    if (problem := string_list(value)) is not None:
        return problem
    for entry in cast("list[str]", value):
        if (problem := _host_problem(entry)) is not None:
            return f"{entry!r} {problem}"
    return None


def _host_problem(entry: str) -> str | None:
    if "://" in entry or "/" in entry:
        return "must be host:port alone, without scheme or path"
    if "*" in entry:
        return "contains a wildcard; list each host by name"
    try:
        normalize_host_port(entry)
    except ValueError as error:
        return str(error)
    return None


def positive_output_limit(value: Any) -> str | None:
    """Accept a number of bytes up to 64 MiB."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_OUTPUT
    return None if good else f"must be a number of bytes from 1 to {_MAX_OUTPUT}"


def seconds_by_op(value: Any) -> str | None:
    """Accept how many seconds calls may take, by op."""
    if not isinstance(value, dict):
        return "must be a table: an op, and how many seconds one call of it may take"
    for op, seconds in cast("dict[str, Any]", value).items():
        whole = isinstance(seconds, int) and not isinstance(seconds, bool)
        if not whole or not 1 <= seconds <= MAX_WALL_SECONDS:
            return f"{op!r} must be a whole number of seconds from 1 to {MAX_WALL_SECONDS}"
    return None


def spawn_programs(value: Any) -> str | None:
    """Accept the programs that a local-program connector would start."""
    if not isinstance(value, list) or not value:
        return "must list at least one program"
    for entry in cast("list[Any]", value):
        if not isinstance(entry, dict):
            return "must be a list of tables"
        table = cast("dict[str, Any]", entry)
        path = table.get("path")
        if set(table) - {"path", "hash"} or not isinstance(path, str):
            return "each program needs a path, and may have a hash"
        if not path.startswith(("/", "~/")):
            return f"{path!r} must be absolute or start with ~/"
    return None


def operations(value: Any) -> str | None:
    """Accept the command lines of a local-program connector, by op."""
    if not isinstance(value, dict) or not value:
        return "must name at least one operation"
    for name, entry in cast("dict[str, Any]", value).items():
        if not _OPERATION.fullmatch(name):
            return f"{name!r} is not a valid name for an operation"
        table = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        if set(table) - {"argv", "description"} or string_list(table.get("argv")) is not None:
            return f"operation {name!r} needs argv, a list of strings"
    return None
