"""The git folders of one session: made before it, followed while it runs, brought back after it."""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from aileron_core.containment.beneath import folder_at, remove_tree, restore_rights
from aileron_core.containment.git.bring_back import bring_back
from aileron_core.containment.git.disarm import disarm, identity
from aileron_core.containment.git.record import (
    INSIDE_GIT,
    RepositoryRecord,
    SessionRecord,
    read_record,
    write_record,
)
from aileron_core.containment.git.repository import (
    RepositoryScan,
    is_repository_shaped,
    object_folders,
    repository_of,
    scan,
)
from aileron_core.containment.git.sandboxed_git import GitFailed, find_git
from aileron_core.containment.git.session_git_dir import make
from aileron_core.containment.git.session_report import (
    EVERYTHING,
    put_aside,
    report,
    settings_of_the_agent,
)
from aileron_core.containment.git.settings import included
from aileron_core.containment.git.sides import Sides, parse_entries
from aileron_core.errors import AileronError, Forbidden
from aileron_core.text import escape

_STAND_INS = 32
"""So many repositories of a project get a stand-in; the others are read-only."""
_MOUNTS = 1000
"""More of them slow bubblewrap down, and a few thousand break it."""


def check_place(project: Path) -> None:
    """Refuse a project that is, or lies in, a git folder: its config and hooks are files like any other.

    Raises:
        Forbidden: it does.
    """
    for folder in (project, *project.parents):
        names = set(os.listdir(folder)) if os.access(folder, os.R_OK) else set[str]()  # noqa: PTH208
        if is_repository_shaped(names) or folder.name == ".git":
            raise Forbidden(
                f"{folder} is a git folder: an agent that works in it could change its settings and "
                "hooks, which run outside. Start in a work tree (`git worktree add`)."
            )


@dataclass(slots=True, kw_only=True)
class GitFolders:
    """Those of one session; its folder is locked as long as the session's launcher lives."""

    bwrap: str
    folder: Path
    aside: Path
    record: SessionRecord
    mounts: tuple[str, ...]
    """Arguments of bubblewrap, for behind the project's own."""
    told: list[str] = field(default_factory=list[str])
    """What a person has to know before the agent starts."""
    handle: int = -1

    def sides(self) -> Iterator[Sides]:
        """Yield each repository that has a stand-in."""
        for kept in self.record.repositories:
            yield Sides(self.bwrap, self.folder, kept)

    def bring_back(self) -> None:
        """Bring back what is new while the agent runs.

        Raises:
            GitFailed: one could not be brought back now.
        """
        for sides in self.sides():
            bring_back(sides, last=False)
        write_record(self.folder, self.record)

    def end(self) -> list[str]:
        """Bring everything back, disarm what is left in the project; return what a person has to know."""
        told: list[str] = []
        stays = False
        with contextlib.suppress(OSError), folder_at(Path(self.record.project)) as project_handle:
            restore_rights(project_handle)  # the agent may have shut it
        for sides in self.sides():
            sides.kept.refused.clear()  # all of it is tried again
            _open_up(sides.own)
            try:
                bring_back(sides, last=True)
            except (GitFailed, OSError, ValueError) as error:
                sides.kept.refused[EVERYTHING] = str(error)
            settings_of_the_agent(sides)
            place: Path | None = None
            if sides.kept.refused:
                try:
                    place = put_aside(sides, self.aside)
                except OSError:  # it stays where it is, and the next launch tries again
                    place, stays = sides.own, True
            told += report(sides.kept, place)
        project = Path(self.record.project)
        if project.is_dir():
            told += disarm(project, self.record.entries, self.record.shapes)
        if not stays:
            remove_tree(self.folder)
        if self.record.covered and not _is_covered(self.folder.parent, project, but=self.folder):
            with contextlib.suppress(OSError):  # no longer empty, or gone with the project
                (project / ".git").rmdir()
        os.close(self.handle)
        return told


def begin(
    *, bwrap: str, parent: Path, aside: Path, session: str, project: Path, env: Mapping[str, str]
) -> GitFolders:
    """Make what a session gets in place of the repositories of *project*.

    Args:
        bwrap: bubblewrap.
        parent: where the folders of sessions lie.
        aside: where what cannot be brought back will be put.
        session: its id.
        project: where the agent works.
        env: the person's environment.

    Raises:
        Forbidden: the project has what nothing can be mounted over.
    """
    check_place(project)
    covered = _cover(parent, project)
    found = scan(project)
    links = [name for name in found.entries if (project / name).is_symlink()]
    if links:
        raise Forbidden(
            f"{escape(links[0])} is a symbolic link, and an agent could put another in its place. "
            "Replace it by what it leads to, or by a file with the line `gitdir: FOLDER`."
        )
    folder, handle = _locked_folder(parent, session)
    record = SessionRecord(
        session=session,
        project=str(project),
        entries={name: identity(project / name) for name in found.entries},
        shapes=list(found.shapes),
        covered=covered,
    )
    folders = GitFolders(
        bwrap=bwrap, folder=folder, aside=aside, record=record, mounts=(), handle=handle
    )
    try:
        read_only = _stand_ins(folders, project, found, env)
        folders.mounts = _mounts(folders, project, (*read_only, *found.shapes))
        write_record(folder, record)
    except BaseException:
        remove_tree(folder)
        os.close(handle)
        raise
    return folders


