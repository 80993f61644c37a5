"""What a project's settings may ask of a launch, when they count as already accepted, and that reading any
ends in an answer.
"""

import contextlib
import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.errors import FileProblems, Forbidden, NotFound
from aileron_core.launch import settings_files
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.project import (
    denied_arguments,
    hidden_by_project,
    person_settings,
    read_project_settings,
)
from aileron_core.launch.settings_files import json_table, option_value
from aileron_core.settings import LaunchSettings
from aileron_tui.cli.check import validate_project
from aileron_tui.cli.output import EXIT, CommandContext
from tests.core.launch.plans import context

CODEX = AGENTS["codex"]
OPS, OP = "plugin_tools = [{plugin", "mcp_proxy.plugin_tools[0]"


def with_settings(project: Path, text: str) -> Path:
    (project / "aileron.toml").write_text(text)
    return project


def test_a_project_may_hide_unasked_and_name_no_other_path(project: Path) -> None:
    """Hiding gives an agent nothing, so nobody is asked; reading and writing are the person's to allow."""
    assert read_project_settings(project, CODEX) is None
    with_settings(project, '[launch.pi]\nargs = ["--verbose"]\n')
    assert read_project_settings(project, CODEX) is None
    with_settings(project, '[launch]\nhide = [".env", "a/b"]\n')
    assert hidden_by_project(project) == (".env", "a/b")
    assert read_project_settings(project, CODEX) is None
    refused = 'read = ["~/.ssh"]', 'write = ["/"]', 'hide = ["../x"]', 'hide = ["/etc"]', "hide = 1"
    for text in refused:
        with pytest.raises(FileProblems, match=f"aileron.toml: launch.{text.split()[0]}: "):
            hidden_by_project(with_settings(project, f"[launch]\n{text}\n"))


def test_builtin_tools_and_ops_of_a_connector_may_be_asked_for_and_are_named(project: Path) -> None:
    """As a person is shown it, for every agent alike."""
    for text, builtins in (
        ("enable = true", "beside"),
        ("intercept_builtins = true", "instead"),
        ("enable = false\nintercept_builtins = true", None),
    ):
        asked = read_project_settings(with_settings(project, f"[mcp_proxy]\n{text}\n"), CODEX)
        assert (asked.proxy.builtins if asked else None) == builtins
        assert not asked or "built-in tools" in asked.lines()[0]
    text = "[mcp_proxy]\nenable = {}\nplugin_tools = [{{plugin = 'mail', expose = ['a', 'b_c']}}]\n"
    asked = read_project_settings(with_settings(project, text.format("true")), CODEX)
    assert [each.names for each in asked.proxy.plugin_tools] == [("mail.a", "mail.b_c")]
    assert asked.lines()[1].endswith("ops of the connector mail as tools: a, b_c.")
    assert read_project_settings(with_settings(project, text.format("false")), CODEX) is None


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ("more = []", "USER.MCP_PROXY.UNKNOWN_KEY", "mcp_proxy.more"),
        (f"{OPS} = 'a', expose = []}}]", "USER.MCP_PROXY.EMPTY_PROXY", f"{OP}.expose"),
        (f"{OPS} = 'a/b', expose = ['c']}}]", "validation_error", f"{OP}.plugin"),
        (f"{OPS} = 'a', expose = ['c.d']}}]", "validation_error", f"{OP}.expose"),
        (None, "USER.MCP_PROXY.EMPTY_PROXY", "mcp_proxy"),
        ("[launch.pi]\nargs = ['-e=x']", "validation_error", "launch.pi.args"),
    ],
)
def test_what_a_launch_would_refuse_is_found_without_one(
    project: Path, capsys: pytest.CaptureFixture[str], text: str | None, code: str, key: str
) -> None:
    """By `aileron validate`; of any agent's section, since nobody says which will be launched."""
    asks = "" if text is None else f"enable = true\n{text}"
    path = with_settings(project, f"[mcp_proxy]\n{asks}\n") / "aileron.toml"
    for as_json in (True, False):
        context = CommandContext(home=project / "home", json=as_json, color=False)
        assert validate_project(context, path) == EXIT.FAILED
    body, line, counts = capsys.readouterr().out.splitlines()
    assert [(each["class"], each["key"]) for each in json.loads(body)["problems"]] == [(code, key)]
    assert line.startswith(f"✗ aileron.toml: {key}: ")
    assert line.endswith(f"({code})")
    assert counts == "1 file checked: 1 error, 0 warnings."
    with pytest.raises(FileProblems, match=re.escape(f"aileron.toml: {key}: ")):
        read_project_settings(project, AGENTS["pi"])


