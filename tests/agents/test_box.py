"""The box of an MCP server, as hostile programs in it meet it.

Run as a program with FOLDER, this file starts servers in one console as an ordinary user, and prints what they
meet from inside, as JSON; with FOLDER killed it is a console that is to be killed, once it has printed a line.
"""

import ipaddress
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.network.host_network import HostNetwork
from aileron_core.connectors.network.host_resolver import HostList
from aileron_core.connectors.servers import box
from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.started import Mode, Started
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.errors import NotFound, Unavailable
from tests.support.ordinary import AS_ORDINARY, OWNS, ordinary_folder, run_as_ordinary
from tests.support.processes import eventually, running_with
from tests.support.tls_service import OneAddress, certificate
from tests.support.variants import needs_bubblewrap

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "127.0.0.5"

INSIDE = r"""
import json, os, socket, ssl, subprocess, sys
told = json.loads(sys.argv[1])
met = {}

def attempt(name, call):
    try:
        met[name] = call()
    except Exception as error:
        met[name] = f"{type(error).__name__} {getattr(error, 'errno', '')}"

def connect(address, port):
    socket.create_connection((address, port), 5).close()
    return "connected"

def fetch(host):
    context = ssl.create_default_context()
    with context.wrap_socket(socket.create_connection((host, told["port"]), 20), server_hostname=host) as tls:
        tls.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return tls.recv(100).decode()

def write(path):
    with open(path, "w") as file:
        file.write("from inside")
    return "written"

attempt("host", lambda: fetch("api.example"))
attempt("other host", lambda: fetch("evil.example"))
attempt("loopback", lambda: connect("127.0.0.1", told["loopback"]))
attempt("metadata", lambda: connect("169.254.169.254", 80))
attempt("ssh", lambda: open(told["person"] + "/.ssh/id").read())
attempt("aileron", lambda: sorted(os.listdir(told["home"])))
attempt("home", lambda: sorted(os.listdir(os.environ["HOME"])))
attempt("etc", lambda: sorted(os.listdir("/etc")))
attempt("root", lambda: write("/new"))
attempt("usr", lambda: write("/usr/new"))
attempt("tree", lambda: write(told["tree"] + "/new"))
attempt("own home", lambda: write(os.environ["HOME"] + "/new"))
attempt("processes", lambda: sorted(
    open(f"/proc/{each}/cmdline").read().split("\0")[0] for each in os.listdir("/proc") if each.isdigit()))
attempt("environment", lambda: {k: v for k, v in os.environ.items()})
attempt("arguments", lambda: sys.argv[2:])
attempt("parent's environment", lambda: open("/proc/1/environ").read())
attempt("read", lambda: open(told["listed"] + "/notes").read())
for name in ("notes", "new", ".envrc", ".git/config", "sub/.git/hooks/new", ".vscode/tasks.json", ".vimrc", "../plain/.git"):
    attempt("write " + name, lambda: write(told["listed"] + "/" + name))
attempt("unlisted", lambda: write(told["listed"] + "/../unlisted/new"))
attempt("namespace", lambda: subprocess.run(["unshare", "-U", "true"], capture_output=True).returncode)
attempt("unix socket", lambda: str(socket.socket(socket.AF_UNIX)))
attempt("unix pair", lambda: len(socket.socketpair()))
attempt("descriptors", lambda: sorted(os.listdir("/proc/self/fd"))[3:-1])
print(json.dumps(met), flush=True)
sys.stdin.read()
"""

STAYS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
print("running", flush=True)
time.sleep(600)
"""


COUNTS = """
import os, sys, time
folder = sys.argv[1]
if os.fork() == 0:
    os.setsid()
    inside = os.open(folder, os.O_RDONLY)
    while True:
        for name in ("count", ".git"):
            try:
                with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, dir_fd=inside), "a") as file:
                    file.write(".")
            except OSError as error:
                pass
            if "git" not in sys.argv:
                break
        time.sleep(0.01)
