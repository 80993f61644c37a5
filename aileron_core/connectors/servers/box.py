"""The box of an MCP server: a sandbox of its own with its package, the listed files and hosts, and little else.

It is made while agents run, and bubblewrap finds what it mounts by paths, which an agent may make lead
somewhere else meanwhile. So the program waits inside until what was mounted is seen to be what was checked.
"""

import contextlib
import os
import re
import select
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aileron_core.connectors.http.addresses import AddressGuard, Resolver
from aileron_core.connectors.network.host_network import HostNetwork
from aileron_core.connectors.network.host_resolver import HostList
from aileron_core.connectors.servers.started import Mode, Started, close_pipes
from aileron_core.connectors.servers.table import TREE, ServerTable
from aileron_core.console_port.view_models import RefusedHost
from aileron_core.containment.bubblewrap import process_mounts, protected_paths, system_mounts
from aileron_core.containment.detection import identity_in_root
from aileron_core.containment.git.repository import scan_project
from aileron_core.containment.mounts import Mount, mount_arguments
from aileron_core.containment.paths import PathChecker
from aileron_core.containment.programs import OR_WITHOUT
from aileron_core.containment.protected_paths import ProtectedPaths, UnfinishedSession
from aileron_core.containment.safe_paths import open_beneath, open_folder
from aileron_core.containment.sandbox_mounts import (
    first_process,
    mounts_below,
    sandbox_namespace,
    set_read_only,
)
from aileron_core.containment.support import SandboxSupport, find_sandbox_support
from aileron_core.containment.toolchains import find_tools, program_mounts
from aileron_core.errors import AileronError, HashMismatch, NotFound, Unavailable
from aileron_core.text import escape

_CERTIFICATES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
)  # fmt: skip
"""The person's variables that name certificates: all that a server has of their environment."""
_ETC = (
    "ssl", "ca-certificates", "pki", "crypto-policies", "passwd", "group", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "alternatives", "localtime", "fonts",
)  # fmt: skip
NAMES = {
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "resolv.conf": "nameserver 127.0.0.1\n",
}
"""Where names are looked up: Aileron answers for the listed hosts, and nobody where there are none."""
_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
_SECRET = re.compile(r"\$\{secret\.([^{}]*)\}")
_WAIT = ("/bin/sh", "-c", 'echo && read -r _ && exec "$@"', "sh")
"""Says that the box is made, then waits for a line: if the console ends before, the program never starts."""
_MADE_SECONDS, _END_SECONDS = 20.0, 10.0
_STDERR_BYTES = 2000


