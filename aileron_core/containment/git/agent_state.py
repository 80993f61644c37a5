"""Reading the agent's refs, HEAD, index and unreferenced objects from its session's git directory."""

from dataclasses import dataclass

from aileron_core.containment.git.record import OBJECT_ID_PATTERN
from aileron_core.containment.git.session_git_dir import OPERATION_FILES
from aileron_core.containment.git.session_repository import (
    IndexEntry,
    SessionRepository,
    read_small_file,
)

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