kept = open(folder + "/kept", "a") if "opened" in sys.argv else None
print("running", flush=True)
sys.stdin.read()
"""
"""Writes without end, by a descriptor that it got before."""


PAUSED = ("", "git", "opened", "file", "saved", "kept")


def _serve_box(folder: Path) -> int:
    """Serve TLS for api.example and evil.example; return the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    listener = socket.create_server((ADDRESS, 0))

    def serve() -> None:
        while True:
            client, _ = listener.accept()
            with context.wrap_socket(client, server_side=True) as tls:
                tls.recv(100)
                tls.sendall(b"served")

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


class Bench:
    """A person with files, a package, and a console that starts servers."""

    def __init__(self, folder: Path) -> None:
        self.person, self.port = folder / "person", _serve_box(folder)
        self.home = self.person / ".aileron"
        self.tree = self.home / "store" / "servers" / "sha256" / "ab"
        self.listed = self.person / "work" / "listed"
        for name in (".git/hooks", "sub/.git/hooks", ".vscode", "known", "../plain"):
            (self.listed / name).mkdir(parents=True)
        for path in (
            self.home / "aileron.db", self.person / ".ssh" / "id", self.listed / "notes", self.listed / ".envrc",
            self.listed / ".git" / "config", self.listed / ".vscode" / "tasks.json",
            self.person / "work" / "unlisted" / "notes",
        ):  # fmt: skip
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("outside")
        self.tree.mkdir(parents=True)
        (self.tree / "probe.py").write_text(INSIDE)
        (self.tree / "stays.py").write_text(STAYS)
        self.refused: list[tuple[str, str, str]] = []
        self.outside = socket.create_server(("127.0.0.1", 0))
        certificates = {"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", *box._CERTIFICATES}
        env = {name: value for name, value in os.environ.items() if name not in certificates}
        self.boxes = box.BoxedServers(
            self.home, self.person, {**env, "SSL_CERT_FILE": str(folder / "both.pem"), "CONSOLES_OWN": "value"},
            tree=self._tree, refused=lambda *what: self.refused.append(what), resolver=OneAddress(ADDRESS),
            guard=AddressGuard([ipaddress.ip_network(f"{ADDRESS}/32")]),
        )  # fmt: skip
        told = {
            "port": self.port, "loopback": self.outside.getsockname()[1], "tree": str(self.tree),
            "person": str(self.person), "home": str(self.home), "listed": str(self.listed),
        }  # fmt: skip
        self.table = ServerTable(
            program=("/usr/bin/python3", "{tree}/probe.py", json.dumps(told), "${secret.WORD}"),
            tree="sha256:ab", files_write=(
                str(self.listed), str(self.listed / ".vscode" / "tasks.json"), str(self.listed.with_name("plain")),
            ),
            hosts=(f"api.example:{self.port}",), env={"MODE": "quiet"}, secrets=("TOKEN", "WORD"),
        )  # fmt: skip

    def _tree(self, tree: str) -> Path:
        folder = self.home / "store" / "servers" / tree.replace(":", "/")
        if not folder.exists():
            raise NotFound(f"{tree} is not installed.")
        return folder

    def start(self, mode: Mode, table: ServerTable) -> Started:
        secrets = {"TOKEN": "the token", "WORD": "the ${secret.TOKEN}"}
        return self.boxes.start("probe", table, mode, secrets)

    def probe(self, mode: Mode, **changes: Any) -> dict[str, Any]:
        """Return what the probe met, and what is known of its hosts."""
        began = time.monotonic()
        started = self.start(mode, replace(self.table, **changes))
        assert started.process.stdout
        met: dict[str, Any] = json.loads(started.process.stdout.readline())
        times = (began, began, time.monotonic())
        met["reached"] = [started.hosts_reached(each) for each in times]
        moved = started.stop()
        left = (self.listed / ".vimrc", self.listed.with_name("plain") / ".git")
        return {**met, "moved": moved, "left": [str(each) for each in left if each.exists()]}

    def why_not(self, **changes: Any) -> str:
        """Return why the server does not start with another table, or secret."""
        secrets = {"TOKEN": changes.pop("secret", "")}
        table = replace(self.table, **changes)
        if why := self.boxes.why_not(table):
            return why
        try:
            self.boxes.start("probe", table, "read", secrets).stop()
        except Unavailable as error:
            return error.message
        return ""

    def unsaid(self) -> bool:
        """Return whether a program ran whose console ended before it could say so."""
        ran = self.listed / "ran"
        program, files = ("/usr/bin/touch", str(ran)), (str(self.listed),)
        table = replace(self.table, program=program, files_write=files)
        contents = self.boxes.contents(table, "write")
        box._popen(contents, contents.env, list(contents.program)).communicate(timeout=20)
        return ran.exists()

    def end(self) -> None:
        """End a box right before its program is to start, and close its pipes."""
        real: Callable[..., int] = box.open_box

        def open_box(bwrap: int, *rest: Any) -> int:
            handle = real(bwrap, *rest)
            os.kill(bwrap, signal.SIGKILL)
            select.select([handle], (), (), 20)
            return handle

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(box, "open_box", open_box)
            started = self.start("read", replace(self.table, hosts=()))
        started.stop()
        for pipe in (started.process.stdin, started.process.stdout, started.process.stderr):
            assert pipe is not None
            pipe.close()  # where this raised, the calls for it would wait for ever

    def paused(self, *more: str) -> dict[str, Any]:
        """Return what a server can write that is kept from it, and then again; and once a person has made a repository.

        Args:
            more: "git" has it make a `.git`, "opened" keep a file open; "file" lists one file alone; the person saves
                what is kept read-only while it may write ("saved"), or may not ("kept").
        """
        folder = self.person / "work" / f"paused {more}"
        folder.mkdir()
        git, count = folder / ".git", folder / "count"
        program = ("/usr/bin/python3", "-c", COUNTS, str(folder), *more)
        (folder / ".envrc").write_text("mine")
        listed = count if more == ("file",) else folder
        if listed == count:
            count.touch()
        table = replace(self.table, program=program, files_write=(str(listed),))
        started = self.start("write", table)

        def grows() -> bool:
            before, deadline = count.stat().st_size, time.monotonic() + 1
            while (size := count.stat().st_size) == before and time.monotonic() < deadline:
                time.sleep(0.01)
            return size > before

        def save() -> None:
            (folder / "new").write_text("mine again")
            (folder / "new").rename(folder / ".envrc")

        assert started.process.stdout
        started.process.stdout.readline()
        while not count.exists() or (more == ("git",) and not git.exists()):
            time.sleep(0.01)
        met: dict[str, Any] = {"pauses": [started.pause()], "grows": [grows()]}
        if more == ("kept",):
            save()
        met["resumes"] = [met["pauses"][0] and started.resume()]
        met["grows"] += [grows()]
        if more == ("saved",):
            save()
            met["pauses"] += [started.pause()]
        if not more:
            met["pauses"] += [started.pause()]
            (git / "hooks").mkdir(parents=True)  # a person's `git init`
            met["resumes"] += [started.resume()]
            met["grows"] += [grows()]
        moved = started.stop()
        return {**met, "moved": moved, "git": git.exists()}

    def exchanged(self) -> str:
        """Return what becomes of a start while an agent makes the listed folder lead to the person's keys."""
        real: Callable[..., Any] = box._popen

        def popen(*args: Any) -> Any:
            self.listed.rename(self.listed.with_name("moved"))
            self.listed.symlink_to(self.person / ".ssh")
            return real(*args)

        table = replace(self.table, files_write=(), files_read=(str(self.listed),))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(box, "_popen", popen)
            with pytest.raises(Unavailable) as refused:
                self.start("read", table)
        self.listed.unlink()
        self.listed.with_name("moved").rename(self.listed)
        return refused.value.message


