"""The MCP servers in agents' settings: how each agent writes them, why one is not taken, which are taken for Aileron's."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.servers.table import ServerTable
from aileron_core.errors import FileProblems, NotFound
from aileron_core.launch.agent_servers import AgentServer, agent_servers
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.own_servers import Doubles, doubles
from aileron_core.launch.plan import OwnServer
from tests.core.launch.plans import context, plan_of

ENV = {"HOME": "/home/ana", "GH_TOKEN": "canary-1", "REGION": "eu"}


def write_settings(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def servers_of(tmp_path: Path, source: str) -> dict[str, AgentServer]:
    found = agent_servers(source, tmp_path / "home", tmp_path / "project", ENV)
    return {each.name: each for each in found}


def test_claudes_are_those_of_the_person_and_of_this_project(tmp_path: Path) -> None:
    stdio = {"type": "stdio", "command": "npx", "args": ["-y", "pkg", "${REGION:-us}"]}
    here = {"here": {**stdio, "env": {"A": "$HOME", "API_KEY": "${GH_TOKEN}"}}}
    projects = {str(tmp_path / "project"): here, "/elsewhere": {"there": stdio}}
    settings = {
        "mcpServers": {"fs": stdio, "aileron": stdio},
        "projects": {path: {"mcpServers": each} for path, each in projects.items()},
    }
    write_settings(tmp_path / "home/.claude.json", settings)
    shared = {"run": {"type": "http", "url": "https://mcp.example/x", "headersHelper": "/bin/x"}}
    write_settings(tmp_path / "project/.mcp.json", {"mcpServers": shared})
    found = servers_of(tmp_path, "claude")
    assert [*found] == ["fs", "here", "run"]
    assert found["fs"].command == ("npx", "-y", "pkg", "eu")
    assert found["fs"].file == "~/.claude.json"
    assert (found["here"].env, found["here"].secrets) == ({"A": "$HOME"}, {"API_KEY": "canary-1"})
    assert "headersHelper" in found["run"].refusal
    assert "canary" not in repr(found)


def test_codex_names_variables_that_its_environment_has(tmp_path: Path) -> None:
    write_settings(
        tmp_path / "home/.codex/config.toml",
        '[mcp_servers.gh]\ncommand = "uvx"\nargs = ["gh"]\nenv_vars = ["GH_TOKEN", "REGION"]\n'
        '[mcp_servers.gone]\ncommand = "x"\nenv_vars = ["GONE"]\n'
        '[mcp_servers.far]\nurl = "https://mcp.example"\nbearer_token_env_var = "GH_TOKEN"\n'
        '[mcp_servers.two]\nurl = "https://mcp.example"\nhttp_headers = {A = "a", B = "b"}\n',
    )
    found = servers_of(tmp_path, "codex")
    assert (found["gh"].env, found["gh"].secrets) == ({"REGION": "eu"}, {"GH_TOKEN": "canary-1"})
    assert found["gone"].refusal == "its variable GONE is not set here"
    far = found["far"]
    assert (far.url, far.secrets) == ("https://mcp.example", {"Authorization": "canary-1"})
    assert far.credential is not None
    assert (far.credential.header, far.credential.format) == ("Authorization", "Bearer {key}")
    assert "several headers" in found["two"].refusal


def test_opencodes_are_one_list_in_json_with_comments(tmp_path: Path) -> None:
    write_settings(
        tmp_path / "home/.config/opencode/opencode.jsonc",
        '{// mine\n"mcp": {"db": {"type": "local", "command": ["db", "{env:REGION}", '
        '"postgres://ana:canary-2@db.example/x"], "environment": {"LOG": "1"},},\n'
        '"file": {"type": "local", "command": ["f", "{file:~/token}"]}}}',
    )
    found = servers_of(tmp_path, "opencode")
    assert found["db"].command == ("db", "eu", "${secret.ARGUMENT_2}")
    assert found["db"].secrets == {"ARGUMENT_2": "postgres://ana:canary-2@db.example/x"}
    assert found["db"].env == {"LOG": "1"}
    assert "{file:~/token}" in found["file"].refusal


def test_geminis_are_in_its_settings_and_its_extensions(tmp_path: Path) -> None:
    args = ["--api-key", "$GH_TOKEN", "--keep=x", "--token=canary-3"]
    entries = {
        "one": {"command": "one", "args": args},
        "sse": {"url": "https://mcp.example/sse"},
        "http": {"httpUrl": "https://mcp.example/mcp"},
        "cwd": {"command": "x", "cwd": "/srv"},
    }
    write_settings(tmp_path / "home/.gemini/settings.json", {"mcpServers": entries})
    extension = {"name": "e", "mcpServers": {"two": {"command": "${extensionPath}/run"}}}
    write_settings(tmp_path / "home/.gemini/extensions/e/gemini-extension.json", extension)
    write_settings(tmp_path / "home/.gemini/gemini-credentials.json", "no JSON")
    found = servers_of(tmp_path, "gemini")
    assert found["one"].command == (
        "one", "--api-key", "${secret.API_KEY}", "--keep=x", "--token=${secret.TOKEN}",
    )  # fmt: skip
    assert found["one"].secrets == {"API_KEY": "canary-1", "TOKEN": "canary-3"}
    assert "SSE" in found["sse"].refusal
    assert found["http"].url == "https://mcp.example/mcp"
    assert "cwd" in found["cwd"].refusal
    assert "extensionPath" in found["two"].refusal


def test_gooses_keyring_and_vs_codes_inputs_keep_their_values(tmp_path: Path) -> None:
    write_settings(
        tmp_path / "home/.config/goose/config.yaml",
        "extensions:\n  developer: {type: builtin, enabled: true}\n"
        "  gh: {type: stdio, cmd: gh, args: [serve], envs: {LOG: '1'}, env_keys: [GH_TOKEN]}\n",
    )
    found = servers_of(tmp_path, "goose")
    assert [*found] == ["gh"]
    assert (found["gh"].command, found["gh"].env) == (("gh", "serve"), {"LOG": "1"})
    assert found["gh"].secrets == {"GH_TOKEN": None}

    servers = {
        "gh": {"command": "gh", "args": ["${workspaceFolder}"], "env": {"T": "${input:t}"}},
        "asks": {"command": "gh", "args": ["${input:t}"]},
    }
    write_settings(tmp_path / "project/.vscode/mcp.json", {"servers": servers})
    found = servers_of(tmp_path, "vscode")
    assert found["gh"].command == ("gh", str(tmp_path / "project"))
    assert found["gh"].secrets == {"T": None}
    assert "${input:t}" in found["asks"].refusal


def test_any_file_is_read_and_one_or_an_entry_that_cannot_be_is_named(tmp_path: Path) -> None:
    file = tmp_path / "claude_desktop_config.json"
    write_settings(
        file, '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'
    )
    assert servers_of(tmp_path, str(file))["time"].command == ("uvx", "mcp-server-time")
    args = ["${GH_TOKEN}", "--region=${REGION}"]
    entry = {"command": "uvx", "args": args, "env": {"GH": "${GH_TOKEN}"}}
    write_settings(file, {"mcpServers": {"gh": entry}})
    found = servers_of(tmp_path, str(file))["gh"]
    assert (found.command, found.env) == (("uvx", "${secret.GH_TOKEN}", "--region=eu"), {})
    assert {*found.secrets} == {"GH_TOKEN", "GH"}
    args = ["API_KEY=1", "x", "--api-key", "Mg==", "-H", "A:3", "-H", "A:4"]
    args += ["--key", "${GH_TOKEN}", "-h", "8"]
    entry = {"command": "env", "args": args, "env": {"KEY": "6", "DB_PWD": "7"}}
    write_settings(file, {"mcpServers": {"many": entry}})
    found = servers_of(tmp_path, str(file))["many"]
    values = {f"${{secret.{name}}}": value for name, value in found.secrets.items()}
    assert [values[each] for each in found.command[4:11:2]] == ["Mg==", "A:3", "A:4", "canary-1"]
    assert (found.command[1], found.command[-1]) == ("API_KEY=${secret.API_KEY}", "8")
    assert {*found.secrets.values()} == {"1", "Mg==", "A:3", "A:4", "canary-1", "6", "7"}
    write_settings(file, "{")
    with pytest.raises(FileProblems, match="cannot be parsed"):
        servers_of(tmp_path, str(file))
    with pytest.raises(NotFound, match="vscode"):
        servers_of(tmp_path, str(tmp_path / "none"))
    entries = {
        "null": {"url": None}, "empty": {"command": [], "args": ["x"]},
        "off": {"command": "x", "disabled": True}, "disabled": {"url": "https://x", "enabled": False},
        "good": {"command": "x"},
    }  # fmt: skip
    write_settings(tmp_path / "mcp.json", {"mcpServers": entries})
    refusals = {
        each.name: each.refusal for each in servers_of(tmp_path, f"{tmp_path}/mcp.json").values()
    }
    assert refusals["null"] == refusals["empty"] == "it has neither a command nor a URL"
    assert refusals["off"] == refusals["disabled"] == "it is switched off there"
    assert refusals["good"] == ""


FS = ServerTable(run=("npx", "-y", "@mcp/fs@2026.8.31", "/dir"))
ACCEPTED: Mapping[str, ServerTable] = {
    "fs": FS,
    "git": ServerTable(run=("uvx", "mcp-server-git==2026.1.1", "--repository", "/dir")),
    "keyed": ServerTable(run=("npx", "@mcp/keyed", "--key=${secret.KEY}", "run")),
    "mine": ServerTable(run=("/usr/bin/mine", "serve")),
    "web": ServerTable(url="https://mcp.example.com/v1"),
}


@pytest.mark.parametrize(
    ("off", "on"),
    [
        ("npx @mcp/fs@latest /dir", "npx -y @mcp/fs /dir /other"),
        ("/usr/bin/npx --yes @mcp/fs /dir", "npx -y @mcp/fs-other /dir"),
        ("uvx mcp-server-git --repository /dir", "uvx @mcp/fs /dir"),
        ("uvx --from mcp-server-git[x]>=2 mcp-server-git --repository /dir", "npx -y"),
        ("npx @mcp/keyed --key=s3cret run", "npx @mcp/keyed --key=s3cret"),
        ("npx @mcp/keyed --key=s3cret run", "npx @mcp/keyed --token=s3cret run"),
        ("mine serve", "mine"),
        ("/usr/bin/mine serve", "/opt/mine serve"),
        ("npx @mcp/fs ${DIR}", "npx -p @mcp/fs fs-admin /dir"),
        ("npx @mcp/fs ${OTHER:-/dir}", "npx @mcp/fs ${OTHER}"),
        ("https://MCP.example.com:443/v1/", "https://mcp.example.com/v2"),
        ("https://mcp.example.com/v1", "http://mcp.example.com/v1"),
        ("https://mcp.example.com/v1", "https://mcp.example.com.evil.org/v1"),
        ("https://${SITE}/v1", "https://[/v1"),
    ],
)
def test_the_same_command_or_address_is_off_and_no_other_one(off: str, on: str) -> None:
    """Whatever a package's version, and however a program or an address is written; no other arguments."""
    is_url = "://" in off
    for text in (off, on):
        words, url = ((), text) if is_url else (tuple(text.split()), "")
        own = OwnServer(name="x", file="f", command=words, url=url)
        found = doubles("Codex", [own], ACCEPTED, {"DIR": "/dir", "SITE": "mcp.example.com"})
        assert len(found.sentences) == len(found.off) == (text == off)


