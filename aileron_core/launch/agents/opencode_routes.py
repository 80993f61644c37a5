"""The rows of OpenCode: what chooses its model, where its requests go and with which key."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, cast

from aileron_core.launch.agents.opencode_providers import OPENCODE_ADDRESSES, OPENCODE_PROVIDERS
from aileron_core.launch.agents.provider_routes import (
    OPENCODE_KEYS,
    amazon,
    beside_logins,
    google,
    wide_keys,
)
from aileron_core.launch.agents.settings_files import table_at
from aileron_core.launch.routes import Choice, Condition, Route, RouteSetting

CONFIG_VARIABLE = "OPENCODE_CONFIG_CONTENT"
PROVIDER_KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY",),
}


_CHOICE = Choice(
    patterns=("model",),
    instead="Choose a model (`--model`, or `model` in ~/.config/opencode/opencode.json)",
    table="opencode",
)


def _while_used(*providers: str) -> Condition:
    names = ("model", "small_model", "agent.*.model", "mode.*.model", "command.*.model")
    patterns = tuple(f"{name}={provider}/*" for provider in providers for name in names)
    return Condition("a model of its provider is chosen", patterns, _CHOICE)


_WIDE = {
    "GITHUB_TOKEN": ("github-copilot", "github-models"),
    "GITLAB_TOKEN": ("gitlab",),
    "HF_TOKEN": ("huggingface",),
    "DIGITALOCEAN_ACCESS_TOKEN": ("digitalocean",),
    "CLOUDFLARE_API_KEY": ("cloudflare-workers-ai",),
    "CLOUDFLARE_API_TOKEN": ("cloudflare-ai-gateway",),
    "DATABRICKS_TOKEN": ("databricks",),
    "AICORE_SERVICE_KEY": ("sap-ai-core",),
}
"""A variable with a key that opens more than models -> the providers that it is for."""
_BESIDE_KEYS = {
    "gitlab": ("GITLAB_INSTANCE_URL", "GITLAB_AI_GATEWAY_URL"),
    "sap-ai-core": ("AICORE_DEPLOYMENT_ID", "AICORE_RESOURCE_GROUP"),
}
"""A provider with a key of that kind -> what else it reads, which chooses no provider."""
_ACCOUNT = ".local/share/opencode"


def listed_providers(
    listed: Mapping[str, Any], env: Mapping[str, str], found: Iterable[RouteSetting]
) -> dict[str, str]:
    """Return the variables in *env* that only the list of models knows, as settings of its providers.

    Those of a provider of which *found* chooses a model are carried; any other is refused while none is chosen.
    """
    models = [
        each.value for each in found if each.name.rpartition(".")[2] in ("model", "small_model")
    ]
    values: dict[str, str] = {}
    for provider in listed:
        names: Any = table_at(listed, provider).get("env")
        for name in cast("list[Any]", names) if isinstance(names, list) else ():
            known = any(fnmatchcase(str(name), row.name) for row in OPENCODE_ROUTES)
            if known or not env.get(str(name)):
                continue
            if any(model.startswith(f"{provider}/") for model in models):
                values[f"provider.{provider}.env"] = str(name)
            else:
                values[f"{provider}.env ({name})"] = str(name)
    return values


_VERTEX = _while_used("google-vertex", "google-vertex-anthropic")
OPENCODE_ROUTES = (
    *(
        Route(name=name, chooses=chooses, source="settings")
        for name, chooses in (
            ("model", "provider and model"),
            ("small_model", "provider and model of titles"),
            ("provider.*.options.baseURL", "the address"),
            ("provider.*.api", "the address"),
            ("provider.*.options.apiKey", "the key"),
            ("provider.*.options.headers.*", "headers of each request"),
        )
    ),
    Route(
        name="provider.*.env",
        chooses="the variable with the key",
        source="settings",
        names_variables=True,
    ),
    Route(
        name="{env:...}",
        chooses="a variable with a key or an address",
        source="settings",
        names_variables=True,
    ),
    Route(
        name="{file:...}",
        chooses="a file with a key",
        source="settings",
        refused=("The file is not in the sandbox. Name a variable instead ({env:NAME})."),
    ),
    *(
        Route(name=name, chooses="the key of its provider")
        for names in PROVIDER_KEYS.values()
        for name in names
    ),
    *(Route(name=name, chooses="the key of its provider") for name in OPENCODE_KEYS),
    *(
        Route(
            name=name,
            chooses="the key of its provider",
            only_while=_while_used(*providers),
        )
        for name, providers in OPENCODE_PROVIDERS.items()
    ),
    *(
        Route(name=name, chooses="the address of its provider", only_while=_while_used(*providers))
        for name, providers in OPENCODE_ADDRESSES.items()
    ),
    *(
        Route(name=name, chooses="the key and resource of Azure", only_while=_while_used("azure*"))
        for name in ("AZURE_API_KEY", "AZURE_RESOURCE_NAME", "AZURE_COGNITIVE_SERVICES_*")
    ),
    *(
        Route(
            name=name,
            chooses="the key of its provider",
            only_while=_while_used("snowflake-cortex"),
        )
        for name in ("SNOWFLAKE_CORTEX_TOKEN", "SNOWFLAKE_CORTEX_PAT")
    ),
    *(
        Route(name=name, chooses="project and region", only_while=_VERTEX)
        for name in ("GOOGLE_VERTEX_PROJECT", "GOOGLE_VERTEX_LOCATION", "VERTEX_LOCATION")
    ),
    *beside_logins(
        google(
            "opencode",
            _VERTEX,
            "Choose a model of the provider google, which takes a key",
            ("GOOGLE_CLOUD_PROJECT", "GCP_PROJECT", "GCLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
        )
    ),
    *beside_logins(
        amazon("opencode", _while_used("amazon-bedrock"), ("AWS_REGION", "AWS_USE_*_ENDPOINT"))
    ),
    *wide_keys(
        "opencode",
        "Log in with `opencode auth login`",
        {name: _while_used(*providers) for name, providers in _WIDE.items()},
    ),
    *(
        Route(name=name, chooses="the address of its provider")
        for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")
    ),
    Route(
        name="CF_AIG_TOKEN",
        chooses="the key of its provider",
        only_while=replace(_while_used("cloudflare-ai-gateway"), choice=None),
    ),
    Route(
        name="GOOGLE_VERTEX_API_KEY",
        chooses="the key of its provider",
        only_while=replace(_VERTEX, choice=None),
    ),
    Route(
        name="TOGETHER_AI_API_KEY",
        chooses="the key of its provider",
        only_while=replace(_while_used("togetherai"), choice=None),
    ),
    *(
        Route(
            name=name,
            chooses="the address of its provider",
            only_while=replace(_while_used(provider), choice=None),
            refused="Set it under `env` of `[launch.opencode]` in config.toml, as that provider's key.",
        )
        for provider, names in _BESIDE_KEYS.items()
        for name in names
    ),
    Route(name="OPENCODE_AUTH_CONTENT", chooses="its logins"),
    Route(name=CONFIG_VARIABLE, chooses="its settings"),
    Route(name="OPENCODE_MODELS_URL", chooses="the list of models"),
    Route(name="OPENCODE_DISABLE_PROJECT_CONFIG", chooses="whether the project's settings count"),
    *(
        Route(
            name=name,
            chooses="its settings",
            refused=(
                "The sandbox contains a copy of ~/.config/opencode only. Put the settings there, or into "
                "OPENCODE_CONFIG_CONTENT, and unset it for this launch."
            ),
        )
        for name in (
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "OPENCODE_MODELS_PATH",
            "OPENCODE_TEST_HOME",
            "OPENCODE_TEST_MANAGED_CONFIG_DIR",
        )
    ),
    *(
        Route(
            name=name,
            chooses="its settings and its login",
            path=path,
            refused=f"The sandbox contains a copy of ~/{path}/opencode only. Put the settings there and unset it for this launch.",
        )
        for name, path in (("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share"))
    ),
    *(
        Route(
            name=name,
            chooses="the login of its provider",
            only_while=replace(_while_used(provider), choice=None),
            unless=(key,),
            refused=f"It gives access to more than models, so the sandbox does not contain it. Set {key} instead.",
        )
        for name, provider, key in (
            ("VERCEL_OIDC_TOKEN", "vercel", "AI_GATEWAY_API_KEY"),
            ("VERCEL_API_KEY", "v0", "V0_API_KEY"),
        )
    ),
    Route(
        name="the organization of an account",
        chooses="its settings and a token",
        source="login",
        path=_ACCOUNT,
        only_while=Condition("`opencode console` has one", ("account_state.active_org_id",)),
        refused="The sandbox does not contain it. Run `opencode console logout`, and log in with `opencode auth login`.",
    ),
    Route(
        name="the settings that its server sends",
        chooses="its settings",
        source="login",
        path=_ACCOUNT,
        only_while=Condition("a login is of the type `wellknown`", ("login.type=wellknown",)),
        refused=(
            "They may name variables that the sandbox does not have, and are known only once it runs. Log in with "
            "a key (`opencode auth login`), and log out from that server (`opencode auth logout`)."
        ),
    ),
    Route(
        name="a provider that only its list of models knows",
        chooses="the provider",
        source="login",
        only_while=Condition("the variable is set and no model is chosen", ("*.env (*)",)),
        unless=("model",),
        refused=f"{_CHOICE.instead}, or unset that variable.",
    ),
    Route(
        name="OPENCODE_DB",
        chooses="its account",
        refused="The sandbox has conversations of its own, without your account. Unset it for this launch.",
    ),
    Route(
        name="XDG_CACHE_HOME",
        chooses="the list of models",
        path=".cache",
        refused="The sandbox contains a copy of ~/.cache/opencode/models.json only. Unset it for this launch.",
    ),
    Route(
        name="XDG_STATE_HOME",
        chooses="the model that it used last",
        path=".local/state",
        refused="The sandbox contains a copy of ~/.local/state/opencode/model.json only. Unset it for this launch.",
    ),
)
