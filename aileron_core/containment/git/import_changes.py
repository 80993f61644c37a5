"""Importing an agent's commits, refs and index from its session's git directory into the person's repository.

The order matters: objects are fetched into a quarantine and checked there, then migrated to the
person's object store, and only then do refs, HEAD and index change, each only if the person's is
unchanged: if the person staged something meanwhile, index, HEAD and its branch stay.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
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
    Changes,
    checked_out_elsewhere,
    delete_refs,
    preserve_refs,
    preserved_refs,
    shadowing_refs,
    update_refs,
)
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_repository import (
    OPERATION_FILES,
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
        """Try to take the lock for that long; `is_held` says whether that succeeded."""
        self._index, self._lock = (repository.git_dir / each for each in ("index", "index.lock"))
        self.is_held = False
        until = time.monotonic() + seconds
        while not self.is_held:
            try:
                self._lock.touch(exist_ok=False)
                self.is_held = True
            except FileExistsError:
                if time.monotonic() >= until:
                    break
                time.sleep(_WAIT)  # another program's lock: nothing tells when it is released

    def commit(self, rebuilt: Path) -> None:
        """Replace the index by the file *rebuilt* and release the lock."""
        mode = self._index.stat().st_mode & 0o777 if self._index.exists() else 0o644
        with self._lock.open("wb") as file, rebuilt.open("rb") as source:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        self._lock.chmod(mode)
        self._lock.replace(self._index)
        self.is_held = False

    def close(self) -> None:
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
        begun = (read_small_file(repository.folder / "stash") or b"").decode("ascii", "replace")
        known = {line.split(" ")[1] for line in begun.split("\n") if line.count(" ") > 1}
        found = [oid for oid in listed or [refs[STASH_REF]] if OBJECT_ID_PATTERN.match(oid)]
        new = [oid for oid in found if oid not in known]
        unreferenced = {f"stash/{number}": oid for number, oid in enumerate(new)}
    if final:
        heads = [name for name in OPERATION_FILES if name.endswith("_HEAD")]
        worktrees = repository.session_git_dir / "worktrees"
        if worktrees.is_dir() and not worktrees.is_symlink():
            heads += [f"worktrees/{each.name}" for each in worktrees.iterdir()]
        for name in heads:
            path = Path(name, "HEAD") if name.startswith("worktrees/") else Path(name)
            data = read_small_file(repository.session_git_dir / path) or b""
            text = data.decode("ascii", "replace").split("\n")[0].strip()
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
    changed = {name for name in moved if name.startswith(IMPORTED)}
    if final:
        _report_left_out(record, left_out)
        _report_not_imported(record, {*moved, *({*agent.symbolic} - {*symbolic})} - changed)
    if not changed and not agent.unreferenced and agent.head == record.head and entries == before:
        return
    changes = _compare(repository, agent, changed, now)
    new = [name for name in changes.updates() if name not in now]
    for name in shadowing_refs(repository, new, (*now, *symbolic)):
        changes.set_aside(name, "git could take its short name for something else")
    if not _fetch_and_check(repository, agent, changes, examination, entries - before, now):
        entries = before
    lock = IndexLock(repository, seconds=_LOCK_SECONDS if final else 0.0)
    with contextlib.closing(lock):
        if not (lock.is_held or final):
            raise GitFailed("the index is locked by another program.")
        may_stage = entries == before or (lock.is_held and repository.index_is_untouched())
        if not may_stage:  # with a stale index the person's next commit would undo the agent's work
            head = repository.person_head().removeprefix("ref: ")
            for name in {"HEAD"} | ({head} & changes.updates().keys()):
                changes.set_aside(name, _INDEX_CHANGED)
        if not _apply(repository, agent, changes):
            return
        if not may_stage:
            record.add_notice(
                f"The changes that the agent staged are not in your index: {_INDEX_CHANGED}."
            )
        elif entries != before:
            made = rebuild_index(repository, entries, before)
            lock.commit(made)
            made.replace(repository.base_index)
        _finish_operations(repository)


def _compare(
    repository: SessionRepository, agent: AgentState, changed: set[str], now: Mapping[str, str]
) -> Changes:
    """Return the agent's changes; what the person changed too, or uses elsewhere, is set aside.

    Args:
        changed: the branches and tags that the agent changed.
        now: the person's refs.
    """
    changes = Changes(theirs={**agent.unreferenced})
    if OBJECT_ID_PATTERN.match(agent.head) and agent.head != repository.record.head:
        changes.theirs["HEAD"] = agent.head
    elsewhere = checked_out_elsewhere(repository)
    for name in sorted(changed):
        if now.get(name) == agent.refs.get(name):
            continue
        changes.theirs[name] = agent.refs.get(name)
        if now.get(name) != repository.record.refs.get(name):
            changes.set_aside(name, "you changed it too")
        elif name in elsewhere:
            changes.set_aside(name, "it is checked out in another work tree")
    return changes


def _fetch_and_check(
    repository: SessionRepository,
    agent: AgentState,
    changes: Changes,
    examination: Examination,
    staged: frozenset[IndexEntry],
    now: Mapping[str, str],
) -> bool:
    """Fetch and check all new objects; return whether those of the index, *staged*, passed.

    What may not become the person's is set aside in *changes*.
    """
    shallow_commits, already_known = new_shallow_commits(repository)
    shallow = (*repository.record.shallow, *shallow_commits)
    fetch = partial(fetch_objects, repository, have={*now.values()}, shallow=shallow)
    wanted = {name: {oid} for name, oid in changes.values().items()}
    wanted[_INDEX] = {entry.oid for entry in staged if not entry.is_gitlink}
    try:
        fetch(set[str]().union(*wanted.values()))
    except GitFailed:
        for name in [*wanted]:
            try:
                fetch(wanted[name])
            except GitFailed as error:
                del wanted[name]
                changes.refuse(name)
                repository.record.refused[name] = str(error)
        fetch(set[str]().union(*wanted.values()))
    _examine(repository, agent, changes, examination)
    migrate_objects(repository)
    _update_shallow(repository, shallow_commits, already_known)
    return _INDEX in wanted


def _examine(
    repository: SessionRepository, agent: AgentState, changes: Changes, examination: Examination
) -> None:
    """Set aside in *changes* whatever would bring into the work tree what the person's own tools obey."""
    git, record = repository.quarantine_git(), repository.record
    theirs = changes.values()
    ours = {name: record.refs[name] for name in theirs if name in record.refs}
    head = _head_commit(agent.head, agent.refs)
    # HEAD's tree is what `git reset` makes the index from, whoever committed it.
    if head and agent.head != record.head and _branch(agent.head) not in changes.invalid:
        theirs["HEAD"] = head
        if begun := _head_commit(record.head, record.refs):
            ours["HEAD"] = begun
    kinds = peeled(git, theirs)
    for name in changes.updates():
        if kinds[name][0] != "commit":
            changes.set_aside(name, "it is not a commit")
    tips = {name: oid for name, (kind, oid) in kinds.items() if kind == "commit"}
    moved = {
        name: (tips[name], oid)
        for name, (kind, oid) in peeled(git, ours).items()
        if kind == "commit" and name in tips
    }
    for name, why in examination.commits(tips, persons_commits(repository), moved).items():
        changes.set_aside(name, why)


