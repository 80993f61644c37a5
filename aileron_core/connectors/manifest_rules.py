"""The keys of a connector's `manifest.toml`: one table of what each may be, and what checks it."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from aileron_core.actions.front_matter import read_preview
from aileron_core.actions.model import Input, fqn_problem, is_semver
from aileron_core.actions.problems import KeyPath, KeyProblem, quoted
from aileron_core.actions.validate import MAX_WALL_SECONDS, input_problems
from aileron_core.connectors.http.host_names import normalize_host_port
from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.servers.table import PREFIX, TREE, VERSION, WORDS

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 7230, 3.2.6
_OP_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_LONGEST_NAME = 256
_LONGEST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class Table:
    """A table with these keys alone."""

    keys: "Mapping[str, Rule]"
    required: tuple[str, ...] = ()
    together: Callable[[Mapping[str, Any]], Iterable[tuple[KeyPath, str]]] | None = None
    """Checks the keys against one another, where each is right by itself."""


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table whose keys the author names."""

    rule: "Rule"
    name: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    """An array of values that one rule is for."""

    rule: "Rule"
    least: int = 0


@dataclass(frozen=True, slots=True)
class Within:
    """What has rules of its own."""

    problems: Callable[[object, KeyPath], Iterable[KeyProblem]]
    """Yields what is wrong with it, by its path in the file."""


Rule: TypeAlias = Table | TableOf | ListOf | Within | Callable[[Any], str | None]
"""Of a single value: what returns what is wrong with it, or None."""


def manifest_problems(
    value: object, rule: Rule | None = None, path: KeyPath = ()
) -> Iterator[KeyProblem]:
    """Yield what is wrong with *value*, by default a whole manifest as parsed from TOML."""
    rule = rule or _MANIFEST
    if isinstance(rule, ListOf):
        items = cast("list[object]", value) if isinstance(value, list) else None
        if items is None or len(items) < rule.least:
            must = "list at least one" if rule.least else "be a list"
            yield KeyProblem(path=path, message=f"must {must}")
        for index, item in enumerate(items or ()):
            yield from manifest_problems(item, rule.rule, (*path, index))
    elif isinstance(rule, Within):
        yield from rule.problems(value, path)
    elif not isinstance(rule, Table | TableOf):
        if (message := rule(value)) is not None:
            yield KeyProblem(path=path, message=message)
    elif not isinstance(value, dict):
        yield KeyProblem(path=path, message="must be a table")
    else:
        table = cast("dict[str, object]", value)
        of = _fixed_table if isinstance(rule, Table) else _free_table
        yield from of(table, cast("Any", rule), path)


def _fixed_table(table: dict[str, object], rule: Table, path: KeyPath) -> Iterator[KeyProblem]:
    found: list[KeyProblem] = []
    for key, value in table.items():
        if key in rule.keys:
            found += manifest_problems(value, rule.keys[key], (*path, key))
        else:
            message = "unknown manifest key"
            found.append(KeyProblem(path=(*path, key), message=message, class_="parse_error"))
    missing = [key for key in rule.required if key not in table]
    found += [KeyProblem(path=(*path, key), message="is required") for key in missing]
    if rule.together is not None:
        # Where a value is of another type, that has been said, and may end this.
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            together = [*rule.together(table)]
            found += [KeyProblem(path=(*path, *at), message=message) for at, message in together]
    yield from found


def _free_table(table: dict[str, object], rule: TableOf, path: KeyPath) -> Iterator[KeyProblem]:
    for key, value in table.items():
        if rule.name is not None and not rule.name.fullmatch(key):
            message = f"must match {rule.name.pattern}"
            yield KeyProblem(path=(*path, key), message=message)
        yield from manifest_problems(value, rule.rule, (*path, key))


def _text(value: Any) -> str | None:
    """Accept text for people, short enough for a screen."""
    if not isinstance(value, str):
        return "must be a string"
    return None if len(value) <= _LONGEST_TEXT else f"is longer than {_LONGEST_TEXT:,} characters"


def _description(value: Any) -> str | None:
    good = isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST_TEXT
    return None if good else f"must be a text of at most {_LONGEST_TEXT:,} characters"


def _line(value: Any) -> str | None:
    """Accept text that may end up in a header."""
    if not isinstance(value, str):
        return "must be a string"
    return "must not contain a line break" if re.search(r"[\r\n\x00]", value) else None


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _one_of(*values: str) -> Callable[[Any], str | None]:
    return lambda value: None if value in values else f"must be one of {', '.join(values)}"


