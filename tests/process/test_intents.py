"""The way in of a person's own commands, on a real console's socket: what it takes, and that nothing decides there."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aileron_core.canonical import sha256_hex
from aileron_core.console_port.codec import to_frame
from aileron_core.console_port.intents import Intent
from aileron_core.server.intent_routes import PROOFS
from aileron_core.vault.secret import Secret
from examples.mailbox.server import Mailbox
from tests.support.any_values import values
from tests.support.server_harness import DRAFT, Console, Serve

INTENTS: tuple[type, ...] = get_args(Intent)
PHRASE = "a passphrase that is right"
DECIDED = {
    "approval.approved", "approval.denied", "approval.edited", "library.accepted", "library.taken_in", "library.withdrawn",
    "session.ended", "console.paused", "console.everything_stopped", "run.stopped", "run.started",
}  # fmt: skip
_EXAMPLES = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def ended_after(console: Console, body: bytes) -> bytes:
    """Return all that the console says to *body* and a second request behind it, until it ends the connection."""
    head = b"POST /v1/intents HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: %d\r\n\r\n" % len(body)
    with contextlib.closing(console.connection(local=True)) as connection:
        connection.connect()
        sock = connection.sock
        assert sock is not None
        sock.sendall(head + body[:2_000_000] + b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        return b"".join(iter(lambda: sock.recv(65536), b""))


def test_a_frame_that_cannot_be_read_ends_the_connection(shared: Console) -> None:
    wrong: list[Any] = [
        {"UnlockVault": {"passphrase": 5}},
        {"UnlockVault": {"passphrase": PHRASE, "more": 1}},
        {"SetKeyring": {"passphrase": PHRASE, "on": "yes"}},
        {"Accept": {"kind": "anything", "name": "x", "digest": "0"}},
        {"NoSuchIntent": {}},
        {"ReadVault": {}, "LockVault": {}},
        [],
    ]
    large = json.dumps({"RevokeAccount": {"name": "x" * 1024 * 1024}}).encode()
    for each in [*(json.dumps(each).encode() for each in wrong), b"{", b"\xff", large]:
        answer = ended_after(shared, each)
        assert answer.startswith(b"HTTP/1.1 413 " if each == large else b"HTTP/1.1 400 "), each
        assert answer.count(b"HTTP/1.1 ") == 1, each


def test_what_takes_a_passphrase_as_a_proof_is_refused_without_one(shared: Console) -> None:
    """The list and the kinds agree: each has the field exactly if it needs the proof."""
    for kind, proof in PROOFS.items():
        has = any(each.name == "passphrase" and each.default is None for each in fields(kind))
        assert has == (proof == "passphrase"), kind
        if has:
            named = get_type_hints(kind)
            text = {name: "x" for name, hint in named.items() if hint in (str, Secret)}
            answer = shared.ask(kind.__name__, **text)
            assert (answer.status, answer.error["message"]) == (400, "'passphrase' is missing.")


@pytest.fixture(params=["a call that waits", "files that nobody accepted"])
def held(
    request: pytest.FixtureRequest, home: Path, serve: Serve, mailbox: Mailbox
) -> Iterator[tuple[Console, list[str]]]:
    waits = request.param == "a call that waits"
    console = serve(mailbox, accept=waits)
    token = console.session()["token"]
    file = home / "actions" / "send-draft.md"
    # Without its own file, or its preview's, a call that waits is refused once the vault is unlocked again.
    other = "list-drafts.md" if waits else file.name
    words = [sha256_hex(file.read_bytes()), "send-draft", other, "", PHRASE]
    asked = console.run("send-draft", {"draft_id": DRAFT}, token)
    assert asked.status == (202 if waits else 409)
    for row in console.rows("approval_id, run_id, session_id, args_sha256"):
        words += row
    before = len(console.records())
    yield console, words
    if waits:
        path = f"/v1/action-approvals/{words[5]}/result"
        assert console.get(path, token=token).json["status"] == "pending_approval"
    after = {each["event"] for each in console.records()[before:]}
    assert not after & DECIDED


def test_no_other_intent_is_taken(held: tuple[Console, list[str]]) -> None:
    """Not one that decides, accepts a file, ends a session, stops or undoes: the list is closed."""
    console, words = held

    @_EXAMPLES
    @given(st.data())
    def tries(data: st.DataObject) -> None:
        for kind in set(INTENTS) - set(PROOFS):
            sent = to_frame(data.draw(values(kind, st.sampled_from(words))))
            assert console.post("/v1/intents", sent, local=True).status == 400, kind

    tries()


def test_no_intent_that_is_taken_decides_or_accepts(held: tuple[Console, list[str]]) -> None:
    console, words = held

    @_EXAMPLES
    @given(st.data())
    def tries(data: st.DataObject) -> None:
        for kind in PROOFS:
            sent = to_frame(data.draw(values(kind, st.sampled_from(words))))
            assert console.post("/v1/intents", sent, local=True).status in {
                200, 204, 400, 403, 404, 409, 412, 429, 503,
            }, kind  # fmt: skip

    tries()
    console.ask("CreateVault", passphrase=PHRASE)
    tries()
