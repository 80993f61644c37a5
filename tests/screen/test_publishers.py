"""Whose a file is stands on its item: the key, what is known of it, and what to beware of."""

from dataclasses import replace
from typing import Literal

import pytest

from aileron_core.console_port.events import LibraryUpdated
from aileron_core.console_port.intents import Accept, AcceptSuite, RemoveFile, WithdrawAcceptance
from aileron_core.console_port.view_models import LibraryItemView, NotAcceptedView, PublisherView
from aileron_tui import words
from aileron_tui.draw.blocks import lay_out
from aileron_tui.draw.file_page import file_blocks, suite_blocks, suite_head
from aileron_tui.draw.header import file_warnings
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import plain_text
from aileron_tui.items import Item, SuiteFiles
from aileron_tui.state.printed_pages import row_page
from aileron_tui.state.tables.library import LibraryTable
from tests.screen.offered_files import SUITE, connector, held_file, offered
from tests.support.screens.play import Play
from tests.support.screens.states import NOW, start

NAME = "github://example/tracker"
NEW = PublisherView(name=NAME, key="SHA256:new")
KEY = NotAcceptedView(
    kind="publisher",
    name=NAME,
    file="store/publishers/offer.tar.gz",
    digest="SHA256:new",
    change="changed",
    publisher=replace(NEW, accepted="SHA256:old"),
)
VOUCHED = replace(KEY, publisher=replace(NEW, accepted="SHA256:old", is_vouched_for=True))
FILES = words.files


def said(file: NotAcceptedView) -> tuple[list[str], str]:
    warned = [plain_text(each) for each in file_warnings(file, HiddenCharacters())]
    lines = lay_out(file_blocks(file), 160, 13).lines
    return warned, "\n".join(plain_text(each) for each in lines)


@pytest.mark.parametrize(
    ("publisher", "warning", "text"),
    [
        (NEW, "", FILES.FIRST_KEY),
        (replace(NEW, known_as=("github://example/b",)), "", FILES.known_key("github://example/b")),
        (replace(NEW, accepted="SHA256:new"), "", FILES.ACCEPTED_KEY),
        (replace(NEW, key=""), FILES.warn_unsigned(), FILES.NO_KEY),
        (replace(NEW, accepted="SHA256:old"), FILES.warn_refused(NAME, signed=True), "SHA256:old"),
        (
            replace(NEW, key="", accepted="SHA256:old"),
            FILES.warn_refused(NAME, signed=False),
            "SHA256:old",
        ),
        (
            replace(NEW, resembles="github://examp1e/a"),
            FILES.warn_resembles(NAME, "github://examp1e/a"),
            FILES.FIRST_KEY,
        ),
        (
            replace(NEW, other_key_of="github://example/b"),
            FILES.warn_other_key("github://example/b"),
            FILES.FIRST_KEY,
        ),
    ],
)
def test_an_item_says_whose_it_is(publisher: PublisherView, warning: str, text: str) -> None:
    warned, shown = said(replace(connector(), publisher=publisher))
    assert warned == [*filter(None, [warning]), *said(connector())[0]]
    assert text in shown
    assert NAME in shown


def test_both_keys_and_the_old_ones_word_stand_on_the_item_of_another_key() -> None:
    warned, shown = said(KEY)
    assert warned == [FILES.WARN_KEY]
    assert {"SHA256:new", "SHA256:old"} <= {*shown.split()}
    assert FILES.KEY_VOUCHED in said(VOUCHED)[1]
    assert said(VOUCHED)[0] == []
    edited = replace(offered(), publisher=replace(NEW, key="", accepted="SHA256:old"))
    assert FILES.warn_unsigned(NAME) in said(edited)[0]
    assert not edited.is_refused


def test_a_key_that_the_accepted_one_did_not_sign_takes_two_presses() -> None:
    play = Play(start(held=(KEY,)), size=(160, 120), answers=True)
    play.press_rested("t")
    assert play.port.intents == []
    play.shows(f"▲ {FILES.WARN_KEY}. Press t again to accept it.")
    play.press_rested("t")
    play.asks(Accept(kind="publisher", name=NAME, digest="SHA256:new"))


def test_an_offered_key_is_declined() -> None:
    play = Play(start(held=(KEY,)), size=(160, 120))
    play.press_rested("x")
    play.asks(RemoveFile(kind="publisher", file="offer.tar.gz"))
    play.port.tell(LibraryUpdated(not_accepted=(), problems=(), actions_ready=0))
    play.shows("removed")


def ready(kind: Literal["connector", "publisher"], name: str, digest: str) -> LibraryItemView:
    return LibraryItemView(
        kind=kind, name=name, file="", digest=digest, state="ready", reason="", accepted_at=NOW,
        accepted_by="person",
    )  # fmt: skip


