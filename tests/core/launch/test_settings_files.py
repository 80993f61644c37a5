"""Whatever stands in an agent's settings, reading it ends in an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.settings_files import (
    json_table,
    option_value,
    parse_env_file,
    toml_table,
    yaml_table,
)
from tests.core.launch.plans import context

KEYS = (
    "auth_mode", "OPENAI_API_KEY", "tokens", "profile", "profiles", "model_provider", "env", "model",
    "model_providers", "openai_base_url", "ANTHROPIC_BASE_URL", "security", "auth", "selectedType",
    "provider", "providers", "openai", "options", "baseURL", "baseUrl", "defaultProvider", "type",
)  # fmt: skip
NAMES = (
    "~/.codex/config.toml", "~/.codex/auth.json", "~/.claude/settings.json", "~/.claude.json",
    "~/.gemini/settings.json", "~/.gemini/.env", "~/.config/goose/config.yaml",
    "~/.config/opencode/opencode.json", "~/.local/share/opencode/auth.json", "~/.pi/agent/models.json",
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=6,
)
TABLES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)


@given(TABLES)
def test_json_is_read_as_it_is_with_and_without_comments(table: dict[str, object]) -> None:
    """OpenCode's files may hold comments and last commas; strings that look like them stay."""
    text = json.dumps({**table, "url": "https://x/* no */,}"}, indent=1)
    assert json_table(text) == json.loads(text)
    loose = text.replace("\n}", ", // the end, }\n/* and , } */}")
    assert json_table(loose) == json.loads(text)


@given(st.text())
def test_no_text_makes_a_reader_fail(text: str) -> None:
    """What cannot be parsed is None or nothing, never an error of ours."""
    for found in (json_table(text), toml_table(text), yaml_table(text)):
        assert found is None or isinstance(found, dict)
    assert isinstance(parse_env_file(text), dict)
    option_value(text.split(), "--model")


@pytest.mark.parametrize("agent", AGENTS)
@given(
    texts=st.dictionaries(st.sampled_from(NAMES), TABLES.map(json.dumps) | st.text(), max_size=4)
)
def test_every_agent_has_an_answer_for_any_settings(agent: str, texts: dict[str, str]) -> None:
    """A launch does not fail over them, and what goes past has a reason."""
    traffic = AGENTS[agent].traffic(context({"OPENAI_API_KEY": "x"}, texts))
    assert traffic.providers or traffic.bypass_reasons


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--model", "a"], "a"),
        (["--model=a", "-m", "b"], "b"),
        (["--model"], ""),
        (["--models", "a"], None),
        (["a", "--model=x=y"], "x=y"),
    ],
)
def test_the_last_of_an_option_counts(words: list[str], value: str | None) -> None:
    assert option_value(words, "-m", "--model") == value