_LOCAL = '{"mcp": {"a": {"type": "local", "command": ["npx", "@mcp/fs", "/dir"]}}}'
_JSON = '{"mcpServers": {"a": {"command": "npx", "args": ["@mcp/fs", "/dir"]}}}'
_TOML = '[mcp_servers.a]\ncommand = "npx"\nargs = ["@mcp/fs", "/dir"]\n'
_YAML = "extensions:\n  a: {type: stdio, cmd: npx, args: ['@mcp/fs', /dir]}\n"
_CODEX, _GEMINI = "~/.codex/config.toml", "~/.gemini/settings.json"


def doubles_found(agent: str, settings: Mapping[str, str], **more: Any) -> Doubles:
    return doubles(agent, AGENTS[agent].servers(context(settings=settings, **more)), {"fs": FS}, {})


@pytest.mark.parametrize(
    ("agent", "settings", "why"),
    [
        ("codex", {_CODEX: _TOML, ".codex/config.toml": _TOML}, ""),
        ("codex", {".codex/config.toml": _TOML}, "only the project's settings name it"),
        ("codex", {"/etc/codex/managed_config.toml": _TOML}, "counts over its arguments"),
        ("codex", {_CODEX: _TOML, ".codex/config.toml": _TOML.replace("npx", "uvx")}, None),
        ("claude", {".mcp.json": _JSON}, ""),
        ("claude", {"~/.claude.json": f'{{"projects": {{"/work": {_JSON}}}}}'}, ""),
        ("claude", {"~/.claude.json": f'{{"projects": {{"/elsewhere": {_JSON}}}}}'}, None),
        ("opencode", {"opencode.json": _LOCAL}, ""),
        ("opencode", {"/etc/opencode/opencode.json": _LOCAL}, "/etc/opencode/opencode.json counts"),
        ("opencode", {"opencode.json": _LOCAL.replace('"local"', '"local", "enabled": false')}, None),
        ("gemini", {_GEMINI: _JSON}, "without a sandbox Gemini CLI takes no such setting"),
        ("gemini", {_GEMINI: _JSON.replace("}}}", '}}, "mcp": {"excluded": ["a"]}}')}, None),
        ("goose", {"~/.config/goose/config.yaml": _YAML}, ""),
    ],
)  # fmt: skip
def test_what_no_setting_of_one_launch_switches_off_is_named_with_the_reason(
    agent: str, settings: dict[str, str], why: str | None
) -> None:
    """Codex would not start with a setting of a server that it does not know."""
    found = doubles_found(agent, settings)
    assert [each.name for each in found.off] == (["a"] if why == "" else [])
    assert [(why or "-") in each for each in found.remaining] == ([True] if why else [])


