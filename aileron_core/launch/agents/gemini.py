"""Launching Gemini CLI (Google): a temporary extension, because it accepts an MCP server no other way."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, cast

from aileron_core.launch.agents.program_settings import (
    hook_programs,
    line_program,
    server_programs,
    words_in,
)
from aileron_core.launch.agents.provider_routes import google
from aileron_core.launch.agents.settings_files import (
    home_path,
    json_table,
    names_in_effect,
    option_value,
    parse_env_file,
    settings_in,
    table_at,
)
from aileron_core.launch.named_programs import HomeSettings, NamedProgram
from aileron_core.launch.plan import (
    MCP_SERVER_NAME,
    AgentFolder,
    InjectedFile,
    ModelTraffic,
    Plan,
    PlanContext,
    ProviderName,
)
from aileron_core.launch.routes import Condition, Route, RouteSetting, flat

_ELSEWHERE = (
    "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT",
    "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA",
)  # fmt: skip
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_KEY = "gemini-api-key"
_KEPT_KEYS = "gemini-credentials.json"
"""Where it has keys, encrypted, on a machine without a keyring."""
_SYSTEM = PurePosixPath("/etc/gemini-cli/settings.json")
_REFUSING_EVENTS = frozenset(("BeforeTool", "BeforeAgent", "BeforeModel", "BeforeToolSelection"))
"""The events of which a hook can refuse what is about to happen, as its documentation has them."""
_LOGINS = {"oauth-personal": "Google", "vertex-ai": "Vertex AI"}

_REFERENCE = re.compile(r"\$(?:(\w+)|\{([^}:]+)(?::-([^}]*))?\})")
"""A variable in a value of its settings, and what counts where that is not set."""
_VERTEX = Condition(
    "Vertex AI is chosen", ("GOOGLE_GENAI_USE_VERTEXAI", "security.auth.selectedType=vertex-ai")
)
_GOOGLE_LOGIN = Condition(
    "Vertex AI or a Google account is chosen",
    (*_VERTEX.patterns, "GOOGLE_GENAI_USE_GCA", "security.auth.selectedType=oauth-personal"),
)
_OF_MACHINE = Condition(
    "Vertex AI or the login of this machine is chosen",
    (
        *_VERTEX.patterns,
        "GEMINI_CLI_USE_COMPUTE_ADC",
        "CLOUD_SHELL",
        "security.auth.selectedType=compute-default-credentials",
    ),
)
_USED_WHILE = {
    "GOOGLE_APPLICATION_CREDENTIALS": _GOOGLE_LOGIN,
    "GCE_METADATA_*": _OF_MACHINE,
    "METADATA_SERVER_DETECTION": _OF_MACHINE,
}
"""A variable of a Google Cloud login -> when it counts, where not for Vertex AI alone."""
_KEYRING = (
    "One in the system's keyring is not in the sandbox. Set GEMINI_API_KEY, or run `aileron gateway "
    "key set gemini`."
)
_ROUTES = (
    *(
        Route(name=name, chooses=chooses)
        for name, chooses in (
            ("GEMINI_API_KEY", "the key"),
            ("GOOGLE_API_KEY", "the key"),
            ("GEMINI_API_KEY_AUTH_MECHANISM", "the header with the key"),
            ("GEMINI_CLI_CUSTOM_HEADERS", "headers of each request"),
            ("GEMINI_MODEL", "the model"),
            ("GOOGLE_GEMINI_BASE_URL", "the address"),
            ("GOOGLE_GENAI_API_VERSION", "the address"),
            ("CODE_ASSIST_*", "the address for Google accounts"),
            ("GOOGLE_GENAI_USE_VERTEXAI", "the provider"),
            ("GOOGLE_GENAI_USE_GCA", "the provider"),
            ("GEMINI_CLI_USE_COMPUTE_ADC", "the Google Cloud login of this machine"),
            ("CLOUD_SHELL", "the Google Cloud login of this machine"),
            ("GOOGLE_VERTEX_BASE_URL", "the address"),
            ("GOOGLE_CLOUD_PROJECT*", "the Google Cloud project"),
            ("GOOGLE_CLOUD_QUOTA_PROJECT", "the Google Cloud project"),
            ("GOOGLE_CLOUD_LOCATION", "the region"),
            ("GEMINI_CLI_TRUST_WORKSPACE", "whether the project's settings count"),
        )
    ),
    *(
        Route(name=name, chooses=chooses, source="settings")
        for name, chooses in (
            ("model.name", "the model"),
            ("security.auth.selectedType", "the login"),
        )
    ),
    Route(
        name="$VARIABLE",
        chooses="a variable with the model or the login",
        source="settings",
        names_variables=True,
    ),
    Route(
        name="GEMINI_FORCE_ENCRYPTED_FILE_STORAGE",
        chooses="where its login is",
        refused="That place is not in the sandbox. Unset it for this launch, and log in without it.",
    ),
    Route(
        name="GOOGLE_CLOUD_UNIVERSE_DOMAIN",
        chooses="the address of Google Cloud",
        refused="Set it yourself, under `env` of `[launch.gemini]` in config.toml, or unset it for this launch.",
    ),
    *(
        replace(row, only_while=_USED_WHILE[row.name]) if row.name in _USED_WHILE else row
        for row in google("gemini", _VERTEX, "Set GOOGLE_API_KEY", unless=("GOOGLE_API_KEY",))
    ),
    Route(
        name="google_application_credentials",
        chooses="the Google Cloud login",
        refused="The file is not in the sandbox. Set GOOGLE_API_KEY instead.",
        only_while=_GOOGLE_LOGIN,
        unless=("GOOGLE_API_KEY",),
    ),
    Route(
        name="GOOGLE_CLOUD_ACCESS_TOKEN",
        chooses="the Google Cloud login",
        refused=(
            "It gives access to more than models, so the sandbox does not contain it. Set "
            "GEMINI_API_KEY instead, or set it yourself, under `env` of `[launch.gemini]` in config.toml."
        ),
        only_while=Condition(
            "a Google account is chosen",
            ("GOOGLE_GENAI_USE_GCA", "security.auth.selectedType=oauth-personal"),
        ),
    ),
    Route(
        name="its keyring",
        chooses="the key",
        source="login",
        # Only once the session is open is it known whether the vault has a key: see `_lost_key`.
        only_while=Condition(
            "an API key is chosen that is neither in the environment, a .env file nor the vault",
            ("a key that only the keyring has",),
        ),
        refused=_KEYRING,
    ),
    Route(
        name="GEMINI_RESTRICTED_MODE",
        chooses="whether the project's settings count",
        refused="It is not carried into the sandbox. Set GEMINI_CLI_TRUST_WORKSPACE=false instead, and unset it for this launch.",
    ),
    Route(
        name="GEMINI_CLI_HOME",
        chooses="its settings and its login",
        path=".",
        refused="The sandbox contains a copy of ~/.gemini only. Put the settings there and unset it for this launch.",
    ),
    *(
        Route(
            name=name,
            chooses="its settings",
            refused="The file is not in the sandbox. Unset it for this launch.",
        )
        for name in (
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
            "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
            "GEMINI_EXP",
        )
    ),
)

_OWN_TOOLS = (
    "glob", "grep_search", "list_background_processes", "list_directory", "read_background_output",
    "read_file", "read_many_files", "replace", "run_shell_command", "write_file",
)  # fmt: skip
"""Its tools that act on files or run commands."""
_POLICY = f"""\
[[rule]]
mcpName = "{MCP_SERVER_NAME}"
toolName = "*"
decision = "allow"
priority = 950
"""
_WITHOUT_OWN_TOOLS = f"""{_POLICY}
[[rule]]
toolName = {json.dumps(_OWN_TOOLS)}
decision = "deny"
priority = 999
denyMessage = "This tool is off in this session. Call the tool of Aileron's that does the same."
"""
"""For sub-agents too, and over what is always allowed, which has the priority 950."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gemini:
    name: str = "gemini"
    title: str = "Gemini CLI"
    program: str = "gemini"
    package: str = "npm install -g @google/gemini-cli"
    tested_versions: tuple[str, ...] = ("0.61.0",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".gemini"),
            settings=(
                "settings.json", ".env", "*.md", "commands", "skills", "agents", "policies",
                "extensions", "keybindings.json", "trustedFolders.json", "google_accounts.json",
                "gemini-credentials.json", "mcp-oauth-tokens*.json", "a2a-oauth-tokens.json",
                "mcp-server-enablement.json", "installation_id", "user_id", "state.json",
            ),
            credentials=("oauth_creds.json",),
            state=("tmp/{slug}/chats", "tmp/{slug}/logs", "tmp/{slug}/plans", "tmp/{slug}/tasks"),
            conversations=("tmp/*/chats/*.jsonl",),
        ),
    )  # fmt: skip
    env_names: tuple[str, ...] = ("GEMINI_DEFAULT_AUTH_TYPE",)
    routes: tuple[Route, ...] = field(default_factory=lambda: _ROUTES)
    hosts: tuple[str, ...] = (
        "generativelanguage.googleapis.com",
        "cloudcode-pa.googleapis.com",
        "oauth2.googleapis.com",
    )
    key_variables: Mapping[ProviderName, tuple[str, ...]] = field(
        default_factory=lambda: {"gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY")}
    )
    project_files: tuple[str, ...] = (".gemini/settings.json", ".gemini/.env")
    reads_above: tuple[str, ...] = (".gemini/.env", ".env")
    program_settings: str = (
        "`hooks`, `mcpServers` and commands for tools in `~/.gemini/settings.json` and "
        "`/etc/gemini-cli`, hooks and MCP servers of extensions"
    )
    denied_args: tuple[str, ...] = (
        "--policy", "--admin-policy", "-y", "-s", "--extensions", "-e", "--include-directories",
        "--acp", "--experimental-acp", "--prompt", "-p", "--prompt-interactive", "-i", "--worktree",
        "-w", "--resume", "-r", "--session-file", "--delete-session", "--proxy", "--telemetry",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        (
            "Aileron's actions are available as an extension. Gemini CLI does not ask before it "
            "calls them."
        ),
        "A call can take up to 600 seconds.",
    )
    not_controlled: tuple[str, ...] = (
        (
            "Its shell and file tools: in the sandbox they can reach the project; without it, "
            "everything you can."
        ),
        (
            "MCP servers, hooks and extensions in your own ~/.gemini: they run alongside Aileron's, in "
            "the sandbox as far as it has their programs."
        ),
        "Usage statistics: your own settings.json decides whether they are sent.",
    )
    own_tools: tuple[str, ...] = (
        (
            "Its tools for files and commands are denied by Aileron's policy, for its sub-agents and in every approval "
            "mode; only a policy of your system's, or one that you pass with `--admin-policy`, counts over it."
        ),
        (
            "These stay: sub-agents (which have Aileron's tools), skills, plans and to-do lists, and web_fetch and "
            "google_web_search, which reach the network."
        ),
        (
            "Commands that you type with `!`, files that you name with `@`, hooks, MCP servers and "
            "`tools.discoveryCommand` of your own run outside the gate."
        ),
    )
    kept_tools: str = ""
    passes_gateway: str = "With an API key, its model traffic goes through the gateway."
    bypasses_gateway: str = (
        "With a Google account, Vertex AI or a proxy, its model traffic bypasses the gateway."
    )

    def plan(self, context: PlanContext) -> Plan:
        """Return `gemini` with a policy file, and the extension that names Aileron's MCP server."""
        server: dict[str, Any] = {
            "command": context.relay,
            "args": [],
            "timeout": context.call_seconds * 1000,
        }
        manifest: dict[str, Any] = {
            "name": MCP_SERVER_NAME,
            "version": "0.0.1",
            "mcpServers": {MCP_SERVER_NAME: server},
        }
        env: dict[str, str] = {}
        if context.gateway is not None and self.traffic(context).providers:
            env["GOOGLE_GEMINI_BASE_URL"] = context.gateway
        return Plan(
            argv=(
                self.program,
                "--policy",
                f"{context.launch_dir}/gemini-policy.toml",
                *(f"--policy={each}" for each in _own_policies(context)),
                *context.all_args,
            ),
            env=env,
            files={
                "gemini-policy.toml": _WITHOUT_OWN_TOOLS
                if context.builtins == "instead"
                else _POLICY
            },
            injected_files=(
                InjectedFile(
                    path=PurePosixPath(
                        f".gemini/extensions/{MCP_SERVER_NAME}/gemini-extension.json"
                    ),
                    content=json.dumps(manifest, indent=2) + "\n",
                ),
            ),
            call_seconds=float(context.call_seconds),
            beside=_beside(context),
            lost_key=_lost_key(context),
        )

    def settings_paths(
        self, env: Mapping[str, str], args: tuple[str, ...] = ()
    ) -> tuple[PurePosixPath, ...]:
        """Return its settings, and the `.env` files that it reads."""
        own = home_path(env, "GEMINI_CLI_HOME", ".") / ".gemini"
        defaults = _SYSTEM.with_name("system-defaults.json")
        names = ("settings.json", ".env", _KEPT_KEYS)
        return (*(own / name for name in names), PurePosixPath(".env"), defaults, _SYSTEM)

    def route_settings(self, context: PlanContext) -> tuple[RouteSetting, ...]:
        """Return its settings, and the variables of the `.env` files that it reads.

        Of ~/.env no copy is in the sandbox; it counts where there is no other such file.
        """
        found: list[RouteSetting] = []
        files = {path: parse_env_file(text) for path, text in context.settings.items()
                 if path.endswith(".env")}  # fmt: skip
        for path, text in context.settings.items():
            if path.endswith(_KEPT_KEYS):
                continue
            if path not in files:
                found += _of_settings(path, text, context.env)
            elif path != "~/.env":
                found += settings_in(path, files[path])
            elif len(files) == 1:
                found += [replace(each, outside=True) for each in settings_in(path, files[path])]
        return tuple(found)

    def own_login(self, context: PlanContext, provider: ProviderName) -> str | None:
        """Return nothing: its environment counts over its `.env` files, and `traffic` knows of accounts."""
        del context, provider
        return None

    def traffic(self, context: PlanContext) -> ModelTraffic:
        """Let the Gemini API with an API key pass; Google accounts use another endpoint."""
        return ModelTraffic.for_provider("gemini", _elsewhere(context))

    def programs(self, settings: HomeSettings, project: PurePosixPath) -> Iterator[NamedProgram]:
        del project
        own = PurePosixPath(".gemini")
        for path in (own / "settings.json", _SYSTEM):
            table, file = settings.table(path, json_table), settings.shown(path)
            yield from _hooks(file, table)
            yield from server_programs(file, "mcpServers", table.get("mcpServers"))
            yield from line_program(
                file, "mcp.serverCommand", table_at(table, "mcp").get("serverCommand"), "server"
            )
            for key in ("discoveryCommand", "callCommand"):
                line = table_at(table, "tools").get(key)
                yield from line_program(file, f"tools.{key}", line, "tool source")
        for name in settings.names(own / "extensions"):
            if name != MCP_SERVER_NAME:
                yield from _extension(settings, own / "extensions" / name)

    def overrides(self, files: Mapping[str, str]) -> tuple[str, ...]:
        found: list[str] = []
        for name, text in files.items():
            if name.endswith(".env"):
                moved = names_in_effect(parse_env_file(text), (*_ELSEWHERE, *_PROXIES))
                found += [f"{name} sets {variable}" for variable in moved]
            elif '"selectedType"' in text:
                found.append(f"{name} sets selectedType")
            if f'"{MCP_SERVER_NAME}"' in text and "mcpServers" in text:
                found.append(f"{name} defines an MCP server called {MCP_SERVER_NAME}")
            if '"hooks"' in text:
                found.append(f"{name} sets hooks")
        return tuple(found)


