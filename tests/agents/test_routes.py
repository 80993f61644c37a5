"""Each row of the agents' tables (`Agent.routes`), with the real agent in the sandbox: carried, or refused by name.

A start has as many rows as can be seen at once; its name has them all. Codex and OpenCode here, all six
with AILERON_TEST_ALL set (`make test-all`).
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import pytest

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.program_variables import named_in
from aileron_core.launch.routes import Route
from tests.agents.agents_bench import CLI, KEYS, Bench
from tests.agents.route_cases import CARRIED
from tests.agents.routed import LLM, Case, desk, fresh, run_until_shown, started
from tests.support.variants import ALL, variants

pytestmark = pytest.mark.timeout(300)

PROGRAM = "/elsewhere/program"
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "codex": {
        ".codex/config.toml": f"""\
model_provider = "mine"
model_catalog_json = "/elsewhere/models.json"
cli_auth_credentials_store = "keyring"
[model_providers.mine]
credential_file = "/elsewhere/login.json"
auth.command = "{PROGRAM}"
aws.profile = "work"
aws.credential_export.command = "{PROGRAM}"
aws.auth_refresh.command = "aws"
gateway_oauth.command = "mine"
"""
    },
    "claude": {
        ".claude/settings.json": f"""{{
"apiKeyHelper": "{PROGRAM}", "gcpAuthRefresh": "{PROGRAM}",
"awsAuthRefresh": "{PROGRAM}", "awsCredentialExport": "{PROGRAM}"}}"""
    },
    "opencode": {
        ".config/opencode/opencode.json": (
            '{"provider": {"mine": {"options": {"apiKey": "{file:~/.secrets/key}"}}}}'
        )
    },
    "pi": {".pi/agent/auth.json": f'{{"mine": {{"type": "api_key", "key": "!{PROGRAM}"}}}}'},
}
"""What is refused in an agent's settings."""
IN_NO_TABLE = {
    "codex": "CODEX_CI",
    "claude": "KUBECONFIG",
    "opencode": "DATABASE_URL",
    "goose": "NODE_OPTIONS",
    "pi": "GITHUB_TOKEN",
    "gemini": "DATABASE_URL",
}
"""What an agent's program names, and its table does not."""
TYPED = {"model_provider": ("-c", "model_provider="), "model": ("-m", ""),
         "defaultProvider": ("--provider", "")}  # fmt: skip
"""A setting on which a row depends -> how it is typed; any other is a variable."""


@dataclass(frozen=True, slots=True)
class Refused:
    """One start that the launcher refuses, for rows that depend on the same and are set in the same way."""

    agent: str
    routes: tuple[Route, ...]

    def case(self) -> Case:
        """Return the start, in which all its rows are set."""
        env = {"ANTHROPIC_API_KEY": ""} if self.agent == "claude" else {}
        args: tuple[str, ...] = ()
        condition, source = self.routes[0].only_while, self.routes[0].source
        if condition is not None and (name := self.trigger()) != "cli_auth_credentials_store":
            value = condition.patterns[0].partition("=")[2].replace("*", "any")
            if name in TYPED:
                option, prefix = TYPED[name]
                args = (option, prefix + value)
            else:
                env[name] = value or "1"
        files = SETTINGS[self.agent] if source == "settings" else {}
        if source == "login":
            files = {f"{route.path}/any".lstrip("/"): "" for route in self.routes}
        elif source == "environment":
            env |= {self.name(each): "/elsewhere" for each in self.routes if not self.chosen(each)}
        return Case(rows={}, args=args, env=env, files=files)

    def trigger(self) -> str:
        """Return the setting that its rows depend on."""
        condition = self.routes[0].only_while
        return condition.patterns[0].partition("=")[0] if condition is not None else ""

    def chosen(self, route: Route) -> bool:
        """Tell whether the setting that *route* depends on is the row's own."""
        return fnmatchcase(self.trigger(), route.name)

    def name(self, route: Route) -> str:
        """Return what is set for *route*."""
        return self.trigger() if self.chosen(route) else route.name.replace("*", "X")

    def sentence(self, route: Route) -> str:
        """Return what the launcher says of *route*."""
        title = AGENTS[self.agent].title
        if route.source == "login" and route.only_while is None:
            return f"{title} uses {route.name}. {route.refused}"
        if route.source == "login":
            return f", for which {title} uses {route.name}. {route.refused}"
        where = "Your environment"
        if route.source == "settings":
            (file,) = SETTINGS[self.agent]
            where, name = f"~/{file}", re.sub(r"\.\*$", ".command", route.name)
        else:
            name = self.name(route)
        return f"{where} sets {name}, which chooses {route.chooses}. {route.refused}"


