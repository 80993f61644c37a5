"""A whole day at work for a real agent: console with a person, mail service, scripted model, project, home."""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.mailbox.server import Mailbox
from tests.agents.llm import CallTool, Conversation, Say, Script, ScriptedLlm
from tests.support import making
from tests.support.core_harness import DRAFT, install_examples
from tests.support.forked import forked, run_forked
from tests.support.installing import new_environment
from tests.support.ordinary import AS_ORDINARY, OWNS
from tests.support.processes import command_lines, eventually
from tests.support.server_harness import CLI as AS_TESTS
from tests.support.server_harness import ROOT, Attended, query

CLI = (*AS_ORDINARY, *AS_TESTS)
"""Console, launches and agents are an ordinary user's, whoever runs the tests: root's nobody contains."""
QUICKLY = ("--hold-grace", "1")
"""A killed launcher's session ends after a second, not five: what comes then is what is looked at."""
NPM = (Path(__file__).parent / "npm", Path(__file__).parent / "npm-all")
KEYS = {
    "OPENAI_API_KEY": "sk-openai-for-the-scripted-model",
    "ANTHROPIC_API_KEY": "sk-ant-for-the-scripted-model",
    "GEMINI_API_KEY": "gm-for-the-scripted-model",
}
_SECONDS = 120


def sends_a_draft(conversation: Conversation) -> Say | CallTool:
    """Call send_draft; while it is pending, ask after it; then tell what came of it."""
    if not conversation.results:
        return CallTool(name="send_draft", args={"draft_id": DRAFT})
    last = conversation.results[-1]
    if "pending_approval" in last:
        approval = last[last.index("act-") :][: len("act-20260101T000000-0123456789abcdef")]
        given = {"approval_id": approval, "wait_seconds": 30}
        return CallTool(name="check_action_status", args=given)
    return Say(text=f"FINAL {last[:400]}")


def found_by(program: str, output: str) -> Any:
    """Return the JSON that a script in the place of an agent printed behind the word *program*."""
    lines = [line for line in output.splitlines() if line.startswith(f"{program} ")]
    assert lines, output
    return json.loads(lines[0].removeprefix(f"{program} "))


def aileron_in(venv: Path) -> tuple[tuple[str, ...], Path]:
    """Make *venv* with an Aileron in it; return how that is started, and its folder of packages."""
    python = new_environment(venv)
    packages = next(venv.glob("lib/python*/site-packages"))
    (packages / "here.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    return (*AS_ORDINARY, str(python), "-I", "-m", "aileron_tui.cli"), packages


_TOKEN = re.compile(rb"[A-Za-z0-9_-]{20,}")


def caller(port: int, server: int) -> int | None:
    """Return the process that connected from *port* to *server*, both on loopback."""
    ends = [f"0100007F:{each:04X}" for each in (port, server)]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[1:3] == ends}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):  # gone, or not ours to look at
            for entry in folder.iterdir():
                with contextlib.suppress(OSError):
                    if str(entry.readlink()) in inodes:
                        return int(folder.parent.name)
    return None


