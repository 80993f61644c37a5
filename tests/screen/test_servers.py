"""An MCP server of a person's own: what there is to accept of it, and the key for one that ended too often."""

from collections.abc import Mapping
from dataclasses import replace

from aileron_core.console_port.file_views import FileContentView, ServerView
from aileron_core.console_port.intents import ReleaseServer
from aileron_tui.draw.blocks import lay_out
from aileron_tui.draw.file_page import file_blocks
from aileron_tui.draw.text import plain_text
from aileron_tui.words.files import server_remarks
from tests.screen.driving import NOW, start
from tests.screen.offered_files import connector
from tests.support.screens.home import library_items
from tests.support.screens.play import Play

SERVER = ServerView(
    program="/usr/bin/node /srv/index.js (npm:files@1.2.3)",
    files_read=("/home/me/read",),
    files_write=("/home/me/notes",),
    secrets=("TOKEN",),
    is_rehearsed=False,
    is_remote=False,
    tools={"run": ("list\x1b[2J", "read"), "ask": ("write",), "off": ("drop",)},
)
CONTENT = FileContentView(text="[server]\n", server=SERVER)


def remarks(tools: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [*server_remarks(replace(SERVER, tools=tools), has_hosts=True)]


def test_a_server_is_accepted_by_what_it_touches_and_a_word_for_each_tool() -> None:
    """And with what nobody can promise of it."""
    file = replace(connector(), name="mcp://local/files@1.0.0", content=CONTENT)
    lines = [plain_text(each) for each in lay_out(file_blocks(file), 110, 13).lines]
    text = "\n".join(lines)
    assert text.index("/home/me/notes") < text.index("Digest")
    for label, value in (
        ("Writes", "/home/me/notes"),
        ("Reads", "/home/me/read"),
        ("Secrets", "TOKEN"),
        ("Run unasked", "read"),
        ("Ask you", "write"),
        ("Off", "drop"),
    ):
        assert any(label in line and value in line for line in lines), label
    assert "\x1b" not in text
    assert "its author's claim" in text
    assert "That such a tool only reads is the server's claim" in " ".join(
        text.replace("┃", " ").split()
    )
    looks = {"look": ("read",), "ask": ("write",)}
    assert any("is the server's claim" in each for each in remarks(tools=looks))
    assert not any("claim" in each for each in remarks(tools={"ask": ("write",)}))
    assert "The server itself holds the secrets" in text
    assert "every user" not in text
    shown = replace(SERVER, program="/usr/bin/files --token ${secret.TOKEN}")
    argument = replace(file, content=replace(CONTENT, server=shown))
    lines = [plain_text(each) for each in lay_out(file_blocks(argument), 110, 13).lines]
    assert "can be read by every user of this machine" in "\n".join(lines)


def test_a_key_has_a_server_that_ended_too_often_started_again() -> None:
    held = replace(
        library_items(NOW)[3],
        kind="connector",
        connector="mcp://local/files",
        state="cannot_run",
        is_held=True,
        reason="It ended three times within a minute; the last time it ended. Press s to have it started again.",
        refused_hosts=("evil.example:443",),
        content=CONTENT,
    )
    play = Play(start(library=(held,)))
    play.go("4", held.name)
    play.press_alone("enter", "evil.example:443")
    play.press_alone("s")
    play.asks(ReleaseServer(name="mcp://local/files"))
    play = Play(start(library=(replace(held, is_held=False),)))
    play.go("4", held.name)
    play.press_alone("s")
    assert not play.port.intents