def refusals(agent: str) -> list[Refused]:
    """Return the starts that are refused, the settings' first."""
    groups: dict[object, list[Route]] = {}
    for route in AGENTS[agent].routes:
        if route.refused and not route.only_named:
            groups.setdefault((route.source, route.only_while), []).append(route)
    found = [Refused(agent, tuple(routes)) for routes in groups.values()]
    return sorted(found, key=lambda each: each.routes[0].source != "settings")


T = TypeVar("T")


def one_of_each_first(of_agents: Mapping[str, Sequence[T]]) -> list[tuple[str, T]]:
    """Return all of *of_agents* with their agents, Codex's first one and OpenCode's before the others."""
    first = [("codex", of_agents["codex"][0]), ("opencode", of_agents["opencode"][0])]
    every = [(agent, each) for agent, values in of_agents.items() for each in values]
    return first + [each for each in every if each not in first]


def named(value: object) -> str:
    """Return an agent, or the rows of a start, for the name of a test."""
    if isinstance(value, Refused):
        return "-".join(route.name for route in value.routes)
    return "-".join(value.rows) if isinstance(value, Case) else str(value)


@pytest.fixture(scope="module")
def shared() -> Iterator[Bench]:
    """A console for all starts; each has a home and a project of its own."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder, desk(Path(folder)) as bench:
        yield bench


@pytest.mark.parametrize(("agent", "case"), variants(one_of_each_first(CARRIED), 2), ids=named)
def test_what_is_carried_is_seen_in_a_request(agent: str, case: Case, shared: Bench) -> None:
    """Address, model, key or header of each row, in the sandbox as they would be without it."""
    missing, output = run_until_shown(shared, agent, case)
    assert missing == {}, (output[-2000:], [each.url for each in shared.llm.seen])


@pytest.mark.parametrize(
    ("agent", "refused"),
    variants(one_of_each_first({agent: refusals(agent) for agent in AGENTS}), 2),
    ids=named,
)
def test_what_cannot_be_carried_is_named_before_the_start(
    agent: str, refused: Refused, shared: Bench
) -> None:
    """A sentence for each row, before anything starts: no session, no request to a model."""
    before = shared.console.records()
    bench = fresh(shared)
    with started(bench, agent, refused.case()) as running:
        ended = running.end()
    assert ended.code == 77, ended.output
    for route in refused.routes:
        assert refused.sentence(route) in ended.output
    assert bench.llm.seen == []
    opened = [each for each in shared.console.records() if each["event"] == "session.opened"]
    assert opened == [each for each in before if each["event"] == "session.opened"]


@pytest.mark.parametrize(
    ("agent", "name"), variants([("opencode", "GITHUB_TOKEN"), ("pi", "AWS_PROFILE")], 1)
)
def test_a_variable_that_may_choose_the_provider_is_named_before_the_start(
    agent: str, name: str, shared: Bench
) -> None:
    """While no model is chosen: the agent outside the sandbox might ask one of that provider."""
    bench = fresh(shared)
    before = shared.console.records()
    with started(bench, agent, Case(rows={}, args=(), env={name: "any"})) as running:
        ended = running.end()
    assert ended.code == 77, ended.output
    assert f"Your environment sets {name}, which {AGENTS[agent].title} takes" in ended.output
    of_list = "OpenCode's own list of models sets google.env (GEMINI_API_KEY)"  # it is in KEYS
    assert (of_list in ended.output) == (agent == "opencode")
    opened = [each for each in shared.console.records() if each["event"] == "session.opened"]
    assert opened == [each for each in before if each["event"] == "session.opened"]


@pytest.mark.parametrize(("agent", "name"), variants(IN_NO_TABLE.items(), 1))
def test_what_no_table_knows_is_named_at_the_start(agent: str, name: str, shared: Bench) -> None:
    """A variable, if the program names it, as all in its table but what a compiler took apart; a file of its settings."""
    listed = agent == "opencode"
    case = Case(
        rows={},
        args=("--version", *(("--model", "openai/any") if listed else ())),
        env={name: "any", "OF_ANOTHER_PROGRAM": "any", "ONLY_LISTED_KEY": "any"},
        files={
            "own.pem": "",
            ".codex/config.toml": 'mine = "~/own.pem"',
            ".cache/opencode/models.json": '{"new": {"env": ["ONLY_LISTED_KEY"]}}',
        },
    )
    with started(fresh(shared), agent, case) as running:
        ended = running.end()
    assert ("/own.pem (~/.codex/config.toml: mine)." in ended.output) == (agent == "codex")
    said = re.search(
        r"Not in the sandbox: (\S+(, \S+)*)\. (.+)'s program, or its settings, names", ended.output
    )
    assert said, ended.output
    assert said[3] == AGENTS[agent].title
    named = {name, "OF_ANOTHER_PROGRAM", "ONLY_LISTED_KEY"} & {*said[1].split(", ")}
    assert named == {name, *(["ONLY_LISTED_KEY"] if listed else [])}
    table = [route for route in AGENTS[agent].routes if route.source == "environment"]
    names = {route.name for route in table if "*" not in route.name} - {"OPENAI_PROJECT"}
    program = shutil.which(agent, path=shared.environment({})["PATH"])
    assert program is not None
    assert named_in(Path(program), names) == names


def test_the_model_that_was_used_last_is_asked(shared: Bench) -> None:
    """By OpenCode, with the key of its provider, while no setting chooses another model."""
    mine = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{LLM}/mine"}}
    providers = {"groq": mine, "scaleway": mine}
    last = {"providerID": "scaleway", "modelID": "chosen-model"}
    case = Case(
        rows={
            "model": '"model":"chosen-model"',
            "SCALEWAY_API_KEY": "authorization: Bearer key-1",
        },
        args=("run", "hello"),
        env={"SCALEWAY_API_KEY": "key-1", "GROQ_API_KEY": "key-2"},
        files={
            ".config/opencode/opencode.json": json.dumps(
                {
                    "provider": {
                        name: {**each, "models": {"chosen-model": {}, "other-model": {}}}
                        for name, each in providers.items()
                    }
                }
            ),
            ".local/state/opencode/model.json": json.dumps({"recent": [last]}),
        },
    )
    missing, output = run_until_shown(shared, "opencode", case)
    assert missing == {}, (output[-2000:], [each.url for each in shared.llm.seen])


@pytest.mark.parametrize(
    ("agent", "args", "chosen", "said"),
    [
        (
            "goose",
            ("session",),
            "GOOSE_PROVIDER: openai\nGOOSE_MODEL: any\n",
            "Goose was not started. Its provider openai is chosen, and OPENAI_API_KEY",
        ),
        (
            "gemini",
            (),
            '{"security": {"auth": {"selectedType": "gemini-api-key"}}}',
            "Gemini CLI was not started. Its settings choose an API key",
        ),
    ],
    ids=["goose", "gemini"],
)
def test_a_launch_without_the_key_that_the_keyring_may_have_ends_before_the_agent(
    agent: str, args: tuple[str, ...], chosen: str, said: str, shared: Bench
) -> None:
    """Its session is open by then: only the console knows which keys the vault has."""
    bench = fresh(shared)
    program = bench.home / "bin" / agent
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho started\n")
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "OPENAI_API_KEY": "", "GEMINI_API_KEY": ""}
    settings = {"goose": ".config/goose/config.yaml", "gemini": ".gemini/settings.json"}[agent]
    case = Case(rows={}, args=args, env=env, files={settings: chosen})
    with started(bench, agent, case) as running:
        ended = running.end()
    assert ended.code == 77, ended.output
    assert said in ended.output
    with started(bench, agent, replace(case, files={settings: ""})) as running:
        assert "started" in running.end().output


@pytest.mark.skipif(not ALL, reason="one of the six agents that make test-all launches")
def test_a_key_that_only_the_keyring_may_have_is_named_where_it_may_not_be_needed(
    shared: Bench,
) -> None:
    """LiteLLM's, and Goose starts."""
    said = "Your environment sets a provider that may need LITELLM_API_KEY, for which Goose uses a key that only"
    for key in ("", "key-1"):
        env = {"GOOSE_PROVIDER": "litellm", "GOOSE_MODEL": "any", "LITELLM_API_KEY": key}
        with started(
            fresh(shared), "goose", Case(rows={}, args=("--version",), env=env)
        ) as running:
            ended = running.end()
        assert ended.code == 0, ended.output
        assert (said in ended.output) == (not key)


