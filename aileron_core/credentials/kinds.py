"""The kinds of credential, each as the headers that it adds to a request. No I/O but the clock of a signature.

What a kind needs is read from the vault for one call, and gone with it.
"""

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from aileron_core.clock import Clock
from aileron_core.connectors.protocol import RequestToSign
from aileron_core.credentials.sigv4 import AwsKeys, aws_region, sign
from aileron_core.errors import BindingFailed, VaultLocked
from aileron_core.vault.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key, or an OAuth 2 access token (RFC 6750): `Authorization: Bearer KEY` unless the manifest says otherwise."""

    secret: Secret
    hosts: frozenset[str]
    header: str = "Authorization"
    format: str = "Bearer {key}"
    kind: Literal["api_key", "oauth2"] = "api_key"

    def headers(self, request: RequestToSign) -> Mapping[str, str]:
        return {self.header: self.format.replace("{key}", _header_text(self.secret))}

    def secrets(self) -> Sequence[bytes]:
        return [self.secret.reveal()]


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicPassword:
    """A user name and a password (RFC 7617)."""

    user: str
    password: Secret
    hosts: frozenset[str]
    kind: str = "basic"

    def headers(self, request: RequestToSign) -> Mapping[str, str]:
        return {"Authorization": f"Basic {base64.b64encode(self._pair()).decode()}"}

    def secrets(self) -> Sequence[bytes]:
        return [self.password.reveal(), self._pair()]

    def _pair(self) -> bytes:
        return f"{self.user}:".encode() + self.password.reveal()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSignature:
    """An AWS access key, which signs each request (Signature Version 4); the region is that of the host."""

    keys: AwsKeys
    service: str
    hosts: frozenset[str]
    clock: Clock = field(repr=False)
    region: str = ""
    """Where the host names none."""
    kind: str = "aws_sigv4"
    _signatures: list[bytes] = field(default_factory=list[bytes], repr=False, compare=False)
    """Of the requests so far: each lets whoever has it send that very request again for some minutes."""

    def headers(self, request: RequestToSign) -> Mapping[str, str]:
        region = aws_region(request.host) or self.region
        if not region:
            raise BindingFailed(
                f"{request.host} names no AWS region, and neither does the account. Bind it again "
                "with --region."
            )
        if self.keys.session_token is not None:
            _header_text(self.keys.session_token)
        _header_text(Secret(self.keys.access_key_id))
        signed = sign(request, self.keys, service=self.service, region=region, now=self.clock.now())
        self._signatures.append(signed["Authorization"].rpartition("=")[2].encode())
        return signed

    def secrets(self) -> Sequence[bytes]:
        token = self.keys.session_token
        temporary = [token.reveal()] if token else []
        return [self.keys.secret.reveal(), *temporary, *self._signatures]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentValues:
    """The values that an MCP server is started with, and then holds itself. Aileron adds none to a request."""

    values: Mapping[str, Secret]
    hosts: frozenset[str]
    kind: str = "environment"

    def headers(self, request: RequestToSign) -> Mapping[str, str]:
        return {}

    def secrets(self) -> Sequence[bytes]:
        return [each.reveal() for each in self.values.values()]


AccountCredential: TypeAlias = ApiKey | BasicPassword | AwsSignature | EnvironmentValues
_NOT_ACCEPTED_BY_AWS = (
    *(b"ExpiredToken", b"InvalidClientTokenId", b"UnrecognizedClientException"),
    b"InvalidAccessKeyId",
)
"""Not that a signature is wrong: this machine's clock may be."""


@dataclass(slots=True)
class CheckedCredential:
    """A credential of which each use is checked right before."""

    credential: AccountCredential = field(repr=False)
    check: Callable[[], None] = field(repr=False)
    is_refused: bool = False
    """Whether the service said, in its last answer, that it does not accept it."""

    @property
    def kind(self) -> str:
        return self.credential.kind

    @property
    def hosts(self) -> Collection[str]:
        return self.credential.hosts

    def headers(self, request: RequestToSign) -> Mapping[str, str]:
        """Raises BindingFailed also where the vault was locked meanwhile."""
        self._require_current()
        return self.credential.headers(request)

    def environment(self) -> Mapping[str, str]:
        """Raises as `headers` does."""
        if not isinstance(self.credential, EnvironmentValues):
            return {}
        self._require_current()
        return {name: each.reveal_text() for name, each in self.credential.values.items()}

    def _require_current(self) -> None:
        try:
            self.check()
        except VaultLocked:
            raise BindingFailed(
                "The vault was locked while the call was running. No further request was sent."
            ) from None

    def secrets(self) -> Sequence[bytes]:
        return self.credential.secrets()

    def note_answer(self, status: int, body: bytes) -> None:
        self.is_refused = status == 401 or (
            self.kind == "aws_sigv4"
            and status in (400, 403)
            and any(code in body for code in _NOT_ACCEPTED_BY_AWS)
        )


def parse_json_secret(secret: Secret) -> dict[str, Any]:
    """Return the object that a kind of several parts is stored as.

    Raises:
        BindingFailed: it is none. The message quotes nothing of it.
    """
    try:
        value: Any = json.loads(secret.reveal())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BindingFailed(
            "This account's entry in the vault cannot be read. Bind it again."
        ) from None
    return cast("dict[str, Any]", value)


def _header_text(secret: Secret) -> str:
    """Return *secret* as one line of a header.

    Raises:
        BindingFailed: it holds a line break or a character that no header may hold.
    """
    value = secret.reveal()
    if not value or any(byte < 0x20 or byte > 0x7E for byte in value):
        raise BindingFailed(
            "The key holds a character that cannot be sent in a header. Bind the account again."
        )
    return value.decode("ascii")
