"""Moving the person's refs to where the agent's are, each only if it still is what the agent began with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.sides import Sides
from aileron_core.text import escape

ASIDE = "refs/aileron"
_CARRIED = ("refs/heads/", "refs/tags/", "refs/remotes/", "refs/notes/")


def shown(name: str) -> str:
    """Return a ref's name as a person writes it."""
    for prefix in ("refs/heads/", "refs/tags/", "refs/remotes/"):
        if name.startswith(prefix):
            return escape(name.removeprefix(prefix))
    return escape(name)


@dataclass(slots=True, kw_only=True)
class RefChanges:
    """What is to become of the refs that the agent changed."""

    moved: dict[str, str] = field(default_factory=dict[str, str])
    """The person's still is what the agent began with: it moves."""
    deleted: list[str] = field(default_factory=list[str])
    aside: dict[str, str] = field(default_factory=dict[str, str])
    """The agent's value is kept under another name."""
    why: dict[str, str] = field(default_factory=dict[str, str])
    """Why what the agent did to a ref was not done to the person's."""
    refused: list[str] = field(default_factory=list[str])
    """What does not pass git's own checks; the agent's folder keeps it."""
    head_stays: bool = False
    """The tree of the agent's HEAD holds a repository that the person's index does not."""

    @classmethod
    def of(
        cls,
        changed: Mapping[str, str | None],
        before: Mapping[str, str],
        now: Mapping[str, str],
        elsewhere: frozenset[str],
    ) -> "RefChanges":
        """Return the moves for *changed*, the agent's values by name (None: it deleted the ref).

        Args:
            changed: see there.
            before: what the agent began with.
            now: the person's.
            elsewhere: branches that another of their work trees has checked out.
        """
        found = cls()
        for name, value in changed.items():
            if now.get(name) == value:
                continue
            if not name.startswith(_CARRIED):
                found._set_aside(name, value, "refs of that kind are not moved for an agent")
            elif now.get(name) != before.get(name):
                found._set_aside(name, value, "it was changed here too")
            elif name in elsewhere:
                found._set_aside(name, value, "another work tree of yours has it checked out")
            elif value is None:
                found.deleted.append(name)
            else:
                found.moved[name] = value
        return found

    def _set_aside(self, name: str, value: str | None, why: str) -> None:
        if value is not None:
            self.aside[name] = value
        self.why[name] = why

    def withhold(self, name: str, why: str) -> None:
        """Set aside what was to be moved."""
        self._set_aside(name, self.moved.pop(name), why)


def checked_out_elsewhere(sides: Sides) -> frozenset[str]:
    """Return the branches that the person's other work trees have checked out."""
    if not (sides.common / "worktrees").is_dir():
        return frozenset()
    heads = [each / "HEAD" for each in (sides.common / "worktrees").iterdir()]
    others = [path for path in (sides.common / "HEAD", *heads) if path.parent != sides.git]
    texts = [path.read_text(errors="replace") for path in others if path.is_file()]
    return frozenset(text.removeprefix("ref:").strip() for text in texts if text.startswith("ref:"))


def move(sides: Sides, moves: RefChanges) -> None:
    """Move the person's refs, each by compare-and-swap; what lost a race is set aside.

    No hook is asked: the person's own `reference-transaction` could run what the agent wrote.
    """
    before = sides.kept.refs
    lines = {name: _update(name, value, before.get(name)) for name, value in moves.moved.items()}
    for name in _each(sides, lines):
        moves.withhold(name, "git did not move it here")


def delete(sides: Sides, moves: RefChanges) -> None:
    """Delete the person's refs, each by compare-and-swap; what they were is kept under another name."""
    before = sides.kept.refs
    saved = {f"deleted/{name.removeprefix('refs/')}": before[name] for name in moves.deleted}
    set_aside(sides, saved)
    lost = _each(sides, {name: _update(name, None, before[name]) for name in moves.deleted})
    for name in lost:
        moves.deleted.remove(name)
        moves.why[name] = "git did not delete it here"


def _update(name: str, new: str | None, old: str | None) -> bytes:
    """Return one command of `update-ref --stdin -z`; no old value means that there must be none."""
    words = [f"update {name}", new or "", old or ""] if new and old else []
    if new and not old:
        words = [f"create {name}", new]
    if not new:
        words = [f"delete {name}", old or ""]
    return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)


def _each(sides: Sides, commands: Mapping[str, bytes]) -> list[str]:
    """Run *commands* as one, and where that fails each by itself; return the names of those that failed."""
    if not commands:
        return []
    words = ("update-ref", "--no-deref", "-m", f"aileron: session {_session(sides)}")
    box = sides.person(write=True)
    try:
        box.run(*words, "-z", "--stdin", given=b"".join(commands.values()))
    except GitFailed:
        if len(commands) == 1:
            return list(commands)
        return [name for name, each in commands.items() if _each(sides, {name: each})]
    return []


def _session(sides: Sides) -> str:
    return sides.place.parent.name


def set_aside(sides: Sides, values: Mapping[str, str]) -> dict[str, str]:
    """Keep *values* under names of this session's own; return which ref holds each.

    Args:
        sides: the repository.
        values: objects by a name below `refs/`, or by a whole one.

    Raises:
        GitFailed: one could not be kept.
    """
    folder = f"{ASIDE}/{_session(sides)}"
    names = {name: f"{folder}/{name.removeprefix('refs/')}" for name in values}
    commands = {name: _put(names[name], value) for name, value in values.items()}
    for name in _each(sides, commands):  # not a name, or one that is a folder by now
        names[name] = f"{folder}/by-id/{values[name]}"
        if _each(sides, {name: _put(names[name], values[name])}):
            raise GitFailed(f"{escape(name)} could not be kept as {names[name]}.")
    return names


def _put(name: str, value: str) -> bytes:
    return f"update {name}\0{value}\0\0".encode("utf-8", "surrogateescape")
