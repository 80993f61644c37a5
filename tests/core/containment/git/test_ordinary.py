"""The same as an ordinary user: started as root, all of it runs as nobody."""

from collections.abc import Callable

import pytest

from aileron_core.containment.git.sandboxed_git import SandboxedGit
from tests.core.containment.git.git_bench import BWRAP, Bench, all_settings, armed
from tests.support.ordinary import USER, as_ordinary, ordinary_folder


def on_a_bench(body: Callable[[Bench], None]) -> None:
    with ordinary_folder() as folder:
        as_ordinary(lambda: body(Bench(folder)))


def test_an_ordinary_user(repo: Bench) -> None:
    """Commits arrive, nothing of the agent's runs, a closed folder is opened and disarmed."""
    on_a_bench(_session)


def _session(bench: Bench) -> None:
    evil, arm = armed(bench)
    reported = bench.session(
        arm + "echo 2 >> file; git commit -qam second; mkdir sub; git init -q sub; chmod 0555 sub;"
        "mkdir -p a/b; git init -q a/b; chmod 0 a/b/.git a/b a;" + all_settings(evil)
    )
    for words in (("status",), ("diff",), ("log", "-p")):
        bench.git(*words)
    assert bench.git("log", "--format=%s") == "second\nfirst"
    for name in ("sub", "a/b"):
        assert f"{name}/.git is a new repository" in reported, reported
    bench.nothing_ran()
    assert (bench.project / ".git" / "refs" / "heads" / "main").stat().st_uid == USER


_LOOP = "for _ in range(1200): os.mkdir('deep'); os.chdir('deep')"
DEEP = f"python3 -c \"import os\nos.chdir('.git')\n{_LOOP}\""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("chmod 0 .git", id="its git folder"),
        pytest.param("chmod 0 .git/*", id="all in it"),
        pytest.param("mkdir .git/hooks; touch .git/hooks/x; chmod 0 .git/hooks", id="its hooks"),
        pytest.param("chmod 0444 sub", id="a folder that can be listed and not entered"),
        pytest.param("echo x > .git/HEAD; chmod 0500 .git/objects/info", id="its list of objects"),
        pytest.param(
            "rm -r .git/HEAD .git/objects/info; mkdir -p .git/objects/info/alternates",
            id="a folder for a file",
        ),
        pytest.param("rm .git/config; mkdir .git/config", id="a folder for its settings"),
        pytest.param(
            "mkdir -p .git/hooks .git/hooks.of-the-agent/x .git/config.of-the-agent; echo x > .git/HEAD",
            id="the names of ours",
        ),
        pytest.param(DEEP, id="folders deeper than a path or descriptors reach"),
    ],
)
def test_what_an_agent_closed_or_planted_stops_nothing_and_arms_nothing(
    repo: Bench, script: str
) -> None:
    """Its work arrives or is kept aside, a new repository is disarmed, and nothing is left to fail again.

    Whatever modes and names it gave there: root would pass them by.
    """

    def session_that_leaves_it(bench: Bench) -> None:
        evil, arm = armed(bench)
        makes = f"git init -q sub; git -C sub config core.fsmonitor {evil};"
        reported = bench.session(f"{arm} echo 2 >> file; git commit -qam second; {makes} {script}")
        bench.git("status", where=bench.project / "sub", code=None)
        bench.nothing_ran()
        assert "sub/.git is a new repository" in reported, reported
        arrived = bench.git("log", "--format=%s") == "second\nfirst"
        assert arrived or (bench.aileron / "aside" / "ses-1" / "git-0").is_dir(), reported
        assert not list((bench.aileron / "git").iterdir())

    on_a_bench(session_that_leaves_it)


def test_git_runs_behind_the_filter_of_system_calls_and_alone(repo: Bench) -> None:
    """A fault of git's, met by what an agent wrote, is still in a sandbox with all of its walls."""
    box = SandboxedGit(bwrap=BWRAP, git_dir="/none")
    status = box.run("-c", "alias.look=!cat /proc/self/status", "look").decode()
    assert "\nSeccomp:\t2\n" in status
    assert "\nCapEff:\t0000000000000000\n" in status
    links = box.run("-c", "alias.look=!cat /proc/net/dev", "look").decode().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in links] == ["lo"]
