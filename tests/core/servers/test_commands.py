"""`aileron server ...` in a home without a console: what is proposed of a server, shown, changed and refused."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from aileron_core.clock import SystemClock
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.servers.definitions import definitions_bytes
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.connectors.store import ConnectorStore
from aileron_core.errors import AileronError
from aileron_tui.cli.commands import aileron
from aileron_tui.cli.output import EXIT, CommandContext, report_error
from aileron_tui.cli.server_adding import add_server
from aileron_tui.cli.servers import (
    check_server,
    edit_server,
    list_servers,
    remove_server,
    show_server,
    show_server_log,
    update_server,
)
from tests.support.mcp_servers import UnboxedServers, server_notes, server_program
from tests.support.remote_mcp import PLACE, URL, scripted_mcp
from tests.support.tls_service import Reply, Request

PYTHON = os.path.realpath(sys.executable)
"""Outside of this checkout, where an agent could change it."""
NOTES = """
def tools():
    path = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    listed = [
        {"name": "get_note", "inputSchema": path, "annotations": {"readOnlyHint": True}},
        {"name": "edit_note", "inputSchema": path},
        {"name": "read_note", "inputSchema": path},
        *(tool(name) for name in ("v1", "v2", "v3")),
    ]
    if noted("changed"):
        listed[1]["description"] = "Edit it\\x1b[31m"
        listed[2] = {"name": "drop_note", "inputSchema": path}
    return listed
"""
NOTHING: dict[str, Any] = {"read": (), "write": (), "hosts": (), "env": (), "secrets": ()}


class Commands:
    """Runs commands on a home, and reads what they print."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.start = UnboxedServers()
        self._capsys = capsys

    def context(self, *, as_json: bool) -> CommandContext:
        return CommandContext(home=self.folder / "home", json=as_json, color=False)

    def printed(self, function: Callable[..., int], *words: Any, code: int = 0, **more: Any) -> str:
        try:
            returned = function(self.context(as_json=False), *words, **more)
        except AileronError as error:
            returned = report_error(self.context(as_json=False), error)
        assert returned == code
        found = self._capsys.readouterr()
        return found.out + found.err

    def json(self, function: Callable[..., int], *words: Any, **more: Any) -> dict[str, Any]:
        assert function(self.context(as_json=True), *words, **more) == EXIT.DONE
        body: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return body

    def add(self, name: str, *run: str, code: int = 0, **options: Any) -> str:
        given = {**NOTHING, "no_rehearse": False, "yes": False, "start": self.start, **options}
        return self.printed(add_server, (name, *run), "", (None, None), code=code, **given)

    def add_notes(self, source: str = NOTES, *words: str, **options: Any) -> str:
        """Add the server `notes`, which runs *source*."""
        run = (PYTHON, *server_program(self.folder, source)[1:])
        return self.add("notes", *run, *words, env=(f"STATE={self.folder / 'state'}",), **options)

    def edit(self, *words: str, code: int = 0, rehearse: bool | None = None, **more: Any) -> str:
        given = {**NOTHING, **more}
        return self.printed(edit_server, "notes", words, code=code, rehearse=rehearse, **given)

    def tools(self, what: str) -> dict[str, Any]:
        """Return *what* of the first three tools of `notes`, by their names."""
        return {each["name"]: each[what] for each in self.json(show_server, "notes")["tools"][:3]}

    def installed(self) -> list[str]:
        return [each.identity.fqn for each in ConnectorStore(self.folder / "home").list()]


@pytest.fixture
def commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(tmp_path, capsys)


@pytest.fixture
def added(commands: Commands) -> Commands:
    """With the server `notes`, which may write one folder that its command names."""
    (commands.folder / "mine").mkdir()
    commands.add_notes(NOTES, str(commands.folder / "mine"))
    return commands


