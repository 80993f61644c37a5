"""A few kills of `make chaos`: that nothing is lost among them, and that it still runs."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.server_harness import ROOT


@pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="it freezes by ptrace, and compiles"
)
@pytest.mark.timeout(400)
def test_kills_of_console_relays_and_connectors_lose_nothing() -> None:
    """Effects at the service and in a project, what the agents were told, and the records agree."""
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "chaos.py"), "--kills", "5", "--agents", "10"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=380, check=False,
    )  # fmt: skip
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    assert [*said[-5:-1], said[-1]] == [
        "0 lost", "0 doubled", "0 unrecorded", "0 contradicted", "chain whole",
    ]  # fmt: skip
    assert "0 effects" not in said, "nothing was tried"