def _cover(parent: Path, project: Path) -> bool:
    """Put an empty `.git` into a project that is a folder of a repository above it; git passes it by.

    Mounted read-only, it keeps the agent from making a repository in the very folder in which the
    person's git looks for the one above.
    """
    own = project / ".git"
    if os.path.lexists(own):
        return _is_covered(parent, project)
    if not any(os.path.lexists(each / ".git") for each in project.parents):
        return False
    own.mkdir(mode=0o700)
    return True


def _is_covered(parent: Path, project: Path, *, but: Path | None = None) -> bool:
    """Tell whether a session that has not ended has covered *project*."""
    for folder in parent.iterdir() if parent.is_dir() else ():
        with contextlib.suppress(AileronError, OSError):
            record = read_record(folder) if folder != but else None
            if record is not None and record.covered and record.project == str(project):
                return True
    return False


def _stand_ins(
    folders: GitFolders, project: Path, found: RepositoryScan, env: Mapping[str, str]
) -> list[str]:
    """Make stand-ins; return the entries that have none and stay read-only."""
    read_only: list[str] = []
    unfollowed: list[str] = []
    made = _made_by_others(folders.folder.parent, project, found)
    for number, name in enumerate(sorted(found.entries, key=lambda each: each.count("/"))):
        if name == ".git" and folders.record.covered:
            read_only.append(name)
            continue
        worktree = (project / name).parent
        repository = repository_of(worktree) if name.endswith(".git") and name not in made else None
        if repository is None or number >= _STAND_INS or find_git() is None:
            read_only.append(name)
            unfollowed.append(name)
            continue
        kept = RepositoryRecord(
            worktree=str(PurePosixPath(name).parent),
            git=str(repository.git),
            common=str(repository.common),
            objects=[str(each) for each in object_folders(repository.common)],
            number=number,
            is_file=(project / name).is_file(),
        )
        sides = Sides(folders.bwrap, folders.folder, kept)
        read_only += _empty_submodules(sides, project, PurePosixPath(kept.worktree), folders.told)
        try:
            read_only += _included(sides, project, env)
            make(sides, folders.bwrap, env)
        except (GitFailed, OSError) as error:
            shutil.rmtree(sides.place, ignore_errors=True)
            read_only.append(name)
            folders.told.append(
                f"The repository of {escape(str(worktree))} stays read-only for the agent: {error}"
            )
            continue
        folders.record.repositories.append(kept)
        folders.told += [
            f"The agent reads the objects of {escape(each)} too: the repository borrows from it."
            for each in kept.objects[1:]
        ]
    if unfollowed:
        more = f" and {len(unfollowed) - 1} more" if len(unfollowed) > 1 else ""
        folders.told.append(
            f"{escape(unfollowed[0])}{more} stays read-only for the agent: git is not installed here, "
            "it leads to no repository that names it back, it is new since another session began, or "
            f"there are more than {_STAND_INS}."
        )
    return read_only


def _made_by_others(parent: Path, project: Path, found: RepositoryScan) -> set[str]:
    """Return the entries that another session, which has not ended, did not find when it began.

    Its agent may have made them, and have them borrow the objects of any repository of the person's.
    """
    made: set[str] = set()
    for folder in parent.iterdir():
        with contextlib.suppress(AileronError, OSError):
            if (record := read_record(folder)) is not None:
                there = {name for name in found.entries
                         if (project / name).is_relative_to(record.project)}  # fmt: skip
                known = [*record.entries.values()]
                made |= {name for name in there if identity(project / name) not in known}
    return made


def _included(sides: Sides, project: Path, env: Mapping[str, str]) -> list[str]:
    """Return the files of the project that the person's settings include: they stay as they are.

    Raises:
        Forbidden: one is not there, or a link, so that an agent could put its own in that place.
        GitFailed: git cannot read the settings.
    """
    names: list[str] = []
    for path in included(sides.bwrap, sides.git, env):
        if not path.is_relative_to(project) or ".git" in path.relative_to(project).parts:
            continue
        if not path.is_file() or path.resolve() != path:
            raise Forbidden(
                f"Your git settings include {escape(str(path))}, which is no file in the project, so "
                "that an agent could write it. Make it one, or take it out of your settings."
            )
        names.append(str(path.relative_to(project)))
    return names


