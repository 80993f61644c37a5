"""The JSON bodies of the routes: what is read and written, as types.

The OpenAPI document is generated from these (`openapi.py`), and requests are checked against them
(`request_parsing.py`): what a type cannot say (a bound, a default, a pattern) stands beside it in
`Annotated`, as `Keywords`. Times are RFC 3339 in UTC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict, get_args, get_origin

from aileron_core.actions.arguments import input_schema
from aileron_core.actions.model import Action
from aileron_core.canonical import Json, JsonObject
from aileron_core.errors import Problem
from aileron_core.proxy_settings import MAX_OPS, MAX_PLUGINS


@dataclass(frozen=True, slots=True)
class Keywords:
    """JSON Schema's keywords for a value besides its type, in snake case."""

    description: str | None = None
    _: KW_ONLY
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


def keywords_of(form: type) -> Mapping[str, Keywords]:
    """Return what each key of the TypedDict *form* is annotated with."""
    keywords: dict[str, Keywords] = {}
    for key, hint in form.__annotations__.items():
        value = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        keywords[key] = get_args(value)[1] if get_origin(value) is Annotated else Keywords()
    return keywords


WAIT_SECONDS = Keywords(minimum=0, maximum=60, default=0)
"""Of the `wait` of an approval's result."""
DIGEST_PATTERN = "^[0-9a-f]{64}$"

