"""A project, and the files worker for it: a real process, which a module's tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.builtin_worker import Worker


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def worker(shared_project: Path) -> Iterator[Worker]:
    with Worker("files", shared_project) as worker:
        yield worker
