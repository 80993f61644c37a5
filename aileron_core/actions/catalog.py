"""The folder of action files, and which of them are accepted and without errors.

A file counts once a person accepted it: its digest is recorded. One that has no record is not
offered; where its bytes differ from the record, what was accepted goes on counting, and the new
bytes wait (docs/threat-model.md#accepted-files).
Also here: which of two files with one name counts, and which op may be asked as a preview.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal

from aileron_core.actions.load import locate_key_problems, locate_problems, read_action
from aileron_core.actions.model import UNBOUND_HASH, Action
from aileron_core.actions.problems import KeyProblem
from aileron_core.canonical import sha256_hex
from aileron_core.errors import Problem

MAX_FILE = 4 * 1024 * 1024
"""Bytes of one action file."""

ActionState = Literal["ready", "held_back", "error"]
_CHUNK = 64 * 1024
_PREVIEW_OP = ("approval", "preview", "op")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFile:
    """One file as it was read: its bytes, and the action or the problems that they make."""

    file: str
    """The file's name; of one that is not UTF-8 the other bytes stand as backslash escapes."""
    sha256: str = ""
    """Lower-case hex of the bytes; empty where they could not be read."""
    action: Action | None = None
    problems: tuple[Problem, ...] = ()
    """Why it is not an action."""
    warnings: tuple[KeyProblem, ...] = ()
    """Spellings accepted leniently; located in the file only when `CatalogEntry.problems` is read."""
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogScan:
    """The files of a folder at one moment, in the order of their names."""

    files: tuple[ScannedFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One file with its state; only a ready one is shown to agents and may run."""

    file: str
    sha256: str
    state: ActionState
    action: Action | None = None
    errors: tuple[Problem, ...] = ()
    """Why it is not offered: the file itself, its connectors, or another file of the same name."""
    scanned: ScannedFile = field(repr=False)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with the file: what keeps it from being offered, then warnings."""
        warnings = locate_key_problems(self.scanned.warnings, self.scanned.data, self.file)
        return tuple(sorted((*self.errors, *warnings), key=lambda each: each.severity == "warning"))

    @property
    def name(self) -> str:
        """The action's name, empty where the file holds none."""
        return self.action.name if self.action else ""


def cannot_run(action: Action) -> str:
    """Return why no call of *action* can run, whatever is accepted; empty where one can."""
    if not action.steps_without_capability:
        return ""
    step = action.steps_without_capability[0]
    return (
        f"This action cannot run: {step.op} is not among the capabilities that its file lists for "
        f"{step.connector}. Add it to the file, and accept the file."
    )


def scan(folder: Path, previous: CatalogScan | None = None) -> CatalogScan:
    """Read every `*.md` file of *folder*; a missing folder holds none, dot files are left out.

    Nothing raises: what is wrong with a file is its own problem and hides no other file, and a
    folder that cannot be read holds no action but that problem.

    Args:
        folder: the folder of action files, flat.
        previous: an earlier scan; files with the same bytes are not parsed again.
    """
    known = {file.file: file for file in previous.files} if previous else {}
    try:
        return CatalogScan(files=_scan_folder(folder, known))
    except FileNotFoundError:
        return CatalogScan()
    except OSError as error:
        return CatalogScan(files=(_unread(folder.name, error),))


def _scan_folder(folder: Path, known: Mapping[str, ScannedFile]) -> tuple[ScannedFile, ...]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listed = os.listdir(handle)  # noqa: PTH208 - of the folder that was opened
        names = sorted(name for name in listed if name.endswith(".md") and name[0] != ".")
        return tuple(_scan_file(name, handle, folder, known) for name in names)
    finally:
        os.close(handle)


def read_file(folder: Path, name: str) -> bytes:
    """Return the bytes of one file of *folder* as `scan` would read it: no device, pipe or far link.

    Raises:
        OSError: it cannot be read, or is no such file.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _read(name, handle, folder)
    finally:
        os.close(handle)


def read_plain(path: Path, limit: int = MAX_FILE) -> bytes:
    """Return the bytes of a file that a person named, through links; a pipe or a device is not waited for.

    Raises:
        OSError: as `read_handle`, or there is none.
    """
    return read_handle(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), limit)


def open_plain(path: Path, limit: int) -> BinaryIO:
    """Open a file that a person named, as `read_plain` does.

    Raises:
        OSError: as `read_plain`.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        _check_regular(os.fstat(file.fileno()), limit)
    except OSError:
        file.close()
        raise
    return file


def _check_regular(status: os.stat_result, limit: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "is not a regular file")
    if status.st_size > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> OSError:
    mib = limit // 1024 // 1024
    return OSError(0, f"is larger than {mib} MiB" if mib else f"is larger than {limit} bytes")


def read_handle(handle: int, limit: int = MAX_FILE) -> bytes:
    """Return the bytes of the regular file behind *handle*, which is closed in any case.

    Raises:
        OSError: it is not a regular file, has more than *limit* bytes, or cannot be read.
    """
    try:
        _check_regular(os.fstat(handle), limit)
        data = BytesIO()  # grows in place, and is not copied at its end: a module is large
        while chunk := os.read(handle, min(_CHUNK, limit + 1)):
            data.write(chunk)
            if data.tell() > limit:
                raise _too_large(limit)
    finally:
        os.close(handle)
    return data.getvalue()


def _scan_file(
    name: str, folder_handle: int, folder: Path, known: Mapping[str, ScannedFile]
) -> ScannedFile:
    shown = name
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        message = "has a name that is not UTF-8; rename it"
        return ScannedFile(file=shown, problems=(Problem(file=shown, message=message),))
    try:
        data = _read(name, folder_handle, folder)
    except OSError as error:
        return _unread(shown, error)
    sha256 = sha256_hex(data)
    before = known.get(shown)
    if before is not None and before.sha256 == sha256:
        return before
    return read_scanned(shown, data)


def read_scanned(name: str, data: bytes) -> ScannedFile:
    """Return the file *name* with the bytes *data* as a scan would."""
    reading, sha256 = read_action(data, name), sha256_hex(data)
    if reading.action is None:
        return ScannedFile(file=name, sha256=sha256, problems=reading.problems, data=data)
    return ScannedFile(
        file=name, sha256=sha256, action=reading.action, warnings=reading.key_problems, data=data
    )


def _unread(shown: str, error: OSError) -> ScannedFile:
    message = f"cannot be read: {error.strerror or error}"
    return ScannedFile(file=shown, problems=(Problem(file=shown, message=message),))


def _read(name: str, folder_handle: int, folder: Path) -> bytes:
    """Return the bytes of a regular file of the folder; a link may lead to another file of it."""
    if stat.S_ISLNK(os.stat(name, dir_fd=folder_handle, follow_symlinks=False).st_mode):
        target = os.path.realpath(folder / name)
        if os.path.dirname(target) != os.path.realpath(folder):  # noqa: PTH120 - text, not a look
            raise OSError(0, "is a link to a file outside this folder; copy the file here instead")
        name = os.path.basename(target)  # noqa: PTH119
    # NOFOLLOW: a link put there since is refused. NONBLOCK: a FIFO must not hold us up.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return read_handle(os.open(name, flags, dir_fd=folder_handle))


class Catalog:
    """The actions of a scan, with what of them is accepted."""

    def __init__(
        self,
        found: CatalogScan,
        accepted: Mapping[str, str],
        *,
        kept: Mapping[str, ScannedFile] | None = None,
        extra_problems: Callable[[Action], Sequence[Problem]] = lambda _action: (),
    ) -> None:
        """Judge every file of *found*.

        Args:
            accepted: file name or action name -> SHA-256 of the bytes that were accepted (hex,
                with or without `sha256:`).
            kept: by file name, what was accepted of a file that has other bytes now; it counts while
                the file can be read.
            extra_problems: what else is wrong with an accepted action, a connector that
                is not installed for example; an error among them keeps it from being offered.
        """
        kept = {name: each for name, each in (kept or {}).items() if each.action}
        self._kept = {name: each.sha256 for name, each in kept.items()}
        files = chain.from_iterable(
            (kept[now.file], now) if now.sha256 and now.file in kept else (now,)
            for now in found.files
        )
        self._entries = {
            (file.file, file.sha256): _judge(file, accepted, extra_problems) for file in files
        }
        self._refuse_duplicates(lambda action: action.name, "action name")
        self._refuse_duplicates(lambda action: action.tool_name, "tool name")
        while broken := self._broken_previews():
            for action, message in broken:
                self._fail(action.file, action.sha256, _PREVIEW_OP, message)

    def __contains__(self, file: tuple[str, str]) -> bool:
        """Whether *file*, a name and the SHA-256 of bytes (hex), is one of the entries."""
        return file in self._entries

    def is_kept(self, entry: CatalogEntry) -> bool:
        """Whether *entry* is what was accepted of a file that has other bytes now."""
        return self._kept.get(entry.file) == entry.sha256

    @property
    def entries(self) -> tuple[CatalogEntry, ...]:
        """Every file, in the order of file names; what was accepted of one before what waits."""
        return tuple(self._entries.values())

    def ready(self) -> dict[str, Action]:
        """Return the actions that agents may see, by name."""
        return {entry.action.name: entry.action for entry in self._ready() if entry.action}

    def not_accepted(self) -> tuple[CatalogEntry, ...]:
        """Return the files that wait for a person to accept them."""
        return tuple(entry for entry in self.entries if entry.state == "held_back")

    def problems(self) -> tuple[Problem, ...]:
        """Return the errors of every file that is in error (the wire's `load_errors`)."""
        failed = (entry for entry in self.entries if entry.state == "error")
        return tuple(
            problem for entry in failed for problem in entry.errors if problem.severity == "error"
        )

    def _ready(self) -> list[CatalogEntry]:
        return [entry for entry in self._entries.values() if entry.state == "ready"]

    def _refuse_duplicates(self, name_of: Callable[[Action], str], what: str) -> None:
        """Refuse the later file of two with one name; what is accepted is not pushed out by what is not."""
        first: dict[str, str] = {}
        accepted_first = sorted(self._entries.values(), key=lambda entry: entry.state != "ready")
        for entry in accepted_first:
            if entry.action is None or entry.state == "error":
                continue
            name = name_of(entry.action)
            if first.get(name, entry.file) != entry.file:
                message = f"the {what} {name} is already used by {first[name]}; rename one of them"
                self._fail(entry.file, entry.sha256, ("name",), message)
            first.setdefault(name, entry.file)

    def _broken_previews(self) -> list[tuple[Action, str]]:
        """Return each ready action whose preview may not be asked, and why (docs/action-files.md#preview-paths)."""
        ready = [entry.action for entry in self._ready() if entry.action]
        idempotent = _ops(ready, _is_idempotent)
        gated = _ops(ready, lambda action, _: action.gated)
        broken: list[tuple[Action, str]] = []
        for action in ready:
            preview = action.approval.preview
            if preview is None:
                continue
            op = (action.steps[0].connector, preview.op)
            if op in gated:
                message = (
                    f"{preview.op} is an op of the gated action {gated[op]}; "
                    "a preview may use only an op that no gated action runs"
                )
                broken.append((action, message))
            elif op not in idempotent:
                message = (
                    f"the preview's op {preview.op} of {op[0]} must be declared idempotent = true in a step of an accepted action; "
                    + self._idempotent_advice(op)
                )
                broken.append((action, message))
        return broken

    def _idempotent_advice(self, op: tuple[str, str]) -> str:
        """Return what to do where no ready action declares *op* idempotent."""
        waiting = [entry.action for entry in self.not_accepted() if entry.action]
        if name := _ops(waiting, _is_idempotent).get(op):
            return f"accept {name}, which declares it"
        return "add and accept an action with such a step"

    def _fail(self, file: str, sha256: str, path: tuple[str, ...], message: str) -> None:
        entry = self._entries[file, sha256]
        finding = KeyProblem(path=path, message=message)
        errors = (*entry.errors, *locate_key_problems([finding], entry.scanned.data, file))
        self._entries[file, sha256] = replace(entry, state="error", errors=errors)


def preview_problems(files: Mapping[str, bytes]) -> tuple[Problem, ...]:
    """Return, as warnings, where a preview among *files* breaks a rule of one file about another.

    Args:
        files: action files by what problems call them, whatever connectors they are bound to.
    """
    found: list[ScannedFile] = []
    for file, data in files.items():
        if action := read_action(data, file).action:
            bound = replace(action, requires=())
            found.append(ScannedFile(file=file, sha256=action.sha256, action=bound, data=data))
    catalog = Catalog(CatalogScan(files=tuple(found)), {each.file: each.sha256 for each in found})
    key = ".".join(_PREVIEW_OP)
    return tuple(
        replace(each, severity="warning") for each in catalog.problems() if each.key == key
    )


def _judge(
    file: ScannedFile,
    accepted: Mapping[str, str],
    extra_problems: Callable[[Action], Sequence[Problem]],
) -> CatalogEntry:
    entry = CatalogEntry(
        file=file.file,
        sha256=file.sha256,
        state="error",
        action=file.action,
        errors=file.problems,
        scanned=file,
    )
    if file.action is None:
        return entry
    unbound = _unbound(file.action)
    if unbound:
        entry = replace(entry, errors=locate_key_problems(unbound, file.data, file.file))
    recorded = (accepted.get(file.file), accepted.get(file.action.name))
    if not any(digest and digest.removeprefix("sha256:") == file.sha256 for digest in recorded):
        return replace(entry, state="held_back")
    # No connector is installed under the placeholder: "not installed" would mislead.
    bound = tuple(each for each in file.action.requires if each.hash != UNBOUND_HASH)
    asked = replace(file.action, requires=bound) if unbound else file.action
    errors = (*entry.errors, *locate_problems(extra_problems(asked), file.data))
    failed = any(problem.severity == "error" for problem in errors)
    return replace(entry, state="error" if failed else "ready", errors=errors)


def _unbound(action: Action) -> list[KeyProblem]:
    """Return what is to do about each connector whose hash is still the placeholder."""
    return [
        KeyProblem(
            path=("requires", "connectors", index, "hash"),
            message=f"{UNBOUND_HASH} is a placeholder; run `aileron action add` on the published file "
            f"to replace it with the hash of the installed {each.fqn}@{each.version}",
        )
        for index, each in enumerate(action.requires)
        if each.hash == UNBOUND_HASH
    ]


def _is_idempotent(action: Action, step: int) -> bool:
    return action.steps[step].idempotent is True


def _ops(
    actions: Iterable[Action], counts: Callable[[Action, int], bool]
) -> dict[tuple[str, str], str]:
    """Return (connector, op) of the steps that count, with the first action that has it."""
    found: dict[tuple[str, str], str] = {}
    for action in actions:
        for index, step in enumerate(action.steps):
            if counts(action, index):
                found.setdefault((step.connector, step.op), action.name)
    return found