class BoxedServers:
    """Starts servers in boxes.

    Args:
        home: Aileron's.
        person: the person's home.
        env: the console's environment; of it a server has the variables of certificates alone.
        tree: returns the folder of an installed package by its hash, as `ServerTable.tree` has it, once its
            files were compared with that; raises NotFound or HashMismatch.
        refused: called on another thread with the server's name, each `host:port` that it may not reach, and
            why a person cannot list that, empty where they can. Hostile text.
        resolver, guard: of names and addresses; other ones are for tests, in process only.
    """

    def __init__(
        self,
        home: Path,
        person: Path,
        env: Mapping[str, str],
        *,
        tree: Callable[[str], Path],
        refused: Callable[[str, str, str], None] = lambda name, host, problem: None,
        resolver: Resolver | None = None,
        guard: AddressGuard | None = None,
    ) -> None:
        self._home = home
        self._person = person
        self._env = env
        self._tree = tree
        self._refused = refused
        self._resolver = resolver
        self._guard = guard
        self._support: SandboxSupport | None = None
        self._found: tuple[Mount, ...] | None = None
        """What the person's shell finds; it takes long to walk, and is walked once."""

    def why_not(self, table: ServerTable) -> str:
        try:
            self.contents(table, "write")
        except AileronError as error:
            return error.message.removesuffix(OR_WITHOUT)
        return ""

    def verify(self, table: ServerTable) -> None:
        """Compare the files of the server's installed package, where some changed, with their hash.

        Raises:
            NotFound, HashMismatch: they are not there, or others.
        """
        if table.tree:
            self._tree(table.tree)

    def start(
        self, name: str, table: ServerTable, mode: Mode, secrets: Mapping[str, str]
    ) -> Started:
        try:
            box = self.contents(table, mode)
        except HashMismatch:
            raise
        except AileronError as error:
            raise Unavailable(error.message.removesuffix(OR_WITHOUT)) from None
        network = self._network(name, box.hosts) if table.hosts else None
        in_words = {name for word in box.program for name in _SECRET.findall(word)}
        program = [
            _SECRET.sub(lambda found: secrets.get(found[1], ""), word) for word in box.program
        ]
        others = {name: value for name, value in secrets.items() if name not in in_words}
        env = {**box.env, **table.env, **others}
        try:
            process = _popen(box, env, program)
        except OSError as error:
            raise Unavailable(f"{box.support.bwrap}: {error.strerror}. Try again.") from None
        again = partial(self.contents, table, mode)
        started = _Boxed(process, network, box, again, self._home, name)
        try:
            if mode == "write":
                started.watch()
            started.open()
        except BaseException:
            started.stop()
            close_pipes(started.process)
            raise
        return started

    def _network(self, name: str, hosts: HostList) -> HostNetwork:
        def report(refused: RefusedHost) -> bool:
            self._refused(name, refused.host, refused.problem)
            return True

        return HostNetwork(hosts, report, resolver=self._resolver, guard=self._guard)

    def contents(self, table: ServerTable, mode: Mode) -> "BoxContents":
        """Return what the box of a server contains.

        Raises:
            AileronError: a part of it may not be there, is missing, or this machine makes no box; says why.
        """
        written = table.files_write if mode == "write" else ()
        if self._support is None:
            self._support = find_sandbox_support(offline=True, unix_sockets=False)
        try:
            missing = _missing(written)
            tree = self._tree(table.tree) if table.tree else None
            program = [
                word.replace(TREE, str(tree), 1) if word.startswith(TREE) else word
                for word in table.program
            ]
            hosts = HostList(table.hosts)
            certificates = self._certificates()
            mounts = [*_system(self._person), *self._programs(Path(program[0]), tree)]
            own = [*certificates.values(), *self._files(table, mode)]
            own = [each for each in own if not _is_shown(each, mounts)]
            checked = {each.path: _identity(each) for each in own}
            if missing != _missing(written):
                raise Unavailable("The server's folders changed meanwhile. Start it again.")
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}.") from None
        except ValueError as error:
            raise Unavailable(f"A host of the server {error}.") from None
        path = dict.fromkeys((str(Path(program[0]).parent), *_PATH))
        return BoxContents(
            support=self._support,
            mounts=(*mounts, *sorted(own, key=lambda each: each.path)),
            checked=checked,
            missing=missing,
            hosts=hosts,
            home=self._person,
            program=tuple(program),
            env={
                "PATH": os.pathsep.join(path),
                "HOME": str(self._person),
                "LANG": "C.UTF-8",
                **{name: self._env[name] for name in certificates},
            },
        )

    def _programs(self, program: Path, tree: Path | None) -> Iterator[Mount]:
        """Yield what the program itself needs; a link in the package may lead to its interpreter outside."""
        if tree is not None:
            yield Mount(path=tree, how="read-only", why="the server's package")
            if program.is_relative_to(tree):
                program = program.resolve()
        if tree is None or not program.is_relative_to(tree):
            yield from program_mounts(program, self._person, excluded=(self._home,))

    def _certificates(self) -> dict[str, Mount]:
        """Return the files of the person's certificates by the variables that name them."""
        named = {name: Path(self._env.get(name, "")) for name in _CERTIFICATES}
        return {
            name: Mount(path=path, how="read-only", why="certificates", source=path.resolve())
            for name, path in named.items()
            if path.is_absolute() and path.exists()
        }

    def _files(self, table: ServerTable, mode: Mode) -> Iterator[Mount]:
        """Yield the listed files, and what in them stays read-only because the person's own tools obey it."""
        if table.files_write and self._found is None:
            never = (self._home,)
            self._found = find_tools(self._env, self._person, None, excluded=never).mounts
        checker = PathChecker(
            home=self._person, project=None, aileron_home=self._home, env=self._env, tools=self._found or ()
        )  # fmt: skip
        writable = {Path(each) for each in table.files_write}
        for path in (*({*map(Path, table.files_read)} - writable), *sorted(writable)):
            if not os.path.lexists(path):
                raise NotFound(
                    f"{path} does not exist. Make it, or take it out of the server's files."
                )
            real = checker.real(path)
            checker.refuse(path, real, "write" if path in writable else "read")
            how = "writable" if path in writable and mode == "write" else "read-only"
            yield Mount(path=path, how=how, why="a person listed it", source=real)
            if how == "writable" and real.is_dir():
                for each in _protected(real):
                    shown = path / each.relative_to(real)
                    if shown not in writable:
                        why = "your own tools act on it"
                        yield Mount(path=shown, how="read-only", why=why, source=each)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxContents:
    """What one box contains, and what is executed in it."""

    support: SandboxSupport
    mounts: tuple[Mount, ...]
    checked: Mapping[Path, tuple[int, int]]
    """Device and inode of what was checked, by its path."""
    missing: tuple[ProtectedPaths, ...]
    """What the person's own tools would obey and is missing in the folders that can be written: nothing can be mounted over it."""
    hosts: HostList
    home: Path
    program: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def is_as_checked(self) -> bool:
        """Whether the paths still lead to what was checked."""
        own = [each for each in self.mounts if each.path in self.checked]
        with contextlib.suppress(OSError):
            return all(_identity(each) == self.checked[each.path] for each in own)
        return False


