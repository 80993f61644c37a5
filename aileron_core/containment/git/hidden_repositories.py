"""Where repositories lie that `RepositoryHider` has hidden, what stands in their place, and putting them back."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from aileron_core.containment.git.new_repositories import (
    SUFFIX,
    disable_head,
    disable_shape,
    entry_identity,
    entry_notice,
    file_identity,
    free_name,
    open_project_folder,
    writable,
)
from aileron_core.containment.git.record import (
    HiddenFolder,
    HiddenRecord,
    SessionRecord,
    read_hidden,
    read_record,
)
from aileron_core.containment.git.repository import RepositoryScan, scan_project
from aileron_core.errors import AileronError
from aileron_core.text import escape

README = "README-aileron.txt"
"""All that a stand-in for a `.git` has in it."""


def kept_path(folder: Path, hidden: HiddenFolder) -> Path:
    """Return where what is hidden lies in the session's *folder*; nobody can enter the folder above it."""
    return folder / "hidden" / str(hidden.number) / "content"


def temporary_path(session: SessionRecord, hidden: HiddenFolder) -> PurePosixPath:
    """Return where in the project a stand-in lies while it is mounted on."""
    path = PurePosixPath(hidden.name)
    return path.with_name(f"{path.name}.{session.session}-{hidden.number}")


def remove_stand_in(folder: int, name: str, hidden: HiddenFolder) -> None:
    """Remove *name* in an open folder if it is the stand-in of *hidden*: its mount in the sandbox ends with it.

    Raises:
        OSError: it cannot be removed; somebody put something into it, for one.
    """
    with contextlib.suppress(FileNotFoundError), writable(folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if [status.st_dev, status.st_ino] != hidden.stand_in:
            return
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=folder)
            return
        inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            with contextlib.suppress(OSError):
                os.unlink(README, dir_fd=inside)
        finally:
            os.close(inside)
        os.rmdir(name, dir_fd=folder)


def find_stand_in(project: Path, scan: RepositoryScan, hidden: HiddenFolder) -> PurePosixPath:
    """Return where in the project the stand-in of *hidden* is now: the agent may have moved a folder above it."""
    part = PurePosixPath(hidden.name).name
    shapes = (str(PurePosixPath(each, part)) for each in scan.repository_shaped)
    for name in (hidden.name, *scan.git_entries, *shapes):
        with contextlib.suppress(OSError):
            if entry_identity(project, name) == hidden.stand_in:
                return PurePosixPath(name)
    return PurePosixPath(hidden.name)


def other_sessions(folder: Path) -> Iterator[tuple[Path, HiddenRecord]]:
    """Yield the projects of the sessions beside that of *folder*, and what they have hidden."""
    for each in folder.parent.iterdir():
        with contextlib.suppress(AileronError, OSError):
            record = read_record(each) if each != folder else None
            if record is not None:
                yield Path(record.project), read_hidden(each)


def restore_hidden(session: SessionRecord, folder: Path, leftovers: Path) -> tuple[list[str], bool]:
    """Put all that a session has hidden back into its project, disabled.

    Args:
        folder: the session's.
        leftovers: where that is put whose folder is gone.

    Returns:
        Sentences for the person, and whether nothing stayed where it was.
    """
    try:
        record = read_hidden(folder)
    except AileronError as error:
        return [str(error)], False
    if not record.hidden:
        return record.notices, True
    scan = scan_project(Path(session.project))
    notices, complete = [*record.notices], True
    for each in record.hidden:
        kept = kept_path(folder, each)
        try:
            kept.parent.chmod(0o700)
            notices += _restore(session, scan, each, kept, leftovers)
        except FileNotFoundError:
            continue
        except OSError as error:  # the next launch tries again
            complete = False
            notices.append(
                f"{escape(each.name)} was hidden while the agent ran, and could not be put back "
                f"({error.strerror}). It is now {kept}."
            )
    return notices, complete


def _restore(
    session: SessionRecord, scan: RepositoryScan, hidden: HiddenFolder, kept: Path, leftovers: Path
) -> list[str]:
    project = Path(session.project)
    where = find_stand_in(project, scan, hidden)
    try:
        with open_project_folder(project, str(where.parent)) as folder:
            if not os.path.lexists(kept) or file_identity(kept) == hidden.stand_in:
                # A kill came before it was hidden.
                remove_stand_in(folder, temporary_path(session, hidden).name, hidden)
                return []
            if where.name.lower() == ".git":
                head = _disable_kept(kept)
                target = free_name(folder, f"{where.name}.{SUFFIX}")
                sentences = [entry_notice(where, target, head)]
            else:
                sentences = disable_shape(project, str(where.parent))
                target = where.name
            with contextlib.suppress(OSError):  # else what is in it is disabled as all that is new
                remove_stand_in(folder, where.name, hidden)
            with writable(folder):
                os.rename(kept, free_name(folder, target), dst_dir_fd=folder)
            return sentences
    except (FileNotFoundError, NotADirectoryError):
        return [_move_to_leftovers(hidden, kept, leftovers)]


def _disable_kept(kept: Path) -> str | None:
    """Rename HEAD in what is kept, unless the agent had put a link or a file in its place."""
    with (
        contextlib.suppress(NotADirectoryError),
        open_project_folder(kept.parent, kept.name) as inside,
    ):
        return disable_head(inside)
    return None


def _move_to_leftovers(hidden: HiddenFolder, kept: Path, leftovers: Path) -> str:
    _disable_kept(kept)
    leftovers.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = kept.rename(leftovers / f"hidden-{hidden.number}")
    return (
        f"The agent created {escape(hidden.name)}, which git would treat as a repository, and "
        f"then removed the folder around it. It is now {target}. Review its config, hooks and "
        "objects/info/alternates before you use it."
    )
