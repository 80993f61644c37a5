"""Aileron's own log: `log/aileron.log` in the home, one JSON object a line, rotated when it grows.

It holds what happened and where to look further (event, number in the audit, run, session, action),
and never arguments, previews, outputs or secrets. Libraries quote what they were given in their
messages, so of theirs only the place in their source is kept, from a warning on.
"""

import json
import logging
import logging.handlers
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Generator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, cast

from aileron_core.clock import rfc3339
from aileron_core.home.layout import Home
from aileron_core.settings import LogSettings
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CommandContext, local_time, safe_json

_OURS = ("aileron_core.", "aileron_tui.", "aileron_mcp.")
_EXTRA_FIELDS = ("event", "seq", "run", "session", "action", "decided", "seconds", "state")
"""What lines of Aileron's own carry beside their message, given as `extra`."""
_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.2
_COLORS = {"warning": "yellow", "error": "red", "critical": "red"}


def log_path(home: Home) -> Path:
    """Return the newest file; older ones end in .1, .2 and so on."""
    return home.log_file / "aileron.log"


def log_to(home: Home, settings: LogSettings) -> None:
    """Send every line of this process to the home's log, and nothing of them to the terminal.

    Raises:
        OSError: the file cannot be opened.
    """
    handler = LogFile(
        log_path(home), max_bytes=int(settings.max_mib * 1024 * 1024), keep=settings.keep
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    logging.captureWarnings(True)
    threading.excepthook = _log_thread_error
    sys.unraisablehook = _log_unraisable


def _log_thread_error(ended: threading.ExceptHookArgs) -> None:
    name = ended.thread.name if ended.thread else "?"
    _log.error("thread %s ended with %s", name, ended.exc_type.__name__)


def _log_unraisable(ended: "sys.UnraisableHookArgs") -> None:
    _log.error("%s was raised where nothing could handle it", ended.exc_type.__name__)


class _Line(logging.Formatter):
    """One JSON object in printable ASCII: no text in it can end its line or reach a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": rfc3339(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if record.name.startswith(_OURS):
            line["message"] = record.getMessage()
        else:
            line["message"] = f"a message from a library, at {record.module}:{record.lineno}"
        for name in _EXTRA_FIELDS:
            if (value := getattr(record, name, None)) is not None:
                line[name] = value
        if record.exc_info and record.exc_info[0] is not None:
            # By its type alone: its text may quote arguments or a preview.
            line["error"] = record.exc_info[0].__name__
        return safe_json(line)


def _kept(record: logging.LogRecord) -> bool:
    return record.name.startswith(_OURS) or record.levelno >= logging.WARNING


class LogFile(logging.handlers.RotatingFileHandler):
    """The file, 0600, and at most *keep* older ones of *max_bytes* each.

    A line that cannot be written (a full disk) is counted, and the next one that can says so.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        self._lost = 0
        super().__init__(path, maxBytes=max_bytes, backupCount=keep, encoding="utf-8")
        self.setFormatter(_Line())
        self.addFilter(_kept)

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.baseFilename, flags, 0o600)
        os.fchmod(descriptor, 0o600)  # one of an older Aileron may be open to others
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        """Write *record*, and how many lines before it were lost."""
        lost = self._lost
        super().emit(record)
        if lost and self._lost == lost:
            self._lost = 0
            notice = logging.LogRecord(
                __name__, logging.WARNING, "", 0, "%d lines could not be written", (lost,), None
            )
            super().emit(notice)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging names it
        """Count a line that was lost; logging's own way is a traceback on the terminal."""
        self._lost += 1


def show_logs(context: CommandContext, limit: int, *, follow: bool) -> int:
    """Print the newest *limit* lines, oldest first; with *follow* go on until interrupted.

    With `--json` they are one object's `items`; followed, one object a line.
    """
    path = log_path(Home(context.home))
    tail = _Tail(path)
    newest = deque(_older(path), maxlen=limit)
    newest.extend(tail.read())
    if context.json and not follow:
        context.show({"items": [_parsed(line) for line in newest]})
        return EXIT.DONE
    for line in newest:
        _print(context, line)
    if limit and not newest and not context.json:
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
