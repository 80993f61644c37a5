"""The rows of Goose: what chooses its model, where its requests go and with which key."""

from aileron_core.launch.agents.provider_routes import amazon, google
from aileron_core.launch.routes import Condition, Route

KEYS = {
    "AVIAN_*": "AVIAN_API_KEY",
    "AZURE_OPENAI_*": "AZURE_OPENAI_API_KEY",
    "DATABRICKS_*": "DATABRICKS_TOKEN",
    "GROQ_*": "GROQ_API_KEY",
    "OPENROUTER_*": "OPENROUTER_API_KEY",
    "ROUTSTR_*": "ROUTSTR_API_KEY",
    "SNOWFLAKE_*": "SNOWFLAKE_TOKEN",
    "TANZU_AI_*": "TANZU_AI_API_KEY",
    "TETRATE_*": "TETRATE_API_KEY",
    "VENICE_*": "VENICE_API_KEY",
    "XAI_*": "XAI_API_KEY",
    "ZHIPU_*": "ZHIPU_API_KEY",
}
"""Of a family of variables, the key without which its provider does not work in a sandbox."""
OPTIONAL_KEYS = {"LITELLM_*": "LITELLM_API_KEY"}
"""The same for a provider that may work without its key."""
CHOSEN = ("GOOSE_PROVIDER", "active_provider", "GOOSE_PLANNER_PROVIDER")

