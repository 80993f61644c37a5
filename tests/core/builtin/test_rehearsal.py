"""Commands that are rehearsed on overlays: what a person is shown, and that their yes makes exactly that."""

import contextlib
import errno
import os
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.connectors.builtin.worker.commit import Commit
from aileron_core.connectors.builtin.worker.namespaces import MountedAt, set_dumpable
from aileron_core.connectors.builtin.worker.overlays import Layer
from aileron_core.connectors.builtin.worker.upper_changes import Change, UpperReader
from aileron_core.connectors.builtin.worker.wanted import Attendant, listen
from aileron_core.containment.linux_syscalls import no_new_privileges
from tests.support.builtin_worker import Worker, WorkerError
from tests.support.command_sandbox import Sandbox, sandboxed_worker
from tests.support.ordinary import as_ordinary, give
from tests.support.processes import with_descendants
from tests.support.variants import needs_bubblewrap

pytestmark = needs_bubblewrap

FILES = {
    "a.txt": "one\n", "b.txt": "two\n", "d/f": "three\n", "d/g": "four\n", "e/h": "five\n",
    "e/i/j": "six\n", "secret": "s3cret\n", ".envrc": "mine\n", "many/0": "0\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[Sandbox]:
    with sandboxed_worker(FILES, hidden=["secret"], git=True) as made:
        why_not = made.worker.features["why_not"]
        if "Linux" in why_not:
            pytest.skip(why_not)
        assert why_not == ""
        made.prints("git init -qb main && git config user.name A && git config user.email a@b.test")
        yield made


@pytest.fixture
def box(shared_sandbox: Sandbox) -> Iterator[Sandbox]:
    yield shared_sandbox
    shared_sandbox.discard_all()
    for each in shared_sandbox.project.iterdir():
        if each.name not in (".git", ".envrc", "secret"):
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
    for name, text in FILES.items():
        if name not in (".envrc", "secret"):
            path = shared_sandbox.project / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
    give(shared_sandbox.project)


def change_kinds(done: dict[str, Any]) -> dict[str, str]:
    return {each["path"]: each["kind"] for each in done["changes"] if not each.get("git")}


def commit_rehearsal(box: Sandbox, done: dict[str, Any]) -> dict[str, Any]:
    return box.worker.call("commit", rehearsal=done["rehearsal"])


CHANGES = r"""
echo more >> a.txt; chmod 755 a.txt; rm b.txt; mkdir -p n/m; echo new > n/m/x; ln -s ../a.txt n/link
rm -rf d; mkdir d; echo other > d/f; rm -rf e; echo now a file > e; printf '\0\1' > bin
touch -d 2001-02-03 many/0; chmod 500 n/m; echo kept > /tmp/of-mine; echo out; echo err >&2; exit 3
"""


def test_a_yes_makes_what_was_shown_and_nothing_else(box: Sandbox) -> None:
    """Nothing has changed before; after it, everything that the answer named, of every kind."""
    before = box.tree()
    done = box.rehearse(CHANGES)
    assert (done["exit_code"], done["stdout"], done["stderr"]) == (3, "out\n", "err\n")
    assert change_kinds(done) == {
        "a.txt": "changed", "b.txt": "deleted", "n": "made", "n/m": "made", "n/m/x": "made",
        "n/link": "link", "d/f": "changed", "d/g": "deleted", "bin": "made", "many/0": "changed",
        "e": "made", "e/h": "deleted", "e/i": "deleted", "e/i/j": "deleted",
    }  # fmt: skip
    (changed,) = (each for each in done["changes"] if each["path"] == "a.txt")
    assert "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+more\n" in done["diff"]
    assert (changed["previous_mode"], changed["mode"]) == ("0644", "0755")
    (binary,) = (each["binary"] for each in done["changes"] if each["path"] == "bin")
    assert (binary["type"], binary["bytes"]) == ("binary data", 2)
    assert done["own_changes"] == 1
    assert (box.tree(), box.run("cat /tmp/of-mine")["exit_code"]) == (before, 1)

    committed = commit_rehearsal(box, done)
    assert (committed["exit_code"], committed["stdout"]) == (3, "out\n")
    gone = ("b", "d", "e", "b.txt")
    kept = {name: text for name, text in before.items() if name.split("/")[0] not in gone}
    assert box.tree() == {
        **kept, "a.txt": "one\nmore\n", "n": "", "n/m": "", "n/m/x": "new\n", "n/link": "-> ../a.txt",
        "d": "", "d/f": "other\n", "e": "now a file\n", "bin": "\0\1",
    }  # fmt: skip
    assert stat.S_IMODE((box.project / "a.txt").stat().st_mode) == 0o755
    assert stat.S_IMODE((box.project / "n/m").stat().st_mode) == 0o500
    assert (box.project / "many/0").stat().st_mtime < 1e9
    assert box.prints("cat /tmp/of-mine") == "kept\n"
    with pytest.raises(WorkerError, match="no rehearsal"):
        commit_rehearsal(box, done)

    box.worker.call("undo", undo=committed["undo"])
    assert (box.tree(), stat.S_IMODE((box.project / "a.txt").stat().st_mode)) == (before, 0o644)
    assert box.run("cat /tmp/of-mine")["exit_code"] == 1


def test_a_file_that_is_no_text_is_told_as_it_will_be_and_as_it_is(box: Sandbox) -> None:
    """A text in the place of a picture was told by the picture alone, and what it says was never shown."""
    for name in ("picture", "moded", "gone"):
        (box.project / name).write_bytes(b"\x89PNG\r\n\x1a\n\0")
    give(box.project)
    done = box.rehearse("echo text > picture; chmod 600 moded; rm gone; printf '\\0' > a.txt")
    told = {
        (each["path"], name): (each[name]["type"], each[name]["bytes"])
        for each in done["changes"] for name in ("binary", "previous_binary") if name in each
    }  # fmt: skip
    picture = ("PNG image", 9)
    assert told == {
        ("picture", "binary"): ("text", 5), ("picture", "previous_binary"): picture,
        ("moded", "binary"): picture, ("gone", "previous_binary"): picture,
        ("a.txt", "binary"): ("binary data", 1), ("a.txt", "previous_binary"): ("text", 4),
    }  # fmt: skip
    assert done["diff"] == ""


def test_a_commit_is_taken_back_only_while_its_files_are_as_it_made_them(box: Sandbox) -> None:
    done = commit_rehearsal(box, box.rehearse("echo more >> a.txt; rm -r e; mkdir n; echo x > n/x"))
    (box.project / "n/theirs").write_text("theirs\n")
    before = box.tree()
    with pytest.raises(WorkerError, match="n is not as it was"):
        box.worker.call("undo", undo=done["undo"])
    assert box.tree() == before


def test_a_git_commit_has_the_hash_that_was_shown(box: Sandbox) -> None:
    """Run again, it would have another: with the same content at another second."""
    done = box.rehearse("git add a.txt d && git commit -qm first && git rev-parse HEAD")
    assert done["exit_code"] == 0, done
    assert change_kinds(done) == {}
    assert {each["path"].split("/")[0] for each in done["changes"]} == {".git"}
    assert box.run("git rev-parse --verify -q HEAD")["exit_code"] == 1
    commit_rehearsal(box, done)
    assert box.prints("git rev-parse HEAD") == done["stdout"]
    assert box.prints("git fsck 2>&1; git status --porcelain a.txt d") == ""


def swap(box: Sandbox) -> None:
    (box.project / "d").rename(box.project / "d2")
    (box.project / "d").symlink_to(box.folder / "home")


def another_folder(box: Sandbox) -> None:
    (box.project / "d").rename(box.project / "d2")
    (box.project / "d").mkdir()


def same_size(box: Sandbox) -> None:
    path = box.project / "a.txt"
    status = path.stat()
    path.write_text("ONE\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("command", "meanwhile"),
    [
        ("echo x > z; echo x >> a.txt", same_size),
        ("echo x > z; echo x >> a.txt", lambda box: (box.project / "a.txt").unlink()),
        ("echo x > a; echo x > z", lambda box: (box.project / "z").write_text("theirs\n")),
        ("echo x > z; rm -r e", lambda box: (box.project / "e/i/more").write_text("theirs\n")),
        ("echo x > z; rm -r e", lambda box: (box.project / "e/h").write_text("theirs\n")),
        ("echo x > z; echo x > d/new", swap),
        ("echo x > z; echo x > d/f", swap),
        ("echo x > z; rm d/f", swap),
        ("echo x > z; echo x > d/new", another_folder),
        ("mkdir z; echo x > z/z", lambda box: (box.project / "z").symlink_to(box.folder / "home")),
    ],
)  # fmt: skip
def test_nothing_is_made_where_something_has_changed_since(
    box: Sandbox, command: str, meanwhile: Callable[[Sandbox], object]
) -> None:
    done = box.rehearse(command)
    meanwhile(box)
    before = box.tree()
    with pytest.raises(WorkerError) as failure:
        commit_rehearsal(box, done)
    assert (failure.value.class_, box.tree()) == ("conflict", before)
    assert [each.name for each in (box.folder / "home").iterdir()] == [".tool"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("sleep 9", "takes longer than the 1 s"),
        ("python3 -c 'import socket; socket.socket()'", "opens a network socket (IPv4)"),
        ("python3 -c 'import socket as s; s.socketpair(type=2)'", "opens a datagram socket"),
        ("kill 4321", "signals process 4321"),
        ("python3 -c 'import os; os.rename(\"d\", \"moved\")'", "renames the folder"),
        ("mkfifo pipe", "makes pipe, which is a socket, a pipe or a device"),
        ("ln -s /etc/passwd link", "makes the link link, which leads out of the project"),
        ("ln -s away/passwd link", "makes the link link, which leads out of the project"),
        ("ln a.txt link", "a second name (a hard link)"),
        ("echo x > .mcp.json", "changes .mcp.json, a name through which"),
        ("echo x > x; chmod u+s x", "set-uid"),
        ("for i in $(seq 201); do echo > many/$i; done", "more than can be shown (over 200 paths)"),
        ("cd /tmp; seq 5001 | xargs touch", "more than can be kept (over 5,000 paths in all)"),
        ("for i in 1 2; do head -c 700000 /dev/zero | tr '\\0' x > n$i; done", "more than can be shown (over 1 MiB)"),
        ("fallocate -l 300M large", "more room than a rehearsal has"),
        ("python3 -c 'import time; x = bytearray(300 << 20); time.sleep(9)'", "uses more memory than a rehearsal"),
        ("rm huge; truncate -s 900M x", "leaves or changes files of more than 1 GiB"),
        ("mkdir -p p/q/r; ln -s p/q/r x; ln -s ../../.. x/y; ln -s x/y/../outside z", "makes the link z, which leads out"),
        ("ln -s . here; ln -s here/away z", "makes the link z, which leads out"),
        ("ln -s later/../outside z", "makes the link z, which leads out"),
    ],
)  # fmt: skip
def test_what_cannot_be_rehearsed_says_why(box: Sandbox, command: str, why: str) -> None:
    (box.project / "away").symlink_to("/etc")
    (box.project / "huge").touch()
    os.truncate(box.project / "huge", 200 << 20)

    def state() -> dict[Path, tuple[int, ...]]:
        all_of = ((each, each.lstat()) for each in box.project.rglob("*"))
        return {path: (*at[:7], at.st_mtime_ns, at.st_ctime_ns) for path, at in all_of}

    before = state()
    assert why in box.fallback(command, seconds=1 if command == "sleep 9" else 30)
    assert state() == before


