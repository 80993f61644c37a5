"""The files worker: answers ops on the files of one project, and runs no program.

Ops are answered one after another, in the order in which they come; only a search runs beside them.
"""

import contextlib
import select
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aileron_core.connectors.builtin.worker import search
from aileron_core.connectors.builtin.worker.arguments import Arguments, OpFailed
from aileron_core.connectors.builtin.worker.command_words import resolve
from aileron_core.connectors.builtin.worker.file_content import (
    MAX_TEXT,
    Snapshot,
    bytes_of,
    lines_of,
    take_snapshot,
    text_of,
)
from aileron_core.connectors.builtin.worker.file_writes import Change, FileWrites
from aileron_core.connectors.builtin.worker.frames import (
    BrokenFrame,
    Unbuffered,
    read_frame,
    write_frame,
)
from aileron_core.connectors.builtin.worker.paths import Project, failure
from aileron_core.connectors.builtin.worker.search import Searches
from aileron_core.containment.linux_syscalls import close_memory_to_others

MAX_RESULT = 16 * 1024 * 1024
"""Characters."""
_LINES_NAMED = 10


def replaced(text: str, old: str, new: str, *, every: bool, path: str) -> str:
    """Return *text* with *old* replaced by *new*.

    In a text whose lines all end in CR LF, the line feeds of *old* and *new* mean that too: Read shows such
    lines without their CR.

    Args:
        every: replace each occurrence; otherwise there must be exactly one.

    Raises:
        OpFailed: `invalid_arguments`, `too_large`.
    """
    if not old:
        raise OpFailed(
            "invalid_arguments",
            "old_string is empty. Give the text to replace, or use Write for a whole file.",
        )
    if old == new:
        raise OpFailed("invalid_arguments", "old_string and new_string are equal; nothing changes.")
    if 0 < text.count("\n") == text.count("\r\n"):
        old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
    times = text.count(old)
    if not times:
        raise OpFailed("invalid_arguments", _not_found(text, old, path))
    if times > 1 and not every:
        raise OpFailed(
            "invalid_arguments",
            f"old_string occurs {times} times in {path}, in {_named_lines(text, old, times)}. Add "
            "lines around it so that it occurs once, or set replace_all.",
        )
    if len(text) + times * (len(new) - len(old)) > MAX_RESULT:
        raise OpFailed(
            "too_large",
            f"{path} would have more than {MAX_RESULT} characters. Replace fewer occurrences.",
        )
    return text.replace(old, new)


def _not_found(text: str, old: str, path: str) -> str:
    wanted, lines = _without_blanks(old).strip("\n"), f"\n{_without_blanks(text)}\n"
    at = lines.find(f"\n{wanted}\n") if wanted else -1
    if at < 0:
        return f"old_string does not occur in {path}. Read the file and copy the text exactly."
    first = lines.count("\n", 0, at) + 1
    last = first + wanted.count("\n")
    where = f"line {first} differs" if first == last else f"lines {first} to {last} differ"
    return (
        f"old_string does not occur in {path}, but {where} from it only in blanks, tabs or line "
        "ends. Copy them exactly as Read shows them."
    )