def test_what_a_launch_takes_is_valid(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = with_settings(project, "[mcp_proxy]\nintercept_builtins = true\n") / "aileron.toml"
    context = CommandContext(home=project / "home", json=False, color=False)
    assert validate_project(context, path) == EXIT.DONE
    warning, counts = capsys.readouterr().out.splitlines()
    assert warning.startswith("! aileron.toml: mcp_proxy.intercept_builtins: Codex keeps apply_pat")
    assert warning.endswith("(USER.MCP_PROXY.UNSUPPORTED_PROVIDER)")
    assert counts == "1 file checked: 0 errors, 1 warning."
    with pytest.raises(NotFound):
        validate_project(context, project / "none.toml")


def test_looks_and_model_may_be_set_and_hostile_text_is_shown_as_marks(project: Path) -> None:
    """What a person is asked about cannot draw on their terminal."""
    text = '[launch.codex]\nargs = ["--model=gpt-5"]\nenv = { NO_COLOR = "1", LC_ALL = "C" }\n'
    asked = read_project_settings(with_settings(project, text), CODEX)
    shown = ("argument  --model=gpt-5", "variable  NO_COLOR=1", "variable  LC_ALL=C")
    assert asked.lines() == shown
    with_settings(project, '[launch.codex]\nargs = ["--model=\\u001b[2J\\u202egpt"]\n')
    asked = read_project_settings(project, CODEX)
    assert "\x1b" not in "".join(asked.lines())
    assert "\u202e" not in "".join(asked.lines())


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "PATH", "NODE_OPTIONS", "HOME", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL",
     "AILERON_URL", "HTTPS_PROXY", "CODEX_HOME", "BASH_ENV", "OPENCODE_CONFIG_CONTENT"],
)  # fmt: skip
def test_no_variable_that_runs_code_or_overrides_the_launch(project: Path, name: str) -> None:
    """No env outside a list; the refusal names file and key, and says what to do."""
    with_settings(project, f'[launch.codex]\nenv = {{ {name} = "x" }}\n')
    said = rf"aileron.toml: launch.codex.env.{name}: .*config.toml"
    with pytest.raises(FileProblems, match=said):
        read_project_settings(project, CODEX)


def test_a_variable_is_a_plain_word(project: Path) -> None:
    """TZ, for one, may name a file."""
    for value in ("/etc/passwd", "$(x)", "x" * 129, "\\u202e"):
        with_settings(project, f'[launch.codex]\nenv = {{ TZ = "{value}" }}\n')
        with pytest.raises(FileProblems, match="plain word"):
            read_project_settings(project, CODEX)


