"""Moving aside what an agent left under a name that the person's own tools would obey."""

import os
import secrets
from pathlib import Path, PurePosixPath

from aileron_core.containment.beneath import folder_beneath, restore_rights, restore_rights_at


def move_aside(project: int, name: str, aside: Path) -> Path:
    """Move *name* out of a project and return where it is now.

    Nothing in it is read or copied, and no link is followed. Folders that the agent made unwritable
    are made writable to their owner first. Where it cannot go to *aside* (another file system, a full
    disk) it gets another name beside its own, under which no tool looks for it.

    Args:
        project: a handle of the project.
        name: relative to it.
        aside: a folder in Aileron's home; made if it is missing.

    Raises:
        OSError: it can neither be moved nor be given another name; or it is not there.
    """
    path = PurePosixPath(name)
    restore_rights(project)
    with folder_beneath(project, path.parent) as folder:
        restore_rights(folder)
        restore_rights_at(folder, path.name)
        try:
            for each in (aside.parent, aside):
                each.mkdir(mode=0o700, exist_ok=True)
            target = aside / name.replace("/", "_")
            if os.path.lexists(target):
                target = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
            os.rename(path.name, target, src_dir_fd=folder)
        except OSError:
            other = f"{path.name}.aside-{secrets.token_hex(4)}"
            os.rename(path.name, other, src_dir_fd=folder, dst_dir_fd=folder)
            return Path(path.parent, other)
    return target
