"""The plan of a launch, and what each agent's module has to say: values only, which the launcher carries out.

A plan is pure: it names programs, flags, environment and files but reads and writes nothing. Every
recipe was tried with the real agent; `Agent.tested_versions` lists the versions.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, cast

Rows = Mapping[str, Sequence[dict[str, Any]]]
"""Of one conversation, by table: what an agent wrote."""

IN_PROJECT = (
    "CASE WHEN instr({0}, :project || '/') = 1 AND NOT instr({0}, '/..') THEN {0} ELSE :project END"
)
"""An expression for a column with a folder: as it is if it is in the project, else the project."""
MCP_SERVER_NAME = "aileron"
"""The name under which an agent knows Aileron's MCP server."""
CALL_SECONDS = 600
"""How long one tool call may take; set where the agent has a setting."""
LONG_CALLS = f"A call can take up to {CALL_SECONDS} seconds."
ITS_OWN_TOOLS = "Its shell and file tools: in the sandbox they can reach the project; without it, everything you can."

Builtins = Literal["off", "beside", "instead"]
"""Aileron's built-in tools in a session: none, besides the agent's own tools, or instead of those."""

ProviderName = Literal["anthropic", "openai", "gemini"]
"""A provider of models whose API the gateway passes on."""
PROVIDER_NAMES: Mapping[str, ProviderName] = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "gemini",
}
"""The name that OpenCode and Pi give a provider -> the provider whose API it uses."""
CLOUDS = (
    "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL*", "AWS_USE_*_ENDPOINT",
    "AWS_BEDROCK_*", "AZURE_OPENAI_*", "AZURE_COGNITIVE_SERVICES_*", "AZURE_API_KEY", "AZURE_RESOURCE_NAME",
    "CLOUD_ML_REGION", "GCLOUD_PROJECT", "GCP_LOCATION", "GCP_PROJECT*", "GOOGLE_CLOUD_*", "GOOGLE_VERTEX_*",
    "VERTEX_*",
)  # fmt: skip
"""A key for models alone, project, region and address."""
CLOUD_LOGINS = ("AWS_*", "AZURE_*", "CLOUDSDK_*", "GOOGLE_APPLICATION_CREDENTIALS")
"""What else of them an agent may log in with."""
PROVIDERS = (
    "302AI_*", "AI_GATEWAY_*", "AIHUBMIX_*", "ALIBABA_*", "ANTHROPIC_*", "ANT_LING_*", "AVIAN_*", "BASETEN_*",
    "CEREBRAS_*", "CHUTES_*", "COHERE_*", "DASHSCOPE_*", "DEEPINFRA_*", "DEEPSEEK_*", "FASTROUTER_*", "FIREWORKS_*",
    "FRIENDLI_*", "FUTURMIX_*", "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_*", "GROQ_*", "HELICONE_*",
    "INCEPTION_*", "KIMI_*", "LITELLM_*", "LLAMA_*", "LLMGATEWAY_*", "LMSTUDIO_*", "META_*API_KEY", "MINIMAX_*",
    "MISTRAL_*", "MODELSCOPE_*", "MOONSHOT_*", "MORPH_*", "NANOGPT_*", "NANO_GPT_*", "NEBIUS_*", "NOVITA_*", "NVIDIA_API_KEY",
    "OLLAMA_*", "OPENAI_*", "OPENCODE_*", "OPENROUTER_*", "OVHCLOUD_API_KEY", "PERPLEXITY_*", "POE_API_KEY", "QWEN_*",
    "RADIUS_API_KEY", "REQUESTY_*", "ROUTSTR_*", "SCALEWAY_API_KEY", "SILICONFLOW_*", "STEPFUN_*", "SYNTHETIC_*",
    "TENSORIX_*", "TETRATE_*", "TOGETHER_*", "UPSTAGE_*", "VENICE_*", "XAI_*", "XIAOMI_*", "ZAI_*", "ZENMUX_*", "ZHIPU_*",
)  # fmt: skip
"""Key and address of a provider that sells nothing but models, or of which the variable is for models alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDatabase:
    """The SQLite database in which an agent has its conversations, in a folder of its own.

    Such a database also has servers to start, permissions and logins. Rows of tables that are not named
    here do not outlive a launch.

    The first of `tables` has one row for each conversation, with its `id`; others name it in
    `session_id`, or are common to all.
    """

    path: PurePosixPath
    """Relative to the agent's folder. The folder above it has nothing else."""
    tables: Mapping[str, Mapping[str, str]]
    """Their rows are kept, a column that is named with the value of its SQL expression."""
    versions: Collection[str]
    """The tables in which the agent counts its changes of all tables: kept too."""
    only: Mapping[str, str]
    """By table, which rows are kept: an SQL condition."""
    is_numbered: bool
    """Whether two launches at once use the same ids, so that one may be kept under another."""
    modified: str
    """The column of the first table that changes whenever the conversation does."""
    modified_at: Callable[[Any], float]
    """Epoch seconds of that column. Raises ValueError, TypeError for what the agent does not write there."""
    export: Callable[[Rows], object]
    """Returns the JSON that the agent imports. Raises ValueError, TypeError, LookupError for other rows."""


