"""Ctrl-Z, `fg`, `bg` and `&` in real interactive shells: launcher and agent are one job."""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.agents_bench import CLI, KEYS, Bench, Say, bench_of
from tests.process.tmux import Tmux, shell
from tests.support.making import program
from tests.support.ordinary import AS_ORDINARY
from tests.support.processes import eventually, running_with, states
from tests.support.server_harness import ROOT
from tests.support.variants import ALL, variants

pytestmark = pytest.mark.timeout(300)
READY = "READY>"
"""The shell's prompt."""
_SHELLS = {
    "bash": ("bash --norc --noprofile -i", f"PS1='{READY} '"),
    "zsh": ("zsh -f -i", f"PROMPT='{READY} '"),
    "fish": ("fish --private --no-config -i", f"function fish_prompt; echo -n '{READY} '; end"),
}
"""Each with what sets its prompt."""
SHELLS = (*_SHELLS,)


class Shell(Tmux):
    """A person's interactive shell on a terminal of its own, where launches are jobs."""

    def __init__(
        self, name: str, folder: Path, env: dict[str, str], cwd: Path, under: tuple[str, ...] = ()
    ) -> None:
        """Start the shell *name*, with its socket in *folder*, *under* what an ordinary user's program is run under."""
        if shutil.which(name) is None:
            pytest.fail(f"these tests drive a real shell: install {name} (.ci/run does)")
        self.folder, (words, prompt) = folder, _SHELLS[name]
        # A command of its own, so that the shell is a session's leader as in any terminal.
        command = f"exec {shell(*under, *words.split())}"
        given = {**env, "SHELL": "/bin/sh", "LANG": "C.UTF-8", "HISTFILE": os.devnull}
        super().__init__(folder / "tmux", command, given, cwd, size=(100, 40))
        self.type(prompt)
        self.press("Enter")
        self.at_prompt()

    def run(self, command: str) -> None:
        self.press("C-l")
        self.at_prompt(alone=True)
        self.type(command)
        self.press("Enter")

    def at_prompt(self, *, alone: bool = False) -> str:
        """Wait until the shell waits for a command (on an otherwise *alone* screen); return the screen."""

        def waits(shown: str) -> bool:
            lines = [line for line in shown.splitlines() if line.strip()]
            return bool(lines) and lines[-1].strip() == READY and (len(lines) == 1 or not alone)

        return self.until(waits)

    def until_stopped(self) -> str:
        """Wait until the shell says that its job has stopped; return the screen at its prompt."""

        def told(shown: str) -> bool:
            if re.search("topped|suspended", shown):
                return True
            self.press("Enter")  # bash says so before its next prompt
            return False

        self.until(told)
        return self.at_prompt()


LAUNCH = """
import sys
sys.path.insert(0, sys.argv[1])
from aileron_core.launch import agent_job
from aileron_core.launch.foreground import job_argv, run_foreground
argv = [*job_argv(agent_job.__file__, sandbox=False), *sys.argv[2:]]
sys.exit(run_foreground(argv, env={"PATH": "/usr/bin:/bin", "TERM": "xterm-256color"}, cwd="/"))
"""
DRAWS = """\
#!/usr/bin/env python3
import os, signal, sys, termios, tty
before = termios.tcgetattr(0)
def screen():
    tty.setraw(0)
    os.write(1, b"\\x1b[?1049h\\x1b[?1000h\\x1b[?25l\\x1b[2J\\x1b[H")
    draw()
def draw(*_):
    os.write(1, b"\\x1b[HDRAWN by %d\\r\\n" % os.getpid())
if "reads" in sys.argv:
    print("PRINTED", flush=True)
    sys.exit(print("line", input()))
if "deaf" in sys.argv:
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    signal.signal(signal.SIGWINCH, draw)
screen()
while key := os.read(0, 1):
    if key == b"\\x1a":
        os.write(1, b"\\x1b[?25h\\x1b[?1000l\\x1b[?1049l")
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        os.kill(0 if "group" in sys.argv else os.getpid(), signal.SIGTSTP if "group" in sys.argv else signal.SIGSTOP)
        screen()
        os.write(1, b"WENT ON\\r\\n")
    elif key == b"q":
        os.write(1, b"\\x1b[?25h\\x1b[?1000l\\x1b[?1049l")
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        sys.exit(7)
    else:
        os.write(1, b"key %s\\r\\n" % key)
"""
SHELLS_OWN = {"alternate_on": "0", "mouse_any_flag": "0", "cursor_flag": "1"}
AGENTS_OWN = {"alternate_on": "1", "mouse_any_flag": "1", "cursor_flag": "0"}


