"""Real agents go on with a conversation of an earlier contained launch, from Aileron's home and nowhere else.

Codex here; the others with AILERON_TEST_ALL set, and what a person takes out of the database of one that has it.
"""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents.agents_bench import AS_ORDINARY, Bench, Say, ScriptedLlm, workbench
from tests.support.variants import ALL, variants

pytestmark = pytest.mark.timeout(300)

_PI = ("--provider", "anthropic", "--model", "claude-sonnet-4-5")
_GEMINI = ("--skip-trust", "-m", "gemini-2.5-flash")
_CODEX = ("exec", "--skip-git-repo-check")
BEGINS_AND_RESUMES = {
    "codex": (_CODEX, (*_CODEX, "resume", "--last")),
    "claude": (("-p",), ("-p", "--continue")),
    "pi": (("-p", *_PI), ("-p", "--continue", *_PI)),
    "gemini": ((*_GEMINI, "-p"), (*_GEMINI, "--resume", "latest", "-p")),
    "goose": (("run", "--quiet", "-t"), ("run", "--quiet", "--resume", "-t")),
    "opencode": (("run",), ("run", "--continue")),
}


_READS = {"opencode": ("import",), "goose": ("session", "import")}
"""By those that keep conversations among settings."""


def exported(bench: Bench, agent: str, name: str) -> Path:
    out = bench.folder / name
    done = bench.aileron("launch", agent, "--export-session", str(out))
    assert "may contain turns that never happened" in done.stdout
    (found,) = out.iterdir()
    return found


@pytest.mark.parametrize("agent", variants(BEGINS_AND_RESUMES))
def test_a_conversation_goes_on_in_the_next_contained_launch(agent: str, tmp_path: Path) -> None:
    """Of two launches at once each has its own; the person's home is as it was; another project has none."""
    begins, resumes = BEGINS_AND_RESUMES[agent]
    with workbench(tmp_path, ScriptedLlm(lambda _: Say(text="noted"))) as bench:
        bench.configure(agent)
        before = bench.fingerprint()
        with (
            bench.launched(agent, *begins, "the word is xylophone") as one,
            bench.launched(agent, *begins, "the word is zither") as two,
        ):
            one.end()
            two.end()
        asked = len(bench.llm.seen)
        ended = bench.run(agent, *resumes, "what is the word?")
        assert "not kept" not in ended.output
        last = bench.llm.seen[asked:][-1].raw
        assert (b"xylophone" in last) != (b"zither" in last)
        assert b"noted" in last
        assert bench.fingerprint() == before
        kept = bench.console.home / "agents" / agent
        found = exported(bench, agent, "out").read_bytes()
        if agent in _READS:
            assert b"the word is" in found
            assert b"what is the word?" in found
        else:
            texts = [path.read_bytes() for path in kept.rglob("*.jsonl")]
            conversations = [text for text in texts if b"the word is" in text]
            assert len(conversations) == 2
            assert found in conversations
        assert kept.parent.stat().st_mode & 0o777 == kept.stat().st_mode & 0o777 == 0o700


def run_as_person(bench: Bench, home: Path, *words: str) -> str:
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [*AS_ORDINARY, *words], cwd=bench.project, capture_output=True, text=True, check=True,
        env={**bench.environment({}), "HOME": str(home), "GOOSE_DISABLE_KEYRING": "1"}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout


@pytest.mark.skipif(not ALL, reason="Codex and Claude Code keep files: make test-all")
@pytest.mark.parametrize("agent", _READS)
def test_the_agent_reads_what_a_person_took_out(agent: str, tmp_path: Path) -> None:
    with workbench(tmp_path, ScriptedLlm(lambda _: Say(text="noted"))) as bench:
        bench.configure(agent)
        bench.run(agent, *BEGINS_AND_RESUMES[agent][0], "the word is xylophone")
        home = bench.folder / "other"
        found = exported(bench, agent, "out")
        run_as_person(bench, home, agent, *_READS[agent], str(found))
        assert "xylophone" in found.read_text()
        assert found.stem.rpartition("_")[0] in run_as_person(bench, home, agent, "session", "list")
        names = ("sessions.db", "opencode.db")
        (path,) = (each for each in home.rglob("*.db") if each.name in names)
        with closing(sqlite3.connect(path)) as imported:
            assert "xylophone" in "\n".join(imported.iterdump())