def _of_settings(path: str, text: str, env: Mapping[str, str]) -> list[RouteSetting]:
    """Return the settings in *text*, with the variables that those of the model and the login refer to."""
    found: list[RouteSetting] = []
    for name, value in flat(json_table(text) or {}):
        if name.startswith(("model.", "security.auth.")):
            for match in _REFERENCE.finditer(value):
                found += settings_in(path, {"$VARIABLE": match[1] or match[2]})
            value = _REFERENCE.sub(lambda m: env.get(m[1] or m[2]) or m[3] or "", value)
        found += settings_in(path, {name: value})
    return found


def _elsewhere(context: PlanContext) -> str | None:
    """Return why its model traffic does not go to the Gemini API with an API key, None if it does."""
    if found := names_in_effect(context.env, _ELSEWHERE):
        return f"{found[0]} is set"
    if found := names_in_effect(context.env, _PROXIES):
        # It sends even loopback through the proxy, whatever NO_PROXY says (read in 0.61.0).
        return f"{found[0]} is set, and Gemini CLI sends all its traffic to that proxy"
    if option_value(context.all_args, "--proxy") is not None:
        return "its arguments contain --proxy, and Gemini CLI sends all its traffic to that proxy"
    for path, text in context.settings.items():
        if path.endswith(".env"):
            if found := names_in_effect(parse_env_file(text), (*_ELSEWHERE, *_PROXIES)):
                return f"{path} sets {found[0]}"
        elif not path.endswith(_KEPT_KEYS) and json_table(text) is None:
            return f"{path} cannot be parsed"
    chosen = _chosen_login(context)
    if chosen == _KEY:
        return None
    if not chosen:
        return "~/.gemini/settings.json does not choose how to sign in yet"
    named = _LOGINS.get(chosen, "another kind of account")
    return f"it is signed in with {named}, which the gateway does not support"