def json_object(text: object) -> dict[str, Any]:
    """Return the object in *text*.

    Raises:
        ValueError, TypeError: it is none.
    """
    found = json.loads(str(text))
    if not isinstance(found, dict):
        raise TypeError
    return cast("dict[str, Any]", found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFolder:
    """A folder or file of the agent's own in the person's home, and what of it a sandbox gets.

    What is not named here stays outside: an agent's folder grows by downloads, other projects'
    history and sockets. Patterns are relative to the folder; `*` fits anything within one name but a
    leading dot.
    """

    path: PurePosixPath
    """Relative to the person's home. A file has no patterns: it is copied."""
    settings: tuple[str, ...] = ()
    """Patterns of what is copied; the copy is deleted when the session ends."""
    credentials: tuple[str, ...] = ()
    """Names of files that are pure credentials: copied, and alone copied back, if they parse."""
    read_only: tuple[str, ...] = ()
    """Patterns of what the agent downloaded for itself, mounted read-only however large it is."""
    state: tuple[str, ...] = ()
    """Folders of its history, kept for one project from each contained launch to the next.

    The agent writes them and reads them again: nothing that it takes as settings, nothing that it
    runs outside its tools, and no credential may be in them. No pattern.
    """
    state_files: tuple[str, ...] = ()
    """Files of its history, kept alike, to which it only appends. No pattern."""
    conversations: tuple[str, ...] = ()
    """Patterns of the files in `state` that are one conversation each."""
    database: ConversationDatabase | None = None
    """Where its conversations are rows among settings: they alone are kept, launch by launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFile:
    """A file that Aileron puts into the person's home because the agent accepts it no other way.

    Removed at the end, or by the next launch if this one is killed.
    """

    path: PurePosixPath
    """A file, relative to the person's home. The folder above it is ours as a whole."""
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """An MCP server that an agent's own settings have it start or connect to."""

    name: str
    file: str
    """The settings file that counts, `~` for the person's home."""
    command: tuple[str, ...] = ()
    url: str = ""
    kept: str = ""
    """Why a launch cannot switch it off, a clause; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """The input of a plan. Every path is as the agent sees it, inside its sandbox or out."""

    relay: str
    """The command `aileron-mcp` of this session: it needs no argument and no environment."""
    launch_dir: PurePosixPath
    """A folder of this launch alone, 0700, gone at the end; a plan's `files` are put there."""
    env: Mapping[str, str]
    """The person's environment, as far as the agent gets it."""
    project: PurePosixPath
    args: tuple[str, ...] = ()
    """The agent's own arguments, from behind `--`."""
    settings_args: tuple[str, ...] = ()
    """Options that settings add to every launch."""
    gateway: str | None = field(default=None, repr=False)
    """`<url>/gw/<gateway token>`, no trailing slash; None leaves the agent its own way."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Texts of what `Agent.settings_paths` names and of the project's own settings, where they are there.

    The first by that name, the others relative to the project. Credentials may be among them.
    """
    contained: bool = False
    builtins: Builtins = "off"
    """`instead` switches off those tools of the agent's own that can be."""
    off: tuple[OwnServer, ...] = field(default=(), repr=False)
    """The agent's own MCP servers that are not started in this launch."""

    @property
    def all_args(self) -> tuple[str, ...]:
        """Arguments from settings followed by those typed: agents let the later of two win."""
        return (*self.settings_args, *self.args)


@dataclass(frozen=True, slots=True)
class ModelTraffic:
    """Which of an agent's model providers can be sent through the gateway, and why others cannot."""

    providers: frozenset[ProviderName]
    bypass_reasons: tuple[str, ...] = ()
    """Why something does not, a clause each: what is set, and where."""
    logins: Mapping[ProviderName, str] = field(default_factory=dict[ProviderName, str])
    """What other login counts for the agent over a key in its `key_variables`, a clause."""

    @classmethod
    def for_provider(
        cls, provider: ProviderName, reason: str | None, login: str | None = None
    ) -> "ModelTraffic":
        """Make the value for an agent with one provider; *reason* says why it cannot pass, None if it can."""
        passing = frozenset(() if reason else (provider,))
        return cls(passing, (reason,) if reason else (), {provider: login} if login else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be started.

    `argv` holds no secret, since others see it in a process list: at most the gateway token, for
    agents that accept a base URL no other way.
    """

    argv: tuple[str, ...]
    """The first is a program's name; the launcher finds it outside the project."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name -> text, put into `PlanContext.launch_dir`, 0600."""
    private: frozenset[str] = frozenset()
    """Those of `env` and `files` that hold settings of the person's, which may be secret: `--dry-run` does not print them."""
    injected_files: tuple[InjectedFile, ...] = ()
    home_files: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Path -> text, in place of the copy of that settings file in a sandbox's home; may hold secrets of the person's."""
    beside: tuple[str, ...] = ()
    """What stays outside the gate although the built-in tools replace the agent's own, one sentence each, not yet escaped."""
    lost_key: str = ""
    """Which key it may need that only the system's keyring can have, and what to do, not yet escaped; empty where none is missing."""


def not_gated(title: str, clauses: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each reason why an agent may use its own tools although Aileron's replace them."""
    return tuple(
        f"{title} may use tools of its own, because {clause}. What they do is not gated."
        for clause in clauses
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent that `aileron launch` knows. To add one: one module with such an object, and its test."""

    name: str
    """The name on the command line, and of its program on PATH: `codex`."""
    title: str
    """The name for display: `Codex`."""
    package: str
    """How to install it, for the error when it is missing."""
    tested_versions: tuple[str, ...]
    """The versions that this recipe was tried with, newest first."""
    folders: tuple[AgentFolder, ...]
    """Its own folders in the person's home."""
    variables: tuple[str, ...]
    """Patterns of the person's environment variables that it takes: key, address, model, and its own."""
    other_variables: tuple[str, ...]
    """Patterns of those that it may take besides, which are named at the launch and not carried."""
    variable_keys: tuple[str, ...] = ()
    """Patterns of keys of its settings, dotted, whose values name variables that it takes too."""
    other_logins: tuple[str, ...] = ()
    """What it may log in with, relative to the person's home, that its sandbox has not."""
    hosts: tuple[str, ...]
    """The hosts that it needs itself, for its models and its login; on port 443."""
    key_variables: Mapping[ProviderName, tuple[str, ...]]
    """The environment variables that it takes each provider's API key from; the first is the one to set."""
    denied_args: tuple[str, ...]
    """Options that a project's `aileron.toml` may not pass: bypasses, folders, upstreams, what Aileron sets."""
    controls: tuple[str, ...]
    """What Aileron sets in it, one sentence each."""
    not_controlled: tuple[str, ...]
    """What remains outside Aileron's control, one sentence each."""
    kept_tools: str = ""
    """Which of its own tools that act on files stay even then, one sentence; empty where none does."""
    checks: tuple[str, ...]
    """Patterns of keys of its settings, dotted, whose programs can refuse what it is about to do."""
    program_files: tuple[str, ...] = ()
    """Patterns of what names programs besides the settings in `folders`: relative to the home, or for all users."""
    project_files: tuple[str, ...] = ()
    """The project's settings files that this agent reads, relative to the project."""
    reads_above: tuple[str, ...] = ()
    """The files that it reads in the folders above the project too, up to the root of the repository.

    Of `.env` files, it reads the nearest one, wherever that is.
    """

    settings_paths: Callable[[Mapping[str, str], tuple[str, ...]], tuple[PurePosixPath, ...]]
    """Returns the files that may redirect its model traffic or hold its login, `*` for any in a folder.

    Absolute, or relative to the person's home. Variables of its environment, the first argument, may
    move them; its arguments may name more.
    """
    traffic: Callable[[PlanContext], ModelTraffic]
    """Returns which providers a plan may point to the gateway, and why not the others.

    A configured base URL, another provider or another kind of login is left alone: an agent that
    works keeps working.
    """
    plan: Callable[[PlanContext], Plan]
    """Returns how to start it. Raises InvalidRequest: the person's own settings conflict with what the launch needs."""
    servers: Callable[[PlanContext], Iterable[OwnServer]] = lambda context: ()
    """Returns the MCP servers of its own that it would start, where its settings say so."""
    overrides: Callable[[str, str], Iterable[str]] = lambda name, text: ()
    """Returns what a settings file of the project's, its path there and text, overrides of what Aileron sets.

    One clause for each setting, naming file and key.
    """