@pytest.mark.parametrize("agent", AGENTS)
def test_every_row_has_a_start(agent: str) -> None:
    """A new row has to be seen in a request of the real agent, or to be refused at its launch."""
    routes = AGENTS[agent].routes
    assert len({route.name for route in routes}) == len(routes)
    shown = [row for case in CARRIED[agent] for row in case.rows]
    assert {*shown} == {route.name for route in routes if not route.refused}
    refused = [route for each in refusals(agent) for route in each.routes]
    assert {*refused} == {route for route in routes if route.refused and not route.only_named}
    variables = {route.name for route in routes if route.source == "environment"}
    for case in CARRIED[agent]:
        given = {name for name, value in {**KEYS, **case.env}.items() if value}
        for row in variables & {*case.rows}:
            assert any(fnmatchcase(name, row) for name in given), row


def test_doctor_fails_where_the_launch_would_be_refused(bench: Bench) -> None:
    """With the launch's own sentence."""
    bench.write(".codex/config.toml", 'cli_auth_credentials_store = "keyring"\n')
    doctor = subprocess.run(
        [*CLI, "doctor", "codex", "--home", str(bench.console.home)],
        env=bench.environment({}),
        cwd=bench.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert doctor.returncode == 1
    assert "✗ codex: Codex was not started. ~/.codex/config.toml sets" in doctor.stdout