def try_box(folder: Path) -> None:
    bench = Bench(folder)
    modes: tuple[Mode, ...] = ("read", "write")
    bench.end()
    result = {
        **{mode: bench.probe(mode) for mode in modes},
        "offline": bench.probe("write", hosts=()),
        "notes": (bench.listed / "notes").read_text(),
        "refused": bench.refused,
        "port": bench.port,
        "listed": str(bench.listed),
        "unsaid": bench.unsaid(),
        "exchanged": bench.exchanged(),
        "paused": {name: bench.paused(*name.split()) for name in PAUSED},
        "why not": {
            "": bench.why_not(),
            "does not exist": bench.why_not(files_read=(str(bench.person / "gone"),)),
            "credentials are kept there": bench.why_not(files_read=(str(bench.person / ".ssh"),)),
            "contains your home folder": bench.why_not(files_read=(str(bench.person),)),
            "Aileron's home": bench.why_not(files_write=(str(bench.home),)),
            "is not installed": bench.why_not(tree="sha256:cd"),
            "does not exist. Install it": bench.why_not(program=(str(bench.person / "gone"),)),
            "a NUL character": bench.why_not(secret=f"x\0--bind\0{bench.person}/.ssh\0/x"),
            "is an address": bench.why_not(hosts=("127.0.0.1:443",)),
        },
    }
    print(json.dumps(result))


