"""A mail goes to every Bcc, in whatever spelling: so the person is shown every one."""

import base64
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.support.core_harness import Core, Mailbox, install_examples, run


def _draft(mailbox: Mailbox, *bcc: tuple[str, str]) -> str:
    """Put a draft with these headers into *mailbox* and return its id."""
    lines = ["To: Anna <anna@nordlicht.example>", "Subject: Q3", *(f"{n}: {v}" for n, v in bcc)]
    raw = "\r\n".join([*lines, "", "Hello"]).encode()
    return mailbox._state.create(base64.urlsafe_b64encode(raw).decode()).id


@pytest.mark.parametrize(
    ("headers", "shown", "count"),
    [
        ([("BCC", "eve@evil.example")], "eve@evil.example", 1),
        ([("bcc", "eve@evil.example")], "eve@evil.example", 1),
        (
            [("Bcc", "archive@nordlicht.example"), ("BCC", "eve@evil.example")],
            "archive@nordlicht.example\neve@evil.example",
            2,
        ),
    ],
)
def test_every_bcc_that_a_mail_goes_to_stands_in_the_item(
    home: Path, headers: list[tuple[str, str]], shown: str, count: int
) -> None:
    """What the preview shows is what the mailbox sends to."""
    install_examples(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            view = await core.ask(_draft(mailbox, *headers))
            (bcc,) = (field for field in view.preview.fields if field.label == "Bcc")
            assert (bcc.missing, bcc.value, bcc.count) == (False, shown, count)
            await core.approve(view)
            assert (await core.ended(view)).state == "completed"
        (sent,) = mailbox.state()["sent"]
        assert sent["bcc"] == shown.replace("\n", ", ")

    with Mailbox() as mailbox:
        run(story(mailbox))


async def test_the_text_and_the_html_of_a_mail_are_both_shown(core: Core, mailbox: Mailbox) -> None:
    """Most programs show a recipient the HTML, whatever the plain text says."""
    mail = EmailMessage()
    mail["To"] = "Anna <anna@nordlicht.example>"
    mail["Subject"] = "Q3"
    mail.set_content("The price is 100 EUR.\n")
    mail.add_alternative("<p>The price is <b>900</b> EUR.</p>", subtype="html")

    raw = base64.urlsafe_b64encode(bytes(mail)).decode()
    view = await core.ask(mailbox._state.create(raw).id)
    (body,) = (field.value for field in view.preview.fields if field.label == "Body")
    assert "The price is 100 EUR." in body
    assert "<p>The price is <b>900</b> EUR.</p>" in body
