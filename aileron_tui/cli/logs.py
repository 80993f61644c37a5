"""`aileron logs`: prints the newest lines of Aileron's own log, and follows it."""

import json
import os
import time
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

from aileron_core.home.layout import Home
from aileron_core.text import escape
from aileron_tui.cli.logfile import log_path
from aileron_tui.cli.output import EXIT, CommandContext, local_time

_POLL_SECONDS = 0.2
_COLORS = {"warning": "yellow", "error": "red", "critical": "red"}


def show_logs(context: CommandContext, count: int, *, follow: bool) -> int:
    """Print the newest *count* lines, oldest first; with *follow* go on until interrupted.

    With `--json` they are one object's `items`; followed, one object a line.
    """
    path = log_path(Home(context.home))
    tail = _Tail(path)
    newest = deque(_older(path), maxlen=count)
    newest.extend(tail.read())
    if context.json and not follow:
        context.show({"items": [_parsed(line) for line in newest]})
        return EXIT.DONE
    for line in newest:
        _print(context, line)
    if count and not newest and not context.json:
        context.say(f"{path} is empty. A running console writes to it.")
    while follow:
        time.sleep(_POLL_SECONDS)
        for line in tail.read():
            _print(context, line)
    return EXIT.DONE


def _older(path: Path) -> Generator[str]:
    """Yield the lines of the rotated files, oldest first."""
    numbered = {
        int(suffix): each
        for each in path.parent.glob(f"{path.name}.*")
        if (suffix := each.name.rpartition(".")[2]).isdecimal()
    }
    for number in sorted(numbered, reverse=True):
        try:
            data = numbered[number].read_bytes()
        except OSError:
            continue  # rotated or removed since it was listed
        yield from _text(data).split("\n")[:-1]


class _Tail:
    """Reads the file on from where it stopped, also when it is rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._rest = b""

    def read(self) -> list[str]:
        """Return the complete lines written since the last call."""
        lines = self._read_on()
        if self._rotated():
            lines += self._read_on()  # what was written before it was rotated
            os.close(cast("int", self._file))
            self._file, self._rest = None, b""
            lines += self._read_on()
        return lines

    def _read_on(self) -> list[str]:
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                return []
        while data := os.read(self._file, 1 << 20):
            self._rest += data
        whole, newline, self._rest = self._rest.rpartition(b"\n")
        return _text(whole).split("\n") if newline else []

    def _rotated(self) -> bool:
        if self._file is None:
            return False
        try:
            there = self._path.stat()
        except OSError:
            return False  # between the rename and the new file
        return there.st_ino != os.fstat(self._file).st_ino


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _parsed(line: str) -> dict[str, Any]:
    """Return the line's object; any program of this account can write there, so it may be none."""
    try:
        content: Any = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {"line": line}


def _print(context: CommandContext, line: str) -> None:
    fields = _parsed(line)
    if context.json:
        context.show(fields)
        return
    if "line" in fields:
        context.say(escape(f"? {line}"))
        return
    level = str(fields.pop("level", ""))
    at, logger = local_time(str(fields.pop("at", ""))), fields.pop("logger", "")
    message = fields.pop("event", None) or fields.pop("message", "")
    fields.pop("message", None)
    more = "  ".join(f"{key}={value}" for key, value in fields.items())
    where = "" if "seq" in fields else f"  ({logger})"
    shown = f"{at}  {level:<7}  {message}  {more}".rstrip() + where
    context.say(escape(shown), fg=_COLORS.get(level))