def test_a_server_is_listed_once_and_waits_with_what_is_proposed_of_it(commands: Commands) -> None:
    folder = commands.folder / "mine"
    folder.mkdir()
    told = commands.add_notes(NOTES, str(folder))
    assert commands.start.started == ["read"]
    assert not [each for each in server_notes(commands.folder) if each.startswith("call")]
    assert f"It may write {folder}, because its command names that." in told
    assert f"It may read {commands.folder / 'server.py'}" in told
    assert "until you accept it in the console" in told
    (item,) = commands.json(list_servers)["items"]
    shown = commands.json(show_server, "notes")
    assert "[server.tools]" in shown.pop("manifest")
    assert shown == item
    assert (item["state"], item["rehearse"], item["hosts"]) == ("held_back", True, [])
    assert item["files"]["write"] == [str(folder)]
    assert commands.tools("word") == {"edit_note": "ask", "get_note": "run", "read_note": "ask"}
    previews = {"edit_note": "get_note", "get_note": None, "read_note": "get_note"}
    assert commands.tools("tool") == {name: f"notes_{name}" for name in previews}
    assert commands.tools("preview") == previews
    assert item["tool_bytes"] == sum(each["bytes"] for each in item["tools"]) > 300
    assert "Agents get 6 tools of it" in commands.printed(show_server, "notes")


