"""Starts that show what is carried for Pi."""

import json
from collections.abc import Mapping

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
    value,
)
from tests.agents.routed import GOOGLE, LLM, THROUGH_PROXY, Case

PI_PROVIDERS = {
    "AI_GATEWAY_API_KEY": "vercel-ai-gateway", "ANT_LING_API_KEY": "ant-ling",
    "ANTHROPIC_API_KEY": "anthropic", "ANTHROPIC_AUTH_TOKEN": "anthropic",
    "ANTHROPIC_OAUTH_TOKEN": "anthropic", "BASETEN_API_KEY": "baseten",
    "CEREBRAS_API_KEY": "cerebras", "DEEPSEEK_API_KEY": "deepseek",
    "FIREWORKS_API_KEY": "fireworks", "GEMINI_API_KEY": "google",
    "GOOGLE_CLOUD_API_KEY": "google-vertex", "GROQ_API_KEY": "groq",
    "KIMI_API_KEY": "kimi-coding", "META_API_KEY": "meta", "MINIMAX_API_KEY": "minimax",
    "MINIMAX_CN_API_KEY": "minimax-cn", "MISTRAL_API_KEY": "mistral",
    "MOONSHOT_API_KEY": "moonshotai", "NVIDIA_API_KEY": "nvidia", "OPENAI_API_KEY": "openai",
    "OPENCODE_API_KEY": "opencode", "OPENROUTER_API_KEY": "openrouter",
    "QWEN_TOKEN_PLAN_API_KEY": "qwen-token-plan",
    "QWEN_TOKEN_PLAN_CN_API_KEY": "qwen-token-plan-cn", "RADIUS_API_KEY": "radius",
    "TOGETHER_API_KEY": "together", "XAI_API_KEY": "xai", "XIAOMI_API_KEY": "xiaomi",
    "XIAOMI_TOKEN_PLAN_AMS_API_KEY": "xiaomi-token-plan-ams",
    "XIAOMI_TOKEN_PLAN_CN_API_KEY": "xiaomi-token-plan-cn",
    "XIAOMI_TOKEN_PLAN_SGP_API_KEY": "xiaomi-token-plan-sgp", "ZAI_API_KEY": "zai",
    "ZAI_CODING_CN_API_KEY": "zai-coding-cn",
}  # fmt: skip
PI_MINE = {
    "providers": {
        "mine": {
            "baseUrl": f"{LLM}/mine",
            "api": "openai-completions",
            "apiKey": "key-of-settings",
            "headers": {"x-team": "blue", "x-other": "${MY_TEAM}"},
            "models": [{"id": "chosen-model"}],
        }
    }
}


LLAMA = {
    "id": "any", "name": "any", "provider": "llama.cpp", "api": "openai-completions",
    "baseUrl": "http://from-an-earlier-start/v1", "reasoning": False, "input": ["text"],
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    "contextWindow": 1000, "maxTokens": 100,
}  # fmt: skip
"""A model that Pi has found at a server before."""


def pi(
    rows: Mapping[str, str],
    provider: str = "",
    *,
    files: Mapping[str, object] | None = None,
    config: Mapping[str, str] | None = None,
    **env: str,
) -> Case:
    typed = ("--provider", provider, "--model", "any") if provider else ()
    return Case(
        rows=rows,
        args=("-p", *typed, "hello"),
        env={**THROUGH_PROXY, **env},
        files={f".pi/agent/{name}": json.dumps(each) for name, each in (files or {}).items()},
        config=config or {},
    )


PI = [
    pi(
        {
            "defaultProvider": f"POST {LLM}/mine/",
            "defaultModel": '"model":"chosen-model"',
            "providers.*.baseUrl": f"POST {LLM}/mine/chat/completions",
            "providers.*.apiKey": "authorization: Bearer key-of-settings",
            "providers.*.headers.*": "x-team: blue",
            "$VARIABLE": "x-other: green",
        },
        files={
            "settings.json": {"defaultProvider": "mine", "defaultModel": "chosen-model"},
            "models.json": PI_MINE,
        },
        MY_TEAM="green",
    ),
    pi(
        {"enabledModels": f"POST {LLM}/mine/chat/completions"},
        files={"settings.json": {"enabledModels": ["mine/*"]}, "models.json": PI_MINE},
        MY_TEAM="green",
    ),
    pi(
        {"httpProxy": "POST https://api.groq.com/"},  # which no other setting makes an agent reach
        "groq",
        files={"settings.json": {"httpProxy": LLM}},
        HTTPS_PROXY="",
        GROQ_API_KEY="key-1",
    ),
    *(
        pi(
            {name: value(name)},
            provider,
            **{**({"ANTHROPIC_API_KEY": ""} if provider == "anthropic" else {}), name: value(name)},
        )
        for name, provider in PI_PROVIDERS.items()
    ),
    pi(
        {"LLAMA_BASE_URL": f"POST {LLM}/llama/", "LLAMA_API_KEY": "authorization: Bearer key-1"},
        "llama.cpp",
        files={"models-store.json": {"llama.cpp": {"models": [LLAMA], "lastModified": 1}}},
        LLAMA_BASE_URL=f"{LLM}/llama",
        LLAMA_API_KEY="key-1",
    ),
    pi(
        {"AZURE_OPENAI_*": f"POST {LLM}/azure/responses"},
        "azure-openai-responses",
        AZURE_OPENAI_API_KEY="key-1",
        AZURE_OPENAI_BASE_URL=f"{LLM}/azure",
    ),
    *(
        pi(
            {project: "/projects/project-1/", "GOOGLE_CLOUD_LOCATION": "/locations/europe-west1/"},
            "google-vertex",
            config=GOOGLE,
            **{project: "project-1", "GOOGLE_CLOUD_LOCATION": "europe-west1"},
        )
        for project in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
    ),
    pi(BEDROCK, "amazon-bedrock", **AWS),
    pi(DEFAULT_REGION, "amazon-bedrock", **IN_DEFAULT_REGION),
    pi(ENDPOINT, "amazon-bedrock", **AT_ENDPOINT),
    pi(FIPS, "amazon-bedrock", **AT_FIPS),
    pi(
        {
            "OPENAI_ORG_ID": "openai-organization: organization-1",
            "OPENAI_PROJECT_ID": "openai-project: project-1",
            "OPENAI_CUSTOM_HEADERS": "x-team: blue",
        },
        "openai",
        OPENAI_ORG_ID="organization-1",
        OPENAI_PROJECT_ID="project-1",
        OPENAI_CUSTOM_HEADERS="x-team: blue",
    ),
    pi(
        {"ANTHROPIC_CUSTOM_HEADERS": "x-team: blue"},
        "anthropic",
        ANTHROPIC_CUSTOM_HEADERS="x-team: blue",
    ),
    pi(
        {"GOOGLE_VERTEX_BASE_URL": f"POST {LLM}/vertex/"},
        "google-vertex",
        config=GOOGLE,
        GOOGLE_CLOUD_PROJECT="project-1",
        GOOGLE_CLOUD_LOCATION="europe-west1",
        GOOGLE_VERTEX_BASE_URL=f"{LLM}/vertex",
    ),
    # It signs with a key of no value instead of the one that is there.
    pi(
        {"AWS_BEDROCK_SKIP_AUTH": "authorization: AWS4-HMAC-SHA256 Credential=dummy"},
        "amazon-bedrock",
        config=AWS_ACCOUNT,
        AWS_BEDROCK_SKIP_AUTH="1",
        AWS_REGION="eu-west-1",
    ),
]
