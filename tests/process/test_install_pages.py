"""Every command that README and docs show, typed in their order at the wheel: each ends as it should.

What cannot be typed by a test is listed, with the reason. A page is read anew for each run, so a
command that is added to one is typed too.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked import forking_programs
from tests.support.installing import ROOT, Installed
from tests.support.making import program
from tests.support.server_harness import aileron_json, quiet_port
from tests.support.variants import ALL

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("agents/*.md"))]
PROGRAMS = frozenset(
    ("aileron", "aileron-mcp", "claude", "codex", "curl", "docker", "bash:", "cd", "eval", "export", "fish:", "gemini", "goose",
     "make", "opencode", "pi", "pip", "pipx", "python", "python3", "ssh", "tailscale", "uv", "zsh:", ".")
)  # fmt: skip
NO_COMMAND = re.compile(
    r'^([a-z_]+ = |[a-z]+ -->|\S* ?(──|│)|pane 1 |> |aileron: |http://|"|\[|\{|server \{|\})|-->|── |│'
)
"""Other lines of the pages' code: settings, diagrams, what a program prints."""
A_USAGE = re.compile(r"aileron( [a-z-]+)+ .*(\b[A-Z]{2,}(_[A-Z]+)?\b|\{anthropic\|)")
"""Names what is to be put in its place: test_references.py parses these."""

NOT_TYPED = {
    r"make |python3 -m venv|\. ~/|(UV_LINK_MODE=\w+ )?(pip|pipx|uv)\b": "installs: see test_newcomers.py and test_install_wheel.py",
    r"aileron doctor": "says what this machine lacks: see tests/process and tests/agents",
    r"aileron attach": "asks at a terminal: see test_attach.py",
    r"aileron demo": "plays in a terminal: see test_install_wheel.py",
    r"aileron launch": "starts an agent: see tests/agents and test_launch.py",
    r"(claude|codex|gemini|goose|opencode|pi)\b": "is an agent",
    r"docker": "needs Docker",
    r"ssh |tailscale ": "needs another machine",
    r"python -m examples.headless": "asks at a terminal: see test_beside.py",
    r"curl .*/SESSION_ID/": "names a session of yours",
    r"aileron (suite|update|action add (https:|github:|aileron-suite)|connector install github:)": "needs a published suite: see tests/core/releases",
    r"aileron server": "needs a package registry and a sandbox: see tests/core/servers and tests/agents",
    r"aileron run": "needs a model: see tests/core/library and tests/process",
    r"aileron (audit show|open approval|policy explain) (run|act)-": "names a call of yours",
    r"aileron action run (list-tasks|close-task)": "needs an account at Todoist",
    r"aileron binding (reauthorize|rebind|forget)": "needs an account at Google, or one that changed: see test_oauth.py and test_accounts.py",
    r"aileron vault keyring": "needs a system's keyring",
    r"aileron vault change-passphrase": "asks at a terminal alone: see test_vault.py",
    r"aileron vault init --import": "needs a vault of upstream Aileron",
    r"python -m ziglang": "needs Zig, 100 MB: see test_new_connector.py",
    r"aileron connector run \. list_notes|aileron (connector install|action add) (\.|list-notes.md)$|aileron action run list-notes": "needs what Zig builds",
    r"eval |(bash|zsh|fish): ": "changes a shell: see test_cli_completion.py",
}  # fmt: skip
"""Pattern of a command -> why no test types it here."""

