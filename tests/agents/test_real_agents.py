"""Real agents, launched, against a scripted model: the whole way from call to answer.

With Codex, or the few of which a test says so; with all six in `make test-all`.
"""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.connectors.servers.definitions import definitions_bytes
from aileron_core.connectors.servers.process import list_tools
from aileron_core.connectors.servers.propose import manifest_bytes, propose_words
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.connectors.store import ConnectorStore
from aileron_core.launch.agents import AGENTS as LAUNCHED
from tests.agents.agents_bench import (
    AS_ORDINARY,
    KEYS,
    PROMPTS,
    Bench,
    sends_a_draft,
    silent,
    workbench,
)
from tests.agents.llm import CallTool, Conversation, Say, Script, ScriptedLlm, in_turn
from tests.agents.test_no_credentials import PHRASE, searched
from tests.support.core_harness import ROOT, install_examples
from tests.support.making import program
from tests.support.mcp_servers import UnboxedServers
from tests.support.processes import eventually
from tests.support.tls_service import certificate
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


_PI = ("--provider", "anthropic", "--model", "claude-sonnet-4-5")
_GEMINI = ("--skip-trust", "-m", "gemini-2.5-flash")
_CODEX = ("exec", "--skip-git-repo-check")
BEGINS_AND_RESUMES = {
    "codex": (_CODEX, (*_CODEX, "resume", "--last")),
    "claude": (("-p",), ("-p", "--continue")),
    "pi": (("-p", *_PI), ("-p", "--continue", *_PI)),
    "gemini": ((*_GEMINI, "-p"), (*_GEMINI, "--resume", "latest", "-p")),
    "goose": (("run", "--quiet", "-t"), ("run", "--quiet", "--resume", "-t")),
    "opencode": (("run",), ("run", "--continue")),
}


_READS = {"opencode": ("import",), "goose": ("session", "import")}
"""By those that keep conversations among settings."""


def exported(bench: Bench, agent: str, name: str) -> Path:
    out = bench.folder / name
    done = bench.aileron("launch", agent, "--export-session", str(out))
    assert "may contain turns that never happened" in done.stdout
    (found,) = out.iterdir()
    return found


@pytest.mark.parametrize("agent", variants(BEGINS_AND_RESUMES))
def test_a_conversation_goes_on_in_the_next_contained_launch(agent: str, tmp_path: Path) -> None:
    """Of two launches at once each has its own; the person's home is as it was; another project has none."""
    begins, resumes = BEGINS_AND_RESUMES[agent]
    with workbench(tmp_path, ScriptedLlm(lambda _: Say(text="noted"))) as bench:
        bench.configure(agent)
        before = bench.fingerprint()
        with (
            bench.launched(agent, *begins, "the word is xylophone") as one,
            bench.launched(agent, *begins, "the word is zither") as two,
        ):
            one.end()
            two.end()
        asked = len(bench.llm.seen)
        ended = bench.run(agent, *resumes, "what is the word?")
        assert "not kept" not in ended.output
        last = bench.llm.seen[asked:][-1].raw
        assert (b"xylophone" in last) != (b"zither" in last)
        assert b"noted" in last
        assert bench.fingerprint() == before
        kept = bench.console.home / "agents" / agent
        found = exported(bench, agent, "out").read_bytes()
        if agent in _READS:
            assert b"the word is" in found
            assert b"what is the word?" in found
        else:
            texts = [path.read_bytes() for path in kept.rglob("*.jsonl")]
            conversations = [text for text in texts if b"the word is" in text]
            assert len(conversations) == 2
            assert found in conversations
        assert kept.parent.stat().st_mode & 0o777 == kept.stat().st_mode & 0o777 == 0o700


def run_as_person(bench: Bench, home: Path, *words: str) -> str:
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [*AS_ORDINARY, *words], cwd=bench.project, capture_output=True, text=True, check=True,
        env={**bench.environment({}), "HOME": str(home), "GOOSE_DISABLE_KEYRING": "1"}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout


@pytest.mark.skipif(not ALL, reason="Codex and Claude Code keep files: make test-all")
@pytest.mark.parametrize("agent", _READS)
def test_the_agent_reads_what_a_person_took_out(agent: str, tmp_path: Path) -> None:
    with workbench(tmp_path, ScriptedLlm(lambda _: Say(text="noted"))) as bench:
        bench.configure(agent)
        bench.run(agent, *BEGINS_AND_RESUMES[agent][0], "the word is xylophone")
        home = bench.folder / "other"
        found = exported(bench, agent, "out")
        run_as_person(bench, home, agent, *_READS[agent], str(found))
        assert "xylophone" in found.read_text()
        assert found.stem.rpartition("_")[0] in run_as_person(bench, home, agent, "session", "list")
        names = ("sessions.db", "opencode.db")
        (path,) = (each for each in home.rglob("*.db") if each.name in names)
        with closing(sqlite3.connect(path)) as imported:
            assert "xylophone" in "\n".join(imported.iterdump())


CANARY = "canary-9ad2e4"
MAKES = f"echo {CANARY} > made.txt"
NATIVE = {
    "codex": CallTool(name="exec_command", args={"cmd": MAKES}, unoffered=True),
    "claude": CallTool(name="Bash", args={"command": MAKES, "description": "x"}, unoffered=True),
}
OURS = CallTool(name="list_drafts", args={})
ARGS = {
    "codex": (
        ("exec", "--skip-git-repo-check", "--sandbox=danger-full-access", "go"),
        ("exec", "--skip-git-repo-check", "go"),
    ),
    "claude": (("-p", "--allowed-tools=Bash", "go"), ("-p", "go")),
}
"""Where its own tools are its own, and where they were intercepted."""


