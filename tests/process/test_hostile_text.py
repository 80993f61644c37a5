"""The corpus of attacks over every command and at the real console, on a real terminal: nothing of it is obeyed or hidden.

Everything comes over the wire that it comes over in earnest: sessions and calls over HTTP, previews
from the service, files from the home. The console's terminal obeys nothing but what the console is known
to send, and sees some glyphs wider than the console does.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from itertools import chain, cycle
from pathlib import Path

import pytest
import wasmtime

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.support.attacks import ATTACKS, CANARY, RAW, everything, harmless, printed
from tests.support.server_harness import DRAFT, ROOT, Attended, aileron, on_a_terminal
from tests.support.terminal import joins_nothing
from tests.support.variants import variants

ARGUMENT = everything(2_400).replace("\x00", "").encode("utf-8", "surrogatepass")
"""All attacks as one word of a command line, which cannot hold NUL; lone surrogates as their bytes."""


def safe(*words: str | bytes, home: Path) -> str:
    text = printed(on_a_terminal(*words, home=home), colour=True)
    assert "Traceback" not in text
    assert "An internal error of Aileron" not in text
    given = on_a_terminal(*words, "--json", home=home)
    body = printed(given)
    assert given.isascii(), body[:500]
    json.loads(body)
    return text


def toml_string(text: str) -> str:
    """Return *text* as a TOML string, every character of it escaped; lone surrogates have no place there."""
    return '"' + "".join(f"\\U{ord(char):08X}" for char in sendable(text)) + '"'


def action_file(name: str, more: str = "", head: str = "# Title\n") -> str:
    good = (ROOT / "examples" / "actions" / "get-draft.md").read_text(encoding="utf-8")
    text = good.replace('name = "get-draft"', f'name = "{name}"', 1)
    text = text.replace("actions/get-draft@", f"actions/{name}@", 1)
    front, _, _ = text.rpartition("+++")
    return f"{front}{more}\n+++\n\n{head}"


@pytest.fixture
def hostile_files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    for number, attack in enumerate(ATTACKS):
        said = toml_string(attack.text)
        one = attack.text.replace("\n", " ")
        for name, text in {
            "key": action_file(f"key-{number}", f"{said} = 1"),
            "value": action_file(f"value-{number}").replace('type = "string"', f"type = {said}"),
            "op": action_file(f"op-{number}").replace('op = "get_draft"', f"op = {said}"),
            "name": action_file(f"x-{number}").replace(f'name = "x-{number}"', f"name = {said}", 1),
            "head": action_file(f"head-{number}", head=f"# {one}\n"),
            "raw": f"+++\n{attack.text}\n+++\n",
        }.items():
            (folder / f"{name}-{number}.md").write_bytes(text.encode("utf-8", "replace"))
        called = attack.text.replace("/", "|").replace("\x00", "").encode("utf-8", "surrogatepass")
        with contextlib.suppress(OSError):
            name = os.fsdecode(b"n%d" % number + called[:150] + b".md")
            (folder / name).write_bytes(b"+++\nname = \n+++\n")
    for name, data in RAW.items():
        (folder / f"{name}.md").write_bytes(b"+++\n" + data + b"\n+++\n")
    return folder


def test_check_add_and_list_show_hostile_files_as_marks(hostile_files: Path, home: Path) -> None:
    output = safe("action", "check", str(hostile_files), home=home)
    assert "‹ESC›" in output
    assert "‹RLO›" in output
    safe("action", "check", str(hostile_files), "--portable", home=home)
    safe("action", "add", str(hostile_files), home=home)
    shown = safe("action", "list", home=home)
    assert "head-0" in shown
    for word in (ARGUMENT, b"\x1b]0;x\x07"):
        for command in ("check", "add", "remove"):
            safe("action", command, word, home=home)
    for path in hostile_files.iterdir():  # past `action add`
        shutil.copy(path, home / "actions")
    shown = safe("action", "list", home=home)
    assert "‹ESC›" in shown
    assert "\n" + CANARY not in shown


def test_a_hostile_connector_is_installed_and_listed_as_marks(tmp_path: Path, home: Path) -> None:
    """Whatever its manifest says it in: each in `make test-all`."""
    good = (ROOT / "examples/connectors/mail-drafts/manifest.toml").read_text(encoding="utf-8")
    smallest = '(module (memory (export "memory") 1) (func (export "_start")))'
    (tmp_path / "connector.wasm").write_bytes(wasmtime.wat2wasm(smallest))
    said = toml_string(everything(2_400))
    changes = [
        ('name = "local://aileron/mail-drafts"', f"name = {said}"),
        ('"http_request", ', f"{said}, "),
        ('publisher = "Aileron\'s own example"', f"publisher = {said}"),
        ('"gmail.googleapis.com:443"', said),
        ('version = "0.1.0"', f"version = {said}"),
        ("", f"{said} = 1\n"),
    ]
    for old, new in variants(changes):
        assert old in good
        (tmp_path / "manifest.toml").write_text(good.replace(old, new, 1))
        safe("connector", "check", str(tmp_path), home=home)
        safe("connector", "install", str(tmp_path), home=home)
        safe("connector", "run", str(tmp_path), "get_draft", "--args", "{}", home=home)
        safe("connector", "list", home=home)


def test_words_of_the_command_line_are_not_given_back_raw(home: Path) -> None:
    """A command that somebody else wrote for you to paste."""
    for before in (
        *("", "action", "action list", "action run", "action run x --wait", "audit show"),
        *("audit list --limit", "open approval", "connector check", "connector install"),
        *("connector remove", "console --route", "serve --route", "logs -n", "launch"),
    ):
        words = (*before.split(), b"--" + ARGUMENT if before == "action list" else ARGUMENT)
        text = printed(on_a_terminal(*words, home=home), colour=True)
        assert "Traceback" not in text, words
        printed(on_a_terminal(*words, "--json", home=home))
    folder = os.fsencode(home.parent) + b"/" + ARGUMENT.replace(b"/", b"|")[:200]
    for words in (("action", "list"), ("audit", "list"), ("status",), ("init",), ("logs",)):
        printed(on_a_terminal(*words, "--home", folder, home=home), colour=True)


def test_colour_is_only_for_a_terminal_and_can_be_switched_off(home: Path) -> None:
    (home / "actions" / "broken.md").write_text("+++\nname = \n+++\n")
    assert "\x1b" not in aileron("action", "list", home=home, code=1).stdout
    words = ("action", "list")
    assert b"\x1b[31m" in on_a_terminal(*words, home=home)
    assert b"\x1b" not in on_a_terminal(*words, "--no-color", home=home)
    assert b"\x1b" not in on_a_terminal(*words, home=home, NO_COLOR="1")


def test_what_services_and_persons_say_becomes_marks(attended: Attended, mailbox: Mailbox) -> None:
    home = attended.home
    body = sendable(everything(3_000))
    for key in ("to", "subject"):
        mailbox.control(change={"id": DRAFT, key: " ".join(body.splitlines())})
    mailbox.control(change={"id": DRAFT, "body": body})
    shown = safe("action", "run", "get-draft", "--arg", f"id={DRAFT}", home=home)
    assert "\\u001b[2J" in shown
    safe("action", "run", "list-drafts", home=home)
    word = ARGUMENT.decode("utf-8", "surrogateescape")
    safe("action", "run", "get-draft", "--arg", f"id={word}", home=home)
    safe("action", "run", "get-draft", "--arg", f"{word}=1", home=home)
    safe("action", "run", "get-draft", "--args", json.dumps({word: word}), home=home)

    opened = attended.session(agent=body[:64], label=body[:128], cwd="/" + body[:500])
    pending = attended.run("send-draft", {"draft_id": DRAFT}, opened["token"]).json
    attended.ready(pending["approval_id"])
    attended.tell(deny=pending["approval_id"], reason=everything(1_900))
    attended.state(pending["approval_id"], "denied")
    safe("audit", "list", home=home)
    safe("audit", "show", pending["approval_id"], home=home)
    safe("audit", "verify", home=home)
    safe("status", home=home)
    for words in (("logs", "-n", "1000"), ("logs",)):
        printed(on_a_terminal(*words, home=home), colour=True)


DRAWN = 0.2
"""Seconds after a key until what it opens is on the terminal; what comes later is looked at with the next key."""


def sendable(text: str) -> str:
    """Return *text* as JSON over HTTP carries it: without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def install_attacks(home: Path) -> None:
    turn = cycle(ATTACKS)
    for number in range(4):
        text = sendable(next(turn).text).replace("\n", " ")
        name = f"spoilt-{number}"
        written = action_file(name, head=f"# {text}\n")
        written = written.replace('label = "Draft"', f"label = {toml_string(text)}")
        (home / "actions" / f"{name}.md").write_text(written)
        broken = action_file(f"broken-{number}", f"{toml_string(next(turn).text)} = 1")
        (home / "actions" / f"broken-{number}.md").write_text(broken)