Time: TypeAlias = Annotated[str, Keywords(format="date-time")]
Digest: TypeAlias = Annotated[str, Keywords(pattern=DIGEST_PATTERN, min_length=64, max_length=64)]
Steps: TypeAlias = Annotated[
    Mapping[str, Json],
    Keywords(
        "The output of each step by its id, if the action has two or more steps.", min_properties=2
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


class AccountNeedBody(TypedDict):
    """Why a call waits for the vault or an account."""

    approval_id: str
    reason: Literal["locked", "settings", "unbound", "choice"]
    connector: str
    kind: str
    problem: Annotated[str, Keywords("Why the account that there is cannot be used.")]
    command: Annotated[str, Keywords("What a person types in a shell; empty if nothing.")]


class DeviceBody(TypedDict):
    """A browser or a console that a person paired, or that asks for it."""

    words: Annotated[Sequence[str], Keywords("Three, or none yet.")]
    kind: Literal["page", "console"]
    program: Annotated[str, Keywords("As the kernel knows it; empty where it does not.")]
    pid: int | None
    confirmed: bool


class StatusBody(TypedDict):
    """`GET /v1/status`."""

    running: Literal[True]
    url: str
    pid: int
    version: str
    pending: int
    sessions: int
    devices: Sequence[DeviceBody]
    account_needs: Annotated[
        Sequence[AccountNeedBody],
        Keywords("Of the first 50 calls that wait for the vault or an account."),
    ]
    vault: Literal["absent", "locked", "unlocked"]
    unattended: Annotated[bool, Keywords("The vault was unlocked by nobody's key.")]
    link_key: Annotated[str, Keywords("Of the console: makes a link that pairs a browser.")]


class PluginToolsBody(TypedDict):
    """Ops of one accepted connector that a session gets as tools."""

    plugin: Annotated[str, Keywords("The last word of the connector's name.", max_length=128)]
    expose: Annotated[Sequence[str], Keywords(max_items=MAX_OPS)]


class CheckPluginToolsBody(TypedDict):
    """What `POST /v1/plugin-tools` is sent."""

    plugin_tools: Annotated[Sequence[PluginToolsBody], Keywords(max_items=MAX_PLUGINS)]


class OpenSessionBody(TypedDict):
    """What `POST /v1/sessions` is sent."""

    agent: Annotated[str, Keywords(min_length=1, max_length=64)]
    cwd: Annotated[str, Keywords(max_length=4096)]
    label: NotRequired[Annotated[str, Keywords(max_length=128)]]
    pid: NotRequired[Annotated[int, Keywords(minimum=1, maximum=2**31)]]
    ttl_seconds: NotRequired[
        Annotated[float, Keywords(minimum=1, maximum=30 * 86400, default=86400)]
    ]
    launched: NotRequired[Annotated[bool, Keywords(default=False)]]
    contained: NotRequired[Annotated[bool, Keywords(default=False)]]
    key_providers: NotRequired[
        Annotated[
            Sequence[str],
            Keywords(
                "Providers whose keys in the vault its model requests may use, where there are any.",
                max_items=3,
            ),
        ]
    ]
    augment: NotRequired[
        Annotated[
            bool,
            Keywords(
                "Its model gets Aileron's tools through the gateway; only with `launched`.",
                default=False,
            ),
        ]
    ]
    base_url: NotRequired[
        Annotated[
            str,
            Keywords(
                "Where its model requests go; only with `augment`, without `key_providers`.",
                max_length=2048,
            ),
        ]
    ]
    builtins: NotRequired[
        Annotated[
            Literal["beside", "instead"],
            Keywords("It has the built-in tools, beside its agent's own or instead of them."),
        ]
    ]
    plugin_tools: NotRequired[
        Annotated[
            Sequence[str],
            Keywords(
                "Ops of accepted connectors that it gets as tools, as `plugin.op`; only with `launched`.",
                max_items=MAX_PLUGINS * MAX_OPS,
            ),
        ]
    ]
    own_servers: NotRequired[
        Annotated[
            Sequence[str],
            Keywords(
                "MCP servers of its agent's own that Aileron has too and that it starts.",
                max_items=64,
            ),
        ]
    ]
    network: NotRequired[
        Annotated[
            Literal["all", "hosts", "offline"],
            Keywords("What a contained session's sandbox reaches."),
        ]
    ]
    hosts: NotRequired[
        Annotated[Sequence[str], Keywords("With `hosts`: which, as `name:port`.", max_items=256)]
    ]
    writes: NotRequired[
        Annotated[Sequence[str], Keywords("What it can write besides its folder.", max_items=64)]
    ]


class OpenedSessionBody(TypedDict):
    """What `POST /v1/sessions` answers; the only answer with the tokens."""

    session_id: str
    token: str
    gateway_token: str
    url: str
    expires_at: Time
    socket: NotRequired[
        Annotated[str, Keywords("The session's own socket, if the session is contained.")]
    ]
    key_providers: NotRequired[
        Annotated[Sequence[str], Keywords("Those of the providers asked for that have a key.")]
    ]
    placeholder: NotRequired[
        Annotated[str, Keywords("What the agent sends in place of those keys.")]
    ]


class RefusedHostBody(TypedDict):
    """What `POST /v1/sessions/{id}/refused-hosts` is sent."""

    host: Annotated[str, Keywords("Name and port, as NAME:PORT.", min_length=1, max_length=1100)]
    problem: NotRequired[
        Annotated[
            str,
            Keywords(
                "Why it cannot be allowed; empty where it is merely not listed.", max_length=600
            ),
        ]
    ]


class AcceptProjectBody(TypedDict):
    """What `POST /v1/projects` is sent."""

    agent: Annotated[str, Keywords(min_length=1, max_length=64)]
    path: Annotated[str, Keywords(min_length=1, max_length=4096, pattern="^/")]
    digest: Digest
    missing_checks: NotRequired[
        Annotated[
            bool,
            Keywords(
                "`path` is the person's home, `digest` that of checks which do not run.",
                default=False,
            ),
        ]
    ]


class ProjectBody(TypedDict):
    """A project whose own settings a person accepted for launches of one agent."""

    agent: str
    path: str
    digest: str
    taken_at: Time


class ProjectsBody(TypedDict):
    """`GET /v1/projects`."""

    items: Sequence[ProjectBody]
    settings: str | None
    """SHA-256 of the `config.toml` that counts, empty where none does; null without a vault."""


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


def load_error(problem: Problem) -> LoadErrorBody:
    return {
        "file": problem.file,
        "line": problem.line,
        "key": problem.key,
        "class": problem.class_,
        "message": problem.message,
    }


class ActionsBody(TypedDict):
    """`GET /v1/actions`."""

    items: Sequence[ActionBody]
    load_errors: Sequence[LoadErrorBody]


class PluginToolProblemsBody(TypedDict):
    """Why a session would not get the tools that were asked about."""

    problems: Sequence[LoadErrorBody]


class ToolsBody(TypedDict):
    """What `POST /v1/sessions/{id}/tools` is sent: what the workers can do."""

    files: JsonObject
    commands: JsonObject


class ToolResultBody(TypedDict):
    """What `POST /v1/sessions/{id}/tool-results` is sent."""

    worker: Annotated[str, Keywords("`files` or `commands`: who answered.", max_length=16)]
    frame: JsonObject


class RunBody(TypedDict):
    """What `POST /v1/actions/{name}/run` is sent."""

    args: JsonObject
    idempotency_key: NotRequired[Annotated[str, Keywords(min_length=1, max_length=128)]]


DigestWords: TypeAlias = Annotated[Sequence[str], Keywords(min_items=3, max_items=3)]


class EditedBody(TypedDict):
    """What a person changed of a call's arguments before they approved it."""

    changed: Annotated[Sequence[str], Keywords("The names of the arguments.")]
    args: Annotated[JsonObject, Keywords("All arguments as they were used.")]


OfServer: TypeAlias = Annotated[
    Literal[True],
    Keywords("With a tool of an MCP server: `output` is the result that it returned."),
]


class CompletedBody(TypedDict):
    """A run that is over, and what it returned."""

    status: Literal["completed"]
    audit_id: str
    output: Json
    steps: NotRequired[Steps]
    action: NotRequired[str]
    """With a built-in tool."""
    of_server: NotRequired[OfServer]
    digest_words: NotRequired[DigestWords]
    edited_by_person: NotRequired[EditedBody]


WaitsFor: TypeAlias = Annotated[
    str, Keywords("For a sentence: `a person's approval`, `the vault`, `an account`.")
]


class PendingBody(TypedDict):
    """A run that waits for a person."""

    status: Literal["pending_approval"]
    approval_id: str
    review_url: str
    message: str
    audit_id: str
    expires_at: Time | None
    waits_for: WaitsFor


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
            Sequence[str], Keywords("The ids of the steps that finished before the run halted.")
        ]
    ]
    waits_for: NotRequired[WaitsFor]
    digest_words: NotRequired[DigestWords]
    reason: NotRequired[str | None]
    failure: NotRequired[FailureBody | None]
    edited_by_person: NotRequired[EditedBody]
    of_server: NotRequired[OfServer]


class WithdrawBody(TypedDict):
    """What `POST /v1/action-approvals/{id}/withdraw` is sent."""

    reason: NotRequired[Annotated[str, Keywords(max_length=2000)]]
