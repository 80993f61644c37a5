"""Importing an agent's commits, refs and index from its session's git directory into the person's repository.

The order matters: objects are fetched into a quarantine and checked there, then migrated to the
person's object store, and only then do refs, HEAD and index change, each only if the person's is
unchanged: if the person staged something meanwhile, index, HEAD and its branch stay.
"""

from collections.abc import Sequence

from aileron_core.containment.git.agent_state import STASH_REF, AgentState, read_agent_state
from aileron_core.containment.git.index import IndexLock, rebuild_index, without_new_gitlinks
from aileron_core.containment.git.objects import (
    fetch_objects,
    gitlinks_in_tree,
    migrate_objects,
    new_gitlinks,
    new_shallow_commits,
)
from aileron_core.containment.git.record import OBJECT_ID_PATTERN
from aileron_core.containment.git.refs import (
    PRESERVED_REFS,
    RefChanges,
    checked_out_elsewhere,
    delete_refs,
    preserve_refs,
    short_name,
    update_refs,
)
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_git_dir import OPERATION_FILES
from aileron_core.containment.git.session_repository import (
    IndexEntry,
    SessionRepository,
    peeled_types,
    read_small_file,
)
from aileron_core.text import escape

_HAS_GITLINKS = "its commits add another repository as a submodule"
_INDEX_CHANGED = "you changed the index while the agent ran"
_INDEX = "index"
_LOCK_SECONDS = 5.0
_MAX_NAMED = 8
"""More refs than this are counted, not named one by one."""


def import_changes(repository: SessionRepository, *, final: bool) -> None:
    """Import everything new; what the person has to know is added to the record.

    Args:
        final: whether the agent has ended. Before that, a locked index postpones the import.

    Raises:
        GitFailed: nothing was changed; the session's git directory still holds everything.
    """
    record = repository.record
    agent = read_agent_state(repository, final=final)
    before = repository.base_entries()
    now, symbolic = repository.person_refs()
    entries, links = without_new_gitlinks(agent.entries, before)
    # One that only names another ref would look deleted.
    names = {*agent.refs, *record.refs} - {STASH_REF, *agent.symbolic}
    changed = {
        name: agent.refs.get(name)
        for name in names
        if agent.refs.get(name) != record.refs.get(name)
    }
    for name in {*agent.symbolic} - {*symbolic}:
        record.add_notice(
            f"{short_name(name)} is a symbolic ref, so it was not copied to your repository."
        )
    for path in links:
        name = escape(path.decode("utf-8", "replace"))
        record.add_notice(
            f"{name} was staged as a repository of its own, so it was left out of your index."
        )
    if not changed and not agent.unreferenced and agent.head == record.head and entries == before:
        return
    changes = RefChanges.classify(changed, record.refs, now, checked_out_elsewhere(repository))
    entries = _fetch_and_check(repository, agent, changes, entries, before, now)
    with IndexLock(repository, seconds=_LOCK_SECONDS if final else 0.0) as lock:
        if not (lock.is_held or final):
            raise GitFailed("the index is locked by another program.")
        if entries != before and not (lock.is_held and repository.index_is_untouched(lock.read())):
            _keep_checkout(repository, changes)
        _apply(repository, agent, changes, lock, (entries, before))


def _keep_checkout(repository: SessionRepository, changes: RefChanges) -> None:
    """Leave HEAD and its branch alone: with a stale index the next commit would undo the agent's work."""
    changes.keep_head = True
    name = repository.person_head().removeprefix("ref: ")
    if name in changes.updates:
        changes.reject(name, _INDEX_CHANGED)


