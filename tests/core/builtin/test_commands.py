"""Commands of an agent as the commands worker runs them, in a sandbox and without; and commits that are killed."""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.connectors.builtin.worker.journal import Journal
from aileron_core.launch.sweep import LaunchSweep
from tests.support.builtin_worker import Worker, WorkerError
from tests.support.command_sandbox import Sandbox, recovered, sandboxed_worker
from tests.support.processes import eventually, running_with, with_descendants
from tests.support.variants import needs_bubblewrap

MARK = f"6{os.getpid():07}"
"""Seconds that the tests' own processes sleep: by this they are found in the process table."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    if needs_bubblewrap.args[0]:
        pytest.skip(needs_bubblewrap.kwargs["reason"])
    files = {"a.txt": "kept\n", ".envrc": "mine\n", "deep/secret": "s3cret\n", "sub/x": "\n"}
    with sandboxed_worker(files, hidden=["deep/secret"]) as made:
        yield made


@pytest.fixture
def unsandboxed(tmp_path: Path) -> Iterator[Worker]:
    with Worker("commands", tmp_path) as worker:
        assert "Without a sandbox" in worker.features["why_not"]
        yield worker


def processes_of(word: str = MARK) -> list[int]:
    return running_with(f"\0{word}\0")


def test_a_command_answers_with_what_it_did(sandbox: Sandbox) -> None:
    done = sandbox.run("echo out; echo err >&2; pwd; exit 3")
    assert (done["exit_code"], done["stderr"]) == (3, "err\n")
    assert done["stdout"] == f"out\n{sandbox.project}\n"
    assert sandbox.run("kill -SEGV $$")["signal"] == "SIGSEGV"
    assert sandbox.run("cat")["stdout"] == ""  # nothing to read


def test_words_are_executed_as_they_are(sandbox: Sandbox) -> None:
    """No shell: a rule that saw these words has seen what runs."""
    words = ["printf", "%s|", "$HOME", "a b", "*", ";"]
    assert sandbox.worker.call("run", argv=words)["stdout"] == "$HOME|a b|*|;|"
    with pytest.raises(WorkerError, match=r"a\.txt is not a program"):
        sandbox.worker.call("run", argv=["a.txt"])  # in the project, which is not on PATH
    with pytest.raises(WorkerError, match="Permission denied"):
        sandbox.worker.call("run", argv=["./a.txt"])


def test_output_is_cut_in_the_middle_and_says_so(sandbox: Sandbox) -> None:
    text = sandbox.prints("echo first; head -c 600000 /dev/zero | tr '\\0' x; echo; echo last")
    assert (text[:6], text[-8:]) == ("first\n", "xx\nlast\n")
    assert f"\n[{600_012 - 256 * 1024} bytes left out]\n" in text


def test_commands_run_side_by_side_and_end_when_told_or_in_time(sandbox: Sandbox) -> None:
    stopped = sandbox.worker.send("run", command=f"echo began; sleep {MARK} & sleep {MARK}")
    late = sandbox.worker.send("run", command=f"echo began; sleep {MARK}", timeout_ms=300)
    eventually(lambda: len(processes_of()) == 3)
    assert sandbox.prints("echo quick") == "quick\n"
    ended = sandbox.worker.answer(late)
    assert (ended["timed_out"], ended["stdout"], ended["signal"]) == (True, "began\n", "SIGKILL")
    assert len(processes_of()) == 2
    sandbox.worker.cancel(stopped)
    with pytest.raises(WorkerError) as failure:
        sandbox.worker.answer(stopped)
    assert (failure.value.class_, failure.value.details["stdout"]) == ("stopped", "began\n")
    assert processes_of() == []


ORPHANS = f"""
setsid sleep {MARK} >/dev/null 2>&1 &
(setsid nohup sh -c 'sleep {MARK} & sleep {MARK}' &) >/dev/null 2>&1
trap '' TERM HUP; sleep {MARK} &
sleep 0.1; echo started
"""


def test_nothing_outlives_its_command(sandbox: Sandbox) -> None:
    assert (sandbox.prints(ORPHANS), processes_of()) == ("started\n", [])


@needs_bubblewrap
@pytest.mark.parametrize("killed", ["standard input", "worker", "bwrap"])
def test_nothing_outlives_the_worker(killed: str) -> None:
    with sandboxed_worker() as box:
        box.worker.send("run", command=ORPHANS + f"sleep {MARK}")
        eventually(lambda: len(processes_of()) >= 5)
        process = box.worker.process
        if killed == "worker":
            of = processes_of(str(box.project))
            (worker,) = [each for each in of if _parent_of(_parent_of(each)) == process.pid]
            os.kill(worker, signal.SIGKILL)
        elif killed == "bwrap":
            process.kill()
        else:
            process.stdin.close()
        eventually(lambda: processes_of() == [])
        eventually(lambda: process.poll() is not None)


def _parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


ESCAPES = r"""
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, call):
    try:
        result = call()
    except OSError as error:
        result = error.errno
    if result == -1:
        result = ctypes.get_errno()
    print(name, result)