def _without_blanks(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def _named_lines(text: str, old: str, times: int) -> str:
    numbers: list[int] = []
    at, line = 0, 1
    while len(numbers) < _LINES_NAMED and (found := text.find(old, at)) >= 0:
        line += text.count("\n", at, found)
        numbers.append(line)
        line += text.count("\n", found, found + len(old))
        at = found + len(old)
    rest = f" and {times - len(numbers)} more" if times > len(numbers) else ""
    return f"lines {', '.join(map(str, numbers))}{rest}"


MAX_LINES = 2_000
MAX_READ = 256 * 1024
"""Characters of a file in one answer."""

_PATH_ARGUMENT = {"Glob": "path", "Grep": "path"}
"""Of each tool that has another than `file_path`; the project is meant without it."""


def serve(project: Path) -> None:
    """Answer frames from standard input until it ends.

    Raises:
        OSError: the project's folder cannot be opened.
    """
    close_memory_to_others()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl+c in a terminal; the end of input ends it
    worker = FileWorker(Project(project), lambda frame: write_frame(1, frame))
    write_frame(1, {"ready": True, "features": {}})
    with contextlib.suppress(BrokenPipeError, BrokenFrame):
        worker.serve()
    worker.searches.end_all()


class FileWorker:
    """The ops on one project's files.

    Args:
        send: writes a frame.
    """

    def __init__(self, project: Project, send: Callable[[dict[str, Any]], None]) -> None:
        self._project = project
        self._send = send
        self._writes = FileWrites(project)
        self.searches = Searches()
        self._ops: Mapping[str, Callable[[Arguments], dict[str, Any]]] = {
            "inspect": self._inspect,
            "read": self._read,
            "preview_write": lambda args: self._preview(args, _writing(args)),
            "preview_edit": lambda args: self._preview(args, _editing(args)),
            "write": lambda args: self._write(args, _writing(args)),
            "edit": lambda args: self._write(args, _editing(args)),
            "undo": lambda args: self._writes.undo(args.text("undo")),
            "resolve": lambda args: resolve(project, args),
        }

    def serve(self) -> None:
        """Answer until the end of standard input."""
        requests = Unbuffered(0)
        while True:
            descriptors = [0, *self.searches.readable()]
            ready, _, _ = select.select(descriptors, [], [], self.searches.timeout())
            for request, answer in self.searches.finished([each for each in ready if each != 0]):
                self._answer(request, answer)
            if 0 in ready:
                frame = read_frame(requests)
                if frame is None:
                    return
                if "op" in frame:
                    self._take(frame)

    def _take(self, frame: Mapping[str, Any]) -> None:
        request, op = frame["id"], frame["op"]
        args = Arguments(frame.get("args") or {})
        if op in ("glob", "grep"):
            run = search.glob if op == "glob" else search.grep
            for each, answer in self.searches.start(request, lambda: run(self._project, args)):
                self._answer(each, answer)
            return
        try:
            if op not in self._ops:
                raise OpFailed("unsupported", f"The files worker has no op named {op}.")
            answer = {"result": self._ops[op](args)}
        except OpFailed as error:
            answer = {"error": error.to_json()}
        except Exception as error:  # noqa: BLE001 - one op may not end the session's other ones
            message = f"{op} failed inside Aileron ({type(error).__name__}). Please report this."
            answer = {"error": OpFailed("io", message).to_json()}
        self._answer(request, answer)

    def _answer(self, request: int, answer: Mapping[str, Any]) -> None:
        try:
            self._send({"id": request, **answer})
        except BrokenFrame:
            error = OpFailed("too_large", "The answer is too large. Ask for less at once.")
            self._send({"id": request, "error": error.to_json()})

    def _preview(self, args: Arguments, change: Change) -> dict[str, Any]:
        expected = args.optional_text("expect_path")
        return self._writes.preview(args.text("file_path"), change, expected)

    def _write(self, args: Arguments, change: Change) -> dict[str, Any]:
        return self._writes.write(
            args.text("file_path"),
            change,
            args.record("expect"),
            args.optional_text("expect_path"),
        )

    def _inspect(self, args: Arguments) -> dict[str, Any]:
        tool = args.text("tool")
        values = Arguments(args.record("args") or {})
        name = _PATH_ARGUMENT.get(tool)
        given = values.text("file_path") if name is None else values.optional_text(name) or "."
        place = self._project.locate(given)
        facts: dict[str, Any] = {
            "path": None if place.path is None else str(place.path),
            "kind": place.kind,
            "outside": place.path is None,
        }
        return facts if place.path is not None else {**facts, "target": str(place.target)}

    def _read(self, args: Arguments) -> dict[str, Any]:
        offset, limit = args.number("offset", 1, least=1), args.number("limit", MAX_LINES, least=1)
        given = args.text("file_path")
        with self._project.open_file(given, args.optional_text("expect_path")) as (place, file):
            try:
                snapshot = take_snapshot(place.real, file)
            except OSError as error:
                raise failure(error, "read", str(place)) from None
        text = text_of(snapshot.data)
        if text is None:
            return {"path": str(place), **snapshot.summary()}
        lines = lines_of(text)
        if offset > max(len(lines), 1):
            raise OpFailed(
                "invalid_arguments",
                f"offset is {offset}, but {place} has {len(lines)} lines. Use a smaller offset.",
            )
        shown, cut = _numbered(lines, offset, limit)
        return {"path": str(place), "text": shown, "lines": len(lines), "truncated": cut}


def _numbered(lines: list[str], offset: int, limit: int) -> tuple[str, bool]:
    """Return lines with their numbers, as `cat -n` does, and whether any are left out after them."""
    out: list[str] = []
    left = MAX_READ
    last = min(offset - 1 + limit, len(lines))
    for number in range(offset, last + 1):
        line = f"{number:6}\t{lines[number - 1]}"
        if len(line) >= left:
            if not out:
                out.append(f"{line[:left]} [{len(line) - left} more characters in this line]")
            return "\n".join(out), True
        out.append(line)
        left -= len(line) + 1
    return "\n".join(out), last < len(lines)


def _writing(args: Arguments) -> Change:
    data = bytes_of(args.text("content"))
    return lambda _: data


def _editing(args: Arguments) -> Change:
    old, new = args.text("old_string"), args.text("new_string")
    every = args.flag("replace_all")
    bytes_of(old)
    bytes_of(new)

    def edit(before: Snapshot) -> bytes:
        if before.status is None:
            raise OpFailed("not_found", f"{before.path} does not exist. Use Write to create it.")
        if before.data is None:
            raise OpFailed(
                "too_large",
                f"{before.path} has {before.size} bytes; Edit takes files of up to {MAX_TEXT}. Use "
                "Bash.",
            )
        text = text_of(before.data)
        if text is None:
            kind = before.summary()["type"]
            raise OpFailed(
                "unsupported",
                f"{before.path} is not UTF-8 text ({kind}), so Edit cannot change it. Use Bash.",
            )
        new_text = replaced(text, old, new, every=every, path=str(before.path))
        return bytes_of(new_text)

    return edit
