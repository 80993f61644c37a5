"""MCP servers of a real agent's own that Aileron has too: off in its own list, and no other one is.

With those whose command line lists them; with Goose and Gemini CLI, which only start them, in `make test-all`.
"""

import json
import re
from pathlib import Path

import pytest

from aileron_core.connectors.store import ConnectorStore
from tests.agents.agents_bench import PROMPTS, silent, workbench
from tests.agents.llm import ScriptedLlm
from tests.support.making import program
from tests.support.variants import variants

pytestmark = pytest.mark.timeout(300)

AGENTS = variants(("codex", "claude", "opencode", "goose", "gemini"), 3)
LISTS = ("codex", "claude", "opencode")
SERVER = """\
#!/usr/bin/env python3
import pathlib, sys
pathlib.Path(sys.argv[1]).touch()
"""
MANIFEST = """\
[connector]
name = "mcp://local/notes"
version = "1.0.0"
[server]
run = {run}
program = {run}
[server.tools]
"""


def entries(agent: str, servers: dict[str, list[str]]) -> tuple[str, str]:
    """Return the settings file in which *agent* is given *servers*, and what stands there besides its usual text."""
    by_args = {name: {"command": words[0], "args": words[1:]} for name, words in servers.items()}
    match agent:
        case "codex":
            tables = [
                f"[mcp_servers.{name}]\ncommand = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n"
                for name, words in servers.items()
            ]
            return ".codex/config.toml", 'model = "test"\n' + "".join(tables)
        case "claude":
            return ".claude.json", json.dumps({"mcpServers": by_args})
        case "opencode":
            local = {name: {"type": "local", "command": words} for name, words in servers.items()}
            return ".config/opencode/opencode.json", json.dumps({"mcp": local})
        case "goose":
            common = {"type": "stdio", "enabled": True, "timeout": 9}
            stdio = {
                name: {**common, "name": name, "cmd": words[0], "args": words[1:]}
                for name, words in servers.items()
            }
            settings: dict[str, object] = {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o"}
            settings["GOOSE_DISABLE_SESSION_NAMING"] = True
            return ".config/goose/config.yaml", json.dumps({**settings, "extensions": stdio})
        case _:
            chosen = {"auth": {"selectedType": "gemini-api-key"}}
            return ".gemini/settings.json", json.dumps({"security": chosen, "mcpServers": by_args})


@pytest.mark.parametrize("agent", AGENTS)
def test_a_server_that_aileron_has_is_off_in_the_agent_alone(agent: str, tmp_path: Path) -> None:
    """The same command is off in this launch's settings alone; another command of the same name is not."""
    server = program(tmp_path / "server", SERVER)
    same, another = tmp_path / "project" / "same", tmp_path / "project" / "other"
    run = [str(server), str(same)]

    def install(home: Path) -> None:
        manifest = MANIFEST.format(run=json.dumps(run))
        ConnectorStore(home).install_server(b'{"tools":[]}', manifest.encode())

    with workbench(tmp_path, ScriptedLlm(silent), install=install) as bench:
        bench.write(*entries(agent, {"mine": run, "Notes": [str(server), str(another)]}))
        before = bench.fingerprint()
        args = ("mcp", "list") if agent in LISTS else PROMPTS[agent]
        output = bench.run(agent, *args).output
        if agent in LISTS:
            listed = re.sub("\x1b.*?m", "", output.rpartition("as notes.")[2])
            mine, other = (re.findall(rf"\b{name}:? .*", listed) for name in ("mine", "Notes"))
            assert [each for each in mine if "disabled" not in each] == []
            assert [each for each in other if "disabled" in each] != other
        assert "does not start its own MCP server mine (" in output
        assert "MCP server Notes" not in output
        assert not same.exists()
        assert another.exists() == (agent != "codex")  # which lists without starting
        assert before.items() <= bench.fingerprint().items()
