"""The files worker as a process: what each op answers, changes and leaves alone."""

import hashlib
import os
import random
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.builtin.worker import file_writes
from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.connectors.builtin.worker.command_words import literal_words
from aileron_core.connectors.builtin.worker.file_writes import FileWrites
from aileron_core.connectors.builtin.worker.paths import Project
from aileron_core.connectors.builtin.worker.text_diff import unified_diff
from tests.support.builtin_worker import Worker
from tests.support.making import program
from tests.support.ordinary import AS_ORDINARY, OWNS, USER, ordinary_folder

PNG = b"\x89PNG\r\n\x1a\n\0\0"


@pytest.fixture
def file(shared_project: Path, request: pytest.FixtureRequest) -> Path:
    """The path of a file in a folder of the project that is this test's alone."""
    folder = shared_project / str(abs(hash(request.node.name)))
    folder.mkdir()
    return folder / "a"


def refusal_of(worker: Worker, op: str, **args: Any) -> tuple[str, str]:
    error = worker.refused(op, **args)
    return error.class_, error.message


def test_read_numbers_lines_and_says_what_is_left_out(worker: Worker, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\x0c\r\n\nfour")
    read = worker.call("read", file_path=str(file))
    assert read["text"] == "     1\tone\n     2\ttwo\x0c\n     3\t\n     4\tfour"
    assert (read["lines"], read["truncated"]) == (4, False)
    part = worker.call("read", file_path=str(file), offset=2, limit=1)
    assert (part["text"], part["lines"], part["truncated"]) == ("     2\ttwo\x0c", 4, True)
    assert refusal_of(worker, "read", file_path=str(file), offset=5)[0] == "invalid_arguments"
    file.write_bytes(b"")
    assert worker.call("read", file_path=str(file))["lines"] == 0
    file.write_text("é" * 400_000)
    long = worker.call("read", file_path=str(file))
    assert long["truncated"]
    assert long["text"].endswith("more characters in this line]")


@pytest.mark.parametrize(
    ("data", "type_"),
    [
        (PNG, "PNG image"),
        (b"caf\xe9\n", "text that is not UTF-8"),
        (b"a\0b", "binary data"),
        ("\ufeffa".encode("utf-16-le"), "UTF-16 text"),
        (b"a\n" * (5 * 1024 * 1024 + 1), "text"),
    ],
    ids=["png", "latin-1", "null", "utf-16", "huge"],
)
def test_no_text_is_told_by_its_type(worker: Worker, file: Path, data: bytes, type_: str) -> None:
    file.write_bytes(data)
    facts = {"type": type_, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    name = str(file.relative_to(file.parents[1]))
    assert worker.call("read", file_path=str(file)) == {"path": name, **facts}
    change = {"file_path": str(file), "old_string": "a", "new_string": "b"}
    assert refusal_of(worker, "preview_edit", **change)[0] in ("unsupported", "too_large")
    shown = worker.call("preview_write", file_path=str(file), content="a\n")
    assert (shown["diff"], shown["binary"]["before"]) == ("", facts)
    written = worker.call("write", file_path=str(file), content="a\n", expect=shown["base"])
    assert file.read_bytes() == b"a\n"
    if written["undo"]:
        worker.call("undo", undo=written["undo"])
        assert file.read_bytes() == data
    else:
        assert type_ == "text"  # the huge one is not kept


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("make", [os.mkfifo, _socket, Path.mkdir])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_only_files_are_opened(worker: Worker, file: Path, make: Callable[[Path], None]) -> None:
    """Opening a pipe would wait for its other end for ever."""
    make(file)
    for op, args in (
        ("read", {}),
        ("write", {"content": ""}),
        ("preview_edit", {"old_string": "a", "new_string": "b"}),
    ):
        class_, message = refusal_of(worker, op, file_path=str(file), **args)
        assert class_ == "invalid_arguments"
        assert "is a folder" in message or "is a device, a pipe or a socket" in message
    assert worker.call("grep", pattern="", path=str(file.parent))["text"] == ""


def test_write_makes_folders_and_undo_removes_them(worker: Worker, file: Path) -> None:
    made = file / "b/c"
    shown = worker.call("preview_write", file_path=str(made), content="x\ny")
    assert not file.exists()
    assert (shown["exists"], shown["added"], shown["removed"]) == (False, 2, 0)
    assert shown["diff"].startswith("--- /dev/null\n+++ b/")
    assert shown["diff"].endswith("+x\n+y\n\\ No newline at end of file\n")
    written = worker.call("write", file_path=str(made), content="x\ny", expect=shown["base"])
    assert (made.read_text(), written["created"], written["bytes"]) == ("x\ny", True, 3)
    (file / "other").touch()
    worker.call("undo", undo=written["undo"])
    assert [each.name for each in file.iterdir()] == ["other"]
    assert refusal_of(worker, "undo", undo=written["undo"])[0] == "not_found"


def test_write_keeps_mode_owner_and_other_names(worker: Worker, file: Path) -> None:
    file.write_text("old\n")
    if os.getuid() == 0:
        os.chown(file, 1234, 2345)
    file.chmod(0o751)
    os.link(file, file.parent / "other name")
    before = file.stat()
    written = worker.call("edit", file_path=str(file), old_string="old", new_string="new")
    after = file.stat()
    assert file.read_text() == "new\n"
    assert after[:1] + after[4:6] == before[:1] + before[4:6]  # mode, user, group
    assert (file.parent / "other name").read_text() == "old\n"
    worker.call("undo", undo=written["undo"])
    assert (file.read_text(), file.stat().st_mode) == ("old\n", before.st_mode)
    assert {each.name for each in file.parent.iterdir()} == {"a", "other name"}
    file.chmod(0o444)
    for op in ("preview_write", "write"):
        assert refusal_of(worker, op, file_path=str(file), content="")[0] == "forbidden"


def _replaced_by_its_copy(file: Path) -> None:
    shutil.copy2(file, file.with_name("copy"))
    file.with_name("copy").rename(file)


def _replaced_by_a_link(file: Path) -> None:
    file.rename(file.with_name("other"))
    file.symlink_to("other")


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda file: file.write_text("theirs\n"),
        lambda file: file.chmod(0o600),
        Path.unlink,
        _replaced_by_its_copy,
        _replaced_by_a_link,
    ],
    ids=["content", "mode", "deleted", "replaced", "link"],
)
@pytest.mark.parametrize("op", ["write", "edit"])
def test_what_changed_since_the_preview_is_not_overwritten(
    worker: Worker, file: Path, op: str, meanwhile: Callable[[Path], None]
) -> None:
    file.write_text("old\n")
    change = {"content": "new\n"} if op == "write" else {"old_string": "o", "new_string": "n"}
    shown = worker.call(f"preview_{op}", file_path=str(file), **change)
    meanwhile(file)
    there = file.read_text() if file.exists() else None
    class_, message = refusal_of(worker, op, file_path=str(file), **change, expect=shown["base"])
    assert (class_, "Read it and try again" in message) == ("conflict", True)
    assert (file.read_text() if file.exists() else None) == there


