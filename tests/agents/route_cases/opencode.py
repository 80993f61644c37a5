"""Starts that show what is carried for OpenCode."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aileron_core.launch.agents.opencode_providers import OPENCODE_PROVIDERS as FURTHER_PROVIDERS
from tests.agents.llm import CallTool, Conversation, Say, Script
from tests.agents.route_cases.common import AT_FIPS_STS, AWS, BEDROCK, FIPS_ROLE, FIPS_STS, value
from tests.agents.routed import GOOGLE, LLM, THROUGH_PROXY, Case, says_final

OPENCODE_PROVIDERS = {
    "AIHUBMIX_API_KEY": "aihubmix", "AI_GATEWAY_API_KEY": "vercel",
    "ALIBABA_CODING_PLAN_API_KEY": "alibaba-coding-plan", "BASETEN_API_KEY": "baseten",
    "CEREBRAS_API_KEY": "cerebras", "CHUTES_API_KEY": "chutes", "COHERE_API_KEY": "cohere",
    "DASHSCOPE_API_KEY": "alibaba", "DEEPINFRA_API_KEY": "deepinfra",
    "DEEPSEEK_API_KEY": "deepseek", "FASTROUTER_API_KEY": "fastrouter",
    "FIREWORKS_API_KEY": "fireworks-ai", "HELICONE_API_KEY": "helicone",
    "INCEPTION_API_KEY": "inception", "KIMI_API_KEY": "kimi-code-plan-cn",
    "LLAMA_API_KEY": "llama", "LLMGATEWAY_API_KEY": "llmgateway", "META_MODEL_API_KEY": "meta",
    "MINIMAX_API_KEY": "minimax", "MISTRAL_API_KEY": "mistral",
    "MODELSCOPE_API_KEY": "modelscope", "MOONSHOT_API_KEY": "moonshotai",
    "MORPH_API_KEY": "morph", "NANO_GPT_API_KEY": "nano-gpt", "NEBIUS_API_KEY": "nebius",
    "NOVITA_API_KEY": "novita-ai", "NVIDIA_API_KEY": "nvidia", "OLLAMA_API_KEY": "ollama-cloud",
    "OPENAI_API_KEY": "openai", "OPENCODE_API_KEY": "opencode", "OPENROUTER_API_KEY": "openrouter",
    "PERPLEXITY_API_KEY": "perplexity", "POE_API_KEY": "poe", "REQUESTY_API_KEY": "requesty",
    "SILICONFLOW_API_KEY": "siliconflow", "STEPFUN_API_KEY": "stepfun",
    "SYNTHETIC_API_KEY": "synthetic", "TOGETHER_API_KEY": "togetherai",
    "UPSTAGE_API_KEY": "upstage", "VENICE_API_KEY": "venice", "XAI_API_KEY": "xai",
    "XIAOMI_API_KEY": "xiaomi", "ZENMUX_API_KEY": "zenmux", "ZHIPU_API_KEY": "zhipuai",
}  # fmt: skip
"""A variable -> a provider that it is for. GROQ_API_KEY is the main model's."""
OPENCODE_PACKAGES = {
    name: {"npm": "@ai-sdk/openai-compatible", "api": f"{LLM}/{name}"}
    for name in (
        "aihubmix", "venice", "merge-gateway", "salad-cloud", "standardcompute", "qvac", "v0",
        "atomic-chat", "lmstudio", "lynkr",
    )
}  # fmt: skip
"""In place of a package that OpenCode would fetch, or of an address that is this machine."""
OPENCODE_MINE: Mapping[str, Any] = {
    "model": "mine/chosen-model",
    "provider": {
        "mine": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {
                "baseURL": f"{LLM}/mine",
                "apiKey": "{env:MY_KEY}",
                "headers": {"x-team": "blue"},
            },
            "models": {"chosen-model": {}},
        },
    },
}
OPENCODE_API: Mapping[str, Any] = {
    "model": "mine/chosen-model",
    "small_model": "mine/small-model",
    "provider": {
        "mine": {
            "npm": "@ai-sdk/openai-compatible",
            "api": f"{LLM}/api",
            "options": {"apiKey": "key-of-settings"},
            "models": {"chosen-model": {}, "small-model": {}},
        }
    },
}


def opencode(
    rows: Mapping[str, str],
    model: str = "",
    *,
    settings: object = None,
    config: Mapping[str, str] | None = None,
    script: Script = says_final,
    **env: str,
) -> Case:
    typed = ("-m", model) if model else ()
    return Case(
        rows=rows,
        args=("run", *typed, "hello"),
        env={**THROUGH_PROXY, **env},
        files={".config/opencode/opencode.json": json.dumps(settings or {})},
        config=config or {},
        script=script,
    )


