"""Killed at any step of adding a suite or of accepting it: what was there before, or all that is new."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from aileron_core.actions.suites import finish_adding
from aileron_core.releases.signing import sign_sums
from aileron_core.releases.suite import SIGNATURE_FILE, SUMS_FILE, archive_of, pack, read_suite
from aileron_core.vault.secret import Secret
from tests.core.releases.conftest import ACTIONS, published_as
from tests.core.releases.test_rules import KEY
from tests.support import killed
from tests.support.core_harness import PASSPHRASE, Core, audit_problems, unlock
from tests.support.forked import run_forked
from tests.support.server_harness import aileron
from tests.support.variants import variants

Seen = tuple[frozenset[tuple[str, str]], ...]


def steps(template: Path, home: Path, *words: str) -> Iterator[int]:
    """Do *words* in a copy of *template*, again and again, each time killed one step later; at last not."""
    for step in range(1, 1000):
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(template, home)
        command = [sys.executable, "-I", killed.__file__, str(step), str(home), *words]
        done = run_forked(command)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        yield step
        if done.returncode == 0:
            return


async def seen(home: Path) -> tuple[Seen, Seen]:
    """Return what is accepted in *home*, and what waits: actions and connectors with their versions."""
    async with Core.open(home, accept=False) as core:
        if core.app.vault.state == "locked":
            await unlock(core)
        library = core.app.library
        waits = library.not_accepted()
        accepted = (
            frozenset((each.name, each.version) for each in library.ready()),
            frozenset(
                (each.identity.ref, each.identity.hash) for each in library.accepted_connectors()
            ),
        )
        offered = (
            frozenset((each.name, each.digest) for each in waits if each.kind == "action"),
            frozenset((each.name, each.digest) for each in waits if each.kind == "connector"),
        )
    assert audit_problems(home) == []
    return accepted, offered


@pytest.fixture
def archives(folder: Path) -> dict[str, str]:
    """The suite in two versions, signed with one key."""
    published_as(folder)
    found: dict[str, str] = {}
    for version in ("1.4.0", "1.5.0"):
        suite = pack(read_suite(folder), version)
        signed = {**suite.files, SIGNATURE_FILE: sign_sums(suite.files[SUMS_FILE], KEY)}
        path = folder.with_name(f"{version}.tar.gz")
        path.write_bytes(archive_of(replace(suite, files=signed)))
        found[version] = str(path)
    return found


async def waiting_home(archives: dict[str, str], home: Path, *, update: bool, vault: bool) -> None:
    """Make a home in which the newer version waits, in place of the accepted older one if *update*."""
    home.mkdir()
    if update:
        aileron("action", "add", archives["1.4.0"], home=home)
    async with Core.open(home) as core:
        if vault:
            core.app.vault.create(Secret(PASSPHRASE))
            await core.until_record("library.authenticated", 3)


@pytest.mark.parametrize("what", variants(["update", "back", "new"], 2))
async def test_a_kill_at_any_step_of_adding(
    archives: dict[str, str], tmp_path: Path, what: str
) -> None:
    """What was accepted counts as before, and of the new files all or none wait: a console moves the rest."""
    template, home = tmp_path / "template", tmp_path / "home"
    await waiting_home(archives, template, update=what != "new", vault=False)
    words, waiting = ("action", "add", archives["1.5.0"]), {(0, 0), (0, 1), (len(ACTIONS), 1)}
    if what == "back":
        aileron(*words, home=template)
        async with Core.open(template):
            words, waiting = (
                ("update", "aileron/mail-drafts", "--back"),
                {(0, 0), (len(ACTIONS), 0)},
            )
    before, _ = await seen(template)
    found: set[tuple[int, int]] = set()
    for _ in steps(template, home, *words):
        after, waits = await seen(home)
        assert after == before
        found.add((len(waits[0]), len(waits[1])))
    assert found == waiting


def test_what_a_killed_add_left_goes_with_a_later_one(archives: dict[str, str], home: Path) -> None:
    """An hour later, when it cannot be that of a command that still runs."""
    aileron("action", "add", archives["1.4.0"], home=home)
    left = [home / "actions/.add-x/a.md", home / "suites/.x", home / "store/connectors/tmp/x/a"]
    for each in left:
        each.parent.mkdir(exist_ok=True)
        each.touch()
    for age, stays in ((0, True), (3700, False)):
        for each in chain(left, (each.parent for each in left)):
            os.utime(each, (time.time() - age,) * 2)
        aileron("action", "add", archives["1.4.0"], home=home)
        assert [each.exists() for each in left] == [stays] * 3


def test_a_file_that_a_person_changed_meanwhile_stays(archives: dict[str, str], home: Path) -> None:
    """Though it is one that a killed command had still to move; what an add replaces can have any date."""
    file = home / "actions" / "send-draft.md"
    for version in ("1.4.0", "1.5.0"):
        aileron("action", "add", archives[version], home=home)
        assert f'version = "{version}"' in file.read_text()
        os.utime(file, (time.time() + 86400,) * 2)
    written = home / "actions" / ".added-x"
    written.mkdir()
    for name in ("send-draft.md", "more.md"):
        (written / name).write_text("older")
    finish_adding(home / "actions")
    assert "older" not in file.read_text()
    assert (home / "actions" / "more.md").read_text() == "older"
    assert not written.exists()


@pytest.mark.parametrize(
    ("update", "vault"), variants([(True, True), (False, False), (True, False)])
)
async def test_a_kill_at_any_step_of_an_acceptance(
    archives: dict[str, str], tmp_path: Path, update: bool, vault: bool
) -> None:
    """Of a suite with its connector and its publisher's key: all of it counts, or what counted before."""
    template, home = tmp_path / "template", tmp_path / "home"
    await waiting_home(archives, template, update=update, vault=vault)
    aileron("action", "add", archives["1.5.0"], home=template)
    before = await seen(template)
    found = [await seen(home) for _ in steps(template, home, "accept")]
    assert {*found} == {before, found[-1]}
    assert found[-1][1] == (frozenset(), frozenset())