@pytest.mark.parametrize("target", ["../d/f", "../{project}/a.txt", "x", "../made", "../nowhere"])
def test_a_link_within_the_project_is_kept(box: Sandbox, target: str) -> None:
    """Its target counts as the kernel finds it once the command has ended, also in what the command made."""
    target = str(box.project / "a.txt") if "{" in target else target
    commit_rehearsal(box, box.rehearse(f"mkdir made; echo x > made/x; ln -s {target} made/link"))
    assert str((box.project / "made/link").readlink()) == target


def helper_reading(box: Sandbox, request: int) -> int:
    """Wait until the helper that attends to *request* reads what its command left, and return its process."""
    worker = box.worker.process.pid
    until = time.monotonic() + 30
    while time.monotonic() < until and not box.worker.answered(request):
        for helper in with_descendants({worker}) - {worker}:
            with contextlib.suppress(OSError):
                held = [str(each.readlink()) for each in Path(f"/proc/{helper}/fd").iterdir()]
                if any(each.endswith("/up/sparse") for each in held):
                    return helper
    raise AssertionError("nobody reads it")


def test_a_cancel_and_the_deadline_end_the_reading_of_what_a_command_left(box: Sandbox) -> None:
    """A cancel was heard only while the command ran; a large file was hashed to its end.

    The kernel keeps the deadline, by a signal that nothing in that process catches; here it comes at once.
    """
    request = box.worker.send("rehearse", command="truncate -s 1000M sparse")
    helper = helper_reading(box, request)
    box.worker.cancel(request)
    with pytest.raises(WorkerError, match="stopped"):
        box.worker.answer(request)
    assert not Path(f"/proc/{helper}").exists()
    request = box.worker.send("rehearse", command="truncate -s 1000M sparse")
    os.kill(helper_reading(box, request), signal.SIGALRM)
    assert "longer than the 60 s of a rehearsal" in box.worker.answer(request)["fallback"]
    assert change_kinds(box.rehearse("echo x > x")) == {"x": "made"}


