"""Copies of what a person accepted, which count where a file changed, and beside which the change is shown.

    <home>/store/accepted/<SHA-256 of the bytes, hex>      0600 in 0700

A copy accepts nothing, and is used only if it still has the bytes that it is named by. Connectors
need none: the store keeps their files. Those of a project's settings are found by a list of theirs,
whose hash is the digest that was accepted (`aileron_core.launch.project`).

Everything here blocks on the disk; call it from a thread, not from the event loop.
"""

import json
import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from aileron_core.actions.catalog import read_handle
from aileron_core.canonical import sha256_hex

_HEX = re.compile(r"[0-9a-f]{64}")


class AcceptedContents:
    """The copies of one home, by digest: two of each accepted file at most, of 4 MiB at most each."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "store" / "accepted"

    def keep(self, contents: Iterable[bytes]) -> None:
        """Write the copies that are not there yet.

        Raises:
            OSError: one cannot be written.
        """
        missing = {
            digest: data for data in contents if self.read(digest := sha256_hex(data)) is None
        }
        if missing:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for digest, data in missing.items():
            # Its name goes with the copy's: what a crash left is collected with it.
            unfinished = self._folder / f".{digest}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
                file.write(data)
            unfinished.replace(self._folder / digest)

    def read(self, digest: str) -> bytes | None:
        """Return the bytes of *digest*; None where there is no copy with exactly these."""
        if not _HEX.fullmatch(digest):
            return None
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            data = read_handle(os.open(self._folder / digest, flags))
        except OSError:
            return None
        return data if sha256_hex(data) == digest else None

    def listed(self, digest: str) -> dict[str, bytes | None]:
        """Return the files of the list *digest*, by name; empty where that was not kept."""
        return {name: self.read(each) for name, each in self._list(digest).items()}

    def collect(self, digests: Collection[str]) -> None:
        """Remove every copy that neither *digests* nor a list among them names."""
        wanted = {*digests}
        for digest in digests:
            wanted.update(self._list(digest).values())
        try:
            found = [*self._folder.iterdir()]
        except OSError:
            return
        for path in found:
            if path.name.removeprefix(".") not in wanted:
                with suppress(OSError):
                    path.unlink()

    def _list(self, digest: str) -> dict[str, str]:
        data = self.read(digest)
        if data is None or not data.startswith(b"{"):
            return {}
        try:
            parsed: Any = json.loads(data)
        except (ValueError, RecursionError):
            return {}
        files = cast("dict[str, Any]", parsed).get("files") if isinstance(parsed, dict) else None
        if not isinstance(files, dict):
            return {}
        named = cast("dict[str, Any]", files)
        return {name: each for name, each in named.items() if isinstance(each, str)}
