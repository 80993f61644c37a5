"""Aileron's own log: `log/aileron.log` in the home, one JSON object a line, rotated when it grows.

It holds what happened and where to look further (event, number in the audit, run, session, action),
and never arguments, previews, outputs or secrets. Libraries quote what they were given in their
messages, so of theirs only the place in their source is kept, from a warning on.
"""

import logging
import logging.handlers
import os
import sys
import threading
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from aileron_core.clock import rfc3339
from aileron_core.home.layout import Home
from aileron_core.settings import LogSettings
from aileron_tui.cli.output import safe_json

_OURS = ("aileron_core.", "aileron_tui.", "aileron_mcp.")
_EXTRA_FIELDS = ("event", "seq", "run", "session", "action", "decided", "seconds", "state")
"""What lines of Aileron's own carry beside their message, given as `extra`."""
_log = logging.getLogger(__name__)


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