def test_the_rehearsals_of_a_session_share_their_memory(box: Sandbox) -> None:
    """Each had its own, and four that waited with four that could be taken back held 1.9 GB."""
    requests = [box.worker.send("rehearse", command="fallocate -l 200M large") for _ in range(4)]
    names = [box.worker.answer(each).get("rehearsal") for each in requests]
    box.rehearsals += filter(None, names)
    kept = 0
    for name in filter(None, names):
        with contextlib.suppress(WorkerError):
            kept += bool(box.worker.call("check", rehearsal=name)["holds"])
    assert kept <= 1
    assert "rehearsal" in box.rehearse("fallocate -l 200M large")


def test_a_session_takes_no_more_memory_than_its_share(box: Sandbox) -> None:
    """Eight commands had 634 MB at once, two of them at a time; what waits for an answer counts as well."""
    grow = "import mmap, time; x = mmap.mmap(-1, {0} << 20, flags=mmap.{1}); x.write(bytes({0} << 20)); time.sleep(2)"
    kinds = ("MAP_PRIVATE", "MAP_SHARED")
    commands = [
        "fallocate -l 100M large",
        *(f'python3 -c "{grow.format(n, kind)}"' for n in (150, 300) for kind in kinds),
        f'for i in 1 2 3 4 5 6; do python3 -c "{grow.format(50, "MAP_PRIVATE")}" & done; wait',
    ]
    requests = [box.worker.send("rehearse", command=each) for each in commands]
    most = 0
    while not all(map(box.worker.answered, requests)):
        most = max(most, sum(map(_memory_of, with_descendants({box.worker.process.pid}))))
    answers = [box.worker.answer(each) for each in requests]
    box.rehearsals += [each["rehearsal"] for each in answers if "rehearsal" in each]
    refused = ["memory" in each.get("fallback", "") for each in answers]
    assert refused == [False] * 3 + [True] * 3
    assert most + (100 << 20) < 512 << 20


