"""Glob and Grep: the files beneath a folder of the project, and what is in them.

Each runs in a fork of the worker that is ended after a time, so no pattern makes one endless, and stops on its own
before that with what it has. Symbolic links are not followed, and `.git` is skipped.
"""

import heapq
import json
import os
import re
import signal
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from aileron_core.connectors.builtin.worker.arguments import Arguments, OpFailed
from aileron_core.connectors.builtin.worker.file_content import MAX_TEXT
from aileron_core.connectors.builtin.worker.paths import Place, Project, failure, open_regular
from aileron_core.containment.linux_syscalls import die_with_parent
from aileron_core.path_patterns import HiddenPaths, alternatives, matches

MAX_PATHS = 1_000
MAX_OUTPUT = 256 * 1024
"""Characters."""
MAX_LINE = 1_000
"""Characters of a line that are shown."""
SECONDS = 8.0
"""After which a search returns what it has."""
_SNIFFED = 8 * 1024


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    """Relative to the project, absolute outside."""
    within: str
    """Relative to the folder that is searched."""
    modified_ns: int
    open: Callable[[], int]
    """Only until the next file is asked for."""


class _Search:
    """A walk over the regular files at or beneath the argument `path`, in the order of their names."""

    def __init__(self, project: Project, args: Arguments) -> None:
        self._project = project
        self._hidden = HiddenPaths(args.texts("excluded"))
        self.place = project.settle(
            args.optional_text("path") or ".", args.optional_text("expect_path")
        )
        self._until = time.monotonic() + SECONDS
        self.out_of_time = False
        if not self.place.exists:
            raise OpFailed("not_found", f"{self.place} does not exist.")

    def files(self) -> Iterator[_Found]:
        top = self.place.real
        if top.parts and self._hides(str(top)):
            return
        if self.place.kind == "folder":
            yield from self._beneath(top)
        else:
            with self._project.open_file(str(top), str(top)) as (_, descriptor):
                changed = os.fstat(descriptor).st_mtime_ns
                yield _Found(str(top), top.name, changed, lambda: os.dup(descriptor))

    def _beneath(self, top: PurePosixPath) -> Iterator[_Found]:
        left = [""]
        while left:
            within = left.pop()
            folder = "/".join(each for each in (str(top) if top.parts else "", within) if each)
            try:
                handle = self._project.open_to_list(folder)
            except OSError as error:
                if within:
                    continue  # gone, a link by now, or closed to this user
                raise failure(error, "search", str(self.place)) from None
            folders: list[str] = []
            try:
                with os.scandir(handle) as entries:
                    names = sorted(entries, key=lambda each: each.name)
                for entry in names:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    below = f"{within}/{entry.name}" if within else entry.name
                    if self._passed() or entry.name == ".git" or self._hides(path):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(below)
                    elif entry.is_file(follow_symlinks=False):
                        yield from self._file(handle, entry, path, below)
            finally:
                os.close(handle)
            left += reversed(folders)

    def _hides(self, path: str) -> bool:
        # Rules name the files of the project from its top, from wherever a search comes to them.
        return self._hidden.hides(path.removeprefix(f"{self._project.real}/"))

    def _file(
        self, folder: int, entry: os.DirEntry[str], path: str, within: str
    ) -> Iterator[_Found]:
        try:
            status = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return
        if stat.S_ISREG(status.st_mode):
            yield _Found(
                path, within, status.st_mtime_ns, lambda: open_regular(folder, entry.name, path)
            )

    def _passed(self) -> bool:
        self.out_of_time = self.out_of_time or time.monotonic() > self._until
        return self.out_of_time


def glob(project: Project, args: Arguments) -> dict[str, Any]:
    """Do the op `glob`."""
    pattern = args.text("pattern")
    if ".." in pattern.split("/"):
        raise OpFailed("invalid_arguments", "A pattern may not contain '..'. Set path instead.")
    search = _Search(project, args)
    is_meant = _matcher(_relative(pattern, project, search.place))
    count = 0

    def matching() -> Iterator[tuple[int, str]]:
        nonlocal count
        for found in search.files():
            if is_meant(found.within):
                count += 1
                yield found.modified_ns, found.path

    newest = heapq.nlargest(MAX_PATHS, matching())
    return {
        "paths": [path for _, path in newest],
        "truncated": count > MAX_PATHS or search.out_of_time,
    }


def _matcher(pattern: str) -> Callable[[str], bool]:
    try:
        patterns = alternatives(pattern)
    except ValueError as error:
        raise OpFailed("invalid_arguments", str(error)) from None
    return lambda path: any(matches(each, path, strict=True) for each in patterns)


