"""Importing an agent's commits, refs and index from its session's git directory into the person's repository.

The order matters: objects are fetched into a quarantine and checked there, then migrated to the
person's object store, and only then do refs, HEAD and index change, each only if the person's is
unchanged: if the person staged something meanwhile, index, HEAD and its branch stay.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aileron_core.containment.git.examine import Examination, persons_commits, shown
from aileron_core.containment.git.objects import (
    fetch_objects,
    migrate_objects,
    new_shallow_commits,
)
from aileron_core.containment.git.record import OBJECT_ID_PATTERN, RepositoryRecord
from aileron_core.containment.git.refs import (
    IMPORTED,
    PRESERVED_REFS,
    RefChanges,
    checked_out_elsewhere,
    delete_refs,
    preserve_refs,
    shadowing_refs,
    update_refs,
)
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_git_dir import OPERATION_FILES
from aileron_core.containment.git.session_repository import (
    IndexEntry,
    SessionRepository,
    peeled,
    read_small_file,
)
from aileron_core.text import escape

_WAIT = 0.05


class IndexLock:
    """Git's own `index.lock`: while it is held, no git command commits or stages."""

    def __init__(self, repository: SessionRepository, *, seconds: float) -> None:
        self._path = repository.git_dir / "index"
        self._lock = repository.git_dir / "index.lock"
        self._seconds = seconds
        self.is_held = False

    def __enter__(self) -> "IndexLock":
        """Try to take the lock; `is_held` says whether that succeeded in time."""
        until = time.monotonic() + self._seconds
        while not self.is_held:
            try:
                os.close(os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
                self.is_held = True
            except FileExistsError:
                if time.monotonic() >= until:
                    break
                time.sleep(_WAIT)  # another program's lock: nothing tells when it is released
        return self

    def read(self) -> bytes:
        """Return the index's bytes, empty if there is none."""
        return self._path.read_bytes() if self._path.exists() else b""

    def commit(self, rebuilt: Path) -> None:
        """Replace the index by the file *rebuilt* and release the lock."""
        mode = self._path.stat().st_mode & 0o777 if self._path.exists() else 0o644
        with self._lock.open("wb") as file, rebuilt.open("rb") as source:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        self._lock.chmod(mode)
        self._lock.replace(self._path)
        self.is_held = False

    def __exit__(self, *_: object) -> None:
        if self.is_held:
            self._lock.unlink(missing_ok=True)


def rebuild_index(
    repository: SessionRepository, entries: frozenset[IndexEntry], before: frozenset[IndexEntry]
) -> Path:
    """Write an index with *entries*, starting from the person's, and return its path.

    Git's cached stat data of unchanged files is kept, so nothing has to be read again, and no file
    that the agent changed can pass for unchanged.

    Raises:
        GitFailed: git rejects the entries.
    """
    made = repository.folder / "index.made"
    made.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(repository.base_index, made)
    paths = {entry.path for entry in entries ^ before}
    zeros = "0" * len(next(iter(entries | before)).oid) if entries | before else ""
    lines = [b"0 " + zeros.encode() + b"\t" + path for path in sorted(paths)]
    lines += [
        b"%s %s %d\t%s" % (entry.mode, entry.oid.encode(), entry.stage, entry.path)
        for entry in sorted(each for each in entries if each.path in paths)
    ]
    git = repository.quarantine_git(write=True, index="/i/index.made")
    git.run("update-index", "-z", "--index-info", stdin=b"".join(line + b"\0" for line in lines))
    return made


STASH_REF = "refs/stash"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """The agent's refs, HEAD and index at one moment."""

    head: str
    refs: dict[str, str]
    symbolic: dict[str, str]
    entries: frozenset[IndexEntry]
    unreferenced: dict[str, str]
    """Objects that no ref names: entries of the stash, a merge under way, other work trees' HEADs."""


def read_agent_state(repository: SessionRepository, *, final: bool) -> AgentState:
    """Read the agent's state of *repository*; after the agent's end (*final*), unfinished merges and the like too."""
    refs, symbolic = repository.agent_refs()
    unreferenced: dict[str, str] = {}
    if STASH_REF in refs:
        args = ("log", "-g", "--format=%H", STASH_REF)
        listed = repository.agent_git().run(*args, may_fail=True).decode("ascii", "replace").split()
        theirs = (
            (read_small_file(repository.folder / "stash") or b"")
            .decode("utf-8", "replace")
            .splitlines()
        )
        known = {line.split(" ")[1] for line in theirs if line.count(" ") > 1}
        new = [
            oid
            for oid in (listed or [refs[STASH_REF]])
            if OBJECT_ID_PATTERN.match(oid) and oid not in known
        ]
        unreferenced = {f"stash/{number}": oid for number, oid in enumerate(new)}
    if final:
        heads = {
            name: repository.session_git_dir / name
            for name in OPERATION_FILES
            if name.endswith("_HEAD")
        }
        worktrees = repository.session_git_dir / "worktrees"
        if worktrees.is_dir() and not worktrees.is_symlink():
            heads |= {f"worktrees/{each.name}": each / "HEAD" for each in worktrees.iterdir()}
        for name, path in heads.items():
            text = (read_small_file(path) or b"").decode("ascii", "replace").split("\n")[0].strip()
            begun = read_small_file(repository.folder / "state" / name)
            if OBJECT_ID_PATTERN.match(text) and text.encode() != (begun or b"").strip():
                unreferenced[name] = text
    return AgentState(
        head=repository.agent_head(),
        refs=refs,
        symbolic=symbolic,
        entries=repository.agent_entries(),
        unreferenced=unreferenced,
    )


_SHADOWS = "git could take its short name for something else"
_INDEX_CHANGED = "you changed the index while the agent ran"
_INDEX = "index"
_LOCK_SECONDS = 5.0
_MAX_NAMED = 8
"""More refs than this are counted, not named one by one."""


def import_changes(
    repository: SessionRepository, others: Mapping[str, SessionRepository], *, final: bool
) -> None:
    """Import everything new; what the person has to know is added to the record.

    Args:
        others: the session's repositories by work tree; those below this one are imported already.
        final: whether the agent has ended. Before that, a locked index postpones the import.

    Raises:
        GitFailed: nothing was changed; the session's git directory still holds everything.
    """
    record = repository.record
    agent = read_agent_state(repository, final=final)
    before = repository.base_entries()
    now, symbolic = repository.person_refs()
    examination = Examination(repository, before, others)
    entries, left_out = examination.staged(agent.entries)
    # One that only names another ref would look deleted.
    names = {*agent.refs, *record.refs} - {STASH_REF, *agent.symbolic}
    moved = {name for name in names if agent.refs.get(name) != record.refs.get(name)}
    changed = {name: agent.refs.get(name) for name in sorted(moved) if name.startswith(IMPORTED)}
    if final:
        _report_left_out(record, left_out)
        _report_not_imported(record, {*moved, *({*agent.symbolic} - {*symbolic})} - {*changed})
    if not changed and not agent.unreferenced and agent.head == record.head and entries == before:
        return
    changes = RefChanges.classify(changed, record.refs, now, checked_out_elsewhere(repository))
    new = [name for name in changes.updates if name not in now]
    for name in shadowing_refs(repository, new, (*now, *symbolic)):
        changes.reject(name, _SHADOWS)
    entries = _fetch_and_check(repository, agent, changes, examination, entries, before, now)
    with IndexLock(repository, seconds=_LOCK_SECONDS if final else 0.0) as lock:
        if not (lock.is_held or final):
            raise GitFailed("the index is locked by another program.")
        if entries != before and not (lock.is_held and repository.index_is_untouched(lock.read())):
            _keep_checkout(repository, changes)
        _apply(repository, agent, changes, lock, (entries, before))


def _keep_checkout(repository: SessionRepository, changes: RefChanges) -> None:
    """Leave HEAD and its branch alone: with a stale index the next commit would undo the agent's work."""
    changes.reject("HEAD", _INDEX_CHANGED)
    name = repository.person_head().removeprefix("ref: ")
    if name in changes.updates:
        changes.reject(name, _INDEX_CHANGED)


def _fetch_and_check(
    repository: SessionRepository,
    agent: AgentState,
    changes: RefChanges,
    examination: Examination,
    entries: frozenset[IndexEntry],
    before: frozenset[IndexEntry],
    now: dict[str, str],
) -> frozenset[IndexEntry]:
    """Fetch and check all new objects; return the entries that may go into the index.

    Refs that may not be updated are rejected in *changes*.
    """
    have = {*now.values()}
    commits = {**changes.updates, **changes.to_preserve, **agent.unreferenced}
    if OBJECT_ID_PATTERN.match(agent.head) and agent.head != repository.record.head:
        commits["HEAD"] = agent.head
    staged = {entry.oid for entry in entries - before if not entry.is_gitlink}
    shallow_commits, already_known = new_shallow_commits(repository)
    shallow = (*repository.record.shallow, *shallow_commits)
    try:
        fetch_objects(repository, {*commits.values(), *staged}, have, shallow)
    except GitFailed:
        wanted = {**{name: {oid} for name, oid in commits.items()}, _INDEX: staged}
        bad = _failing(repository, wanted, have, shallow)
        commits = {name: oid for name, oid in commits.items() if name not in bad}
        for name in bad:
            for each in (changes.updates, changes.to_preserve, agent.unreferenced):
                each.pop(name, None)
            changes.invalid.append(name)
        entries = before if _INDEX in bad else entries
        if _INDEX in bad:
            staged = set[str]()
        fetch_objects(repository, {*commits.values(), *staged}, have, shallow)
    _examine(repository, agent, changes, examination, commits)
    migrate_objects(repository)
    _update_shallow(repository, shallow_commits, already_known)
    return entries


def _examine(
    repository: SessionRepository,
    agent: AgentState,
    changes: RefChanges,
    examination: Examination,
    commits: Mapping[str, str],
) -> None:
    """Reject in *changes* whatever would bring into the work tree what the person's own tools obey.

    Args:
        commits: the agent's fetched objects by name.
    """
    git, record = repository.quarantine_git(), repository.record
    theirs, ours = (
        dict(commits),
        {each: record.refs[each] for each in commits if each in record.refs},
    )
    head = _head_commit(agent.head, agent.refs)
    # HEAD's tree is what `git reset` makes the index from, whoever committed it.
    if head and agent.head != record.head and _branch(agent.head) not in changes.invalid:
        theirs["HEAD"] = head
        ours["HEAD"] = _head_commit(record.head, record.refs) or ""
    kinds = peeled(git, theirs)
    for name in [name for name in changes.updates if kinds[name][0] != "commit"]:
        changes.reject(name, "it is not a commit")
    tips = {name: oid for name, (kind, oid) in kinds.items() if kind == "commit"}
    moved = {
        name: (tips[name], oid)
        for name, (kind, oid) in peeled(
            git, {name: ours[name] for name in ours if ours[name]}
        ).items()
        if kind == "commit" and name in tips
    }
    for name, why in examination.commits(tips, persons_commits(repository), moved).items():
        changes.reject(name, why)


def _branch(head: str) -> str:
    """Return the branch that HEAD names; HEAD itself where that is detached."""
    return head.removeprefix("ref: ") if head.startswith("ref: ") else "HEAD"


def _head_commit(head: str, refs: Mapping[str, str]) -> str | None:
    return refs.get(_branch(head), None if head.startswith("ref: ") else head)


def _failing(
    repository: SessionRepository,
    wanted: dict[str, set[str]],
    have: set[str],
    shallow: Sequence[str],
) -> set[str]:
    """Return which of *wanted* fail git's checks on their own, and record why for the person."""
    bad: set[str] = set()
    for name, oids in wanted.items():
        try:
            fetch_objects(repository, oids, have, shallow)
        except GitFailed as error:
            bad.add(name)
            repository.record.refused[name] = str(error)
    return bad


def _update_shallow(
    repository: SessionRepository, commits: list[str], already_known: list[str]
) -> None:
    """Add *commits* to the person's `shallow` file; those *already_known* keep their full history."""
    if already_known:
        repository.record.add_notice(
            "The agent made a shallow fetch that cuts off history. Your own history stays complete."
        )
    # Of a branch of a remote's, which is not imported, there may be none.
    kinds = peeled(repository.quarantine_git(), {oid: oid for oid in commits})
    commits = [oid for oid in commits if kinds[oid][0] == "commit"]
    if not commits:
        return
    lock = repository.common_dir / "shallow.lock"
    try:
        with lock.open("xb") as file:
            now = read_small_file(repository.common_dir / "shallow") or b""
            file.write(now + "".join(f"{oid}\n" for oid in commits).encode("ascii"))
    except FileExistsError:
        raise GitFailed("the list of shallow commits is locked by another program.") from None
    lock.replace(repository.common_dir / "shallow")
    repository.record.shallow += commits
    repository.record.add_notice(
        f"The agent made a shallow fetch: its history is cut off at {len(commits)} "
        f"commit{'s' if len(commits) > 1 else ''}. Run `git fetch --unshallow` to complete it."
    )


def _apply(
    repository: SessionRepository,
    agent: AgentState,
    changes: RefChanges,
    lock: IndexLock,
    staged: tuple[frozenset[IndexEntry], frozenset[IndexEntry]],
) -> None:
    """Update refs, HEAD and index; save what was rejected under the session's own refs."""
    record = repository.record
    head = repository.person_head()
    head_moves = _may_move_head(repository, agent, changes, head)
    deleted, changes.deletions = changes.deletions, []
    update_refs(repository, changes)
    if head_moves and (
        _branch(agent.head) in changes.rejected or not _move_head(repository, agent.head)
    ):
        head_moves = False
    for name in deleted:
        if not head_moves and f"ref: {name}" == head:
            changes.rejected[name] = "you have it checked out"
        else:
            changes.deletions.append(name)
    delete_refs(repository, changes)
    extra = dict(agent.unreferenced)
    if (
        OBJECT_ID_PATTERN.match(agent.head)
        and not head_moves
        and agent.head not in (record.head, head)
        and "HEAD" not in changes.invalid
    ):
        extra["HEAD"] = agent.head
    names = preserve_refs(repository, {**changes.to_preserve, **extra})
    _report(repository, extra, changes, names)
    if repository.person_head() == agent.head and _same_commit(repository, agent):
        _update_index(repository, lock, *staged)
        _finish_operations(repository)
    elif head != agent.head:
        record.add_notice(_head_sentence(agent.head, head, changes))
    # What is not imported stays as it was, to be counted at the end.
    agreed = {name: oid for name, oid in agent.refs.items() if name.startswith(IMPORTED)}
    agreed |= {name: oid for name, oid in record.refs.items() if not name.startswith(IMPORTED)}
    # These are compared again next time, with what the agent began with.
    for name in {*changes.rejected, *changes.invalid}:
        agreed.pop(name, None)
        agreed |= {name: record.refs[name]} if name in record.refs else {}
    record.refs = agreed


def _may_move_head(
    repository: SessionRepository, agent: AgentState, changes: RefChanges, head: str
) -> bool:
    if agent.head == repository.record.head or head != repository.record.head:
        return False
    stays = {*changes.rejected, *changes.invalid, *checked_out_elsewhere(repository)}
    return not stays & {"HEAD", _branch(agent.head)}


def _move_head(repository: SessionRepository, head: str) -> bool:
    git = repository.person_git(write=True)
    note = ("-m", f"aileron: session {repository.folder.parent.name}")
    try:
        if head.startswith("ref: "):
            git.run("symbolic-ref", *note, "HEAD", head.removeprefix("ref: "))
        else:
            before = repository.record.head
            old = [before] if OBJECT_ID_PATTERN.match(before) else []
            git.run("update-ref", *note, "--no-deref", "HEAD", head, *old)
    except GitFailed:
        return False
    repository.record.head = head
    return True


def _same_commit(repository: SessionRepository, agent: AgentState) -> bool:
    name = agent.head.removeprefix("ref: ")
    if name == agent.head:
        return True
    now, _ = repository.person_refs()
    return now.get(name) == agent.refs.get(name)


def _update_index(
    repository: SessionRepository,
    lock: IndexLock,
    entries: frozenset[IndexEntry],
    before: frozenset[IndexEntry],
) -> None:
    if entries == before:
        return
    if not lock.is_held or not repository.index_is_untouched(lock.read()):
        repository.record.add_notice(
            f"The changes that the agent staged are not in your index: {_INDEX_CHANGED}."
        )
        return
    made = rebuild_index(repository, entries, before)
    lock.commit(made)
    made.replace(repository.base_index)


def _finish_operations(repository: SessionRepository) -> None:
    """End the person's merge, cherry-pick or revert if the agent finished it."""
    for name in OPERATION_FILES:
        begun = read_small_file(repository.folder / "state" / name)
        ended = begun is not None and not (repository.session_git_dir / name).exists()
        if ended and read_small_file(repository.git_dir / name) == begun:
            (repository.git_dir / name).unlink()


def _head_sentence(theirs: str, head: str, changes: RefChanges) -> str:
    agents, yours = (escape(text.removeprefix("ref: ")) for text in (theirs, head))
    # The branch's own sentence says it else.
    why = "" if _branch(theirs) in changes.rejected else changes.rejected.get("HEAD", "")
    return f"The agent had {agents} checked out; you have {yours}{why and f' ({why})'}."


def _report_left_out(record: RepositoryRecord, left_out: Mapping[bytes, str]) -> None:
    for why in dict.fromkeys(left_out.values()):
        paths = [shown(path) for path in left_out if left_out[path] == why]
        more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
        record.add_notice(
            f"{', '.join(paths[:_MAX_NAMED])}{more} was staged, and left out of your index: it {why}."
        )


def _report_not_imported(record: RepositoryRecord, names: set[str]) -> None:
    if not names:
        return
    what = "1 ref" if len(names) == 1 else f"{len(names)} refs"
    record.add_notice(
        f"{what} of the agent's, for example {escape(min(names))}, did not come into your repository: "
        "only branches and tags do, and none that names another ref."
    )


def _report(
    repository: SessionRepository, extra: dict[str, str], changes: RefChanges, names: dict[str, str]
) -> None:
    record = repository.record
    record.updated_refs += [name for name in changes.updates if name not in record.updated_refs]
    folder = f"{PRESERVED_REFS}/{repository.folder.parent.name}"
    refs = [name for name in changes.rejected if name.startswith("refs/")]
    reasons = [*dict.fromkeys(changes.rejected[name] for name in refs)]
    for number, why in enumerate(reasons[:_MAX_NAMED], start=1):
        same = [name for name in refs if changes.rejected[name] == why]
        if number == _MAX_NAMED:
            same = [name for name in refs if changes.rejected[name] in reasons[number - 1 :]]
        if len(same) > _MAX_NAMED:
            record.add_notice(
                f"{len(same)} refs, for example {escape(same[0])}, are left as you have them ({why}). "
                f"The agent's are kept below {folder}/; `git for-each-ref {folder}` lists them."
            )
            continue
        for name in same:
            why = changes.rejected[name]
            if name not in names:
                sentence = f"The agent deleted {escape(name)}, but it was kept ({why})."
            elif name in record.refs:
                sentence = f"{escape(name)} keeps your value ({why}). The agent's is kept as {escape(names[name])}."
            else:
                sentence = f"The agent's {escape(name)} is kept as {escape(names[name])} ({why})."
            record.add_notice(sentence)
    if len(changes.deletions) > _MAX_NAMED:
        record.add_notice(
            f"The agent deleted {len(changes.deletions)} refs. Their old values are kept below "
            f"{folder}/deleted/."
        )
    for name in changes.deletions if len(changes.deletions) <= _MAX_NAMED else ():
        record.add_notice(
            f"The agent deleted {escape(name)}. Its old value is kept as "
            f"{folder}/deleted/{escape(name.removeprefix('refs/'))}."
        )
    for name in extra:
        what = "The agent's stash" if name.startswith("stash/") else f"The agent's {escape(name)}"
        why = f" ({changes.rejected[name]})" if name in changes.rejected else ""
        record.add_notice(f"{what} is kept as {escape(names[name])}{why}.")