PORTS = {"8025": "8025", "8026": "8026"}
"""Of the services on the pages."""
PHRASE = "--passphrase-file ~/passphrase"
TYPED_AS = {
    r"((\w+=\S+ )*)aileron console( --plain)?": r"\1aileron serve --accept-installed",
    r"aileron example$": "aileron example --port 8025",
    r"aileron serve --passphrase-file \S+": f"aileron serve {PHRASE}",
    r"aileron vault (init|unlock)$": rf"aileron vault \1 {PHRASE}",
    r"aileron binding setup todoist( .*)?$": f"aileron binding setup todoist\\1 --account ana@example.com --secret-file ~/key {PHRASE}",
    r"aileron gateway key set openai$": "aileron gateway key set openai --secret-file ~/key",
    r"aileron gateway key set (.*)$": rf"aileron gateway key set \1 {PHRASE}",
    r"aileron (binding revoke|gateway key remove) (.*)$": r"aileron \1 \2 --yes",
    r"(.*) --wait \d+": r"\1",
}
"""What a person would type or press, in words: the console that accepts what is installed; the vault's
passphrase, a secret, a yes. Nobody approves, so no call is waited for."""
STAYS = re.compile(
    r"((\w+=\S+ )*)aileron (example|serve|logs --follow)|python3? .*(-m (http.server|examples)|service.py)"
)
ENDS = {
    r"aileron action run (send-draft|readdress-draft|edit-note) ": 75,  # a person would have to approve
    r"aileron action check --portable": 1,  # the example uses what upstream has not
}
"""Pattern of a command -> its exit code, where that is not 0."""
FIRST = {
    "docs/command-line.md": (
        "mkdir -p ~/actions ~/.config/fish/completions my-project",
        "printf '[launch]\nhide = [\".env\"]\n' | tee aileron.toml > my-project/aileron.toml",
        "cp examples/actions/send-draft.md . && cp examples/actions/*.md ~/actions",
        "cp -r examples/connectors/mail-drafts .",
        """echo '{"draft_id": "r-8842190447"}' > arguments.json""",
        "aileron init --example",
        "aileron connector install examples/connectors/todoist",
        "aileron console",
    ),
    "docs/accounts.md": ("aileron init",),
    "docs/action-files.md": ("sed s/send-draft/close-issue/ examples/actions/send-draft.md > close-issue.md",),
    "docs/augment.md": ("aileron console",),
    "docs/containers.md": ("aileron console",),
    "docs/first-approval.md": ("cp examples/demo/actions/readdress-draft.md .",),
    "docs/gateway.md": ("aileron vault init", "aileron console"),
    "docs/launch.md": ("mkdir my-project", "aileron console"),
}  # fmt: skip
"""What a page takes for granted."""
BEFORE: dict[str, dict[str, tuple[str, ...]]] = {
    "docs/accounts.md": {r"aileron binding setup": ("aileron vault init",)},
    "docs/first-approval.md": {r"aileron action run readdress": ("aileron console",)},
    # Of all commands each stands by itself.
    "docs/command-line.md": {
        r"aileron action (remove|run|show) |aileron connector (show|remove) ": ("aileron init --example",),
        r"aileron action run list": (
            "aileron example", "aileron console --route gmail.googleapis.com:443=127.0.0.1:8025",
        ),
        r"aileron action run send-draft --arg ": ("aileron console",),
        r"aileron binding inspect": ("aileron vault init", "aileron binding setup todoist"),
        r"aileron gateway key remove": ("aileron vault unlock", "aileron gateway key set openai"),
        r"aileron vault init$": ("export AILERON_HOME=$HOME/another",),
        r"aileron binding setup .* --identity": (f"test -e ~/.aileron/vault.json || aileron vault init {PHRASE}",),
        r"aileron connector run \.": ("aileron example", "cp mail-drafts/connector.wasm mail-drafts/manifest.toml ."),
        r"aileron connector new my-notes --lang": ("rm -rf my-notes",),
        r"aileron vault lock": ("aileron console",),
    },
}  # fmt: skip
"""What is typed before a command of a page."""


def code_lines(page: Path) -> list[str]:
    text = re.sub(r"(?ms)^```.*?^```|\\\n\s*", "", page.read_text(encoding="utf-8"))
    return [line[4:] for line in text.splitlines() if re.match(r" {4}\S", line)]


def page_commands(page: Path) -> list[str]:
    found: list[str] = []
    for line in code_lines(page):
        for command in re.split(r" {3,}\$ ", line.removeprefix("$ ").strip()):  # two panes
            word = re.sub(r"^(\w+=\S+ )+", "", command).split()[0]
            if word in PROGRAMS and not NO_COMMAND.search(command):
                found.append(command)
    return found