BYPASSES = {
    "codex": ["--dangerously-bypass-approvals-and-sandbox", "--yolo", "-c", "-cmodel_provider=x",
              "--config=mcp_servers.aileron.command='x'", "--conf=x", "--profile=x", "-pevil",
              "--add-dir=/", "-C/", "--sandbox=danger-full-access", "--enable=x", "exec", "--", "-"],
    "claude": ["--dangerously-skip-permissions", "--mcp-config=x", "--mcp-conf=x", "--settings=x",
               "--strict-mcp-config", "--add-dir=/", "--permission-mode=bypassPermissions",
               "--allowedTools=Bash", "--allowed-tools=Bash", "--plugin-dir=.", "mcp"],
    "opencode": ["--port=1", "--hostname=0.0.0.0", "--attach=http://x", "--agent=x", "run"],
    "gemini": ["--policy=x", "--approval-mode=yolo", "--approvalMode=yolo", "-y", "-dy", "--yolo",
               "--extensions=x", "--include-directories=/", "--skip-trust", "--skipTrust"],
    "pi": ["-e", "-ne", "-e=evil.mjs", "--extension=evil.mjs", "--tools=bash", "--api-key=x"],
    "goose": ["--with-extension=x", "--with-builtin=developer", "--recipe=x", "-t", "--text=x", "run"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("agent", "word"), [(a, w) for a, words in BYPASSES.items() for w in words]
)
def test_no_argument_that_takes_sandbox_or_launch_settings_away(agent: str, word: str) -> None:
    """In any spelling that the agent would take."""
    denied = AGENTS[agent].denied_args
    assert [*denied_arguments(["--verbose", "--model=x", word, word], denied)] == [word, word]
    assert len(denied) > 5
    assert {*BYPASSES} == {*AGENTS}


@given(st.lists(st.text(max_size=12), max_size=4))
def test_what_a_project_may_pass_is_an_option_and_nothing_else(words: list[str]) -> None:
    if not [*denied_arguments(words, CODEX.denied_args)]:
        for word in words:
            assert word.startswith("-")
            assert word.strip("-")
            assert word.partition("=")[0] not in CODEX.denied_args


def test_the_digest_is_of_what_is_said_for_this_agent_and_of_its_own_files(project: Path) -> None:
    """One yes covers the agent's own project files that override what Aileron sets, in exactly these bytes."""
    with_settings(project, '[launch.codex]\nargs = ["-v"]\n[launch.pi]\nargs = ["-v"]\n')
    first, other = (read_project_settings(project, AGENTS[each]) for each in ("codex", "pi"))
    with_settings(project, '[launch.codex]\nargs = ["-v"]\n[launch.pi]\nargs = ["-v"]\n# more\n')
    second = read_project_settings(project, CODEX)
    assert len({first.digest, other.digest, second.digest}) == 3
    (project / "aileron.toml").unlink()
    (project / ".mcp.json").write_text('{"mcpServers": {"aileron": {"command": "evil"}}}')
    asked = read_project_settings(project, AGENTS["claude"])
    assert asked.lines() == ("setting   .mcp.json defines an MCP server called aileron",)
    (project / ".mcp.json").write_text('{"mcpServers": {"aileron": {"command": "evil2"}}}')
    again = read_project_settings(project, AGENTS["claude"])
    assert again.digest != asked.digest
    assert read_project_settings(project, CODEX) is None


@pytest.mark.parametrize(
    "text",
    ["[launch.codex", "[server]\nlisten = '127.0.0.1:1'\n", "[launch.vim]\n", "[launch.codex]\nsandbox = 'off'\n",
     "[launch.codex]\nargs = '-v'\n", "[launch.codex]\nupstream = 'x'\n", "a = " + "[" * 5000, "a = " + "9" * 5000],
    ids=range(8),
)  # fmt: skip
def test_a_file_that_says_anything_else_is_refused_and_left_alone(project: Path, text: str) -> None:
    """A project decides nothing about sandbox, launch settings or upstream."""
    with_settings(project, text)
    with pytest.raises(FileProblems, match=r"aileron\.toml"):
        read_project_settings(project, CODEX)
    assert (project / "aileron.toml").read_text() == text


def test_a_file_that_is_no_small_text_is_refused(project: Path) -> None:
    """A folder, a pipe, a gigabyte, another encoding: nobody can tell what it sets."""
    path = project / "aileron.toml"
    path.mkdir()
    with pytest.raises(Forbidden):
        read_project_settings(project, CODEX)
    path.rmdir()
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Forbidden, match="cannot be read"):
        read_project_settings(project, CODEX)


@given(st.text(max_size=200))
def test_no_text_makes_a_reader_or_a_launch_fail(text: str) -> None:
    """What cannot be parsed is None or nothing; a launch says what is wrong with a file, or reads it."""
    for reads in (json_table, settings_files.toml_table, settings_files.yaml_table):
        assert isinstance(reads(text), dict | None)
    assert isinstance(settings_files.parse_env_file(text), dict)
    option_value(text.split(), "--model")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "aileron.toml").write_bytes(text.encode())
        with contextlib.suppress(FileProblems, Forbidden):
            assert read_project_settings(Path(folder), CODEX) is None


def test_ones_own_settings_may_set_anything_else() -> None:
    """Your config.toml sets what you like, but for Aileron's own and what makes the sandbox."""
    for name, contained, refused in (
        ("AILERON_TOKEN", False, True),
        ("A\0B", False, True),
        ("PATH", True, True),
        ("LD_PRELOAD", True, True),
        ("PATH", False, False),
        ("EDITOR", True, False),
    ):
        settings = {"codex": LaunchSettings(env=((name, "x"),))}
        if refused:
            with pytest.raises(FileProblems, match=r"config\.toml: launch\.codex\.env"):
                person_settings(settings, CODEX, contained=contained)
        else:
            assert person_settings(settings, CODEX, contained=contained).env == ((name, "x"),)


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


@pytest.mark.parametrize("agent", AGENTS)
@given(
    texts=st.dictionaries(st.sampled_from(NAMES), TABLES.map(json.dumps) | st.text(), max_size=4)
)
def test_every_agent_has_an_answer_for_any_settings(agent: str, texts: dict[str, str]) -> None:
    """A launch does not fail over them, and what goes past has a reason."""
    traffic = AGENTS[agent].traffic(context({"OPENAI_API_KEY": "x"}, texts))
    assert traffic.providers or traffic.bypass_reasons


def test_the_last_of_an_option_counts() -> None:
    for words, value in (
        ("--model a", "a"),
        ("--model=a -m b", "b"),
        ("--model", ""),
        ("--models a", None),
        ("a --model=x=y", "x=y"),
    ):
        assert option_value(words.split(), "-m", "--model") == value
