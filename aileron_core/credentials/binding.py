"""A binding: an account in the vault, tied to the one connector that may use it.

It counts for the connector's name, its bytes (this version verifies no publisher's signature, so a
new version has to be bound again), its hosts and its kind. Another connector of a similar name never
sees it, nor does an update that asks for one host more.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from aileron_core.actions.model import ActionFile, ConnectorIdentity
from aileron_core.canonical import JsonObject
from aileron_core.connectors.manifest import aws_region_of_host, hosts_of_region
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.console_port.account_views import BoundAccount
from aileron_core.errors import InvalidRequest

if TYPE_CHECKING:
    from aileron_core.vault.vault import Vault

_NAME = re.compile(r"([a-z][a-z0-9_-]*)/([a-z0-9][a-z0-9._-]*)/([a-z0-9][a-z0-9._-]*)")
_IDENTITY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MAX_ACCOUNT = 200
_NOT_RECORDED = ("type", "created_at", "status", "last_used_at", "remembered_for")

LOGIN_ENDED = "its service does not accept the login any more"
OTHER_VALUES = "the server now asks for other values: delete the account, and run `aileron binding setup` again"


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialUser:
    """A connector that asks for a credential, as accepted."""

    identity: ConnectorIdentity
    requirement: CredentialRequirement
    hosts: tuple[str, ...]
    """Every `host:port` of its manifest, sorted."""

    @property
    def needs_region(self) -> bool:
        """Neither its manifest nor a host of it names the AWS region to sign for."""
        need = self.requirement
        named = need.region or any(
            aws_region_of_host(each.rpartition(":")[0]) for each in self.hosts
        )
        return need.kind == "aws_sigv4" and not named

    def hosts_in(self, region: str) -> tuple[str, ...]:
        """Return to which of its hosts an account of *region* may be sent; empty: to all."""
        return hosts_of_region(self.hosts, region) if region else self.hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding(BoundAccount):
    """An account, and the connector that may use it."""

    remembered_for: tuple[ActionFile, ...] = ()
    """The actions for which a person picked it, for later calls too; one whose file changed since does not count."""

    def problem(self, user: CredentialUser) -> str:
        """Return why it does not count for *user* as a clause, empty if it does."""
        if self.connector != user.identity.fqn:
            return f"it belongs to {self.connector or 'no connector yet'}"
        if self.kind != user.requirement.kind:
            return f"the connector now asks for a credential of kind {user.requirement.kind}"
        if more := sorted(set(user.hosts_in(self.region)).difference(self.hosts)):
            return f"the connector can now reach {', '.join(more)}"
        if {*user.requirement.names} != {*self.names}:
            return OTHER_VALUES
        if self.connector_hash != user.identity.hash:
            return "the connector has changed since"
        return ""

    def problem_among(self, users: Iterable[CredentialUser]) -> str:
        """Return why it counts for none of *users*, all that are accepted, as a clause; empty if it does."""
        problems = [self.problem(each) for each in users if each.identity.fqn == self.connector]
        if not problems:
            return (
                f"no connector {self.connector} is accepted"
                if self.connector
                else "no connector may use it yet"
            )
        if "" not in problems:
            return problems[-1]
        return LOGIN_ENDED if self.is_stale else ""

    @property
    def consented(self) -> JsonObject:
        """What a person's yes to a call covers of it: one of the same name, bound later, is another."""
        return {"name": self.name, **self._bound_for()}

    def _bound_for(self) -> JsonObject:
        return {
            "type": self.kind,
            "connector": self.connector,
            "connector_hash": self.connector_hash,
            "hosts": list(self.hosts),
            "account": self.account,
            "created_at": self.created_at,
            **({"region": self.region} if self.region else {}),
        }

    def to_metadata(self) -> JsonObject:
        more: JsonObject = {
            "scopes": list(self.scopes),
            "missing_scopes": list(self.missing_scopes),
            "names": list(self.names),
            "status": "stale" if self.is_stale else "",
            "last_used_at": self.last_used_at,
            "remembered_for": {each.name: each.sha256 for each in self.remembered_for},
        }
        return {**self._bound_for(), **{name: value for name, value in more.items() if value}}

    def to_record(self) -> JsonObject:
        """Return what the audit says of it."""
        stated = self.to_metadata().items()
        return {"binding": self.name, **{k: v for k, v in stated if k not in _NOT_RECORDED}}

    @classmethod
    def from_entry(cls, path: str, metadata: JsonObject) -> "Binding | None":
        """Return the binding that the vault's entry *path* is; None if it is none.

        One that came from a vault of upstream Aileron belongs to no bytes and no hosts yet.
        """
        if not _NAME.fullmatch(path):
            return None
        fields = cast("Mapping[str, Any]", metadata)
        old = cast("Mapping[str, Any]", fields.get("labels") or {})
        remembered = cast("Mapping[str, Any]", fields.get("remembered_for") or {})
        created = fields.get("created_at", old.get("created_at"))
        used = fields.get("last_used_at")
        return cls(
            name=path,
            connector=str(fields.get("connector", old.get("connector_fqn", ""))),
            connector_hash=str(fields.get("connector_hash", "")),
            hosts=_texts(fields.get("hosts")),
            account=str(fields.get("account", old.get("account", ""))),
            created_at=float(created) if isinstance(created, int | float) else 0.0,
            region=str(fields.get("region", "")),
            scopes=_texts(fields.get("scopes")),
            missing_scopes=_texts(fields.get("missing_scopes")),
            names=_texts(fields.get("names")),
            is_stale=fields.get("status") == "stale",
            last_used_at=float(used) if isinstance(used, int | float) else None,
            remembered_for=tuple(
                ActionFile(name=name, sha256=str(sha256))
                for name, sha256 in sorted(remembered.items())
            ),
        )


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values or ()))


def stored_bindings(vault: "Vault") -> tuple[Binding, ...]:
    """Return the bindings of *vault* by name; it may be locked."""
    found = (Binding.from_entry(*each) for each in vault.entries().items())
    return tuple(each for each in found if each is not None)


def binding_name(user: CredentialUser, identity: str) -> str:
    """Return `<kind>/<service>/<identity>`; the service is the connector's own name, in lower case.

    Raises:
        InvalidRequest: *identity* holds something else than lower-case letters, digits and `._-`.
    """
    if not _IDENTITY.fullmatch(identity):
        raise InvalidRequest(
            f"An identity has 1 to 64 lower-case letters, digits, dots, dashes and underscores, not "
            f"{identity[:80]!r}."
        )
    service = user.identity.fqn.split("/")[3].lower().replace("~", "-")
    service = service.strip("._-") or "service"
    return f"{user.requirement.kind}/{service}/{identity}"


def checked_account(account: str) -> str:
    """Return *account*, a person's own name for one.

    Raises:
        InvalidRequest: it is too long, or not printable.
    """
    if len(account) > _MAX_ACCOUNT or not (account.isprintable() or not account):
        raise InvalidRequest(f"An account's name has at most {_MAX_ACCOUNT} printable characters.")
    return account