def _branch(head: str) -> str:
    """Return the branch that HEAD names; HEAD itself where that is detached."""
    return head.removeprefix("ref: ") if head.startswith("ref: ") else "HEAD"


def _head_commit(head: str, refs: Mapping[str, str]) -> str | None:
    return refs.get(_branch(head), None if head.startswith("ref: ") else head)


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


def _apply(repository: SessionRepository, agent: AgentState, changes: Changes) -> bool:
    """Update refs and HEAD, and save what was set aside under the session's own refs.

    Returns:
        Whether the person is where the agent is, so that its index may be theirs.
    """
    record = repository.record
    head = repository.person_head()
    may_move = agent.head != record.head and head == record.head
    may_move = may_move and _branch(agent.head) not in checked_out_elsewhere(repository)
    update_refs(repository, changes)
    stays = {*changes.reasons, *changes.invalid} & {"HEAD", _branch(agent.head)}
    head_moves = may_move and not stays and _move_head(repository, agent.head)
    if not head_moves and _branch(head) in changes.deletions():
        changes.set_aside(_branch(head), "you have it checked out")
    delete_refs(repository, changes)
    if head_moves or agent.head == head:
        changes.theirs.pop("HEAD", None)
    _report(repository, changes, preserve_refs(repository, changes.kept()))
    is_there = repository.person_head() == agent.head
    if is_there and agent.head.startswith("ref: "):
        branch, (refs, _) = _branch(agent.head), repository.person_refs()
        is_there = refs.get(branch) == agent.refs.get(branch)
    if not is_there and head != agent.head:
        record.add_notice(_head_sentence(agent.head, head, changes))
    # What is not imported stays as it was, to be counted at the end.
    agreed = {name: oid for name, oid in agent.refs.items() if name.startswith(IMPORTED)}
    agreed |= {name: oid for name, oid in record.refs.items() if not name.startswith(IMPORTED)}
    # These are compared again next time, with what the agent began with.
    for name in {*changes.reasons, *changes.invalid}:
        agreed.pop(name, None)
        agreed |= {name: record.refs[name]} if name in record.refs else {}
    record.refs = agreed
    return is_there


