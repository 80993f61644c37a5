"""A changed file is noticed, however it was changed, and waits; its content is shown beside what counts until then."""

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from aileron_core import app
from aileron_core.canonical import sha256_hex
from aileron_core.console_port.events import LibraryUpdated
from aileron_core.console_port.intents import Accept, WithdrawAcceptance
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.errors import Conflict, NotFound
from aileron_core.library.home_files import FileStamps, read_stamps
from aileron_tui.cli.commands import aileron
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    Start,
    hold_answers,
    install_examples,
    run,
)

LATER = 2**62
"""Nanoseconds: every file is older than this."""


def stamps_of(home: Path, now_ns: int = LATER) -> FileStamps:
    folders = ("actions", "store/connectors/sha256", "suites", "store/publishers")
    return read_stamps(*(home / each for each in folders), now_ns=now_ns)


def rewrite_with_its_old_times(path: Path) -> None:
    """Change one byte in place and set the times back: same name, size, inode and mtime."""
    status = path.stat()
    data = path.read_bytes()
    path.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = path.stat()
    for what in ("st_size", "st_mtime_ns", "st_ino"):
        assert getattr(again, what) == getattr(status, what)


def replace(path: Path) -> None:
    """As editors do: a new file of the same size and time, moved over the old one."""
    beside = path.with_name(".beside")
    shutil.copy2(path, beside)
    rewrite_with_its_old_times(beside)
    beside.replace(path)


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def spoil(path: Path) -> None:
    """So that it is no action file any more."""
    path.write_bytes(b"\xff" + path.read_bytes())


def link_away(path: Path) -> None:
    other = path.with_name("other.text")
    other.write_bytes(path.read_bytes() + b"\n")
    path.unlink()
    path.symlink_to(other.name)


def swap_the_folder(path: Path) -> None:
    folder, beside = path.parent, path.parent.with_name("beside")
    shutil.copytree(folder, beside)
    append(beside / path.name)
    folder.rename(folder.with_name("aside"))
    beside.rename(folder)


def swap_the_files(path: Path) -> None:
    other, beside = path.with_name("get-draft.md"), path.with_name(".beside")
    path.rename(beside)
    other.rename(path)
    beside.rename(other)


CHANGES = [append, rewrite_with_its_old_times, replace, spoil, link_away, swap_the_folder,
           swap_the_files]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_file_waits_and_what_was_accepted_counts(
    core: Core, home: Path, change: Callable[[Path], None]
) -> None:
    """Agents see the bytes that a person accepted, and these run."""
    library = core.app.library
    await library.poll()
    before = library.find("list-drafts").action
    change(home / "actions" / "list-drafts.md")
    await library.poll()
    assert library.find("list-drafts").action == before
    assert (await core.call("list-drafts", {})).row.state == "completed"
    here = [each for each in library.entries() if each.file == "list-drafts.md"]
    assert [each.sha256 == before.sha256 for each in here] == [True, False]
    waits = {each.digest for each in library.not_accepted()}
    assert (here[1].sha256 in waits) is (change not in (spoil, swap_the_files))


IN_STORE = [append, rewrite_with_its_old_times, replace, Path.unlink]


@pytest.mark.parametrize(
    ("place", "change"),
    [
        *(("actions/list-drafts.md", change) for change in CHANGES),
        *(("store/connectors/sha256/*/connector.wasm", change) for change in IN_STORE),
        *(("store/connectors/sha256/*/manifest.toml", change) for change in IN_STORE),
    ],
)
def test_every_change_shows_without_the_bytes(
    home: Path, place: str, change: Callable[[Path], None]
) -> None:
    """Twice a second only the file system is asked; what it says must differ after any change."""
    install_examples(home)
    before = stamps_of(home)
    assert before.stamps
    (path,) = home.glob(place)
    change(path)
    assert stamps_of(home).stamps != before.stamps


def test_changes_within_one_tick_of_the_clock_are_not_missed(home: Path) -> None:
    """They have one time: until the newest is older than any tick, the bytes are read."""
    install_examples(home)
    newest = max(stamp[-1] for stamp in stamps_of(home).stamps)
    assert not stamps_of(home, newest).settled
    assert not stamps_of(home, newest + 100_000_000).settled
    assert stamps_of(home, newest + 2_000_000_000).settled
    assert not stamps_of(home, newest - 10_000_000_000).settled  # the clock was set back