def open_box(bwrap: int, checked: Mapping[Path, tuple[int, int]]) -> int:
    """Compare what the process *bwrap* has made with what was *checked*.

    Returns:
        A descriptor of the first process in the box.

    Raises:
        Unavailable: something else is in it, or it is not there any more.
    """
    try:
        first = first_process(bwrap)
        with open_folder(Path(f"/proc/{first}")) as folder:
            found = {path: identity_in_root(folder, path) for path in checked}
        handle = os.pidfd_open(first)
    except OSError as error:
        why = error.strerror or "it ended"
        raise Unavailable(f"The server's box cannot be looked at: {why}. Start it again.") from None
    if exchanged := [path for path in checked if found[path] != checked[path]]:
        os.close(handle)
        raise Unavailable(
            f"{exchanged[0]} became another while the server was started. Start it again."
        )
    return handle


def _missing(folders: Iterable[str]) -> tuple[ProtectedPaths, ...]:
    real = (Path(os.path.realpath(each)) for each in sorted(folders))
    return tuple(ProtectedPaths.capture(each, others=(".git",)) for each in real if each.is_dir())


def _not_kept(path: Path) -> str:
    return f"{escape(str(path))} was replaced while the server ran, which could write it then. Check it."


class _Boxed:
    """A server in its box.

    Args:
        again: returns what a box that is made now would contain.
        home, name: Aileron's, and the server's.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        network: HostNetwork | None,
        box: BoxContents,
        again: Callable[[], BoxContents],
        home: Path,
        name: str,
    ) -> None:
        self.process = process
        self._network = network
        self._box, self._again = box, again
        self._home, self._name = home, name
        self._first = -1
        """Of the first process in the box, whose end is that of all in it."""
        self._watched: list[UnfinishedSession] = []
        self._mounted: dict[int, tuple[Path, bool]] = {}
        """What was mounted in the folders that it may write, by its number: where, and whether it writes through it."""
        self._uncovered: list[Path] = []
        """What was to stay read-only, and was replaced outside."""

    def watch(self) -> None:
        """Take note of what is missing, to be moved away once it is there.

        Raises:
            Unavailable: Aileron's home cannot be written.
        """
        try:
            for each in self._box.missing:
                session = UnfinishedSession.begin(self._home, each, f"server-{self._name}")
                self._watched.append(session)
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}.") from None

    def open(self) -> None:
        """Wait until the box is made, compare it with what was checked, and let the program start.

        Raises:
            Unavailable: it could not be made, or something else is in it.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self._network is not None:
            self._network.start(self.process.pid)
        output = self.process.stdout.fileno()
        if not select.select([output], (), (), _MADE_SECONDS)[0]:
            raise Unavailable("The server's box was not made in time. Start it again.")
        if not os.read(output, 1):
            raise Unavailable(f"The server's box could not be made: {self._said()}")
        self._first = open_box(self.process.pid, self._box.checked)
        try:
            self._mounted = self._mounts()
        except OSError as error:
            why = error.strerror or "it ended"
            raise Unavailable(
                f"The server's box cannot be looked at: {why}. Start it again."
            ) from None
        if self._network is not None:
            self._network.opened.wait(_MADE_SECONDS)
            if self._network.failure:
                raise Unavailable(
                    f"The network of the server's box could not be opened: {escape(self._network.failure)}."
                )
        with contextlib.suppress(BrokenPipeError):  # it ended: whoever reads it sees that
            self.process.stdin.write(b"\n")

    def _mounts(self) -> dict[int, tuple[Path, bool]]:
        """Return what is mounted in the folders that it may write; a cover is gone if what it covers was replaced outside."""
        listed = [each.path for each in self._box.mounts if each.how == "writable"]
        return mounts_below(first_process(self.process.pid), listed) if listed else {}

    def hosts_reached(self, since: float) -> tuple[str, ...]:
        return self._network.reached_since(since) if self._network is not None else ()

    def pause(self) -> bool:
        with contextlib.suppress(OSError):
            held = {number: (path, False) for number, (path, _) in self._mounted.items()}
            if not self._mounted or not self._set_read_only(read_only=True):
                return False
            now = self._mounts()
            self._uncovered = [path for number, (path, _) in held.items() if number not in now]
            if now == held and self._box.missing == self._missing_now():
                while self._watched:
                    self._watched.pop().discard()
                return True
        return False

    def resume(self) -> bool:
        with contextlib.suppress(AileronError, OSError):
            held = {number: (path, False) for number, (path, _) in self._mounted.items()}
            now = self._again()
            is_same = (now.mounts, now.checked) == (self._box.mounts, self._box.checked)
            if is_same and self._mounts() == held:
                self._box = now
                self.watch()
                return self._set_read_only(read_only=False) and self._mounts() == self._mounted
        return False

    def _missing_now(self) -> tuple[ProtectedPaths, ...]:
        return _missing(str(each.project) for each in self._box.missing)

    def _set_read_only(self, *, read_only: bool) -> bool:
        namespace = sandbox_namespace(self.process.pid)
        try:
            writable = {number: path for number, (path, is_so) in self._mounted.items() if is_so}
            return set_read_only(namespace, writable, read_only=read_only)
        finally:
            os.close(namespace)

    def stop(self) -> Sequence[str]:
        self.process.kill()
        if self._first >= 0:
            select.select([self._first], (), (), _END_SECONDS)
            os.close(self._first)
            self._first = -1
        self.process.wait()
        if self._network is not None:
            self._network.stop()
        return [*self._moved_away(), *map(_not_kept, self._uncovered)]

    def _moved_away(self) -> Iterator[str]:
        while self._watched:
            session = self._watched.pop()
            project = escape(str(session.protected.project))
            try:
                yield from (f"In {project}: {each}" for each in session.finish())
            except OSError as error:
                yield f"{project} cannot be looked at ({error.strerror}). Check it for new files."

    def _said(self) -> str:
        """Return what bubblewrap printed."""
        assert self.process.stderr is not None
        self.process.kill()
        return escape(self.process.stderr.read(_STDERR_BYTES).decode("utf-8", "replace").strip())


