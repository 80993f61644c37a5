"""Running a piece of a test as an ordinary user: root is stopped by no mode."""

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ORDINARY", "as_ordinary", "ordinary_folder"]

NOBODY = 65534
ORDINARY = NOBODY if os.getuid() == 0 else os.getuid()


def as_ordinary(body: Callable[[], None]) -> None:
    """Run *body* in a child that is no root; what it raises fails the test."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(ORDINARY)
                os.setuid(ORDINARY)
            body()
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read().decode()
    _, status = os.waitpid(child, 0)
    assert status == 0, text


@contextmanager
def ordinary_folder() -> Iterator[Path]:
    """A folder of that user's, which it can reach; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="ail-")).resolve()
    if os.getuid() == 0:
        os.chown(folder, ORDINARY, ORDINARY)
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
