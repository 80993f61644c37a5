"""What an action is called and how it is described."""

from dataclasses import replace

import pytest

from aileron_core.actions.model import GATED_NOTE, Action, Approval

ACTION = Action(name="send.a-note", version="1.0.0", source="", requires=(), intent="send a note")


@pytest.mark.parametrize(
    ("body", "title", "description"),
    [
        ("", "send.a-note", "send a note"),
        ("\n\n# Send a Note #\n\nSends it.\n", "Send a Note", "Sends it."),
        ("Sends it.\n\n## When\n", "When", "Sends it.\n\n## When"),
        ("# C#\nx", "C#", "x"),
        ("#hashtag\n", "send.a-note", "#hashtag"),
        ("```sh\n# comment\n```\n# Real\n", "Real", "```sh\n# comment\n```\n# Real"),
        ("# Only\n", "Only", "send a note"),
        ("#\n\ntext", "send.a-note", "text"),
    ],
)
def test_title_and_description_come_from_the_body(body: str, title: str, description: str) -> None:
    """The leading heading is the title, the rest what an agent reads; the intent stands in."""
    action = replace(ACTION, body=body)
    assert action.title == title
    assert action.description == description


def test_a_gated_action_says_that_a_person_is_asked() -> None:
    """The agent knows beforehand that the answer may be pending."""
    action = replace(ACTION, body="# T\n\nSends.", approval=Approval(required=True))
    assert action.gated
    assert action.description == f"Sends.\n\n{GATED_NOTE}"


def test_a_tool_name_has_only_the_characters_that_tools_may_have() -> None:
    assert ACTION.tool_name == "send_a_note"
    assert replace(ACTION, name="a-" * 40).tool_name == "a_" * 24
