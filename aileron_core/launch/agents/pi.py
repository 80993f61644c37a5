"""Launching Pi: it has no MCP client and no permissions, so an extension of Aileron's is the client."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import PurePosixPath
from typing import cast
from urllib.parse import urlsplit

from aileron_core.launch.agents.program_settings import (
    line_program,
    list_in,
    module_program,
    tables_in,
    words_in,
)
from aileron_core.launch.agents.provider_routes import (
    PI_KEYS,
    amazon,
    beside_logins,
    google,
    wide_keys,
)
from aileron_core.launch.agents.settings_files import (
    ARGUMENTS,
    home_path,
    json_table,
    option_value,
    settings_in,
    table_at,
)
from aileron_core.launch.model_traffic import bypass_proxies
from aileron_core.launch.named_programs import HomeSettings, NamedProgram
from aileron_core.launch.plan import (
    PROVIDER_NAMES,
    AgentFolder,
    ModelTraffic,
    Plan,
    PlanContext,
    ProviderName,
)
from aileron_core.launch.routes import Choice, Condition, Route, RouteSetting, flat

_FILE = "aileron-pi.mjs"
_OWN_TOOLS = ("bash", "edit", "find", "grep", "ls", "powershell", "read", "write")
_SUFFIXES = {"anthropic": "", "openai": "/v1", "google": "/v1beta"}
"""What stands between a provider's address and the paths that Pi puts behind it."""


_CONFIGURED = re.compile(r"(^|\.)(apiKey|key)$|(^|\.)headers\.|(^|\.)env\.")
"""Keys of its settings and logins whose values may refer to a variable, or be a command."""
_REFERENCE = re.compile(r"(?<!\$)\$\{?([A-Za-z_][A-Za-z0-9_]*)")


_CHOICE = Choice(
    patterns=("defaultModel", "enabledModels=*/*"),
    instead="Choose a model (`--model PROVIDER/MODEL`, or defaultProvider and defaultModel in ~/.pi/agent/settings.json)",
    table="pi",
)


def _while_used(*providers: str) -> Condition:
    names = [f"defaultProvider={provider}" for provider in providers]
    names += [f"enabledModels={provider}/*" for provider in providers]
    return Condition("its provider is chosen", tuple(names), _CHOICE)