def _relative(pattern: str, project: Project, place: Place) -> str:
    """Return an absolute *pattern* relative to the folder that is searched."""
    if not pattern.startswith("/"):
        return pattern
    top = f"{place.target}/"
    if not pattern.startswith(top):
        raise OpFailed(
            "forbidden",
            f"The pattern {pattern} does not begin in {place.target}. Give it relative to that "
            "folder, or set path to another folder of the project.",
            target=pattern,
        )
    return f"./{pattern.removeprefix(top)}"


@dataclass(frozen=True, slots=True)
class _GrepOptions:
    expression: re.Pattern[str]
    mode: str
    numbers: bool
    before: int
    after: int
    multiline: bool
    limit: int | None

    @classmethod
    def read(cls, args: Arguments) -> "_GrepOptions":
        multiline = args.flag("multiline")
        flags = re.IGNORECASE if args.flag("-i") else 0
        try:
            expression = re.compile(
                args.text("pattern"), flags | (re.MULTILINE | re.DOTALL if multiline else 0)
            )
        except (re.error, OverflowError, RecursionError) as error:
            raise OpFailed(
                "invalid_arguments",
                f"The pattern is not a regular expression of Python's re: {error}. Escape signs that "
                "are meant literally with a backslash.",
            ) from None
        mode = args.optional_text("output_mode") or "files_with_matches"
        if mode not in ("content", "files_with_matches", "count"):
            raise OpFailed(
                "invalid_arguments",
                "output_mode must be content, files_with_matches or count.",
            )
        around = args.number("-C", 0)
        return cls(
            expression,
            mode,
            args.flag("-n", default=True),
            args.number("-B", around),
            args.number("-A", around),
            multiline,
            args.number("head_limit", 0) or None,
        )


class _Output:
    """The lines of a result, up to a number of lines and of characters."""

    def __init__(self, limit: int | None) -> None:
        self.lines: list[str] = []
        self._limit = limit
        self._left = MAX_OUTPUT
        self.full = False

    def add(self, line: str) -> None:
        if len(self.lines) == self._limit or len(line) + 1 > self._left:
            self.full = True
        if not self.full:
            self.lines.append(line)
            self._left -= len(line) + 1


def grep(project: Project, args: Arguments) -> dict[str, Any]:
    """Do the op `grep`."""
    options = _GrepOptions.read(args)
    search = _Search(project, args)
    is_meant = _matcher(args.optional_text("glob") or "**")
    output = _Output(options.limit)
    for found in search.files():
        if output.full:
            break
        if not is_meant(found.within) or (text := _searched_text(found)) is None:
            continue
        lines = [each.removesuffix("\r") for each in text.split("\n")]
        if lines[-1] == "":
            lines.pop()
        numbers = _matching_lines(text, lines, options)
        if numbers and options.mode == "files_with_matches":
            output.add(found.path)
        elif numbers and options.mode == "count":
            output.add(f"{found.path}:{len(numbers)}")
        elif numbers:
            _add_content(output, found.path, lines, numbers, options)
    return {"text": "\n".join(output.lines), "truncated": output.full or search.out_of_time}


def _searched_text(found: _Found) -> str | None:
    """Return a file's text, with a mark for each byte that is not UTF-8; None if it is binary, large or gone."""
    try:
        descriptor = found.open()
    except (OSError, OpFailed):
        return None
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size > MAX_TEXT:
            return None
        data = file.read(_SNIFFED)
        if b"\0" in data:
            return None
        data += file.read(MAX_TEXT)
    return data.decode("utf-8", "replace")


def _matching_lines(text: str, lines: list[str], options: _GrepOptions) -> list[int]:
    """Return the indices of the lines that match; in `files_with_matches` of the first one only."""
    first_only = options.mode == "files_with_matches"
    if not options.multiline:
        search = options.expression.search
        matching = (at for at, line in enumerate(lines) if search(line))
        return list(islice(matching, 1 if first_only else None))
    found: set[int] = set()
    at, line = 0, 0
    for match in options.expression.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        last = line + text.count("\n", match.start(), max(match.start(), match.end() - 1))
        found.update(range(line, min(last + 1, len(lines))))
        if first_only and found:
            break
    return sorted(found)


def _add_content(
    output: _Output, path: str, lines: list[str], numbers: list[int], options: _GrepOptions
) -> None:
    matching, shown_to = set(numbers), -1
    for number in numbers:
        first = max(number - options.before, shown_to + 1, 0)
        last = min(number + options.after, len(lines) - 1)
        gap = first > shown_to + 1 or shown_to < 0
        if output.lines and gap and options.before + options.after and first <= last:
            output.add("--")
        for at in range(first, last + 1):
            sign = ":" if at in matching else "-"
            line = lines[at]
            if len(line) > MAX_LINE:
                line = f"{line[:MAX_LINE]} [{len(line) - MAX_LINE} more characters]"
            output.add(f"{path}{sign}{f'{at + 1}{sign}' if options.numbers else ''}{line}")
        shown_to = max(shown_to, last)


