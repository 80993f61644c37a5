"""Notices about a repository for the person when its session ends, and moving what could not be imported."""

import os
import secrets
import stat
from pathlib import Path

from aileron_core.containment.git.record import RepositoryRecord
from aileron_core.containment.git.refs import IMPORTED
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_repository import SessionRepository, read_small_file
from aileron_core.text import escape

_NAMED = 8
ALL_CHANGES = ""
"""In place of a ref's name: everything that was not imported yet."""


def add_settings_notice(repository: SessionRepository) -> None:
    """Record which settings and hooks the agent made; they end with the session."""
    try:
        names = _settings(repository)
    except GitFailed as error:
        repository.record.add_notice(
            f"The agent's git settings cannot be read ({error}). None was copied to your "
            "repository."
        )
        names = []
    hooks = repository.session_git_dir / "hooks"
    if hooks.is_dir() and not hooks.is_symlink():
        try:
            names += [f"hooks/{name}" for name in os.listdir(hooks)]  # noqa: PTH208 - names alone
        except OSError:  # closed by the agent
            names.append("hooks")
    if names:
        repository.record.add_notice(
            "The agent's git settings and hooks were not copied to your repository: "
            f"{_listed(names)}."
        )


def _settings(repository: SessionRepository) -> list[str]:
    if read_small_file(repository.session_git_dir / "config") == read_small_file(
        repository.folder / "config"
    ):
        return []
    git = repository.agent_git()
    words = ("config", "--file", "/s/config", "--no-includes", "--list", "--name-only", "-z")
    listed = git.run(*words).decode("utf-8", "replace").split("\0")[:-1]
    own = {
        *repository.record.settings,
        "core.repositoryformatversion",
        "core.bare",
        "core.logallrefupdates",
    }
    return [name for name in dict.fromkeys(listed) if name not in own]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(escape(name) for name in names[:_NAMED]) + more


def repository_notices(record: RepositoryRecord, leftovers: Path | None) -> list[str]:
    """Return the notices about one repository for the person.

    Args:
        leftovers: where the session's git directory was moved if something in it could not be imported.
    """
    notices: list[str] = []
    if record.updated_refs:
        names = ", ".join(escape(name) for name in sorted(record.updated_refs))
        if len(record.updated_refs) > _NAMED:
            where = " ".join(each.rstrip("/") for each in IMPORTED)
            names = (
                f"{len(record.updated_refs)} branches and tags, which `git for-each-ref {where}` "
                "lists among yours"
            )
        notices.append(f"The agent's commits are in your repository: {names}.")
    notices += record.notices
    for name, why in record.refused.items():
        what = "The agent's last changes in git" if name == ALL_CHANGES else escape(name)
        notices.append(
            f"{what} could not be copied to your repository ({why.rstrip('.')}). You find them in "
            f"{leftovers}."
        )
    where = "" if record.worktree == "." else f"In {escape(record.worktree)}: "
    return [f"{where}{sentence}" for sentence in notices]


def move_leftovers(repository: SessionRepository, folder: Path) -> Path:
    """Move the session's git directory to *folder*, with safe settings and without hooks; return its path.

    Raises:
        OSError: it cannot be moved.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"git-{repository.record.number}"
    number = 1
    while target.exists():
        number += 1
        target = folder / f"git-{repository.record.number}-{number}"
    token = secrets.token_hex(4)  # so that nothing of the agent's has that name
    for name in ("config", "config.worktree", "commondir", "hooks"):
        _rename(repository.session_git_dir / name, token)
    (repository.session_git_dir / "config").write_bytes((repository.folder / "config").read_bytes())
    objects = repository.session_git_dir / "objects"
    if objects.is_dir() and not objects.is_symlink():
        objects.chmod(stat.S_IRWXU)
        _rename(objects / "info", token)
        (objects / "info").mkdir()
        text = "\n".join([*repository.record.objects, ""])
        (objects / "info" / "alternates").write_text(text, encoding="utf-8")
    return repository.session_git_dir.rename(target)


def _rename(path: Path, token: str) -> None:
    if os.path.lexists(path):
        path.rename(path.with_name(f"{path.name}.of-the-agent-{token}"))