def test_what_came_meanwhile_is_not_overwritten(worker: Worker, file: Path, tmp_path: Path) -> None:
    changed = tmp_path / "a"
    new = {"file_path": str(file), "content": "ours\n"}
    shown = worker.call("preview_write", **new)
    file.write_text("theirs\n")
    assert refusal_of(worker, "write", **new, expect=shown["base"])[0] == "conflict"
    assert file.read_text() == "theirs\n"
    changed.write_text("old\n")

    def change(_: object) -> bytes:
        changed.write_text("theirs\n")
        return b"ours\n"

    with pytest.raises(OpFailed, match="changed while it was being written"):
        FileWrites(Project(tmp_path)).write("a", change)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a": "theirs\n"}


@pytest.mark.parametrize("existed", [True, False])
def test_undo_leaves_others_changes(worker: Worker, file: Path, *, existed: bool) -> None:
    if existed:
        file.write_text("old\n")
    written = worker.call("write", file_path=str(file), content="ours\n")
    file.write_text("theirs\n")
    assert refusal_of(worker, "undo", undo=written["undo"])[0] == "conflict"
    assert file.read_text() == "theirs\n"
    file.write_text("ours\n")
    worker.call("undo", undo=written["undo"])
    assert (file.read_text() if existed else file.exists()) == ("old\n" if existed else False)


def test_of_too_many_undos_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writes, "UNDO_BYTES", 20)
    writes = FileWrites(Project(tmp_path))
    undos: list[str] = []
    for name in "abc":
        (tmp_path / name).write_text("8 bytes\n")
        undos.append(writes.write(name, lambda _: b"ours")["undo"])
    with pytest.raises(OpFailed, match="no longer kept"):
        writes.undo(undos[0])
    for each in undos[1:]:
        writes.undo(each)
    contents = [(tmp_path / name).read_text() for name in "abc"]
    assert contents == ["ours", "8 bytes\n", "8 bytes\n"]