def _name(value: Any) -> str | None:
    """Accept a connector's name without version."""
    if (problem := _line(value)) is not None:
        return problem
    if len(value) > _LONGEST_NAME:
        return f"is longer than {_LONGEST_NAME} characters"
    if value.startswith(PREFIX):
        must = f"must be {PREFIX}NAME, NAME a lower-case letter, then up to 15 lower-case letters or digits, and not builtin"
        return None if _SERVER_NAME.fullmatch(value) else must
    # Which an action may name, but the account of no connector is called by.
    return "must not contain +" if "+" in value else fqn_problem(value)


def _version(value: Any) -> str | None:
    good = isinstance(value, str) and is_semver(value)
    return None if good else "must be strict SemVer, such as 1.2.3"


def _provenance_hash(value: Any) -> str | None:
    good = isinstance(value, str) and value.startswith("sha256:")
    return None if good else "must start with sha256:"


def _header_name(value: Any) -> str | None:
    good = isinstance(value, str) and _TOKEN.fullmatch(value)
    return None if good else "must be the name of a header"


def _url(value: Any) -> str | None:
    """Accept an https URL, or http to this machine."""
    if (problem := _line(value)) is not None:
        return problem
    try:
        parts = urlsplit(str(value))
        host = parts.hostname
    except ValueError:
        return "is not a URL"
    local = parts.scheme == "http" and host in {"localhost", "127.0.0.1"}
    return None if host and (parts.scheme == "https" or local) else "must be an https URL"


def _host(value: Any) -> str | None:
    """Accept one exact `host:port`."""
    if (problem := _line(value)) is not None:
        return problem
    if "://" in value or "/" in value:
        return f"{quoted(value)} must be host:port alone, without scheme or path"
    if "*" in value:
        return f"{quoted(value)} contains a wildcard; list each host by name"
    try:
        normalize_host_port(value)
    except ValueError as error:
        return f"{quoted(value)} {error}"
    return None


def _seconds(value: Any) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    good = whole and 1 <= value <= MAX_WALL_SECONDS
    return None if good else f"must be a whole number of seconds from 1 to {MAX_WALL_SECONDS}"


