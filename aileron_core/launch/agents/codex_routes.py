"""The rows of Codex: what chooses its model, where its requests go and with which key."""

from aileron_core.launch.agents.provider_routes import amazon, google
from aileron_core.launch.routes import Condition, Route

_BEDROCK = Condition("the provider is amazon-bedrock", ("model_provider=amazon-bedrock",))
_VERTEX = Condition("the provider is gcp", ("model_provider=gcp",))
_OWN_PROVIDER = "model_providers.*"
_OWN_KEY = "Name a variable with the key instead (`env_key`)"
CODEX_ROUTES = (
    *(
        Route(name=name, chooses=chooses)
        for name, chooses in (
            ("OPENAI_API_KEY", "the key"),
            ("CODEX_API_KEY", "the key of `codex exec`"),
            ("CODEX_ACCESS_TOKEN", "the account"),
            ("OPENAI_ORGANIZATION", "the organization that pays"),
            ("OPENAI_PROJECT", "the project that pays"),
            ("CODEX_OSS_BASE_URL", "the address of a local model"),
            ("CODEX_OSS_PORT", "the address of a local model"),
            ("CODEX_CA_CERTIFICATE", "the certificates of its connections"),
        )
    ),
    *(
        Route(name=name, chooses=chooses, source="settings")
        for name, chooses in (
            ("model", "the model"),
            ("model_provider", "the provider"),
            ("openai_base_url", "the address"),
            ("chatgpt_base_url", "the address"),
            (f"{_OWN_PROVIDER}.base_url", "the address"),
            (f"{_OWN_PROVIDER}.http_headers", "headers of each request"),
            (f"{_OWN_PROVIDER}.query_params", "the address"),
            (f"{_OWN_PROVIDER}.experimental_bearer_token", "the key"),
        )
    ),
    *(
        Route(name=name, chooses=chooses, source="settings", names_variables=True)
        for name, chooses in (
            (f"{_OWN_PROVIDER}.env_key", "the variable with the key"),
            (f"{_OWN_PROVIDER}.env_http_headers.*", "variables with headers"),
        )
    ),
    *(
        Route(name=name, chooses=chooses, source="settings", refused=f"{why} {instead}.")
        for name, chooses, why, instead in (
            (f"{_OWN_PROVIDER}.aws.profile", "the AWS account",
             "Profiles are in ~/.aws, which is not in the sandbox.",
             "Set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key instead"),
            (f"{_OWN_PROVIDER}.aws.credential_export.*", "the AWS account",
             "It is a program of yours, which the sandbox does not contain.",
             "Set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key instead"),
            (f"{_OWN_PROVIDER}.credential_file", "the Google Cloud login",
             "The file is not in the sandbox.", "Choose a provider with a key instead"),
            (f"{_OWN_PROVIDER}.gateway_oauth.*", "the login",
             "Its token is kept where the sandbox has no copy.", "Choose a provider with a key instead"),
            (f"{_OWN_PROVIDER}.aws.auth_refresh.*", "the AWS account",
             "It is a program of yours, which the sandbox does not contain.",
             "Set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key instead"),
            ("model_catalog_json", "the list of models",
             "The file is not in the sandbox.", "Remove it for this launch"),
        )
    ),
    Route(
        name=f"{_OWN_PROVIDER}.auth.command",
        chooses="the key",
        source="settings",
        refused=f"It is a program that is not in the sandbox. {_OWN_KEY}.",
        runs_program=True,
    ),
    Route(
        name="cli_auth_credentials_store",
        chooses="where its login is",
        source="settings",
        only_while=Condition(
            'it is "keyring" or "auto"',
            ("cli_auth_credentials_store=keyring", "cli_auth_credentials_store=auto"),
        ),
        refused=(
            "The keyring is not in the sandbox. Remove that setting and log in again (`codex login`)."
        ),
    ),
    *amazon(
        "codex", _BEDROCK, ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_USE_*_ENDPOINT"),
        unless=(f"{_OWN_PROVIDER}.aws.profile", f"{_OWN_PROVIDER}.aws.credential_export.*"),
    ),
    *google(
        "codex",
        _VERTEX,
        "Choose a provider with a key",
        ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
        unless=(f"{_OWN_PROVIDER}.credential_file", f"{_OWN_PROVIDER}.auth.command"),
    ),
    *(
        Route(
            name=name,
            chooses="the login",
            refused="Its token's file is not in the sandbox. Set OPENAI_API_KEY instead, and unset it for this launch.",
        )
        for name in ("OPENAI_FEDERATION_RULE_ID", "OPENAI_IDENTITY_TOKEN_FILE")
    ),
    *(
        Route(
            name=name,
            chooses=chooses,
            refused="Set it yourself, under `env` of `[launch.codex]` in config.toml, or unset it for this launch.",
        )
        for name, chooses in (
            ("CODEX_APP_SERVER_LOGIN_ISSUER", "where it logs in"),
            ("CODEX_AUTHAPI_BASE_URL", "where its login is renewed"),
            ("CODEX_REFRESH_TOKEN_URL_OVERRIDE", "where its login is renewed"),
            ("CODEX_GUARDIAN_DECISIONS_API_KEY", "the key with which it has approvals judged"),
        )
    ),
    Route(
        name="CODEX_HOME",
        chooses="its settings and its login",
        path=".codex",
        refused="The sandbox contains a copy of ~/.codex only. Put the settings there and unset it for this launch.",
    ),
)  # fmt: skip
