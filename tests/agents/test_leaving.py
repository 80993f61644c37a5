"""What is left of a launch when it has ended, or was killed."""

import json

import pytest

from tests.agents.agents_bench import Bench, found_by
from tests.support.processes import eventually, running_with

WAITS = '#!/bin/sh\necho up > "{mark}"\nexec sleep 600\n'
LOOKS = """\
#!/usr/bin/env python3
import json, os
own = os.path.expanduser("~/.codex")
print("FOUND " + json.dumps(sorted(os.listdir(own))))
open(own + "/hooks.json", "w").write("evil")
open(own + "/config.toml", "w").write("notify = ['evil']")
open(own + "/auth.json", "w").write('{"token": "renewed"}')
"""
HISTORY = ("archived_sessions", "history.jsonl", "session_index.jsonl", "sessions")


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.write(".codex/auth.json", '{"token": "first"}')
    return bench


def test_the_token_of_a_killed_launcher_goes_with_its_session(bench: Bench) -> None:
    """No file with a token outlives the session: the console sweeps what nobody else can."""
    mark = bench.folder / "mark"
    env = bench.stand_in(WAITS.replace("{mark}", str(mark)))
    with bench.launched("codex", options=("--no-sandbox",), env=env) as running:
        eventually(mark.exists)
        (token,) = [each.read_text() for each in bench.left_behind("*/token")]
        (file,) = (bench.console.home / "run" / "launched").glob("*/token")
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert bench.console.get("/v1/actions", token=token).status == 200
        assert not running_with(token)
        running.kill()
    eventually(lambda: bench.console.get("/v1/actions", token=token).status == 401)
    eventually(lambda: bench.left_behind() == [])


ARMS = """\
#!/bin/sh
echo evil > .envrc
mkdir .vscode
chmod 0 .vscode
echo '{"token": "renewed"}' > ~/.codex/auth.json
echo up > mark
exec sleep 600
"""


def test_what_a_killed_launchers_agent_left_is_moved_aside(bench: Bench) -> None:
    """Nobody is left to do it at the session's end; the person's next `cd` runs nothing."""
    with bench.launched("codex", env=bench.stand_in(ARMS)) as running:
        eventually((bench.project / "mark").exists)
        running.kill()
    eventually(lambda: {each.name for each in bench.project.iterdir()} == {"mark"})
    aside = bench.console.home / "aside"
    eventually(lambda: not list((aside / "watched").iterdir()))
    eventually(lambda: bench.left_behind() == [])
    login = json.loads((bench.home / ".codex/auth.json").read_text())
    assert login == {"token": "renewed"}
    assert {each.name for each in aside.glob("ses-*/*")} == {".envrc", ".vscode"}
    assert ".envrc is new. It was moved to" in bench.launch("#!/bin/sh\n").output


def test_a_hook_of_one_sandboxed_launch_is_gone_in_the_next(bench: Bench) -> None:
    """The agent's own folder is a copy; the login alone comes back, and history stays in Aileron's home."""
    for _ in range(2):
        found = found_by("FOUND", bench.launch(LOOKS).output)
        assert found == sorted((*HISTORY, "auth.json", "thread-writer-locks"))
    own = bench.home / ".codex"
    assert [each.name for each in own.iterdir()] == ["auth.json"]
    assert json.loads((own / "auth.json").read_text()) == {"token": "renewed"}
