"""Rehearsing one command: it runs on overlays, a person sees what it did, and their yes commits exactly that."""

import contextlib
import errno
import os
import resource
import socket
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from aileron_core.connectors.builtin.worker import namespaces
from aileron_core.connectors.builtin.worker.commit import Commit
from aileron_core.connectors.builtin.worker.file_content import Snapshot, text_of
from aileron_core.connectors.builtin.worker.first_process import (
    Box,
    Command,
    NotStarted,
    start_command,
)
from aileron_core.connectors.builtin.worker.overlays import (
    Layer,
    arrange,
    is_inside,
    new_upper,
    read_layers,
)
from aileron_core.connectors.builtin.worker.problems import OpFailed
from aileron_core.connectors.builtin.worker.supervision import Supervision
from aileron_core.connectors.builtin.worker.text_diff import MAX_DIFFED, unified_diff
from aileron_core.connectors.builtin.worker.undo import Before, reversed_changes
from aileron_core.connectors.builtin.worker.upper_changes import (
    MAX_PATHS,
    Change,
    NotShowable,
    UpperReader,
    printable,
)
from aileron_core.connectors.builtin.worker.wanted import Attendant, listen, said
from aileron_core.containment.linux_syscalls import openat2
from aileron_core.containment.protected_names import PROTECTED_NAMES

MAX_SHOWN = 200
"""Paths that a person is shown."""
MAX_OWN_PATHS = 20
"""Of those in the sandbox's own folders, whose number alone counts."""
MAX_DIFF = 1024 * 1024
_PATH = getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_BENEATH = 0x02 | 0x08
"""RESOLVE_NO_MAGICLINKS and RESOLVE_BENEATH of linux/openat2.h."""
_LIMITS = (
    (resource.RLIMIT_NPROC, 256),
    (resource.RLIMIT_DATA, 2 << 30),
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
        return (self.listener, *self.unders.values())

    def attend(self, child: int, report: Callable[[dict[str, object]], None]) -> int:
        return Attendant(self.unders, report).attend(self.listener, child)


class Rehearsal:
    """What one rehearsal did, as long as it may be committed."""

    def __init__(self, layers: Sequence[Layer], upper: int, project: Path) -> None:
        self._layers = layers
        self._upper = upper
        self._project = PurePosixPath(project)
        self._changes: list[Change] = []
        self._shown_paths = 0
        self._undo: Commit | None = None
        self.outcome: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """Return what has changed, as the answer has it.

        Raises:
            NotShowable: it is too much, or nothing that could be committed.
        """
        for number, layer in enumerate(self._layers):
            if layer.purpose is not None:
                for change in UpperReader(number, layer, self._upper).changes():
                    self._changes.append(change)
                    self._refuse(layer, change)
        shown = [each for each in self._changes if self._purpose(each) != "own"]
        own = [
            str(self._layers[each.layer].path / each.path)
            for each in self._changes
            if self._purpose(each) == "own"
        ]
        diffs = [self._shown(each) for each in shown]
        text = "".join(each.pop("diff", "") for each in diffs)
        if len(text) > MAX_DIFF:
            raise NotShowable("changes more than can be shown (over 1 MiB)")
        return {
            "changes": diffs,
            "diff": text,
            "own_changes": len(own),
            "own_paths": [printable(each) for each in own[:MAX_OWN_PATHS]],
        }

    def holds(self) -> bool:
        """Return whether everything that it changed is still as it was before."""
        return Commit(self._layers, self._upper, self._changes).holds()

    def commit(self) -> dict[str, Any]:
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
        Commit(self._layers, self._upper, order, before.keep).apply()
        with contextlib.suppress(OSError):  # somebody is quicker: it cannot be taken back then
            if before.is_whole and order:
                reverse = reversed_changes(self._layers, order)
                before.forget_rehearsal()
                self._undo = Commit(
                    self._layers, before.root, reverse, since="the command's changes were made"
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
        if change.target and self._leads_out(layer, change):
            raise NotShowable(f"makes the link {name}, which leads out of the project")

    def _leads_out(self, layer: Layer, change: Change) -> bool:
        end = os.path.normpath(layer.path / change.path.parent / change.target)
        around = [
            each
            for each in self._layers
            if each.purpose == "shown" and is_inside(end, str(each.path))
        ]
        if not around:
            return True
        inside = os.path.relpath(end, around[-1].path)
        try:
            os.close(openat2(around[-1].handle, os.fsencode(inside), _PATH, _BENEATH))
        except OSError as error:
            return error.errno == errno.EXDEV
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
) -> tuple[dict[str, Any], Rehearsal | None]:
    """Run *command* on overlays, and return the answer, with what can be committed.

    Raises:
        OpFailed: it was stopped.
    """
    try:
        layers = read_layers(box.project, shown)
        upper = new_upper(layers)
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
    rehearsal = Rehearsal(layers, upper, box.project)
    rehearsal.outcome = outcome
    try:
        return {**outcome, **rehearsal.read()}, rehearsal
    except NotShowable as error:
        return {"fallback": f"It {error}."}, None
    except OSError as error:
        return {"fallback": f"The project changed while its changes were read ({error})."}, None
