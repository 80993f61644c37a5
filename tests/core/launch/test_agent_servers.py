"""The MCP servers in agents' settings: each agent's own words for them, secrets apart, and why one is not taken."""

import json
from pathlib import Path

import pytest

from aileron_core.errors import FileProblems, NotFound
from aileron_core.launch.agent_servers import AgentServer, agent_servers

ENV = {"HOME": "/home/ana", "GH_TOKEN": "canary-1", "REGION": "eu"}


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def read(tmp_path: Path, source: str) -> dict[str, AgentServer]:
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
    write(tmp_path / "home/.claude.json", settings)
    shared = {"run": {"type": "http", "url": "https://mcp.example/x", "headersHelper": "/bin/x"}}
    write(tmp_path / "project/.mcp.json", {"mcpServers": shared})
    found = read(tmp_path, "claude")
    assert [*found] == ["fs", "here", "run"]
    assert found["fs"].command == ("npx", "-y", "pkg", "eu")
    assert found["fs"].file == "~/.claude.json"
    assert (found["here"].env, found["here"].secrets) == ({"A": "$HOME"}, {"API_KEY": "canary-1"})
    assert "headersHelper" in found["run"].refusal
    assert "canary" not in repr(found)


def test_codex_names_variables_that_its_environment_has(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.codex/config.toml",
        '[mcp_servers.gh]\ncommand = "uvx"\nargs = ["gh"]\nenv_vars = ["GH_TOKEN", "REGION"]\n'
        '[mcp_servers.gone]\ncommand = "x"\nenv_vars = ["GONE"]\n'
        '[mcp_servers.far]\nurl = "https://mcp.example"\nbearer_token_env_var = "GH_TOKEN"\n'
        '[mcp_servers.two]\nurl = "https://mcp.example"\nhttp_headers = {A = "a", B = "b"}\n',
    )
    found = read(tmp_path, "codex")
    assert (found["gh"].env, found["gh"].secrets) == ({"REGION": "eu"}, {"GH_TOKEN": "canary-1"})
    assert found["gone"].refusal == "its variable GONE is not set here"
    far = found["far"]
    assert (far.url, far.secrets) == ("https://mcp.example", {"Authorization": "canary-1"})
    assert far.credential is not None
    assert (far.credential.header, far.credential.format) == ("Authorization", "Bearer {key}")
    assert "several headers" in found["two"].refusal


def test_opencodes_are_one_list_in_json_with_comments(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.config/opencode/opencode.jsonc",
        '{// mine\n"mcp": {"db": {"type": "local", "command": ["db", "{env:REGION}", '
        '"postgres://ana:canary-2@db.example/x"], "environment": {"LOG": "1"},},\n'
        '"file": {"type": "local", "command": ["f", "{file:~/token}"]}}}',
    )
    found = read(tmp_path, "opencode")
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
    write(tmp_path / "home/.gemini/settings.json", {"mcpServers": entries})
    extension = {"name": "e", "mcpServers": {"two": {"command": "${extensionPath}/run"}}}
    write(tmp_path / "home/.gemini/extensions/e/gemini-extension.json", extension)
    write(tmp_path / "home/.gemini/gemini-credentials.json", "no JSON")
    found = read(tmp_path, "gemini")
    assert found["one"].command == (
        "one", "--api-key", "${secret.API_KEY}", "--keep=x", "--token=${secret.TOKEN}",
    )  # fmt: skip
    assert found["one"].secrets == {"API_KEY": "canary-1", "TOKEN": "canary-3"}
    assert "SSE" in found["sse"].refusal
    assert found["http"].url == "https://mcp.example/mcp"
    assert "cwd" in found["cwd"].refusal
    assert "extensionPath" in found["two"].refusal


def test_gooses_keyring_and_vs_codes_inputs_keep_their_values(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.config/goose/config.yaml",
        "extensions:\n  developer: {type: builtin, enabled: true}\n"
        "  gh: {type: stdio, cmd: gh, args: [serve], envs: {LOG: '1'}, env_keys: [GH_TOKEN]}\n",
    )
    found = read(tmp_path, "goose")
    assert [*found] == ["gh"]
    assert (found["gh"].command, found["gh"].env) == (("gh", "serve"), {"LOG": "1"})
    assert found["gh"].secrets == {"GH_TOKEN": None}

    servers = {
        "gh": {"command": "gh", "args": ["${workspaceFolder}"], "env": {"T": "${input:t}"}},
        "asks": {"command": "gh", "args": ["${input:t}"]},
    }
    write(tmp_path / "project/.vscode/mcp.json", {"servers": servers})
    found = read(tmp_path, "vscode")
    assert found["gh"].command == ("gh", str(tmp_path / "project"))
    assert found["gh"].secrets == {"T": None}
    assert "${input:t}" in found["asks"].refusal


def test_any_file_is_read_and_one_or_an_entry_that_cannot_be_is_named(tmp_path: Path) -> None:
    file = tmp_path / "claude_desktop_config.json"
    write(file, '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')
    assert read(tmp_path, str(file))["time"].command == ("uvx", "mcp-server-time")
    args = ["${GH_TOKEN}", "--region=${REGION}"]
    entry = {"command": "uvx", "args": args, "env": {"GH": "${GH_TOKEN}"}}
    write(file, {"mcpServers": {"gh": entry}})
    found = read(tmp_path, str(file))["gh"]
    assert (found.command, found.env) == (("uvx", "${secret.GH_TOKEN}", "--region=eu"), {})
    assert {*found.secrets} == {"GH_TOKEN", "GH"}
    args = ["API_KEY=1", "x", "--api-key", "Mg==", "-H", "A:3", "-H", "A:4"]
    args += ["--key", "${GH_TOKEN}", "-h", "8"]
    entry = {"command": "env", "args": args, "env": {"KEY": "6", "DB_PWD": "7"}}
    write(file, {"mcpServers": {"many": entry}})
    found = read(tmp_path, str(file))["many"]
    values = {f"${{secret.{name}}}": value for name, value in found.secrets.items()}
    assert [values[each] for each in found.command[4:11:2]] == ["Mg==", "A:3", "A:4", "canary-1"]
    assert (found.command[1], found.command[-1]) == ("API_KEY=${secret.API_KEY}", "8")
    assert {*found.secrets.values()} == {"1", "Mg==", "A:3", "A:4", "canary-1", "6", "7"}
    write(file, "{")
    with pytest.raises(FileProblems, match="cannot be parsed"):
        read(tmp_path, str(file))
    with pytest.raises(NotFound, match="vscode"):
        read(tmp_path, str(tmp_path / "none"))
    entries = {
        "null": {"url": None}, "empty": {"command": [], "args": ["x"]},
        "off": {"command": "x", "disabled": True}, "disabled": {"url": "https://x", "enabled": False},
        "good": {"command": "x"},
    }  # fmt: skip
    write(tmp_path / "mcp.json", {"mcpServers": entries})
    refusals = {each.name: each.refusal for each in read(tmp_path, f"{tmp_path}/mcp.json").values()}
    assert refusals["null"] == refusals["empty"] == "it has neither a command nor a URL"
    assert refusals["off"] == refusals["disabled"] == "it is switched off there"
    assert refusals["good"] == ""
