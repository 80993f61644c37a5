"""Updating the person's refs to the agent's, each only if it still has the value the agent began with."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_repository import SessionRepository
from aileron_core.text import escape

PRESERVED_REFS = "refs/aileron"
"""Below it, by session: what could not be imported under its own name."""
IMPORTED = ("refs/heads/", "refs/tags/")
_RESERVED = re.compile(
    r"-.*|@|stash|(?:.*_)?head|auto_merge|merge_autostash|notes_merge_(?:partial|ref)"
    r"|bisect_expected_rev|(?:refs|heads|tags|remotes|worktrees|main-worktree)(?:/.*)?"
    r"|(?:.*-g)?[0-9a-f]{4,}"
)
"""What git takes for an option, for a ref of its own, for a longer name or for an object's id (gitrevisions)."""
_SHORT = re.compile(r"refs/(?:heads|tags|remotes)/(.+)", re.DOTALL)
_REMOTE = re.compile(r"remote\.(.+)\.[^.]+|refs/remotes/([^/]+)/.+", re.DOTALL)


def shadowing_refs(
    repository: SessionRepository, new: Sequence[str], existing: Iterable[str]
) -> list[str]:
    """Return those of the branches and tags *new* whose short name means something else to git, or could.

    Raises:
        GitFailed: git could not be asked.
    """
    if not new:
        return []
    asked = "".join(f"{name.split('/', 2)[2]}\n" for name in new)
    answers = repository.person_git().run(
        "cat-file", "--batch-check=found", stdin=asked.encode("utf-8", "surrogateescape")
    )
    existing = [*existing]
    taken = {match[1].casefold() for match in map(_SHORT.fullmatch, existing) if match}
    names = map(_REMOTE.fullmatch, (*repository.record.settings, *existing))
    remotes = [f"{match[1] or match[2]}/".casefold() for match in names if match]
    found: list[str] = []
    for name, answer in zip(new, answers.split(b"\n")[:-1], strict=True):
        word = name.split("/", 2)[2].casefold()
        if (
            not answer.endswith(b" missing")
            or word in taken
            or _RESERVED.fullmatch(word)
            or any(f"{word}/".startswith(remote) for remote in remotes)
        ):
            found.append(name)
        taken.add(word)  # of a branch and a tag with one name, one is set aside
    return found


@dataclass(slots=True, kw_only=True)
class RefChanges:
    """How the refs that the agent changed are to be handled."""

    updates: dict[str, str] = field(default_factory=dict[str, str])
    """New values of refs that in the person's repository still are what the agent began with."""
    deletions: list[str] = field(default_factory=list[str])
    to_preserve: dict[str, str] = field(default_factory=dict[str, str])
    """The agent's values of rejected refs: each is kept under another name."""
    rejected: dict[str, str] = field(default_factory=dict[str, str])
    """By ref, or by another name of the agent's: why the person's was left as it is."""
    invalid: list[str] = field(default_factory=list[str])
    """Refs whose objects fail git's own checks; only the session's git directory has those."""

    @classmethod
    def classify(
        cls,
        changed: Mapping[str, str | None],
        before: Mapping[str, str],
        now: Mapping[str, str],
        elsewhere: frozenset[str],
    ) -> "RefChanges":
        """Sort the agent's changes into updates, deletions and rejections.

        Args:
            changed: the agent's values by ref; None for a deleted one.
            before: the values that the agent began with.
            now: the person's refs.
            elsewhere: branches checked out in another work tree of the person's.
        """
        changes = cls()
        for name, value in changed.items():
            if now.get(name) == value:
                continue
            if now.get(name) != before.get(name):
                changes.reject(name, "you changed it too", value)
            elif name in elsewhere:
                changes.reject(name, "it is checked out in another work tree", value)
            elif value is None:
                changes.deletions.append(name)
            else:
                changes.updates[name] = value
        return changes

    def reject(self, name: str, why: str, value: str | None = None) -> None:
        """Leave the person's *name* as it is, and keep the agent's value of it aside."""
        value = self.updates.pop(name, value)
        if value is not None:
            self.to_preserve[name] = value
        self.rejected[name] = f"{self.rejected[name]}; {why}" if name in self.rejected else why