def _credential(table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    kind = table["kind"]
    for key, only in _ONLY_FOR.items():
        if key in table and kind != only:
            yield (key,), f"is allowed only for kind = {only!r}"
    if kind == "oauth2" and "oauth2" not in table:
        yield ("oauth2",), "is required for kind = 'oauth2'"
    if "{key}" not in table.get("format", "{key}"):
        yield ("format",), "must contain {key}"


def _op(table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    inputs = tuple(Input(**entry) for entry in table.get("inputs", ()))
    yield from input_problems(inputs)
    if len({each.name for each in inputs}) < len(inputs):
        yield ("inputs",), "names an input twice"


_SERVER_NAME = re.compile(re.escape(PREFIX) + r"(?!builtin$)[a-z][a-z0-9]{0,15}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_PACKAGE = re.compile(r"(npm|pypi):@?[A-Za-z0-9][A-Za-z0-9._/-]*@[0-9][A-Za-z0-9.+!_-]*")
_TREE_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_SECRET = re.compile(r"\$\{secret\.([^{}]*)\}")


def _word(value: Any) -> str | None:
    """Accept a word of a command line."""
    if not isinstance(value, str):
        return "must be a string"
    return "must not contain a NUL" if "\0" in value else None


def _path(value: Any) -> str | None:
    good = isinstance(value, str) and value.startswith("/") and not re.search(r"[\r\n\x00]", value)
    return (
        None if good and os.path.normpath(value) == value else "must be an absolute path without .."
    )


def _variable(value: Any) -> str | None:
    good = isinstance(value, str) and _VARIABLE.fullmatch(value)
    return None if good else "must be the name of an environment variable"


def _matches(pattern: re.Pattern[str], message: str) -> Callable[[Any], str | None]:
    return lambda value: (
        None if isinstance(value, str) and pattern.fullmatch(value) else f"must be {message}"
    )


def _preview_of_tool(value: object, path: KeyPath) -> Iterator[KeyProblem]:
    if not isinstance(value, dict):
        yield KeyProblem(path=path, message="must be a table")
        return
    for each in read_preview(cast("dict[str, object]", value), path)[1]:
        yield replace(each, message=each.message.replace("front matter key", "manifest key"))


def _server_url(value: Any) -> str | None:
    if (problem := _line(value)) is not None:
        return problem
    try:
        is_secure = parse_target(value).scheme == "https"
    except ValueError as error:
        return f"is not one that can be reached: {error}"
    return None if is_secure else "must be an https URL: anybody on the way can change plain HTTP"


def _server(table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    started = ("run", "program", "package", "tree", "files", "hosts", "env", "secrets", "rehearse")
    if "url" in table:
        for key in started:
            if key in table:
                yield (key,), "is not for a server with a url"
        return
    program, files = table.get("program", ()), table.get("files", {})
    if not program or not program[0].startswith("/"):
        yield ("program",), "must begin with the absolute path of a program"
    if ("package" in table) != ("tree" in table):
        yield ("package",), "needs tree, and tree needs package"
    if any(TREE in word for word in program) and "tree" not in table:
        yield ("program",), f"has {TREE}, and there is no tree"
    yield from _secrets(table)
    if table.get("rehearse") and (table.get("hosts") or not files.get("write")):
        yield (
            ("rehearse",),
            "needs files.write, and no hosts: what is sent cannot be rehearsed. Set it to false (--no-rehearse)",
        )


def _secrets(table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    secrets = table.get("secrets", ())
    if secrets and not table.get("hosts"):
        yield ("secrets",), "a server with a secret must list its hosts"
    for name in sorted({*secrets} & {*table.get("env", {})}):
        yield ("env", name), "is also listed in secrets"
    for word in (*table.get("run", ()), *table.get("program", ())):
        for name in _SECRET.findall(word):
            if name not in secrets:
                yield ("program",), f"names the secret {quoted(name)}, which is not in secrets"


def _form(document: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    is_server = "server" in document
    if is_server != document["connector"]["name"].startswith(PREFIX):
        yield ("connector", "name"), f"must be {PREFIX}NAME for a server, and for nothing else"
    if is_server and document["connector"]["version"] != VERSION:
        yield ("connector", "version"), f"must be {VERSION}: a package's own version is in package"
    others = {*document.get("capabilities", {})} - {"credential"}
    if is_server and (others or "provides" in document):
        message = "remove [capabilities] and [provides]: a server's permissions are in [server]"
        yield ("server",), message
    need = document.get("capabilities", {}).get("credential")
    if is_server and need and ("url" not in document["server"] or need["kind"] != "api_key"):
        yield ("capabilities", "credential"), "of a server is the api_key of one with a url"


_SERVER = Table(
    {
        "run": ListOf(_word, least=1),
        "program": ListOf(_word, least=1),
        "package": _matches(_PACKAGE, "npm:NAME@VERSION or pypi:NAME@VERSION"),
        "tree": _matches(_TREE_HASH, "sha256: and 64 hex digits"),
        "url": _server_url,
        "files": Table({"read": ListOf(_path), "write": ListOf(_path)}),
        "hosts": ListOf(_host),
        "env": TableOf(_word, name=_VARIABLE),
        "secrets": ListOf(_variable),
        "rehearse": _flag,
        "tools": TableOf(_one_of(*WORDS)),
        "actions": TableOf(Table({"preview": Within(_preview_of_tool)}, required=("preview",))),
    },
    required=("tools",),
    together=_server,
)
# Keys of [capabilities.credential] that only one kind has.
_ONLY_FOR = {
    "header": "api_key",
    "format": "api_key",
    "region": "aws_sigv4",
    "service": "aws_sigv4",
    "access_key_id": "aws_sigv4",
    "oauth2": "oauth2",
}
_CREDENTIAL = Table(
    {
        "kind": _one_of("api_key", "oauth2", "aws_sigv4", "basic"),
        "scope": _text,
        "header": _header_name,
        "format": _line,
        "region": _line,
        "service": _line,
        "access_key_id": _line,
        "oauth2": Table(
            {
                "authorize_url": _url,
                "token_url": _url,
                "client_id": _line,
                "client_secret": _line,
                "scopes": ListOf(_text, least=1),
            },
            required=("authorize_url", "token_url", "client_id", "scopes"),
        ),
    },
    required=("kind",),
    together=_credential,
)
_OP = Table(
    {
        "description": _description,
        "inputs": ListOf(
            Table(  # as `[[inputs]]` of an action file has them
                {
                    "name": _text,
                    "type": _text,
                    "description": _description,
                    "required": _flag,
                    "label": _text,
                    "multiline": _flag,
                    "items_type": _text,
                    "format": _text,
                },
                required=("name", "type", "description"),
            )
        ),
    },
    required=("description",),
    together=_op,
)
_MANIFEST = Table(
    {
        "connector": Table(
            {
                "name": _name,
                "version": _version,
                "publisher": _text,
                "provenance_hash": _provenance_hash,
                "idempotency": Table(
                    {"default": _one_of("idempotent", "not_idempotent")}, required=("default",)
                ),
                "forwarder": _text,
                "origin": _text,
            },
            required=("name", "version"),
        ),
        "capabilities": Table(
            {
                "network": Table({"hosts": ListOf(_host)}),
                "credential": _CREDENTIAL,
                "runtime": Table({"imports": ListOf(_text), "wall_seconds": TableOf(_seconds)}),
                "spawn": lambda _: None,  # no connector with it is installed
            }
        ),
        "provides": Table({"intents": ListOf(_text), "ops": TableOf(_OP, name=_OP_NAME)}),
        "server": _SERVER,
    },
    required=("connector",),
    together=_form,
)
