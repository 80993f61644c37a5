"""Launching Goose (Block): `--with-extension` and environment variables of its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from aileron_core.launch.agents.goose_conversations import GOOSE_CONVERSATIONS
from aileron_core.launch.agents.goose_extensions import (
    EXTENSIONS,
    brought_back,
    extensions_without_own_tools,
)
from aileron_core.launch.agents.goose_routes import (
    CHOSEN,
    GOOSE_ROUTES,
    KEYS,
    OPTIONAL_KEYS,
    VARIABLES,
)
from aileron_core.launch.agents.program_settings import hook_programs, server_programs
from aileron_core.launch.agents.settings_files import (
    ARGUMENTS,
    home_path,
    json_table,
    names_in_effect,
    option_value,
    settings_in,
    yaml_table,
    yaml_value,
    yaml_values,
)
from aileron_core.launch.named_programs import HomeSettings, NamedProgram
from aileron_core.launch.plan import AgentFolder, ModelTraffic, Plan, PlanContext, ProviderName
from aileron_core.launch.routes import (
    YOUR_ENVIRONMENT,
    Route,
    RouteSetting,
    is_in_effect,
)

_TAKES_EXTENSIONS = ("run", "session")
_HOSTS: Mapping[ProviderName, str] = {
    "openai": "OPENAI_HOST",
    "anthropic": "ANTHROPIC_HOST",
    "gemini": "GOOGLE_HOST",
}
_NAMES: Mapping[str, ProviderName] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
}
"""Goose's name of a provider -> the provider whose API it uses."""
_KEYS: Mapping[ProviderName, str] = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GOOGLE_API_KEY",
}
_REFUSING_EVENTS = frozenset(("PreToolUse", "BeforeReadFile", "BeforeShellExecution"))
"""The events of a plugin's hooks that come before what they can refuse."""
_SECRETS = "secrets.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goose:
    name: str = "goose"
    title: str = "Goose"
    program: str = "goose"
    package: str = (  # npm's @aaif/goose brings the program goose-tui, not goose
        "curl -fsSL https://github.com/aaif-goose/goose/releases/download/stable/download_cli.sh | bash"
    )
    tested_versions: tuple[str, ...] = ("1.34.0",)
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".config/goose"),
            settings=(
                "config.yaml", "permission.yaml", "permissions", "custom_providers",
                "declarative_providers", "recipes", "prompts", "skills", "agents", "memory",
                ".goosehints", "*.md",
            ),
            credentials=("secrets.yaml",),
        ),
        AgentFolder(
            path=PurePosixPath(".local/share/goose"),
            settings=("permissions", "recipes", "skills"),
            database=GOOSE_CONVERSATIONS,
        ),
    )  # fmt: skip
    env_names: tuple[str, ...] = ("GOOSE_EMBEDDING_MODEL",)
    routes: tuple[Route, ...] = field(default_factory=lambda: GOOSE_ROUTES)
    hosts: tuple[str, ...] = (
        "api.anthropic.com",
        "api.openai.com",
        "generativelanguage.googleapis.com",
    )
    key_variables: Mapping[ProviderName, tuple[str, ...]] = field(
        default_factory=lambda: {provider: (key,) for provider, key in _KEYS.items()}
    )
    project_files: tuple[str, ...] = ()
    reads_above: tuple[str, ...] = ()
    program_settings: str = (
        "`extensions` in `~/.config/goose/config.yaml`, hooks of plugins in `~/.agents/plugins`"
    )
    denied_args: tuple[str, ...] = (
        "--with-extension", "--with-builtin", "--with-remote-extension", "--container",
        "--with-streamable-http-extension", "--no-profile", "--recipe", "--sub-recipe",
        "--instructions", "-i", "--text", "-t", "--system", "--params", "--path", "-p", "--name", "-n",
        "--session-id", "--resume", "-r", "--provider", "--additional-sub-recipes", "--fork",
        "--edit", "--history",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        "Aileron's actions are available as an extension, alongside those of your profile.",
        "Telemetry is off for this run, and Goose does not use the keyring.",
    )
    not_controlled: tuple[str, ...] = (
        (
            "Its shell and file tools: in the sandbox they can reach the project; without it, "
            "everything you can."
        ),
        (
            "Its other tools: Goose runs all of them without asking (GOOSE_MODE=auto), because "
            "this cannot be set for one extension."
        ),
        (
            "Long calls: Goose gives up on a call after 300 seconds. The approval keeps waiting, "
            "and check_action_status returns the result."
        ),
    )
    own_tools: tuple[str, ...] = (
        (
            "Its extensions that act on files or run commands are off: developer, analyze, summon, apps, the extension "
            "manager and its other built-in ones. Your extensions that are programs of their own or servers stay."
        ),
        "These stay: the to-do list, skills, earlier conversations, and what top of mind adds to each turn.",
        (
            "Sub-agents and recipes within a session are off with summon, since a recipe may bring its own extensions. "
            "`--with-builtin`, `--recipe` and `--resume` bring tools back, and the launch says so."
        ),
    )
    kept_tools: str = ""
    passes_gateway: str = (
        "Traffic to models of Anthropic, OpenAI and Google goes through the gateway."
    )
    bypasses_gateway: str = (
        "Traffic to other providers, or to a host of your own, bypasses the gateway."
    )

    def plan(self, context: PlanContext) -> Plan:
        """Return `goose session` or `goose run` with the relay as an extension."""
        args = context.args or ("session",)
        if args[0] in _TAKES_EXTENSIONS:
            # The tools' prefix is the command's base name, so it is the relay by its own name.
            args = (args[0], "--with-extension", context.relay, *context.settings_args, *args[1:])
        env = {
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
        }
        if context.gateway is not None:
            env |= {
                _HOSTS[provider]: context.gateway
                for provider in sorted(self.traffic(context).providers)
            }
        # Any other command, `goose configure` say, could keep our list in the person's configuration.
        instead = context.builtins == "instead" and args[0] in _TAKES_EXTENSIONS
        if instead:
            env[EXTENSIONS] = extensions_without_own_tools(context.settings, context.env)
        return Plan(
            argv=(self.program, *args),
            env=env,
            private_variables=frozenset((EXTENSIONS,)) if instead else frozenset(),
            call_seconds=300.0,
            beside=brought_back(args) if instead else (),
            lost_key=_lost_key(context),
        )

    def settings_paths(
        self, env: Mapping[str, str], args: tuple[str, ...] = ()
    ) -> tuple[PurePosixPath, ...]:
        own = home_path(env, "XDG_CONFIG_HOME", ".config") / "goose"
        if root := env.get("GOOSE_PATH_ROOT"):
            own = PurePosixPath(root, "config")
        system = PurePosixPath("/etc/goose/config.yaml")
        return (own / "config.yaml", own / _SECRETS, own / "custom_providers" / "*.json", system)

    def route_settings(self, context: PlanContext) -> tuple[RouteSetting, ...]:
        """Return its settings, which have the names of variables, and the key of a provider that it may use."""
        found: list[RouteSetting] = []
        used = _providers(context)
        secrets = _secrets(context)
        for path, text in context.settings.items():
            if path.endswith(f"/{_SECRETS}"):
                found += settings_in(path, {"DATABRICKS_TOKEN": secrets.get("DATABRICKS_TOKEN")})
            elif not path.endswith(".json"):
                found += settings_in(path, yaml_values(text))
            elif (provider := json_table(text) or {}).get("name") in used:
                key = provider.get("api_key_env")
                found += settings_in(path, {"api_key_env": key})
                if key and provider.get("requires_auth") is not False:
                    found += _without(context, path, str(key), str(key), secrets)
        if typed := option_value(context.all_args, "--provider"):
            found += settings_in(ARGUMENTS, {"GOOSE_PROVIDER": typed})
        return (*found, *_keyless(context, used, secrets))

    def own_login(self, context: PlanContext, provider: ProviderName) -> str | None:
        """Return nothing: its environment counts over its file of secrets."""
        del context, provider
        return None

    def traffic(self, context: PlanContext) -> ModelTraffic:
        """Let OpenAI, Anthropic and Google pass, except those whose host is already configured."""
        if context.args and context.args[0] not in _TAKES_EXTENSIONS:
            # `goose configure` would offer to keep our base URL in the person's configuration.
            reason = (
                f"`goose {context.args[0]}` does not start a session; `goose session` and `goose run` "
                "do"
            )
            return ModelTraffic(providers=frozenset(), bypass_reasons=(reason,))
        past: list[str] = []
        through = set(_HOSTS)
        for provider, host in _HOSTS.items():
            where = _place(context, host)
            if provider == "openai" and where is None:
                where = _place(context, "OPENAI_BASE_URL")
            if where is not None:
                past.append(where)
                through.discard(provider)
        past += [
            f"the gateway does not support its provider {name}"
            for name in _providers(context)
            if name not in _NAMES
        ]
        return ModelTraffic(providers=frozenset(through), bypass_reasons=tuple(past))

    def programs(self, settings: HomeSettings, project: PurePosixPath) -> Iterator[NamedProgram]:
        """Return the extensions of its profile, and the hooks of plugins, which several agents share."""
        del project
        path = PurePosixPath(".config/goose/config.yaml")
        servers = settings.table(path, yaml_table).get("extensions")
        yield from server_programs(settings.shown(path), "extensions", servers)
        plugins = PurePosixPath(".agents/plugins")
        for name in settings.names(plugins):
            hooks = plugins / name / "hooks" / "hooks.json"
            root = str(settings.absolute(plugins / name))
            yield from hook_programs(
                settings.shown(hooks),
                settings.table(hooks, json_table).get("hooks"),
                _REFUSING_EVENTS,
                folder=root,
                variables={"PLUGIN_ROOT": root},
            )

    def overrides(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return nothing: Goose reads no settings from a project."""
        del files
        return ()


def _keyless(
    context: PlanContext, used: list[str], secrets: Mapping[str, str]
) -> list[RouteSetting]:
    """Return each provider of *used* whose key is in no variable and no file: it may be in the keyring."""
    where = YOUR_ENVIRONMENT if context.env.get("GOOSE_PROVIDER") else "~/.config/goose/config.yaml"
    where = ARGUMENTS if option_value(context.all_args, "--provider") else where
    found: list[RouteSetting] = []
    for name, providers in VARIABLES.items():
        if {*providers}.isdisjoint(used):
            continue
        key = KEYS.get(name, name)
        if name in OPTIONAL_KEYS:
            found += _without(context, where, OPTIONAL_KEYS[name], name, secrets, needs="may need")
        elif key.endswith(("_API_KEY", "_TOKEN")):
            found += _without(context, where, key, name, secrets)
    return found


def _without(
    context: PlanContext,
    where: str,
    key: str,
    value: str,
    secrets: Mapping[str, str],
    *,
    needs: str = "needs",
) -> list[RouteSetting]:
    """Return a provider that *where* chooses if its *key* is neither in the environment nor in *secrets*."""
    if context.env.get(key) or secrets.get(key):
        return []
    return settings_in(where, {f"a provider that {needs} {key}": value})


def _secrets(context: PlanContext) -> Mapping[str, str]:
    """Return the keys in its file of secrets."""
    files = [text for path, text in context.settings.items() if path.endswith(f"/{_SECRETS}")]
    return yaml_values(files[0]) if files else {}


def _lost_key(context: PlanContext) -> str:
    """Return that a key which the gateway could give may be in the keyring alone; nothing if there is one."""
    secrets = _secrets(context)
    for name in _providers(context) if context.contained else ():
        if (provider := _NAMES.get(name)) is None:
            continue
        key = _KEYS[provider]
        hosts = (_HOSTS[provider], *(["OPENAI_BASE_URL"] if provider == "openai" else []))
        elsewhere = any(_place(context, host) is not None for host in hosts)
        if not elsewhere and not (context.env.get(key) or secrets.get(key)):
            return (
                f"Its provider {name} is chosen, and {key} is neither in your environment nor in {_SECRETS}. A key in "
                f"the system's keyring is not in the sandbox. Set {key}, or run `aileron gateway key set {provider}`."
            )
    return ""


def _place(context: PlanContext, name: str) -> str | None:
    """Return a clause that says where *name* is set, None if it is not."""
    if names_in_effect(context.env, (name,)):
        return f"{name} is set"
    for path, text in context.settings.items():
        if is_in_effect(yaml_value(text, name)):
            return f"{path} sets {name}"
    return None


def _providers(context: PlanContext) -> list[str]:
    """Return the selected providers, as far as the command line and settings tell."""
    typed = option_value(context.all_args, "--provider")
    found = [typed] if typed else []
    for name in CHOSEN:
        if name in ("GOOSE_PROVIDER", "active_provider") and typed:
            continue
        read = [yaml_value(text, name) for text in context.settings.values()]
        value = context.env.get(name) or next(filter(None, read), None)
        if value and value not in found:
            found.append(value)
    return found


GOOSE = _Goose()
