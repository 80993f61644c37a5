"""Starts that show what is carried for Goose."""

import json
from collections.abc import Mapping, Sequence

from tests.agents.llm import Script
from tests.agents.route_cases.common import (
    AT_ENDPOINT,
    AT_FIPS,
    AWS,
    AWS_ACCOUNT,
    BEDROCK,
    DEFAULT_REGION,
    ENDPOINT,
    FIPS,
    IN_DEFAULT_REGION,
    calls,
    value,
)
from tests.agents.routed import GOOGLE, LLM, THROUGH_PROXY, Case, says_final

GOOSE_KEYS = {
    "AI_GATEWAY_API_KEY": "vercel_ai_gateway", "CEREBRAS_API_KEY": "cerebras",
    "DEEPSEEK_API_KEY": "custom_deepseek", "FUTURMIX_API_KEY": "futurmix", "GROQ_API_KEY": "groq",
    "INCEPTION_API_KEY": "inception", "MINIMAX_API_KEY": "minimax", "MISTRAL_API_KEY": "mistral",
    "MOONSHOT_API_KEY": "moonshot", "NANOGPT_API_KEY": "nano-gpt", "NOVITA_API_KEY": "novita", "NVIDIA_API_KEY": "nvidia",
    "OLLAMA_CLOUD_API_KEY": "ollama_cloud", "OPENCODE_API_KEY": "opencode_go", "OVHCLOUD_API_KEY": "ovhcloud",
    "TENSORIX_API_KEY": "custom_tensorix",
}  # fmt: skip
GOOSE_ADDRESSES = {
    "ATOMIC_CHAT_HOST": "atomic_chat", "AVIAN_HOST": "avian", "AZURE_OPENAI_ENDPOINT": "azure_openai",
    "DATABRICKS_HOST": "databricks", "LITELLM_HOST": "litellm", "LLAMA_SWAP_HOST": "llama_swap",
    "LMSTUDIO_HOST": "lmstudio", "OLLAMA_HOST": "ollama", "OMLX_HOST": "omlx",
    "OPENROUTER_HOST": "openrouter", "ROUTSTR_HOST": "routstr", "TANZU_AI_ENDPOINT": "tanzu_ai",
    "TETRATE_HOST": "tetrate", "VENICE_HOST": "venice", "XAI_HOST": "xai", "ZAI_BASE_URL": "zai",
    "ZHIPU_BASE_URL": "zhipu",
}  # fmt: skip
GOOSE_OTHERS = {
    "azure_openai": {"AZURE_OPENAI_DEPLOYMENT_NAME": "any"},
    "databricks": {"DATABRICKS_TOKEN": "key-1"},
    "zai": {"ZHIPU_API_KEY": "key-1"},
}
"""What a provider needs besides its address and `..._API_KEY`."""
GOOSE_MINE = {
    "name": "custom_mine", "engine": "openai", "display_name": "Mine", "api_key_env": "MY_KEY",
    "base_url": f"{LLM}/mine", "models": [{"name": "chosen-model", "context_limit": 1000}],
}  # fmt: skip


def goose(
    rows: Mapping[str, str],
    provider: str = "openai",
    *,
    command: Sequence[str] = ("run", "--quiet", "--no-session", "-t", "hello"),
    extensions: str = "extensions: {}\n",
    provider_file: object = None,
    config: Mapping[str, str] | None = None,
    script: Script = says_final,
    typed: str = "",
    **env: str,
) -> Case:
    files = {".config/goose/config.yaml": f"GOOSE_DISABLE_SESSION_NAMING: true\n{extensions}"}
    if provider_file is not None:
        files[".config/goose/custom_providers/mine.json"] = json.dumps(provider_file)
    env = {"GOOSE_PROVIDER": provider, "GOOSE_MODEL": "chosen-model", **env}
    return Case(
        rows=rows,
        args=tuple(command),
        env={**THROUGH_PROXY, **env},
        files=files,
        config=config or {},
        script=script,
        typed=typed,
    )


def row_of(name: str) -> str:
    """Return the row of Goose's table that *name* belongs to: a family's, if it is the address of one."""
    if name == "ZAI_BASE_URL":
        return name
    for ending in ("_HOST", "_ENDPOINT", "_BASE_URL"):
        name = name.removesuffix(ending)
    return f"{name}_*"


