"""Preparing a launch: a git directory of the session's own for each repository of the project."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from aileron_core.containment.bubblewrap import writable_mounts
from aileron_core.containment.git.new_repositories import file_identity
from aileron_core.containment.git.record import (
    SANDBOX_GIT_DIR,
    RepositoryRecord,
    SessionRecord,
    read_record,
    write_record,
)
from aileron_core.containment.git.repository import (
    RepositoryScan,
    find_repository,
    is_repository_shaped,
    object_folders,
    scan_project,
)
from aileron_core.containment.git.sandboxed_git import GitFailed, find_git
from aileron_core.containment.git.session import SessionRepositories, has_empty_git_dir
from aileron_core.containment.git.session_repository import (
    OPERATION_FILES,
    SessionRepository,
    parse_entries,
    read_small_file,
)
from aileron_core.containment.git.settings import (
    GitSetting,
    allowed_settings,
    config_text,
    included_files,
    read_settings,
    unsupported_reason,
)
from aileron_core.containment.mounts import Mount
from aileron_core.containment.safe_paths import remove_tree
from aileron_core.errors import AileronError, Forbidden
from aileron_core.text import escape

_MAX_REPOSITORIES = 32
"""More repositories of a project than this stay read-only."""
_MAX_MOUNTS = 1000
"""More mounts than this slow bubblewrap down, and a few thousand break it."""
GIT_WHY = "a git folder of its own"


def prepare_repositories(
    *,
    bwrap: str,
    parent: Path,
    leftovers: Path,
    session: str,
    project: Path,
    env: Mapping[str, str],
) -> SessionRepositories:
    """Make the session's git directories for the repositories of *project*, with the mounts for the sandbox.

    Args:
        parent: the folder that holds the folders of all sessions.
        leftovers: where what cannot be imported will be put.

    Raises:
        Forbidden: the project has something that nothing can be mounted over.
    """
    refuse_git_dir(project)
    covered = _put_empty_git_dir(parent, project)
    scan = _scan(project)
    folder, handle = _locked_folder(parent, session)
    record = SessionRecord(
        session=session,
        project=str(project),
        entries={name: file_identity(project / name) for name in scan.git_entries},
        shapes=list(scan.repository_shaped),
        heads=list(scan.lone_heads),
        has_empty_git_dir=covered,
    )
    prepared = SessionRepositories(
        bwrap=bwrap,
        folder=folder,
        leftovers=leftovers,
        record=record,
        mounts=(),
        lock_descriptor=handle,
    )
    try:
        read_only = _make_repositories(prepared, project, scan, env)
        read_only += scan.repository_shaped
        others = [each.path for each in writable_mounts(project, ()) if each.how == "read-only"]
        for each in record.repositories:
            each.read_only = [*read_only, *(str(path.relative_to(project)) for path in others)]
        prepared.mounts = _mounts(prepared, project, read_only)
        write_record(folder, record)
    except BaseException:
        remove_tree(folder)
        os.close(handle)
        raise
    return prepared


def check_repositories(*, bwrap: str, project: Path, env: Mapping[str, str]) -> None:
    """Refuse what `prepare_repositories` would refuse; makes nothing.

    Raises:
        Forbidden: as there.
    """
    refuse_git_dir(project)
    for name in _scan(project).git_entries[:_MAX_REPOSITORIES]:
        paths = find_repository((project / name).parent) if name.endswith(".git") else None
        if paths is not None and find_git() is not None:
            with contextlib.suppress(GitFailed, OSError):  # it would be read-only
                settings = read_settings(bwrap, paths.git_dir, env)
                _included_project_files(settings, project, env)


def _scan(project: Path) -> RepositoryScan:
    """Look for the project's repositories.

    Raises:
        Forbidden: a `.git` is a symbolic link.
    """
    scan = scan_project(project)
    links = [name for name in scan.git_entries if (project / name).is_symlink()]
    if links:
        raise Forbidden(
            f"{escape(links[0])} is a symbolic link, which an agent could replace with another. "
            "Replace it with its target, or with a file that contains the line `gitdir: FOLDER`."
        )
    return scan


def _put_empty_git_dir(parent: Path, project: Path) -> bool:
    """Put an empty `.git` into a project that lies inside a repository; git ignores it.

    Mounted read-only, it keeps the agent from making a repository in the very folder from which the
    person's git looks for the one above.
    """
    own = project / ".git"
    if os.path.lexists(own):
        return has_empty_git_dir(parent, project)
    if not any(os.path.lexists(each / ".git") for each in project.parents):
        return False
    own.mkdir(mode=0o700)
    return True


def refuse_git_dir(project: Path) -> None:
    """Refuse a project that is, or lies in, a git directory: its config and hooks would be ordinary writable files.

    Raises:
        Forbidden: it is one.
    """
    for folder in (project, *project.parents):
        names = set(os.listdir(folder)) if os.access(folder, os.R_OK) else set[str]()  # noqa: PTH208
        if is_repository_shaped(names) or folder.name == ".git":
            raise Forbidden(
                f"{folder} is a git folder. An agent in it could change its settings and hooks, which "
                "run outside the sandbox. Launch in a work tree (`git worktree add`)."
            )


def _make_repositories(
    session: SessionRepositories, project: Path, scan: RepositoryScan, env: Mapping[str, str]
) -> list[str]:
    """Make the session's git directories; return the entries without one, which stay read-only."""
    read_only: list[str] = []
    unsupported: list[str] = []
    made = _made_by_others(session.folder.parent, project, scan)
    for number, name in enumerate(sorted(scan.git_entries, key=lambda each: each.count("/"))):
        if name == ".git" and session.record.has_empty_git_dir:
            read_only.append(name)
            continue
        worktree = (project / name).parent
        paths = find_repository(worktree) if name.endswith(".git") and name not in made else None
        if paths is None or number >= _MAX_REPOSITORIES or find_git() is None:
            read_only.append(name)
            unsupported.append(name)
            continue
        record = RepositoryRecord(
            worktree=str(PurePosixPath(name).parent),
            git=str(paths.git_dir),
            common=str(paths.common_dir),
            objects=[str(each) for each in object_folders(paths.common_dir)],
            number=number,
            is_file=(project / name).is_file(),
        )
        repository = SessionRepository(session.bwrap, session.folder, record)
        read_only += _missing_submodules(
            repository, project, PurePosixPath(record.worktree), session.notices
        )
        try:
            settings = read_settings(session.bwrap, paths.git_dir, env)
            read_only += _included_project_files(settings, project, env)
            _make_session_git_dir(repository, settings)
        except (GitFailed, OSError) as error:
            shutil.rmtree(repository.folder, ignore_errors=True)
            read_only.append(name)
            session.notices.append(
                f"The repository of {escape(str(worktree))} is read-only for the agent: {error}"
            )
            continue
        session.record.repositories.append(record)
        session.notices += [
            (
                f"The agent can also read the git objects of {escape(each)}, because this repository "
                "borrows from it."
            )
            for each in record.objects[1:]
        ]
    if unsupported:
        more = f" and {len(unsupported) - 1} more" if len(unsupported) > 1 else ""
        session.notices.append(
            f"{escape(unsupported[0])}{more} is read-only for the agent. Possible reasons: git is "
            "not installed, the .git file and its repository do not point at each other, the "
            "repository is newer than another session in this project, or there are more than "
            f"{_MAX_REPOSITORIES}."
        )
    return read_only