@contextlib.contextmanager
def agent_at_shell(name: str, *words: str, background: bool = False) -> Iterator[Shell]:
    with tempfile.TemporaryDirectory(prefix="ail-") as made:
        folder = Path(made)
        agent = str(program(folder / "agent", DRAWS))
        (folder / "launch.py").write_text(LAUNCH)
        given = {"PATH": os.environ["PATH"], "HOME": made, "TERM": "xterm-256color"}
        with contextlib.closing(Shell(name, folder, given, cwd=folder)) as at:
            command = shell(sys.executable, "-I", "launch.py", str(ROOT), agent, *words)
            at.run(f"{command}{' &' if background else ''}")
            yield at


def screen_has(at: Shell, flags: dict[str, str]) -> None:
    eventually(lambda: at.flags(*flags) == flags)


@pytest.mark.parametrize("name", variants(SHELLS))
def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on(name: str) -> None:
    """The shell has its prompt and its modes; the agent's screen is there again afterwards.

    In the background it stops as it wants the terminal, and so does one that was started there.
    """
    with agent_at_shell(name, "group", background=True) as at:
        assert "DRAWN" not in at.until_stopped()
        at.run("fg")
        at.until("DRAWN by")
        at.press("a")
        at.until("key a")
        for again in ("fg", "bg"):
            screen_has(at, AGENTS_OWN)
            at.press("C-z")
            screen_has(at, SHELLS_OWN)
            at.at_prompt()
            at.run(again)
        at.until_stopped()
        screen_has(at, SHELLS_OWN)
        at.run("stty -a | grep -ow icanon")
        at.until(f"\nicanon\n{READY}")
        at.run("fg")
        at.until("WENT ON")
        screen_has(at, AGENTS_OWN)
        at.press("b")
        at.until("key b")
        at.press("q")
        at.at_prompt()
        screen_has(at, SHELLS_OWN)


def test_a_stop_from_outside_stops_an_agent_that_knows_nothing_of_it() -> None:
    """It had no time to reset its modes: they are reset for the shell, set again for it, and it draws anew."""
    with agent_at_shell("bash", "deaf") as at:
        at.until("DRAWN by")
        screen_has(at, AGENTS_OWN)
        (launcher,) = running_with("-I\0launch.py\0", f"{at.folder}/agent\0")
        os.kill(launcher, signal.SIGTSTP)
        screen_has(at, SHELLS_OWN)
        assert "DRAWN" not in at.at_prompt()
        assert states(launcher) == {"T"}
        at.run("fg")
        screen_has(at, AGENTS_OWN)
        at.until("DRAWN by")
        at.press("a")
        at.until("key a")


def test_what_is_printed_in_the_background_is_shown_until_it_wants_to_read() -> None:
    """As with any program; what is typed at the prompt stays the shell's."""
    with agent_at_shell("bash", "reads", background=True) as at:
        at.until("PRINTED")
        assert "line" not in at.until_stopped()
        at.run("fg")
        at.type("hello")
        at.press("Enter")
        at.until("line hello")
        at.at_prompt()


@contextlib.contextmanager
def shell_at_work(
    name: str, program: str | None = None, agent: str | None = None
) -> Iterator[tuple[Bench, Shell]]:
    """A person's own shell in a project, beside a console."""
    with bench_of(lambda _: Say(text="BANANA")) as bench:
        env = {} if program is None else bench.stand_in(program)
        if agent is not None:
            bench.configure(agent)
            for path, text in TRUSTED[agent](bench).items():
                bench.write(path, text)
        given = {**bench.environment(env), "TERM": "xterm-256color"}
        at = Shell(name, bench.folder, given, cwd=bench.project, under=AS_ORDINARY)
        with contextlib.closing(at):
            yield bench, at


def launch_agent(bench: Bench, at: Shell, agent: str, *options: str) -> int:
    command = (*CLI[len(AS_ORDINARY) :], "launch", agent, "--home", str(bench.console.home))
    at.run(shell(*command, *options))
    found: list[int] = []
    eventually(lambda: found.extend(running_with("\0launch\0", str(bench.console.home))) or found)
    return min(found)