_WIDE = {
    "COPILOT_GITHUB_TOKEN": ("github-copilot",),
    "HF_TOKEN": ("huggingface",),
    "CLOUDFLARE_API_KEY": ("cloudflare-workers-ai", "cloudflare-ai-gateway"),
}
"""A variable with a key that opens more than models -> the providers that it is for."""
_ROUTES = (
    *(
        Route(name=name, chooses=chooses, source="settings")
        for name, chooses in (
            ("defaultProvider", "the provider"),
            ("defaultModel", "the model"),
            ("enabledModels", "the models that it offers"),
            ("providers.*.baseUrl", "the address"),
            ("providers.*.apiKey", "the key"),
            ("providers.*.headers.*", "headers of each request"),
            ("httpProxy", "the proxy"),
        )
    ),
    Route(
        name="$VARIABLE",
        chooses="a variable with a key or a header",
        source="settings",
        names_variables=True,
    ),
    Route(
        name="!COMMAND",
        chooses="the key",
        source="settings",
        refused=(
            "It runs a program that is not in the sandbox. Name a variable instead "
            '("$VARIABLE"), or log in with /login.'
        ),
        runs_program=True,
    ),
    *(
        Route(name=name, chooses=f"the key of {provider}")
        for provider, name in (
            ("anthropic", "ANTHROPIC_API_KEY"),
            ("anthropic", "ANTHROPIC_AUTH_TOKEN"),
            ("anthropic", "ANTHROPIC_OAUTH_TOKEN"),
            ("openai", "OPENAI_API_KEY"),
            ("google", "GEMINI_API_KEY"),
            ("google-vertex", "GOOGLE_CLOUD_API_KEY"),
        )
    ),
    *(Route(name=name, chooses="the key of its provider") for name in PI_KEYS),
    Route(name="LLAMA_BASE_URL", chooses="the address of a local model"),
    Route(name="OPENAI_ORG_ID", chooses="the organization that pays"),
    Route(name="OPENAI_PROJECT_ID", chooses="the project that pays"),
    *(
        Route(name=name, chooses="headers of each request")
        for name in ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS")
    ),
    Route(name="AZURE_OPENAI_*", chooses="key and address of Azure"),
    *(
        Route(name=name, chooses="the Google Cloud project")
        for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
    ),
    *beside_logins(
        google(
            "pi",
            _while_used("google-vertex"),
            "Set GOOGLE_CLOUD_API_KEY",
            ("GOOGLE_CLOUD_LOCATION",),
            unless=("GOOGLE_CLOUD_API_KEY",),
        )
    ),
    Route(name="GOOGLE_VERTEX_BASE_URL", chooses="the address of google-vertex"),
    Route(
        name="AWS_BEDROCK_SKIP_AUTH",
        chooses="that a proxy signs",
        only_while=_while_used("amazon-bedrock"),
    ),
    *(
        Route(name=name, chooses="region and address of AWS")
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL*", "AWS_USE_*_ENDPOINT")
    ),
    *beside_logins(amazon("pi", _while_used("amazon-bedrock"), ())),
    *wide_keys(
        "pi",
        "Log in with /login",
        {name: _while_used(*providers) for name, providers in _WIDE.items()},
    ),
    *(
        Route(
            name=name,
            chooses="the address of Cloudflare's models",
            only_while=replace(
                _while_used("cloudflare-workers-ai", "cloudflare-ai-gateway"), choice=None
            ),
            refused="It is not carried into the sandbox. Set it yourself with the key, under `env` of `[launch.pi]` in config.toml.",
        )
        for name in ("CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID")
    ),
    Route(
        name="KIMI*_OAUTH_HOST",
        chooses="where its login for Kimi is renewed",
        only_while=replace(_while_used("kimi-coding"), choice=None),
        refused="Set it yourself, under `env` of `[launch.pi]` in config.toml, or unset it for this launch.",
    ),
    Route(
        name="PI_CODING_AGENT_DIR",
        chooses="its settings and its login",
        path=".pi/agent",
        refused="The sandbox contains a copy of ~/.pi only. Put the settings there and unset it for this launch.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pi:
    name: str = "pi"
    title: str = "Pi"
    program: str = "pi"
    package: str = "npm install -g @earendil-works/pi-coding-agent"
    tested_versions: tuple[str, ...] = ("0.87.1", "0.74.2")
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".pi/agent"),
            settings=(
                "settings.json", "models.json", "models-store.json", "keybindings.json", "trust.json",
                "*.md", "agents", "extensions", "skills", "prompts", "themes", "tools",
            ),
            credentials=("auth.json",),
            read_only=("bin", "npm", "git/*/*/*"),
            state=("sessions",),
            conversations=("sessions/*/*.jsonl",),
        ),
    )  # fmt: skip
    env_names: tuple[str, ...] = ("GOOGLE_CLOUD_QUOTA_PROJECT",)
    routes: tuple[Route, ...] = field(default_factory=lambda: _ROUTES)
    hosts: tuple[str, ...] = (
        "api.anthropic.com",
        "api.openai.com",
        "generativelanguage.googleapis.com",
    )
    key_variables: Mapping[ProviderName, tuple[str, ...]] = field(
        default_factory=lambda: {
            "anthropic": ("ANTHROPIC_API_KEY",),
            "openai": ("OPENAI_API_KEY",),
            "gemini": ("GEMINI_API_KEY",),
        }
    )
    project_files: tuple[str, ...] = (".pi/settings.json",)
    reads_above: tuple[str, ...] = ()
    program_settings: str = (
        "`extensions`, `packages`, `shellPath` and `npmCommand` in "
        "`~/.pi/agent/settings.json`, its folder of extensions, commands for keys in "
        "`auth.json` and `models.json`"
    )
    denied_args: tuple[str, ...] = (
        "-e", "--extension", "--no-extensions", "--system-prompt", "--append-system-prompt",
        "--tools", "-t", "--exclude-tools", "--no-tools", "--provider", "--api-key", "--skill", "--prompt-template",
        "--theme", "--session", "--session-dir", "--session-id", "--fork", "--export", "--continue",
        "-c", "--resume", "-r", "--mode", "--rpc", "--print", "-p",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        ("Aileron's actions are available as tools of an extension that exists only for this run."),
        "A call can take any time: Pi has no time limit for tools.",
        "Telemetry is off for this run.",
    )
    not_controlled: tuple[str, ...] = (
        (
            "Its shell and file tools: in the sandbox they can reach the project; without it, "
            "everything you can."
        ),
        (
            "Its other tools: Pi never asks before it uses one. Extensions in your own ~/.pi run "
            "alongside Aileron's."
        ),
    )
    own_tools: tuple[str, ...] = (
        (
            "All of its own tools are off: read, bash, edit, write, grep, find and ls. Aileron's extension "
            "takes them away again whoever adds them, and refuses a call to one."
        ),
        (
            "A tool of an extension of yours by one of these names is refused alike. Your extensions, and the "
            "commands that you type with `!`, run outside the gate."
        ),
    )
    kept_tools: str = ""
    passes_gateway: str = (
        "Traffic to models of Anthropic, OpenAI and Google goes through the gateway."
    )
    bypasses_gateway: str = (
        "Traffic to other providers, or to a base URL of your own, bypasses the gateway."
    )

    def plan(self, context: PlanContext) -> Plan:
        """Return `pi -e` with the extension, which knows the relay and no secret."""
        text = files("aileron_core.launch.agents").joinpath("pi_extension.mjs").read_text("utf-8")
        text = text.replace("__RELAY__", json.dumps(context.relay), 1)
        through = self.traffic(context).providers if context.gateway is not None else ()
        bases = {
            name: f"{context.gateway}{_SUFFIXES[name]}"
            for name, provider in PROVIDER_NAMES.items()
            if provider in through
        }
        text = text.replace("__BASES__", json.dumps(bases), 1)
        instead = context.builtins == "instead"
        text = text.replace("__REFUSED__", json.dumps(_OWN_TOOLS if instead else ()), 1)
        env = {"PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
        if bases:
            host = urlsplit(context.gateway or "").hostname or ""
            env |= bypass_proxies({**context.env, "HTTP_PROXY": _proxy(context)}, host)
        return Plan(
            argv=(
                self.program,
                "-e",
                f"{context.launch_dir}/{_FILE}",
                *(("--no-builtin-tools",) if instead else ()),
                *context.all_args,
            ),
            env=env,
            files={_FILE: text},
            call_seconds=float(context.call_seconds),
        )

    def settings_paths(
        self, env: Mapping[str, str], args: tuple[str, ...] = ()
    ) -> tuple[PurePosixPath, ...]:
        """Return its settings and its list of models; a login passes just like an API key."""
        own = home_path(env, "PI_CODING_AGENT_DIR", ".pi/agent")
        return (own / "auth.json", own / "settings.json", own / "models.json")

    def route_settings(self, context: PlanContext) -> tuple[RouteSetting, ...]:
        """Return its settings and models, the variables that these refer to, and the typed provider."""
        found: list[RouteSetting] = []
        for path, text in context.settings.items():
            for name, value in flat(json_table(text) or {}):
                found += settings_in(path, {name: value})
                if _CONFIGURED.search(name) and value.startswith("!"):
                    found += settings_in(path, {"!COMMAND": value})
                elif _CONFIGURED.search(name):
                    for variable in _REFERENCE.findall(value):
                        found += settings_in(path, {"$VARIABLE": variable})
        model = option_value(context.all_args, "--model") or ""
        typed = option_value(context.all_args, "--provider") or model.partition("/")[0]
        if typed and ("/" in model or typed != model):
            found += settings_in(ARGUMENTS, {"defaultProvider": typed, "defaultModel": model})
        elif model:
            found += settings_in(ARGUMENTS, {"defaultModel": model})
        for each in (option_value(context.all_args, "--models") or "").split(","):
            found += settings_in(ARGUMENTS, {"enabledModels": each.strip()})
        return tuple(found)

    def own_login(self, context: PlanContext, provider: ProviderName) -> str | None:
        """Return a login, or a key in its settings or arguments: these count over its environment."""
        name = next(each for each, used in PROVIDER_NAMES.items() if used == provider)
        if option_value(context.all_args, "--api-key") is not None:
            return "its arguments contain --api-key"
        for token in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN"):
            if provider == "anthropic" and context.env.get(token):
                return f"{token} is set"
        for path, text in context.settings.items():
            table = json_table(text) or {}
            if path.endswith("/auth.json") and table_at(table, name):
                return f"{path} has a login for {name}"
            if table_at(table, "providers", name).get("apiKey"):
                return f"{path} sets providers.{name}.apiKey"
        return None

    def traffic(self, context: PlanContext) -> ModelTraffic:
        """Let Anthropic, OpenAI and Google pass, except those with a configured address."""
        through = set(PROVIDER_NAMES.values())
        past: list[str] = []
        chosen = ""
        for path, text in context.settings.items():
            if path.endswith("/auth.json"):
                continue
            table = json_table(text)
            if table is None:
                return ModelTraffic(
                    providers=frozenset(), bypass_reasons=(f"{path} cannot be parsed",)
                )
            for name, provider in PROVIDER_NAMES.items():
                # Whatever it is: this file counts over what an extension registers.
                if table_at(table, "providers", name).get("baseUrl"):
                    past.append(f"{path} sets providers.{name}.baseUrl")
                    through.discard(provider)
            chosen = str(table.get("defaultProvider") or chosen)
        model = (option_value(context.all_args, "--model") or "").partition("/")
        chosen = (
            option_value(context.all_args, "--provider") or (model[0] if model[1] else "") or chosen
        )
        if chosen not in ("", *PROVIDER_NAMES):
            past.append(f"the gateway does not support its provider {chosen}")
        return ModelTraffic(providers=frozenset(through), bypass_reasons=tuple(past))

    def programs(self, settings: HomeSettings, project: PurePosixPath) -> Iterator[NamedProgram]:
        del project
        own = PurePosixPath(".pi/agent")
        for name in settings.names(own / "extensions"):
            if name.endswith((".js", ".mjs", ".ts")):
                yield module_program(
                    settings, own / "extensions" / name, own / "extensions" / name, ""
                )
        path = own / "settings.json"
        table, file = settings.table(path, json_table), settings.shown(path)
        for key in ("extensions", "packages"):
            for each in list_in(table.get(key)):
                source = (
                    cast("dict[str, object]", each).get("source")
                    if isinstance(each, dict)
                    else each
                )
                if isinstance(source, str) and source.startswith(("/", "./", "../", "~/")):
                    yield module_program(settings, path, _resource(own, source), key)
                # Any other is a package that Pi installs itself, or excludes one.
        if isinstance(shell := table.get("shellPath"), str):
            words = (str(settings.absolute(_resource(own, shell))),)
            yield NamedProgram(file=file, key="shellPath", command=words, kind="shell")
        if words := words_in(table.get("npmCommand")):
            yield NamedProgram(file=file, key="npmCommand", command=words, kind="helper")
        for path, keys in ((own / "auth.json", "key"), (own / "models.json", "apiKey")):
            table = settings.table(path, json_table)
            for name, each in tables_in(table.get("providers", table)):
                if isinstance(key := each.get(keys), str) and key.startswith("!"):
                    where = f"{name}.{keys}"
                    yield from line_program(settings.shown(path), where, key[1:], "helper")

    def overrides(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Report extensions, which would run inside Pi."""
        return tuple(
            f"{name} lists extensions" for name, text in files.items() if '"extensions"' in text
        )


def _proxy(context: PlanContext) -> str:
    """Return the proxy that it uses, from its settings or the environment; empty if none."""
    tables = [json_table(text) or {} for text in context.settings.values()]
    own = [str(table["httpProxy"]) for table in tables if table.get("httpProxy")]
    return own[-1] if own else context.env.get("HTTP_PROXY", "")


def _resource(own: PurePosixPath, source: str) -> PurePosixPath:
    """Return a path of its settings, relative to the home or absolute."""
    return PurePosixPath(source[2:]) if source.startswith("~/") else own / source


PI = _Pi()
