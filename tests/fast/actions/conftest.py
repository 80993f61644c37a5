"""A small valid action file, with lines of it replaced or added."""

from collections.abc import Callable

import pytest

from aileron_core.actions.load import load_action
from aileron_core.actions.model import Action

HEAD = """+++
name = "send-note"
version = "1.2.3"
source = "github://acme/notes/actions/send-note@1.2.3"

[[requires.connectors]]
name = "github://acme/notes"
version = "1.2.3"
hash = "sha256:ab"
capabilities = ["send", "read"]

[match]
intent = "send a note"

[[execute]]
id = "send"
connector = "github://acme/notes"
op = "send"
idempotent = false
"""
TAIL = "+++\n\n# Send a note\n\nSends it.\n"

Build = Callable[..., bytes]


@pytest.fixture
def manifest() -> Build:
    """Build the bytes of an action file: `manifest(extra, old="...", new="...")`."""

    def build(extra: str = "", *, old: str = "", new: str = "") -> bytes:
        assert old in HEAD
        head = HEAD.replace(old, new) if old else HEAD
        return (head + extra + TAIL).encode()

    return build


@pytest.fixture
def load(manifest: Build) -> Callable[..., Action]:
    """Load what `manifest` builds."""

    def loaded(extra: str = "", *, old: str = "", new: str = "") -> Action:
        return load_action(manifest(extra, old=old, new=new), "send-note.md")

    return loaded
