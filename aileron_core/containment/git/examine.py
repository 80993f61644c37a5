"""What of an agent's commits and index the person's own git and tools would obey.

The rule of the project's working tree, for what git would write into it: what the sandbox keeps
read-only, or takes away at the end, does not come back by `git checkout` either. Only what differs
from the person's own is looked at.
"""

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from aileron_core.containment.git.record import OBJECT_ID_PATTERN
from aileron_core.containment.git.refs import PRESERVED_REFS
from aileron_core.containment.git.session_repository import IndexEntry, SessionRepository, peeled
from aileron_core.containment.safe_paths import PROTECTED_NAMES
from aileron_core.text import escape

_RAW = re.compile(rb"\n?:+(?:[0-7]{6} )+([0-7]{6}) (?:[0-9a-f]+ )+([0-9a-f]+) [A-Z]+")
_DIFF = ("--raw", "-z", "-c", "-r", "--root", "--no-abbrev", "--no-renames",
         "--ignore-submodules=none")  # fmt: skip
_GONE = b"000000"
_MAX_NAMED = 3
_Change = tuple[bytes, bytes, str]
"""Path, mode and object id of what a commit has in place of what was there before."""


class Examination:
    """The rule, for one repository as it was when the repositories last matched."""

    def __init__(
        self,
        repository: SessionRepository,
        before: Iterable[IndexEntry],
        others: Mapping[str, SessionRepository],
    ) -> None:
        """Prepare to examine *repository*.

        Args:
            before: the index when the repositories last matched.
            others: the session's repositories by work tree; those below this one are imported already.
        """
        self._repository = repository
        self._others = others
        self._before = frozenset(before)
        self._links = {each.path for each in before if each.is_gitlink}
        worktree = PurePosixPath(repository.record.worktree)
        self._worktree = _fold(os.fsencode(worktree)) if worktree.parts else ()
        names = [_fold(os.fsencode(name)) for name in repository.record.read_only]
        self._set_aside: set[str] = set()
        self._read_only = {*names}
        self._above = {name[:number] for name in names for number in range(len(name))}

    def staged(
        self, entries: frozenset[IndexEntry]
    ) -> tuple[frozenset[IndexEntry], dict[bytes, str]]:
        """Return *entries* with the person's own in place of those that may not be staged, and why for each path."""
        if entries == self._before:
            return entries, {}
        shaped = {each.path.rpartition(b"/")[0] for each in entries if _is_head(each.path)}
        new = sorted(entries - self._before)
        self._look_into_submodules((each.path, each.mode, each.oid) for each in new)
        left_out: dict[bytes, str] = {}
        for each in new:
            above = shaped.intersection(_folders(each.path))
            if (why := self._why(each.path, each.mode, each.oid, bool(above))) is not None:
                left_out[each.path] = why
        if not left_out:
            return entries, left_out
        kept = {each for each in entries if each.path not in left_out}
        return frozenset(kept | {each for each in self._before if each.path in left_out}), left_out

    def commits(
        self,
        tips: Mapping[str, str],
        trusted: Collection[str],
        moved: Mapping[str, tuple[str, str]],
    ) -> dict[str, str]:
        """Return by name why what it names may not be the person's; names without a finding are left out.

        Every commit that only the agent has is compared with its parents, for each can be checked
        out. A merge counts where it differs from every parent.

        Args:
            tips: the agent's commits by name.
            trusted: commits that are the person's, with all that they reach.
            moved: by name the commit that it names now, and the one that it named before: these two
                are compared too, for a ref can be moved to what is old.
        """
        if not tips and not moved:
            return {}
        git = self._repository.quarantine_git()
        words = ("--format=%H %P", "--topo-order", "--reverse", "--stdin")
        new = _parse(git.run("log", *_DIFF, *words, stdin=_revisions(tips.values(), trusted)))
        compared: list[tuple[list[str], list[_Change]]] = []
        if moved:
            stdin = "".join(f"{after} {before}\n" for after, before in moved.values())
            listed = git.run("diff-tree", *_DIFF, "--always", "--stdin", stdin=stdin.encode())
            compared = _parse(listed)
        self._look_into_submodules(each for _, changes in (*new, *compared) for each in changes)
        shaped = self._shaped_folders((words[0], changes) for words, changes in (*new, *compared))
        found: dict[str, dict[str, None]] = {}
        for (commit, *parents), changes in new:
            own = [*self._findings(commit, changes, shaped)]
            above = [each for parent in parents for each in found.get(parent, ())]
            if own or above:
                found[commit] = dict.fromkeys([*own, *above][: 2 * _MAX_NAMED])
        bad = {name: [*found[tip]] for name, tip in tips.items() if tip in found}
        for name, ((commit, *_), changes) in zip(moved, compared, strict=True):
            more = [*self._findings(commit, changes, shaped)]
            if more:
                bad[name] = [*dict.fromkeys([*bad.get(name, ()), *more])]
        return {name: _listed(findings) for name, findings in bad.items()}

    def _findings(
        self, commit: str, changes: Iterable[_Change], shaped: Collection[tuple[str, bytes]]
    ) -> Iterator[str]:
        for path, mode, oid in changes:
            above = any((commit, folder) in shaped for folder in _folders(path))
            if (why := self._why(path, mode, oid, above)) is not None:
                yield f"{shown(path)} {why}"

    def _why(self, path: bytes, mode: bytes, oid: str, in_repository: bool) -> str | None:
        """Return why the person may not get what is at *path* now, None if they may.

        Args:
            in_repository: whether a folder above it holds a file HEAD.
        """
        entry = IndexEntry(path, 0, mode, oid)
        if entry in self._before:
            return None
        is_link = entry.is_gitlink
        if is_link and path not in self._links:
            return "is another repository"
        if is_link and oid in self._set_aside:
            return "is a submodule at a commit that was set aside"
        inside = _fold(path)
        place = (*self._worktree, *inside)
        if {inside[:1], place[:1]} & _PROTECTED:
            return "is obeyed by your own tools"
        if not is_link and (
            place in self._above
            or any(place[:end] in self._read_only for end in range(1, len(place) + 1))
        ):
            return "was read-only for the agent"
        if in_repository or _is_head(path) or ".git" in inside:
            return "is part of what git takes for a repository"
        return None

    def _look_into_submodules(self, changes: Iterable[_Change]) -> None:
        """Learn which commits of submodules, among *changes*, are there and reached by nothing of the person's."""
        asked: dict[str, dict[str, str]] = {}
        for path, _, oid in changes:
            if path in self._links:
                place = PurePosixPath(self._repository.record.worktree, os.fsdecode(path))
                asked.setdefault(str(place), {})[oid] = oid
        for place in asked.keys() & self._others.keys():
            submodule = self._others[place]
            git = submodule.person_git()
            there = [
                oid for oid, (kind, _) in peeled(git, asked[place]).items() if kind == "commit"
            ]
            stdin = _revisions(there, persons_commits(submodule))
            if there:
                self._set_aside |= {*git.run("rev-list", "--stdin", stdin=stdin).decode().split()}

    def _shaped_folders(self, trees: Iterable[tuple[str, list[_Change]]]) -> set[tuple[str, bytes]]:
        """Return those folders above a change, with their commits, that hold a file HEAD.

        What else a repository consists of may lie in the working tree untracked.
        """
        wanted = {
            (commit, folder)
            for commit, changes in trees
            for path, _, _ in changes
            for folder in _folders(path)
        }
        # What cannot be asked for in a line of its own counts as if it did.
        asked = [each for each in wanted if b"\n" not in each[1]]
        lines = [commit.encode() + b":" + folder + b"/HEAD\n" for commit, folder in asked]
        words = ("cat-file", "--batch-check=%(objecttype)")
        git = self._repository.quarantine_git()
        answers = git.run(*words, stdin=b"".join(lines)).split(b"\n") if asked else []
        without = {each for each, kind in zip(asked, answers, strict=False) if kind != b"blob"}
        return wanted - without