for name, flag in dict(user=0x10000000, mount=0x20000, pid=0x20000000, net=0x40000000, ipc=0x8000000).items():
    attempt("unshare " + name, lambda: libc.unshare(flag))
attempt("clone user", lambda: libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) if os.uname().machine == "x86_64" else libc.unshare(0x10000000))
attempt("mount", lambda: libc.mount(b"x", b"/tmp", b"tmpfs", 0, None))
attempt("umount", lambda: libc.umount2(b"/proc/keys", 2))
attempt("fsopen", lambda: libc.syscall(430, b"tmpfs", 0))
attempt("open_tree", lambda: libc.syscall(428, -100, b"/", 1 | 0x8000))
attempt("setns", lambda: libc.setns(os.open("/proc/1/ns/mnt", os.O_RDONLY), 0))
attempt("trace", lambda: libc.ptrace(16, 1, 0, 0))
attempt("memory", lambda: os.open("/proc/1/mem", os.O_RDONLY))
attempt("descriptors", lambda: os.readlink("/proc/1/fd/0"))
attempt("root", lambda: os.listdir("/proc/1/root"))
attempt("environment", lambda: os.open("/proc/1/environ", os.O_RDONLY))
attempt("limit", lambda: os.open("/proc/sys/user/max_user_namespaces", os.O_WRONLY))
attempt("chroot", lambda: os.chroot("/tmp"))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0aileron-test"))
attempt("keys", lambda: libc.syscall(250 if os.uname().machine == "x86_64" else 219, 0, 0, 0))
os.kill(1, 9); os.kill(1, 15)
print("processes", [each for each in os.listdir("/proc") if each.isdigit() and int(each) not in (1, os.getpid(), os.getppid())])
print("open", sorted(map(int, os.listdir("/proc/self/fd")))[:-1])
"""


def test_a_command_has_no_way_to_the_worker_or_out(sandbox: Sandbox) -> None:
    """No namespace and no mount of its own, and of other processes only the one above it, which is closed."""
    (sandbox.project / "try.py").write_text(ESCAPES)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0aileron-test")
    listener.listen()
    with listener:
        lines = sandbox.prints("/usr/bin/python3 try.py").splitlines()
    met = dict(line.rsplit(" ", 1) for line in lines[:-2])
    assert met.pop("unshare user") == met.pop("clone user") == "28"  # ENOSPC: none may be made
    assert met.pop("abstract") in ("1", "111")  # as the kernel has Landlock scopes, or a network
    assert met.pop("keys") == "38"
    assert {*met.values()} <= {"1", "13", "30"}, met  # EPERM, EACCES, EROFS
    assert lines[-2:] == ["processes []", "open [0, 1, 2]"]


def test_each_command_has_namespaces_of_its_own(sandbox: Sandbox) -> None:
    sandbox.prints(": > sub/seen")
    names = "cd /proc/self/ns; readlink pid ipc mnt user; cd ~-/sub; echo >> seen"
    wait = "; until [ $(wc -l < seen) = 2 ]; do sleep 0.01; done"  # a number is used again
    asked = [sandbox.worker.send("run", command=names + wait) for _ in range(2)]
    one, other = ({*sandbox.worker.answer(each)["stdout"].split()} for each in asked)
    assert len(one) == len(other) == 4
    assert not one & other


def test_protected_and_hidden_paths_stay_what_they_are(sandbox: Sandbox) -> None:
    assert "Read-only file system" in str(sandbox.run("echo theirs > .envrc")["stderr"])
    assert "busy" in str(sandbox.run("rm -f .envrc")["stderr"])
    moved = "mv deep moved; cat moved/secret; cat deep/secret; mv moved deep"
    assert sandbox.run(moved)["stdout"] == ""


def test_no_command_puts_anything_in_the_place_of_what_later_ones_run(sandbox: Sandbox) -> None:
    """What leads to the project, to a tool below the home, to the shell and to the loader stays there."""
    for command in (
        f"mv {sandbox.folder} /tmp/moved",
        f"mv {sandbox.folder}/home/.tool {sandbox.folder}/home/other",
        "mv /run/aileron /run/other",
        "rm /bin || mv /bin /other; mkdir /lib64",
    ):
        refused = str(sandbox.run(command)["stderr"])
        assert "busy" in refused or "Read-only" in refused, command
    assert sandbox.prints(f"{sandbox.folder}/home/.tool/bin/tool") == "a tool\n"


def test_nothing_outlives_a_plain_command(unsandboxed: Worker, tmp_path: Path) -> None:
    """Without a sandbox what is left behind is looked for, however it has left."""
    done = unsandboxed.call("run", command=ORPHANS + "pwd")
    assert (done["stdout"], processes_of()) == (f"started\n{tmp_path}\n", [])


def test_no_plain_command_runs_where_the_project_was(unsandboxed: Worker, tmp_path: Path) -> None:
    tmp_path.rmdir()
    with pytest.raises(WorkerError, match="so it did not run"):
        unsandboxed.call("run", command="pwd")


@pytest.mark.parametrize("killed", ["standard input", "worker"])
def test_nothing_outlives_a_plain_worker(unsandboxed: Worker, killed: str) -> None:
    unsandboxed.send("run", command=ORPHANS + f"sleep {MARK}")
    eventually(lambda: len(processes_of()) >= 5)
    if killed == "worker":
        unsandboxed.process.kill()
    else:
        unsandboxed.process.stdin.close()
    eventually(lambda: processes_of() == [])


COUNT = 150
OLD = {f"d/{each}": f"old {each}\n" for each in range(COUNT)}
COMMAND = f"""python3 -c '
import os
for i in range({COUNT}):
    if i % 3:
        os.unlink(f"d/{{i}}")
    if i % 3 == 0:
        open(f"d/{{i}}", "w").write(f"new {{i}}\\n")
    if i % 3 == 2:
        os.symlink(f"../n/{{i}}", f"d/{{i}}")
