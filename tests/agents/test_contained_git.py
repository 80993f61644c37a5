"""Git in a real launch: what the agent commits arrives, and the repositories that it makes are out of the person's sight.

While it runs, at its end, and after a kill.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aileron_core.containment.git.hidden_repositories import README
from tests.agents.agents_bench import Bench, Running
from tests.support.ordinary import USER
from tests.support.processes import eventually
from tests.support.variants import variants

COMMITS = """\
#!/bin/sh -e
git config user.name Agent; git config user.email a@b
echo two >> file; git commit -qam second
mkdir nested; git init -q nested
{then}
"""
AS_PERSON: dict[str, Any] = (
    {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
)


def make_repository(bench: Bench) -> None:
    bench.write(".codex/auth.json", '{"token": "x"}')
    person_git(bench, "init", "-q", "-b", "main")
    (bench.project / "file").write_text("one\n")
    person_git(bench, "add", ".")
    person_git(bench, "commit", "-qm", "first")


def as_person(bench: Bench, *words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    given: dict[str, Any] = {"cwd": bench.project, "check": True, **AS_PERSON, **more}
    env = {"HOME": str(bench.home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    return subprocess.run(words, capture_output=True, text=True, env=env, **given)


def person_git(bench: Bench, *words: str) -> str:
    settings = ("-c", "user.name=Person", "-c", "user.email=p@q")
    return as_person(bench, "git", *settings, *words).stdout.strip()


def committing_agent(bench: Bench, then: str) -> dict[str, str]:
    return bench.stand_in(COMMITS.replace("{then}", then))


def session_folders(bench: Bench) -> list[Path]:
    return list((bench.console.home / "git").glob("[!.]*"))


def test_it_arrives_while_the_agent_runs_and_the_rest_at_its_end(bench: Bench) -> None:
    """The launcher follows the refs; what is left in the project is disarmed and told."""
    make_repository(bench)
    env = committing_agent(bench, "until [ -e go ]; do sleep 0.1; done; echo st > st; git add st")
    with bench.launched("codex", env=env) as running:
        eventually(lambda: person_git(bench, "log", "--format=%s") == "second\nfirst")
        eventually(lambda: person_git(bench, "status", "--porcelain", "-uno") == "")
        (bench.project / "go").touch()
        ended = running.end()
    assert "The agent's commits are in your repository: refs/heads/main." in ended.output
    assert "nested/.git is a new repository" in ended.output
    assert person_git(bench, "status", "--porcelain", "-uno") == "A  st"
    assert session_folders(bench) == []


@pytest.mark.real
def test_after_a_kill_the_console_brings_it_back_and_the_next_launch_tells(bench: Bench) -> None:
    """SIGKILL of the launcher: nothing of it runs any more; its session's end is what starts that."""
    make_repository(bench)
    env = committing_agent(bench, "echo 3 > st; git add st; touch up; exec sleep 600")
    with bench.launched("codex", env=env) as running:
        eventually((bench.project / "up").exists)
        running.kill()
    eventually(lambda: session_folders(bench) == [])
    assert person_git(bench, "log", "--format=%s") == "second\nfirst"
    assert person_git(bench, "status", "--porcelain", "-uno") == "A  st"
    assert (bench.project / "nested" / ".git.disarmed").is_dir()
    # Its script ends at the folder that is there already.
    ended = bench.run("codex", env=committing_agent(bench, "true"), code=None)
    assert "from a launch that was killed: nested/.git is a new repository" in ended.output
    assert ended.output.count("from a launch that was killed: nested") == 1


QUIET = "git -c core.fsmonitor=false"
AGENT = """\
#!/bin/sh -e
cd {project}
git config --global user.name Agent; git config --global user.email a@b
printf '#!/bin/sh\\necho ran >> {ran}\\n' > evil; chmod +x evil
git init -q -b main sub; cd sub; echo 1 > f; git add f; git commit -qm one
git config core.fsmonitor {project}/evil; cd ..
{first}
touch made
until [ -e go ]; do sleep 0.1; done
{then}
"""


@contextmanager
def armed_launch(bench: Bench, first: str, then: str = "true") -> Iterator[Running]:
    """Launch an agent that makes the armed repository `sub`, and have it done before the body."""
    bench.write(".codex/auth.json", '{"token": "x"}')
    env = bench.stand_in(agent_script(bench, first, then))
    with bench.launched("codex", env=env) as running:
        eventually((bench.project / "made").exists)
        yield running


def agent_script(bench: Bench, first: str, then: str = "true") -> str:
    script = AGENT.replace("{first}", first).replace("{then}", then)
    return script.replace("{project}", str(bench.project)).replace("{ran}", str(ran_mark(bench)))


def ran_mark(bench: Bench) -> Path:
    return bench.folder / "aileron" / "ran"


def looks(bench: Bench, where: str) -> str:
    """Have the person run git in *where*, as they are; nothing of the agent's may run."""
    done = as_person(bench, "git", "status", cwd=bench.project / where, check=False)
    assert not ran_mark(bench).exists()
    return done.stdout + done.stderr


def stand_in(folder: Path) -> bool:
    return {each.name for each in (folder / ".git").glob("*")} == {README}