def check_terminal(console: ScreenConsole) -> None:
    cells = console.pty.cells
    assert cells.strangers == []
    assert cells.copied == []
    drawn = {char for line in cells.lines for char in line}
    assert [char for char in drawn if not harmless(char) and char not in "\ufe0e\ufe0f"] == []


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", variants([(120, 36), (80, 24), (200, 60)]))
def test_a_hostile_world_is_shown_and_never_obeyed(
    sit: Callable[..., ScreenConsole], home: Path, mailbox: Mailbox, size: tuple[int, int]
) -> None:
    install_attacks(home)
    console = sit(size=size, width_of=joins_nothing, answers=True)
    turn = cycle(ATTACKS)
    for number in range(6):
        text = sendable(everything(600) if number == 0 else next(turn).text)
        head = " ".join(text.splitlines())[:2_000]
        mailbox.control(change={"id": DRAFT, "to": head, "subject": head, "body": text})
        agent, label = sendable(next(turn).text)[:64], sendable(next(turn).text)[:128]
        opened = console.session(agent=agent, label=label, cwd="/" + sendable(next(turn).text))
        args = {"draft_id": DRAFT if number % 3 else sendable(next(turn).text)}
        assert console.run("send-draft", args, opened["token"]).status == 202
    console.pty.until(lambda: " 6 " in console.pty.cells.lines[0], "all wait")
    pages = ((page, b"\r", b"j", b"\x1b", b"?", b"\x1b") for page in (b"2", b"3", b"4", b"5", b"1"))
    for key in (b"j", b"j", b"k", b" ", b"j", b" ", b"j", b"j", *chain(*pages)):
        console.pty.type(key)
        console.pty.settle(DRAWN)
        check_terminal(console)
    console.pty.resize((size[0] + 10, size[1] + 4))
    console.pty.settle(1.0)
    check_terminal(console)
    titles = console.pty.cells.titles
    assert all(title in ("", "aileron") or title.endswith(") aileron") for title in titles)
    assert {state for (state,) in console.rows()} == {"pending"}
