"""The JSON bodies of the routes: what is read and written, as types.

The OpenAPI document is generated from these (`openapi.py`), and requests are checked against them
(`request_parsing.py`): what a type cannot say (a bound, a default, a pattern) stands beside it in
`Annotated`, as `SchemaKeywords`. Times are RFC 3339 in UTC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Literal,
    NotRequired,
    TypeAlias,
    TypedDict,
    get_args,
    get_origin,
)

from aileron_core.actions.arguments import input_schema
from aileron_core.actions.model import Action
from aileron_core.canonical import Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaKeywords:
    """JSON Schema's keywords for a value besides its type, in snake case."""

    description: str | None = None
    format: str | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    default: float | bool | None = None


def keywords_of(form: type) -> Mapping[str, SchemaKeywords]:
    """Return what each key of the TypedDict *form* is annotated with."""
    keywords: dict[str, SchemaKeywords] = {}
    for key, hint in form.__annotations__.items():
        value = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        keywords[key] = get_args(value)[1] if get_origin(value) is Annotated else SchemaKeywords()
    return keywords


WAIT_SECONDS = SchemaKeywords(minimum=0, maximum=60, default=0)
"""Of the `wait` of an approval's result."""
DIGEST_PATTERN = "^[0-9a-f]{64}$"

Time: TypeAlias = Annotated[str, SchemaKeywords(format="date-time")]
Digest: TypeAlias = Annotated[
    str, SchemaKeywords(pattern=DIGEST_PATTERN, min_length=64, max_length=64)
]
Steps: TypeAlias = Annotated[
    Mapping[str, Json],
    SchemaKeywords(
        description="The output of each step by its id, if the action has two or more steps.",
        min_properties=2,
    ),
]

# Keys that are no names in Python need the other spelling of a TypedDict.
FailureBody = TypedDict(
    "FailureBody",
    {
        "class": str,
        "message": str,
        "retriable": bool,
        "boundary": str,
        "audit_id": str | None,
        "details": JsonObject,
    },
)
"""What went wrong: the inner object of `ErrorBody`, and of the result of a run that failed."""


class ErrorBody(TypedDict):
    """The one error body."""

    error: FailureBody


class HealthBody(TypedDict):
    """`GET /v1/health`."""

    status: Literal["ok"]
    proof: NotRequired[str]


class StatusBody(TypedDict):
    """`GET /v1/status`."""

    running: Literal[True]
    url: str
    pid: int
    version: str
    pending: int
    sessions: int


class OpenSessionBody(TypedDict):
    """What `POST /v1/sessions` is sent."""

    agent: Annotated[str, SchemaKeywords(min_length=1, max_length=64)]
    cwd: Annotated[str, SchemaKeywords(max_length=4096)]
    label: NotRequired[Annotated[str, SchemaKeywords(max_length=128)]]
    pid: NotRequired[Annotated[int, SchemaKeywords(minimum=1, maximum=2**31)]]
    ttl_seconds: NotRequired[
        Annotated[float, SchemaKeywords(minimum=1, maximum=30 * 86400, default=86400)]
    ]
    launched: NotRequired[Annotated[bool, SchemaKeywords(default=False)]]
    contained: NotRequired[Annotated[bool, SchemaKeywords(default=False)]]


class OpenedSessionBody(TypedDict):
    """What `POST /v1/sessions` answers; the only answer with the tokens."""

    session_id: str
    token: str
    gateway_token: str
    url: str
    expires_at: Time
    socket: NotRequired[
        Annotated[
            str,
            SchemaKeywords(description="The session's own socket, if the session is contained."),
        ]
    ]


class AcceptProjectBody(TypedDict):
    """What `POST /v1/projects` is sent."""

    agent: Annotated[str, SchemaKeywords(min_length=1, max_length=64)]
    path: Annotated[str, SchemaKeywords(min_length=1, max_length=4096, pattern="^/")]
    digest: Digest


class ProjectBody(TypedDict):
    """A project whose own settings a person accepted for launches of one agent."""

    agent: str
    path: str
    digest: str
    taken_at: Time


class ProjectsBody(TypedDict):
    """`GET /v1/projects`."""

    items: Sequence[ProjectBody]


class ActionBody(TypedDict):
    """An accepted action."""

    name: str
    tool: str
    version: str
    description: str
    gated: bool
    input_schema: JsonObject


def action_body(action: Action) -> ActionBody:
    return {
        "name": action.name,
        "tool": action.tool_name,
        "version": action.version,
        "description": action.description,
        "gated": action.gated,
        "input_schema": input_schema(action),
    }


LoadErrorBody = TypedDict(
    "LoadErrorBody", {"file": str, "line": int, "key": str, "class": str, "message": str}
)
"""A problem in a file that cannot be used as it is."""


class ActionsBody(TypedDict):
    """`GET /v1/actions`."""

    items: Sequence[ActionBody]
    load_errors: Sequence[LoadErrorBody]


class RunBody(TypedDict):
    """What `POST /v1/actions/{name}/run` is sent."""

    args: JsonObject
    idempotency_key: NotRequired[Annotated[str, SchemaKeywords(min_length=1, max_length=128)]]


class CompletedBody(TypedDict):
    """A run that is over, and what it returned."""

    status: Literal["completed"]
    audit_id: str
    output: Json
    steps: NotRequired[Steps]


class PendingBody(TypedDict):
    """A run that waits for a person."""

    status: Literal["pending_approval"]
    approval_id: str
    review_url: str
    message: str
    audit_id: str
    expires_at: Time | None


AgentStatus: TypeAlias = Literal[
    "pending_approval", "completed", "denied", "expired", "withdrawn", "failed", "unknown"
]


class ResultBody(TypedDict):
    """The state of one of the session's approvals, without the preview that the person sees."""

    status: AgentStatus
    approval_id: str
    action: str
    audit_id: str
    requested_at: Time
    expires_at: Time | None
    output: NotRequired[Json]
    steps: NotRequired[Steps]
    completed_steps: NotRequired[
        Annotated[
            Sequence[str],
            SchemaKeywords(description="The ids of the steps that finished before the run halted."),
        ]
    ]
    digest_words: NotRequired[Annotated[Sequence[str], SchemaKeywords(min_items=3, max_items=3)]]
    reason: NotRequired[str | None]
    failure: NotRequired[FailureBody | None]


class WithdrawBody(TypedDict):
    """What `POST /v1/action-approvals/{id}/withdraw` is sent."""

    reason: NotRequired[Annotated[str, SchemaKeywords(max_length=2000)]]