def _empty_submodules(
    sides: Sides, project: Path, worktree: PurePosixPath, told: list[str]
) -> list[str]:
    """Return the submodules of a repository that are not there: git would look into one put in their place."""
    try:
        entries = parse_entries(sides.person().run("ls-files", "--stage", "-z"))
    except GitFailed:
        return []  # it has no stand-in either, and that is told
    names: list[str] = []
    for path in sorted({os.fsdecode(entry.path) for entry in entries if entry.is_link}):
        name = str(worktree / path)
        folder = project / name
        if os.path.lexists(folder / ".git"):
            continue
        if folder.resolve() != project.resolve() / name:
            continue  # a link on the way: git does not follow it
        with contextlib.suppress(FileExistsError):  # as `git checkout` makes it
            folder.mkdir(parents=True)
        names.append(name)
        told.append(
            f"The submodule {escape(name)} is not checked out and stays empty for the agent."
        )
    return names


def _mounts(folders: GitFolders, project: Path, read_only: tuple[str, ...]) -> tuple[str, ...]:
    """Return how all of it is mounted: folders above first, so that none of them can be moved away."""
    names = [*folders.record.entries, *read_only]
    above = {parent for name in names for parent in PurePosixPath(name).parents} - {
        PurePosixPath(".")
    }
    if len(above) + len(names) > _MOUNTS:
        raise Forbidden(
            f"{escape(str(project))} holds {len(names)} repositories; so many cannot be kept from an "
            "agent. Start in one of them."
        )
    words: list[str] = []
    for each in sorted(above, key=lambda path: len(path.parts)):
        words += ["--bind", str(project / each), str(project / each)]
    for kept in folders.record.repositories:
        sides = Sides(folders.bwrap, folders.folder, kept)
        git = str(project / kept.worktree / ".git")
        inside = f"{INSIDE_GIT}/{kept.number}" if kept.is_file else git
        words += ["--bind", str(sides.own), inside]
        if kept.is_file:
            words += ["--ro-bind", str(sides.place / "gitfile"), git]
        words += _objects(sides)
    for name in sorted(set(read_only)):
        words += ["--ro-bind", str(project / name), str(project / name)]
    return tuple(words)


def _objects(sides: Sides) -> list[str]:
    """Mount the person's objects read-only; each list of borrowed ones is empty, for all stand in ours."""
    words: list[str] = []
    empty = sides.place / "empty"
    empty.touch()
    for number, folder in enumerate(sides.kept.objects):
        seen = sides.objects_inside(number)
        words += ["--ro-bind", folder, seen]
        if Path(folder, "info", "alternates").exists():
            words += ["--ro-bind", str(empty), f"{seen}/info/alternates"]
    return words


def recover(*, bwrap: str, parent: Path, aside: Path) -> list[str]:
    """Bring back what sessions left whose launcher was killed; return what a person has to know.

    Args:
        bwrap: bubblewrap.
        parent: where the folders of sessions lie.
        aside: where what cannot be brought back is put, in a folder for each session.
    """
    told: list[str] = []
    for folder in sorted(parent.iterdir()) if parent.is_dir() else []:
        if folder.name.startswith("."):
            continue
        with _abandoned(folder) as handle:
            if handle is None:
                continue
            try:
                record = read_record(folder)
            except (AileronError, OSError) as error:
                told.append(str(error))
                continue
            if record is None:
                remove_tree(folder)
                continue
            left = GitFolders(
                bwrap=bwrap, folder=folder, aside=aside / folder.name, record=record,
                mounts=(), handle=os.dup(handle),
            )  # fmt: skip
            where = escape(record.project)
            told += [f"{where}, after a launch that was killed: {each}" for each in left.end()]
    return told


@contextlib.contextmanager
def _abandoned(folder: Path) -> Generator[int | None, None, None]:
    """Hold the lock on *folder* meanwhile; None where its launcher, or another start, has it."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle if folder.exists() else None
    except BlockingIOError:
        yield None
    finally:
        os.close(handle)


def _locked_folder(parent: Path, session: str) -> tuple[Path, int]:
    """Make a session's folder; nobody finds it before it is locked."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = parent / f".{session}"
    made.mkdir(mode=0o700)
    handle = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return made.rename(parent / session), handle


def _open_up(folder: Path) -> None:
    """Let us look through what the agent, which has ended, closed; what lies too deep stays closed."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        with contextlib.suppress(OSError):
            here.chmod(stat.S_IRWXU)
            with os.scandir(here) as entries:
                waiting += [Path(each) for each in entries if each.is_dir(follow_symlinks=False)]