def test_a_key_is_withdrawn_like_any_acceptance() -> None:
    play = Play(start(library=(ready("publisher", NAME, "SHA256:new"),)))
    play.go("4", NAME)
    play.press_rested("x", "SHA256:new")
    play.rest()
    assert f"x withdraws it: the next key of {NAME} counts as" in play.status_line
    play.press_alone("x")
    play.asks(WithdrawAcceptance(kind="publisher", name=NAME, digest="SHA256:new"))
    play.port.tell(LibraryUpdated(not_accepted=(), problems=(), actions_ready=0))
    play.shows(f"✓ Acceptance withdrawn: {NAME}.")


def test_what_counts_is_said_to_have_an_earlier_key() -> None:
    """Once another one is accepted; it was accepted, and counts. As a file to accept it would be refused."""
    item = replace(
        ready("connector", f"{NAME}@1.0.0", "sha256:0"),
        publisher=replace(NEW, accepted="SHA256:other"),
    )
    for state, warning in (
        ("ready", FILES.warn_earlier_key(NAME)),
        ("held_back", FILES.warn_refused(NAME, signed=True)),
    ):
        table = LibraryTable((replace(item, state=state),), (), NOW)
        shown = " ".join(plain_text(each) for each in row_page(table, NOW, 120)).split()
        assert f"▲ {warning}" in " ".join(shown)
        assert "Accepted key ┃ SHA256:other" in " ".join(shown)


def test_a_suite_counts_the_files_that_nobody_signed() -> None:
    new = replace(NEW, resembles="github://examp1e/a")
    files = [replace(held_file(each), publisher=new) for each in "abcd"]

    def head(unsigned: int) -> list[str]:
        nobodys = [replace(each, publisher=replace(new, key="")) for each in files[:unsigned]]
        suite = SuiteFiles(suite=SUITE, files=(*nobodys, *files[unsigned:]))
        return [plain_text(each) for each in suite_head(suite, 120)]

    assert " ▲ 1 of 4 is not signed: nobody vouches for it" in head(1)
    assert " ▲ 3 of 4 are not signed: nobody vouches for them" in head(3)
    resembles = f" ▲ {FILES.warn_resembles(NAME, 'github://examp1e/a')}"
    assert head(3).count(resembles) == 1
    suite = SuiteFiles(suite=SUITE, files=tuple(files))
    shown = [plain_text(each) for each in lay_out(suite_blocks(suite), 160, 13).lines]
    assert any(FILES.FIRST_KEY in each for each in shown)


def test_a_suites_connector_stands_first_on_its_item() -> None:
    came = replace(connector(), suite=SUITE, account=("oauth2", "mail.read"))
    files = (came, held_file("a", gated=True), held_file("b", gated=False))
    play = Play(start(held=files), size=(160, 160), answers=True)
    play.shows("Accept this connector and these 2 actions?")
    lines = [each.strip() for each in play.lines]
    section = next(n for n, each in enumerate(lines) if FILES.CONNECTOR_SECTION in each)
    assert section < next(n for n, each in enumerate(lines) if FILES.LOOK_FIRST in each)
    for part in (came.hosts[0], "oauth2", "mail.read", "[capabilities.network]"):
        assert any(part in each for each in lines), part
    play.press_rested("t")
    digests = tuple((each.file, each.digest) for each in files)
    play.asks(AcceptSuite(suite_id=SUITE.suite_id, files=digests))
    suites = [
        SuiteFiles(suite=SUITE, files=files[1:], new_connectors=(each,))
        for each in (came, replace(came, digest="sha256:other"))
    ]
    assert len({Item(key="", suite=each).version for each in suites}) == 2


def test_a_yes_names_the_key_that_was_shown() -> None:
    file = replace(offered(), publisher=NEW)
    together = tuple(replace(held_file(each), publisher=NEW) for each in ("a", "b"))
    digests = tuple((each.file, each.digest) for each in together)
    keys = tuple((each.file, f"{NAME} SHA256:new") for each in together)
    signed = f"{NAME} SHA256:new"
    for shown, sent in (
        ((file,), Accept(kind="action", name=file.name, digest=file.digest, signed_with=signed)),
        ((VOUCHED,), Accept(kind="publisher", name=NAME, digest="SHA256:new")),
        (together, AcceptSuite(suite_id=SUITE.suite_id, files=digests, signed_with=keys)),
    ):
        play = Play(start(held=shown), size=(160, 120), answers=True)
        play.press_rested("t")
        play.asks(sent)
    other = replace(file, publisher=replace(NEW, key="SHA256:other"))
    assert Item(key="", file=file).version != Item(key="", file=other).version
