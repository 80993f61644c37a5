"""What a command of git can do where Aileron runs it on an agent's objects."""

import pytest
from git_bench import BWRAP, needs_bwrap

from aileron_core.containment.git.sandboxed_git import SandboxedGit


@pytest.mark.skipif(not needs_bwrap(), reason="needs bubblewrap and git of the system")
def test_git_runs_behind_the_filter_of_system_calls_and_alone() -> None:
    """A fault of git's, met by what an agent wrote, is still in a sandbox with all of its walls."""
    box = SandboxedGit(bwrap=BWRAP, git_dir="/none")
    status = box.run("-c", "alias.look=!cat /proc/self/status", "look").decode()
    assert "\nSeccomp:\t2\n" in status
    assert "\nCapEff:\t0000000000000000\n" in status
    links = box.run("-c", "alias.look=!cat /proc/net/dev", "look").decode().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in links] == ["lo"]
