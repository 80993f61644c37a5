"""Starts Aileron's programs by forking a parent that has imported all of them: a tenth of the processor time.

`forked` is `subprocess.Popen` for a command of this interpreter's (`python -I -m MODULE ...` or
`python -I FILE ...`, behind `AS_ORDINARY` too). Started as a script, this is the parent: each request
over its socket brings a command, its environment and its three descriptors, and is answered with a
process id and, at the end, the status. Where a command needs what only a new process has (a limit,
another locale), it is started the usual way.

`forking_programs` does the same for what a shell starts: programs that ask (`asking.py`) a parent that
listens.
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

_USUAL = {"stdin", "stdout", "stderr", "text", "env", "cwd", "start_new_session", "preexec_fn"}
_AT_START = ("LD_", "LC_", "MALLOC_", "GLIBC_", "AILERON_VAULT_PASSPHRASE")
"""What the start of a process reads, or the kernel shows of one; of Python's own, -I has nothing read."""
_INTERPRETER = [sys.executable, "-I"]
_ORDINARY = str(Path(__file__).with_name("ordinary.py"))


def forked(command: Sequence[str], **popen: Any) -> "subprocess.Popen[Any]":
    """Start *command* as `subprocess.Popen` does, from the parent if that makes no difference."""
    env: Mapping[str, str] = popen.get("env") or os.environ
    words = [*command]
    if words[:3] == [*_INTERPRETER, _ORDINARY]:
        del words[:3]
    plain = words[:2] == _INTERPRETER and words[2].startswith(("-m", "/"))
    plain &= popen.keys() <= _USUAL and popen.get("preexec_fn") in (None, take_terminal)
    if not plain or _at_start(env) != _at_start(os.environ):
        return subprocess.Popen(command, **popen)
    return _Forked(command, **popen)


def run_forked(
    command: Sequence[str], input_: str = "", timeout: float = 60, **popen: Any
) -> "subprocess.CompletedProcess[str]":
    """Run *command* to its end, as `subprocess.run` does with what it prints captured."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with forked(command, **pipes, text=True, **popen) as process:
        try:
            output, errors = process.communicate(input_, timeout=timeout)
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@contextlib.contextmanager
def forking_programs(python: Path, folder: Path, **modules: str) -> Iterator[Path]:
    """Yield a folder of programs that run *modules*, by their names, as *python* has them installed."""
    where = folder / "socket"
    for name, module in modules.items():
        program = folder / name.replace("_", "-")
        asking = Path(__file__).with_name("asking.py")
        program.write_text(f'#!/bin/sh\nexec {python} -IS {asking} {where} -m {module} "$@"\n')
        program.chmod(0o700)
    with contextlib.closing(_start_parent(python, str(where))):
        yield folder


def take_terminal() -> None:
    """As `preexec_fn`, make standard input the terminal of the new session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in env.items() if k.startswith(_AT_START)}


class _Forked(subprocess.Popen[Any]):
    """A child of the parent's; only how it is started and waited for is different."""

    def _execute_child(self, *values: Any) -> None:
        named = inspect.signature(subprocess.Popen._execute_child).bind(self, *values).arguments
        ours, theirs = socket.socketpair()
        asked: dict[str, Any] = {"command": list(named["args"])[2:]}
        asked |= {"env": dict(named["env"] or os.environ), "session": named["start_new_session"]}
        asked |= {"cwd": os.fspath(named["cwd"] or Path.cwd())}
        asked |= {"terminal": named["preexec_fn"] is not None}
        request = json.dumps(asked).encode()
        given = (named["p2cread"], named["c2pwrite"], named["errwrite"])
        streams = [each if each >= 0 else standard for standard, each in enumerate(given)]
        with _asking:
            parts = [struct.pack("!I", len(request))]
            socket.send_fds(_parent(), parts, [theirs.fileno(), *streams])
            _parent().sendall(request)
        theirs.close()
        self._status = ours
        self.pid = self._told()
        self._child_created = True
        self._close_pipe_fds(*(named[n] for n in _PIPES))

    def _told(self) -> int:
        told = self._status.recv(4)
        assert len(told) == 4, "the parent of the forked programs has ended"
        return struct.unpack("!i", told)[0]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        self._status.settimeout(0 if wait_flags & os.WNOHANG else None)
        try:
            return self.pid, self._told()
        except BlockingIOError:
            return 0, 0

    def _handle_exitstatus(self, sts: int, *more: Any) -> None:
        super()._handle_exitstatus(sts, *more)
        self._status.close()

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None and (ended := self._try_wait(os.WNOHANG))[0]:
                    self._handle_exitstatus(ended[1])
            finally:
                self._waitpid_lock.release()
        return self.returncode


_asking = threading.Lock()
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


@functools.cache
def _parent() -> socket.socket:
    return _start_parent(Path(sys.executable))


