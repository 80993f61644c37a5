"""Every exception that Aileron raises on purpose, and whether trying again may help.

Their class names on the wire are listed in `docs/wire.md#errors`; the HTTP status of each stands
in one table, `aileron_core.server.error_responses`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Literal

SERVER_RESULT: Final = "server_result"
"""In the details of a failure: what an MCP server's tool returned that says itself that it failed."""

Boundary = Literal["gate", "sandbox", "connector_manifest", "action", "runtime", "external"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The inner object of the one error body: as agents, the person and the audit see it."""

    class_: str
    message: str
    retriable: bool = False
    boundary: str = "gate"
    audit_id: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """Return the object under `error` on the wire."""
        body = {each.name.rstrip("_"): getattr(self, each.name) for each in fields(self)}
        return body | {"details": dict(self.details)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Failure":
        """Read what `to_json` wrote (a stored failure)."""
        return cls(
            class_=str(body["class"]),
            message=str(body["message"]),
            retriable=bool(body["retriable"]),
            boundary=str(body["boundary"]),
            audit_id=body.get("audit_id"),
            details=dict(body.get("details") or {}),
        )


class AileronError(Exception):
    """Base of all; never raised itself. `message` says what failed, on what, and what to do next."""

    class_: ClassVar[str] = "internal_error"
    boundary: str = "gate"
    retriable: bool = False

    def __init_subclass__(
        cls,
        *,
        class_: str | None = None,
        boundary: Boundary | None = None,
        retriable: bool | None = None,
    ) -> None:
        """Take these from the class statement; what it leaves out is inherited."""
        super().__init_subclass__()
        cls.class_ = cls.class_ if class_ is None else class_
        cls.boundary = cls.boundary if boundary is None else boundary
        cls.retriable = cls.retriable if retriable is None else retriable

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        boundary: Boundary | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        if boundary is not None:
            self.boundary = boundary

    def to_failure(self, audit_id: str | None = None) -> Failure:
        return Failure(
            class_=self.class_,
            message=self.message,
            retriable=self.retriable,
            boundary=self.boundary,
            audit_id=audit_id,
            details=self.details,
        )


class InvalidRequest(AileronError, class_="invalid_request"):
    """The request is not of the route's form."""


class InvalidArguments(AileronError, class_="invalid_arguments"):
    """Arguments do not fit the action's inputs; `details.problems` lists each."""


class Unauthorized(AileronError, class_="unauthorized"):
    """No token, or one that opens nothing here."""


class Forbidden(AileronError, class_="forbidden"):
    """A valid token that may not do this."""


class NotFound(AileronError, class_="not_found"):
    """It does not exist, or belongs to another session: the caller cannot tell which."""


class Conflict(AileronError, class_="conflict"):
    """The state does not allow it; `details.outcome` names the state that won."""


class PayloadTooLarge(AileronError, class_="payload_too_large"):
    """A body over the limit."""


class RateLimited(AileronError, class_="rate_limited", retriable=True):
    """Too many at once or per minute for this session."""


class Unavailable(AileronError, class_="unavailable", retriable=True):
    """Nothing ran; it may work later."""


class StorageUnavailable(Unavailable):
    """The database or the audit cannot be written, so nothing may run."""


class OwnerLost(Unavailable):
    """Another console owns the home now; this one has stopped writing."""


class ConsoleUnavailable(Unavailable):
    """No console holds the home."""


class ConsoleErrorResponse(AileronError):
    """The console answered with an error; `failure` is that error."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, details=failure.details)
        self.failure = failure


class Paused(Unavailable):
    """A person holds all calls."""


class VaultLocked(Unavailable):
    """The vault has to be unlocked first."""

    def __init__(self, message: str = "") -> None:
        super().__init__(
            message
            or "The vault is locked. Unlock it in the console, or with `aileron vault unlock`."
        )


class VaultAbsent(Conflict):
    """There is no vault yet."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "There is no vault. Create one with `aileron vault init`.")


class VaultDamaged(Conflict):
    """The vault's file cannot be used; the message names the file."""


class KeyringUnavailable(Unavailable):
    """The keyring of the operating system does not do what was asked."""


class WrongPassphrase(Forbidden):
    """The passphrase does not open the vault."""

    def __init__(self, attempts: int, wait_seconds: float) -> None:
        again = f" Try again in {wait_seconds:.0f} s." if wait_seconds else " Try again."
        count = "" if attempts == 1 else f" This was wrong passphrase number {attempts}."
        super().__init__(
            f"That is not the vault's passphrase.{count}{again}",
            details={"attempts": attempts, "wait_seconds": wait_seconds},
        )
        self.attempts = attempts
        """Wrong ones since the vault was last unlocked, over restarts."""
        self.wait_seconds = wait_seconds
        """Until when the next attempt is refused unseen."""


class OpFailed(AileronError, class_="connector_runtime_error", boundary="runtime"):
    """An op ended in failure; each subclass has a class name of `docs/wire.md#errors`."""


class CapabilityDenied(OpFailed, class_="capability_denied", boundary="sandbox"):
    """The op, host or credential is not among what was granted."""


class BindingRequired(OpFailed, class_="binding_required", boundary="action"):
    """A credential is needed and none is bound."""


class BindingFailed(OpFailed, class_="binding_failed"):
    """A bound credential could not be used."""


class ResourceLimitExceeded(OpFailed, class_="resource_limit_exceeded", boundary="sandbox"):
    """Wall time, memory or output over its limit; `details` has limit and configured."""


class ConnectorRuntimeError(OpFailed):
    """The connector trapped, printed nonsense or said so itself."""


class MissingValue(OpFailed, boundary="action"):
    """A step's output has no value where a later step's inputs name one; that step was not run."""


class NetworkError(OpFailed, class_="network_error", boundary="external", retriable=True):
    """The host could not reach the service."""


class ExternalApiError(OpFailed, class_="external_api_error", boundary="external"):
    """The service answered with an error; retriable for 429 and 5xx."""

    def __init__(self, message: str, *, status: int | None = None, **kwargs: Any) -> None:
        super().__init__(message, **kwargs)
        if status is not None:
            self.details["status"] = status
            self.retriable = status == 429 or 500 <= status <= 599


class ModelFormatError(AileronError, class_="external_api_error", boundary="external"):
    """A request to a model, or its answer, is not of the provider's format, or over a limit."""


class HashMismatch(OpFailed, class_="hash_mismatch"):
    """Bytes on disk are not those that were accepted."""


class OutcomeUnknown(OpFailed, class_="outcome_unknown"):
    """A request was sent and its outcome is not known: it may have had its effect."""


class InternalError(AileronError):
    """A bug in Aileron."""


class IllegalTransition(InternalError):
    """An event that the table does not allow in this state; nothing was changed."""


class UnrecordedChange(InternalError):
    """A unit of work changed rows and recorded nothing; it was rolled back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a file, with its place (line and column from 1; 0 where unknown)."""

    file: str
    message: str
    class_: str = "validation_error"
    severity: Literal["error", "warning"] = "error"
    line: int = 0
    column: int = 0
    key: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return one entry of an error body's `problems`."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "key": self.key,
            "severity": self.severity,
            "class": self.class_,
            "message": self.message,
        }

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class FileProblems(AileronError, class_="validation_error"):
    """A file that cannot be used, with every problem found in it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = tuple(problems)
        self.class_ = problems[0].class_ if problems else "validation_error"  # type: ignore[misc]


class HomeError(AileronError, class_="unavailable"):
    """The home folder cannot be used; the message says whose it is or what is wrong with it."""


class ServerStartError(AileronError, class_="unavailable"):
    """The listener could not be started."""
