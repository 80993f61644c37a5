"""Frameworks on top of the SDKs, unmodified, under `aileron launch --augment`; with `make test-all` alone."""

import sys
from pathlib import Path

import pytest

from tests.process.clients.cases import CASES, go
from tests.process.clients.conftest import PROGRAMS, Client
from tests.support.variants import ALL

pytestmark = pytest.mark.skipif(not ALL, reason="only with AILERON_TEST_ALL")

PYDANTIC_AI = [
    ("framework_pydantic_ai.py", model, manner)
    for model in ("openai-chat:gpt-4o", "openai-responses:gpt-4o", "anthropic:claude-sonnet-4-5")
    for manner in ("sync", "async", "streamed")
]
LLM = [
    ("framework_llm.py", model, manner)
    for model in ("gpt-4o-mini", "gpt-5.4-mini")
    for manner in ("async", "async-streamed")
]
LLM_CHAT = [
    ("-m", model, *options)
    for model in ("gpt-4o-mini", "gpt-5.4-mini")
    for options in ((), ("--no-stream",))
]
OPENAI_AGENTS = [
    ("framework_openai_agents.py", manner) for manner in ("sync", "async", "streamed", "chained")
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("words", [*PYDANTIC_AI, *LLM, *OPENAI_AGENTS], ids=" ".join)
def test_an_agent_on_a_framework(
    words: tuple[str, ...], case: str, request: pytest.FixtureRequest
) -> None:
    """It knows nothing of Aileron, and never sees one of its tools."""
    go(case, request, *words)


def read_chat(client: Client) -> str:
    """Read the answer of `llm chat`: what stands behind its prompt."""
    while not (line := client.line()).startswith("> "):
        pass
    notes = client.stderr.with_name("notes")
    client.notes = notes.read_text("utf-8").splitlines() if notes.exists() else []
    return line.removeprefix("> ").rstrip()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", LLM_CHAT, ids=" ".join)
def test_the_program_llm(
    options: tuple[str, ...], case: str, request: pytest.FixtureRequest
) -> None:
    """As a person starts it, with one tool of their own."""
    words = [str(Path(sys.executable).with_name("llm")), "chat", *options]
    words += ["--functions", str(PROGRAMS / "llm_functions.py")]
    go(case, request, *words, reads=read_chat, goodbye="exit\n")
