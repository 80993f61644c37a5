"""What one `action add` brought: shown together, accepted by the digests that were shown, and no more."""

import json
import time
from pathlib import Path

import pytest

from aileron_core.actions.suites import read_suites, write_suite
from aileron_core.canonical import sha256_hex
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.events import LibraryUpdated
from aileron_core.console_port.intents import AcceptSuite
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.errors import Conflict
from aileron_core.home.layout import Home
from aileron_tui.cli.adding import add_actions
from aileron_tui.cli.output import CommandContext
from tests.support.core_harness import Core, Start, install_examples
from tests.support.suites import FIRST, GATED, READS, write_actions

ALL = GATED + READS + FIRST
SECONDS = 1.0
"""The promise for 515 files; it holds on one idle core three times over."""


def add_suite(home: Path, *paths: Path) -> int:
    context = CommandContext(home=home, json=True, color=False)
    return add_actions(context, [str(path) for path in paths], (), unsigned=False)


@pytest.fixture
def large_suite(home: Path, tmp_path: Path) -> Path:
    """A home with the connector in it, and a suite of 515 beside it."""
    install_examples(home)
    for file in (home / "actions").iterdir():
        file.unlink()
    return write_actions(tmp_path / "suite")


async def held_actions(core: Core) -> tuple[NotAcceptedView, ...]:
    views = (await core.app.console.snapshot()).not_accepted
    return tuple(each for each in views if each.kind == "action")


def accept_suite(*files: NotAcceptedView) -> AcceptSuite:
    (suite_id,) = {each.suite.suite_id for each in files if each.suite}
    return AcceptSuite(suite_id=suite_id, files=tuple((each.file, each.digest) for each in files))


