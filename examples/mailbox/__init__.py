"""A local mailbox that speaks the drafts part of the Gmail API, with real state."""

from examples.mailbox.server import Mailbox

__all__ = ["Mailbox"]