def _fetch_and_check(
    repository: SessionRepository,
    agent: AgentState,
    changes: RefChanges,
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
    kinds = peeled_types(repository.quarantine_git(), commits)
    for name in [name for name in changes.updates if kinds[name] != "commit"]:
        changes.reject(name, "it is not a commit")
    tips = {name: oid for name, oid in commits.items() if kinds[name] == "commit"}
    known = {entry.path for entry in before if entry.is_gitlink}
    # Not what was set aside before: it was so for a reason.
    trusted = {oid for name, oid in now.items() if not name.startswith(f"{PRESERVED_REFS}/")}
    if new_gitlinks(repository, tips.values(), trusted) - known:
        for name, oid in tips.items():
            if not new_gitlinks(repository, [oid], trusted) - known:
                continue
            if name in changes.updates:
                changes.reject(name, _HAS_GITLINKS)
            else:
                changes.rejected[name] = _HAS_GITLINKS
    if (
        OBJECT_ID_PATTERN.match(agent.head)
        or agent.head.removeprefix("ref: ") not in changes.invalid
    ):
        _check_head_tree(repository, agent, changes, known)
    migrate_objects(repository)
    _update_shallow(repository, shallow_commits, already_known)
    return entries


def _check_head_tree(
    repository: SessionRepository, agent: AgentState, changes: RefChanges, known: set[bytes]
) -> None:
    """Leave HEAD alone if the agent's tree has a gitlink that the index did not have.

    The gitlink is left out of the index, but the person's next `git reset` would rebuild the index
    from that tree, whoever committed it.
    """
    name = agent.head.removeprefix("ref: ")
    tip = name if OBJECT_ID_PATTERN.match(name) else agent.refs.get(name)
    moved = agent.head != repository.record.head or name in changes.updates
    if tip is None or not moved or "HEAD" in changes.invalid:
        return
    changes.keep_head = bool(gitlinks_in_tree(repository, tip) - known)
    if changes.keep_head and name in changes.updates:
        changes.reject(name, _HAS_GITLINKS)


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
        agent.head.removeprefix("ref: ") in changes.rejected
        or not _move_head(repository, agent.head)
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
    ):
        extra["HEAD"] = agent.head
    names = preserve_refs(repository, {**changes.to_preserve, **extra})
    _report(repository, extra, changes, names)
    if repository.person_head() == agent.head and _same_commit(repository, agent):
        _update_index(repository, lock, *staged)
        _finish_operations(repository)
    elif head != agent.head:
        record.add_notice(_head_sentence(agent.head, head))
    agreed = {**agent.refs}
    # These are compared again next time, with what the agent began with.
    for name in {*changes.rejected, *changes.invalid}:
        agreed.pop(name, None)
        agreed |= {name: record.refs[name]} if name in record.refs else {}
    record.refs = agreed


def _may_move_head(
    repository: SessionRepository, agent: AgentState, changes: RefChanges, head: str
) -> bool:
    if agent.head == repository.record.head or head != repository.record.head or changes.keep_head:
        return False
    name = agent.head.removeprefix("ref: ")
    if name == agent.head:
        return "HEAD" not in (*changes.rejected, *changes.invalid)
    return name not in (*changes.rejected, *changes.invalid) and name not in checked_out_elsewhere(
        repository
    )


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


def _head_sentence(theirs: str, head: str) -> str:
    agents, yours = (short_name(text.removeprefix("ref: ")) for text in (theirs, head))
    return f"The agent had {agents} checked out; you have {yours}."


def _report(
    repository: SessionRepository, extra: dict[str, str], changes: RefChanges, names: dict[str, str]
) -> None:
    record = repository.record
    record.updated_refs += [name for name in changes.updates if name not in record.updated_refs]
    for why in dict.fromkeys(changes.rejected.values()):
        _report_rejected(
            repository,
            [name for name in changes.rejected if changes.rejected[name] == why],
            why,
            names,
        )
    folder = f"{PRESERVED_REFS}/{repository.folder.parent.name}/deleted"
    if len(changes.deletions) > _MAX_NAMED:
        record.add_notice(
            f"The agent deleted {len(changes.deletions)} refs. Their old values are kept below "
            f"{folder}/."
        )
    for name in changes.deletions if len(changes.deletions) <= _MAX_NAMED else ():
        record.add_notice(
            f"The agent deleted {short_name(name)}. Its old value is kept as "
            f"{folder}/{escape(name.removeprefix('refs/'))}."
        )
    for name in extra:
        what = "The agent's stash" if name.startswith("stash/") else f"The agent's {escape(name)}"
        record.add_notice(f"{what} is kept as {escape(names[name])}.")


def _report_rejected(
    repository: SessionRepository, changed: list[str], why: str, names: dict[str, str]
) -> None:
    """Tell the person why the refs *changed* were left alone, in one sentence if they are many."""
    if len(changed) > _MAX_NAMED:
        repository.record.add_notice(
            f"{len(changed)} refs, for example {short_name(changed[0])}, keep your value ({why}). "
            f"The agent's are kept below {PRESERVED_REFS}/{repository.folder.parent.name}/."
        )
        return
    for name in changed:
        if name in names:
            repository.record.add_notice(
                f"{short_name(name)} keeps your value ({why}). The agent's is kept as "
                f"{escape(names[name])}."
            )
        else:
            repository.record.add_notice(
                f"The agent deleted {short_name(name)}, but it was kept ({why})."
            )
