"""A project's folder and the agents' names."""

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project."""
    path = tmp_path / "project"
    path.mkdir()
    return path