def _make_session_git_dir(repository: SessionRepository, settings: Iterable[GitSetting]) -> None:
    """Make the session's git directory, and record the state that it begins with.

    Args:
        repository: the repository; its folder does not exist yet.

    Raises:
        GitFailed: repositories of this kind are not supported.
    """
    record, own = repository.record, repository.session_git_dir
    if any(repository.git_dir.glob("sharedindex.*")):
        raise GitFailed("it has a split index")
    settings = list(settings)
    if why := unsupported_reason(settings):
        raise GitFailed(why)
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (own / folder).mkdir(mode=0o700, parents=True)
    allowed = allowed_settings(settings)
    for path in (own / "config", repository.folder / "config"):
        path.write_text(config_text(allowed), encoding="utf-8", errors="surrogateescape")
    record.settings = sorted({name for name, _ in allowed})
    plain, symbolic = repository.person_refs()
    record.refs = {name: oid for name, oid in plain.items() if not name.startswith("refs/aileron/")}
    record.head = repository.person_head()
    packed = "".join(f"{oid} {name}\n" for name, oid in record.refs.items())
    (own / "packed-refs").write_text(packed, encoding="utf-8", errors="surrogateescape")
    for name, target in symbolic.items():
        _write(own / name, f"ref: {target}\n".encode("utf-8", "surrogateescape"))
    for path in (own / "HEAD", repository.folder / "HEAD"):
        path.write_text(f"{record.head}\n", encoding="utf-8")
    inside = [repository.objects_inside(number) for number in range(len(record.objects))]
    (own / "objects" / "info" / "alternates").write_text("\n".join(inside) + "\n", encoding="utf-8")
    _copy_files(repository)
    repository.make_quarantine()
    repository.base_entries()  # an index that cannot be read is found now, not at the end


def _copy_files(repository: SessionRepository) -> None:
    own = repository.session_git_dir
    of_each = (repository.common_dir / "shallow", repository.common_dir / "info" / "exclude")
    for path in (*of_each, repository.git_dir / "info" / "sparse-checkout"):
        if (data := read_small_file(path)) is not None:
            _write(own / ("" if path.parent.name != "info" else "info") / path.name, data)
    repository.record.shallow = (
        (read_small_file(own / "shallow") or b"").decode("ascii", "replace").split()
    )
    for name in OPERATION_FILES:
        if (data := read_small_file(repository.git_dir / name)) is not None:
            _write(own / name, data)
            _write(repository.folder / "state" / name, data)
    if (stash := read_small_file(repository.common_dir / "logs" / "refs" / "stash")) is not None:
        _write(own / "logs" / "refs" / "stash", stash)
        _write(repository.folder / "stash", stash)
    if (repository.git_dir / "index").is_file():
        shutil.copyfile(repository.git_dir / "index", repository.base_index)
        shutil.copyfile(repository.base_index, own / "index")
    if repository.record.is_file:
        (repository.folder / "gitfile").write_text(
            f"gitdir: {SANDBOX_GIT_DIR}/{repository.record.number}\n"
        )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(data)