def _popen(
    box: BoxContents, env: Mapping[str, str], program: list[str]
) -> "subprocess.Popen[bytes]":
    """Start bubblewrap.

    It gets the environment beside its command line, which any user can read, and has none itself: a variable
    such as LD_PRELOAD would count for bubblewrap, outside. It installs the filter of system calls, as nothing of
    ours may run between fork and exec in a process with threads.
    """
    with contextlib.ExitStack() as stack:
        handles: list[int] = []

        def given(data: bytes) -> str:
            handle = os.memfd_create("box")
            stack.callback(os.close, handle)
            os.write(handle, data)
            os.lseek(handle, 0, os.SEEK_SET)
            handles.append(handle)
            return str(handle)

        words = [
            *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"),
            *("--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session"),
            *("--cap-drop", "ALL", "--seccomp", given(box.support.seccomp_filter)),
            *(word for name, text in NAMES.items() for word in ("--ro-bind-data", given(text.encode()), f"/etc/{name}")),
            *mount_arguments(box.mounts),
            *("--remount-ro", "/", "--chdir", str(box.home)),
            *(word for pair in env.items() for word in ("--setenv", *pair)),
        ]  # fmt: skip
        if any("\0" in word for word in words):
            raise Unavailable(
                "A path, a variable or a secret of the server has a NUL character in it."
            )
        arguments = given("".join(f"{word}\0" for word in words).encode("utf-8", "surrogateescape"))
        # Unbuffered: what a broken pipe did not take would be written again, and raise, as it is closed.
        return subprocess.Popen(
            [box.support.bwrap, "--args", arguments, "--", *_WAIT, *program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={}, cwd="/", start_new_session=True, pass_fds=handles, bufsize=0,
        )  # fmt: skip


def _system(home: Path) -> list[Mount]:
    """Return what every box has."""
    etc = [path for name in _ETC if (path := Path("/etc", name)).exists()]
    return [
        *system_mounts(),
        *(Mount(path=path, how="read-only", why="certificates, names, loader") for path in etc),
        *process_mounts(),
        *(Mount(path=path, how="private", why="empty") for path in (Path("/tmp"), home)),  # noqa: S108
    ]


def _is_shown(mount: Mount, mounts: list[Mount]) -> bool:
    """Return whether *mounts* show this read-only one anyway."""
    return mount.how == "read-only" and any(
        each.how == "read-only" and mount.path.is_relative_to(each.path) for each in mounts
    )


def _protected(folder: Path) -> list[Path]:
    """Return what of a writable folder stays read-only: what the person's own tools, git first, obey."""
    scan = scan_project(folder)
    repositories = (folder / each for each in (*scan.git_entries, *scan.repository_shaped))
    return [*protected_paths(folder), *(each for each in repositories if not each.is_symlink())]


def _identity(mount: Mount) -> tuple[int, int]:
    """Return device and inode of what is to be mounted.

    Raises:
        OSError: there is a link on the way by now.
    """
    path = mount.source or mount.path
    with open_folder(Path("/")) as root:
        handle = open_beneath(root, str(path.relative_to("/")), os.O_PATH)
        try:
            status = os.fstat(handle)
        finally:
            os.close(handle)
    return status.st_dev, status.st_ino