def test_what_is_wrong_with_a_command_is_said_whole_and_nothing_is_started(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").touch()
    (tmp_path / "folder").mkdir()
    wrong: Any = {
        "hosts": ("nowhere",), "secrets": ("1",), "read": ("x",), "env": ("A", "B=./x", "folder=x", "=y"),
    }  # fmt: skip
    words = ("cat", "./x", "m.py", "--in=../x", "--at=folder/../m.py")
    told = commands.add("Notes", *words, code=2, **wrong)
    relative = "must be absolute"
    for problem in (
        "connector.name: must be mcp://local/NAME", *(f"server.run[{n}]: {relative}" for n in range(1, 5)),
        "server.hosts[0]: ", "server.secrets[0]: ", "server.files.read[0]: ", f"server.env.B: {relative}",
        "server.env: --env needs NAME=VALUE, and got A", 'server.env."": must match',
    ):  # fmt: skip
        assert re.search(rf"^aileron: Notes:\d+: {re.escape(problem)}", told, re.MULTILINE), problem
    assert "server.run[0]" in commands.add("a", "tools/x", code=2)
    for run in (("npx", "-y", "a-package@1", "folder"), ("python3", "m.py"), ("cat", "folder")):
        assert f"a:6: server.run[{len(run) - 1}]: must be" in commands.add("a", *run, code=2)
    told = commands.add("B", "npx", "./folder", "~/x", env=("A",), code=2)
    for problem in ("connector.name", "server.run: npx ./folder: write a package", "server.run[2]"):
        assert f": {problem}" in told
    assert ": server.env" in told
    assert "must list its hosts" in commands.add("a", "cat", secrets=("KEY",), code=2)
    assert "absolute path" in commands.add("a", "no-such-program", code=1)
    assert "container" in commands.add("a", "docker", "run", "x", code=2)
    told = commands.add("A", "http://mcp.example", "more", header="X-Key", code=2)
    for problem in ("connector.name: ", "server.url: must be an https URL", "server.url: takes no"):
        assert f": {problem}" in told
    assert "takes no other" in commands.add("a", "https://mcp.example", hosts=("b:1",), code=2)
    assert "server: has no url" in commands.add("a", "cat", header="X-Key", code=2)
    (tmp_path / "project" / ".git").mkdir(parents=True)
    planted = tmp_path / "project" / "run"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    (tmp_path / "link").symlink_to(planted)
    script = tmp_path / "project" / "server.py"
    script.write_text("")
    preload = f"--require={script}"
    no_file = ("y" * 300, f"/{'y' * 300}")  # none has such a name
    runs = ([str(tmp_path / "link")], [sys.executable, *no_file, str(script)])
    for run in ([str(planted)], *runs, [sys.executable, preload]):
        assert "is in the project" in commands.add("a", *run, code=2)
    given = (f"NODE_OPTIONS={preload}",)
    assert "is in the project" in commands.add("a", sys.executable, env=given, code=2)
    assert commands.start.started == []


def test_a_server_that_does_not_list_is_not_installed_and_quoted(commands: Commands) -> None:
    source = 'def initialize(id, params):\n    sys.exit("no \\x1b[31m token")\n'
    assert "no ‹ESC›[31m token" in commands.add_notes(source, code=1)
    assert commands.installed() == []
    commands.start.why_not = lambda table: "This machine makes no box."
    assert "no box" in commands.add_notes(code=1)


def test_a_secret_is_not_there_at_the_first_start(commands: Commands) -> None:
    """A stand-in is: some servers list nothing where a variable is not set."""
    source = "def tools():\n    note(os.environ['KEY'])\n    return [tool('get')]\n"
    given: Any = {"secrets": ("KEY",), "hosts": ("a.example:443",)}
    told = commands.add_notes(source, "${secret.KEY}", **given)
    assert "can be read by every user of this machine" in told
    assert "not-given-before-it-is-accepted" in server_notes(commands.folder)
    assert "`aileron binding setup notes`" in told


def test_an_agents_servers_are_added_and_what_is_not_taken_says_why(commands: Commands) -> None:
    state = str(commands.folder / "state")
    args = server_program(commands.folder, NOTES)[1:]
    env = {"STATE": state, "KEY": "canary-51"}
    entries = {
        "1-My Notes": {"command": PYTHON, "args": args, "env": env},
        "box": {"command": "docker", "args": ["run", "x"]},
        "none": {"url": None},
    }
    file = commands.folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    given = {**NOTHING, "no_rehearse": False, "yes": True, "start": commands.start}
    add = (add_server, ("1-My Notes",), str(file), (None, None))
    assert "list its hosts" in commands.printed(*add, code=1, **given)
    given["hosts"] = ("a.example:443",)
    told = commands.printed(*add, **given)
    assert f"{file} still has its own copy, with its secrets." in told
    assert "accept it in the console, then run this command again" in told
    shown = commands.json(show_server, "mynotes")
    assert (shown["secrets"], shown["env"]) == (["KEY"], {"STATE": state})
    assert "canary-51" not in told + json.dumps(shown)
    again = commands.printed(add_server, (), str(file), (None, None), code=2, **given)
    assert "Name the one server" in again
    given["hosts"] = ()
    again = commands.printed(add_server, (), str(file), (None, None), code=1, **given)
    assert ("✗ box" in again, "container" in again) == (True, True)
    assert f"✗ none ({file}) was not added: it has neither" in again
    assert len(commands.start.started) == 1
    assert "already" in commands.add("mynotes", PYTHON, *args, code=1)


def test_words_are_changed_by_options_and_what_becomes_a_read_previews(added: Commands) -> None:
    told = added.edit("edit_note=off", "get_note=look", rehearse=False)
    assert "until you accept it" in told
    assert added.tools("word") == {"edit_note": "off", "get_note": "look", "read_note": "ask"}
    shown = added.json(show_server, "notes")
    assert (shown["rehearse"], len(added.installed())) == (False, 1)
    told = added.edit("gone=run", "get_note=maybe", code=2)
    assert "server.tools.get_note" in told
    assert "server.tools.gone: the server lists no such tool" in told
    assert added.json(show_server, "notes") == shown
    added.edit("edit_note=ask", "get_note=ask", "read_note=look")
    previews = {"edit_note": "read_note", "get_note": "read_note", "read_note": None}
    assert added.tools("preview") == previews
    told = added.edit("read_note=ask")
    assert "edit_note has no preview now: read_note would have to be run or look" in told
    told = added.edit("get_note", code=2, env=("A", "B=../x"), secrets=("KEY",))
    problems = ("tools: --tool needs TOOL=WORD", "env: --env needs", "env.B: must be")
    for problem in (*problems, "secrets: a server"):
        assert re.search(rf"^aileron: notes:\d+: server.{problem}", told, re.MULTILINE)


def test_an_editor_changes_one_manifest(added: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    program_ = (f'["{PYTHON}"', f'["{added.folder}/project/run"')
    edits = iter([("= true", "= 1"), ("= 1", "= false"), ("local/notes", "local/x"), program_])
    monkeypatch.setattr("aileron_tui.cli.servers.has_terminal", lambda: True)
    monkeypatch.setattr("click.edit", lambda text, extension: text.replace(*next(edits)))
    monkeypatch.setattr("click.confirm", lambda question, default: True)
    told = added.edit()
    assert "notes:" in told
    assert "server.rehearse: must be true or false" in told
    assert not added.json(show_server, "notes")["rehearse"]
    monkeypatch.setattr("click.confirm", lambda question, default: False)
    assert "must stay" in added.edit(code=2)
    (added.folder / "project" / ".git").mkdir(parents=True)
    assert "is in the project" in added.edit(code=2)


def test_a_question_left_is_an_interrupt(added: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C and Ctrl-D at "Edit it again?" are a person's, and no fault of Aileron's."""
    monkeypatch.setattr("aileron_tui.cli.servers.has_terminal", lambda: True)
    monkeypatch.setattr("click.edit", lambda text, extension: text.replace("= true", "= 1"))
    words = ("server", "edit", "notes", "--home", str(added.folder / "home"))
    left = CliRunner().invoke(aileron, words, input="")
    assert ("Edit it again?" in left.output, "internal error" in left.output) == (True, False)
    assert left.exit_code == EXIT.INTERRUPTED


def test_a_package_that_no_server_names_goes_with_a_change_or_a_failed_add(
    added: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = added.folder / "home" / "store" / "servers" / "sha256"

    def fetched(home: Path, table: ServerTable, say: object) -> ServerTable:
        (trees / ("b" * 64)).mkdir(parents=True)
        return table

    monkeypatch.setattr("aileron_tui.cli.server_adding.installed", fetched)
    added.add("other", PYTHON, *server_program(added.folder, "sys.exit()")[1:], code=1)
    assert [*trees.iterdir()] == []
    (trees / ("a" * 64)).mkdir()
    added.edit("edit_note=off")
    assert [*trees.iterdir()] == []


def test_an_update_says_what_differs_as_the_console_does(added: Commands) -> None:
    assert "the same tools" in added.printed(update_server, "notes", added.start)
    with (added.folder / "state").open("a") as file:
        file.write("changed\n")
    told = added.printed(update_server, "notes", added.start)
    assert "→ Edit it‹ESC›[31m\n" in told
    assert "+ tool drop_note: ask\n" in told
    assert "− tool read_note: ask\n" in told
    assert "until you accept it" in told
    assert [*added.tools("word")] == ["drop_note", "edit_note", "get_note"]


def test_a_manifest_is_checked_by_line_and_key_and_machine(added: Commands, tmp_path: Path) -> None:
    assert "✓ notes" in added.printed(check_server, "notes", added.start)
    added.start.why_not = lambda table: "This machine makes no box."
    assert "no box" in added.printed(check_server, "notes", added.start, code=1)
    file = tmp_path / "manifest.toml"
    text = added.json(show_server, "notes")["manifest"]
    file.write_text(
        text.replace('get_note = "run"', 'get_note = "maybe"\nmore = 1')
        .replace("[server]", '[server]\nbogus = 1\nsecrets = ["KEY"]')
        .replace('write = ["/', 'write = ["')
        .replace('op = "get_note"', 'op = "get_note"\nargz = 1', 1)
    )
    (mine,) = ConnectorStore(added.folder / "home").list()
    beside = tmp_path / "definitions.json"
    beside.write_bytes(definitions_bytes(mine.tools))
    told = added.printed(check_server, str(file), code=2)
    lines = file.read_text().splitlines()
    for line, problem in (
        ("more = 1", "tools.more: the server lists no such tool"),
        ("argz = 1", "actions.edit_note.preview.argz: unknown manifest key"),
        ('get_note = "maybe"', "tools.get_note: must be one of run, ask, look, off"),
        ("more = 1", "tools.more: must be one of"),
        ("bogus = 1", "bogus: unknown manifest key"),
        ('secrets = ["KEY"]', "secrets: a server with a secret must list its hosts"),
        (f'write = ["{str(tmp_path / "mine")[1:]}"]', "files.write[0]: must be an absolute path"),
    ):
        assert f"{file}:{1 + lines.index(line)}: server.{problem}" in told
    file.write_text(text)
    assert "✓" in added.printed(check_server, str(file))
    file.write_text(text.replace('op = "get_note"', 'op = "edit_note"'))
    no_read = "preview.op: must be one of its tools whose word is run or look"
    assert no_read in added.printed(check_server, str(file), code=2)
    beside.unlink()
    assert no_read in added.printed(check_server, str(file), code=2)
    program_ = text.replace('program = ["', 'program = ["x", "./x", "')
    file.write_text(program_.replace('op = "get_note"', "op = 3"))
    told = added.printed(check_server, str(file), code=2)
    assert "preview.op: must be a string" in told
    assert "program[1]: must be absolute" in told
    assert "program: must begin" in told
    file.write_text('[connector]\nname = "local://a/b"\nversion = "1.0.0"\n')
    assert "no table [server]" in added.printed(check_server, str(file), code=2)


def test_a_log_is_printed_escaped_and_a_removed_server_is_gone(added: Commands) -> None:
    assert "written nothing" in added.printed(show_server_log, "notes", 50)
    log = added.folder / "home" / "servers" / "notes.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("one\ntwo \x1b[31m\nthree\n")
    assert added.printed(show_server_log, "notes", 2) == "two ‹ESC›[31m\nthree\n"
    added.printed(remove_server, "notes")
    assert added.installed() == []
    assert "There is no server notes." in added.printed(show_server, "notes", code=1)


def test_a_remote_server_is_added_by_its_url_and_its_key_is_asked_for_once(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key lists the tools, and is neither in the store nor printed; without one nothing is installed."""
    monkeypatch.setattr("getpass.getpass", lambda _: "canary-of-the-key")
    monkeypatch.setattr("aileron_tui.cli.servers.has_terminal", lambda: True)
    monkeypatch.setattr("aileron_tui.cli.vault.has_terminal", lambda: True)
    with scripted_mcp(tmp_path) as remote:
        wants = remote.answer

        def answer(request: Request) -> object:
            has_key = request.headers.get("authorization") == "Bearer canary-of-the-key"
            return wants(request) if has_key else Reply(status=401)

        remote.service.answer = answer

        def client() -> OutgoingClient:
            return remote.service.client((), SystemClock())

        assert "it wants a key" in commands.add("far", URL, code=EXIT.FAILED, make_outgoing=client)
        assert commands.installed() == []
        said = commands.add("far", URL, header="Authorization", make_outgoing=client)
        entry = {"url": URL, "headers": {"Authorization": "Bearer canary-of-the-key"}}
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"near": entry}}))
        given: Any = {**NOTHING, "no_rehearse": False, "yes": True, "make_outgoing": client}
        told = commands.printed(add_server, (), str(file), (None, None), **given)
    assert "`aileron binding setup far` takes it" in said
    file.unlink()
    assert "not in its manifest: the values of Authorization" in told
    assert "accept it in the console, then run this command again" in told
    for name in ("far", "near"):
        shown = commands.json(show_server, name)
        assert (shown["url"], shown["hosts"], shown["header"]) == (URL, [PLACE], "Authorization")
    edited = commands.json(edit_server, "far", ("get=off",), rehearse=None, **NOTHING)
    assert edited["header"] == "Authorization"
    written = [each.read_bytes() for each in (tmp_path / "home").rglob("*") if each.is_file()]
    assert not any(b"canary-of-the-key" in each for each in written)
    assert "canary-of-the-key" not in said + told
