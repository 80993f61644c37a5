"""Real agents go on with a conversation of an earlier contained launch, from Aileron's home and nowhere else.

Codex here; the others with AILERON_TEST_ALL set.
"""

from pathlib import Path

import pytest

from tests.agents.agents_bench import Bench, Say, ScriptedLlm, workbench
from tests.support.variants import variants

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
DATABASES = ("goose", "opencode")
"""Those that keep conversations among settings."""


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
            for running in (one, two):
                ended = running.end()
        asked = len(bench.llm.seen)
        ended = bench.run(agent, *resumes, "what is the word?")
        assert "not kept" not in ended.output
        last = bench.llm.seen[asked:][-1].raw
        assert (b"xylophone" in last) != (b"zither" in last)
        assert b"noted" in last
        assert bench.fingerprint() == before
        kept = bench.console.home / "agents" / agent
        found = exported(bench, agent, "out").read_bytes()
        if agent in DATABASES:
            assert b"the word is" in found
            assert b"what is the word?" in found
        else:
            conversations = {
                path for path in kept.rglob("*.jsonl") if b"the word is" in path.read_bytes()
            }
            assert len(conversations) == 2
            assert found in {path.read_bytes() for path in conversations}
        assert kept.parent.stat().st_mode & 0o777 == kept.stat().st_mode & 0o777 == 0o700