def _revisions(wanted: Iterable[str], known: Iterable[str]) -> bytes:
    return "".join([*(f"{oid}\n" for oid in wanted), *(f"^{oid}\n" for oid in known)]).encode()


def persons_commits(repository: SessionRepository) -> set[str]:
    """Return what the person's refs and HEAD name, but for what was set aside: that was so for a reason."""
    refs, _ = repository.person_refs()
    named = {oid for name, oid in refs.items() if not name.startswith(f"{PRESERVED_REFS}/")}
    heads = (repository.record.head, repository.person_head())
    return named | {each for each in heads if OBJECT_ID_PATTERN.match(each)}


def shown(path: bytes) -> str:
    """Return *path* as a person may see it."""
    return escape(path.decode("utf-8", "replace"))


def _listed(findings: list[str]) -> str:
    more = ", and more" if len(findings) > _MAX_NAMED else ""
    return ", ".join(findings[:_MAX_NAMED]) + more


def _folders(path: bytes) -> list[bytes]:
    """Return the folders above *path* but for the top, where git looks for `.git` first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:number]) for number in range(1, len(parts))]


def _fold(path: bytes) -> tuple[str, ...]:
    """Return the names of *path* as the file systems compare them that tell the fewest apart."""
    text = os.fsdecode(path).casefold()
    if text.isascii():
        return tuple(text.split("/"))
    plain = [unicodedata.normalize("NFKD", name) for name in text.split("/")]
    # A name without a letter of ASCII is compared as it is: no protected name is like it.
    return tuple(name.encode("ascii", "ignore").decode() or name for name in plain)


_PROTECTED = {_fold(os.fsencode(name)) for name in PROTECTED_NAMES}


def _is_head(path: bytes) -> bool:
    """Return whether *path* is called HEAD; at the top it may be, for git looks for `.git` there first."""
    above, _, name = path.rpartition(b"/")
    if name.isascii():
        return bool(above) and name.lower() == b"head"
    return bool(above) and _fold(name) == ("head",)


def _parse(listed: bytes) -> list[tuple[list[str], list[_Change]]]:
    """Parse raw differences: for each commit the words of its own line, and what it changed or added."""
    found: list[tuple[list[str], list[_Change]]] = []
    tokens = iter(listed.split(b"\0"))
    for token in tokens:
        if match := _RAW.fullmatch(token):
            path = next(tokens)
            if match[1] != _GONE:
                found[-1][1].append((path, match[1], match[2].decode("ascii")))
        elif token.strip():
            found.append((token.decode("ascii").split(), []))
    return found