def _chosen_login(context: PlanContext) -> str:
    """Return how its settings choose to sign in: the project's, which come last, count."""
    chosen = ""
    for text in context.settings.values():
        login = table_at(json_table(text) or {}, "security", "auth")
        chosen = str(login.get("selectedType") or chosen)
    return chosen


def _own_policies(context: PlanContext) -> list[str]:
    """Return the policies that it would read of the person's, which any `--policy` replaces (read in 0.61.0)."""
    if option_value(context.all_args, "--policy") is not None:
        return []
    named: list[str] = []
    for path, text in context.settings.items():
        found: object = (json_table(text) or {}).get("policyPaths")
        if path.startswith(("~", "/")) and isinstance(found, list):  # not the project's
            named += [each for each in cast("list[object]", found) if isinstance(each, str)]
    own = home_path(context.env, "GEMINI_CLI_HOME", "~") / ".gemini" / "policies"
    return named or [str(own)]


def _beside(context: PlanContext) -> tuple[str, ...]:
    if context.builtins != "instead" or option_value(context.all_args, "--admin-policy") is None:
        return ()
    return (
        "Gemini CLI may use tools of its own, because the arguments contain --admin-policy. What they do is not gated.",
    )


def _lost_key(context: PlanContext) -> str:
    """Return that its key may be in the keyring alone; nothing if it has one, or needs none."""
    files = [text for path, text in context.settings.items() if path.endswith(".env")]
    places = [context.env, *map(parse_env_file, files)]
    kept = any(path.endswith(_KEPT_KEYS) for path in context.settings)
    if kept or any(each.get("GEMINI_API_KEY") for each in places):
        return ""
    if not context.contained or _chosen_login(context) != _KEY:
        return ""
    return (
        "Its settings choose an API key, which is neither in your environment nor in a .env file. "
        f"{_KEYRING}"
    )


