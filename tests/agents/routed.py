"""One start of a real agent for several rows of its table, and what a request has because of each of them."""

import contextlib
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.agents.agents_bench import Bench, Running, Say, ScriptedLlm, workbench
from tests.agents.llm import Conversation, Script, Seen
from tests.support.tls import Authority

LLM = "http://the-model"
"""Stands for the scripted model's address in a case."""
PORT = "THE-PORT"
"""And for its port."""
PROJECT = "/the-project"
THROUGH_PROXY = {
    "HTTPS_PROXY": LLM,
    "SSL_CERT_FILE": f"{PROJECT}/ca.pem",
    "NODE_EXTRA_CA_CERTS": f"{PROJECT}/ca.pem",
}
"""The scripted model answers for every host; its authority is in the project, which the sandbox has."""
GOOGLE_LOGIN = {
    "type": "authorized_user",
    "client_id": "id",
    "client_secret": "secret",
    "refresh_token": "refresh",
}
"""In the project as login.json: what `gcloud auth application-default login` writes."""
GOOGLE = {"GOOGLE_APPLICATION_CREDENTIALS": "login.json"}
"""That login, which only config.toml can give to an agent in the sandbox."""
_NUMBERS = itertools.count(1)
_SECONDS = 180


def says_final(conversation: Conversation) -> Say:
    del conversation
    return Say(text="FINAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One start."""

    rows: Mapping[str, str]
    """A row's name -> what a request has, as `text` writes it, because of that setting."""
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Below the home."""
    project: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files of the project's."""
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables under `[launch.AGENT] env` in config.toml."""
    script: Script = says_final
    typed: str = ""
    """What it reads from its standard input."""


def text(seen: Seen) -> str:
    """Return a request as cases write it: method and URL, a line for each header, the body."""
    head = [
        f"{seen.method} {seen.url}",
        *(f"{name}: {seen.headers[name]}" for name in seen.headers),
    ]
    return "\n".join([*head, "", json.dumps(seen.body, separators=(",", ":"))])


@contextlib.contextmanager
def desk(folder: Path) -> Iterator[Bench]:
    """Run a console for many starts, whose model answers for every host."""
    (folder / "authority").mkdir()
    authority = Authority(folder / "authority")
    with workbench(folder, ScriptedLlm(says_final, stands_for=authority.context)) as bench:
        yield bench


def fresh(bench: Bench) -> Bench:
    """Return *bench* with a home and a project that nobody has used."""
    made = replace(bench, folder=bench.folder / f"start-{next(_NUMBERS)}")
    for each in (made.home, made.project):
        each.mkdir(parents=True)
    authority = (bench.folder / "authority" / "ca.pem").read_bytes()
    (made.project / "ca.pem").write_bytes(authority)
    (made.project / "login.json").write_text(json.dumps(GOOGLE_LOGIN))
    bench.llm.seen.clear()
    return made


@contextlib.contextmanager
def started(bench: Bench, agent: str, case: Case) -> Iterator[Running]:
    """Start *agent* as *case* says, at a fresh *bench*."""
    bench.llm.script = case.script
    for name, content in case.files.items():
        bench.write(name, _filled(content, bench))
    for name, content in case.project.items():
        (bench.project / name).write_text(_filled(content, bench))
    env = {name: _filled(value, bench) for name, value in case.env.items()}
    args = [_filled(word, bench) for word in case.args]
    (bench.folder / "typed").write_text(case.typed)
    with (
        _configured(bench, agent, case.config),
        (bench.folder / "typed").open("rb") as typed,
        bench.launched(agent, *args, env=env, typed=typed) as running,
    ):
        yield running
        running.process.terminate()
        running.process.wait(20)


@contextlib.contextmanager
def _configured(bench: Bench, agent: str, env: Mapping[str, str]) -> Iterator[None]:
    path = bench.console.home / "config.toml"
    kept = path.read_text()
    lines = "".join(f"{name} = {value!r}\n" for name, value in env.items())
    path.write_text(f"{kept}[launch.{agent}.env]\n{lines}")
    try:
        yield
    finally:
        path.write_text(kept)


def _filled(words: str, bench: Bench) -> str:
    words = words.replace(LLM, bench.llm.url).replace(PROJECT, str(bench.project))
    return words.replace(PORT, bench.llm.url.rpartition(":")[2])


def not_shown(bench: Bench, case: Case) -> dict[str, str]:
    """Return the rows of *case* of which no request shows anything."""
    asked = [text(each) for each in [*bench.llm.seen]]
    return {
        row: words
        for row, words in case.rows.items()
        if not any(_filled(words, bench) in each for each in asked)
    }


def run_until_shown(bench: Bench, agent: str, case: Case) -> tuple[dict[str, str], str]:
    """Return the rows that no request has shown before *agent* ended, and its output."""
    here = fresh(bench)
    deadline = time.monotonic() + _SECONDS
    with started(here, agent, case) as running:
        while not_shown(here, case) and running.process.poll() is None:
            if time.monotonic() > deadline:
                break
            here.llm.result_received.wait(0.05)
    output, _ = running.process.communicate(timeout=20)
    return not_shown(here, case), output