def test_515_files_are_added_in_one_pass(
    home: Path, large_suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is read once, not once a file: to hash a large connector each time took half a minute."""
    scans: list[int] = []
    scan = ConnectorStore.scan

    def counted(store: ConnectorStore) -> object:
        scans.append(1)
        return scan(store)

    monkeypatch.setattr(ConnectorStore, "scan", counted)
    begun = time.process_time()
    assert add_suite(home, large_suite) == 0
    assert time.process_time() - begun < 3
    assert len(scans) == 1
    assert len(list((home / "actions").iterdir())) == ALL
    (found,) = read_suites(home / "suites")
    assert found.view.source == str(large_suite)
    assert len(found.files) == ALL
    text = (home / "actions" / "first-511.md").read_text()
    (installed,) = ConnectorStore(home).list()
    assert f'# filled in at release\nhash = "{installed.identity.hash}"' in text


async def test_what_one_add_brought_is_shown_together_and_accepted_at_once(
    home: Path, large_suite: Path
) -> None:
    add_suite(home, large_suite)
    async with Core.open(home, accept=False) as core:
        held = (await core.app.console.snapshot()).not_accepted
        (connector,) = (each for each in held if each.kind != "action")
        await core.app.library.accept("connector", connector.name, connector.digest, by="person")
        files = await held_actions(core)
        assert len(files) == ALL
        assert len({each.suite.suite_id for each in files if each.suite}) == 1
        assert sum(each.is_read_only and not each.gated for each in files) == READS
        assert sum(not each.is_read_only and not each.gated for each in files) == FIRST
        begun = time.process_time()
        await core.do(accept_suite(*files))
        assert time.process_time() - begun < SECONDS
        assert await held_actions(core) == ()
        assert len(core.app.library.ready()) == ALL
        records = await core.records("library.accepted")
        assert len(records) == ALL + 1
        assert {each["actor"] for each in records} == {"person"}
        assert (await core.app.audit.verify()).problems == ()
    assert read_suites(home / "suites") == ()
    async with Core.open(home, accept=False) as core:  # over a restart too
        assert len(core.app.library.ready()) == ALL
    (home / "aileron.db").unlink()
    async with Core.open(home) as core:
        assert await held_actions(core) == ()  # the harness accepts everything
    async with Core.open(home, accept=False) as core:
        assert len(core.app.library.ready()) == ALL


@pytest.fixture
def few(home: Path, tmp_path: Path) -> Path:
    """A home to which a suite of three was added: one gated, one read, one to look at first."""
    install_examples(home)
    for file in (home / "actions").iterdir():
        file.unlink()
    add_suite(home, write_actions(tmp_path / "suite", gated=1, reads=1, first=1))
    return home


@pytest.fixture
def library(few: Path) -> None:
    """What is there to accept: the suite of three."""


@pytest.mark.core(accept=False)
async def test_what_is_left_out_stays_unaccepted_and_stands_alone(core: Core) -> None:
    files = await held_actions(core)
    rest = [each for each in files if each.gated or each.is_read_only]
    await core.do(accept_suite(*rest))
    (left,) = await held_actions(core)
    assert (left.name, left.suite) == ("first-002", None)
    update = core.last(LibraryUpdated)
    assert [each.name for each in update.not_accepted if each.kind == "action"] == ["first-002"]


@pytest.mark.core(accept=False)
async def test_a_file_that_changed_since_is_not_accepted_and_said_so(core: Core, few: Path) -> None:
    files = await held_actions(core)
    changed = few / "actions" / "read-001.md"
    changed.write_bytes(changed.read_bytes() + b"\nAnd more.\n")
    said = r"Accepted 2 of 3\. Left out: read-001\.md, changed or removed"
    with pytest.raises(Conflict, match=said):
        await core.do(accept_suite(*files))
    (left,) = await held_actions(core)
    assert left.name == "read-001"
    records = await core.records("library.accepted")
    assert sorted(each["name"] for each in records) == ["first-002.md", "gated-000.md"]


async def test_a_file_that_no_add_brought_is_an_item_of_its_own(start: Start, few: Path) -> None:
    late = (few / "actions" / "gated-000.md").read_text().replace("gated-000", "late")
    (few / "actions" / "late.md").write_text(late)
    changed = few / "actions" / "first-002.md"
    changed.write_bytes(changed.read_bytes() + b"\n")
    async with start(accept=False) as core:
        alone = {each.name for each in await held_actions(core) if each.suite is None}
        assert alone == {"late", "first-002"}


async def test_what_a_person_withdrew_is_not_brought_together(core: Core) -> None:
    for each in core.app.library.items():
        if each.kind == "action":
            await core.app.library.withdraw_acceptance("action", each.name, each.digest)
    assert [each.suite for each in await held_actions(core)] == [None] * 3


@pytest.mark.parametrize("content", [
    b"", b"\xff", b"[]", b"[" * 100_000, b'{"files": {}}', b'{"source": 1, "files": {}}',
    b'{"source": "x", "files": {"gated-000.md": 5}}', b'{"source": "x", "files": []}',
    b'{"source": "\\ud800", "files": {"gated-000.md": "%s"}}' % (b"0" * 64),
], ids=range(9))  # fmt: skip
async def test_what_is_no_list_groups_nothing(start: Start, few: Path, content: bytes) -> None:
    (listed,) = (few / "suites").iterdir()
    listed.write_bytes(content)
    async with start(accept=False) as core:
        assert [each.suite for each in await held_actions(core)] == [None] * 3
        assert core.app.library.ready() == ()


async def test_a_list_accepts_nothing(start: Start, few: Path) -> None:
    (listed,) = (few / "suites").iterdir()
    files = json.loads(listed.read_bytes())["files"]
    listed.write_text(json.dumps({"source": "/x", "files": {**files, "none.md": "0" * 64}}))
    async with start(accept=False) as core:
        views = await held_actions(core)
        assert {each.suite.source for each in views if each.suite} == {"/x"}
        assert core.app.library.ready() == ()


def test_a_later_add_of_the_same_files_replaces_the_list(few: Path, tmp_path: Path) -> None:
    (before,) = read_suites(few / "suites")
    add_suite(few, tmp_path / "suite")
    (after,) = read_suites(few / "suites")
    assert after.files == before.files
    assert after.suite_id != before.suite_id
    other = write_actions(tmp_path / "other", gated=0, reads=0, first=1)
    add_suite(few, other)
    assert read_suites(few / "suites") == (after,)


def test_two_files_of_one_name_in_one_add_overwrite_nothing(home: Path, tmp_path: Path) -> None:
    Home(home).prepare()
    text = (Path(__file__).parents[3] / "examples" / "actions" / "get-draft.md").read_text()
    for name, more in (("a.md", ""), ("b.md", "\nMore.\n"), ("c.md", "")):
        (tmp_path / name).write_text(text + more)
    assert add_suite(home, *(tmp_path / name for name in ("a.md", "b.md", "c.md"))) == 1
    assert (home / "actions" / "get-draft.md").read_text() == text
    assert read_suites(home / "suites") == ()


def test_only_so_many_lists_are_kept(tmp_path: Path) -> None:
    for number in range(105):
        write_suite(tmp_path / "s", "x", {f"{number}.md": sha256_hex(b"")}, now=1e9 + number)
    found = read_suites(tmp_path / "s")
    assert len(found) == 100
    assert found[0].files.keys() == {"104.md"}