ENDED_AFTER = 10.0
"""Seconds after which a search is ended."""
_AT_ONCE = 4
_CHUNK = 1024 * 1024

Answer = dict[str, Any]
"""The member `result` or `error` of an answer."""


@dataclass(slots=True)
class _Running:
    request: int
    process: int
    until: float
    received: bytearray = field(default_factory=bytearray)


class Searches:
    """The searches that run or wait; the caller waits for `readable` and `timeout`, then calls `finished`."""

    def __init__(self) -> None:
        self._running: dict[int, _Running] = {}
        self._waiting: deque[tuple[int, Callable[[], dict[str, Any]]]] = deque()

    def start(self, request: int, search: Callable[[], dict[str, Any]]) -> list[tuple[int, Answer]]:
        """Run *search* in a fork, when there is room; return answers as `finished` does."""
        self._waiting.append((request, search))
        return self._fill()

    def readable(self) -> list[int]:
        """Return the descriptors that tell when a search is done."""
        return list(self._running)

    def timeout(self) -> float | None:
        """Return the seconds until the next search is ended, None without any."""
        if not self._running:
            return None
        return max(0.0, min(each.until for each in self._running.values()) - time.monotonic())

    def finished(self, ready: list[int]) -> list[tuple[int, Answer]]:
        """Return the answers to searches that are done or were ended, by request.

        Args:
            ready: those of `readable` that can be read.
        """
        answers: list[tuple[int, Answer]] = []
        for descriptor in ready:
            chunk = os.read(descriptor, _CHUNK)
            self._running[descriptor].received += chunk
            if not chunk:
                running = self._end(descriptor)
                answers.append((running.request, _answer(running.received)))
        for descriptor, running in list(self._running.items()):
            if time.monotonic() >= running.until:
                self._end(descriptor)
                answers.append((running.request, {"error": _timed_out().to_json()}))
        return answers + self._fill()

    def end_all(self) -> None:
        """End every search without an answer."""
        self._waiting.clear()
        for descriptor in list(self._running):
            self._end(descriptor)

    def _fill(self) -> list[tuple[int, Answer]]:
        """Start what there is room for; return answers to what cannot be started."""
        failed: list[tuple[int, Answer]] = []
        while self._waiting and len(self._running) < _AT_ONCE:
            request, search = self._waiting.popleft()
            reading, writing = os.pipe()
            parent = os.getpid()
            try:
                process = os.fork()
            except OSError as error:
                os.close(reading)
                os.close(writing)
                message = f"The search could not be started: {error.strerror}. Try again later."
                failed.append((request, {"error": OpFailed("io", message).to_json()}))
                continue
            if process == 0:
                _child(writing, parent, search)
            os.close(writing)
            self._running[reading] = _Running(request, process, time.monotonic() + ENDED_AFTER)
        return failed

    def _end(self, descriptor: int) -> _Running:
        running = self._running.pop(descriptor)
        os.close(descriptor)
        os.kill(running.process, signal.SIGKILL)  # not waited for yet, so it is no other
        os.waitpid(running.process, 0)
        return running


def _child(writing: int, parent: int, search: Callable[[], dict[str, Any]]) -> None:
    """Run *search*, write its answer and end this process."""
    try:
        die_with_parent(signal.SIGKILL)
        if os.getppid() == parent:
            with os.fdopen(writing, "wb") as out:
                try:
                    answer: Answer = {"result": search()}
                except OpFailed as error:
                    answer = {"error": error.to_json()}
                out.write(json.dumps(answer).encode("ascii"))
    except BaseException as error:  # noqa: BLE001 - whatever it is, this fork of the worker ends here
        sys.stderr.write(f"files worker: a search failed: {type(error).__name__}\n")
    finally:
        os._exit(0)


def _answer(received: bytearray) -> Answer:
    try:
        return json.loads(received)
    except ValueError:
        return {
            "error": OpFailed("io", "The search ended early. Search in a smaller folder.").to_json()
        }


def _timed_out() -> OpFailed:
    return OpFailed(
        "timed_out",
        f"The search was ended after {ENDED_AFTER:.0f} s. Use a simpler pattern (nested repetitions such as "
        "(a+)+ can take forever), or search in a smaller folder.",
    )
