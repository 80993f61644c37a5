"""Messages in Gmail's JSON, made from RFC 5322 mail."""

import base64
import binascii
import email.policy
import secrets
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

__all__ = ["message_json", "minimal", "parse_raw", "summary"]

_SNIPPET = 200
_MAX_INLINE = 4 * 1024 * 1024
"""Bytes of a text. Gmail sends large ones separately, and does not say from which size."""


def parse_raw(raw: str) -> EmailMessage:
    """Return the mail in *raw*, Gmail's base64url form.

    Raises:
        ValueError: it is not base64url.
    """
    try:
        data = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("raw is not base64url") from error
    return BytesParser(policy=email.policy.default).parsebytes(data)


def message_json(mail: EmailMessage, *, message_id: str, thread_id: str) -> dict[str, Any]:
    """Return *mail* as `format=full` has it."""
    text = _plain_text(mail)
    return {
        "id": message_id,
        "threadId": thread_id,
        "labelIds": ["DRAFT"],
        "snippet": " ".join(text.split())[:_SNIPPET],
        "sizeEstimate": _estimated_size(mail),
        "payload": {"partId": "", **_part_json(mail, "")},
    }


def _estimated_size(mail: EmailMessage) -> int:
    """Return about how many characters *mail* has: to write it out would fold long headers, for seconds."""
    headers = sum(len(name) + len(str(value)) + 4 for name, value in mail.items())
    bodies = (part.get_payload() for part in mail.walk() if not part.is_multipart())
    return headers + sum(len(body) for body in bodies if isinstance(body, str))


def minimal(message: dict[str, Any]) -> dict[str, Any]:
    """Return the three members of a message that lists and sends answer with."""
    return {key: message[key] for key in ("id", "threadId", "labelIds")}


def summary(mail: EmailMessage) -> dict[str, str]:
    """Return what the mailbox's own state shows of a message: every header of a name, as a mailer reads it."""
    names = ("To", "Cc", "Bcc", "Subject")
    headers = {name.lower(): ", ".join(map(str, mail.get_all(name, []))) for name in names}
    return headers | {"body": _plain_text(mail)}


def _plain_text(mail: EmailMessage) -> str:
    part = mail.get_body(preferencelist=("plain",))
    return "" if part is None else _text_of(part).replace("\r\n", "\n")


def _text_of(part: EmailMessage) -> str:
    content = part.get_content()
    return content if isinstance(content, str) else ""


def _part_json(part: EmailMessage, part_id: str) -> dict[str, Any]:
    headers = [{"name": name, "value": str(value)} for name, value in part.items()]
    shape: dict[str, Any] = {
        "mimeType": part.get_content_type(),
        "filename": part.get_filename() or "",
        "headers": headers,
    }
    if part.is_multipart():
        inner = [child for child in part.iter_parts() if isinstance(child, EmailMessage)]
        prefix = f"{part_id}." if part_id else ""
        shape["body"] = {"size": 0}
        shape["parts"] = [
            {"partId": f"{prefix}{index}", **_part_json(child, f"{prefix}{index}")}
            for index, child in enumerate(inner)
        ]
        return shape
    data = part.get_payload(decode=True) or b""
    assert isinstance(data, bytes)
    if part.get_filename():
        shape["body"] = _elsewhere(data)
    elif part.get_content_maintype() == "text":
        data = _text_of(part).encode()
        inline = {"size": len(data), "data": base64.urlsafe_b64encode(data).decode()}
        shape["body"] = inline if len(data) <= _MAX_INLINE else _elsewhere(data)
    else:
        shape["body"] = {"size": len(data)}
    return shape


def _elsewhere(data: bytes) -> dict[str, Any]:
    """Return a body that is fetched separately. As at Gmail, its id differs in every answer."""
    return {"size": len(data), "attachmentId": f"ANGj{secrets.token_urlsafe(48)}"}