COUNTS = """\
#!/usr/bin/env python3
import os, signal, subprocess, sys, time
if os.fork() == 0:
    os.setsid()  # it does not stop with its parent
    while True:
        open("count", "a").write("x")
        time.sleep(0.01)
if os.fork() == 0:
    slowly = [(os.POSIX_SPAWN_OPEN, 9, "/dev/null", os.O_RDONLY, 0)] * 20000
    while True:  # a process cannot stop before such a child of it executes its program
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=slowly), 0)
try:
    os.listdir(f"/proc/{os.getppid()}/fd")  # there is what it would say that all has stopped with
except PermissionError:
    print("COUNTS", flush=True)
for line in sys.stdin:
    name = line.strip()
    if name.startswith("new"):
        subprocess.run(["git", "init", "-q", name], check=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        print("WENT ON", flush=True)
"""


@pytest.mark.parametrize("ending", ["killed", "hung up"])
def test_nothing_runs_in_the_sandbox_while_its_launcher_is_stopped(ending: str) -> None:
    """Nobody watches it then: a repository made just before is hidden, and nothing is made after.

    The session stays. Whoever kills the launcher, or closes its terminal, ends everything.
    """
    with shell_at_work("bash", COUNTS) as (bench, at):
        launcher = launch_agent(bench, at, "codex")
        at.until("COUNTS")
        for name in ("new1", "new2", "new3"):
            at.type(name)
            at.press("Enter")
            at.at_prompt()
            inside = running_with(f"python3\0{bench.folder / 'bin' / 'codex'}")
            assert len(inside) >= 3
            assert states(launcher, *inside) == {"T"}
            (left,) = (bench.project / name / ".git").iterdir()
            assert left.name == "README-aileron.txt"
            counted = (bench.project / "count").stat().st_size
            if name != "new3":
                at.run("fg")
                at.until("WENT ON")
                eventually(lambda: (bench.project / "count").stat().st_size > counted)  # noqa: B023
        assert "session.ended" not in bench.events()
        if ending == "killed":  # nothing of it ran once more
            os.kill(launcher, signal.SIGKILL)
        else:
            at.close()
        eventually(lambda: states(launcher, *inside) <= {"Z"})
        eventually(lambda: "session.ended" in bench.events())
        assert ending == "hung up" or (bench.project / "count").stat().st_size == counted


TRUSTED = {
    "codex": lambda bench: {
        ".codex/config.toml": f'model = "test"\n[projects."{bench.project}"]\ntrust_level = "trusted"\n',
        ".codex/auth.json": json.dumps({"OPENAI_API_KEY": KEYS["OPENAI_API_KEY"]}),
    },
    "claude": lambda bench: {
        ".claude.json": json.dumps(
            {
                "hasCompletedOnboarding": True,
                "customApiKeyResponses": {"approved": [KEYS["ANTHROPIC_API_KEY"][-20:]]},
                "projects": {str(bench.project): {"hasTrustDialogAccepted": True}},
            }
        )
    },
    "gemini": lambda _: {},
}
"""What lets an agent begin without a question."""
OPTIONS = ((), ("--no-sandbox",), ("--sandbox=offline",))
REAL = variants(itertools.product(("codex", "claude"), SHELLS, OPTIONS))


def type_until_there(at: Shell, text: str) -> None:
    """Type *text* until it is there: an agent that starts, or goes on, drops what is typed meanwhile."""

    def there() -> bool:
        at.type(text)
        with contextlib.suppress(AssertionError):
            return bool(at.until(text, patience=1.0))
        return False

    eventually(there)


@pytest.mark.parametrize(("agent", "name", "options"), REAL, ids=lambda value: "".join(value))
def test_a_real_agent_stops_and_goes_on(agent: str, name: str, options: tuple[str, ...]) -> None:
    """It stops itself, each in its own way, draws its screen again, and its model still answers."""
    with shell_at_work(name, agent=agent) as (bench, at):
        launcher = launch_agent(bench, at, agent, *options)
        at.until("? for shortcuts" if agent == "codex" else "shift+tab to cycle")
        for text in ("xjx", "qzq"):
            type_until_there(at, text)
            at.press("C-z")
            shown = at.at_prompt()
            assert text not in shown
            assert states(launcher) == {"T"}
            assert at.flags(*SHELLS_OWN) == SHELLS_OWN
            at.run("fg")
            at.until(text)
        type_until_there(at, "say it")
        eventually(lambda: at.press("Enter") or "BANANA" in at.pane())
        assert bench.events().count("session.opened") == 1


@pytest.mark.skipif(not ALL, reason="one of the six agents that make test-all launches")
def test_gemini_starts_itself_again_once_its_folder_is_trusted() -> None:
    """It ends with a code of its own, for which its outer process starts it again."""
    with shell_at_work("bash", agent="gemini") as (bench, at):
        launch_agent(bench, at, "gemini")
        at.until("Do you trust the files")
        at.press("Enter")
        at.until("Type your message")
