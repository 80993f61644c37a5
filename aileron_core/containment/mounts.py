"""One list says what a sandbox contains: bubblewrap's arguments and the table of a dry run are made from it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aileron_core.errors import Forbidden

MountHow = Literal["read-only", "writable", "copy", "private", "link", "hidden"]
"""How a path is in the sandbox:

* `read-only`, `writable`: what is outside at `Mount.source`.
* `copy`: writable too, but `source` is a copy for the sandbox; what is written to it stays there.
* `private`: made with the sandbox and gone with it: an empty folder, or its own `/proc` and `/dev`.
* `link`: a symbolic link to `source`.
* `hidden`: an empty folder covers it, or `source`; without that, something that cannot be read.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One path in a sandbox."""

    path: Path
    """Absolute, as the agent sees it."""
    how: MountHow
    why: str
    """What it is for, a phrase for the table of a dry run."""
    source: Path | None = None
    """Outside; None where it is `path` itself."""

    def arguments(self) -> list[str]:
        """Return bubblewrap's arguments for it."""
        path, source = str(self.path), str(self.source or self.path)
        match self.how:
            case "read-only":
                return ["--ro-bind", source, path]
            case "writable" | "copy":
                return ["--bind", source, path]
            case "link":
                return ["--symlink", source, path]
            case "private":
                return [{"/proc": "--proc", "/dev": "--dev"}.get(path, "--tmpfs"), path]
            case "hidden" if self.path.is_dir():
                return ["--tmpfs", path, "--remount-ro", path]
            case "hidden":
                return ["--ro-bind", str(self.source or "/dev/null"), path]


def mount_arguments(mounts: Iterable[Mount]) -> list[str]:
    """Return bubblewrap's arguments for *mounts*; a later one covers what an earlier one mounted there."""
    return [word for mount in mounts for word in mount.arguments()]


def refuse_nested(mounts: Iterable[Mount], project: Path) -> None:
    """Refuse a mount, or a project, inside a folder that keeps what an earlier sandbox wrote.

    A link that an agent left there would have bubblewrap make the mount's target anywhere.

    Raises:
        Forbidden: there is one.
    """
    mounts = tuple(mounts)
    kept = [each.path for each in mounts if each.how in ("writable", "copy")]
    for path in (*(each.path for each in mounts), project):
        for above in kept:
            if above in path.parents or (path is project and path == above):
                raise Forbidden(
                    f"{path} is inside {above}, where an agent may have put links. Launch with another "
                    "folder, or move it."
                )