@dataclass
class Prompt:
    """What a person has before them: a home with nothing in it, a folder with the examples, a prompt."""

    folder: Path
    environment: dict[str, str]
    running: dict[str, "subprocess.Popen[str]"] = field(default_factory=dict[str, Any])

    def type(self, command: str) -> tuple[int, str]:
        """Type *command*; return its exit code and what it printed, of one that stays a first line."""
        command = command.removesuffix("&").rstrip()
        if STAYS.match(command):
            return self._start(command)
        script = f"{command}\nsaid=$?; env -0 > ~/environment; pwd > ~/folder; exit $said"
        done = subprocess.run(
            ["sh", "-c", script], cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            timeout=120,
        )  # fmt: skip
        home = Path(self.environment["HOME"])
        words = (home / "environment").read_text().split("\0")
        self.environment = dict(word.split("=", 1) for word in words if word)
        self.folder = Path((home / "folder").read_text().strip())
        return done.returncode, done.stdout

    def _start(self, command: str) -> tuple[int, str]:
        port = re.search(r"\b\d{4,5}\b", command)
        name = "console" if "aileron serve" in command else port[0] if port else command
        if name in self.running:
            self.end(name)
        errors = Path(self.environment["HOME"], "errors")
        with errors.open("w") as opened:
            process = self.running[name] = subprocess.Popen(
                ["sh", "-c", f"exec env {command}"], cwd=self.folder, env=self.environment, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=opened,
            )  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()  # it is ready
        return (0 if line else process.wait(60)), line + errors.read_text()

    def end(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said = process.stdout.read()
        process.stdout.close()
        assert process.wait(60) in (0, 130, -signal.SIGINT), (process.args, said)


@pytest.fixture(scope="module")
def programs(installed: Installed) -> Iterator[Path]:
    modules = {"aileron": "aileron_tui.cli", "aileron_mcp": "aileron_mcp.relay"}
    with (
        tempfile.TemporaryDirectory(prefix="ail-") as folder,
        forking_programs(installed.python, Path(folder), **modules) as programs,
    ):
        yield programs


@pytest.fixture
def prompt(programs: Path, installed: Installed, folder: Path) -> Iterator[Prompt]:
    for name in ("home", "work"):
        (folder / name).mkdir()
    shutil.copytree(ROOT / "examples", folder / "work" / "examples")
    program(folder / "home" / "passphrase", "a long one for a vault\n", 0o600)
    program(folder / "home" / "key", "secret-0123456789\n", 0o600)
    path = f"{programs}:{installed.bin}:{os.environ['PATH']}"
    environment = {
        "HOME": str(folder / "home"), "PATH": path, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    shell = Prompt(folder / "work", environment)
    yield shell
    for name in [*shell.running]:
        shell.end(name)


def typed_command(command: str, ports: Mapping[str, str]) -> str:
    command = command.partition("  #")[0].strip()
    for pattern, words in TYPED_AS.items():
        command = re.sub(f"^{pattern}", words, command)
    return re.sub("802[56]", lambda found: ports[found[0]], command)


def is_typed(command: str) -> bool:
    return not any(re.match(each, command) for each in (*NOT_TYPED, A_USAGE))


def typed_commands(page: Path) -> list[str]:
    """Return what is typed of *page*; of the list of all commands, but in `make test-all`, what no other page shows."""
    others = set[str]()
    if page.name == "command-line.md" and not ALL:
        pages = [other for other in PAGES if other != page]
        others = {typed_command(each, PORTS) for other in pages for each in page_commands(other)}
    shown = dict.fromkeys(filter(is_typed, page_commands(page)))
    return [each for each in shown if typed_command(each, PORTS) not in others]


@pytest.mark.timeout(600)  # a page has up to a hundred
@pytest.mark.parametrize(
    "page",
    # Those two are gone through at a terminal: test_newcomers.py.
    [each for each in PAGES if ALL or each.name not in ("connectors.md", "accounts.md")],
    ids=lambda page: page.name,
)
def test_each_command_of_a_page_works_in_its_turn(prompt: Prompt, page: Path) -> None:
    """At the wheel, not the checkout: a command that read `.pyc` as text failed for everybody but us."""
    name = str(page.relative_to(ROOT))
    ports = {each: str(quiet_port()) for each in PORTS}  # another test may hold theirs
    shown = typed_commands(page)
    for command in (*(FIRST.get(name, ()) if shown else ()), *shown):
        for pattern, words in BEFORE.get(name, {}).items():
            for word in words if re.match(pattern, command) else ():
                assert prompt.type(typed_command(word, ports))[0] == 0, word
        words = typed_command(command, ports)
        code, said = prompt.type(words)
        expected = next((code for each, code in ENDS.items() if re.match(each, command)), 0)
        assert code == expected, f"{command}  ({words})\n{said}"
        assert "Traceback" not in said


def test_each_line_of_code_is_a_command_or_known_to_be_none() -> None:
    every = {page: page_commands(page) for page in PAGES}
    for page, known in every.items():
        for line in code_lines(page):
            text = re.sub(r" {3,}\$ .*", "", line.removeprefix("$ ").strip())
            assert text in known or NO_COMMAND.search(text), (page, line)
    for pattern in (*NOT_TYPED, *TYPED_AS):  # none is for a command that no page shows
        assert any(re.match(pattern, each) for known in every.values() for each in known), pattern


def test_the_tutorial_has_the_commands_that_init_prints(tmp_path: Path) -> None:
    """One way in, told once: the page and the command do not drift apart."""
    steps = aileron_json("init", "--example", home=tmp_path / "home")["next"]
    bare = [re.sub(r"^\S*/|(?<=\S) --home \S+", "", step) for step in steps]
    shown = page_commands(ROOT / "docs" / "first-approval.md")
    assert [command for command in shown if command in bare] == bare