@pytest.mark.parametrize("agent", variants(NATIVE))
@pytest.mark.parametrize("intercepted", [True, False], ids=["intercepted", "usual"])
def test_a_native_call_is_seen(agent: str, intercepted: bool, tmp_path: Path) -> None:
    """By `[gateway] inspect`, also where the agent refuses it; no argument, no text, and nothing asked a person."""
    native = NATIVE[agent]
    ours = {"codex": "mcp__aileron.list_drafts", "claude": "mcp__aileron__list_drafts"}[agent]
    calls = [OURS, native] if intercepted else [native]
    llm = ScriptedLlm(in_turn(*calls, end=f"FINAL {CANARY}"))
    with workbench(tmp_path, llm, inspect=True) as bench:
        bench.configure(agent)
        options = ["--intercept-builtins"] if intercepted else []
        ended = bench.run(agent, *ARGS[agent][intercepted], options=options)
        assert "FINAL" in ended.output
        bench.all_passed()
        # Written by the clock, of which no event tells.
        eventually(lambda: "session.calls_counted" in bench.events())
        records = bench.console.records()
        (counted,) = (each for each in records if each["event"] == "session.calls_counted")
        assert counted["calls"] == {native.name: 1, **({ours: 1} if intercepted else {})}
        around = [each["tool"] for each in records if each["event"] == "session.went_around"]
        assert around == [native.name]
        made, home = bench.project / "made.txt", bench.console.home
        assert made.exists() != intercepted
        assert intercepted or made.read_text() == f"{CANARY}\n"
        # But for the agent's own conversations, which the agent keeps.
        files = [each for each in home.rglob("*") if each.is_file()]
        kept = b"".join(each.read_bytes() for each in files if home / "agents" not in each.parents)
        assert b"session.went_around" in kept
        assert CANARY.encode() not in kept


KEY = "qx7canary-key-51ab90"
ENDING = "-aileron-placeholder"
_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")

ASKS = """
import re, urllib.request
base = re.search(r'base_url = "([^"]+)"', " ".join(sys.argv))[1]
for _ in range(2):
    body = json.dumps({"stream": True, "input": [], "tools": [{"type": "function", "name": "x"}]})
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    asked = urllib.request.Request(base + "/responses", body.encode(), headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        data = answer.read()
    look("answer of the model", data)
    statuses["masked"] = data.count(b"*" * 20)
statuses["placeholder"] = os.environ["OPENAI_API_KEY"][-20:]
statuses["others"] = [name for name in os.environ if name.endswith("_API_KEY")]
"""


@contextlib.contextmanager
def bench_with_keys(script: Script, folder: Path) -> Iterator[Bench]:
    """Run a console whose vault has the key of each provider, over a model behind TLS."""
    pem = certificate(folder, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with workbench(folder, ScriptedLlm(script, tls=context), ca_file=pem) as bench:
        console = bench.console
        assert console.ask("CreateVault", passphrase=PHRASE).status == 200
        for provider in ("anthropic", "openai", "gemini"):
            fields = {"provider": provider, "base_url": bench.llm.url, "secret": KEY}
            assert console.ask("SetModelKey", **fields, passphrase=PHRASE).status == 200
        yield bench


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_has_a_placeholder_and_the_model_gets_the_key(agent: str, tmp_path: Path) -> None:
    """From call to answer; keys of the person's shell reach neither the model nor the agent."""
    with bench_with_keys(sends_a_draft, tmp_path) as bench:
        bench.configure(agent)
        with bench.launched(agent, *PROMPTS[agent], watched=True) as running:
            bench.console.approve(bench.asked())
            ended = running.end()
        assert "FINAL" in ended.output
        assert "gets a placeholder for its key of" in ended.output
        assert bench.llm.seen
        for seen in bench.llm.seen:
            (sent,) = [seen.headers[name] for name in _HEADERS if name in seen.headers]
            assert sent.removeprefix("Bearer ") == KEY
            assert ENDING.encode() not in seen.raw
            assert not [key for key in KEYS.values() if key.encode() in seen.raw]
        assert not [line for line in ended.command_lines if ENDING in line or KEY in line]
        assert KEY not in ended.output
        assert bench.left_behind() == []


def test_a_contained_agent_finds_nothing_of_the_key_that_its_requests_carry(folder: Path) -> None:
    """Not where the model repeats it, nor in a process, a file or an answer; nor is it in the home."""

    def repeats(_: Conversation) -> Say:
        return Say(text=f"you sent {KEY}")

    with bench_with_keys(repeats, folder) as bench:
        theirs = {"OPENAI_API_KEY": "qx7canary-of-the-shell", "CODEX_API_KEY": "qx7canary-too"}
        result = searched(bench, ASKS, **theirs)
        assert result["found"] == []
        assert result["read"] > 20
        assert result["statuses"]["masked"] > 0
        assert result["statuses"]["placeholder"] == ENDING
        assert result["statuses"]["others"] == ["OPENAI_API_KEY"]
        assert [each.headers["authorization"] for each in bench.llm.seen] == [f"Bearer {KEY}"] * 2
        home = bench.console.home
        kept = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
        assert not [each for each in kept if KEY.encode() in each]
        records = json.dumps(bench.console.records())
        assert KEY not in records
        assert ENDING not in records


WITH_SERVERS = variants(("codex", "claude", "opencode", "goose", "gemini"), 3)
"""The first three list them at their command line; Goose and Gemini CLI only start them."""
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


@pytest.mark.parametrize("agent", WITH_SERVERS)
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
