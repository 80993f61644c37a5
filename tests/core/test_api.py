"""The core as a library: what docs/library.md promises, through the names that it has."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aileron_core import api
from aileron_core.api import AileronError, Core, Route, open_core
from aileron_core.errors import Conflict, NotFound
from examples.mailbox import Mailbox
from tests.support.core_harness import DRAFT, ROOT, install_examples, writes

pytestmark = pytest.mark.anyio


@pytest.fixture
async def api_core(home: Path, mailbox: Mailbox) -> AsyncIterator[Core]:
    install_examples(home)
    gmail = Route(host="gmail.googleapis.com:443", address="127.0.0.1", port=mailbox.port)
    async with open_core(home, accept_installed=True, routes=[gmail]) as core:
        yield core


async def test_a_call_waits_with_its_preview_and_runs_once_its_digest_was_approved(
    api_core: Core, mailbox: Mailbox
) -> None:
    events: list[api.CoreEvent] = []
    stop = api_core.subscribe(events.append)
    async with api_core.session("library") as agent:
        answer = await agent.call("send-draft", {"draft_id": DRAFT})
        assert isinstance(answer, dict)
        assert answer["status"] == "pending_approval"
        (waiting,) = api_core.waiting()
        call = await api_core.preview(waiting.approval_id)
        assert call.preview.fields[3].value == "Q3 numbers"
        assert writes(mailbox) == [f"GET {DRAFT}"]
        await api_core.approve(call.approval_id, call.digest)
        ended = await agent.result(call.approval_id, wait=60)
    assert ended["status"] == "completed"
    assert "POST send" in writes(mailbox)
    assert api_core.waiting() == ()
    assert any(getattr(event, "view", None) == call for event in events)
    stop()
    assert (await api_core.audit()).records[-1].event == "session.ended"
    assert (await api_core.verify()).problems == ()


async def test_neither_a_yes_nor_a_no_is_taken_for_what_has_another_digest(api_core: Core) -> None:
    async with api_core.session("library") as agent:
        await agent.call("send-draft", {"draft_id": DRAFT})
        (waiting,) = api_core.waiting()
        call = await api_core.preview(waiting.approval_id)
        for answer in (api_core.approve, api_core.deny):
            with pytest.raises(Conflict, match="changed while you answered"):
                await answer(call.approval_id, "sha256:" + "0" * 64)
        assert [each.approval_id for each in api_core.waiting()] == [call.approval_id]
        await api_core.deny(call.approval_id, call.digest, "Not now.")
        assert (await agent.result(call.approval_id))["status"] == "denied"


async def test_a_session_sees_its_own_calls_alone(api_core: Core) -> None:
    async with api_core.session("one") as one, api_core.session("other") as other:
        await one.call("send-draft", {"draft_id": DRAFT})
        (waiting,) = api_core.waiting()
        for ask in (other.result, other.withdraw):
            with pytest.raises(NotFound):
                await ask(waiting.approval_id)
        assert (await one.withdraw(waiting.approval_id))["status"] == "withdrawn"
    with pytest.raises(NotFound):
        await api_core.preview("act-unknown")


async def test_a_home_is_open_once(api_core: Core, home: Path) -> None:
    with pytest.raises(AileronError, match="already running"):
        await open_core(home).__aenter__()


async def test_a_listener_that_raises_is_dropped_and_the_log_says_where_but_not_what(
    api_core: Core, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[object] = []

    def fails(event: object) -> None:
        heard.append(event)
        raise ValueError("a secret")

    api_core.subscribe(fails)
    with caplog.at_level(logging.ERROR):
        async with api_core.session("library"):
            pass
    assert len(heard) == 1
    assert all(each in caplog.text for each in ("ValueError", "test_api.py"))
    assert "a secret" not in caplog.text


async def test_the_page_names_all_that_is_stable() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    assert [name for name in api.__all__ if f"`{name}" not in page] == []
