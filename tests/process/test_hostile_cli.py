"""The corpus of attacks over every command, on a real terminal: nothing of it is obeyed or hidden."""

import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest
import wasmtime

from examples.mailbox.server import Mailbox
from tests.support.attacks import ATTACKS, CANARY, RAW, everything, printed
from tests.support.server_harness import DRAFT, ROOT, Attended, on_a_terminal
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
    kept = text.encode("utf-8", "replace").decode()
    return '"' + "".join(f"\\U{ord(char):08X}" for char in kept) + '"'


def action_file(name: str, more: str = "", head: str = "# Title\n") -> str:
    good = (ROOT / "examples" / "actions" / "get-draft.md").read_text(encoding="utf-8")
    text = good.replace('name = "get-draft"', f'name = "{name}"', 1)
    text = text.replace("actions/get-draft@", f"actions/{name}@", 1)
    front, _, _ = text.rpartition("+++")
    return f"{front}{more}\n+++\n\n{head}"


@pytest.fixture
def hostile_files(tmp_path: Path) -> Path:
    """Action files that say every attack: as keys, values, names, headings, and as bytes."""
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


def test_checking_adding_and_listing_hostile_files_shows_marks(
    hostile_files: Path, home: Path
) -> None:
    """Every problem quotes what it is about; none of it reaches the terminal as it is."""
    output = safe("action", "check", str(hostile_files), home=home)
    assert "‹ESC›" in output
    assert "‹RLO›" in output
    safe("action", "check", str(hostile_files), "--portable", home=home)
    safe("action", "add", str(hostile_files), home=home)
    shown = safe("action", "list", home=home)
    assert "head-0" in shown
    for word in (ARGUMENT, b"\x1b]0;x\x07"):
        for command in (("action", "check"), ("action", "add"), ("action", "remove")):
            safe(*command, word, home=home)
    for path in hostile_files.iterdir():  # past `action add`
        shutil.copy(path, home / "actions")
    shown = safe("action", "list", home=home)
    assert "‹ESC›" in shown
    assert "\n" + CANARY not in shown


SAID = toml_string(everything(2_400))
SMALLEST = wasmtime.wat2wasm('(module (memory (export "memory") 1) (func (export "_start")))')
MANIFEST = (ROOT / "examples" / "connectors" / "mail-drafts" / "manifest.toml").read_text(
    encoding="utf-8"
)


HOSTILE = {
    "name": MANIFEST.replace('name = "local://aileron/mail-drafts"', f"name = {SAID}"),
    "host call": MANIFEST.replace('"http_request", ', f"{SAID}, "),
    "publisher": MANIFEST.replace('publisher = "Aileron\'s own example"', f"publisher = {SAID}"),
    "host": MANIFEST.replace('"gmail.googleapis.com:443"', SAID),
    "version": MANIFEST.replace('version = "0.1.0"', f"version = {SAID}"),
    "key": f"{SAID} = 1\n{MANIFEST}",
}


@pytest.mark.parametrize("field", variants(HOSTILE))
def test_a_hostile_connector_is_checked_installed_and_listed_as_marks(
    tmp_path: Path, home: Path, field: str
) -> None:
    text = HOSTILE[field]
    assert text != MANIFEST
    (tmp_path / "connector.wasm").write_bytes(SMALLEST)
    (tmp_path / "manifest.toml").write_text(text)
    safe("connector", "check", str(tmp_path), home=home)
    safe("connector", "install", str(tmp_path), home=home)
    safe("connector", "run", str(tmp_path), "get_draft", "--args", "{}", home=home)
    safe("connector", "list", home=home)


def test_words_of_the_command_line_are_not_given_back_raw(home: Path) -> None:
    """A command that somebody else wrote for you to paste."""
    for words in (
        (ARGUMENT,),
        ("action", ARGUMENT),
        ("action", "list", b"--" + ARGUMENT),
        ("action", "run", ARGUMENT),
        ("action", "run", "x", "--wait", ARGUMENT),
        ("audit", "show", ARGUMENT),
        ("audit", "list", "--limit", ARGUMENT),
        ("open", "approval", ARGUMENT),
        ("connector", "check", ARGUMENT),
        ("connector", "install", ARGUMENT),
        ("connector", "remove", ARGUMENT),
        ("console", "--route", ARGUMENT),
        ("serve", "--route", ARGUMENT),
        ("logs", "-n", ARGUMENT),
        ("launch", ARGUMENT),
    ):
        text = printed(on_a_terminal(*words, home=home), colour=True)
        assert "Traceback" not in text, words
        printed(on_a_terminal(*words, "--json", home=home))
    folder = os.fsencode(home.parent) + b"/" + ARGUMENT.replace(b"/", b"|")[:200]
    for words in (("action", "list"), ("audit", "list"), ("status",), ("init",), ("logs",)):
        raw = on_a_terminal(*words, "--home", folder, home=home)
        printed(raw, colour=True)


def test_what_services_and_persons_say_is_printed_as_marks(
    attended: Attended, mailbox: Mailbox
) -> None:
    """Outputs, failures that quote the service, reasons of a person, records, the log."""
    home = attended.home
    body = everything(3_000).encode("utf-8", "replace").decode()
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