@pytest.mark.parametrize(
    ("text", "old", "new", "every", "result"),
    [
        ("a\nb\n", "b", "c", False, "a\nc\n"),
        ("a\na\n", "a", "b", True, "b\nb\n"),
        ("a\r\nb\r\n", "a\nb", "c\nd\ne", False, "c\r\nd\r\ne\r\n"),
        ("a\r\nb\n", "b", "c\nd", False, "a\r\nc\nd\n"),
        ("\ufeffa", "a", "b", False, "\ufeffb"),
    ],
)
def test_edit_replaces_what_occurs_once_or_everywhere(
    worker: Worker, file: Path, text: str, old: str, new: str, result: str, *, every: bool
) -> None:
    file.write_bytes(text.encode())
    worker.call("edit", file_path=str(file), old_string=old, new_string=new, replace_all=every)
    assert file.read_bytes().decode() == result


@pytest.mark.parametrize(
    ("text", "old", "new", "every", "why"),
    [
        ("a\n", "", "b", False, "old_string is empty"),
        ("a\n", "a", "a", False, "are equal"),
        ("a\n", "x", "b", False, "Read the file and copy the text exactly"),
        ("x\n  if a:\n\tb\nc", "if a:\n    b", "c", False, "lines 2 to 3 differ from it only in"),
        ("a\nb\n\na a\n", "a", "b", False, "occurs 3 times in {path}, in lines 1, 4, 4."),
        ("a" * 5000, "a", "b" * 5000, True, "would have more than"),
    ],
    ids=["empty", "equal", "absent", "blanks", "several", "grows"],
)
def test_edit_says_what_the_agent_has_to_change(
    worker: Worker, file: Path, text: str, old: str, new: str, why: str, *, every: bool
) -> None:
    file.write_text(text)
    change = {"old_string": old, "new_string": new, "replace_all": every}
    for op in ("edit", "preview_edit"):
        class_, message = refusal_of(worker, op, file_path=str(file), **change)
        assert class_ in ("invalid_arguments", "too_large")
        assert why.format(path=f"{file.parent.name}/a") in message
    assert file.read_text() == text


@pytest.mark.skipif(sys.platform != "linux", reason="/proc, and system folders that are root's")
def test_as_an_ordinary_user() -> None:
    """What the kernel refuses is said before a person is asked; nobody else reads the worker's memory."""
    with ordinary_folder() as folder:
        bin_, closed, theirs = folder / "bin", folder / "closed", folder / "theirs"
        program(bin_ / "mine")
        (bin_ / "by_a_link").symlink_to("/usr/bin/env")
        closed.mkdir()
        (closed / "file").write_text("a\n")
        closed.chmod(0o555)
        theirs.write_text("a\n")
        env = {"PATH": f"{bin_}:/usr/bin:/bin", OWNS: str(folder)}
        project = folder / "project"
        project.mkdir()
        with Worker("files", folder, AS_ORDINARY, env=env) as worker:
            assert worker.features == {}
            memory = Path(f"/proc/{worker.process.pid}/mem").stat()
            assert (memory.st_uid, USER != 0) == (0, True)
            for name in ("closed/file", "closed/new"):
                for op in ("preview_write", "write"):
                    class_, message = refusal_of(worker, op, file_path=name, content="")
                    assert (class_, "cannot be written" in message) == ("forbidden", True)
            if os.getuid() == 0:
                os.chown(theirs, 0, 0)
                theirs.chmod(0o666)
                class_, message = refusal_of(worker, "write", file_path="theirs", content="")
                assert (class_, "another user" in message) == ("forbidden", True)
                assert (theirs.stat().st_uid, theirs.read_text()) == (0, "a\n")
            assert stat.S_IMODE(closed.stat().st_mode) == 0o555
        with Worker("files", project, AS_ORDINARY, env=env) as worker:
            words = {"mine": True, "by_a_link": True, "env": False, "/usr/bin/env": False}
            for word, own in words.items():
                assert worker.call("resolve", command=word)["program_writable"] is own, word


def test_an_unknown_op_and_a_wrong_type_end_nothing(worker: Worker) -> None:
    assert refusal_of(worker, "format")[0] == "unsupported"
    assert refusal_of(worker, "read", file_path=3)[0] == "invalid_arguments"
    assert refusal_of(worker, "write", file_path="a", content="\ud800")[0] == "invalid_arguments"
    expected = ("not_found", "missing does not exist.")
    assert refusal_of(worker, "read", file_path="missing") == expected


