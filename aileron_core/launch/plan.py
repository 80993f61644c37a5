"""What launching an agent consists of: values that one module per agent makes, and the launcher carries out.

A plan is pure: it names programs, flags, environment and files; it reads and writes nothing. Every
recipe was tried with the real agent; `Agent.tried` names the versions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal, Protocol

SERVER = "aileron"
"""The name under which an agent knows Aileron's MCP server."""

ProviderName = Literal["anthropic", "openai", "gemini"]
"""A provider of models whose API the gateway passes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFolder:
    """A folder of the agent's own under the person's home: settings, history, credentials.

    In the sandbox the agent gets a private copy that dies with the session.
    """

    path: PurePosixPath
    """Relative to the person's home."""
    variable: str | None = None
    """The environment variable that moves it, where there is one."""
    credentials: tuple[str, ...] = ()
    """Files in it that are pure credentials; only these are copied back, and only if they parse."""
    leave_out: tuple[str, ...] = ()
    """Names in it that are not copied in: large, or nothing that a session needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFile:
    """Something of ours in a folder of the person's, where the agent leaves no other way.

    Removed at the end, and at the next launch where that did not happen.
    """

    path: PurePosixPath
    """A file, relative to the person's home. The folder above it is ours as a whole."""
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """What a plan is made from. Every path is one that the agent sees, inside its sandbox or out."""

    relay: str
    """The command `aileron-mcp` of this session: it needs no argument and no environment."""
    launch_dir: PurePosixPath
    """A folder of this launch alone, 0700, gone at the end; a plan's `files` are put there."""
    env: Mapping[str, str]
    """The person's environment, as far as the agent gets it."""
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
    call_seconds: int = 600
    """How long one tool call may take; set where the agent has a setting."""
    contained: bool = False

    @property
    def all_args(self) -> tuple[str, ...]:
        """Standing options, then what was typed: the later of two wins."""
        return (*self.settings_args, *self.args)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTraffic:
    """Which of an agent's providers can be sent through the gateway, and what goes past it."""

    through: frozenset[ProviderName]
    bypass_reasons: tuple[str, ...] = ()
    """Why something does not, a clause each: what is set, and where."""

    @classmethod
    def of(cls, provider: ProviderName, reason: str | None) -> "ModelTraffic":
        """Return that of an agent with one provider; *reason* is why it goes elsewhere, if it does."""
        if reason is None:
            return cls(through=frozenset((provider,)))
        return cls(through=frozenset(), bypass_reasons=(reason,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be started.

    No secret is in its `argv`, which others see in a process list: at most the gateway token, where
    the agent takes its base URL no other way.
    """

    argv: tuple[str, ...]
    """The first is a program's name; the launcher finds it outside the project."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name -> text, put into `PlanContext.launch_dir`, 0600."""
    injected_files: tuple[InjectedFile, ...] = ()
    call_seconds: float = 60.0
    """How long this agent will wait for one tool call."""


class Agent(Protocol):
    """One agent that `aileron launch` knows; a new one is one module with such an object, and its test."""

    @property
    def name(self) -> str:
        """What a person types: `codex`."""
        ...

    @property
    def title(self) -> str:
        """What a person reads: `Codex`."""
        ...

    @property
    def program(self) -> str:
        """The program's name on PATH."""
        ...

    @property
    def package(self) -> str:
        """How it is installed, for a sentence when it is missing."""
        ...

    @property
    def tested_versions(self) -> tuple[str, ...]:
        """The versions with which this recipe was tried, the newest first."""
        ...

    @property
    def folders(self) -> tuple[AgentFolder, ...]:
        """Folders of its own under the person's home."""
        ...

    @property
    def env_names(self) -> tuple[str, ...]:
        """Names of environment variables that it needs from the person, its API keys for one."""
        ...

    def settings_paths(self, env: Mapping[str, str]) -> tuple[PurePosixPath, ...]:
        """Return the files in which it may be told where its model's traffic goes, and its login.

        Absolute, or relative to the person's home; *env* may move them.
        """
        ...

    def traffic(self, context: PlanContext) -> ModelTraffic:
        """Return which providers a plan may give the gateway's base URL, and why not the others.

        Whatever already names a base URL, another provider or another login is left alone: an agent
        that works goes on working.
        """
        ...

    @property
    def denied_args(self) -> tuple[str, ...]:
        """Options that a project's `aileron.toml` may not pass: bypasses, what Aileron sets, folders, upstream."""
        ...

    @property
    def controls(self) -> tuple[str, ...]:
        """What Aileron sets in it, a sentence each."""
        ...

    @property
    def not_controlled(self) -> tuple[str, ...]:
        """What stays outside Aileron's control, a sentence each."""
        ...

    def plan(self, context: PlanContext) -> Plan:
        """Return how it is started.

        Raises:
            InvalidRequest: the person's own arguments take away what the launch needs.
        """
        ...

    def overrides(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return a sentence for each setting of a project that overrides what Aileron sets, naming file and key.

        Args:
            files: the project's own settings files of this agent that are there, by relative path.
        """
        ...

    @property
    def project_files(self) -> tuple[str, ...]:
        """The project's settings files that this agent reads, relative to the project."""
        ...
