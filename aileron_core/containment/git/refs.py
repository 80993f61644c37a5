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
class Changes:
    """What the agent changed, by name, under one rule: what there is a reason for is set aside, and nothing else with it."""

    theirs: dict[str, str | None]
    """The agent's values: of branches and tags (None for a deleted one), of a detached HEAD, and of what no ref names."""
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    """Why the person's is left as it is; a value of the agent's is kept under another name."""
    invalid: set[str] = field(default_factory=set[str])
    """What fails git's own checks; only the session's git directory has that."""

    def set_aside(self, name: str, why: str) -> None:
        self.reasons[name] = f"{self.reasons[name]}; {why}" if name in self.reasons else why

    def refuse(self, name: str) -> None:
        """Take *name* for something that fails git's own checks."""
        self.invalid.add(name)
        self.theirs.pop(name, None)
        self.reasons.pop(name, None)

    def values(self) -> dict[str, str]:
        """Return the objects that the agent names."""
        return {name: oid for name, oid in self.theirs.items() if oid is not None}

    def updates(self) -> dict[str, str]:
        """Return the branches and tags of the person's that get the agent's value."""
        return {name: oid for name, oid in self.values().items() if self._is_taken(name)}

    def deletions(self) -> list[str]:
        """Return the branches and tags of the person's that go."""
        return [name for name, oid in self.theirs.items() if oid is None and self._is_taken(name)]

    def kept(self) -> dict[str, str]:
        """Return the agent's values that get another name."""
        return {name: oid for name, oid in self.values().items() if not self._is_taken(name)}

    def _is_taken(self, name: str) -> bool:
        return name.startswith(IMPORTED) and name not in self.reasons


def checked_out_elsewhere(repository: SessionRepository) -> frozenset[str]:
    """Return the branches checked out in the person's other work trees."""
    worktrees = repository.common_dir / "worktrees"
    folders = (repository.common_dir, *worktrees.iterdir()) if worktrees.is_dir() else ()
    heads = [each / "HEAD" for each in folders if each != repository.git_dir]
    texts = [each.read_text(errors="replace") for each in heads if each.is_file()]
    return frozenset(text.removeprefix("ref:").strip() for text in texts if text.startswith("ref:"))


def update_refs(repository: SessionRepository, changes: Changes) -> None:
    """Update the person's refs, each by compare-and-swap; one that changed meanwhile is set aside.

    No hook runs: the person's own `reference-transaction` hook might execute what the agent wrote.
    """
    before = repository.record.refs
    lines = {name: _set(name, oid, before.get(name)) for name, oid in changes.updates().items()}
    for name in _run_each(repository, lines):
        changes.set_aside(name, "git refused to move it")


def delete_refs(repository: SessionRepository, changes: Changes) -> None:
    """Delete the person's refs, each by compare-and-swap; their values are kept under another name."""
    before = {name: repository.record.refs[name] for name in changes.deletions()}
    preserve_refs(
        repository, {f"deleted/{name.removeprefix('refs/')}": oid for name, oid in before.items()}
    )
    for name in _run_each(repository, {name: _set(name, "", oid) for name, oid in before.items()}):
        changes.set_aside(name, "git refused to delete it")


def _set(name: str, new: str, old: str | None) -> bytes:
    """Return one command for `update-ref --stdin -z`.

    Args:
        new: none deletes the ref.
        old: what it has to be now: None for a ref that must not exist, empty for whatever it is.
    """
    zeros = "0" * len(new or old or "")
    words = (f"update {name}", new or zeros, zeros if old is None else old, "")
    return "\0".join(words).encode("utf-8", "surrogateescape")


def _run_each(repository: SessionRepository, commands: Mapping[str, bytes]) -> list[str]:
    """Run *commands* as one transaction, or one by one if that fails; return the refs that failed."""
    if not commands:
        return []
    words = ("update-ref", "--no-deref", "-m", f"aileron: session {repository.session}")
    git = repository.person_git(write=True)
    try:
        git.run(*words, "-z", "--stdin", stdin=b"".join(commands.values()))
    except GitFailed:
        if len(commands) == 1:
            return list(commands)
        return [name for name, each in commands.items() if _run_each(repository, {name: each})]
    return []


def preserved_refs(repository: SessionRepository) -> str:
    """Return the ref below which this session's are kept."""
    return f"{PRESERVED_REFS}/{repository.session}"


def preserve_refs(repository: SessionRepository, values: Mapping[str, str]) -> dict[str, str]:
    """Save *values* under refs of this session's own; return the ref of each.

    Args:
        values: object ids, by a name below `refs/` or by a full ref name.

    Raises:
        GitFailed: one could not be saved.
    """
    folder = preserved_refs(repository)
    names = {name: f"{folder}/{name.removeprefix('refs/')}" for name in values}
    commands = {name: _set(names[name], value, "") for name, value in values.items()}
    for name in _run_each(repository, commands):  # not a name, or one that is a folder by now
        names[name] = f"{folder}/by-id/{values[name]}"
        if _run_each(repository, {name: _set(names[name], values[name], "")}):
            raise GitFailed(f"{escape(name)} could not be saved as {names[name]}.")
    return names
