"""The example connector against the local mailbox, and its actions against it."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.wasm.connector import WasmConnector
from tests.support.guests import call, failed, output
from tests.support.variants import ALL

EXAMPLES = Path(__file__).parents[3] / "examples"

NUMBERS, GERMAN, CONTRACT, BOARD = "r-8842190447", "r-8842190312", "r-8842189950", "r-8842188204"


def test_a_draft_is_read_whole(drafts: WasmConnector, mailbox: Any) -> None:
    """Gmail's JSON, and the text in full where the snippet stops at 200 characters."""
    draft = output(call(drafts, "get_draft", args={"id": CONTRACT}, read_only=True))
    (held,) = [d for d in mailbox.state()["drafts"] if d["id"] == CONTRACT]
    assert draft["text"] == held["body"]
    assert len(draft["text"]) > 3000
    assert len(draft["message"]["snippet"]) <= 200
    headers = {h["name"]: h["value"] for h in draft["message"]["payload"]["headers"]}
    assert headers["Bcc"] == "archive@nordlicht.example"


def test_nothing_of_a_message_is_hidden(drafts: WasmConnector) -> None:
    """The HTML part and the attachment's name stand in the text that a person decides by."""
    first, second = (output(call(drafts, "get_draft", args={"id": BOARD})) for _ in range(2))
    text = first["text"]
    assert text.startswith("Dear board,")
    assert "<b>October</b>" in text
    assert "pack.pdf (application/pdf)" in text
    # Gmail gives an attachment another id in every answer: nothing has changed, and the draft is sent.
    assert first == second
    assert "attachmentId" not in repr(first)


def test_a_text_that_gmail_sends_apart_is_no_preview(drafts: WasmConnector, mailbox: Any) -> None:
    """Better none than one without the text; an edit must not lose it either."""
    mailbox.control(change={"id": NUMBERS, "body": "x" * (4 * 1024 * 1024 + 1)})
    shown = call(drafts, "get_draft", args={"id": NUMBERS}, read_only=True)
    assert "too large" in failed(shown).message
    assert failed(call(drafts, "update_draft", args={"id": NUMBERS, "subject": "Q4"}))
    assert [each["method"] for each in mailbox.state()["requests"]] == ["GET", "GET"]


def test_sending_sends_once(drafts: WasmConnector, mailbox: Any) -> None:
    """The draft is gone, the mail is out, and a second time there is no such draft."""
    sent = call(drafts, "send_draft", args={"draft_id": NUMBERS})
    assert (sent.requests_sent, sent.last_status) == (1, 200)
    (mail,) = mailbox.state()["sent"]
    assert mail["to"] == "Anna Brandt <anna.brandt@nordlicht.example>"
    assert mail["subject"] == "Q3 numbers"
    again = failed(call(drafts, "send_draft", args={"draft_id": NUMBERS}))
    assert (again.class_, again.details) == ("external_api_error", {"status": 404})
    assert again.message == "Gmail answered 404: Requested entity was not found."
    assert len(mailbox.state()["sent"]) == 1


def test_lists_go_page_by_page(drafts: WasmConnector) -> None:
    seen: list[str] = []
    args: dict[str, Any] = {"max_results": 2}
    while True:
        page = output(call(drafts, "list_drafts", args=args))
        seen += [draft["id"] for draft in page["drafts"]]
        if "nextPageToken" not in page:
            break
        args["page_token"] = page["nextPageToken"]
    assert len(seen) == len(set(seen)) == 5
    found = output(call(drafts, "list_drafts", args={"query": "subject:q3 to:anna"}))
    assert [draft["id"] for draft in found["drafts"]] == [NUMBERS]
    assert "drafts" not in output(call(drafts, "list_drafts", args={"query": "&q=q3"}))


def test_an_update_keeps_what_it_is_not_told_to_change(drafts: WasmConnector, mailbox: Any) -> None:
    """Subject and Bcc change, with letters beyond ASCII; text and recipients stay."""
    (before,) = [d for d in mailbox.state()["drafts"] if d["id"] == GERMAN]
    subject = "Rückfrage – „Angebot“ vom zweiten Oktober, Übergabe und Prüfung 日本語" * 3
    change = {"subject": subject, "bcc": "audit@nordlicht.example"}
    assert call(drafts, "update_draft", args={"id": GERMAN, **change}).requests_sent == 2
    (after,) = [d for d in mailbox.state()["drafts"] if d["id"] == GERMAN]
    assert after == before | change


@pytest.mark.parametrize(
    ("op", "args", "words"),
    [
        ("get_draft", {}, "argument id is missing"),
        ("get_draft", {"id": 5}, "argument id must be a string"),
        ("get_draft", {"id": ".."}, "argument id is no id"),
        ("list_drafts", {"max_results": 0}, "from 1 to 500"),
        ("list_drafts", {"max_results": 1.5}, "must be an integer"),
        ("send_draft", {"id": NUMBERS}, "argument draft_id is missing"),
        ("update_draft", {"id": NUMBERS, "subject": "a\r\nBcc: evil@x.example"}, "line break"),
        ("update_draft", {"id": BOARD, "subject": "x"}, "more than plain text"),
        ("delete_draft", {"id": NUMBERS}, "there is no op delete_draft"),
    ],
)
def test_wrong_arguments_are_errors_and_change_nothing(
    drafts: WasmConnector, mailbox: Any, op: str, args: dict[str, Any], words: str
) -> None:
    before = mailbox.state()["drafts"]
    result = call(drafts, op, args=args)
    assert failed(result).class_ == "connector_runtime_error"
    assert words in failed(result).message
    assert mailbox.state()["drafts"] == before


def test_an_id_stays_one_path_segment(drafts: WasmConnector, mailbox: Any) -> None:
    result = call(drafts, "get_draft", args={"id": "r-1/../send?x=#ü"})
    assert result.last_status == 404
    path = "/gmail/v1/users/me/drafts/r-1%2F..%2Fsend%3Fx%3D%23%C3%BC"
    assert mailbox.state()["requests"] == [{"method": "GET", "path": path}]


def test_the_mailbox_runs_as_a_program_of_its_own() -> None:
    """Its first line says where it is; SIGTERM ends it cleanly."""
    command = [sys.executable, "-m", "examples.mailbox", "--port", "0"]
    with subprocess.Popen(
        command, cwd=EXAMPLES.parent, stdout=subprocess.PIPE, text=True
    ) as program:
        place = json.loads(program.stdout.readline())
        assert place["url"] == f"http://127.0.0.1:{place['port']}"
        with urllib.request.urlopen(f"{place['url']}/_state", timeout=10) as answer:
            assert len(json.load(answer)["drafts"]) == 5
        program.terminate()
        assert program.wait(60) == 0


@pytest.mark.skipif(not ALL, reason="compiles for half a minute: make test-all")
def test_the_committed_modules_are_what_the_sources_give() -> None:
    command = [sys.executable, str(EXAMPLES / "connectors" / "build.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