async def test_young_files_are_read_whatever_the_file_system_says_of_them(
    start: Start, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second change in one tick leaves every stamp as it was; once they are old, that cannot be."""
    # The console's own look, begun before a change, would take what the test says was seen for news.
    monkeypatch.setattr(app, "_SWEEP_SECONDS", 3600.0)
    file = home / "actions" / "list-drafts.md"
    whole = file.read_bytes()
    async with start() as core:
        library = core.app.library
        for settled in (False, True):
            file.write_bytes(whole)
            await library.poll()
            assert library.not_accepted() == ()
            append(file)
            library._files.stamps = FileStamps(stamps=stamps_of(home).stamps, settled=settled)
            await library.poll()
            assert (library.not_accepted() == ()) is settled


async def test_what_did_not_change_is_not_reported(core: Core, home: Path) -> None:
    """A touched file is read again, and nobody hears of it: nothing on a screen moves."""
    library = core.app.library
    await library.poll()
    core.events.clear()
    for path in (home / "actions").iterdir():
        path.touch()
    for _ in range(3):
        await library.poll()
    assert not [event for event in core.events if isinstance(event, LibraryUpdated)]
    assert len(library.ready()) == 3


async def test_a_removed_file_is_gone_and_a_renamed_one_waits(core: Core, home: Path) -> None:
    """A person took those bytes in under that name; what of them comes back stands in `test_removal`."""
    path, library = home / "actions" / "list-drafts.md", core.app.library
    path.rename(path.with_name("renamed.md"))
    await library.poll()
    with pytest.raises(Conflict, match="is not accepted"):
        await core.call("list-drafts", {})
    path.with_name("renamed.md").unlink()
    await library.poll()
    with pytest.raises(NotFound):
        await core.call("list-drafts", {})


async def test_an_unreadable_folder_holds_all_back_and_nothing_up(core: Core, home: Path) -> None:
    """No action is offered from memory while nobody can say whether its file still exists."""
    folder, library = home / "actions", core.app.library
    folder.rename(home / "aside")
    folder.write_text("no folder")
    await library.poll()
    assert library.ready() == ()
    assert [problem.file for problem in library.problems()] == ["actions"]
    with pytest.raises(NotFound):
        await core.call("get-draft", {"id": DRAFT})
    folder.unlink()
    (home / "aside").rename(folder)
    await library.poll()
    assert len(library.ready()) == 3


async def test_accepting_an_action_names_the_bytes_that_it_will_run(core: Core) -> None:
    """What a placeholder was bound to is on record, not only in a file that may change."""
    by_name = {record["name"]: record for record in (await core.records("library.accepted"))}
    connector = by_name["local://aileron/mail-drafts@0.1.0"]
    assert by_name["get-draft.md"]["connectors"] == [
        {"fqn": "local://aileron/mail-drafts", "version": "0.1.0", "hash": connector["digest"]}
    ]


def new_version(home: Path, name: str = "send-draft") -> None:
    """Write version 0.2.0 of an example's action, with one line more, in its place."""
    path = home / "actions" / f"{name}.md"
    path.write_text(path.read_text().replace("0.1.0", "0.2.0", 1) + "\nOne more line.\n")


async def accept_new_version(core: Core, home: Path) -> None:
    new_version(home)
    await core.app.library.poll()
    (waits,) = core.app.library.not_accepted()
    await core.app.library.accept("action", "send-draft", waits.digest, by="person")


async def test_what_was_accepted_counts_until_the_changed_file_is_accepted(
    start: Start, home: Path, mailbox: Mailbox
) -> None:
    """Tools, and calls that wait, are as they were; also over a restart."""
    async with start() as core:
        view = await core.ask()
        new_version(home)
        await core.app.library.poll()
        assert "send-draft" in core.ready()
        assert (await core.run(view)).state == "completed"
    async with start(accept=False) as core:
        (waits,) = core.app.library.not_accepted()
        assert (waits.name, waits.change) == ("send-draft", "changed")
        assert waits.is_update
        kept = [i for i in core.app.library.items() if i.content is not None and i.content.is_kept]
        assert [(each.name, each.version) for each in kept] == [("send-draft", "0.1.0")]
        found = core.app.library.find("send-draft").action
        assert (found.version, found.sha256 == waits.digest) == ("0.1.0", False)
        await core.app.library.accept("action", "send-draft", waits.digest, by="person")
        assert core.app.library.find("send-draft").action.version == "0.2.0"
        assert core.app.library.not_accepted() == ()
    assert len(mailbox.state()["sent"]) == 1


async def test_a_call_under_what_was_replaced_runs_nothing_and_names_the_new_version(
    core: Core, home: Path, mailbox: Mailbox
) -> None:
    view = await core.ask()
    await accept_new_version(core, home)
    assert (await core.run(view)).state == "failed"
    failure = await core.failure(view)
    assert failure.class_ == "conflict"
    assert "send-draft.md was replaced by its version 0.2.0" in failure.message
    assert mailbox.state()["sent"] == []
    accepted = await core.records("library.accepted")
    (_, record) = [each for each in accepted if each["name"] == "send-draft.md"]
    assert record["connectors"]


async def test_what_runs_ends_as_it_was_approved_though_an_update_is_accepted_meanwhile(
    core: Core, home: Path, mailbox: Mailbox
) -> None:
    """Its request has left: that it ran is not taken back."""
    view = await core.ask()
    with hold_answers(mailbox, "POST send") as sending:
        running = asyncio.ensure_future(core.run(view))
        await sending()
        await accept_new_version(core, home)
        assert core.app.library.find("send-draft").action.version == "0.2.0"
    assert ((await running).state, len(mailbox.state()["sent"])) == ("completed", 1)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("other")])
