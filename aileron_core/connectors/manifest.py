"""A connector's `manifest.toml`: its keys, and which of its hosts one call may reach (by AWS region)."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from aileron_core.actions.positions import key_line, syntax_position
from aileron_core.canonical import JsonObject
from aileron_core.connectors.http.host_names import normalize_host_port
from aileron_core.connectors.manifest_rules import (
    any_text,
    credential_kind,
    fqn,
    header_name,
    host_list,
    idempotency,
    operations,
    positive_output_limit,
    prose,
    provenance_hash,
    seconds_by_op,
    single_line,
    spawn_programs,
    string_list,
    url,
    version,
)
from aileron_core.connectors.op_schemas import OpSchema, op_schemas, read_op_schemas
from aileron_core.errors import FileProblems, Problem

CredentialKind: TypeAlias = Literal["api_key", "oauth2", "aws_sigv4", "basic"]
ValueRule: TypeAlias = Callable[[Any], str | None]
"""Takes a value and returns what is wrong with it, or None."""

_MAX_BYTES = 1024 * 1024
_REGION_ARGUMENT = "region"
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_AWS_REGION = re.compile(
    r"[a-z]{2}(-gov|-iso[a-z]?)?-(north|south|east|west|central|(north|south)(east|west))-[0-9]{1,2}"
)

# Keys by table. A table that is a key of another has an entry of its own.
_SCHEMA: Mapping[str, Mapping[str, ValueRule | None]] = {
    "": {"connector": None, "capabilities": None, "provides": None},
    "connector": {
        "name": fqn,
        "version": version,
        "publisher": prose,
        "provenance_hash": provenance_hash,
        "idempotency": None,
        "forwarder": prose,
        "origin": prose,
    },
    "connector.idempotency": {"default": idempotency},
    "capabilities": {"network": None, "credential": None, "runtime": None, "spawn": None},
    "capabilities.network": {"hosts": host_list},
    "capabilities.credential": {
        "kind": credential_kind,
        "scope": prose,
        "header": header_name,
        "format": single_line,
        "region": single_line,
        "service": single_line,
        "access_key_id": single_line,
        "oauth2": None,
    },
    "capabilities.credential.oauth2": {
        "authorize_url": url,
        "token_url": url,
        "client_id": single_line,
        "client_secret": single_line,
        "scopes": string_list,
    },
    "capabilities.runtime": {"imports": string_list, "wall_seconds": seconds_by_op},
    "capabilities.spawn": {
        "programs": spawn_programs,
        "operations": operations,
        "env_passthrough": string_list,
        "credential_env_keys": string_list,
        "fs_read": string_list,
        "fs_write": string_list,
        "cwd": any_text,
        "limits": None,
    },
    "capabilities.spawn.limits": {
        "max_stdout_bytes": positive_output_limit,
        "max_stderr_bytes": positive_output_limit,
    },
    "provides": {"intents": string_list, "ops": op_schemas},
}
_REQUIRED = {
    "": ("connector",),
    "connector": ("name", "version"),
    "connector.idempotency": ("default",),
    "capabilities.credential": ("kind",),
    "capabilities.credential.oauth2": ("authorize_url", "token_url", "client_id", "scopes"),
    "capabilities.spawn": ("programs", "operations"),
}
# Keys of [capabilities.credential] that only one kind has.
_ONLY_FOR = {
    "header": "api_key",
    "format": "api_key",
    "region": "aws_sigv4",
    "service": "aws_sigv4",
    "access_key_id": "aws_sigv4",
    "oauth2": "oauth2",
}


CLIENT_PLACEHOLDER = "bound-at-release"
"""In published sources, the client secret that only a release contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth2Requirement:
    """How to obtain an OAuth 2 credential."""

    authorize_url: str
    token_url: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRequirement:
    """The one credential that a connector wants added to its requests."""

    kind: CredentialKind
    scope: str = ""
    header: str = "Authorization"
    format: str = "Bearer {key}"
    region: str = ""
    service: str = ""
    access_key_id: str = ""
    oauth2: OAuth2Requirement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a connector declares about itself and asks for."""

    name: str
    version: str
    publisher: str = ""
    provenance_hash: str = ""
    hosts: tuple[str, ...] = ()
    """`host:port` normalized by `host_names.normalize_host_port`, sorted, without duplicates."""
    imports: tuple[str, ...] = ()
    wall_seconds: Mapping[str, int] = field(default_factory=dict[str, int])
    """By op, how long one call of it may take; only of those that need longer than usual."""
    intents: tuple[str, ...] = ()
    ops: Mapping[str, OpSchema] = field(default_factory=dict[str, OpSchema])
    """What its ops do and take, all of them or none; for agents that get one as a tool."""
    credential: CredentialRequirement | None = None
    idempotent: bool = True
    """Whether a step that does not say counts as idempotent in upstream; ours asks the step."""
    wants_spawn: bool = False
    """It wants to start programs on this machine, which this version never allows."""

    def hosts_for(self, args: JsonObject) -> tuple[str, ...]:
        """Return those of `hosts` that a call with *args* may reach.

        If a connector signs for AWS and its argument `region` is the region of one of its hosts,
        the call is limited to the hosts of that region and to those without one. Every other call
        may reach all hosts.
        """
        region = args.get(_REGION_ARGUMENT)
        if self.credential_kind != "aws_sigv4" or not isinstance(region, str):
            return self.hosts
        if region not in {aws_region_of_host(entry.rpartition(":")[0]) for entry in self.hosts}:
            return self.hosts
        return hosts_of_region(self.hosts, region)

    @property
    def credential_kind(self) -> CredentialKind | None:
        return None if self.credential is None else self.credential.kind


def is_aws_region(text: str) -> bool:
    """Return whether *text* has the form of a region, such as `eu-west-1`."""
    return _AWS_REGION.fullmatch(text) is not None


def hosts_of_region(hosts: Iterable[str], region: str) -> tuple[str, ...]:
    """Return those of *hosts*, as `host:port`, that are in *region* or name none."""
    return tuple(
        entry for entry in hosts if aws_region_of_host(entry.rpartition(":")[0]) in (None, region)
    )


def aws_region_of_host(host: str) -> str | None:
    """Return the AWS region in the name of a host, None if there is none."""
    if not host.endswith(_AWS_DOMAINS):
        return None
    labels = reversed(host.split("."))
    return next((label for label in labels if _AWS_REGION.fullmatch(label)), None)


def parse_manifest(data: bytes, file: str) -> Manifest:
    """Parse the manifest in *data*; *file* is its name in messages.

    Raises:
        FileProblems: all its problems: `parse_error` for invalid TOML and unknown keys,
            `validation_error` for
            the rest.
    """
    text, document = _load(data, file)
    problems: list[Problem] = []

    def report(key: str, message: str, class_: str = "validation_error") -> None:
        line = key_line(text, key)
        problems.append(Problem(file=file, message=message, class_=class_, line=line, key=key))

    _check_table(document, "", report)
    _check_credential(document, report)
    if problems:
        raise FileProblems(sorted(problems, key=lambda p: (p.class_ != "parse_error", p.line)))
    return _to_manifest(document)


def _load(data: bytes, file: str) -> tuple[str, dict[str, Any]]:
    def refuse(message: str, line: int = 0, column: int = 0) -> FileProblems:
        problem = Problem(
            file=file, message=message, class_="parse_error", line=line, column=column
        )
        return FileProblems([problem])

    if len(data) > _MAX_BYTES:
        raise refuse(f"is larger than {_MAX_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise refuse(f"is not UTF-8: byte {error.start}") from error
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refuse(f"invalid TOML: {error}", *syntax_position(str(error))) from error
    except (RecursionError, ValueError) as error:
        # tomllib recurses into nested arrays and lets an impossible date or a huge number through.
        raise refuse("invalid TOML: nested too deeply, or a number or date out of range") from error


ReportProblem: TypeAlias = Callable[..., None]


def _check_table(table: Mapping[str, Any], path: str, report: ReportProblem) -> None:
    for key, value in table.items():
        dotted = f"{path}.{key}" if path else key
        if key not in _SCHEMA[path]:
            report(dotted, "unknown manifest key", "parse_error")
        elif (rule := _SCHEMA[path][key]) is not None:
            if (problem := rule(value)) is not None:
                report(dotted, problem)
        elif not isinstance(value, dict):
            report(dotted, "must be a table")
        else:
            _check_table(cast("dict[str, Any]", value), dotted, report)
    for key in _REQUIRED.get(path, ()):
        if key not in table:
            report(f"{path}.{key}" if path else key, "is required")


def _check_credential(document: Mapping[str, Any], report: ReportProblem) -> None:
    """Check the keys of the credential's table against one another."""
    path = "capabilities.credential"
    table = _table(document, path)
    kind = table.get("kind")
    for key, only in _ONLY_FOR.items():
        if key in table and isinstance(kind, str) and kind != only:
            report(f"{path}.{key}", f"is allowed only for kind = {only!r}")
    if kind == "oauth2" and "oauth2" not in table:
        report(f"{path}.oauth2", "is required for kind = 'oauth2'")
    pattern = table.get("format")
    if isinstance(pattern, str) and "{key}" not in pattern:
        report(f"{path}.format", "must contain {key}")
    if _table(document, "capabilities.credential.oauth2").get("scopes") == []:
        report(f"{path}.oauth2.scopes", "must list at least one scope")
    spawn = _table(document, "capabilities.spawn")
    passed, secret = spawn.get("env_passthrough"), spawn.get("credential_env_keys")
    if isinstance(secret, list):
        allowed = cast("list[Any]", passed) if isinstance(passed, list) else []
        if any(name not in allowed for name in cast("list[Any]", secret)):
            report(
                "capabilities.spawn.credential_env_keys",
                "must all be listed in env_passthrough too",
            )


