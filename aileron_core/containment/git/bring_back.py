"""Bringing what an agent did in its git folder back to the person's repository."""

from collections.abc import Sequence
from dataclasses import dataclass

from aileron_core.containment.git.index import IndexLock, rebuild, without_new_links
from aileron_core.containment.git.objects import new_links, new_shallow, publish, take, tree_links
from aileron_core.containment.git.record import OID
from aileron_core.containment.git.refs import (
    ASIDE,
    RefChanges,
    checked_out_elsewhere,
    delete,
    move,
    set_aside,
    shown,
)
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_git_dir import STATE
from aileron_core.containment.git.sides import IndexEntry, Sides, peeled, read_small
from aileron_core.text import escape

_LINKS = "its commits put another repository into the tree"
_TOUCHED = "you changed the index meanwhile"
_STASH, _INDEX = "refs/stash", "index"
_LOCK_SECONDS = 5.0
_EACH = 8
"""So many refs are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agent:
    """The agent's side at one moment."""

    head: str
    refs: dict[str, str]
    symbolic: dict[str, str]
    entries: frozenset[IndexEntry]
    loose: dict[str, str]
    """Objects that no ref names: entries of the stash, a merge under way, other work trees' HEADs."""


def bring_back(sides: Sides, *, last: bool) -> None:
    """Bring back all that is new; what a person has to know is added to the record.

    Args:
        sides: one repository of a session.
        last: the agent has ended; before that, an index that somebody has locked puts it off.

    Raises:
        GitFailed: nothing was moved; the agent's folder still holds all of it.
    """
    kept = sides.kept
    agent = _look(sides, last=last)
    before = sides.base_entries()
    now, symbolic = sides.person_refs()
    entries, links = without_new_links(agent.entries, before)
    # One that only names another ref would look deleted.
    names = {*agent.refs, *kept.refs} - {_STASH, *agent.symbolic}
    changed = {
        name: agent.refs.get(name) for name in names if agent.refs.get(name) != kept.refs.get(name)
    }
    for name in {*agent.symbolic} - {*symbolic}:
        kept.tell(f"{shown(name)} only names another ref; that was not carried over.")
    for path in links:
        name = escape(path.decode("utf-8", "replace"))
        kept.tell(f"{name} was staged as another repository; that was left out of your index.")
    if not changed and not agent.loose and agent.head == kept.head and entries == before:
        return
    moves = RefChanges.of(changed, kept.refs, now, checked_out_elsewhere(sides))
    entries = _objects(sides, agent, moves, entries, before, now)
    with IndexLock(sides, seconds=_LOCK_SECONDS if last else 0.0) as lock:
        if not (lock.held or last):
            raise GitFailed("the index is locked by another program.")
        if entries != before and not (lock.held and sides.index_is_untouched(lock.read())):
            _leave_checkout(sides, moves)
        _settle(sides, agent, moves, lock, (entries, before))


def _leave_checkout(sides: Sides, moves: RefChanges) -> None:
    """Leave HEAD and its branch: an index that is not made anew would undo the agent's work at the next commit."""
    moves.head_stays = True
    name = sides.person_head().removeprefix("ref: ")
    if name in moves.moved:
        moves.withhold(name, _TOUCHED)


def _look(sides: Sides, *, last: bool) -> _Agent:
    refs, symbolic = sides.agent_refs()
    loose: dict[str, str] = {}
    if _STASH in refs:
        words = ("log", "-g", "--format=%H", _STASH)
        listed = sides.agent().run(*words, fails=True).decode("ascii", "replace").split()
        theirs = (read_small(sides.place / "stash") or b"").decode("utf-8", "replace").splitlines()
        known = {line.split(" ")[1] for line in theirs if line.count(" ") > 1}
        new = [oid for oid in (listed or [refs[_STASH]]) if OID.match(oid) and oid not in known]
        loose = {f"stash/{number}": oid for number, oid in enumerate(new)}
    if last:
        heads = {name: sides.own / name for name in STATE if name.endswith("_HEAD")}
        worktrees = sides.own / "worktrees"
        if worktrees.is_dir() and not worktrees.is_symlink():
            heads |= {f"worktrees/{each.name}": each / "HEAD" for each in worktrees.iterdir()}
        for name, path in heads.items():
            text = (read_small(path) or b"").decode("ascii", "replace").split("\n")[0].strip()
            begun = read_small(sides.place / "state" / name)
            if OID.match(text) and text.encode() != (begun or b"").strip():
                loose[name] = text
    return _Agent(
        head=sides.agent_head(),
        refs=refs,
        symbolic=symbolic,
        entries=sides.agent_entries(),
        loose=loose,
    )