def test_an_argument_that_counts_over_our_setting_leaves_it_on() -> None:
    for agent, settings, args in (
        ("claude", {".mcp.json": _JSON}, ("--settings", "mine.json")),
        ("gemini", {_GEMINI: _JSON}, ("--allowed-mcp-server-names", "a")),
    ):
        found = doubles_found(agent, settings, args=args, contained=True)
        assert not found.off
        assert args[0] in found.sentences[0]
        assert doubles_found(agent, settings, contained=True).off


@pytest.mark.parametrize(
    ("agent", "path", "text"),
    [
        ("codex", ".codex/config.toml", _TOML),
        ("claude", ".claude.json", _JSON),
        ("opencode", ".config/opencode/opencode.json", _LOCAL),
        ("gemini", ".gemini/settings.json", _JSON),
        ("goose", ".config/goose/config.yaml", _YAML.replace("/dir", '"/dir"')),
    ],
)
def test_what_was_imported_from_settings_is_off(
    agent: str, path: str, text: str, tmp_path: Path
) -> None:
    """Its key is in the vault, and stands in the command as a name."""
    text = text.replace('"/dir"', '"/dir", "--api-key", "s3cret"')
    write_settings(tmp_path / path, text)
    (imported,) = agent_servers(agent, tmp_path, tmp_path / "project", {})
    assert imported.secrets == {"API_KEY": "s3cret"}
    own = AGENTS[agent].servers(context(settings={f"~/{path}": text}, contained=True))
    (off,) = doubles(agent, own, {"a": ServerTable(run=imported.command)}, {}).off
    assert off.name == "a"


def test_a_command_that_is_denied_is_not_for_a_dry_run() -> None:
    """It may have a key in its arguments."""
    mine = OwnServer(name="a", file="f", command=("npx", "@mcp/fs", "--key=s3cret"))
    found = plan_of("claude", off=(mine,))
    assert [each for each, text in found.files.items() if "s3cret" in text] == [*found.private]
    assert not plan_of("claude").private
