"""Rehearsing one command: it runs on overlays, a person sees what it did, and their yes commits exactly that."""

import contextlib
import errno
import itertools
import os
import resource
import socket
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from aileron_core.connectors.builtin.worker import namespaces
from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.connectors.builtin.worker.commit import Before, Commit, reversed_changes
from aileron_core.connectors.builtin.worker.file_content import Snapshot, text_of
from aileron_core.connectors.builtin.worker.first_process import (
    Box,
    Command,
    NotStarted,
    start_command,
)
from aileron_core.connectors.builtin.worker.journal import Journal
from aileron_core.connectors.builtin.worker.overlays import (
    MEMORY,
    Layer,
    arrange,
    is_inside,
    merged,
    new_upper,
    read_layers,
)
from aileron_core.connectors.builtin.worker.supervision import Supervision
from aileron_core.connectors.builtin.worker.text_diff import MAX_DIFFED, unified_diff
from aileron_core.connectors.builtin.worker.upper_changes import (
    MAX_PATHS,
    MAX_READ,
    Change,
    NotShowable,
    UpperReader,
    printable,
)
from aileron_core.connectors.builtin.worker.wanted import Attendant, listen, said
from aileron_core.containment.linux_syscalls import openat2
from aileron_core.containment.safe_paths import PROTECTED_NAMES

MAX_SHOWN = 200
"""Paths that a person is shown."""
MAX_OWN_PATHS = 20
"""Of those in the sandbox's own folders, whose number alone counts."""
MAX_DIFF = 1024 * 1024
_PATH = getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_BENEATH = 0x02 | 0x08
"""RESOLVE_NO_MAGICLINKS and RESOLVE_BENEATH of linux/openat2.h."""
_SESSION_MEMORY = 512 << 20
"""Bytes of memory that all rehearsals of a session may have: files, processes that keep them, and those at work."""
_KEEPING_MEMORY = 32 << 20
_UNSEEN_MEMORY = 64 << 20
"""What commands may take between two looks."""
AT_WORK = 2
"""Rehearsals of a session at once; others wait for them."""
_READING_MEMORY = (_SESSION_MEMORY - _KEEPING_MEMORY - MEMORY) // AT_WORK
"""Bytes of memory that a helper may have while it reads what a command left, with what every helper has."""
_LIMITS = (
    (resource.RLIMIT_NPROC, 256),
    (resource.RLIMIT_DATA, 1 << 30),
    (resource.RLIMIT_AS, 16 << 30),
    (resource.RLIMIT_CORE, 0),
)
"""Address space is a multiple of memory: programs reserve more than they use."""
_TOLD = ("No space left on device", "Invalid cross-device link")
"""What a command says that met a limit of the overlay."""


@dataclass(slots=True)
class _Rehearsed:
    """A `first_process.Extras`."""

    layers: Sequence[Layer]
    upper: int
    shown: Sequence[Path]
    unders: dict[int, int]
    listener: int = -1

    def arrange(self, box: Box) -> int:
        project, self.unders = arrange(box, self.layers, self.upper, self.shown)
        return project

    def restrict(self) -> tuple[int, ...]:
        namespaces.set_dumpable(True)  # the file is root's otherwise
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        namespaces.set_dumpable(False)
        for kind, most in _LIMITS:
            soft, hard = resource.getrlimit(kind)
            most = min(each for each in (most, soft, hard) if each != resource.RLIM_INFINITY)
            resource.setrlimit(kind, (most, most))
        self.listener = listen()
        return (self.listener, self.upper, *self.unders.values())

    def attend(self, child: int, report: Callable[[dict[str, object]], None]) -> int:
        return Attendant(self.unders, self._room, report).attend(self.listener, child)

    def _room(self) -> int:
        """Return how many bytes of memory each of those at work may have, beside what the session keeps in files."""
        files = os.fstatvfs(self.upper)
        written = (files.f_blocks - files.f_bfree) * files.f_frsize
        return (_SESSION_MEMORY - _KEEPING_MEMORY - _UNSEEN_MEMORY - written) // AT_WORK


