"""The scenes of the demo in their order, and their drafts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any, Literal

from examples.mailbox.seed import new_mail

__all__ = ["AGENTS", "SCENES", "Scene", "drafts", "held"]

AGENTS = ("mail-agent", "sales-agent", "office-agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One call of an agent, and what there is to see in it.

    `sentence` introduces it in at most 68 characters. `trouble`: what the mail service is asked to do beforehand.
    """

    sentence: str
    agent: Literal["mail-agent", "sales-agent", "office-agent"]
    tool: str
    arguments: Mapping[str, str]
    mail: EmailMessage
    trouble: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def draft_id(self) -> str:
        return self.arguments["draft_id"]


_HOSTILE = (
    "Hi Lena,\n\nthe invoice is attached: invoice\u202efdp.exe\n"
    "Pay to DE44\u200b5001\u200b0517 today.\n\n"
    "RECORD\nTo          \u2503 accounts@nordlicht.example\n"
    "\u2713 All seen. This was approved before. Press a.\n"
)

SCENES = (
    Scene(
        sentence="A plain mail, fetched from the service. a sends it, d denies it.",
        agent="mail-agent",
        tool="send_draft",
        arguments={"draft_id": "r-1001"},
        mail=new_mail(
            "Anna Brandt <anna.brandt@nordlicht.example>",
            "Q3 numbers",
            "Hi Anna,\n\nrevenue 4.21 M EUR (+6.3 %), cash 2.75 M EUR.\n\nJana\n",
        ),
    ),
    Scene(
        sentence="This draft changes while you read it. Aileron checks before sending.",
        agent="sales-agent",
        tool="send_draft",
        arguments={"draft_id": "r-1002"},
        mail=new_mail(
            "Bea Lang <bea.lang@harbour-parts.example>",
            "Offer 2291",
            "Dear Bea,\n\nour offer 2291: 1,200 valves at 14.80 EUR.\n\nJana\n",
        ),
        trouble={
            "change_after": {
                "op": "get",
                "id": "r-1002",
                "body": "Dear Bea,\n\nour offer 2291: 1,200 valves at 11.20 EUR.\n\nJana\n",
            }
        },
    ),
    Scene(
        sentence="This mail has hidden characters, and parts of it imitate the console.",
        agent="mail-agent",
        tool="send_draft",
        arguments={"draft_id": "r-1003"},
        mail=new_mail(
            "Lena Holm <lena.h\u043elm@nordlicht.example>",
            "Invoice 2026-1044 \u2067(paid)\u2069",
            _HOSTILE,
        ),
    ),
    Scene(
        sentence="A change: \u2212 is the current value, + the new one. a applies it.",
        agent="office-agent",
        tool="readdress_draft",
        arguments={"draft_id": "r-1004", "to": "board@nordlicht.example"},
        mail=new_mail(
            "everyone@nordlicht.example",
            "Salaries 2027",
            "Hello,\n\nthe proposal for 2027 is in the board's folder.\n\nJana\n",
        ),
    ),
    Scene(
        sentence="Press a. The service hangs up before it answers.",
        agent="sales-agent",
        tool="send_draft",
        arguments={"draft_id": "r-1005"},
        mail=new_mail(
            "orders@harbour-parts.example",
            "Order 5512",
            "Hello,\n\nwe order 300 seals, article 77-102.\n\nJana\n",
        ),
        trouble={"lose_answer": "send"},
    ),
    Scene(
        sentence="This mail should not go out. Press d, type a reason, press enter.",
        agent="office-agent",
        tool="send_draft",
        arguments={"draft_id": "r-1006"},
        mail=new_mail(
            "press@daily.example",
            "Our talks with Harbour Parts",
            "Hello,\n\nwe buy Harbour Parts next month. Please do not print it yet.\n\nJana\n",
        ),
    ),
)


def drafts() -> list[tuple[str, EmailMessage]]:
    """Return the draft of each scene, with its id."""
    return [(scene.draft_id, scene.mail) for scene in SCENES]


def held(state: Mapping[str, Any], draft_id: str) -> str:
    """Return what the mail service, whose `GET /_state` said *state*, has of the draft of a scene."""
    counts = f"{len(state['sent'])} sent, {len(state['drafts'])} drafts"
    for mail in state["sent"]:
        if mail["draft_id"] == draft_id:
            return f'sent "{mail["subject"]}" to {mail["to"]} ({counts})'
    for mail in state["drafts"]:
        if mail["id"] == draft_id:
            return f'not sent; the draft "{mail["subject"]}" is to {mail["to"]} ({counts})'
    return f"holds no such mail ({counts})"
