"""Starts that show what is carried for Codex."""

import json
from collections.abc import Mapping

from tests.agents.route_cases.common import AT_FIPS_STS, FIPS_ROLE, FIPS_STS
from tests.agents.routed import LLM, PORT, PROJECT, THROUGH_PROXY, Case

MINE = f"""\
model = "chosen-model"
model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "{LLM}/mine"
env_key = "MY_KEY"
wire_api = "responses"
query_params = {{ api-version = "7" }}
http_headers = {{ x-fixed = "fixed" }}
env_http_headers = {{ x-team = "MY_TEAM" }}
"""
TOKEN_OF_PROVIDER = f"""\
model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "{LLM}/mine"
experimental_bearer_token = "token-1"
"""
TOKEN_FROM_PROGRAM = """\
model_provider = "gcp"
[model_providers.gcp.auth]
command = "/bin/echo"
args = ["token-2"]
"""
_JWT = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln"
CHATGPT = {
    "auth_mode": "chatgpt",
    "tokens": {"id_token": _JWT, "access_token": _JWT, "refresh_token": "r", "account_id": "a"},
    "last_refresh": "2099-01-01T00:00:00Z",
}


def codex(
    rows: Mapping[str, str],
    *args: str,
    config: str = "",
    login: str = "",
    of_toml: Mapping[str, str] | None = None,
    **env: str,
) -> Case:
    files = {".codex/config.toml": config}
    if login:
        files[".codex/auth.json"] = login
    words = ("exec", "--skip-git-repo-check", *args, "hello")
    return Case(
        rows=rows, args=words, env={**THROUGH_PROXY, **env}, files=files, config=of_toml or {}
    )


CODEX = [
    codex(
        {
            "model": '"model":"chosen-model"',
            "model_provider": f"POST {LLM}/mine/",
            "model_providers.*.base_url": f"POST {LLM}/mine/responses",
            "model_providers.*.query_params": "/responses?api-version=7",
            "model_providers.*.env_key": "authorization: Bearer sk-mine",
            "model_providers.*.http_headers": "x-fixed: fixed",
            "model_providers.*.env_http_headers.*": "x-team: blue",
        },
        config=MINE,
        MY_KEY="sk-mine",
        MY_TEAM="blue",
    ),
    codex(
        {
            "OPENAI_API_KEY": "authorization: Bearer sk-1",
            "OPENAI_ORGANIZATION": "openai-organization: org-1",
            "OPENAI_PROJECT": "openai-project: proj-1",
        },
        OPENAI_API_KEY="sk-1",
        OPENAI_ORGANIZATION="org-1",
        OPENAI_PROJECT="proj-1",
    ),
    codex({"CODEX_API_KEY": "authorization: Bearer sk-2"}, CODEX_API_KEY="sk-2"),
    # With a token of an account, Codex asks first whose it is.
    codex(
        {"CODEX_ACCESS_TOKEN": "authorization: Bearer at-1"},
        CODEX_ACCESS_TOKEN="at-1",
        OPENAI_API_KEY="",
    ),
    codex(
        {"CODEX_OSS_BASE_URL": f"GET {LLM}/oss/"},
        *("--oss", "--local-provider", "ollama", "-m", "x"),
        CODEX_OSS_BASE_URL=f"{LLM}/oss",
    ),
    codex(
        {"CODEX_OSS_PORT": f"GET http://localhost:{PORT}/"},
        *("--oss", "--local-provider", "ollama", "-m", "x"),
        CODEX_OSS_PORT=PORT,
    ),
    codex(
        {"openai_base_url": f" {LLM}/mine/responses"}, config=f'openai_base_url = "{LLM}/mine"\n'
    ),
    codex(
        {"chatgpt_base_url": f" {LLM}/account/"},
        config=f'chatgpt_base_url = "{LLM}/account"\n',
        login=json.dumps(CHATGPT),
    ),
    codex(
        {"model_providers.*.experimental_bearer_token": "authorization: Bearer token-1"},
        config=TOKEN_OF_PROVIDER,
    ),
    codex(
        {
            "AWS_BEARER_TOKEN_BEDROCK": "authorization: Bearer aws-1",
            "AWS_REGION": "https://bedrock-mantle.eu-west-1.api.aws/",
        },
        *("-c", "model_provider=amazon-bedrock"),
        AWS_BEARER_TOKEN_BEDROCK="aws-1",
        AWS_REGION="eu-west-1",
    ),
    codex(
        {"AWS_DEFAULT_REGION": "https://bedrock-mantle.eu-west-2.api.aws/"},
        *("-c", "model_provider=amazon-bedrock"),
        AWS_BEARER_TOKEN_BEDROCK="aws-1",
        AWS_DEFAULT_REGION="eu-west-2",
    ),
    codex(
        FIPS_STS,
        *("-c", "model_provider=amazon-bedrock"),
        of_toml=FIPS_ROLE,
        **AT_FIPS_STS,
    ),
    codex(
        {"CODEX_CA_CERTIFICATE": "https://api.groq.com/"},
        config='model_provider = "mine"\n[model_providers.mine]\nname = "mine"\nbase_url = "https://api.groq.com/v1"\n',
        SSL_CERT_FILE="",
        CODEX_CA_CERTIFICATE=f"{PROJECT}/ca.pem",
    ),
    codex(
        {
            "GOOGLE_CLOUD_PROJECT": "/projects/project-1/",
            "GOOGLE_CLOUD_LOCATION": "/locations/europe-west1/",
        },
        *("-m", "x"),
        config=TOKEN_FROM_PROGRAM,
        GOOGLE_CLOUD_PROJECT="project-1",
        GOOGLE_CLOUD_LOCATION="europe-west1",
    ),
]