async def test_a_damaged_copy_counts_for_nothing(start: Start, home: Path, damage: object) -> None:
    async with start() as core:
        digest = core.app.library.find("get-draft").action.sha256
    new_version(home, "get-draft")
    assert callable(damage)
    damage(home / "store" / "accepted" / digest)
    async with start(accept=False) as core:
        assert "get-draft" not in core.ready()
        with pytest.raises(Conflict, match="is not accepted"):
            await core.call("get-draft", {"id": DRAFT})


CONNECTOR = "local://aileron/mail-drafts@0.1.0"


def file_of(home: Path) -> Path:
    return home / "actions" / "send-draft.md"


def kept_copies(home: Path) -> set[str]:
    folder = home / "store" / "accepted"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def digest(path: Path) -> str:
    return sha256_hex(path.read_bytes())


def ungate(home: Path) -> tuple[str, str]:
    """Overwrite an action file with one that asks nobody; return the text before and after."""
    before = file_of(home).read_text("utf-8")
    after = before.replace("required = true", "required = false")
    file_of(home).write_text(after, "utf-8")
    return before, after


async def offered_file(core: Core, name: str) -> NotAcceptedView:
    await core.app.library.poll()
    (found,) = [each for each in core.app.library.not_accepted() if each.name == name]
    return found


async def test_a_new_file_is_offered_with_all_of_its_text(start: Start, home: Path) -> None:
    async with start(accept=False) as core:
        view = await offered_file(core, "send-draft")
        assert view.content.text == file_of(home).read_text("utf-8")
        assert (view.change, view.before) == ("new", None)
        connector = await offered_file(core, CONNECTOR)
        (manifest,) = (home / "store" / "connectors").glob("sha256/*/manifest.toml")
        module = manifest.with_name("connector.wasm")
        assert connector.content.text == manifest.read_text("utf-8")
        size = f"{module.stat().st_size:,} bytes, sha256:{digest(module)}"
        assert connector.content.module == size
        assert kept_copies(home) == set(), "nothing is kept of what nobody accepted"


@pytest.mark.parametrize("restart", [False, True])
async def test_a_changed_file_is_beside_the_old(start: Start, home: Path, restart: bool) -> None:
    """Also after a restart, and after the file was overwritten: the copy is in the home."""
    async with start() as core:
        if not restart:
            before, after = ungate(home)
            view = await offered_file(core, "send-draft")
    if restart:
        before, after = ungate(home)
        async with start(accept=False) as core:
            view = await offered_file(core, "send-draft")
    assert (view.content.text, view.before.text) == (after, before)
    assert [each.kind for each in view.before.wider] == ["asks_no_more"]


async def test_copies_are_private_and_go_with_what_they_are_for(core: Core, home: Path) -> None:
    """One for each accepted action file, and the one before it; of withdrawn and removed files none."""
    assert kept_copies(home) == {digest(path) for path in sorted((home / "actions").glob("*.md"))}
    folder = home / "store" / "accepted"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    old = digest(file_of(home))
    ungate(home)
    view = await offered_file(core, "send-draft")
    assert old in kept_copies(home)
    await core.do(Accept(kind=view.kind, name=view.name, digest=view.digest))
    assert (old in kept_copies(home), view.digest in kept_copies(home)) == (True, True)
    await core.do(WithdrawAcceptance(kind="action", name="send-draft", digest=view.digest))
    assert kept_copies(home).isdisjoint({old, view.digest})
    gone = digest(home / "actions" / "get-draft.md")
    (home / "actions" / "get-draft.md").unlink()
    await core.app.library.poll()
    assert gone not in kept_copies(home)