def _objects(
    sides: Sides,
    agent: _Agent,
    moves: RefChanges,
    entries: frozenset[IndexEntry],
    before: frozenset[IndexEntry],
    now: dict[str, str],
) -> frozenset[IndexEntry]:
    """Get everything that is new over, checked; return the entries that the index may have.

    Refs that may not move are set aside in *moves*.
    """
    have = {*now.values()}
    commits = {**moves.moved, **moves.aside, **agent.loose}
    if OID.match(agent.head) and agent.head != sides.kept.head:
        commits["HEAD"] = agent.head
    staged = {entry.oid for entry in entries - before if not entry.is_link}
    cut, refused = new_shallow(sides)
    shallow = (*sides.kept.shallow, *cut)
    try:
        take(sides, {*commits.values(), *staged}, have, shallow)
    except GitFailed:
        wanted = {**{name: {oid} for name, oid in commits.items()}, _INDEX: staged}
        bad = _refused(sides, wanted, have, shallow)
        commits = {name: oid for name, oid in commits.items() if name not in bad}
        for name in bad:
            for each in (moves.moved, moves.aside, agent.loose):
                each.pop(name, None)
            moves.refused.append(name)
        entries = before if _INDEX in bad else entries
        if _INDEX in bad:
            staged = set[str]()
        take(sides, {*commits.values(), *staged}, have, shallow)
    kinds = peeled(sides.checker(), commits)
    for name in [name for name in moves.moved if kinds[name] != "commit"]:
        moves.withhold(name, "it names no commit")
    tips = {name: oid for name, oid in commits.items() if kinds[name] == "commit"}
    known = {entry.path for entry in before if entry.is_link}
    # Not what was set aside before: it was so for a reason.
    trusted = {oid for name, oid in now.items() if not name.startswith(f"{ASIDE}/")}
    if new_links(sides, tips.values(), trusted) - known:
        for name, oid in tips.items():
            if not new_links(sides, [oid], trusted) - known:
                continue
            if name in moves.moved:
                moves.withhold(name, _LINKS)
            else:
                moves.why[name] = _LINKS
    if OID.match(agent.head) or agent.head.removeprefix("ref: ") not in moves.refused:
        _keep_head(sides, agent, moves, known)
    publish(sides)
    _cut(sides, cut, refused)
    return entries


def _keep_head(sides: Sides, agent: _Agent, moves: RefChanges, known: set[bytes]) -> None:
    """Leave HEAD where it is if the agent's tree holds a repository that the index did not.

    The index goes without it, but the person's next `git reset` makes that from the tree, whoever
    committed it.
    """
    name = agent.head.removeprefix("ref: ")
    tip = name if OID.match(name) else agent.refs.get(name)
    moved = agent.head != sides.kept.head or name in moves.moved
    if tip is None or not moved or "HEAD" in moves.refused:
        return
    moves.head_stays = bool(tree_links(sides, tip) - known)
    if moves.head_stays and name in moves.moved:
        moves.withhold(name, _LINKS)


def _refused(
    sides: Sides, wanted: dict[str, set[str]], have: set[str], shallow: Sequence[str]
) -> set[str]:
    """Return which of *wanted* cannot be had by themselves, and note why for the person."""
    bad: set[str] = set()
    for name, oids in wanted.items():
        try:
            take(sides, oids, have, shallow)
        except GitFailed as error:
            bad.add(name)
            sides.kept.refused[name] = str(error)
    return bad


def _cut(sides: Sides, cut: list[str], refused: list[str]) -> None:
    """Note in the person's repository where new history is cut off; theirs stays as long as it is."""
    if refused:
        sides.kept.tell(
            "The agent cut off history that you have (a shallow fetch); yours stays whole."
        )
    if not cut:
        return
    lock = sides.common / "shallow.lock"
    try:
        with lock.open("xb") as file:
            now = read_small(sides.common / "shallow") or b""
            file.write(now + "".join(f"{oid}\n" for oid in cut).encode("ascii"))
    except FileExistsError:
        raise GitFailed("the list of shallow commits is locked by another program.") from None
    lock.replace(sides.common / "shallow")
    sides.kept.shallow += cut
    sides.kept.tell(
        f"History that the agent fetched is cut off at {len(cut)} "
        f"commit{'s' if len(cut) > 1 else ''} (a shallow fetch): `git fetch --unshallow` completes it."
    )


