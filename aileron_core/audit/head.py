"""The chain's head outside the database: `audit.head`, and the system journal where there is one.

A chain alone cannot see that its last records were cut off; a head kept elsewhere can.
"""

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from aileron_core.audit.record import ChainHead, CommittedRecord, StoredHead

JOURNAL = Path("/run/systemd/journal/socket")
_LINE = 512


def _text(head: ChainHead) -> str:
    fields = {"seq": head.seq, "hash": head.hash.hex(), "count": head.seq, "at": head.at}
    if head.signed:
        fields["signed"] = head.signed
    return json.dumps(fields, separators=(",", ":"))


class HeadFile:
    """Overwrites `audit.head` in place, one fixed-size write per commit."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __call__(self, head: ChainHead, committed: Sequence[CommittedRecord]) -> None:
        """Write *head*. A failure is left to the next commit: a head behind the table is no problem."""
        line = _text(head).ljust(_LINE - 1) + "\n"
        try:
            os.pwrite(self._handle, line.encode(), 0)
        except OSError:
            return

    def close(self) -> None:
        os.close(self._handle)


class SystemJournal:
    """Sends the head to systemd's journal after each commit, never waiting for it.

    The journal is append-only for the user; records from before a rewrite of the whole home stay.
    """

    def __init__(self, home: Path, address: Path = JOURNAL) -> None:
        self._home = str(home)
        self._address = str(address)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def __call__(self, head: ChainHead, committed: Sequence[CommittedRecord]) -> None:
        """Send *head*; a journal that is not there or full is not an error."""
        fields = {
            "MESSAGE": f"aileron audit head {head.seq} {head.hash.hex()}",
            "SYSLOG_IDENTIFIER": "aileron",
            "PRIORITY": "6",
            "AILERON_HOME": self._home,
            "AILERON_HEAD": _text(head),
        }
        # The native protocol takes KEY=value lines; a newline in a value would need the long form.
        datagram = "".join(f"{key}={value}\n" for key, value in fields.items() if "\n" not in value)
        try:
            self._socket.sendto(datagram.encode("utf-8", "surrogateescape"), self._address)
        except OSError:
            return

    def close(self) -> None:
        self._socket.close()


def read_head(path: Path) -> StoredHead | None:
    """Return what `audit.head` says; None if there is none.

    Raises:
        ValueError: it is there and is not a head.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return parse_head(text, "audit.head")


def read_signed_head(home: Path) -> str | None:
    """Return the signed head that `audit.head` has, as it stands; None where it has none."""
    try:
        content: Any = json.loads((home / "audit.head").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    found = cast("dict[str, Any]", content).get("signed") if isinstance(content, dict) else None
    return found if isinstance(found, str) else None


def parse_head(text: str, where: str) -> StoredHead:
    """Return the head that *text* states.

    Raises:
        ValueError: it does not.
    """
    content: Any = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    fields = cast("dict[str, Any]", content)
    try:
        return StoredHead(
            seq=int(fields["seq"]),
            hash=str(fields["hash"]),
            count=int(fields["count"]),
            at=str(fields["at"]),
            source=where,
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"lacks {error}") from error