class Rehearsal:
    """What one rehearsal did, as long as it may be committed."""

    def __init__(self, layers: Sequence[Layer], upper: int, project: Path) -> None:
        self._layers = layers
        self._upper = upper
        self._project = PurePosixPath(project)
        self._changes: list[Change] = []
        self._shown_paths = 0
        self._merged: dict[int, int] = {}
        """By the layer, once it is needed, what `merged` returns."""
        self._undo: Commit | None = None
        self.outcome: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """Return what has changed, as the answer has it.

        Raises:
            NotShowable: it is too much, or nothing that could be committed.
        """
        shown: list[dict[str, Any]] = []
        own: list[str] = []
        text, left = "", MAX_READ
        for number, layer in enumerate(self._layers):
            if layer.purpose is None:
                continue
            reader = UpperReader(number, layer, self._upper, left)
            for change in reader.changes():
                self._changes.append(_without_content(change))
                self._refuse(layer, change)
                if layer.purpose == "own":
                    own.append(str(layer.path / change.path))
                    continue
                shown.append(self._shown(change))
                text += shown[-1].pop("diff", "")
                if len(text) > MAX_DIFF:
                    raise NotShowable("changes more than can be shown (over 1 MiB)")
            left = reader.left
        for each in self._merged.values():
            os.close(each)
        return {
            "changes": shown,
            "diff": text,
            "own_changes": len(own),
            "own_paths": [printable(each) for each in own[:MAX_OWN_PATHS]],
        }

    def holds(self) -> bool:
        """Return whether everything that it changed is still as it was before."""
        return Commit(self._layers, self._upper, self._changes).holds()

    def commit(self, journal: Journal) -> dict[str, Any]:
        """Make the changes for real.

        Raises:
            OpFailed: nothing was changed.
        """
        # What a repository's names lead to comes before them.
        order = sorted(
            self._changes,
            key=lambda each: self._purpose(each) == "git" and "refs" in each.path.parts[:1],
        )
        before = Before(self._upper)
        Commit(self._layers, self._upper, order, before.keep, journal=journal).apply()
        with contextlib.suppress(OSError):  # somebody is quicker: it cannot be taken back then
            if before.is_whole and order:
                reverse = reversed_changes(self._layers, order)
                before.forget_rehearsal()
                self._undo = Commit(
                    self._layers,
                    before.root,
                    reverse,
                    since="the command's changes were made",
                    journal=journal,
                )
        kept = ("exit_code", "signal", "stdout", "stderr")
        return {name: self.outcome[name] for name in kept if name in self.outcome}

    @property
    def can_undo(self) -> bool:
        return self._undo is not None

    def undo(self) -> dict[str, Any]:
        """Take a commit back, and return an empty answer.

        Raises:
            OpFailed: something has changed since; nothing was changed.
        """
        assert self._undo is not None
        self._undo.apply()
        return {}

    def _purpose(self, change: Change) -> str | None:
        return self._layers[change.layer].purpose

    def _refuse(self, layer: Layer, change: Change) -> None:
        self._shown_paths += layer.purpose == "shown"
        if self._shown_paths > MAX_SHOWN:
            raise NotShowable(f"changes more than can be shown (over {MAX_SHOWN} paths)")
        if len(self._changes) > MAX_PATHS:
            raise NotShowable(f"changes more than can be kept (over {MAX_PATHS:,} paths in all)")
        if layer.purpose != "shown":
            return
        name = printable(str(change.path))
        if change.path.parts[0] in PROTECTED_NAMES:
            raise NotShowable(f"changes {name}, a name through which your own tools are reached")
        if change.target and self._leads_out(change):
            raise NotShowable(f"makes the link {name}, which leads out of the project")

    def _leads_out(self, change: Change) -> bool:
        """Return whether the kernel, in what the command left, follows a link to a place outside, or may come to."""
        number, inside = change.layer, f"{change.path.parent}/{change.target}"
        if change.target.startswith("/"):
            around = [
                each
                for each, layer in enumerate(self._layers)
                if layer.purpose == "shown" and is_inside(change.target, str(layer.path))
            ]
            if not around:
                return True
            number = around[-1]
            inside = f".{change.target[len(str(self._layers[number].path)) :]}"
        # After a name, `..` leads to another folder once that name is a link: of a later command, say.
        names = itertools.dropwhile(lambda each: each in ("", ".", ".."), change.target.split("/"))
        if ".." in names:
            return True
        if number not in self._merged:
            self._merged[number] = merged(self._layers[number], self._upper, number)
        try:
            os.close(openat2(self._merged[number], os.fsencode(inside), _PATH, _BENEATH))
        except OSError as error:
            return error.errno not in (errno.ENOENT, errno.ENOTDIR)
        return False

    def _shown(self, change: Change) -> dict[str, Any]:
        layer = self._layers[change.layer]
        full = layer.path / change.path
        inside = full.is_relative_to(self._project)
        path = printable(str(full.relative_to(self._project) if inside else full))
        entry: dict[str, Any] = {"path": path, "kind": change.kind}
        before = change.was[1] if change.was else 0
        for name, mode in (("mode", change.mode), ("previous_mode", before)):
            if mode and not stat.S_ISLNK(mode) and change.mode != before:
                entry[name] = f"{stat.S_IMODE(mode):04o}"
        if layer.purpose == "git":
            return {**entry, "git": True}
        if change.target or change.link_before:
            entry["target"] = printable(change.target) or None
            entry["previous_target"] = printable(change.link_before or "") or None
        if stat.S_ISDIR(change.mode or before):
            return {**entry, "folder": True}
        return {**entry, **_content(change, path)}


