"""Attacks by an agent in the sandbox of `aileron launch`, and by what it leaves in its project."""

import contextlib
import fcntl
import json
import os
import secrets
import socket
import sys
import termios
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

from aileron_core.containment.programs import own_interpreter
from aileron_tui.cli.attacks.arena import Arena, Attack, SkippedError, at_terminal, eventually, must

_IN_FRONT: Final = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
_HOSTILE: Final = {
    "AILERON_VAULT_PASSPHRASE": "x",
    "SSH_AUTH_SOCK": "/x",
    "TMUX": "/x,1,0",
    "DISPLAY": ":9",
}


class _Launch:
    """One launch of the probe in place of an agent, on a terminal, in a project with git; and what it left."""

    def __init__(self, arena: Arena) -> None:
        person, programs = arena.folder / "person", arena.folder / "bin"
        self.project, self.canary = arena.folder / "project", arena.folder / "canary"
        for folder in (person / ".ssh", person / ".codex", self.project, programs):
            folder.mkdir(parents=True)
        (person / ".ssh" / "id_ed25519").write_text("a key\n")
        self._env = {"HOME": str(person), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        probe = Path(__file__).with_name("probe.py").read_text("utf-8")
        (programs / "codex").write_text(f"#!{own_interpreter()} -I\n{probe}", "utf-8")
        (programs / "codex").chmod(0o755)
        self.shown, self.changed, self.typed = "", False, 0
        """Of the agent's command the preview; whether it changed the project unasked; of the terminal the unread input."""
        arena.run(["git", "init", "-q"], cwd=self.project, env=self._env)
        self._run(arena)
        for words in (("status",), ("checkout", "-q", "-b", "other")):
            arena.run(["git", *words], cwd=self.project, env=self._env)
        self.found: dict[str, Any] = json.loads((self.project / "found.json").read_text("utf-8"))

    def _run(self, arena: Arena) -> None:
        abstract = f"aileron-attack-{secrets.token_hex(8)}"
        given = {
            "approval": arena.approval, "home": str(arena.home.path), "socket": str(arena.home.socket),
            "pid": os.getpid(), "abstract": abstract, "canary": str(self.canary),
        }  # fmt: skip
        env = {**self._env, **_HOSTILE, "CODEX_API_KEY": json.dumps(given)}
        aileron = [sys.executable, "-I", "-m", "aileron_tui.cli", "--home", str(arena.home.path)]
        launch = [*aileron, "launch", "codex", "--builtins", "--no-gateway"]
        command = [sys.executable, "-I", "-c", _IN_FRONT, *launch]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0{abstract}")
            listener.listen()
            with at_terminal(command, self.project, env) as terminal:
                ended = terminal.process.poll
                eventually(lambda: self._is_shown(arena) or ended() is not None, 60)
                self.changed = (self.project / "rehearsed.txt").exists()
                (self.project / "go").touch()
                terminal.process.wait(60)
                self.typed = _unread(terminal.own)
        if not (self.project / "found.json").exists():
            text = " ".join(terminal.printed.decode("utf-8", "replace").split())
            raise SkippedError(f"the launch did not start its agent: {text[-300:]}")

    def _is_shown(self, arena: Arena) -> bool:
        views = [each for each in tuple(arena.views.values()) if each.action == "builtin.bash"]
        self.shown = " ".join(field.value for view in views for field in view.preview.fields)
        return bool(self.shown)


def _unread(terminal: int) -> int:
    """Return how many bytes wait in the input of *terminal*."""
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ICANON  # also of a line that has no end yet
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    return int.from_bytes(fcntl.ioctl(terminal, termios.FIONREAD, b"\0" * 4), sys.byteorder)


@contextlib.contextmanager
def _launch(arena: Arena) -> Generator[_Launch]:
    if sys.platform != "linux":
        raise SkippedError("there is no sandbox for this system")
    if os.getuid() == 0:
        raise SkippedError("root's agents are not contained, and a launch by root is refused")
    yield _Launch(arena)


def _could(arena: Arena, *names: str, held: str) -> str:
    found = arena.once(_launch).found
    could = [name for name in names if found[name]]
    must(not could, f"it could: {', '.join(could)}")
    return held


def _in_shell(arena: Arena) -> str:
    must(not arena.once(_launch).typed, "bytes of it wait in your terminal's input")
    return "its terminal is one of its own"


def _git(arena: Arena) -> str:
    launch = arena.once(_launch)
    git = launch.project / ".git"
    must("fsmonitor" not in (git / "config").read_text("utf-8"), "your repository has its settings")
    must(not (git / "hooks" / "post-checkout").exists(), "your repository has its hook")
    must(not launch.canary.exists(), "your git ran its program")
    return _could(
        arena, "move .git away", held="its repository is a private one; yours has neither"
    )


def _left(arena: Arena) -> str:
    project = arena.once(_launch).project
    files = (".envrc", ".mcp.json", "../person/.codex/hooks.json")
    left = [name for name in files if (project / name).exists()]
    must(not left, f"{', '.join(left)} stayed")
    return "they were moved aside, or ended with its private home"


def _rehearsal(arena: Arena) -> str:
    launch = arena.once(_launch)
    if "made rehearsed.txt" not in launch.shown:
        raise SkippedError("commands cannot be rehearsed here")
    must(not launch.changed, "the project was changed before you answered")
    must(not (launch.project / "rehearsed.txt").exists(), "the project was changed afterwards")
    return "it ran on a copy, and ended with it"


ATTACKS = (
    Attack("sandbox-decides", "A sandboxed agent decides and opens sessions over the socket that it has.", _could, "decide", "read the status", "open a session", held="the socket is its session's, and refuses that"),
    Attack("sandbox-attach", "A sandboxed agent attaches a console over the socket that it has, and looks for the home's.", _could, "attach a console", "use the home's socket", held="its socket attaches none, and the home's does not exist there"),
    Attack("sandbox-home", "A sandboxed agent opens Aileron's home, its socket, and your keys.", _could, "see the home", "use the home's socket", "see an SSH key", held="they do not exist there"),
    Attack("sandbox-console", "A sandboxed agent reads or signals the console's process.", _could, "see the console", "signal the console", held="it has processes of its own"),
    Attack("sandbox-environment", "A sandboxed agent reads secrets of your environment and of the kernel's keyrings.", _could, "read the environment", "read keys", held="it gets variables by a list, and no keyring"),
    Attack("sandbox-abstract", "A sandboxed agent connects to an abstract socket, as X11 and input methods have.", _could, "use an abstract socket", held="the kernel refuses it"),
    Attack("sandbox-shell", "A sandboxed agent pushes a command into the terminal, for your shell to run.", _in_shell),
    Attack("sandbox-leaving", "A sandboxed agent makes namespaces and mounts, and writes system files.", _could, "make a namespace", "mount", "write the system", "write a kernel setting", held="the kernel refuses it"),
    Attack("git-settings", "A sandboxed agent writes git settings and hooks, for your next `git status` and `checkout`.", _git),
    Attack("files-left", "A sandboxed agent leaves `.envrc`, servers and hooks for your tools and the next launch.", _left),
    Attack("rehearsal", "A command writes into the project while it is rehearsed for you, and leaves a process.", _rehearsal),
)  # fmt: skip