def main_killed(folder: Path) -> None:
    """Stay, once servers run that would survive their console, until killed."""
    bench = Bench(folder)
    program = ("/usr/bin/python3", "{tree}/stays.py", folder.name)
    stays = replace(bench.table, program=program, secrets=())
    for started in (bench.start("read", replace(stays, hosts=())), bench.start("write", stays)):
        assert started.process.stdout
        started.process.stdout.readline()
    print("running", flush=True)
    threading.Event().wait()


pytestmark = needs_bubblewrap
EROFS = "OSError 30"


@pytest.fixture(scope="module")
def result() -> Iterator[dict[str, Any]]:
    with ordinary_folder() as folder:
        certificate(folder, "api.example", "evil.example")
        yield json.loads(run_as_ordinary(Path(__file__), folder).stdout)


def test_nothing_of_the_machine_is_there_but_a_listed_host(result: dict[str, Any]) -> None:
    """Over TLS, with the person's own certificates; what was reached or refused is known."""
    for met in (result["read"], result["write"], result["offline"]):
        assert met["other host"].startswith("gaierror")
        assert met["loopback"].startswith("ConnectionRefusedError")
        assert met["metadata"].startswith("OSError 101")
        assert met["ssh"].startswith("FileNotFoundError")
        assert (met["aileron"], met["home"]) == (["store"], [".aileron", "work"])
        assert not {"shadow", "hostname", "machine-id", "ssh"} & {*met["etc"]}
        assert met["processes"] == ["/usr/bin/bwrap", "/usr/bin/python3"]
        assert met["parent's environment"] == ""
        assert met["environment"].keys() == {
            "HOME", "LANG", "MODE", "PATH", "PWD", "SSL_CERT_FILE", "TOKEN",
        }  # fmt: skip
        assert (met["arguments"], met["namespace"]) == (["the ${secret.TOKEN}"], 1)
        assert (met["unix socket"], met["unix pair"]) == ("OSError 97", 2)
        assert met["descriptors"] == []
        assert met["unlisted"].startswith("FileNotFoundError")
        assert {met[name] for name in ("root", "usr", "tree")} == {EROFS}
        assert met["own home"] == "written"
    port = result["port"]
    assert result["read"]["host"] == result["write"]["host"] == "served"
    api = [f"api.example:{port}"]
    assert result["write"]["reached"] == [api, api, []]  # another call's answer takes none away
    assert ["probe", "evil.example:443", ""] in result["refused"]
    assert result["offline"]["host"].startswith("gaierror")
    assert result["offline"]["reached"] == [[], [], []]


