"""The rows of Claude Code: what chooses its model, where its requests go and with which key."""

from aileron_core.launch.agents.provider_routes import amazon, google, microsoft
from aileron_core.launch.routes import Condition, Route

_BEDROCK = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_MANTLE")
_AWS = "CLAUDE_CODE_USE_ANTHROPIC_AWS"
_VERTEX = "CLAUDE_CODE_USE_VERTEX"
_GOOGLE = "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD"
_FOUNDRY = "CLAUDE_CODE_USE_FOUNDRY"
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_OWN_KEY = "Set ANTHROPIC_API_KEY instead"
_PROGRAM = "It runs a program that is not in the sandbox."
_NO_GOOGLE_LOGIN = (
    f"{_OWN_KEY} and unset that variable, or let a proxy sign (CLAUDE_CODE_SKIP_VERTEX_AUTH)"
)


def _rows(chooses: str, *names: str, only_while: Condition | None = None) -> list[Route]:
    return [Route(name=name, chooses=chooses, only_while=only_while) for name in names]


def _refused(chooses: str, why: str, *names: str) -> list[Route]:
    return [Route(name=name, chooses=chooses, refused=why) for name in names]


_AT_AWS = Condition("a provider at AWS is chosen", (*_BEDROCK, _AWS))
_NO_AWS = (
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_MANTLE_AUTH",
    "CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH", "ANTHROPIC_AWS_API_KEY",
)  # fmt: skip
_AT_GOOGLE = Condition("a provider at Google is chosen", (_VERTEX, _GOOGLE))
_NO_GOOGLE = (
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_SKIP_ANTHROPIC_GOOGLE_CLOUD_AUTH",
)
_ON_BEDROCK = Condition("Bedrock or Mantle is chosen", _BEDROCK)
_ON_AWS = Condition("Anthropic on AWS is chosen", (_AWS,))
_ON_VERTEX = Condition("Vertex is chosen", (_VERTEX,))
_ON_GOOGLE = Condition("Anthropic on Google Cloud is chosen", (_GOOGLE,))
_ON_FOUNDRY = Condition("Foundry is chosen", (_FOUNDRY,))
CLAUDE_ROUTES = (
    *_rows("the key", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    *_rows("the account", "CLAUDE_CODE_OAUTH_TOKEN"),
    *_rows("the address", "ANTHROPIC_BASE_URL"),
    *_rows("headers of each request", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_BETAS"),
    *_rows("more of each request", "CLAUDE_CODE_EXTRA_BODY"),
    *_rows(
        "the model",
        "ANTHROPIC_MODEL",
        "ANTHROPIC_DEFAULT_*",
        "ANTHROPIC_SMALL_FAST_MODEL*",
        "ANTHROPIC_CUSTOM_MODEL_OPTION*",
        "CLAUDE_CODE_SUBAGENT_MODEL*",
        "CLAUDE_CODE_WORKFLOW_SUBAGENT_MODEL",
        "CLAUDE_CODE_AUTO_MODE_MODEL",
    ),
    Route(name="model", chooses="the model", source="settings"),
    *_rows("the provider", *_BEDROCK, _AWS, _VERTEX, _GOOGLE, _FOUNDRY, "CLAUDE_CODE_USE_GATEWAY"),
    *_rows(
        "the address, or a proxy that signs",
        "ANTHROPIC_BEDROCK_*",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "CLAUDE_CODE_SKIP_MANTLE_AUTH",
        only_while=_ON_BEDROCK,
    ),
    *_rows(
        "the workspace, its key and address",
        "ANTHROPIC_AWS_*",
        "CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH",
        only_while=_ON_AWS,
    ),
    *amazon(
        "claude",
        _AT_AWS,
        ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_USE_*_ENDPOINT"),
        unless=_NO_AWS,
    ),
    *_rows(
        "the project, region and address",
        "ANTHROPIC_VERTEX_*",
        "CLOUD_ML_REGION",
        "VERTEX_REGION_*",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        only_while=_ON_VERTEX,
    ),
    *_rows(
        "the project, workspace and address",
        "ANTHROPIC_GOOGLE_CLOUD_*",
        "CLAUDE_CODE_SKIP_ANTHROPIC_GOOGLE_CLOUD_AUTH",
        only_while=_ON_GOOGLE,
    ),
    *google(
        "claude",
        _AT_GOOGLE,
        _NO_GOOGLE_LOGIN,
        ("GOOGLE_CLOUD_QUOTA_PROJECT",),
        unless=_NO_GOOGLE,
    ),
    *(
        Route(
            name=name,
            chooses="the project",
            only_while=_ON_VERTEX,
            unless=("ANTHROPIC_VERTEX_PROJECT_ID",),
            refused="It is not carried into the sandbox. Set ANTHROPIC_VERTEX_PROJECT_ID instead.",
        )
        for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
    ),
    *_rows(
        "the resource, its key and address",
        "ANTHROPIC_FOUNDRY_*",
        "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
        only_while=_ON_FOUNDRY,
    ),
    *microsoft(
        _ON_FOUNDRY,
        "Set ANTHROPIC_FOUNDRY_API_KEY",
        unless=(
            "ANTHROPIC_FOUNDRY_API_KEY",
            "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
            "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
        ),
    ),
    *_refused(
        "the connection",
        "That socket is not in the sandbox. Unset it for this launch.",
        "ANTHROPIC_UNIX_SOCKET",
        "CLAUDE_CODE_RUNNER_MODEL_SOCKET",
    ),
    *_refused(
        "the key",
        f"Open files are not passed into the sandbox. {_OWN_KEY}.",
        "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
        "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
        "CLAUDE_CODE_GATEWAY_TOKEN_FILE_DESCRIPTOR",
    ),
    *_refused(
        "the login",
        f"Its files are not in the sandbox. {_OWN_KEY}, and unset it for this launch.",
        "ANTHROPIC_PROFILE",
        "ANTHROPIC_CONFIG_DIR",
        "ANTHROPIC_IDENTITY_TOKEN_FILE",
    ),
    *_refused(
        "the login",
        f"It belongs to a login that the sandbox does not contain. {_OWN_KEY}, and unset it for this launch.",
        "ANTHROPIC_FEDERATION_RULE_ID",
    ),
    *(
        Route(
            name=name,
            chooses="the login",
            unless=_KEYS,
            refused=f"It belongs to a login that the sandbox does not contain. {_OWN_KEY}, or unset it for this launch.",
        )
        for name in (
            "ANTHROPIC_IDENTITY_TOKEN",
            "ANTHROPIC_ORGANIZATION_ID",
            "ANTHROPIC_SCOPE",
            "ANTHROPIC_SERVICE_ACCOUNT_ID",
            "ANTHROPIC_WORKSPACE_ID",
            "CLAUDE_CODE_FEDERATION_CACHE_DIR",
            "CLAUDE_CODE_HOST_*",
            "CLAUDE_CODE_OAUTH_CLIENT_ID",
            "CLAUDE_CODE_OAUTH_SCOPES",
            "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST",
            "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
            "CLAUDE_SESSION_INGRESS_TOKEN_FILE",
        )
    ),
    Route(
        name="~/.config/anthropic",
        source="login",
        chooses="the login and the address",
        path=".config/anthropic",
        unless=_KEYS,
        refused=f"The sandbox does not contain it. {_OWN_KEY}.",
    ),
    *_refused(
        "the account",
        "It is for one login only, which would be lost with the sandbox. Log in with `claude` and unset it for this launch.",
        "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    ),
    *_refused(
        "the address",
        "Set ANTHROPIC_BASE_URL instead, or set it yourself, under `env` of `[launch.claude]` in config.toml.",
        "CLAUDE_CODE_API_BASE_URL",
        "CLAUDE_CODE_CUSTOM_OAUTH_URL",
        "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL",
    ),
    Route(
        name="AWS_ENDPOINT_URL*",
        chooses="the address of AWS",
        only_while=_AT_AWS,
        refused="Set ANTHROPIC_BEDROCK_BASE_URL instead, or set it yourself, under `env` of `[launch.claude]` in config.toml.",
    ),
    *_refused(
        "the list of models",
        "Set it yourself, under `env` of `[launch.claude]` in config.toml, or unset it for this launch.",
        "CLAUDE_CODE_CLIENT_DATA_URL",
        "CLAUDE_CODE_MODEL_CATALOG_URL",
    ),
    *_refused(
        "its settings",
        "The file is not in the sandbox. Put the settings into ~/.claude/settings.json, and unset it for this launch.",
        "CLAUDE_CODE_MANAGED_SETTINGS_PATH",
        "CLAUDE_CODE_REMOTE_SETTINGS_PATH",
    ),
    Route(
        name="CLAUDE_SECURESTORAGE_CONFIG_DIR",
        chooses="its login",
        path=".claude",
        refused="The sandbox contains a copy of ~/.claude only. Log in there, and unset it for this launch.",
    ),
    *_refused(
        "the client certificate",
        "The file is not in the sandbox. Unset it for this launch.",
        "CLAUDE_CODE_CLIENT_CERT",
        "CLAUDE_CODE_CLIENT_KEY",
        "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    ),
    Route(
        name="CLAUDE_CONFIG_DIR",
        chooses="its settings and its login",
        path=".claude",
        refused="The sandbox contains a copy of ~/.claude only. Put the settings there and unset it for this launch.",
    ),
    Route(
        name="apiKeyHelper",
        chooses="the key",
        source="settings",
        refused=f"{_PROGRAM} {_OWN_KEY}.",
        runs_program=True,
        unless=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    ),
    *(
        Route(
            name=name,
            chooses="the AWS account",
            source="settings",
            only_while=_AT_AWS,
            refused=f"{_PROGRAM} Set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key.",
            runs_program=True,
            unless=("AWS_BEARER_TOKEN_BEDROCK", *_NO_AWS),
        )
        for name in ("awsCredentialExport", "awsAuthRefresh")
    ),
    Route(
        name="gcpAuthRefresh",
        chooses="the Google Cloud login",
        source="settings",
        only_while=_AT_GOOGLE,
        refused=f"{_PROGRAM} {_NO_GOOGLE_LOGIN}.",
        runs_program=True,
        unless=_NO_GOOGLE,
    ),
)