def with_keys(providers: Mapping[str, str], **env: str) -> Case:
    """Return a start in which a model of each of *providers* is asked, by an agent of its own."""
    names = [*providers]

    def asks_each_agent(conversation: Conversation) -> Say | CallTool:
        done = len(conversation.results)
        if conversation.tool("task") is None or done == len(names):
            return Say(text="FINAL")
        args = {"description": "d", "prompt": "hello", "subagent_type": names[done]}
        return CallTool(name="task", args=args)

    agents = {
        name: {
            "mode": "subagent",
            "description": name,
            "model": f"{provider}/any",
            "tools": {"task": False},
        }
        for name, provider in providers.items()
    }
    keys = {name: value(name) for name in ("GROQ_API_KEY", *providers)}
    return opencode(
        {name: key for name, key in keys.items() if name != "GROQ_API_KEY"},
        "groq/any",
        settings={
            "agent": agents,
            "provider": {
                provider: {"models": {"any": {}}, **OPENCODE_PACKAGES.get(provider, {})}
                for provider in ("groq", *providers.values())
            },
        },
        script=asks_each_agent,
        **keys,
        **env,
    )


_FURTHER = [(name, providers[0]) for name, providers in FURTHER_PROVIDERS.items()]
OPENCODE = [
    opencode(
        {
            "model": '"model":"chosen-model"',
            "provider.*.options.baseURL": f"POST {LLM}/mine/chat/completions",
            "{env:...}": "authorization: Bearer key-1",
            "provider.*.options.headers.*": "x-team: blue",
        },
        settings=OPENCODE_MINE,
        MY_KEY="key-1",
    ),
    replace(
        opencode({"model": '"model":"chosen-model"'}, MY_KEY="key-1"),
        files={".opencode/opencode.json": json.dumps(OPENCODE_MINE)},
    ),
    opencode(
        {
            "provider.*.api": f"POST {LLM}/api/chat/completions",
            "provider.*.options.apiKey": "authorization: Bearer key-of-settings",
            "small_model": '"model":"small-model"',
        },
        settings=OPENCODE_API,
    ),
    opencode(
        {"GROQ_API_KEY": "authorization: Bearer key-1"},
        "groq/any",
        settings={"provider": {"groq": {"models": {"any": {}}}}},
        GROQ_API_KEY="key-1",
    ),
    opencode(
        {"provider.*.env": "authorization: Bearer key-1"},
        settings={
            "model": "mine/any",
            "provider": {
                "mine": {
                    "npm": "@ai-sdk/openai-compatible",
                    "env": ["MY_KEY"],
                    "options": {"baseURL": f"{LLM}/mine"},
                    "models": {"any": {}},
                }
            },
        },
        MY_KEY="key-1",
    ),
    with_keys(OPENCODE_PROVIDERS),
    *(with_keys(dict(_FURTHER[at : at + 40])) for at in range(0, len(_FURTHER), 40)),
    opencode(
        {
            "ANTHROPIC_API_KEY": "x-api-key: key-1",
            "ANTHROPIC_BASE_URL": f"POST {LLM}/anthropic/messages",
        },
        "anthropic/claude-haiku-4-5",
        ANTHROPIC_API_KEY="key-1",
        ANTHROPIC_BASE_URL=f"{LLM}/anthropic",
    ),
    opencode(
        {"OPENAI_BASE_URL": f"POST {LLM}/openai/responses"},
        "openai/gpt-5.4",
        OPENAI_BASE_URL=f"{LLM}/openai",
    ),
    opencode(
        {"GOOGLE_GENERATIVE_AI_API_KEY": "x-goog-api-key: key-1"},
        "google/gemini-flash-latest",
        GOOGLE_GENERATIVE_AI_API_KEY="key-1",
    ),
    opencode(
        {
            "AZURE_API_KEY": "api-key: key-1",
            "AZURE_RESOURCE_NAME": "POST https://resource-1.openai.azure.com/",
        },
        "azure/gpt-5.4",
        AZURE_API_KEY="key-1",
        AZURE_RESOURCE_NAME="resource-1",
    ),
    opencode(
        {"AZURE_COGNITIVE_SERVICES_*": "POST https://resource-2.cognitiveservices.azure.com/"},
        "azure-cognitive-services/gpt-5.4",
        AZURE_API_KEY="key-1",
        AZURE_COGNITIVE_SERVICES_RESOURCE_NAME="resource-2",
    ),
    *(
        opencode(
            {project: "/projects/project-1/", region: "/locations/europe-west1/"},
            "google-vertex/gemini-3.8-flash",
            config=GOOGLE,
            **{project: "project-1", region: "europe-west1"},
        )
        for project, region in (
            ("GOOGLE_VERTEX_PROJECT", "GOOGLE_VERTEX_LOCATION"),
            ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
            ("GCLOUD_PROJECT", "VERTEX_LOCATION"),
            ("GCP_PROJECT", "GOOGLE_VERTEX_LOCATION"),
        )
    ),
    opencode(
        {"ALIBABA_API_KEY": "authorization: Bearer key-1"},
        settings={
            "model": "mine/any",
            "provider": {
                "mine": {
                    "npm": "@ai-sdk/alibaba",
                    "options": {"baseURL": f"{LLM}/mine"},
                    "models": {"any": {}},
                }
            },
        },
        ALIBABA_API_KEY="key-1",
    ),
    *(
        opencode(
            {
                name: "authorization: Bearer key-1",
                "SNOWFLAKE_ACCOUNT": "POST https://account-1.snowflakecomputing.com/",
            },
            "snowflake-cortex/claude-haiku-4-5",
            **{name: "key-1", "SNOWFLAKE_ACCOUNT": "account-1"},
        )
        for name in ("SNOWFLAKE_CORTEX_TOKEN", "SNOWFLAKE_CORTEX_PAT")
    ),
    opencode(
        {"DATABRICKS_HOST": "POST https://host-1.databricks.com/ai-gateway/"},
        "databricks/any",
        settings={"provider": {"databricks": {"models": {"any": {}}}}},
        config={"DATABRICKS_TOKEN": "key-1"},
        DATABRICKS_HOST="host-1.databricks.com",
    ),
    opencode(
        {"INFOMANIAK_PRODUCT_ID": "POST https://api.infomaniak.com/2/ai/product-1/openai/"},
        "infomaniak/any",
        settings={
            "provider": {"infomaniak": {"models": {"any": {}}, "options": {"apiKey": "key-1"}}}
        },
        INFOMANIAK_PRODUCT_ID="product-1",
    ),
    opencode(
        {"NEON_AI_GATEWAY_BASE_URL": f"POST {LLM}/neon/"},
        "neon/any",
        settings={"provider": {"neon": {"models": {"any": {}}, "options": {"apiKey": "key-1"}}}},
        NEON_AI_GATEWAY_BASE_URL=f"{LLM}/neon",
    ),
    opencode(
        {
            "CLOUDFLARE_ACCOUNT_ID": "/account-1/",
            "CLOUDFLARE_GATEWAY_ID": "/gateway-1",
        },
        "cloudflare-ai-gateway/openai/gpt-5.4",
        config={"CLOUDFLARE_API_TOKEN": "key-1"},
        CLOUDFLARE_ACCOUNT_ID="account-1",
        CLOUDFLARE_GATEWAY_ID="gateway-1",
    ),
    opencode(
        {"CF_AIG_TOKEN": "Bearer key-1"},
        "cloudflare-ai-gateway/openai/gpt-5.4",
        CF_AIG_TOKEN="key-1",
        CLOUDFLARE_ACCOUNT_ID="account-1",
        CLOUDFLARE_GATEWAY_ID="gateway-1",
    ),
    opencode(
        {"TOGETHER_AI_API_KEY": "authorization: Bearer key-1"},
        "togetherai/any",
        settings={"provider": {"togetherai": {"models": {"any": {}}}}},
        TOGETHER_AI_API_KEY="key-1",
    ),
    opencode(
        {"GOOGLE_VERTEX_API_KEY": "x-goog-api-key: key-1"},
        "google-vertex/gemini-3.8-flash",
        GOOGLE_VERTEX_API_KEY="key-1",
        GOOGLE_VERTEX_PROJECT="project-1",
        GOOGLE_VERTEX_LOCATION="europe-west1",
    ),
    opencode(BEDROCK, "amazon-bedrock/google.gemma-3-12b-it", **AWS),
    opencode(FIPS_STS, "amazon-bedrock/google.gemma-3-12b-it", config=FIPS_ROLE, **AT_FIPS_STS),
    opencode(
        {"OPENCODE_AUTH_CONTENT": "authorization: Bearer key-of-login"},
        "groq/llama-3.1-8b-instant",
        OPENCODE_AUTH_CONTENT=json.dumps({"groq": {"type": "api", "key": "key-of-login"}}),
    ),
    opencode(
        {"OPENCODE_CONFIG_CONTENT": f"POST {LLM}/mine/chat/completions"},
        OPENCODE_CONFIG_CONTENT=json.dumps(OPENCODE_MINE),
    ),
    replace(
        opencode(
            {"OPENCODE_DISABLE_PROJECT_CONFIG": '"model":"chosen-model"'},
            settings=OPENCODE_MINE,
            MY_KEY="key-1",
            OPENCODE_DISABLE_PROJECT_CONFIG="1",
        ),
        project={"opencode.json": json.dumps({"model": "openai/gpt-5.4"})},
    ),
    opencode(
        {"OPENCODE_MODELS_URL": f"GET {LLM}/models/"},
        "openai/gpt-5.4",
        OPENCODE_MODELS_URL=f"{LLM}/models",
    ),
]