def _move_head(repository: SessionRepository, head: str) -> bool:
    git = repository.person_git(write=True)
    note = ("-m", f"aileron: session {repository.session}")
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


def _finish_operations(repository: SessionRepository) -> None:
    """End the person's merge, cherry-pick or revert if the agent finished it."""
    for name in OPERATION_FILES:
        begun = read_small_file(repository.folder / "state" / name)
        ended = begun is not None and not (repository.session_git_dir / name).exists()
        if ended and read_small_file(repository.git_dir / name) == begun:
            (repository.git_dir / name).unlink()


def _head_sentence(theirs: str, head: str, changes: Changes) -> str:
    agents, yours = (escape(text.removeprefix("ref: ")) for text in (theirs, head))
    # The branch's own sentence says it else.
    why = "" if _branch(theirs) in changes.reasons else changes.reasons.get("HEAD", "")
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


def _report(repository: SessionRepository, changes: Changes, names: Mapping[str, str]) -> None:
    """Add to the record what became of each change.

    Args:
        names: the refs under which the agent's values are kept.
    """
    record, folder = repository.record, preserved_refs(repository)
    record.updated_refs += [each for each in changes.updates() if each not in record.updated_refs]
    groups: dict[str, list[str]] = {}
    for name, why in changes.reasons.items():
        if name.startswith("refs/"):
            is_own = why in groups or len(groups) < _MAX_NAMED
            groups.setdefault(why if is_own else [*groups][-1], []).append(name)
    for why, same in groups.items():
        if len(same) > _MAX_NAMED:
            record.add_notice(
                f"{len(same)} refs, for example {escape(same[0])}, are left as you have them ({why}). "
                f"The agent's are kept below {folder}/; `git for-each-ref {folder}` lists them."
            )
            continue
        for name in same:
            record.add_notice(_aside_sentence(record, name, changes, names))
    deleted = changes.deletions()
    if len(deleted) > _MAX_NAMED:
        record.add_notice(
            f"The agent deleted {len(deleted)} refs. Their old values are kept below "
            f"{folder}/deleted/."
        )
    for name in deleted if len(deleted) <= _MAX_NAMED else ():
        record.add_notice(
            f"The agent deleted {escape(name)}. Its old value is kept as "
            f"{folder}/deleted/{escape(name.removeprefix('refs/'))}."
        )
    for name in names:
        if not name.startswith("refs/"):
            record.add_notice(_aside_sentence(record, name, changes, names))


def _aside_sentence(
    record: RepositoryRecord, name: str, changes: Changes, names: Mapping[str, str]
) -> str:
    why = f" ({changes.reasons[name]})" if name in changes.reasons else ""
    if name not in names:
        return f"The agent deleted {escape(name)}, but it was kept{why}."
    kept = escape(names[name])
    if name in record.refs:
        return f"{escape(name)} keeps your value{why}. The agent's is kept as {kept}."
    what = "stash" if name.startswith("stash/") else escape(name)
    return f"The agent's {what} is kept as {kept}{why}."
