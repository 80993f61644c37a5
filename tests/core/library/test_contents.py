"""What there is to accept is the content, beside what was accepted before: kept by digest, shown, and let go."""

import json
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from aileron_core.canonical import sha256_hex
from aileron_core.console_port.intents import Accept, WithdrawAcceptance
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_tui.cli.commands import aileron
from tests.support.core_harness import Core, Start, install_examples, run

CONNECTOR = "local://aileron/mail-drafts@0.1.0"


def file(home: Path) -> Path:
    return home / "actions" / "send-draft.md"


def kept_copies(home: Path) -> set[str]:
    folder = home / "store" / "accepted"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def digest(path: Path) -> str:
    return sha256_hex(path.read_bytes())


def ungate(home: Path) -> tuple[str, str]:
    """Overwrite an action file with one that asks nobody; return the text before and after."""
    before = file(home).read_text("utf-8")
    after = before.replace("required = true", "required = false")
    file(home).write_text(after, "utf-8")
    return before, after


async def offered_file(core: Core, name: str) -> NotAcceptedView:
    await core.app.library.poll()
    (found,) = [each for each in core.app.library.not_accepted() if each.name == name]
    return found


async def test_a_new_file_is_offered_with_all_of_its_text(start: Start, home: Path) -> None:
    async with start(accept=False) as core:
        view = await offered_file(core, "send-draft")
        assert view.content.text == file(home).read_text("utf-8")
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
    files = sorted((home / "actions").glob("*.md"))
    assert kept_copies(home) == {digest(path) for path in files}
    folder = home / "store" / "accepted"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    old = digest(file(home))
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
    copy = home / "store" / "accepted" / digest(file(home))
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
