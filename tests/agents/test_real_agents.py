"""Real agents, launched, against a scripted model: the whole way from call to answer.

With Codex; with all six in `make test-all`.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.connectors.servers.definitions import definitions_bytes
from aileron_core.connectors.servers.process import list_tools
from aileron_core.connectors.servers.propose import manifest_bytes, propose_words
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.connectors.store import ConnectorStore
from aileron_core.launch.agents import AGENTS as LAUNCHED
from tests.agents.agents_bench import PROMPTS, ScriptedLlm, sends_a_draft, workbench
from tests.agents.llm import CallTool, Conversation, Say
from tests.support.core_harness import ROOT, install_examples
from tests.support.mcp_servers import UnboxedServers
from tests.support.variants import ALL, variants

pytestmark = pytest.mark.timeout(300)

AGENTS = variants(("codex", "opencode", "claude", "goose", "pi", "gemini"))
CASES = [
    (agent, sandbox)
    for number, agent in enumerate(AGENTS)
    for place, sandbox in enumerate(("on", "off", "offline", "hosts"))
    if ALL or place < 2 or (number + place) % 2 == 0
]


@pytest.mark.parametrize(("agent", "sandbox"), CASES)
def test_an_approved_call_runs_and_the_model_reads_its_result(
    agent: str, sandbox: str, tmp_path: Path
) -> None:
    """Nothing of the person's is changed; without a common network the base URL leads through the session's socket."""
    options = ("--no-sandbox",) if sandbox == "off" else (f"--sandbox={sandbox}",)
    with workbench(tmp_path, ScriptedLlm(sends_a_draft)) as bench:
        bench.configure(agent)
        before = bench.fingerprint()
        with bench.launched(agent, *PROMPTS[agent], options=options, watched=True) as running:
            approval = bench.asked()
            tokens = [each.read_text() for each in bench.left_behind("*/token")]
            seen = bench.console.views[approval]["containment"]
            bench.console.approve(approval)
            ended = running.end()
        assert "FINAL" in ended.output
        assert "bypasses" not in ended.output
        assert len(bench.mailbox.state()["sent"]) == 1
        (result,) = bench.llm.results
        assert '"SENT"' in result
        after = bench.fingerprint()
        assert {name for name in before if after.get(name) != before[name]} == set()
        assert sandbox == "off" or after == before
        assert bool(tokens) == (sandbox == "off")
        assert seen == ("none" if sandbox == "off" else "verified")
        assert not [line for line in ended.command_lines for token in tokens if token in line]
        assert bench.shows_gateway(ended) == (agent == "codex")
        bench.all_passed()
        assert bench.events().count("approval.approved") == 1
        opened, ended_as = (
            next(each["containment"] for each in bench.console.records() if each["event"] == event)
            for event in ("session.opened", "session.ended")
        )
        reaches = {
            "offline": "It reaches no network: only Aileron's actions",
            "hosts": f"It reaches only these hosts: {min(LAUNCHED[agent].hosts)}:443",
            "off": "Not contained: launched with --no-sandbox",
        }
        assert reaches.get(sandbox, "") in opened
        if sandbox == "on":
            # A connection whose process had ended before the console looked leaves that to the launcher's word.
            assert ended_as.startswith(("In a sandbox. ", "In a sandbox, as "))
            assert " It reaches the whole network. " in ended_as
        assert bench.left_behind() == []


def test_an_agents_edit_by_a_persons_own_server_is_rehearsed_and_committed(tmp_path: Path) -> None:
    """A published server, unmodified, in its box; a real agent in its own."""
    package = "node_modules/@modelcontextprotocol/server-filesystem"
    entry = ROOT / "tests/node/servers" / package / "dist/index.js"
    if not entry.exists():
        pytest.skip("`make node` puts it into tests/node/servers")
    docs = tmp_path / "docs"
    docs.mkdir()
    note = docs / "note.txt"
    note.write_text("one\n")

    def install(home: Path) -> None:
        install_examples(home)
        node = shutil.which("node")
        assert node is not None
        table = ServerTable(
            program=(os.path.realpath(node), str(entry), str(docs)),
            files_read=(str(entry.parents[3]),),
            files_write=(str(docs),),
            rehearse=True,
        )
        tools = list_tools(UnboxedServers(), "fs", table)
        whole = replace(table, tools=propose_words("fs", tools))
        manifest = manifest_bytes("fs", whole)
        ConnectorStore(home).install_server(definitions_bytes(tools), manifest)

    def edits_it(conversation: Conversation) -> Say | CallTool:
        if conversation.results:
            return sends_a_draft(conversation)  # which asks, and tells what came of it
        edits = [{"oldText": "one", "newText": "two"}]
        return CallTool(name="fs_edit_file", args={"path": str(note), "edits": edits})

    with workbench(tmp_path, ScriptedLlm(edits_it), install=install) as bench:
        bench.configure("codex")
        with bench.launched("codex", *PROMPTS["codex"]) as running:
            approval = bench.asked()
            assert note.read_text() == "one\n"
            bench.console.approve(approval)
            ended = running.end()
        assert "FINAL" in ended.output
        assert note.read_text() == "two\n"
        assert "+two" in bench.llm.results[-1]