GOOSE = [
    goose(
        {
            "GOOSE_PROVIDER": f"POST {LLM}/mine/chat",
            "GOOSE_MODEL": '"model":"chosen-model"',
            "OPENAI_*": f"POST {LLM}/mine/chat",
        },
        OPENAI_BASE_PATH="mine/chat",
    ),
    goose(
        {
            "ANTHROPIC_API_KEY": "x-api-key: key-1",
            "ANTHROPIC_HOST": f"POST {LLM}/anthropic/",
        },
        "anthropic",
        ANTHROPIC_API_KEY="key-1",
        ANTHROPIC_HOST=f"{LLM}/anthropic",
    ),
    goose(
        {"GOOGLE_API_KEY": "x-goog-api-key: key-1", "GOOGLE_HOST": f"POST {LLM}/google/"},
        "google",
        GOOGLE_API_KEY="key-1",
        GOOGLE_HOST=f"{LLM}/google",
    ),
    goose(
        {"GOOSE_SUBAGENT_[MP]*": '"model":"mine-subagent"'},
        extensions="extensions:\n  summon: {enabled: true, type: platform, name: summon}\n",
        script=calls("delegate", instructions="hello"),
        GOOSE_SUBAGENT_MODEL="mine-subagent",
        GOOSE_SUBAGENT_PROVIDER="openai",
    ),
    goose(
        {"GOOSE_PLANNER_*": '"model":"mine-planner"'},
        command=("session",),
        typed="/plan tea\n",
        GOOSE_PLANNER_PROVIDER="openai",
        GOOSE_PLANNER_MODEL="mine-planner",
    ),
    goose(
        {"GOOSE_PREDEFINED_MODELS": '"x-mine":"predefined"'},
        GOOSE_PREDEFINED_MODELS=json.dumps(
            [
                {
                    "name": "chosen-model",
                    "provider": "openai",
                    "request_params": {"x-mine": "predefined"},
                }
            ]
        ),
    ),
    *(
        goose({name: value(name)}, provider, **{name: value(name)})
        for name, provider in GOOSE_KEYS.items()
        if name != "GROQ_API_KEY"
    ),
    goose({"GROQ_*": value("GROQ_API_KEY")}, "groq", GROQ_API_KEY=value("GROQ_API_KEY")),
    *(
        goose(
            {row_of(name): f" {LLM}/{provider}"},
            provider,
            **{
                f"{row_of(name).removesuffix('_*')}_API_KEY": "key-1",
                name: f"{LLM}/{provider}",
                **GOOSE_OTHERS.get(provider, {}),
            },
        )
        for name, provider in GOOSE_ADDRESSES.items()
    ),
    goose(
        {"SNOWFLAKE_*": "POST https://account-1.snowflakecomputing.com/"},
        "snowflake",
        SNOWFLAKE_HOST="account-1.snowflakecomputing.com",
        SNOWFLAKE_TOKEN="token-1",
    ),
    goose(
        {"SAGEMAKER_*": "/endpoints/endpoint-1/invocations"},
        "sagemaker_tgi",
        config=AWS_ACCOUNT,
        SAGEMAKER_ENDPOINT_NAME="endpoint-1",
        AWS_REGION="eu-west-1",
    ),
    goose(
        {"GCP_*": "/projects/project-1/locations/europe-west1/"},
        "gcp_vertex_ai",
        config=GOOGLE,
        GOOSE_MODEL="gemini-2.5-flash",
        GCP_PROJECT_ID="project-1",
        GCP_LOCATION="europe-west1",
    ),
    goose(
        {"api_key_env": "authorization: Bearer key-1"},
        "custom_mine",
        provider_file=GOOSE_MINE,
        MY_KEY="key-1",
    ),
    goose(BEDROCK, "aws_bedrock", **AWS),
    goose(DEFAULT_REGION, "aws_bedrock", **IN_DEFAULT_REGION),
    goose(ENDPOINT, "aws_bedrock", **AT_ENDPOINT),
    goose(FIPS, "aws_bedrock", **AT_FIPS),
    goose(
        {
            "SECURITY_PROMPT_*": f"POST {LLM}/prompts",
            "SECURITY_COMMAND_*": f"POST {LLM}/commands",
        },
        extensions="extensions:\n  developer: {enabled: true, type: platform, name: developer}\n",
        script=calls("shell", command="true"),
        SECURITY_PROMPT_ENABLED="true",
        SECURITY_PROMPT_CLASSIFIER_ENABLED="true",
        SECURITY_PROMPT_CLASSIFIER_ENDPOINT=f"{LLM}/prompts",
        SECURITY_COMMAND_CLASSIFIER_ENABLED="true",
        SECURITY_COMMAND_CLASSIFIER_ENDPOINT=f"{LLM}/commands",
    ),
]