def test_files_are_read_only_for_a_read_and_written_during_calls_alone(
    result: dict[str, Any],
) -> None:
    """What a person's own tools obey stays read-only, is moved away where it is new, and ends a server that made it."""
    writes = {name for name in result["read"] if name.startswith("write ")}
    assert len(writes) == 8
    assert {result["read"][name] for name in writes} == {EROFS}
    assert result["read"]["read"] == "outside"
    assert {name for name in writes if result["write"][name] == "written"} == {
        "write notes", "write new", "write .vscode/tasks.json", "write .vimrc", "write ../plain/.git",
    }  # fmt: skip
    assert {result["write"][name] for name in writes} == {"written", EROFS}
    assert (result["notes"], result["read"]["moved"]) == ("from inside", [])
    assert [each.split(": ")[1].split(". ")[0] for each in sorted(result["write"]["moved"])] == [
        ".vimrc is new", ".git is new",
    ]  # fmt: skip
    assert result["write"]["left"] == []
    paused = result["paused"]
    assert paused[""] == {
        "pauses": [True, True], "grows": [False, True, False], "resumes": [True, False], "moved": [], "git": True,
    }  # fmt: skip
    (moved,) = paused["git"].pop("moved")
    assert ".git is new. It was moved to" in moved
    ended = {"pauses": [False], "resumes": [False], "git": False}
    assert paused["git"] == {**ended, "grows": [False, False]}
    assert paused["opened"] == {**ended, "grows": [True, True], "moved": []}
    (uncovered,) = paused["saved"].pop("moved")
    assert "paused ('saved',)/.envrc was replaced while the server ran" in uncovered
    saved = {"pauses": [True, False], "grows": [False, True], "resumes": [True], "git": False}
    assert paused["saved"] == saved
    kept = {**ended, "pauses": [True], "grows": [False, False], "moved": []}
    assert paused["kept"] == kept
    assert paused["file"] == {
        "pauses": [True], "grows": [False, True], "resumes": [True], "moved": [], "git": False,
    }  # fmt: skip


def test_what_cannot_start_says_why_and_a_program_waits_for_a_word(result: dict[str, Any]) -> None:
    """A console that is killed meanwhile leaves no program; where closing raised, calls would wait for ever."""
    why = result["why not"]
    assert why.pop("") == ""
    for reason, sentence in why.items():
        assert reason in sentence
        assert "launch" not in sentence
    assert result["exchanged"].startswith(f"{result['listed']} became another while")
    assert result["unsaid"] is False


@pytest.mark.skipif(os.getuid() != 0, reason="only root can try as root")
def test_roots_console_starts_no_server(tmp_path: Path) -> None:
    boxes = BoxedServers(tmp_path, tmp_path, {}, tree=Path)
    why = boxes.why_not(ServerTable(program=("/usr/bin/true",)))
    assert "runs as root" in why
    assert "--no-sandbox" not in why


def test_a_network_that_was_never_started_has_no_descriptor() -> None:
    """A start that fails before its box is made leaves none."""
    before = [*Path("/proc/self/fd").iterdir()]
    network = HostNetwork(HostList(("api.example:443",)), lambda _: True)
    assert [*Path("/proc/self/fd").iterdir()] == before
    network.stop()


@pytest.mark.real
def test_a_box_ends_with_its_console() -> None:
    """Killed, it can end nothing itself: a server that is deaf, and what it left in the background, end too."""
    with ordinary_folder() as folder:
        certificate(folder, "api.example")
        word = f"\0{folder.name}\0"  # an argument of each process in a box
        command = [*AS_ORDINARY, sys.executable, __file__, str(folder), "killed"]
        env = {**os.environ, OWNS: str(folder)}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as console:
            assert console.stdout
            assert console.stdout.readline() == "running\n"
            assert len(running_with(word)) >= 6
            console.send_signal(signal.SIGKILL)
        eventually(lambda: running_with(word) == [], seconds=5)


if __name__ == "__main__":
    (main_killed if sys.argv[2:] == ["killed"] else try_box)(Path(sys.argv[1]))