def _start_parent(python: Path, *listens_at: str) -> socket.socket:
    """Return the socket to a parent, which ends when that closes."""
    ours, theirs = socket.socketpair()
    parent = subprocess.Popen(
        [str(python), "-I", __file__, str(theirs.fileno()), *listens_at],
        pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    theirs.close()
    assert ours.recv(1) == b"!", "the parent of the forked programs did not start"
    atexit.register(lambda: (ours.close(), parent.wait()))
    return ours


def _import_everything() -> None:
    for name in ("aileron_core", "aileron_mcp", "aileron_tui"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__") and ".suite." not in module.name:
                importlib.import_module(module.name)


def _check_the_example_once() -> None:
    """What the compiler's process says of the example's module once is what it says again, to hundreds of commands."""
    compiler: Any = importlib.import_module("aileron_core.connectors.wasm.compiler").Compiler
    example = Path(__file__).parents[2] / "examples" / "connectors" / "mail-drafts"
    module = (example / "connector.wasm").read_bytes()
    check, found = compiler.check, compiler().check(module)
    compiler.check = lambda this, asked: found if asked == module else check(this, asked)
    for thread in threading.enumerate()[1:]:
        thread.join()  # it watched that process


def _request(connection: socket.socket) -> "tuple[dict[str, Any], list[int]] | None":
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 4)
    if not head:
        return None
    (size,) = struct.unpack("!I", head)
    body = b""
    while len(body) < size:
        body += connection.recv(size - len(body))
    return json.loads(body), descriptors


def _asked(listener: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return what a program asks for whose connection is told the status."""
    program, _ = listener.accept()
    found = _request(program)
    assert found is not None
    return found[0], [program.detach(), *found[1]]


def _serve(connection: socket.socket, listeners: list[socket.socket]) -> dict[str, Any]:
    """Fork for each request; return, in the child alone, what it is to run."""
    told: dict[int, int] = {}
    waker, wakes = socket.socketpair()
    for each in (waker, wakes):
        each.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes.fileno())
    connection.sendall(b"!")
    with selectors.DefaultSelector() as selector:
        for each in (connection, waker, *listeners):
            selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                asks: Any = key.fileobj
                if asks is waker:
                    waker.recv(4096)
                    _tell_ends(told)
                    continue
                found = _request(connection) if asks is connection else _asked(asks)
                if found is None:
                    for pid in told:  # the tests' process has ended
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    sys.exit()
                request, (status, *streams) = found
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for each in (connection, *listeners, waker, wakes):
                        each.close()
                    selector.close()
                    _take_over(request, streams)
                    return request
                os.write(status, struct.pack("!i", pid))
                told[pid] = status
                for each in streams:
                    os.close(each)


def _tell_ends(told: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = told.pop(ended[0])
            with contextlib.suppress(OSError):
                os.write(status, struct.pack("!i", ended[1]))
            os.close(status)


def _take_over(request: dict[str, Any], streams: list[int]) -> None:
    """Be the process that *request* describes, as far as the start of one would make it."""
    if request.get("session"):
        os.setsid()
    for number, given in enumerate(streams):
        os.dup2(given, number)
    os.closerange(3, 4096)
    if request.get("terminal"):
        take_terminal()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        buffering = 1 if number == 2 or os.isatty(number) else -1
        errors = "backslashreplace" if number == 2 else "surrogateescape"
        stream = open(  # noqa: SIM115 - for the life of the process
            number, mode, buffering, "utf-8", errors, closefd=False
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _become_ordinary() -> None:
    runpy.run_path(_ORDINARY, run_name="ordinary")["become"]()
    set_dumpable = 4
    ctypes.CDLL(None).prctl(set_dumpable, 1)  # as a program is that this user has started


def _run(command: list[str]) -> None:
    if command[0] == _ORDINARY:
        _become_ordinary()
        del command[:3]
    sys.argv = command[1:] if command[0] == "-m" else command
    if command[0] == "-m":
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(command[0], run_name="__main__")


def _main() -> NoReturn:
    given, *listens_at = sys.argv[1:]
    listeners: list[socket.socket] = []
    for where in listens_at:
        listeners.append(socket.socket(socket.AF_UNIX))
        listeners[-1].bind(where)
        listeners[-1].listen()
    with socket.socket(fileno=int(given)) as connection:
        _import_everything()
        _check_the_example_once()
        gc.collect()
        gc.freeze()  # the children share what is never collected
        assert threading.active_count() == 1, "a thread would not be in the children"
        request = _serve(connection, listeners)
    try:
        _run(request["command"])
        sys.exit()
    except SystemExit as ended:
        _end_at_once(ended)


def _end_at_once(ended: SystemExit) -> NoReturn:
    """End as the interpreter does, but free nothing: that copies all the memory that is shared with the parent."""
    if not isinstance(ended.code, int | None):
        raise ended
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        raise ended from None
    os._exit((ended.code or 0) & 0xFF)


if __name__ == "__main__":
    _main()