UNCOUNTED = r"""python3 -c "
import ctypes, os
assert ctypes.CDLL(None).shmget(0, 4096, 0o1600) == -1
try: os.memfd_create('x')
except OSError as error: print(error.strerror)
"
"""


def test_memory_is_had_only_where_it_is_counted_and_counts_once(box: Sandbox) -> None:
    """A file without a name and System V's shared memory belong to no process that maps them not."""
    assert box.rehearse(UNCOUNTED)["stdout"] == "Function not implemented\n"
    fork = "import os, time; x = bytes(range(256)) * (100 << 12); [os.fork() or time.sleep(1) for _ in range(3)]"
    assert box.rehearse(f"python3 -c '{fork}'")["exit_code"] == 0


def _memory_of(process: int) -> int:
    """Return how many bytes of memory *process* has for itself, its part of shared ones among them."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
        fields = dict(line.split(":") for line in lines)
        return sum(int(fields[each].split()[0]) for each in ("Pss_Anon", "Pss_Shmem")) * 1024
    return 0


def test_extended_attributes_are_left_out(box: Sandbox) -> None:
    """Nobody is shown them, and what they say may matter to other programs."""
    code = "import os; [os.setxattr(each, 'user.mine', b'x') for each in ('a.txt', 'n')]"
    done = box.rehearse(f'echo x >> a.txt; echo y > n; python3 -c "{code}"')
    assert done["exit_code"] == 0
    commit_rehearsal(box, done)
    assert [os.listxattr(box.project / each) for each in ("a.txt", "n")] == [[], []]


def test_many_processes_and_a_text_of_nearly_a_mebibyte_are_rehearsed(box: Sandbox) -> None:
    """Processes that are left are waited for as in a real run; the text is of letters that are six bytes each."""
    done = box.rehearse("for i in $(seq 400); do (/bin/true &) ; done; echo ok")
    assert done["stdout"] == "ok\n"
    done = box.rehearse("python3 -c \"open('n', 'w').write('\u0416\\n' * 300000)\"")
    assert done["diff"].count("+\u0416\n") == 300000


def test_no_socket_is_reached_before_the_yes(box: Sandbox) -> None:
    """The kernel is told to refuse it, and not only that it was seen: the command may be quick."""
    path = str(box.folder / "s.sock")

    def attempts() -> list[int]:
        unix = socket.socket(socket.AF_UNIX)
        for each in socket.socketpair():  # within the command
            each.close()
        tried = [
            lambda: socket.socket(socket.AF_INET), lambda: socket.socket(socket.AF_VSOCK),
            lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
            lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
            *(partial(unix.connect, each) for each in (path, "\0abstract", "/nothing")),
        ]  # fmt: skip
        return [errno_of(each) for each in tried]

    def body() -> None:
        set_dumpable(True)  # as what was executed is
        no_new_privileges()
        listener = listen()
        child = os.fork()
        if child == 0:
            expected = [*[errno.EACCES] * 4, *[errno.ECONNREFUSED] * 2, errno.ENOENT]
            os._exit(attempts() != expected)
        reports: list[dict[str, object]] = []
        assert Attendant({}, lambda: 1 << 40, reports.append).attend(listener, child) == 0
        assert len(reports) == 6  # what is not there was not missed

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        Path(path).chmod(0o777)
        listening.listen()
        as_ordinary(body)


def errno_of(call: Callable[[], object]) -> int:
    try:
        call()
    except OSError as error:
        return error.errno or 0
    return 0


INSIDE = r"""
cat secret; cat .envrc; (echo theirs > .envrc) 2>&1; rm -f secret 2>&1
set -- /proc/[0-9]*; echo $#; unshare -U true 2>/dev/null || echo refused; cat /proc/net/dev | grep -c :
grep -h -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; ls /proc/self/fd | wc -l
touch /dev/x /x 2>&1; ulimit -u; cat /proc/self/oom_score_adj; echo x > /dev/shm/mine
"""


def test_a_rehearsed_command_is_held_as_a_real_one_and_more(box: Sandbox) -> None:
    done = box.rehearse(INSIDE)
    assert done["stdout"].splitlines() == [
        "mine", "bash: line 2: .envrc: Read-only file system",
        "rm: cannot remove 'secret': Device or resource busy",
        "2", "refused", "1",
        "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "4",
        "touch: cannot touch '/dev/x': Read-only file system",
        "touch: cannot touch '/x': Read-only file system",
        "256", "1000",
    ]  # fmt: skip
    assert box.run("ls /dev/shm")["stdout"] == ""


def test_a_hidden_file_below_a_folder_is_not_rehearsed_with() -> None:
    """Whoever renames that folder while the command runs would show it."""
    with sandboxed_worker({"deep/secret": "s3cret\n"}, hidden=["deep/secret"]) as box:
        assert not box.worker.features["rehearsal"]
        assert "deep/secret hides something" in box.fallback("cat deep/secret")


def test_what_a_command_leaves_running_writes_nothing_more(box: Sandbox) -> None:
    late = "(setsid sh -c 'sleep 0.5; echo late > late; echo late >> a.txt' &)"
    done = box.rehearse(f"{late}; echo x > x")
    assert change_kinds(done) == {"x": "made"}
    commit_rehearsal(box, done)
    box.prints("sleep 0.6")
    assert not (box.project / "late").exists()
    assert (box.project / "a.txt").read_text() == "one\n"


def test_rehearsals_wait_side_by_side_and_are_dropped(box: Sandbox) -> None:
    """Each is on the project as it is; the fifth takes the place of the oldest."""
    names = [box.rehearse(f"ls | wc -l; echo {n} > n{n}")["rehearsal"] for n in range(5)]
    with pytest.raises(WorkerError, match="no rehearsal"):
        box.worker.call("commit", rehearsal=names[0])
    box.prints("echo else > n2")
    holds = [box.worker.call("check", rehearsal=name)["holds"] for name in names[1:]]
    assert holds == [True, False, True, True]
    box.worker.call("discard", rehearsal=names[4])
    for name in (names[1], names[3]):
        box.worker.call("commit", rehearsal=name)
    assert sorted(each.name for each in box.project.glob("n[0-9]")) == ["n1", "n2", "n3"]
    request = box.worker.send("rehearse", command="sleep 9")
    box.worker.cancel(request)
    with pytest.raises(WorkerError, match="stopped"):
        box.worker.answer(request)


def test_without_a_sandbox_nothing_is_rehearsed(tmp_path: Path) -> None:
    with Worker("commands", tmp_path) as worker:
        why_not = worker.features["why_not"]
        assert why_not
        assert worker.call("rehearse", command="touch x") == {"fallback": why_not}
    assert not (tmp_path / "x").exists()


class Racing(Commit):
    """Somebody changes the last of the files after it was compared, before it is replaced."""

    def _make(self, change: Change) -> None:
        if change.path == PurePosixPath("z"):
            path = Path(self._layers[0].mounted.path) / "z"
            status = path.stat() if path.exists() else None
            path.write_text("others\n")
            if status:
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        super()._make(change)


@pytest.mark.parametrize("what", ["changed", "made", "deleted"])
def test_a_change_in_the_very_moment_is_not_lost(tmp_path: Path, what: str) -> None:
    below, upper = tmp_path / "below", tmp_path / "upper/0/up"
    for each in (below, upper):
        each.mkdir(parents=True)
    (below / "a").write_text("old\n")
    (upper / "a").write_text("new\n")
    if what != "made":
        (below / "z").write_text("before\n")
    if what == "deleted":
        os.mknod(upper / "z", stat.S_IFCHR)  # as an overlay writes it
    else:
        (upper / "z").write_text("new\n")
    mounted = MountedAt(1, 0, "0:1", "/", str(below), read_only=False, kind="ext4")
    layer = Layer(mounted=mounted, handle=os.open(below, os.O_PATH), purpose="shown")
    handle = os.open(tmp_path / "upper", os.O_PATH)
    changes = [*UpperReader(0, layer, handle).changes()]
    with pytest.raises(OpFailed) as failure:
        Racing([layer], handle, changes).apply()
    assert failure.value.class_ == "conflict"
    left = {each.name: each.read_text() for each in below.iterdir()}
    assert left == {"a": "old\n", "z": "others\n"}
    Commit([layer], handle, [*UpperReader(0, layer, handle).changes()]).apply()
    assert {each.read_text() for each in below.iterdir()} == {"new\n"}


def test_a_late_cancel_neither_commits_nor_takes_a_commit_back(box: Sandbox) -> None:
    """It comes when the command has ended, and a large file makes comparing and committing slow."""
    large = box.project / "large"
    large.touch()
    os.truncate(large, 60 << 20)
    give(box.project)
    name = box.rehearse("echo more >> a.txt; rm large")["rehearsal"]
    for op in ("check", "commit"):
        assert (box.project / "a.txt").read_text() == "one\n"
        request = box.worker.send(op, rehearsal=name)
        box.worker.cancel(request)
        done = box.worker.answer(request)
    assert box.prints("cat a.txt") == "one\nmore\n"
    box.worker.call("undo", undo=done["undo"])
    assert box.prints("cat a.txt; ls large") == "one\nlarge\n"
