"""Rows that several agents' tables share: keys of model providers, and the clouds of Amazon, Google and Microsoft.

Keys for models alone are carried into the sandbox. What gives access to a whole cloud account is not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from aileron_core.launch.routes import Condition, Route

_SHARED_KEYS = (
    "AI_GATEWAY_API_KEY", "BASETEN_API_KEY", "CEREBRAS_API_KEY", "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY", "GROQ_API_KEY", "KIMI_API_KEY", "MINIMAX_API_KEY", "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY", "NVIDIA_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY", "XAI_API_KEY", "XIAOMI_API_KEY",
)  # fmt: skip
OPENCODE_KEYS = (
    *_SHARED_KEYS,
    "AIHUBMIX_API_KEY", "ALIBABA_API_KEY", "ALIBABA_CODING_PLAN_API_KEY",
    "CHUTES_API_KEY", "COHERE_API_KEY",
    "DASHSCOPE_API_KEY", "DEEPINFRA_API_KEY", "FASTROUTER_API_KEY", "HELICONE_API_KEY",
    "INCEPTION_API_KEY", "LLAMA_API_KEY", "LLMGATEWAY_API_KEY", "META_MODEL_API_KEY",
    "MODELSCOPE_API_KEY", "MORPH_API_KEY", "NANO_GPT_API_KEY", "NEBIUS_API_KEY",
    "NOVITA_API_KEY", "OLLAMA_API_KEY", "PERPLEXITY_API_KEY", "POE_API_KEY", "REQUESTY_API_KEY",
    "SILICONFLOW_API_KEY", "STEPFUN_API_KEY", "SYNTHETIC_API_KEY", "UPSTAGE_API_KEY",
    "VENICE_API_KEY", "ZENMUX_API_KEY", "ZHIPU_API_KEY",
)  # fmt: skip
PI_KEYS = (
    *_SHARED_KEYS,
    "ANT_LING_API_KEY", "META_API_KEY", "MINIMAX_CN_API_KEY", "QWEN_TOKEN_PLAN_API_KEY",
    "QWEN_TOKEN_PLAN_CN_API_KEY", "RADIUS_API_KEY", "XIAOMI_TOKEN_PLAN_AMS_API_KEY",
    "XIAOMI_TOKEN_PLAN_CN_API_KEY", "XIAOMI_TOKEN_PLAN_SGP_API_KEY", "ZAI_API_KEY",
    "ZAI_CODING_CN_API_KEY", "LLAMA_API_KEY",
)  # fmt: skip
"""Variables that an agent knows, with the key of a provider that sells nothing but models."""
_WIDE = "gives access to more than models"
_WHOLE = f"{_WIDE}, so the sandbox does not contain it"
_YOURSELF = "or set it yourself, under `env` of `[launch.{agent}]` in config.toml"


def wide_keys(agent: str, instead: str, keys: Mapping[str, Condition]) -> list[Route]:
    """Return the rows of *keys* that open more than models: a variable -> while it counts."""
    why = f"It {_WHOLE}. {instead}, {_YOURSELF.format(agent=agent)}."
    return [
        Route(name=name, chooses="the key of its provider", only_while=only_while, refused=why)
        for name, only_while in keys.items()
    ]


def amazon(
    agent: str, only_while: Condition, reads: tuple[str, ...], *, unless: tuple[str, ...] = ()
) -> list[Route]:
    """Return the rows of Amazon Bedrock, which *agent* uses while *only_while* holds.

    Args:
        reads: the variables for region and address that this agent obeys.
        unless: settings with which it needs no AWS account.
    """
    instead = "Set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key"
    without = ("AWS_BEARER_TOKEN_BEDROCK", *unless)

    def carried(name: str, chooses: str) -> Route:
        return Route(name=name, chooses=chooses, only_while=only_while)

    def refused(name: str, why: str) -> Route:
        advice = f"{why}. {instead}, {_YOURSELF.format(agent=agent)}."
        chooses = "the AWS account"
        return Route(
            name=name, chooses=chooses, refused=advice, only_while=only_while, unless=without
        )

    return [
        carried("AWS_BEARER_TOKEN_BEDROCK", "the key for Bedrock"),
        *(carried(name, "the region" if "REGION" in name else "the address of AWS") for name in reads),
        refused("AWS_*ACCESS_KEY*", f"It {_WHOLE}"),
        refused("AWS_SESSION_TOKEN", f"It {_WHOLE}"),
        refused("AWS_PROFILE", "Profiles are in ~/.aws, which is not in the sandbox"),
        refused("AWS_CONFIG_FILE", "The file is not in the sandbox"),
        refused("AWS_SHARED_CREDENTIALS_FILE", "The file is not in the sandbox"),
        refused("AWS_WEB_IDENTITY_TOKEN_FILE", "The file is not in the sandbox"),
        refused("AWS_CONTAINER_CREDENTIALS_*", f"It {_WHOLE}"),
        refused("AWS_ROLE_ARN", f"It {_WHOLE}"),
        refused("AWS_EC2_METADATA_SERVICE_*", f"It {_WHOLE}"),
        Route(
            name="~/.aws",
            source="login",
            chooses="the AWS account",
            path=".aws",
            refused=f"That {_WHOLE}. {instead}.",
            only_while=only_while,
            unless=(*without, "AWS_*ACCESS_KEY*", "AWS_PROFILE", "AWS_CONFIG_FILE",
                    "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
                    "AWS_CONTAINER_CREDENTIALS_*"),
        ),
    ]  # fmt: skip


_GOOGLE_PLACES = ("CLOUDSDK_CONFIG", "GCE_METADATA_*", "METADATA_SERVER_DETECTION")
_IN_RUST = ("codex", "goose")
"""Agents whose library for Google's logins, other than that of Node.js, obeys none of these."""