def gateway_hashes(home: Path) -> set[str]:
    return {row for (row,) in query(home, "SELECT gateway_hash FROM sessions")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the agent ended."""

    code: int
    output: str
    command_lines: frozenset[str]
    """Every one that was seen on this machine while it ran, if it was watched."""


@dataclass
class Bench:
    """Everything that one agent needs; see `workbench`."""

    folder: Path
    console: Attended
    mailbox: Mailbox
    llm: ScriptedLlm
    callers: list[int | None]
    """The process behind each connection that the model was asked over."""

    @property
    def home(self) -> Path:
        return self.folder / "person"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def write(self, name: str, text: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def configure(self, agent: str) -> None:
        for name, text in _SETTINGS[agent].items():
            self.write(name, text)

    def stand_in(self, program: str, agent: str = "codex") -> dict[str, str]:
        """Put a script in the place of *agent*; return the environment in which it is found first."""
        bin_ = making.program(self.folder / "bin" / agent, program).parent
        return {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}

    def launch(self, program: str, *args: str, options: Sequence[str] = (), **env: str) -> "Ended":
        """Launch a script in the place of Codex, without a terminal, and wait for its end."""
        env = {**self.stand_in(program), **env}
        return self.run("codex", *args, options=options, env=env, code=None)

    def run(self, agent: str, *args: str, code: int | None = 0, **given: Any) -> "Ended":
        with self.launched(agent, *args, **given) as running:
            return running.end(code)

    def aileron(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        command = [*CLI, *words, "--home", str(self.console.home)]
        return run_forked(command, cwd=self.project, env=self.environment(env))

    def events(self) -> list[str]:
        return [record["event"] for record in self.console.records()]

    def asked(self) -> str:
        """Return the approval that the agent's call became, once a person could answer it."""
        views = self.console.views
        assert self.console.until(
            lambda: any(view["digest"] and view["preview"] == "ready" for view in views.values()),
            60,
        )
        return next(iter(views))

    def all_passed(self) -> None:
        """Fail unless every request to the model came through the console, and holds no byte of ours."""
        seen = list(self.llm.seen)
        assert seen
        assert {*self.callers} == {self.console.process.pid}
        hashes = gateway_hashes(self.console.home)
        assert hashes
        for each in seen:  # no prefix of ours, no gateway token, no header
            assert b"/gw/" not in each.raw
            assert not {_digest(word) for word in _TOKEN.findall(each.raw)} & hashes
            for name, value in each.headers.items():
                assert "aileron" not in f"{name} {value}".lower()
                assert not name.startswith(("x-forwarded", "forwarded", "via"))
            assert each.headers["host"] == self.llm.url.removeprefix("http://")

        def told() -> list[list[Any]]:
            records = [one for one in self.console.records() if one["event"] == "gateway.passed"]
            return [request for one in records for request in one["requests"]]

        passed = eventually(lambda: len(found := told()) >= len(seen) and found)
        expected = [(each.method, each.path.partition("?")[0]) for each in seen]
        assert sorted((method, path) for _, _, method, path, *_ in passed) == sorted(expected)
        for *_, method, _, status, up, down in passed:
            assert status == 200
            assert bool(up) == (method == "POST")  # Goose asks for the models first
            assert down

    def shows_gateway(self, ended: "Ended") -> bool:
        """Tell whether a command line of this machine held the session's gateway token."""
        hashes = gateway_hashes(self.console.home)
        words = {word for line in ended.command_lines for word in re.findall(r"/gw/([\w-]+)", line)}
        return any(_digest(word.encode()) in hashes for word in words)

    def left_behind(self, pattern: str = "*") -> list[Path]:
        """Return what launches have not taken away: of tokens "*/token"."""
        return list((self.console.home / "run" / "launched").glob(pattern))

    def fingerprint(self) -> dict[str, str]:
        paths = [path for base in (self.home, self.project) for path in base.rglob("*")]
        return {
            str(path.relative_to(self.folder)): _digest(path.read_bytes()) if path.is_file() else ""
            for path in paths
        }

    @contextlib.contextmanager
    def launched(
        self,
        agent: str,
        *args: str,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        watched: bool = False,
    ) -> Iterator["Running"]:
        """Start `aileron launch` and end it, whatever the test does; *watched*: collect all command lines."""
        process = forked(
            [*CLI, "launch", agent, "--home", str(self.console.home), *options, "--", *args],
            cwd=self.project,
            env=self.environment(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running = Running(process, watched=watched)
        try:
            yield running
        finally:
            process.kill()
            process.wait(60)
            running.stop()

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the person's environment: their keys, their PATH, nothing of this test's home."""
        bins = [str(folder / "node_modules" / ".bin") for folder in NPM]
        bins += [str(bin_) for bin_ in NPM[1].glob("node_modules/node-*/bin")]
        path = os.pathsep.join([*bins, os.environ["PATH"]])
        kept = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ}
        owned = {OWNS: str(self.folder)} if AS_ORDINARY else {}
        return {**kept, **KEYS, **owned, "HOME": str(self.home), "PATH": path, **more}


class Running:
    """An agent that runs; where it is *watched*, all command lines of this machine are collected meanwhile."""

    def __init__(self, process: "subprocess.Popen[str]", *, watched: bool) -> None:
        self.process = process
        self._watched = watched
        self._lines: set[str] = set()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._collect, daemon=True)
        if watched:
            self._watch.start()

    def _collect(self) -> None:
        while not self._over.wait(0.05):
            self._lines |= {line.replace("\0", " ") for line in command_lines().values()}

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)

    def stop(self) -> None:
        self._over.set()
        if self._watched:
            self._watch.join()

    def end(self, code: int | None = 0) -> Ended:
        output, _ = self.process.communicate(timeout=_SECONDS)
        self.stop()
        assert code in (None, self.process.returncode), output
        lines = frozenset(self._lines)
        return Ended(code=self.process.returncode, output=output, command_lines=lines)


_SETTINGS = {
    "codex": {".codex/config.toml": 'model = "test"\n'},
    "opencode": {
        ".config/opencode/opencode.json": (
            '{"$schema": "https://opencode.ai/config.json", "model": "openai/test", '
            '"small_model": "openai/test", "provider": {"openai": {"models": {"test": {}}}}}'
        )
    },
    "claude": {".claude/settings.json": '{"env": {"DISABLE_TELEMETRY": "1"}}'},
    "goose": {
        ".config/goose/config.yaml": (
            "GOOSE_PROVIDER: openai\nGOOSE_MODEL: gpt-4o\n"
            "GOOSE_DISABLE_SESSION_NAMING: true\nextensions: {}\n"
        )
    },
    "pi": {},
    "gemini": {
        ".gemini/settings.json": (
            '{"security": {"auth": {"selectedType": "gemini-api-key"}}, '
            '"privacy": {"usageStatisticsEnabled": false}}'
        )
    },
}
PROMPTS = {
    "codex": ("exec", "--skip-git-repo-check", "send the draft"),
    "opencode": ("run", "send the draft"),
    "claude": ("-p", "send the draft"),
    "goose": ("run", "--quiet", "--no-session", "-t", "send the draft"),
    "pi": ("-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "send the draft"),
    "gemini": ("--skip-trust", "-m", "gemini-2.5-flash", "-p", "send the draft"),
}


@contextlib.contextmanager
def bench_of(script: Script, **settings: Any) -> Iterator[Bench]:
    """A workbench in a folder of its own, with a path short enough for a socket."""
    with (
        tempfile.TemporaryDirectory(prefix="ail-") as folder,
        workbench(Path(folder), ScriptedLlm(script), **settings) as bench,
    ):
        yield bench


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def silent(_: Conversation) -> Say:
    return Say(text="nothing")


@contextlib.contextmanager
def workbench(
    folder: Path,
    llm: ScriptedLlm,
    *,
    ca_file: Path | None = None,
    inspect: bool = False,
    install: Callable[[Path], object] = install_examples,
) -> Iterator[Bench]:
    aileron_home = folder / "aileron"
    install(aileron_home)
    (folder / "person").mkdir()
    (folder / "project").mkdir()
    callers: list[int | None] = []
    llm.connected = lambda *ports: callers.append(caller(*ports))
    with Mailbox() as mailbox, llm:
        providers = ("anthropic", "openai", "gemini")
        settings = ["[gateway]", *(f"{name} = {llm.url!r}" for name in providers)]
        if ca_file is not None:
            settings += [f"ca_file = '{ca_file}'"]
        if inspect:
            settings += ["inspect = true"]
        (aileron_home / "config.toml").write_text("\n".join(settings) + "\n")
        with contextlib.closing(
            Attended(aileron_home, mailbox, *QUICKLY, under=AS_ORDINARY, env={OWNS: str(folder)})
        ) as console:
            yield Bench(folder=folder, console=console, mailbox=mailbox, llm=llm, callers=callers)
