"""What leaves for clipboard, pager and browser: the drawn form, nothing by accident; which addresses open."""

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App

from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_tui.draw.blocks import COMPACT_GUTTER, lay_out
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.formats import field_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.styled_text import parse_link
from aileron_tui.draw.text import wrap
from aileron_tui.pages.reading import Field, fields_in_view
from aileron_tui.terminal import handoff
from aileron_tui.terminal.browser import browser_command, open_in_browser
from aileron_tui.terminal.notifications import wrap_for_multiplexer
from tests.support.screens.calls import approval

NOW = 1_791_468_120.0
USER = "https://bank.example@evil.example/"


def fields(text: str, first: int = 0, last: int = 10_000, width: int = 60) -> tuple[Field, ...]:
    named = (FieldView(label="To", value="a@b.example"), FieldView(label="Body", value=text))
    preview = PreviewView(status="ready", fields=named, host="h.example", updated_at=NOW)
    sent = (FieldView(label="WILL HAPPEN", value=text),)
    blocks = approval_blocks(approval(1, NOW, preview=preview, arguments=sent), NOW)
    return fields_in_view(blocks, lay_out(blocks, width, COMPACT_GUTTER), first, last)


def test_fields_in_view_are_copied_whole_with_their_marks_and_named_by_us_alone() -> None:
    text = "Hi,\x1b[2J " + "word " * 40 + "\nsecond \u202eline"
    body = next(each for each in fields(text, width=40) if each.name == "Body")
    assert body.text == "Hi,‹ESC›[2J " + "word " * 40 + "\nsecond ‹RLO›line"
    assert (body.lines, body.marks) == (2, 2)
    # The status line names fields of the action file; an argument's name is outside text.
    names = [each.name for each in fields("x")]
    assert names[:2] == ["To", "Body"]
    assert "WILL HAPPEN" not in names
    assert "" in names
    whole = fields("one\ntwo\nthree")
    assert [each.name for each in fields("one\ntwo\nthree", 1, 2)] == ["To"]
    assert [each.name for each in fields("one\ntwo\nthree", 3, 5)] == ["Body"]
    assert len(whole) > 5


@given(st.text(max_size=40))
def test_no_copy_holds_a_character_that_a_terminal_would_obey(text: str) -> None:
    for each in fields(text):
        assert all(char == "\n" or char.isprintable() for char in each.text), each.text


def test_a_sequence_goes_through_a_multiplexer_only_where_there_is_one() -> None:
    """tmux wants its escapes doubled, screen takes them as they are."""
    sequence = "\x1b]52;c;YQ==\x07"
    assert wrap_for_multiplexer(sequence, {}) == sequence
    doubled = "\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\"
    assert wrap_for_multiplexer(sequence, {"TMUX": "/tmp/x"}) == doubled
    assert wrap_for_multiplexer(sequence, {"STY": "1.x"}) == f"\x1bP{sequence}\x1b\\"


def test_the_pager_is_the_persons_own_or_less_and_gets_nothing_of_ours() -> None:
    assert handoff.pager_command({}) == ["less"]
    assert handoff.pager_command({"PAGER": "  "}) == ["less"]
    assert handoff.pager_command({"PAGER": "less -R 'a b'"}) == ["less", "-R", "a b"]
    assert handoff.pager_command({"PAGER": "less 'open"}) == ["less"]
    given_ = {
        "PATH": "/bin", "AILERON_TOKEN": "secret", "LESSOPEN": "|x %s", "LESSKEY": "/x", "LESS": "-i",
    }  # fmt: skip
    assert handoff.pager_environment(given_) == {
        "PATH": "/bin", "LESS": "-i", "LESSSECURE": "1", "LESSHISTFILE": "-",
    }  # fmt: skip