def test_the_agent_goes_on_with_it_and_nothing_of_it_runs_outside(bench: Bench) -> None:
    """Within a moment of being made it is out of sight; at the end it is there, disabled, and named."""
    then = (
        f"cd sub; echo 2 > f; {QUIET} commit -qam two; {QUIET} switch -qc more; cd ..;"
        f"{QUIET} clone -q sub copy; {QUIET} -C copy log --format='copy has %s'"
    )
    with armed_launch(bench, "true", then) as running:
        eventually(lambda: stand_in(bench.project / "sub"))
        assert "not a git repository" in looks(bench, "sub")
        (bench.project / "go").touch()
        ended = running.end()
    assert "copy has two" in ended.output
    assert "sub/.git is a new repository. It was renamed to sub/.git.disarmed" in ended.output
    assert "copy/.git is a new repository" in ended.output
    looks(bench, "sub")
    assert (bench.project / "sub" / ".git.disarmed" / "refs" / "heads" / "more").exists()


def test_a_repository_under_another_name(bench: Bench) -> None:
    """Git looks into the folder that it is started in; what is not git's there stays in sight."""
    first = (  # made elsewhere: a copy of what is just being hidden may miss a name that is gone again
        "mkdir ~/made; cp sub/.git/config ~/made; cd ~/made;"
        "git init -q --bare x.git; mv config x.git/config; cp -r x.git y; touch y/mine;"
        "git -C x.git config core.worktree ..; git -C y config core.worktree ..;"
        "cp -r x.git other; mkdir g; mv other/HEAD g; echo ../other > g/commondir;"
        "mv x.git y other g {project}; cd {project}"
    )
    then = (
        f"{QUIET} -C sub push -q {{project}}/x.git main:other;"
        f"{QUIET} --git-dir=x.git symbolic-ref HEAD refs/heads/other;"
        f"{QUIET} --git-dir=x.git log --format='bare has %s'; {QUIET} clone -q x.git copy;"
        f"{QUIET} --git-dir=g symbolic-ref HEAD refs/heads/some;"
        "cat g/commondir"
    )
    with armed_launch(bench, first, then) as running:
        for name in ("x.git", "y"):
            eventually(lambda name=name: not list((bench.project / name / "refs").glob("*")))
            assert "not a git repository" in looks(bench, name)
        eventually(lambda: (bench.project / "g" / "commondir").stat().st_size == 0)
        assert "commondir" in looks(bench, "g")
        assert (bench.project / "y" / "mine").exists()
        (bench.project / "go").touch()
        ended = running.end()
    assert "bare has one" in ended.output
    assert "../other" in ended.output
    for name in ("x.git", "y", "g"):
        assert f"{name} is new, and git would treat it as a repository" in ended.output
        looks(bench, name)
    assert (bench.project / "x.git" / "refs" / "heads" / "other").exists()


def test_a_file_that_leads_to_where_it_is_kept(bench: Bench) -> None:
    """The agent reads in /proc where that is; nobody can enter it."""
    then = (
        "where=$(grep ' {project}/sub/.git ' /proc/self/mountinfo | cut -d' ' -f4); mkdir tree;"
        'echo "gitdir: $where" > tree/.git; echo "it is $where"; touch led;'
        "until [ -e end ]; do sleep 0.1; done"
    )
    with armed_launch(bench, "true", then) as running:
        eventually(lambda: stand_in(bench.project / "sub"))
        (bench.project / "go").touch()
        eventually((bench.project / "led").exists)
        assert "not a git repository" in looks(bench, "tree")
        (bench.project / "end").touch()
        ended = running.end()
    assert "/hidden/0/content" in ended.output
    looks(bench, "tree")


@pytest.mark.real
def test_after_a_kill_of_the_launcher_it_is_put_back(bench: Bench) -> None:
    """SIGKILL while repositories are hidden: the console puts them back, the next launch says so."""
    with armed_launch(bench, "git init -q --bare x.git", "exec sleep 600") as running:
        eventually(lambda: stand_in(bench.project / "sub"))
        eventually(lambda: not list((bench.project / "x.git" / "refs").glob("*")))
        running.kill()
    eventually(lambda: not list((bench.console.home / "git").glob("[!.]*")))
    assert (bench.project / "sub" / ".git.disarmed" / "HEAD.disarmed").exists()
    assert not (bench.project / "sub" / ".git").exists()
    assert (bench.project / "x.git" / "HEAD.disarmed").exists()
    assert (bench.project / "x.git" / "refs" / "heads").is_dir()
    for name in ("sub", "x.git"):
        looks(bench, name)
    shutil.rmtree(bench.project / "sub")
    shutil.rmtree(bench.project / "x.git")
    (bench.project / "go").touch()
    with armed_launch(bench, "true") as running:
        ended = running.end()
    assert "from a launch that was killed: sub/.git is a new repository" in ended.output


@pytest.mark.parametrize("name", variants(["sub", "x.git"]))
def test_the_program_runs_without_all_this(bench: Bench, name: str) -> None:
    """What the tests above look for is there to be found, where the same commands run without a launch."""
    first = (
        "git init -q --bare x.git; cp sub/.git/config x.git/config;"
        "git -C x.git config core.worktree .."
    )
    (bench.project / "go").touch()
    as_person(bench, "sh", "-ec", agent_script(bench, first))
    with pytest.raises(AssertionError):
        looks(bench, name)