def _table(document: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    here: Any = document
    for key in path.split("."):
        here = cast("dict[str, Any]", here).get(key) if isinstance(here, dict) else None
    return cast("dict[str, Any]", here) if isinstance(here, dict) else {}


def _to_manifest(document: Mapping[str, Any]) -> Manifest:
    connector = document["connector"]
    hosts = _table(document, "capabilities.network").get("hosts", [])
    default = _table(document, "connector.idempotency").get("default", "idempotent")
    return Manifest(
        name=connector["name"],
        version=connector["version"],
        publisher=connector.get("publisher", ""),
        provenance_hash=connector.get("provenance_hash", ""),
        hosts=tuple(sorted({normalize_host_port(host) for host in hosts})),
        imports=tuple(_table(document, "capabilities.runtime").get("imports", ())),
        wall_seconds=dict(_table(document, "capabilities.runtime").get("wall_seconds", {})),
        intents=tuple(_table(document, "provides").get("intents", ())),
        ops=read_op_schemas(_table(document, "provides.ops")),
        credential=_to_credential(_table(document, "capabilities.credential")),
        idempotent=default == "idempotent",
        wants_spawn=bool(_table(document, "capabilities.spawn")) or "forwarder" in connector,
    )


def _to_credential(table: Mapping[str, Any]) -> CredentialRequirement | None:
    if not table:
        return None
    plain = {key: value for key, value in table.items() if key != "oauth2"}
    oauth2: Mapping[str, Any] | None = table.get("oauth2")
    need = None
    if oauth2 is not None:
        rest = {key: value for key, value in oauth2.items() if key != "scopes"}
        need = OAuth2Requirement(**rest, scopes=tuple(oauth2["scopes"]))
    return CredentialRequirement(**plain, oauth2=need)