ALWAYS = {
    "openai": ("OPENAI_*",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_HOST"),
    "google": ("GOOGLE_API_KEY", "GOOGLE_HOST"),
}
"""A provider that may be chosen during a session -> its variables: address, key, headers."""
VARIABLES = {
    "AI_GATEWAY_API_KEY": ("vercel_ai_gateway",),
    "ATOMIC_CHAT_*": ("atomic_chat",),
    "AVIAN_*": ("avian",),
    "AZURE_OPENAI_*": ("azure_openai",),
    "CEREBRAS_API_KEY": ("cerebras",),
    "DATABRICKS_*": ("databricks",),
    "DEEPSEEK_API_KEY": ("custom_deepseek",),
    "FUTURMIX_API_KEY": ("futurmix",),
    "GCP_*": ("gcp_vertex_ai",),
    "GROQ_*": ("groq",),
    "INCEPTION_API_KEY": ("inception",),
    "LITELLM_*": ("litellm",),
    "LLAMA_SWAP_*": ("llama_swap",),
    "LMSTUDIO_*": ("lmstudio",),
    "MINIMAX_API_KEY": ("minimax",),
    "MISTRAL_API_KEY": ("mistral",),
    "MOONSHOT_API_KEY": ("moonshot",),
    "NANOGPT_API_KEY": ("nano-gpt",),
    "NOVITA_API_KEY": ("novita",),
    "NVIDIA_API_KEY": ("nvidia",),
    "OLLAMA_*": ("ollama", "ollama_cloud"),
    "OLLAMA_CLOUD_API_KEY": ("ollama_cloud",),
    "OMLX_*": ("omlx",),
    "OPENCODE_API_KEY": ("opencode_go",),
    "OPENROUTER_*": ("openrouter",),
    "OVHCLOUD_API_KEY": ("ovhcloud",),
    "ROUTSTR_*": ("routstr",),
    "SAGEMAKER_*": ("sagemaker_tgi",),
    "SNOWFLAKE_*": ("snowflake",),
    "TANZU_AI_*": ("tanzu_ai",),
    "TENSORIX_API_KEY": ("custom_tensorix",),
    "TETRATE_*": ("tetrate",),
    "VENICE_*": ("venice",),
    "XAI_*": ("xai",),
    "ZAI_BASE_URL": ("zai",),
    "ZHIPU_*": ("zhipu", "zai"),
}
"""A variable with a key or an address -> the providers that it is for."""
_PROGRAMS = ("claude-code", "codex", "cursor-agent", "gemini-cli", "*-acp")


def _while_used(*providers: str, text: str = "its provider is chosen") -> Condition:
    names = (*CHOSEN, "GOOSE_SUBAGENT_PROVIDER")
    return Condition(text, tuple(f"{name}={provider}" for provider in providers for name in names))


GOOSE_ROUTES = (
    *(
        Route(name=name, chooses=chooses)
        for name, chooses in (
            ("GOOSE_PROVIDER", "the provider"),
            ("GOOSE_MODEL", "the model"),
            ("GOOSE_PLANNER_*", "provider and model of plans"),
            ("GOOSE_SUBAGENT_[MP]*", "provider and model of subagents"),
            ("GOOSE_PREDEFINED_MODELS", "the models that it offers"),
            ("SECURITY_PROMPT_*", "the model that checks prompts, its address and key"),
            ("SECURITY_COMMAND_*", "the model that checks commands, its address and key"),
        )
    ),
    *(
        Route(name=name, chooses=f"address and key of {provider}")
        for provider, names in ALWAYS.items()
        for name in names
    ),
    *(
        Route(
            name=name, chooses="address and key of its provider", only_while=_while_used(*providers)
        )
        for name, providers in VARIABLES.items()
    ),
    Route(
        name="api_key_env",
        chooses="the variable with the key of a custom provider",
        source="settings",
        names_variables=True,
    ),
    Route(
        name="*PROVIDER",
        chooses="the provider",
        only_while=_while_used(*_PROGRAMS, text="it is one of " + ", ".join(_PROGRAMS)),
        refused=(
            "It starts the program of another agent, which the sandbox does not contain. Choose a "
            "provider that has an API (GOOSE_PROVIDER, --provider)."
        ),
    ),
    *amazon(
        "goose",
        _while_used("aws_bedrock", "sagemaker_tgi"),
        ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL*", "AWS_USE_*_ENDPOINT"),
    ),
    *google("goose", _while_used("gcp_vertex_ai"), "Choose the provider google with a key"),
    *(
        Route(
            name=name,
            chooses="its settings and its login",
            path=path,
            refused="The sandbox contains copies of ~/.config/goose and ~/.local/share/goose only. Put the settings there and unset it for this launch.",
        )
        for name, path in (
            ("GOOSE_PATH_ROOT", ""),
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
        )
    ),
    Route(
        name="its keyring",
        chooses="the key",
        source="login",
        path="",
        only_while=Condition(
            "a provider is chosen whose key is neither in the environment nor in secrets.yaml",
            ("a provider that needs *",),
        ),
        refused="The keyring is not in the sandbox. Set that variable, or put it into ~/.config/goose/secrets.yaml.",
    ),
    Route(
        name="a key that only its keyring has",
        chooses="the key",
        source="login",
        path="",
        only_while=Condition(
            "LiteLLM is chosen and its key is neither in the environment nor in secrets.yaml",
            ("a provider that may need *",),
        ),
        only_named=True,
        refused="The keyring is not in the sandbox. If it has that key, set the variable, or put it into ~/.config/goose/secrets.yaml.",
    ),
    Route(
        name="GOOSE_TOOLSHIM",
        chooses="a second model",
        refused="Its address and model are not carried into the sandbox. Turn it off, or set it with them (GOOSE_TOOLSHIM_OLLAMA_MODEL and OLLAMA_HOST, for one) under `env` of `[launch.goose]` in config.toml.",
    ),
    Route(
        name="GOOSE_ADDITIONAL_CONFIG_FILES",
        chooses="its settings",
        refused="Those files are not in the sandbox. Put the settings into ~/.config/goose/config.yaml.",
    ),
    *(
        Route(
            name=name,
            chooses="the certificates of its connections",
            refused="The file is not in the sandbox. Unset it for this launch.",
        )
        for name in ("GOOSE_CA_CERT_PATH", "GOOSE_CLIENT_CERT_PATH", "GOOSE_CLIENT_KEY_PATH")
    ),
    Route(
        name="GITHUB_COPILOT_*",
        chooses="address and login of GitHub Copilot",
        only_while=_while_used("github_copilot"),
        refused="It is not carried into the sandbox. Set it yourself, under `env` of `[launch.goose]` in config.toml.",
    ),
    *(
        Route(
            name=f"~/{path}",
            source="login",
            chooses="the login",
            path=path,
            only_while=_while_used(provider),
            unless=("DATABRICKS_TOKEN",) if provider == "databricks" else (),
            refused="The sandbox does not contain it. Choose a provider with a key.",
        )
        for provider, path in (
            (provider, f".config/goose/{folder}")
            for provider, folder in (
                ("chatgpt_codex", "chatgpt_codex"),
                ("databricks", "databricks"),
                ("gemini_oauth", "gemini_oauth"),
                ("github_copilot", "githubcopilot"),
                ("kimi_code", "kimicode"),
            )
        )
    ),
)
