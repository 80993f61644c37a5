"""What one `aileron action add` brought is one item: its list, its keys, what a yes is to, and whose it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest

from aileron_core.console_port import file_views
from aileron_core.console_port.events import IntentRefused, LibraryUpdated
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
from aileron_tui.state.queue import Queue
from aileron_tui.state.tables.library import LibraryTable
from tests.screen.offered_files import SUITE, connector, held_file, offered, suite, suite_of_515
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, short, snapshot_of

NAME = "github://example/tracker"
OTHER, ALIKE = "github://example/b", "github://examp1e/a"
NEW = PublisherView(name=NAME, key="SHA256:new")
CHANGED = replace(NEW, accepted="SHA256:old")
KEY = NotAcceptedView(
    kind="publisher",
    name=NAME,
    file="store/publishers/offer.tar.gz",
    digest="SHA256:new",
    change="changed",
    publisher=CHANGED,
)
VOUCHED = replace(KEY, publisher=replace(CHANGED, is_vouched_for=True))
FILES = words.files


def digests_of(files: Sequence[NotAcceptedView]) -> tuple[tuple[str, str], ...]:
    return tuple((each.file, each.digest) for each in files)


def library_with(*held: NotAcceptedView) -> LibraryUpdated:
    return LibraryUpdated(not_accepted=held, problems=(), actions_ready=0)


def test_hostile_names_stand_escaped_in_the_list() -> None:
    hostile = replace(
        held_file("x", gated=False),
        name="pay\x1b[2J\u202egnp",
        steps=("github://\x07evil.\r\n ┃ ✓ All seen", "github://\x07evil.second"),
        hosts=("a\u0430.example:443",),
        suite=replace(SUITE, source="/tmp/\x1b]0;owned\x07" + "a" * 200 + "/suite"),
    )
    play = Play(snapshot_of(held=suite(hostile, held_file("y"))), size=(200, 60))
    play.read_all()
    play.shows("pay‹ESC›[2J‹RLO›gnp", "github://‹BEL›evil.", "is xn--a-8sb.example, not aa.example")
    assert not {"\x1b", "\u202e", "\x07", "\r"} & {*play.text}
    assert not [line for line in play.lines if line.lstrip(" ").startswith("┃ ✓ All seen")]


def test_one_key_accepts_every_file_in_the_digest_that_was_shown() -> None:
    held = suite_of_515()
    play = rested(snapshot_of(held=held), size=(80, 24))
    assert "Accept these 515 actions?" in play.text
    play.in_vain("t", "lines not seen. Press t again")
    play.press_rested("t")
    intent = play.asks_for(AcceptSuite)
    assert intent.suite_id == SUITE.suite_id
    assert {*intent.files} == {*digests_of(held)}
    play.port.tell(library_with())
    play.shows("Accepted: 515 actions.")


def test_another_key_leaves_those_to_look_at_unaccepted() -> None:
    held = suite_of_515()
    first = {"draft-create", "file-upload", "page-create", "page-update"}
    left = [each for each in held if each.name in first]
    play = Play(snapshot_of(held=held), size=(60, 16))
    play.press_rested("T", "lines not seen. Press T again")
    play.press_rested("T")
    assert {*play.asks_for(AcceptSuite).files} == {*digests_of(held)} - {*digests_of(left)}
    play.port.tell(library_with(*(replace(each, suite=None) for each in left)))
    play.shows("Accepted: 511 actions.")
    assert play.selected == "held:action:draft-create"
    assert "Accept this action?" in play.text


@pytest.mark.parametrize("held", [
    suite(count=3),
    suite(held_file("a", gated=False), held_file("b", gated=False)),
], ids=["nothing to review first", "nothing else"])  # fmt: skip
def test_the_other_key_is_there_where_it_does_more(held: tuple[NotAcceptedView, ...]) -> None:
    play = rested(snapshot_of(held=held))
    assert "accept the rest" not in play.keys
    play.in_vain("T", "T did nothing: nothing here has to be reviewed first.")
    play.passes(5)
    assert f"t accepts all {len(held)}, exactly as they are." in play.status_line


def test_a_file_that_changes_leaves_the_item_and_the_keys_rest_anew() -> None:
    """A yes to the others names only them; what of them was not accepted after all is said."""
    held = suite(count=4)
    changed, other = (
        replace(held_file(each.name, suite=None, text="2"), change="changed") for each in held[:2]
    )
    play = rested(snapshot_of(held=held))
    play.shows("Accept these 4 actions?")
    play.port.tell(library_with(*held[1:], changed))
    play.shows("Accept these 3 actions?")
    assert not play.armed
    play.press_rested("t")
    assert {*play.asks_for(AcceptSuite).files} == {*digests_of(held[1:])}
    play.port.tell(library_with(changed, other))
    said = f"Accepted 2 of 3. Left out: {other.file}, changed or removed while you were reviewing"
    play.port.tell(IntentRefused(call_id="", message=said))
    play.shows(said)
    assert play.selected == f"held:action:{other.name}"


def test_connectors_stand_first_then_what_came_together_then_single_files() -> None:
    connector = replace(
        held_file("c", suite=None), kind="connector", name="github://example/c@1", gated=None
    )
    queue = Queue()
    queue.load((short(1),), (held_file("alone", suite=None), *suite(count=3), connector))
    assert [item.key for item in queue.items][1:] == [
        "held:connector:github://example/c@1",
        f"suite:{SUITE.suite_id}",
        "held:action:alone",
    ]
    assert queue.not_accepted == 5


def test_every_file_stands_in_the_list_under_what_it_does() -> None:
    other = replace(
        held_file("mail-send"),
        steps=("github://example/mail.draft", "github://example/mail.mail_send"),
        hosts=("mail.example:443",),
        cannot_run="This action cannot run: mail_send is not among the capabilities.",
    )
    changed = held_file("old", change="changed")
    held = suite(held_file("run", gated=False), held_file("get", gated=False, is_read_only=True), other, changed)  # fmt: skip
    sentence = [
        f"{plain_text(block.label)}|{plain_text(block.pieces)}"
        for block in suite_blocks(SuiteFiles(suite=SUITE, files=held))
    ]
    assert sentence[0] == "REVIEW THESE FIRST|1 of 4"
    assert sentence[1] == "|run  runs github://example/connector-tracker.run"
    text = "\n".join(sentence)
    assert "Connector|github://example/connector-tracker\n|github://example/mail" in text
    assert "Hosts|api.tracker.example:443\n|mail.example:443" in text
    gated = text.index("ASK YOU BEFORE EACH RUN|2 of 4")
    both = "github://example/mail.draft, github://example/mail.mail_send"
    assert gated < text.index(f"|mail-send  runs {both}  cannot run as it is")
    assert "Refused|1 of 4. mail-send: This action cannot run: mail_send is not" in text
    old = "old  runs github://example/connector-tracker.old  differs from what you accepted"
    assert old in text
    reads = text.index("RUN WITHOUT ASKING YOU, DECLARED READ-ONLY|1 of 4")
    assert reads < text.index("|get  runs")


@pytest.mark.parametrize(
    ("old", "new", "folds"),
    [
        ("", "", True),
        ("# A comment", "# A comment on 1.0.0", False),
        ("Reads 1.0.0.", "Reads 2.0.0.", False),
        ("wall_seconds = 5", "wall_seconds = 9", False),
        ('hash = "sha256:aa"', 'hash = "sha256:cc"', False),
    ],
)
def test_what_a_version_changes_of_every_file_is_one_line(old: str, new: str, folds: bool) -> None:
    def text(version: str, hash_: str) -> str:
        return (
            f'+++\nversion = "{version}"\nsource = "github://a/b/actions/x@{version}"\n'
            f'version = "{version}"\nhash = "sha256:{hash_}"\nwall_seconds = 5\n# A comment\n+++\n'
            "Reads 1.0.0.\n"
        )

    changes = (
        file_views.AcceptanceChangeView(
            kind="connector_bytes", direction="other", name="github://a/b",
            before="1.0.0 sha256:aa", after="2.0.0 sha256:bb",
        ),
        file_views.AcceptanceChangeView(kind="version", direction="other", before="1.0.0", after="2.0.0"),
        file_views.AcceptanceChangeView(kind="text", direction="other", name="source"),
    )  # fmt: skip
    before = file_views.AcceptedBeforeView(
        name="x.md", digest="0", accepted_at=NOW, text=text("1.0.0", "aa"), changes=changes
    )
    offered = text("2.0.0", "cc" if "cc" in new else "bb").replace(old or "-", new or "-")
    content = file_views.FileContentView(text=offered, before=before)
    files = [replace(held_file(name, change="changed"), content=content) for name in ("x", "y")]
    shown = SuiteFiles(suite=SUITE, files=tuple(files))
    lines = [plain_text(each) for each in lay_out(suite_blocks(shown), 160, 13).lines]
    once = [each for each in lines if "1.0.0 → 2.0.0, with source and connector's hash" in each]
    assert len(once) == folds
    assert any("Changed" in each and "x, y" in each for each in lines) is not folds
    signed = [each for each in lines if "┃ −" in each or "┃ +" in each.replace("+++", "")]
    assert (len(signed) == 0) is folds
    assert not [each for each in signed if "version =" in each]


def test_of_each_changed_connector_the_item_says_whether_its_code_did() -> None:
    module = file_views.AcceptanceChangeView(
        kind="module", direction="other", before="10 bytes", after="99 bytes"
    )
    files: list[NotAcceptedView] = []
    for name, changes in (("a@1", ()), ("b@1", (module,))):
        before = file_views.AcceptedBeforeView(
            name=name, digest="0", accepted_at=NOW, text="", changes=changes
        )
        content = file_views.FileContentView(text="", before=before)
        file = held_file(name, change="changed")
        files.append(replace(file, kind="connector", content=content))
    listed = replace(SUITE, refused=("y.md: is broken\x1b[2J",), gone=("z",))
    shown = SuiteFiles(suite=listed, files=(held_file("x"),), new_connectors=tuple(files))
    lines = [plain_text(each) for each in lay_out(suite_blocks(shown), 160, 13).lines]
    code = [each.partition("┃ ")[2].strip() for each in lines if each.startswith(" Code")]
    assert code == ["the same as before  (a@1)", "10 bytes → 99 bytes  (b@1)"]
    said = {each[:13].strip(): each.partition("┃ ")[2].strip() for each in lines}
    assert (said["Left out"], said["Gone"]) == ("y.md: is broken‹ESC›[2J", "z")


def said(file: NotAcceptedView) -> tuple[list[str], str]:
    warned = [plain_text(each) for each in file_warnings(file, HiddenCharacters())]
    lines = lay_out(file_blocks(file), 160, 13).lines
    return warned, "\n".join(plain_text(each) for each in lines)


@pytest.mark.parametrize(
    ("publisher", "warning", "text"),
    [
        (NEW, "", FILES.FIRST_KEY),
        (replace(NEW, known_as=(OTHER,)), "", FILES.known_key(OTHER)),
        (replace(NEW, accepted="SHA256:new"), "", FILES.ACCEPTED_KEY),
        (replace(NEW, key=""), FILES.warn_unsigned(), FILES.NO_KEY),
        (CHANGED, FILES.warn_refused(NAME, signed=True), "SHA256:old"),
        (replace(CHANGED, key=""), FILES.warn_refused(NAME, signed=False), "SHA256:old"),
        (replace(NEW, resembles=ALIKE), FILES.warn_resembles(NAME, ALIKE), FILES.FIRST_KEY),
        (replace(NEW, other_key_of=OTHER), FILES.warn_other_key(OTHER), FILES.FIRST_KEY),
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
    play = Play(snapshot_of(held=(KEY,)), size=(160, 120), answers=True)
    play.press_rested("t")
    assert play.port.intents == []
    play.shows(f"▲ {FILES.WARN_KEY}. Press t again to accept it.")
    play.press_rested("t")
    play.asks(Accept(kind="publisher", name=NAME, digest="SHA256:new"))


def test_an_offered_key_is_declined() -> None:
    play = Play(snapshot_of(held=(KEY,)), size=(160, 120))
    play.press_rested("x")
    play.asks(RemoveFile(kind="publisher", file="offer.tar.gz"))
    play.port.tell(LibraryUpdated(not_accepted=(), problems=(), actions_ready=0))
    play.shows("removed")


def ready_actions(
    kind: Literal["connector", "publisher"], name: str, digest: str
) -> LibraryItemView:
    return LibraryItemView(
        kind=kind, name=name, file="", digest=digest, state="ready", reason="", accepted_at=NOW,
        accepted_by="person",
    )  # fmt: skip


def test_a_key_is_withdrawn_like_any_acceptance() -> None:
    play = Play(snapshot_of(library=(ready_actions("publisher", NAME, "SHA256:new"),)))
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
        ready_actions("connector", f"{NAME}@1.0.0", "sha256:0"),
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
    new = replace(NEW, resembles=ALIKE)
    files = [replace(held_file(each), publisher=new) for each in "abcd"]

    def head(unsigned: int) -> list[str]:
        nobodys = [replace(each, publisher=replace(new, key="")) for each in files[:unsigned]]
        suite = SuiteFiles(suite=SUITE, files=(*nobodys, *files[unsigned:]))
        return [plain_text(each) for each in suite_head(suite, 120)]

    assert " ▲ 1 of 4 is not signed: nobody vouches for it" in head(1)
    assert " ▲ 3 of 4 are not signed: nobody vouches for them" in head(3)
    resembles = f" ▲ {FILES.warn_resembles(NAME, ALIKE)}"
    assert head(3).count(resembles) == 1
    suite = SuiteFiles(suite=SUITE, files=tuple(files))
    shown = [plain_text(each) for each in lay_out(suite_blocks(suite), 160, 13).lines]
    assert any(FILES.FIRST_KEY in each for each in shown)


def test_a_suites_connector_stands_first_on_its_item() -> None:
    came = replace(connector(), suite=SUITE, account=("oauth2", "mail.read"))
    files = (came, held_file("a", gated=True), held_file("b", gated=False))
    play = Play(snapshot_of(held=files), size=(160, 160), answers=True)
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
        play = Play(snapshot_of(held=shown), size=(160, 120), answers=True)
        play.press_rested("t")
        play.asks(sent)
    other = replace(file, publisher=replace(NEW, key="SHA256:other"))
    assert Item(key="", file=file).version != Item(key="", file=other).version