def google(
    agent: str,
    only_while: Condition,
    instead: str,
    reads: tuple[str, ...] = (),
    *,
    unless: tuple[str, ...] = (),
) -> list[Route]:
    """Return the rows of Vertex AI, which *agent* uses while *only_while* holds.

    Args:
        reads: Google's variables for project and region that this agent obeys.
        instead: what to do without a Google Cloud login, the beginning of a sentence.
        unless: settings with which it needs no Google Cloud login.
    """
    advice = f"{instead}, {_YOURSELF.format(agent=agent)}."
    return [
        *(
            Route(
                name=name,
                chooses="the region" if "LOCATION" in name else "the Google Cloud project",
                only_while=only_while,
            )
            for name in reads
        ),
        Route(
            name="GOOGLE_APPLICATION_CREDENTIALS",
            chooses="the Google Cloud login",
            refused=f"The file is not in the sandbox, because it {_WIDE}. {advice}",
            only_while=only_while,
            unless=unless,
        ),
        *(
            Route(
                name=name,
                chooses="the Google Cloud login",
                refused=f"It leads to a login that the sandbox does not contain. {advice}",
                only_while=only_while,
                unless=unless,
            )
            for name in (() if agent in _IN_RUST else _GOOGLE_PLACES)
        ),
        Route(
            name="~/.config/gcloud",
            source="login",
            chooses="the Google Cloud login",
            path=".config/gcloud",
            refused=f"That {_WHOLE}. {instead}.",
            only_while=only_while,
            unless=(*unless, "GOOGLE_APPLICATION_CREDENTIALS"),
        ),
    ]


_CHOOSES_NOTHING = (
    "AWS_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_SESSION_TOKEN",
    "AWS_USE_*_ENDPOINT", "GOOGLE_CLOUD_LOCATION", *_GOOGLE_PLACES,
)  # fmt: skip


def beside_logins(routes: Iterable[Route]) -> list[Route]:
    """Return *routes* of an agent that may use a provider of its own accord: not because of a region or a folder."""
    return [
        replace(route, only_while=replace(route.only_while, choice=None))
        if route.only_while is not None and route.name in _CHOOSES_NOTHING
        else route
        for route in routes
    ]


def microsoft(only_while: Condition, instead: str, *, unless: tuple[str, ...] = ()) -> list[Route]:
    """Return the rows of an Azure login; parameters as of `google`."""
    return [
        *(
            Route(
                name=name,
                chooses="the Azure login",
                refused=f"It {_WHOLE}. {instead}.",
                only_while=only_while,
                unless=unless,
            )
            for name in (
                "AZURE_CLIENT_*",
                "AZURE_CONFIG_DIR",
                "AZURE_FEDERATED_TOKEN_FILE",
                "AZURE_PASSWORD",
                "AZURE_USERNAME",
                "IDENTITY_ENDPOINT",
                "MSI_ENDPOINT",
            )
        ),
        Route(
            name="~/.azure",
            source="login",
            chooses="the Azure login",
            path=".azure",
            refused=f"That {_WHOLE}. {instead}.",
            only_while=only_while,
            unless=unless,
        ),
    ]