def checked_out_elsewhere(repository: SessionRepository) -> frozenset[str]:
    """Return the branches checked out in the person's other work trees."""
    if not (repository.common_dir / "worktrees").is_dir():
        return frozenset()
    heads = [each / "HEAD" for each in (repository.common_dir / "worktrees").iterdir()]
    others = [
        path
        for path in (repository.common_dir / "HEAD", *heads)
        if path.parent != repository.git_dir
    ]
    texts = [path.read_text(errors="replace") for path in others if path.is_file()]
    return frozenset(text.removeprefix("ref:").strip() for text in texts if text.startswith("ref:"))


def update_refs(repository: SessionRepository, changes: RefChanges) -> None:
    """Update the person's refs, each by compare-and-swap; one that changed meanwhile is rejected.

    No hook runs: the person's own `reference-transaction` hook might execute what the agent wrote.
    """
    before = repository.record.refs
    lines = {
        name: _update(name, value, before.get(name)) for name, value in changes.updates.items()
    }
    for name in _run_each(repository, lines):
        changes.reject(name, "git refused to move it")


def delete_refs(repository: SessionRepository, changes: RefChanges) -> None:
    """Delete the person's refs, each by compare-and-swap; their values are kept under another name."""
    before = repository.record.refs
    saved = {f"deleted/{name.removeprefix('refs/')}": before[name] for name in changes.deletions}
    preserve_refs(repository, saved)
    failed = _run_each(
        repository, {name: _update(name, None, before[name]) for name in changes.deletions}
    )
    for name in failed:
        changes.deletions.remove(name)
        changes.rejected[name] = "git refused to delete it"


def _update(name: str, new: str | None, old: str | None) -> bytes:
    """Return one command for `update-ref --stdin -z`; without *old* the ref must not exist."""
    words = [f"update {name}", new or "", old or ""] if new and old else []
    if new and not old:
        words = [f"create {name}", new]
    if not new:
        words = [f"delete {name}", old or ""]
    return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)


def _run_each(repository: SessionRepository, commands: Mapping[str, bytes]) -> list[str]:
    """Run *commands* as one transaction, or one by one if that fails; return the refs that failed."""
    if not commands:
        return []
    words = ("update-ref", "--no-deref", "-m", f"aileron: session {_session(repository)}")
    git = repository.person_git(write=True)
    try:
        git.run(*words, "-z", "--stdin", stdin=b"".join(commands.values()))
    except GitFailed:
        if len(commands) == 1:
            return list(commands)
        return [name for name, each in commands.items() if _run_each(repository, {name: each})]
    return []


def _session(repository: SessionRepository) -> str:
    return repository.folder.parent.name


def preserve_refs(repository: SessionRepository, values: Mapping[str, str]) -> dict[str, str]:
    """Save *values* under refs of this session's own; return the ref of each.

    Args:
        values: object ids, by a name below `refs/` or by a full ref name.

    Raises:
        GitFailed: one could not be saved.
    """
    folder = f"{PRESERVED_REFS}/{_session(repository)}"
    names = {name: f"{folder}/{name.removeprefix('refs/')}" for name in values}
    commands = {name: _force_update(names[name], value) for name, value in values.items()}
    for name in _run_each(repository, commands):  # not a name, or one that is a folder by now
        names[name] = f"{folder}/by-id/{values[name]}"
        if _run_each(repository, {name: _force_update(names[name], values[name])}):
            raise GitFailed(f"{escape(name)} could not be saved as {names[name]}.")
    return names


def _force_update(name: str, value: str) -> bytes:
    return f"update {name}\0{value}\0\0".encode("utf-8", "surrogateescape")
