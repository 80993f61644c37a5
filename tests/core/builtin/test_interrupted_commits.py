"""Commits that are killed in the middle: what the next start makes of them, in a sandbox of the session's terms."""

import asyncio
import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.connectors.builtin.worker.journal import Journal
from aileron_core.launch.sweep import LaunchSweep
from tests.support.builtin_worker import WorkerError
from tests.support.command_sandbox import Sandbox, recovered, sandboxed_worker
from tests.support.processes import with_descendants
from tests.support.variants import needs_bubblewrap

pytestmark = needs_bubblewrap

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
        request = box.worker.send("commit", rehearsal=done["rehearsal"])
        until = time.monotonic() + SECONDS
        while watched.stat().st_ino == inode:
            assert time.monotonic() < until
        yield box, request, before, after


def kill_all(box: Sandbox) -> None:
    worker = box.worker.process.pid
    there = with_descendants({worker}) - {worker}
    box.worker.process.kill()
    until = time.monotonic() + SECONDS
    while any(Path(f"/proc/{each}").exists() for each in there):
        assert time.monotonic() < until
        time.sleep(0.01)


@contextlib.contextmanager
def killed_midway() -> Iterator[tuple[Sandbox, dict[str, str], dict[str, str]]]:
    """Yield after a commit was killed; one that was done before the kill came is no such commit."""
    for seed in range(10):
        with committing(seed) as (box, _, before, after):
            kill_all(box)
            journal = (box.folder / "aileron/commits/s_1/journal").read_text()
            if journal.count("\n") == 1:
                yield box, before, after
                return
    raise AssertionError("each commit was done before it could be killed")


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


def test_the_end_of_a_session_waits_for_its_commit() -> None:
    with committing(1) as (box, _, _before, after):
        assert (box.worker.close(), box.tree(), recovered(box.folder)) == (0, after, [])
        assert not (box.folder / "aileron/commits/s_1").exists()


def test_a_helper_that_is_killed_has_its_commit_taken_back_at_once() -> None:
    """And no command reaches the journal."""
    with committing(2) as (box, request, before, after):
        worker = box.worker.process.pid
        with contextlib.suppress(ProcessLookupError):
            for each in sorted(with_descendants({worker}) - {worker})[2:]:
                os.kill(each, signal.SIGKILL)
        with contextlib.suppress(WorkerError):
            box.worker.answer(request)
        tree = box.tree()
        assert tree in (before, after)
        assert box.prints("ls -a d | grep -c aileron; true") == "0\n"
        held = box.prints("ls -l /proc/self/fd /proc/*/fd 2>/dev/null; ls /run/aileron; echo")
        assert not [each for each in ("journal", str(box.folder / "aileron")) if each in held]


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


def test_the_next_commit_of_a_session_first_takes_back_what_a_killed_one_left() -> None:
    """It waited for the journal: what stood there was cut short, and nobody knew of the half that was done."""
    with killed_midway() as (box, before, _after):
        journal = os.open(box.folder / "aileron/commits/s_1/journal", os.O_RDWR)
        Journal(journal).begin([])
        os.close(journal)
        assert box.tree() == before


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
