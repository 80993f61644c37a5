"""A connector's `manifest.toml`: its keys, and which of its hosts one call may reach (by AWS region)."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from aileron_core.actions.model import ConnectorIdentity, Input
from aileron_core.actions.positions import load_toml, locate, nearest
from aileron_core.actions.problems import KeyProblem, key_text
from aileron_core.canonical import JsonObject
from aileron_core.connectors.http.host_names import normalize_host_port
from aileron_core.connectors.manifest_rules import manifest_problems
from aileron_core.connectors.protocol import (
    CredentialKind,
    CredentialRequirement,
    OAuth2Requirement,
)
from aileron_core.connectors.servers.table import ServerTable, to_table
from aileron_core.errors import FileProblems, Problem

_MAX_BYTES = 1024 * 1024
_REGION_ARGUMENT = "region"
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_AWS_REGION = re.compile(
    r"[a-z]{2}(-gov|-iso[a-z]?)?-(north|south|east|west|central|(north|south)(east|west))-[0-9]{1,2}"
)

CLIENT_PLACEHOLDER = "bound-at-release"
"""In published sources, the client secret that only a release contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSchema:
    """One op, as its connector describes it to agents that get it as a tool of its own."""

    description: str
    inputs: tuple[Input, ...] = ()
    """All arguments that it takes."""


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
    server: ServerTable | None = None
    """What it is where it is an MCP server; None of a WASM module."""
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ManifestConnector:
    """A connector of the store, as far as its manifest says what it is; see `protocol.Connector`."""

    identity: ConnectorIdentity
    manifest: Manifest
    account = ""
    consented_account = None

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.manifest.hosts

    def hosts_for(self, args: JsonObject) -> tuple[str, ...]:
        return self.manifest.hosts_for(args)

    @property
    def credential_requirement(self) -> CredentialRequirement | None:
        return self.manifest.credential


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


def parse_manifest(
    data: bytes,
    file: str,
    more: Callable[[Mapping[str, Any]], Iterable[KeyProblem]] = lambda document: (),
) -> Manifest:
    """Parse the manifest in *data*; *file* is its name in messages.

    Args:
        more: returns what else is wrong with it, of whatever was parsed.

    Raises:
        FileProblems: all its problems: `parse_error` for invalid TOML and unknown keys,
            `validation_error` for
            the rest.
    """
    text, document = _load(data, file)
    found = [*manifest_problems(document)]
    with suppress(
        AttributeError, KeyError, TypeError, ValueError
    ):  # of another type: has been said
        found += more(document)
    if found:
        raise FileProblems(located(found, text, file))
    return _to_manifest(document)


def located(found: Iterable[KeyProblem], text: str, file: str) -> list[Problem]:
    """Return what was *found* in the manifest *text* with its places, in their order; *file* is its name."""
    places = locate(text)
    problems = [
        Problem(
            file=file,
            message=each.message,
            class_=each.class_,
            line=line,
            column=column,
            key=key_text(each.path),
        )
        for each in found
        for line, column in [nearest(each.path, places)]
    ]
    return sorted(problems, key=lambda each: (each.class_ != "parse_error", each.line))


def _load(data: bytes, file: str) -> tuple[str, dict[str, Any]]:
    def refuse(message: str) -> FileProblems:
        return FileProblems([Problem(file=file, message=message, class_="parse_error")])

    if len(data) > _MAX_BYTES:
        raise refuse(f"is larger than {_MAX_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise refuse(f"is not UTF-8: byte {error.start}") from error
    return text, load_toml(text, file)


def _table(document: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    here: Any = document
    for key in path.split("."):
        here = cast("dict[str, Any]", here).get(key) if isinstance(here, dict) else None
    return cast("dict[str, Any]", here) if isinstance(here, dict) else {}


def _to_manifest(document: Mapping[str, Any]) -> Manifest:
    connector = document["connector"]
    credential = _to_credential(_table(document, "capabilities.credential"))
    server = to_table(document["server"], credential) if "server" in document else None
    hosts = server.hosts if server else _table(document, "capabilities.network").get("hosts", [])
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
        ops={
            name: OpSchema(
                description=op["description"].strip(),
                inputs=tuple(Input(**entry) for entry in op.get("inputs", ())),
            )
            for name, op in _table(document, "provides.ops").items()
        },
        credential=credential
        if server is None or not server.secrets
        else CredentialRequirement(kind="environment", names=server.secrets),
        server=server,
        idempotent=default == "idempotent",
        wants_spawn="spawn" in _table(document, "capabilities") or "forwarder" in connector,
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
