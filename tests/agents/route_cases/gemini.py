"""Starts that show what is carried for Gemini CLI."""

import json
from collections.abc import Mapping
from dataclasses import replace

from tests.agents.routed import GOOGLE, LLM, THROUGH_PROXY, Case


def gemini(
    rows: Mapping[str, str],
    *,
    login: str = "",
    settings: Mapping[str, object] | None = None,
    config: Mapping[str, str] | None = None,
    **env: str,
) -> Case:
    chosen = {"security": {"auth": {"selectedType": login}}} if login else {}
    return Case(
        rows=rows,
        args=("--skip-trust", "-p", "hello"),
        env={**THROUGH_PROXY, "GEMINI_API_KEY": "", **env},
        files={".gemini/settings.json": json.dumps({**chosen, **(settings or {})})},
        config=config or {},
    )


_WITH_KEY = {"selectedType": "gemini-api-key"}
GEMINI = [
    gemini(
        {
            "GEMINI_API_KEY": "x-goog-api-key: key-1",
            "GEMINI_API_KEY_AUTH_MECHANISM": "authorization: Bearer key-1",
            "GEMINI_CLI_CUSTOM_HEADERS": "x-team: blue",
            "GEMINI_MODEL": "/models/chosen-model:",
            "GOOGLE_GEMINI_BASE_URL": f"POST {LLM}/mine/",
            "GOOGLE_GENAI_API_VERSION": "/mine/v7/models/",
        },
        login="gemini-api-key",
        GEMINI_API_KEY="key-1",
        GEMINI_API_KEY_AUTH_MECHANISM="bearer",
        GEMINI_CLI_CUSTOM_HEADERS="x-team: blue",
        GEMINI_MODEL="chosen-model",
        GOOGLE_GEMINI_BASE_URL=f"{LLM}/mine",
        GOOGLE_GENAI_API_VERSION="v7",
    ),
    gemini(
        {"model.name": "/models/model-of-settings:"},
        login="gemini-api-key",
        settings={"model": {"name": "model-of-settings"}},
        GEMINI_API_KEY="key-1",
    ),
    gemini(
        {
            "GOOGLE_API_KEY": "x-goog-api-key: key-2",
            "GOOGLE_VERTEX_BASE_URL": f"POST {LLM}/vertex/",
            "security.auth.selectedType": "/publishers/google/models/",
        },
        login="vertex-ai",
        GOOGLE_API_KEY="key-2",
        GOOGLE_VERTEX_BASE_URL=f"{LLM}/vertex",
    ),
    gemini(
        {
            "GOOGLE_GENAI_USE_VERTEXAI": "POST https://europe-west1-aiplatform.googleapis.com/",
            "GOOGLE_CLOUD_LOCATION": "/locations/europe-west1/",
            "GOOGLE_CLOUD_QUOTA_PROJECT": "x-goog-user-project: project-2",
            "GOOGLE_CLOUD_PROJECT*": "/projects/project-1/",
        },
        config=GOOGLE,
        GOOGLE_GENAI_USE_VERTEXAI="true",
        GOOGLE_CLOUD_PROJECT="project-1",
        GOOGLE_CLOUD_QUOTA_PROJECT="project-2",
        GOOGLE_CLOUD_LOCATION="europe-west1",
    ),
    gemini(
        {
            "GOOGLE_GENAI_USE_GCA": ":loadCodeAssist",
            "CODE_ASSIST_*": f"POST {LLM}/assist/",
        },
        config={"GOOGLE_CLOUD_ACCESS_TOKEN": "token-1"},
        GOOGLE_GENAI_USE_GCA="true",
        CODE_ASSIST_ENDPOINT=f"{LLM}/assist",
    ),
    gemini(
        {"$VARIABLE": "/models/model-of-mine:"},
        login="gemini-api-key",
        settings={"model": {"name": "${MY_MODEL}"}},
        GEMINI_API_KEY="key-1",
        MY_MODEL="model-of-mine",
    ),
    replace(
        gemini(
            {"GEMINI_CLI_TRUST_WORKSPACE": "/models/model-of-project:"},
            login="gemini-api-key",
            settings={"security": {"folderTrust": {"enabled": True}, "auth": _WITH_KEY}},
            GEMINI_API_KEY="key-1",
            GEMINI_CLI_TRUST_WORKSPACE="true",
        ),
        args=("-p", "hello"),
        project={".env": "GEMINI_MODEL=model-of-project\n"},
    ),
    gemini(
        {"CLOUD_SHELL": "http://169.254.169.254/computeMetadata/"},
        CLOUD_SHELL="true",
    ),
    gemini(
        {"GEMINI_CLI_USE_COMPUTE_ADC": "http://169.254.169.254/computeMetadata/"},
        GEMINI_CLI_USE_COMPUTE_ADC="true",
    ),
]