@pytest.mark.parametrize("damage", ["none is kept", "changed", "a link", "a folder"])
async def test_a_copy_that_is_missing_or_damaged_is_not_shown_as_what_was_accepted(
    start: Start, home: Path, damage: str
) -> None:
    """An old home has no copies: they are made of what is still as it was accepted, of no more."""
    async with start():
        pass
    copy = home / "store" / "accepted" / digest(file_of(home))
    text = copy.read_bytes()
    copy.unlink()
    if damage == "none is kept":
        shutil.rmtree(copy.parent)
    elif damage == "changed":
        copy.write_bytes(text.replace(b"required = true", b"required = false"))
    elif damage == "a link":
        (home / "elsewhere").write_bytes(text)
        copy.symlink_to(home / "elsewhere")
    else:
        copy.mkdir()
    ungate(home)
    async with start(accept=False) as core:
        view = await offered_file(core, "send-draft")
        assert (view.before.text, view.before.changes) == (None, ())
        assert damage != "none is kept" or len(kept_copies(home)) == 2, "of the other two"


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
async def test_a_connector_with_another_manifest_stands_beside_the_accepted_one(
    core: Core, home: Path, tmp_path: Path, version: str
) -> None:
    """With the same version or a new one; the other version is offered as new."""
    (folder,) = (home / "store" / "connectors" / "sha256").iterdir()
    old = (folder / "manifest.toml").read_text("utf-8")
    new = old.replace("gmail.googleapis.com:443", "evil.example:443")
    new = new.replace('version = "0.1.0"', f'version = "{version}"')
    source = shutil.copytree(folder, tmp_path / "changed")
    (source / "manifest.toml").write_text(new, "utf-8")
    core.app.library._store.install(source)  # pyright: ignore[reportPrivateUsage]
    view = await offered_file(core, f"local://aileron/mail-drafts@{version}")
    assert view.change == ("changed" if version == "0.1.0" else "new")
    assert (view.content.text, view.before.text) == (new, old)
    wider = [(each.kind, each.after) for each in view.before.wider]
    assert wider == [("hosts", "evil.example:443")]
    shown = [each for each in core.app.library.items() if each.digest == view.digest]
    assert [each.content for each in shown] == [view.content], "in the view of actions too"


def printed_page(home: Path, *words: str) -> str:
    """Return what a command prints on a terminal of 100 columns."""
    env = {"AILERON_HOME": str(home), "COLUMNS": "100"}
    done = CliRunner().invoke(aileron, words, prog_name="aileron", env=env)
    return done.stdout + done.stderr


@pytest.fixture
def changed_home(home: Path) -> Path:
    """A home in which everything was accepted, and one action file then overwritten."""
    install_examples(home)

    async def accept_all() -> None:
        async with Core.open(home):
            pass

    run(accept_all())
    path = home / "actions" / "send-draft.md"
    text = path.read_text("utf-8").replace("required = true", "required = false")
    path.write_text(text.replace("Sends a draft", "\x1b[2JSends a draft"), "utf-8")
    return home


def test_a_changed_action_is_printed_with_what_it_allows_more(changed_home: Path) -> None:
    """And a name that is nearly one is suggested."""
    page = printed_page(changed_home, "action", "show", "send-draft")
    for part in (
        "▲ allows more than before: no longer asks you",
        "ALLOWS MORE  than the version accepted on",
        "┃ − required = true",
        "┃ + required = false",
        "CONTENT  the whole file, as it is on disk",
        '┃ name = "send-draft"',
        "‹ESC›[2JSends a draft",
    ):
        assert part in page
    assert "\x1b" not in page
    page = printed_page(changed_home, "action", "show", "send-darft")
    assert "Did you mean send-draft?" in page
    page = printed_page(changed_home, "connector", "show", "mail-draft")
    assert "Did you mean mail-drafts?" in page


def test_programs_get_the_texts_and_the_changes(changed_home: Path) -> None:
    body = json.loads(printed_page(changed_home, "action", "show", "send-draft", "--json"))
    assert (body["state"], body["is_update"], body["module"]) == ("held_back", True, None)
    assert "\x1b[2JSends" in body["text"]
    assert "required = true" in body["before"]["text"]
    change = body["before"]["changes"][0]
    assert (change.pop("direction"), change.pop("kind")) == ("wider", "asks_no_more")
    assert change == {"name": "", "before": "", "after": ""}
    body = json.loads(printed_page(changed_home, "connector", "show", "mail-drafts", "--json"))
    assert (body["state"], body["before"]) == ("ready", None)
    assert "sha256:" in body["module"]
