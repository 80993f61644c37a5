"""A bench for each test; see `git_bench`."""

import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from git_bench import Bench, needs_bwrap  # noqa: E402


@pytest.fixture
def repo(tmp_path: Path) -> Bench:
    """A person, a project and Aileron's home."""
    if not needs_bwrap():
        pytest.skip("needs bubblewrap and git of the system")
    return Bench(tmp_path)
