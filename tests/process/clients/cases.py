"""The four cases that each program goes through."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.core.server.augment.scripted_model import Call, Text
from tests.process.clients.conftest import Client, Room

CASES: dict[str, tuple[str, Callable[[Client], None]]] = {}
"""Name -> the console that it needs, and what happens."""


def _case(room: str) -> Callable[[Callable[[Client], None]], Callable[[Client], None]]:
    def add(happens: Callable[[Client], None]) -> Callable[[Client], None]:
        CASES[happens.__name__.replace("_", "-")] = (room, happens)
        return happens

    return add


@_case("patient")
def approved(client: Client) -> None:
    """The program gets one answer, after the person's."""
    client.ask("send it", [Call("send_draft", {"text": "to Anna"})], [Text("It is sent.")])
    client.console.approve(client.waiting())
    assert client.answer() == "It is sent."
    assert "to Anna" in client.told(1)[-1]
    assert_went_on(client)


@_case("patient")
def denied(client: Client) -> None:
    """The model reads the reason; the program goes on."""
    client.ask("send it", [Call("send_draft", {"text": "to Anna"})], [Text("They said no.")])
    client.console.tell(deny=client.waiting(), reason="not on a Friday")
    assert client.answer() == "They said no."
    assert "A person denied this. Their reason" in client.told(1)[-1]
    assert "not on a Friday" in client.told(1)[-1]
    assert_went_on(client)


@_case("impatient")
def pending_and_resumed(client: Client) -> None:
    """The answer comes before the person's; the next one asks after it."""
    client.ask("send it", [Call("send_draft", {"text": "to Anna"})], [Text("It waits.")])
    assert client.answer() == "It waits."
    approval_id = client.waiting()
    assert approval_id in client.told(1)[-1]
    assert client.console.approve(approval_id)
    assert client.console.state(approval_id, "completed")
    status = Call("check_action_status", {"approval_id": approval_id})
    client.ask("and now?", [status], [Text("It is sent.")])
    assert client.answer() == "It is sent."
    assert "to Anna" in client.told(3)[-1]
    assert_went_on(client)


@_case("patient")
def mixed_turn(client: Client) -> None:
    """Ours runs, the program runs its own, and the model gets both results in the order of its calls."""
    client.ask(
        "do both",
        [Call("read_inbox", {"text": "a mail"}), Call("own_note", {"text": "mine"}, "call-own")],
        [Text("Both are done.")],
    )
    assert client.answer() == "Both are done."
    assert client.notes == ["mine"]
    told = "".join(client.told(1))
    if earlier(client, 1) is None:
        assert told.index("read_inbox") < told.index("own_note")
    assert told.index("a mail\\") < told.index("noted: mine")
    assert_went_on(client)
    assert client.notes == ["mine"]


def assert_went_on(client: Client) -> None:
    """Ask once more: no request may lack anything that the one before it had."""
    client.ask("thanks", [Text("Welcome.")])
    assert client.answer() == "Welcome."
    client.end()
    requests = client.model.requests
    # The tool runner of Anthropic's SDK names its own tools once, where the provider keeps the conversation.
    begun = [each for each in requests if each.get("thread", {}).get("type") != "continue"]
    assert all(each["tools"] == requests[0]["tools"] for each in begun)
    assert not [each for each in requests if each not in begun and "tools" in each]
    names = [each.get("name") or each["function"]["name"] for each in requests[0]["tools"]]
    assert names == [
        "own_note",
        "read_inbox",
        "send_draft",
        "check_action_status",
        "withdraw_action",
    ]
    for number in range(1, len(requests)):
        before, after = client.told(number - 1), client.told(number)
        named, named_before = earlier(client, number), earlier(client, number - 1)
        if named is None or named == named_before:
            assert after[: len(before)] == before or named_before is not None
            assert set(before) <= set(after)
        else:  # the provider has what came before
            assert named == str(number - 1)


def earlier(client: Client, request: int) -> str | None:
    """Return the number of the answer that a request names, if the provider keeps its conversation."""
    body = client.model.requests[request]
    named = body.get("previous_response_id") or body.get("thread", {}).get("previous_message_id")
    return named.rpartition("_")[2] if named else None


def go(case: str, request: pytest.FixtureRequest, *words: str, **how: Any) -> None:
    """Have the program *words* go through a case."""
    name, happens = CASES[case]
    room: Room = request.getfixturevalue(name)
    with closing(room.launch(*words, **how)) as client:
        happens(client)