def _made_by_others(parent: Path, project: Path, scan: RepositoryScan) -> set[str]:
    """Return the `.git` entries that another unfinished session did not find when it began.

    Its agent may have made them, and have them borrow objects from any repository of the person's.
    """
    made: set[str] = set()
    for folder in parent.iterdir():
        with contextlib.suppress(AileronError, OSError):
            if (record := read_record(folder)) is not None:
                there = {name for name in scan.git_entries
                         if (project / name).is_relative_to(record.project)}  # fmt: skip
                known = [*record.entries.values()]
                made |= {name for name in there if file_identity(project / name) not in known}
    return made


def _included_project_files(
    settings: Iterable[GitSetting], project: Path, env: Mapping[str, str]
) -> list[str]:
    """Return the files of the project that the person's git settings include, which stay read-only.

    Raises:
        Forbidden: one is missing or a link, so that an agent could put its own in that place.
    """
    names: list[str] = []
    for path in included_files(settings, env):
        if not path.is_relative_to(project) or ".git" in path.relative_to(project).parts:
            continue
        if not path.is_file() or path.resolve() != path:
            raise Forbidden(
                f"Your git settings include {escape(str(path))}, which does not exist as a file in "
                "the project, so the agent could create it. Create the file, or remove the include "
                "from your settings."
            )
        names.append(str(path.relative_to(project)))
    return names


def _missing_submodules(
    repository: SessionRepository, project: Path, worktree: PurePosixPath, notices: list[str]
) -> list[str]:
    """Make folders for submodules that are not checked out, and return them: git would look into what is put there."""
    try:
        entries = parse_entries(repository.person_git().run("ls-files", "--stage", "-z"))
    except GitFailed:
        return []  # it stays read-only as a whole, and a notice says so
    names: list[str] = []
    for path in sorted({os.fsdecode(entry.path) for entry in entries if entry.is_gitlink}):
        name = str(worktree / path)
        folder = project / name
        if os.path.lexists(folder / ".git"):
            continue
        if folder.resolve() != project.resolve() / name:
            continue  # a link on the way: git does not follow it
        with contextlib.suppress(FileExistsError):  # as `git checkout` makes it
            folder.mkdir(parents=True)
        names.append(name)
        notices.append(
            f"The submodule {escape(name)} is not checked out, so it is empty for the agent."
        )
    return names


def _mounts(
    session: SessionRepositories, project: Path, read_only: Iterable[str]
) -> tuple[Mount, ...]:
    """Return the mounts in order, parent folders first, so that none of them can be moved away."""
    names = [*session.record.entries, *read_only]
    above = {parent for name in names for parent in PurePosixPath(name).parents} - {
        PurePosixPath(".")
    }
    if len(above) + len(names) > _MAX_MOUNTS:
        raise Forbidden(
            f"{escape(str(project))} contains {len(names)} repositories, more than Aileron can "
            "protect from an agent. Launch in one of them."
        )
    mounts = [
        Mount(path=project / each, how="writable", why="above a repository, so that it stays there")
        for each in sorted(above, key=lambda path: len(path.parts))
    ]
    for repository in session.repositories():
        record = repository.record
        git = project / record.worktree / ".git"
        inside = Path(SANDBOX_GIT_DIR, str(record.number)) if record.is_file else git
        mounts.append(
            Mount(path=inside, how="copy", why=GIT_WHY, source=repository.session_git_dir)
        )
        if record.is_file:
            file = repository.folder / "gitfile"
            mounts.append(Mount(path=git, how="read-only", why=GIT_WHY, source=file))
        mounts += _object_mounts(repository)
    for name in sorted(set(read_only)):
        mounts.append(Mount(path=project / name, how="read-only", why="git acts on it"))
    return tuple(mounts)


def _object_mounts(repository: SessionRepository) -> list[Mount]:
    """Mount the person's object stores read-only, their `alternates` empty: the session's own file lists them all."""
    mounts: list[Mount] = []
    empty = repository.folder / "empty"
    empty.touch()
    for number, folder in enumerate(map(Path, repository.record.objects)):
        inside = Path(repository.objects_inside(number))
        mounts.append(Mount(path=inside, how="read-only", why="your git objects", source=folder))
        alternates = Path("info", "alternates")
        if (folder / alternates).exists():
            mounts.append(
                Mount(path=inside / alternates, how="read-only", why=GIT_WHY, source=empty)
            )
    return mounts


def _locked_folder(parent: Path, session: str) -> tuple[Path, int]:
    """Make a session's folder, already locked when it gets its final name."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = parent / f".{session}"
    made.mkdir(mode=0o700)
    handle = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return made.rename(parent / session), handle
