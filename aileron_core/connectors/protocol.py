"""The interface of connectors (today WASM modules), which provide the ops of actions; the limits of one call."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, Required, TypeAlias, TypedDict, Unpack

from aileron_core.actions.model import ConnectorIdentity
from aileron_core.canonical import Json, JsonObject
from aileron_core.errors import Failure

if TYPE_CHECKING:
    from aileron_core.connectors.stop_request import StopRequest

CredentialKind: TypeAlias = Literal["api_key", "oauth2", "aws_sigv4", "basic", "environment"]
MIB = 1024 * 1024
ACCOUNT = "ACCOUNT"
"""Stands for an account's name in what an agent is answered with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one call. Times in seconds, sizes in bytes or MiB as named."""

    wall_seconds: float = 30.0
    memory_mib: int = 64
    stdout_bytes: int = 8 * MIB
    stderr_bytes: int = 64 * 1024
    response_bytes: int = 16 * MIB
    http_seconds: float = 20.0
    redirects: int = 5
    requests: int = 1000
    """How many requests a guest may ask the host for, refused ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpResult:
    """How one call of an op ended: `output` if `failure` is None, and which requests had been sent."""

    output: Json = None
    failure: Failure | None = None
    requests_sent: int = 0
    """Requests of any method, counted once a byte may have reached the service."""
    writes_sent: int = 0
    """Those of them that may change something: any method but GET and HEAD."""
    writes_unanswered: int = 0
    """Those of the writes for which no complete response arrived."""
    writes_unsettled: int = 0
    """Those whose response leaves open what they did (docs/states.md#what-an-answer-says)."""
    writes_refused: int = 0
    """Those whose response says that they did nothing."""
    writes_deferred: int = 0
    """Those of the refused ones that the service may have room for later."""
    reported_by_connector: bool = False
    """Whether the failure was reported by the connector itself, not observed by the host."""
    last_status: int | None = None
    """The last HTTP status that the host saw in this call."""
    hosts_asked: tuple[str, ...] = ()
    """The `host:port` of every request sent, redirects included, in order without duplicates."""
    last_status_host: str = ""
    """The `host:port` that gave `last_status`."""
    refused_reads: tuple[str, ...] = ()
    """What a preview tried to read by POST and nobody accepted, as `posted_reads` names it."""
    unanswered_host: str = ""
    """The `host:port` that had not responded, or failed to, by the end of the call."""
    undo: str = ""
    """What a worker takes this back by, as `WORKER:NAME`, or `WORKER:NAME@WORKERS` where these are not the session's.

    Empty where nothing can.
    """

    @property
    def is_deferred(self) -> bool:
        """Whether every write was refused, and one of them until later."""
        return self.writes_deferred > 0 and self.writes_sent == self.writes_refused

    @property
    def is_effect_unknown(self) -> bool:
        """Return whether nobody knows what a call that failed did at the service.

        Each write is judged by its own answer, whatever was read after it. One that was taken leaves
        no doubt where the connector itself then said that the op failed.
        """
        open_writes = self.writes_unanswered + self.writes_unsettled
        is_taken = self.writes_sent > self.writes_refused
        return open_writes > 0 or (is_taken and not self.reported_by_connector)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`--route HOST:PORT=ADDRESS:PORT`: where requests to one host are sent instead, in plain HTTP, without credential."""

    host: str
    """`host:port` as manifests list it, lower case."""
    address: str
    port: int


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
    names: tuple[str, ...] = ()
    """Of an MCP server's values, in the order of its manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestToSign:
    """A request as it is about to be written, for a credential that depends on it."""

    method: str
    host: str
    """The Host header."""
    path: str = field(repr=False)
    """Path and query as they stand in the request line."""
    headers: Mapping[str, str] = field(repr=False)
    """Those that the connector set."""
    body: bytes = field(repr=False)


class Credential(Protocol):
    """A bound account's credential, as one call uses it. The guest never sees it."""

    @property
    def kind(self) -> str:
        """Return its kind, as manifests name it."""
        ...

    @property
    def hosts(self) -> Collection[str]:
        """Return the `host:port` entries that it may be sent to."""
        ...

    def headers(self, request: RequestToSign) -> Mapping[str, str]:
        """Return the headers to add to *request*. Called on a worker thread, right before it is sent.

        Raises:
            BindingFailed: it cannot be used for this request.
        """
        ...

    def environment(self) -> Mapping[str, str]:
        """Return the values that an MCP server is started with, by name; empty for every other kind.

        Raises:
            BindingFailed: it cannot be used any more.
        """
        ...

    def secrets(self) -> Sequence[bytes]:
        """Return what must not come back in an answer, signatures of the requests so far included."""
        ...

    def note_answer(self, status: int, body: bytes) -> None:
        """Note how the service answered a request that carried it. Called on the same thread."""
        ...


def for_person(failure: Failure, text: str, account: str) -> str:
    """Return *text*, which tells *failure*, with the name of the *account*: an agent is not told it."""
    is_about_it = "binding_failed" in (failure.class_, failure.details.get("cause"))
    return text.replace(ACCOUNT, account) if is_about_it and account else text


class Connector(Protocol):
    """An accepted connector."""

    @property
    def identity(self) -> ConnectorIdentity:
        """Return whose it is, which version, which bytes."""
        ...

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the `host:port` entries that its manifest lists, sorted."""
        ...

    def hosts_for(self, args: JsonObject) -> tuple[str, ...]:
        """Return those of `hosts` that a call with *args* can reach; the sandbox enforces it."""
        ...

    @property
    def credential_requirement(self) -> CredentialRequirement | None:
        """Return the credential that its manifest asks for; None if it asks for none."""
        ...

    @property
    def account(self) -> str:
        """Return the name of the binding whose credential its calls carry, empty if they carry none."""
        ...

    @property
    def consented_account(self) -> JsonObject | None:
        """Return what a person's yes covers of that binding; None if its calls carry none."""
        ...

    @property
    def prepared(self) -> bool:
        """Return whether a call can begin at once."""
        ...

    async def prepare(self, *, background: bool = False) -> None:
        """Do in advance what the first call would have to wait for, such as compiling.

        Args:
            background: beside what somebody waits for.

        Raises:
            AileronError: it failed; a call fails in the same way.
        """
        ...

    async def call(
        self,
        op: str,
        args: JsonObject,
        *,
        limits: Limits,
        read_only: bool = False,
        accepted_reads: Collection[str] = (),
        credential: Credential | None = None,
        on_request: Callable[[], None] | None = None,
        stop: "StopRequest | None" = None,
    ) -> OpResult:
        """Run *op* once and return how it ended. Never raises for what the connector or the service did.

        Args:
            args: its arguments, already interpolated.
            read_only: a preview: only GET, HEAD and accepted reads by POST are sent; anything else
                is `capability_denied`.
            accepted_reads: what a person accepted as reads by POST, as `posted_reads` names it.
            credential: added to the requests that name its kind, and removed from every answer.
            on_request: called (from any thread) just before the first byte of each request may be
                sent.
            stop: ends the call at once when it is made, with the failure of `stopped_by_person`.

        Raises:
            HashMismatch: the bytes in the store no longer match `identity`.
            asyncio.CancelledError: the call was cancelled; by then the guest has been stopped.
        """
        ...


class CallOptions(TypedDict, total=False):
    """The arguments of `Connector.call` that a connector around another one passes on."""

    limits: Required[Limits]
    read_only: bool
    accepted_reads: Collection[str]
    credential: Credential | None
    on_request: Callable[[], None] | None
    stop: "StopRequest | None"


class WrappedConnector:
    """A connector that is *inner*, but for what a subclass does otherwise."""

    def __init__(self, inner: Connector) -> None:
        self.inner = inner

    @property
    def identity(self) -> ConnectorIdentity:
        return self.inner.identity

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.inner.hosts

    def hosts_for(self, args: JsonObject) -> tuple[str, ...]:
        return self.inner.hosts_for(args)

    @property
    def credential_requirement(self) -> CredentialRequirement | None:
        return self.inner.credential_requirement

    @property
    def account(self) -> str:
        return self.inner.account

    @property
    def consented_account(self) -> JsonObject | None:
        return self.inner.consented_account

    @property
    def prepared(self) -> bool:
        return self.inner.prepared

    async def prepare(self, *, background: bool = False) -> None:
        await self.inner.prepare(background=background)

    def call_ended(self) -> None:
        """Drop what only a call that goes on needs."""

    async def call(self, op: str, args: JsonObject, **how: Unpack[CallOptions]) -> OpResult:
        return await self.inner.call(op, args, **how)


MAX_DEPTH: Final = 200
"""Levels of an op's output: a row, the digest and an agent's reader have to bear it too."""

# Level by level and scalars first: an output may hold a million values, and a loop waits for this.
_SCALARS = (str, int, float, type(None))


def is_deeper_than(levels: int, value: Json) -> bool:
    """Return whether objects and arrays in *value* are nested more than *levels* deep."""
    level = [] if isinstance(value, _SCALARS) else [value]
    for _ in range(levels):
        if not level:
            return False
        level = [
            item
            for container in level
            for item in (
                container.values() if isinstance(container, (dict, Mapping)) else container
            )
            if not isinstance(item, _SCALARS)
        ]
    return bool(level)


def is_small(value: Json, max_values: int = 2_000) -> bool:
    """Return whether *value* has at most *max_values* values, and at most 64 times as many characters in its strings.

    A small value may be processed on the event loop; anything else would delay other calls.
    """
    remaining, characters, stack = max_values, 64 * max_values, [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            characters -= len(item)
        elif not isinstance(item, _SCALARS):
            remaining -= len(item)
            if remaining < 0:
                return False
            stack.extend(item.values() if isinstance(item, Mapping) else item)
        if characters < 0:
            return False
    return True