def _settle(
    sides: Sides,
    agent: _Agent,
    moves: RefChanges,
    lock: IndexLock,
    staged: tuple[frozenset[IndexEntry], frozenset[IndexEntry]],
) -> None:
    """Move refs, HEAD and index, and set the rest aside."""
    kept = sides.kept
    head = sides.person_head()
    moves_head = _may_move_head(sides, agent, moves, head)
    deleted, moves.deleted = moves.deleted, []
    move(sides, moves)
    if moves_head and (
        agent.head.removeprefix("ref: ") in moves.why or not _move_head(sides, agent.head)
    ):
        moves_head = False
    for name in deleted:
        if not moves_head and f"ref: {name}" == head:
            moves.why[name] = "you have it checked out"
        else:
            moves.deleted.append(name)
    delete(sides, moves)
    extra = dict(agent.loose)
    if OID.match(agent.head) and not moves_head and agent.head not in (kept.head, head):
        extra["HEAD"] = agent.head
    names = set_aside(sides, {**moves.aside, **extra})
    _tell(sides, extra, moves, names)
    together = sides.person_head() == agent.head and _same_commit(sides, agent)
    if together:
        _index(sides, lock, *staged)
        _finish_state(sides)
    elif head != agent.head:
        kept.tell(_head_sentence(agent.head, head))
    agreed = {**agent.refs}
    for name in {*moves.why, *moves.refused}:  # compared again, with what the agent began with
        agreed.pop(name, None)
        agreed |= {name: kept.refs[name]} if name in kept.refs else {}
    kept.refs = agreed


def _may_move_head(sides: Sides, agent: _Agent, moves: RefChanges, head: str) -> bool:
    if agent.head == sides.kept.head or head != sides.kept.head or moves.head_stays:
        return False
    name = agent.head.removeprefix("ref: ")
    if name == agent.head:
        return "HEAD" not in (*moves.why, *moves.refused)
    return name not in (*moves.why, *moves.refused) and name not in checked_out_elsewhere(sides)


def _move_head(sides: Sides, head: str) -> bool:
    box = sides.person(write=True)
    note = ("-m", f"aileron: session {sides.place.parent.name}")
    try:
        if head.startswith("ref: "):
            box.run("symbolic-ref", *note, "HEAD", head.removeprefix("ref: "))
        else:
            before = sides.kept.head
            old = [before] if OID.match(before) else []
            box.run("update-ref", *note, "--no-deref", "HEAD", head, *old)
    except GitFailed:
        return False
    sides.kept.head = head
    return True


def _same_commit(sides: Sides, agent: _Agent) -> bool:
    name = agent.head.removeprefix("ref: ")
    if name == agent.head:
        return True
    now, _ = sides.person_refs()
    return now.get(name) == agent.refs.get(name)


def _index(
    sides: Sides, lock: IndexLock, entries: frozenset[IndexEntry], before: frozenset[IndexEntry]
) -> None:
    if entries == before:
        return
    if not lock.held or not sides.index_is_untouched(lock.read()):
        sides.kept.tell(f"What the agent staged is not in your index: {_TOUCHED}.")
        return
    made = rebuild(sides, entries, before)
    lock.commit(made)
    made.replace(sides.base_index)


def _finish_state(sides: Sides) -> None:
    """End a merge or a pick of the person's that the agent ended."""
    for name in STATE:
        begun = read_small(sides.place / "state" / name)
        ended = begun is not None and not (sides.own / name).exists()
        if ended and read_small(sides.git / name) == begun:
            (sides.git / name).unlink()


def _head_sentence(theirs: str, head: str) -> str:
    agents, yours = (shown(text.removeprefix("ref: ")) for text in (theirs, head))
    return f"The agent had {agents} checked out; you have {yours}."


def _tell(sides: Sides, extra: dict[str, str], moves: RefChanges, names: dict[str, str]) -> None:
    kept = sides.kept
    kept.moved += [name for name in moves.moved if name not in kept.moved]
    for why in dict.fromkeys(moves.why.values()):
        _tell_why(sides, [name for name in moves.why if moves.why[name] == why], why, names)
    folder = f"{ASIDE}/{sides.place.parent.name}/deleted"
    if len(moves.deleted) > _EACH:
        kept.tell(
            f"The agent deleted {len(moves.deleted)} refs; what they were is below {folder}/."
        )
    for name in moves.deleted if len(moves.deleted) <= _EACH else ():
        kept.tell(
            f"{shown(name)} was deleted by the agent; what it was is "
            f"{folder}/{escape(name.removeprefix('refs/'))}."
        )
    for name in extra:
        what = (
            "A stash of the agent's" if name.startswith("stash/") else f"The agent's {escape(name)}"
        )
        kept.tell(f"{what} is kept as {escape(names[name])}.")


def _tell_why(sides: Sides, changed: list[str], why: str, names: dict[str, str]) -> None:
    """Say why *changed* were left as they are; many of them in one sentence."""
    if len(changed) > _EACH:
        sides.kept.tell(
            f"{len(changed)} refs were not changed as the agent did ({why}), {shown(changed[0])} for "
            f"one: what it has there is below {ASIDE}/{sides.place.parent.name}/."
        )
        return
    for name in changed:
        if name in names:
            sides.kept.tell(
                f"{shown(name)} was not moved ({why}): the agent's is {escape(names[name])}."
            )
        else:
            sides.kept.tell(f"{shown(name)} is still there, though the agent deleted it ({why}).")
