"""Diffs, and the words of commands, held against the programs that read them: git and bash."""

import random
import subprocess
import time
from pathlib import Path

from aileron_core.connectors.builtin.worker.command_words import literal_words
from aileron_core.connectors.builtin.worker.text_diff import unified_diff
from tests.support.builtin_worker import Worker


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
    folder.mkdir()
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "out").symlink_to("/etc")
    with Worker("files", tmp_path) as worker:
        result = worker.call("resolve", command="sub/run -v 'sub/out' no sub/run")
        assert result["argv"] == ["sub/run", "-v", "sub/out", "no", "sub/run"]
        assert result["words"] == [
            ["sub/run", f"{folder}/run (in the project)"],
            ["sub/out", "/etc (outside the project)"],
            ["sub/run", "sub/run (file)"],
        ]
        assert (result["program"], result["program_writable"]) == (f"{folder}/run", True)
        words = "cat sub/run -f=sub/out @sub/run up/../sub/run -v x"
        named = worker.call("resolve", command=words)
        assert named["named"] == ["sub/run", "sub/run"]
        assert worker.call("resolve", command="cd x")["program"] is None
        unknown = worker.call("resolve", command="no-such-program")
        assert unknown["words"] == [["no-such-program", "not found"]]
        assert worker.call("resolve", command="n" * 300)["program"] is None
        assert worker.call("resolve", command="ls | cat") == {"words": [], "simple": False}


def test_words_are_literal_only_where_a_shell_reads_the_same() -> None:
    chance = random.Random(5)
    signs = [*"ab -=~:/.,@%+^'\"\\\t", *"$`*?[]{}|&;()<>!#\n"]
    commands = [
        "".join(chance.choice(signs[: 19 if easy else None]) for _ in range(chance.randrange(1, 9)))
        for easy in (True, False)
        for _ in range(4000)
    ]
    commands += [
        "git commit -m 'two  words'",
        'a "b\\"c" "d\\e"',
        "a b~1 c=d",
        'a "\\$b \\` \\x"',
        "a\\ b c",
    ]
    simple = {each: words for each in commands if (words := literal_words(each)) is not None}
    assert len(simple) > 500
    script = "f() { printf '%s\\0' \"$@\"; printf '\\1\\0'; }\n"
    script += "".join(f"f {each}\n" for each in simple)
    shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert shell.stdout.split("\1\0")[:-1] == [
        "".join(f"{word}\0" for word in words) for words in simple.values()
    ]
    for each in (
        "A=b c",
        "if a",
        "time a",
        "'a' b",
        "\\a b",
        "",
        " ",
        "a >b",
        "a $b",
        'a "$b"',
        'a "`b`"',
        'a "b',
        "a\nb",
        "a ~",
    ):
        assert literal_words(each) is None, each
