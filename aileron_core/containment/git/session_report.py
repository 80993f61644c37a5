"""What a person is told of one repository when its session is over, and where the rest of it goes."""

import os
import secrets
import stat
from pathlib import Path

from aileron_core.containment.git.record import RepositoryRecord
from aileron_core.containment.git.refs import shown
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.sides import Sides, read_small
from aileron_core.text import escape

_NAMED = 8
EVERYTHING = ""
"""Stands for no ref, but for all that was not brought back yet."""


def settings_of_the_agent(sides: Sides) -> None:
    """Note which settings and hooks of its own an agent leaves behind; they go with the session."""
    try:
        names = _settings(sides)
    except GitFailed as error:
        sides.kept.tell(
            f"The agent's git settings cannot be read ({error}); none of them was carried over."
        )
        names = []
    hooks = sides.own / "hooks"
    if hooks.is_dir() and not hooks.is_symlink():
        try:
            names += [f"hooks/{name}" for name in os.listdir(hooks)]  # noqa: PTH208 - names alone
        except OSError:  # closed by the agent
            names.append("hooks")
    if names:
        sides.kept.tell(
            f"Git settings and hooks of the agent's were not carried over: {_listed(names)}."
        )


def _settings(sides: Sides) -> list[str]:
    if read_small(sides.own / "config") == read_small(sides.place / "config"):
        return []
    box = sides.agent()
    words = ("config", "--file", "/s/config", "--no-includes", "--list", "--name-only", "-z")
    listed = box.run(*words).decode("utf-8", "replace").split("\0")[:-1]
    own = {
        *sides.kept.settings,
        "core.repositoryformatversion",
        "core.bare",
        "core.logallrefupdates",
    }
    return [name for name in dict.fromkeys(listed) if name not in own]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(escape(name) for name in names[:_NAMED]) + more


def report(kept: RepositoryRecord, aside: Path | None) -> list[str]:
    """Return what a person has to know of one repository.

    Args:
        kept: what is known of it.
        aside: where the agent's git folder was put, if something in it could not be brought back.
    """
    told: list[str] = []
    if kept.moved:
        names = _listed([shown(name) for name in sorted(kept.moved)])
        told.append(f"What the agent committed is in your repository: {names}.")
    told += kept.told
    for name, why in kept.refused.items():
        what = "What the agent did last in git" if name == EVERYTHING else shown(name)
        told.append(f"{what} could not be brought back ({why.rstrip('.')}). It is in {aside}.")
    where = "" if kept.worktree == "." else f"In {escape(kept.worktree)}: "
    return [f"{where}{sentence}" for sentence in told]


def put_aside(sides: Sides, folder: Path) -> Path:
    """Move the agent's git folder to *folder*, under settings of ours and without its hooks; return where.

    Raises:
        OSError: it cannot be moved.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"git-{sides.kept.number}"
    number = 1
    while target.exists():
        number += 1
        target = folder / f"git-{sides.kept.number}-{number}"
    token = secrets.token_hex(4)  # so that nothing of the agent's stands there
    for name in ("config", "config.worktree", "commondir", "hooks"):
        _rename(sides.own / name, token)
    (sides.own / "config").write_bytes((sides.place / "config").read_bytes())
    objects = sides.own / "objects"
    if objects.is_dir() and not objects.is_symlink():
        objects.chmod(stat.S_IRWXU)
        _rename(objects / "info", token)
        (objects / "info").mkdir()
        text = "\n".join([*sides.kept.objects, ""])
        (objects / "info" / "alternates").write_text(text, encoding="utf-8")
    return sides.own.rename(target)


def _rename(path: Path, token: str) -> None:
    if os.path.lexists(path):
        path.rename(path.with_name(f"{path.name}.of-the-agent-{token}"))
