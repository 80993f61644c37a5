"""Which MCP servers of an agent's own are taken for Aileron's, and where one stays although it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.servers.table import ServerTable
from aileron_core.launch.agent_servers import agent_servers
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.own_servers import Doubles, doubles
from aileron_core.launch.plan import OwnServer
from tests.core.launch.plans import context, plan_of

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


def found_by(agent: str, settings: Mapping[str, str], **more: Any) -> Doubles:
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
    found = found_by(agent, settings)
    assert [each.name for each in found.off] == (["a"] if why == "" else [])
    assert [(why or "-") in each for each in found.remaining] == ([True] if why else [])


def test_an_argument_that_counts_over_our_setting_leaves_it_on() -> None:
    for agent, settings, args in (
        ("claude", {".mcp.json": _JSON}, ("--settings", "mine.json")),
        ("gemini", {_GEMINI: _JSON}, ("--allowed-mcp-server-names", "a")),
    ):
        found = found_by(agent, settings, args=args, contained=True)
        assert not found.off
        assert args[0] in found.sentences[0]
        assert found_by(agent, settings, contained=True).off


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
    (file := tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
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