os.mkdir("n")
open("n/2", "w").write("new\\n")
'"""
SECONDS = 30.0


@contextlib.contextmanager
def committing(seed: int) -> Iterator[tuple[Sandbox, int, dict[str, str], dict[str, str]]]:
    """Yield while a commit is under way: its request, what was there before, and what is to be."""
    with sandboxed_worker(OLD, home=True) as box:
        before = box.tree()
        done = box.rehearse(COMMAND)
        assert "rehearsal" in done, done
        after = {name: text for name, text in before.items() if name.count("/") == 0}
        after |= {"n": "", "n/2": "new\n"}
        for i in range(COUNT):
            if i % 3 == 0:
                after[f"d/{i}"] = f"new {i}\n"
            elif i % 3 == 2:
                after[f"d/{i}"] = f"-> ../n/{i}"
        watched = box.project / f"d/{3 * random.Random(seed).randrange(COUNT // 3)}"
        inode = watched.stat().st_ino
        worker = box.worker.process.pid
        box.processes = with_descendants({worker}) - {
            worker
        }  # later it takes as long as the commit
        request = box.worker.send("commit", rehearsal=done["rehearsal"])
        until = time.monotonic() + SECONDS
        while watched.stat().st_ino == inode:
            assert time.monotonic() < until
        yield box, request, before, after


def kill_all(box: Sandbox) -> None:
    box.worker.process.kill()
    eventually(lambda: not any(Path(f"/proc/{each}").exists() for each in box.processes))


@contextlib.contextmanager
def killed_midway() -> Iterator[tuple[Sandbox, dict[str, str], dict[str, str]]]:
    """Yield after a commit was killed; one that was done before the kill came is no such commit."""
    for seed in range(40):
        with committing(seed) as (box, _, before, after):
            kill_all(box)
            journal = (box.folder / "aileron/commits/s_1/journal").read_text()
            if journal.count("\n") == 1:
                yield box, before, after
                return
    raise AssertionError("each commit was done before it could be killed")