async def test_the_pager_reads_the_text_from_a_pipe(tmp_path: Path) -> None:
    script = tmp_path / "pager"
    script.write_text(f'#!/bin/sh\n(cat; echo "$AILERON_X$LESSSECURE") > {tmp_path}/out\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    environment = {**handoff.pager_environment(os.environ | {"AILERON_X": "no"})}
    process = await handoff.start_pager([str(script)], environment)
    await process.communicate("one\n‹ESC›two ".encode())
    assert process.returncode == 0
    assert (tmp_path / "out").read_text() == "one\n‹ESC›two 1\n"


def test_a_browser_is_only_one_that_stands_beside_the_terminal() -> None:
    """A text browser would take the console's place."""
    assert browser_command({}, "linux") is None
    assert browser_command({"DISPLAY": ":0"}, "linux") == "xdg-open"
    assert browser_command({"WAYLAND_DISPLAY": "w"}, "linux") == "xdg-open"
    assert browser_command({}, "darwin") == "open"


def test_another_machines_address_opens_only_if_https(monkeypatch: pytest.MonkeyPatch) -> None:
    """A login's address, at an attached console, is the server's: it can name a file, or a program's scheme."""
    opened, said = list[str](), list[str]()
    monkeypatch.setattr(handoff, "open_in_browser", lambda _program, url, _done: opened.append(url))
    carried = handoff.TerminalHandoff(App(), {"DISPLAY": ":0"}, say=said.append)
    for url in ("file:///etc/passwd", "HTTPS://a.example", "http://a.example", "https://а.example"):
        carried.open_link(url)
    assert (opened, len(said)) == ([], 4)
    carried.open_link("https://a.example/authorize?x=1")
    assert opened == ["https://a.example/authorize?x=1"]


def test_the_browser_gets_the_address_as_one_word_and_no_terminal(tmp_path: Path) -> None:
    program = tmp_path / "open"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/got\ntest ! -t 0\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    results: list[bool] = []
    done = threading.Event()
    url = "http://127.0.0.1:8517/review/act-20261008T140152-0000000000000001"
    open_in_browser(str(program), url, lambda worked: (results.append(worked), done.set()))
    assert done.wait(10)
    assert results == [True]
    assert (tmp_path / "got").read_text() == f"{url}|"
    done.clear()
    none = str(tmp_path / "none")
    open_in_browser(none, url, lambda worked: (results.append(worked), done.set()))
    assert done.wait(10)
    assert results == [True, False]


@pytest.mark.parametrize(
    "written",
    [
        "javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "mailto:a@b.example",
        "/path", "example.org", "https://", "https:///x", "https://good.example\\@evil.example/",
        "https://good.example\t.evil.example", "https://a.example/\u202egpj", "https://a.example:x/",
        "https://[::1", "https://a.example/" + "x" * 9000, "https://a b.example/", "-https://a.example",
        "https://\u200b.example/",
    ],
)  # fmt: skip
def test_what_browsers_read_in_other_ways_is_no_link(written: str) -> None:
    assert parse_link(written) is None


@pytest.mark.parametrize(
    ("written", "url", "host"),
    [
        ("https://A.example/x?y=1#z", "https://a.example/x?y=1#z", "a.example"),
        ("HTTP://a.example:8080", "http://a.example:8080", "a.example"),
        ("https://p\u0430ypal.com/\u00e9", "https://xn--pypal-4ve.com/%C3%A9", "xn--pypal-4ve.com"),
        (USER, USER, "evil.example"),
        ("https://[::1]/", "https://[::1]/", "[::1]"),
        ("https://a.example/%2e%2e/\"'<", "https://a.example/%2e%2e/%22'%3C", "a.example"),
    ],
)
def test_what_opens_is_what_was_shown_in_ascii(written: str, url: str, host: str) -> None:
    target = parse_link(written)
    assert target is not None
    assert (target.url, target.host) == (url, host)
    assert target.url.isascii()
    assert target.has_user == ("@" in written)
    assert target.is_renamed == ("xn--" in host)


def test_a_link_is_found_in_any_text_and_stays_one_where_it_is_wrapped() -> None:
    text = 'See (https://a.example/b(c)), "http://b.example".\n\n\n\n\n\nhttps://p\u0430ypal.com/x!'
    lines = list(field_lines(FieldView(label="Body", value=text), HiddenCharacters()))
    found = [{piece.href for piece in line if piece.href} for line in lines]
    both = {"https://a.example/b(c)", "http://b.example"}
    assert found == [both, set(), {"https://pаypal.com/x"}]
    wrapped = wrap(lines[2], 8)
    assert len(wrapped) > 1
    assert all(any(piece.href for piece in each.pieces) for each in wrapped[:-1])