def _hooks(file: str, table: Mapping[str, Any]) -> Iterator[NamedProgram]:
    """Yield the hooks in a settings file, less those that it switches off."""
    switches = table_at(table, "hooksConfig")
    if switches.get("enabled") is False:
        return
    off = words_in(switches.get("disabled"))
    for each in hook_programs(file, table.get("hooks"), _REFUSING_EVENTS):
        if each.command not in off:
            yield each


def _extension(settings: HomeSettings, folder: PurePosixPath) -> Iterator[NamedProgram]:
    """Yield what an extension names; one that is only linked is elsewhere."""
    linked = settings.table(folder / ".gemini-extension-install.json", json_table)
    if linked.get("type") == "link" and isinstance(linked.get("source"), str):
        folder = PurePosixPath(linked["source"])
    root = str(settings.absolute(folder))
    variables = {"extensionPath": root}
    servers = settings.table(folder / "gemini-extension.json", json_table).get("mcpServers")
    file = settings.shown(folder / "gemini-extension.json")
    yield from server_programs(file, "mcpServers", servers, folder=root, variables=variables)
    hooks = folder / "hooks" / "hooks.json"
    yield from hook_programs(
        settings.shown(hooks),
        settings.table(hooks, json_table).get("hooks"),
        _REFUSING_EVENTS,
        folder=root,
        variables=variables,
    )


GEMINI = _Gemini()
