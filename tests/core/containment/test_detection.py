"""Who is at the other end of a session's own socket, as the kernel sees it: real processes, real sandboxes."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aileron_core.containment.detection import weaker_containment
from tests.support.ordinary import AS_ORDINARY, OWNS
from tests.support.variants import needs_bubblewrap

pytestmark = needs_bubblewrap
MEETING = Path(__file__).resolve().parents[2] / "support" / "meeting.py"


def meeting(*words: str, under: Sequence[str] = ()) -> Any:
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        command = [*under, sys.executable, "-I", str(MEETING), folder, *words]
        env = {**os.environ, OWNS: folder}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, timeout=60, check=True)
    return json.loads(done.stdout)


KINDS = {
    **dict.fromkeys(("in a sandbox", "in a sandbox, hidden"), "verified"),
    "in a sandbox with a link for a home": "verified",
    "beside us, hidden": "claimed",
    **dict.fromkeys(("beside us", "in namespaces alone", "in a sandbox with the home"), "none"),
    **dict.fromkeys(("in a sandbox with a home", "in a sandbox with our processes"), "none"),
}


def test_a_process_is_contained_if_it_is_seen_to_be() -> None:
    """Other namespaces alone do not do it, nor a root without the home; a link is the sandbox's own."""
    observed = meeting(under=AS_ORDINARY)
    assert {kind: observed[kind] for kind in KINDS} == KINDS


@pytest.mark.skipif(os.getuid() != 0, reason="only root can try as root")
def test_another_users_process_is_called_that() -> None:
    """And one in our user namespace, without the home, is neither seen contained nor seen loose."""
    found = meeting()
    assert found["runs as another user"] == "other_user"
    assert found["in a sandbox of our user namespace"] == "claimed"
    assert found["in a sandbox"] == "verified"
    assert found["beside us"] == found["in namespaces alone"] == "none"


def _knows_the_process() -> bool:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        try:
            os.close(one.getsockopt(socket.SOL_SOCKET, 77))
        except OSError:
            return False
        return True


@pytest.mark.skipif(not _knows_the_process(), reason="this kernel has no SO_PEERPIDFD")
def test_a_number_that_is_anothers_now_tells_nothing() -> None:
    """The process that connected has ended: what is seen at its number is of somebody else."""
    assert meeting("again", under=("unshare", "-Urpf", "--mount-proc")) == "claimed"


@pytest.mark.parametrize("worse", ["none", "claimed", "other_user"])
def test_the_worse_of_two_stays(worse: Any) -> None:
    """What was seen once is not made good by what is seen later."""
    assert weaker_containment("verified", worse) == weaker_containment(worse, "verified") == worse