def test_a_diff_is_what_git_applies(tmp_path: Path) -> None:
    chance = random.Random(5)
    for _ in range(12):
        lines = [f"{chance.choice('abcdefgh')}{chance.choice(('', chr(13)))}\n" for _ in range(60)]
        other = list(lines)
        for _ in range(chance.randrange(6)):
            at = chance.randrange(len(other))
            other[at : at + chance.randrange(3)] = [f"{chance.choice('abcxyz')}\x0c\n"] * 2
        old, new = ("".join(each).removesuffix(chance.choice("\n!")) for each in (lines, other))
        diff, added, removed = unified_diff(old, new, "a")
        (tmp_path / "a").write_bytes(old.encode())
        if diff:
            command = ["git", "apply", "--whitespace=nowarn", "-"]
            subprocess.run(command, cwd=tmp_path, input=diff.encode(), check=True)
        assert (tmp_path / "a").read_bytes().decode() == new
        assert diff.count("\n+") - 1 == added if added else True
        assert diff.count("\n-") == removed
    assert unified_diff("a\n", None, 'b"\n+c')[0].startswith('--- "a/b\\"\\n+c"\n+++ /dev/null\n')


def test_no_two_texts_take_long_to_compare() -> None:
    """`difflib` takes minutes for these."""
    chance = random.Random(5)
    old, new = ("".join(chance.choice(("a\n", "b\n")) for _ in range(20_000)) for _ in range(2))
    began = time.process_time()
    unified_diff(old, new, "a")
    unified_diff("".join(f"{i}\n" for i in range(20_000)), old, "a")
    assert time.process_time() - began < 5
    numbers = [f"{i}\n" for i in range(20_000)]
    changed = ["first\n", *numbers[1:-1], "last\n"]
    assert unified_diff("".join(numbers), "".join(changed), "a")[1:] == (2, 2)


def test_resolve_says_what_each_word_names(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    program(folder / "run")
    (folder / "out").symlink_to("/etc")
    with Worker("files", tmp_path) as worker:
        result = worker.call("resolve", command="sub/run -v 'sub/out' no sub/run")
        assert result["argv"] == ["sub/run", "-v", "sub/out", "no", "sub/run"]
        run, out = f"{folder}/run (in the project)", "/etc (outside the project)"
        named = [["sub/run", run], ["sub/out", out], ["sub/run", "sub/run (file)"]]
        assert result["words"] == named
        assert (result["program"], result["program_writable"]) == (f"{folder}/run", True)
        words = "cat sub/run -f=sub/out @sub/run up/../sub/run -v x"
        assert worker.call("resolve", command=words)["named"] == ["sub/run", "sub/run"]
        assert worker.call("resolve", command="cd x")["program"] is None
        unknown = worker.call("resolve", command="no-such-program")
        assert unknown["words"] == [["no-such-program", "not found"]]
        assert worker.call("resolve", command="n" * 300)["program"] is None
        assert worker.call("resolve", command="ls | cat") == {"words": [], "simple": False}


def test_words_are_literal_only_where_a_shell_reads_the_same() -> None:
    chance = random.Random(5)
    signs = [*"ab -=~:/.,@%+^'\"\\\t", *"$`*?[]{}|&;()<>!#\n"]
    commands = [
        "".join(chance.choice(signs[:easy]) for _ in range(chance.randrange(1, 9)))
        for easy in [19] * 4000 + [None] * 4000
    ]
    commands += ["git commit -m 'two  words'", 'a "b\\"c" "d\\e"', "a b~1 c=d", "a\\ b c"]
    commands += ['a "\\$b \\` \\x"']
    simple = {each: words for each in commands if (words := literal_words(each)) is not None}
    assert len(simple) > 500
    script = "f() { printf '%s\\0' \"$@\"; printf '\\1\\0'; }\n"
    script += "".join(f"f {each}\n" for each in simple)
    shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    read = ["".join(f"{word}\0" for word in words) for words in simple.values()]
    assert shell.stdout.split("\1\0")[:-1] == read
    active = ["A=b c", "if a", "time a", "'a' b", "\\a b", "", " ", "a >b", "a $b", "a\nb", "a ~"]
    for each in (*active, 'a "$b"', 'a "`b`"', 'a "b'):
        assert literal_words(each) is None, each