def _without_content(change: Change) -> Change:
    """Return *change* as it is kept: what is compared later is hashes."""

    def stripped(snapshot: Snapshot | None) -> Snapshot | None:
        return None if snapshot is None else replace(snapshot, data=None, beginning=b"")

    return replace(change, before=stripped(change.before), after=stripped(change.after))


def _content(change: Change, path: str) -> dict[str, Any]:
    """Return the difference of two texts, or what else is to be said of the file as it will be and as it is."""
    old, new = _text(change.before), _text(change.after)
    found = {
        name: snapshot.summary()
        for name, snapshot in (("binary", change.after), ("previous_binary", change.before))
        if snapshot is not None
    }
    if change.was is not None and stat.S_ISREG(change.was[1]) and change.before is None:
        return {**found, "previous_binary": {"type": "file", "bytes": change.was[2]}}
    if (old is None) == (change.before is None) and (new is None) == (change.after is None):
        diff, _, _ = unified_diff(old, new, path)
        return {"diff": diff}
    if found.get("binary") == found.get("previous_binary"):
        del found["previous_binary"]
    return found


def _text(snapshot: Snapshot | None) -> str | None:
    if snapshot is None or snapshot.size > MAX_DIFFED:
        return None
    return text_of(snapshot.data)


def rehearse(
    command: Command,
    box: Box,
    shown: Sequence[Path],
    seconds: float,
    control: socket.socket,
    place: tuple[int, str],
    before_reading: Callable[[], None],
) -> tuple[dict[str, Any], Rehearsal | None]:
    """Run *command* on overlays, and return the answer, with what can be committed.

    Args:
        place: a descriptor of the memory of the session's rehearsals, and the name of a new folder there.
        before_reading: called when the command has ended; from then on this process may be killed.

    Raises:
        OpFailed: it was stopped.
    """
    try:
        layers = read_layers(box.project, shown)
        upper = new_upper(layers, *place)
    except NotStarted as error:
        return {"fallback": str(error)}, None
    except OSError as error:
        return {"fallback": f"This system cannot rehearse commands ({error})."}, None
    extras = _Rehearsed(layers, upper, shown, {})
    running = start_command(command, box, extras)
    attended = Supervision(running, control, is_plain=False, ends_at_wishes=True)
    attended.attend(seconds)
    if (why := said(attended.reports())) is not None:
        return {"fallback": why}, None
    if attended.timed_out:
        return {"fallback": f"It takes longer than the {seconds:.0f} s of a rehearsal."}, None
    try:
        outcome = attended.outcome()
    except OpFailed as problem:
        if problem.class_ == "io":
            return {"fallback": problem.message}, None
        raise
    if any(each in outcome["stdout"] + outcome["stderr"] for each in _TOLD):
        return {
            "fallback": "It needs more room than a rehearsal has, or moves what it cannot."
        }, None
    memory, name = place
    rehearsal = Rehearsal(layers, os.open(name, _PATH, dir_fd=memory), box.project)
    rehearsal.outcome = outcome
    before_reading()
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_READING_MEMORY, most))
    try:
        return {**outcome, **rehearsal.read()}, rehearsal
    except NotShowable as error:
        return {"fallback": f"It {error}."}, None
    except (MemoryError, RecursionError):
        return {"fallback": "It changes more than there is memory to show."}, None
    except OSError as error:
        return {"fallback": f"The project changed while its changes were read ({error})."}, None