@needs_bubblewrap
@pytest.mark.parametrize("seed", range(4))
def test_a_commit_that_is_killed_is_all_or_nothing_after_the_next_start(seed: int) -> None:
    """66 of 150 files were changed, and 67 others left beside them."""
    with committing(seed) as (box, _, before, after):
        kill_all(box)
        sentences = recovered(box.folder)
        tree = box.tree()
        assert not [name for name in tree if ".aileron-" in name]
        assert tree in (before, after)
        assert len(sentences) == 1 or tree == after
        if tree == before:
            assert "they were taken back" in sentences[0]
            assert (box.folder / "aileron/commits/s_1/outcome").read_text() == sentences[0]
        assert recovered(box.folder) == []


@needs_bubblewrap
def test_the_end_of_a_session_waits_for_its_commit() -> None:
    with committing(1) as (box, _, _before, after):
        assert (box.worker.close(), box.tree(), recovered(box.folder)) == (0, after, [])
        assert not (box.folder / "aileron/commits/s_1").exists()


@needs_bubblewrap
def test_a_helper_that_is_killed_has_its_commit_taken_back_at_once() -> None:
    """And no command reaches the journal."""
    with committing(2) as (box, request, before, after):
        with contextlib.suppress(ProcessLookupError):
            for each in sorted(box.processes)[2:]:
                os.kill(each, signal.SIGKILL)
        with contextlib.suppress(WorkerError):
            box.worker.answer(request)
        tree = box.tree()
        assert tree in (before, after)
        assert box.prints("ls -a d | grep -c aileron; true") == "0\n"
        held = box.prints("ls -l /proc/self/fd /proc/*/fd 2>/dev/null; ls /run/aileron; echo")
        assert not [each for each in ("journal", str(box.folder / "aileron")) if each in held]


@needs_bubblewrap
def test_what_a_person_changed_since_is_not_overwritten() -> None:
    """An edit of what the commit made stays, and what was there before it is kept beside it."""
    with killed_midway() as (box, before, after):
        changed = [
            name for name, text in after.items() if name in OLD and text.startswith("new")
            and (box.project / name).read_text() == text
        ]  # fmt: skip
        edited = box.project / changed[0]
        edited.write_text("a person's\n")
        (sentence,) = recovered(box.folder)
        assert changed[0] in sentence
        tree = box.tree()
        (kept,) = [name for name in tree if ".aileron-" in name]
        assert tree.pop(kept) == before[changed[0]]
        assert tree == {**before, changed[0]: "a person's\n"}


@needs_bubblewrap
def test_the_next_commit_of_a_session_first_takes_back_what_a_killed_one_left() -> None:
    """It waited for the journal: what stood there was cut short, and nobody knew of the half that was done."""
    with killed_midway() as (box, before, _after):
        journal = os.open(box.folder / "aileron/commits/s_1/journal", os.O_RDWR)
        Journal(journal).begin([])
        os.close(journal)
        assert box.tree() == before


@needs_bubblewrap
def test_a_recovery_writes_nowhere_but_in_what_the_session_had() -> None:
    """Where the agent has put a link in the place of the project's folder, nothing is followed."""
    with killed_midway() as (box, before, _after):
        outside = box.folder / "elsewhere"
        (box.project / "d").rename(outside)
        (box.project / "d").symlink_to(outside)
        there = {each.name: os.lstat(each) for each in outside.iterdir()}
        (sentence,) = recovered(box.folder)
        assert "except at" in sentence
        assert {each.name: os.lstat(each) for each in outside.iterdir()} == there
        assert json.dumps(sentence).isascii()
        assert before


async def test_a_console_puts_a_recovery_on_record_once(home: Path) -> None:
    """Whoever recovered it; a launcher has no database. Its note goes only then: a kill in between loses nothing."""
    folder = home / "commits" / "s_1"
    folder.mkdir(parents=True)
    (folder / "journal").touch()
    (folder / "outcome").write_text("It was taken back.")
    recorded: list[tuple[str, str, bool]] = []

    async def record(session: str, sentence: str) -> None:
        recorded.append((session, sentence, folder.exists()))

    LaunchSweep(home, record)
    async with asyncio.timeout(SECONDS):
        while folder.exists():
            await asyncio.sleep(0.01)
    assert recorded == [("s_1", "It was taken back.", True)]
