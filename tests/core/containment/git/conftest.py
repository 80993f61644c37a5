"""A bench for each test; see `git_bench`."""

from pathlib import Path

import pytest

from tests.core.containment.git.git_bench import BWRAP, Bench


@pytest.fixture
def repo(tmp_path: Path) -> Bench:
    if not BWRAP or not Path("/usr/bin/git").exists():
        pytest.skip("needs bubblewrap and git of the system")
    return Bench(tmp_path)
