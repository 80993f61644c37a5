"""What an acceptance gives beside the actions: ops as tools of a session, rules for actions, and the time they name."""

import json
import shutil
from pathlib import Path

import pytest

from aileron_core.canonical import Json
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.events import StandingUpdated
from aileron_core.console_port.intents import Accept, WithdrawAcceptance
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.errors import Conflict, FileProblems, InvalidArguments, NotFound
from aileron_core.library.run_time import TIMEOUT_ARGUMENT
from aileron_core.policy.policy_file import parse_policy
from aileron_core.proxy_settings import PluginTools
from aileron_core.runs.transitions import RunState
from aileron_core.server.agent_api import AgentApi
from aileron_core.sessions.model import Session
from aileron_tui.cli.check import validate_project
from aileron_tui.cli.output import EXIT, CommandContext
from aileron_tui.draw.file_page import with_content
from aileron_tui.draw.text import plain_text
from tests.core.runs.test_standing import end
from tests.support.core_harness import (
    DRAFT,
    ROOT,
    Core,
    Mailbox,
    Start,
    change_rows,
    install_examples,
    open_session,
    writes,
)
from tests.support.granting import call_as_launched
from tests.support.scripted_guest import install_sleeper, write_action

PLUGIN = "mail-drafts"
OPS = ("get_draft", "list_drafts", "send_draft")


def exposed(*ops: str, plugin: str = PLUGIN) -> tuple[PluginTools, ...]:
    return (PluginTools(plugin=plugin, expose=ops),)


async def launched_with(core: Core, *ops: str) -> Session:
    names = exposed(*ops)[0].names
    return (await open_session(core.app, opened_by="launch", plugin_tools=names)).session


def listed_tools(core: Core, session: Session) -> dict[str, Json]:
    items = AgentApi(core.app).list_actions(session)["items"]
    return {each["tool"]: each["gated"] for each in items}


async def test_a_session_has_the_exposed_ops_as_tools_and_no_other_session_has(
    start: Start, mailbox: Mailbox
) -> None:
    """Each described by its connector; a write waits with its arguments, a read that an action allows runs."""
    async with start() as core:
        mine = await launched_with(core, *OPS)
        tools = listed_tools(core, mine)
        gated = {name: tools[f"{PLUGIN}_{name}"] for name in OPS}
        assert gated == {"get_draft": False, "list_drafts": False, "send_draft": True}
        assert not any(name.startswith(PLUGIN) for name in listed_tools(core, core.session))
        items = AgentApi(core.app).list_actions(mine)["items"]
        (item,) = (each for each in items if each["name"] == f"{PLUGIN}.send_draft")
        assert item["description"].startswith("Send a draft to everyone")
        assert item["input_schema"]["required"] == ["draft_id"]

        read = await core.call(f"{PLUGIN}.get_draft", {"id": DRAFT}, session=mine)
        assert read.row.state is RunState.COMPLETED
        view = await core.ask_for(f"{PLUGIN}.send_draft", {"draft_id": DRAFT}, session=mine)
        assert [(each.label, each.value) for each in view.arguments] == [("draft_id", DRAFT)]
        assert "POST send" not in writes(mailbox)
        assert (await core.run(view)).state == "completed"
        assert writes(mailbox).count("POST send") == 1
        with pytest.raises(NotFound):
            await core.call(f"{PLUGIN}.update_draft", {"id": DRAFT}, session=mine)
        with pytest.raises(NotFound):
            await core.call(f"{PLUGIN}.get_draft", {"id": DRAFT})
    async with start() as core:  # the record of the opening has them
        answer = await core.call(f"{PLUGIN}.list_drafts", {}, session=mine)
        assert answer.row.state is RunState.COMPLETED


async def test_a_withdrawn_connector_ends_what_waits(core: Core, mailbox: Mailbox) -> None:
    mine = await launched_with(core, "send_draft")
    name, args = f"{PLUGIN}.send_draft", {"draft_id": DRAFT}
    view = await core.ask_for(name, args, session=mine)
    (connector,) = core.app.library.accepted_connectors()
    whose = connector.identity
    await core.do(WithdrawAcceptance(kind="connector", name=whose.ref, digest=whose.hash))
    assert f"{PLUGIN}_send_draft" not in listed_tools(core, mine)
    with pytest.raises(Conflict, match="no accepted connector is named 'mail-drafts'"):
        await core.call(name, {"draft_id": "r-1"}, session=mine)
    assert ((await core.run(view)).state, "POST send" in writes(mailbox)) == ("failed", False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("idempotent = true", "idempotent = false"),
        ("${args.max_results}", "1"),
        (', page_token = "${args.page_token}"', ""),
        ("[[execute]]", "[approval]\nrequired = true\n\n[[execute]]"),
        ('capabilities = ["list_drafts"]', 'capabilities = ["get_draft"]'),
    ],
    ids=["may not be repeated", "of the file's own", "one fewer", "gated", "cannot run"],
)
async def test_an_op_is_asked_unless_an_action_lets_the_agent_call_it_with_the_same_arguments(
    start: Start, home: Path, before: str, after: str
) -> None:
    file = home / "actions" / "list-drafts.md"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    async with start() as core:
        assert listed_tools(core, await launched_with(core, "list_drafts"))[f"{PLUGIN}_list_drafts"]


async def test_an_op_without_a_schema_is_asked_for(home: Path, mailbox: Mailbox) -> None:
    """Nothing says what an argument that an action does not name would do."""
    connector = ROOT / "examples" / "connectors" / PLUGIN
    manifest = (connector / "manifest.toml").read_text().partition("# What agents")[0]
    module = (connector / "connector.wasm").read_bytes()
    hash_ = ConnectorStore(home).install_bytes(module, manifest.encode()).identity.hash
    actions = home / "actions"
    actions.mkdir(mode=0o700)
    text = (ROOT / "examples" / "actions" / "get-draft.md").read_text()
    start = text.index('hash = "') + len('hash = "')
    (actions / "get-draft.md").write_text(text[:start] + hash_ + text[text.index('"', start) :])
    async with Core.open(home, mailbox) as core:
        mine = await launched_with(core, "get_draft")
        item = AgentApi(core.app).list_actions(mine)["items"][0]
        assert item["gated"]
        assert "an object of any arguments" in item["description"]
        assert item["input_schema"]["additionalProperties"] is True
        given: Json = {"id": DRAFT, "format": {"deep": [1, None]}}
        view = await core.ask_for(item["name"], given, session=mine)
        assert [each.label for each in view.arguments] == ["format", "id"]
        assert (await core.run(view)).state == "completed"  # which it is only with an id
        with pytest.raises(InvalidArguments):
            await core.call(item["name"], [], session=mine)


async def test_what_a_launch_cannot_have_is_said_with_its_code(start: Start, home: Path) -> None:
    file = home / "actions" / "get-draft.md"
    file.write_text(file.read_text().replace('name = "get-draft"', 'name = "a_list_drafts"', 1))
    async with start() as core:
        place = "mcp_proxy.plugin_tools[0]"

        def codes(*tools: PluginTools) -> list[tuple[str, str]]:
            found = core.app.library.plugin_tool_problems(tools)
            return [(each.class_.removeprefix("USER.MCP_PROXY."), each.key) for each in found]

        assert not codes(*exposed(*OPS))
        unknown = codes(*exposed("list_drafts", plugin="mail"))
        assert unknown == [("UNKNOWN_PLUGIN", f"{place}.plugin")]
        assert codes(*exposed("lst")) == [("UNKNOWN_OPERATION", f"{place}.expose[0]")]
        twice = codes(*exposed("send_draft", "send_draft"))
        assert twice == [("NAME_COLLISION", f"{place}.expose[1]")]
        for other in (exposed("list_drafts", plugin="a"), exposed("read", plugin="builtin")):
            assert ("NAME_COLLISION", f"{place}.expose[0]") in codes(*other)


@pytest.mark.parametrize(
    "ops",
    ['"A b" = { description = "x" }', "a = {}", 'a = { description = "x", more = 1 }',
     'a = { description = "x", inputs = [{ name = "n", type = "text", description = "x" }] }',
     'a = { description = "x", inputs = [{ name = "n", type = "string", description = "x", required = 1 }] }'],
)  # fmt: skip
def test_a_manifest_describes_its_ops_as_an_action_its_inputs(ops: str) -> None:
    text = (ROOT / "examples" / "connectors" / "todoist" / "manifest.toml").read_text()
    head = text.partition("# What agents")[0]
    assert parse_manifest(text.encode(), "manifest.toml").ops["get_task"].inputs[0].name == "id"
    with pytest.raises(FileProblems, match=r"provides\.ops"):
        parse_manifest(f"{head}[provides.ops]\n{ops}\n".encode(), "manifest.toml")


async def test_validate_names_every_fault_and_asks_the_home_where_no_console_runs(
    start: Start, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first hid the others, and plugins were compared with nothing."""
    async with start():
        pass  # it accepted what is there, and ended
    file = tmp_path / "aileron.toml"
    file.write_text(
        "[server]\nlisten = 1\n[[rule]]\nactions = ['*']\ndecision = 'allow'\n"
        '[launch.codex]\nargs = ["--yolo", "resume"]\nenv = { PATH = "/x", TZ = "/etc/x" }\n'
        '[mcp_proxy]\nenable = true\nplugin_tools = [\n{ plugin = "nope", expose = ["a"] },\n'
        f'{{ plugin = "{PLUGIN}", expose = ["list_drafts", "list_draft"] }},\n'
        '{ plugin = "?", expose = [] },\n]\n'
    )
    assert validate_project(CommandContext(home=home, json=True, color=False), file) == EXIT.FAILED
    found = json.loads(capsys.readouterr().out)["problems"]
    assert sorted(each["key"] for each in found) == [
        "launch.codex.args", "launch.codex.args", "launch.codex.env.PATH", "launch.codex.env.TZ",
        "mcp_proxy.plugin_tools[0].plugin", "mcp_proxy.plugin_tools[1].expose[1]",
        "mcp_proxy.plugin_tools[2].expose", "mcp_proxy.plugin_tools[2].plugin", "rule", "server",
    ]  # fmt: skip
    assert "no op 'list_draft'" in next(each["message"] for each in found if "[1]" in each["key"])
    assert not any("was not compared" in each["message"] for each in found)


DENY = '[[rule]]\nactions = ["{}"]\ndecision = "deny"\nwhere = {{ "{}" = {{ is = "x" }} }}\n'


async def test_it_asks_in_place_of_denying_nothing(tmp_path: Path, mailbox: Mailbox) -> None:
    """Else a typing error would lift the prohibition, in an action that is not gated unseen."""
    rules = DENY.format("get-*", "fetched.Sender") + DENY.format("*", "args.draft_id")
    install_examples(tmp_path)
    async with Core.open(tmp_path, mailbox, policy=parse_policy(rules)) as core:
        await call_as_launched(core)
        row = await end(core, await core.call("get-draft", {"id": DRAFT}))
        assert row.state == "pending"
        (view,) = core.views(row.approval_id or "")
        assert view.rule == "it names a field that no accepted action has (policy.toml:1)"
        (problem,) = core.app.library.problems_and_alarms()
        assert (problem.file, problem.key) == ("policy.toml", 'rule[0].where."fetched.Sender"')
        assert problem.message.endswith("the console is restarted, the rule asks.")
        assert (await core.call("list-drafts", {})).row.state == "completed"


async def test_the_item_of_a_new_file_begins_with_what_it_allows(tmp_path: Path) -> None:
    """What lets any other argument through first, in amber; what it denies allows nothing."""
    rules = (
        '[[rule]]\nactions = ["list-*"]\ndecision = "allow"\n'
        '[[rule]]\nactions = ["get-draft"]\ndecision = "allow"\nother_args = "any"\n'
    )
    async with Core.open(tmp_path, policy=parse_policy(rules + DENY.format("x", "args.y"))) as core:
        (item,) = [each for each in core.app.library.not_accepted() if each.kind == "policy"]
        blocks = with_content((), item.content, unfold=False)
        assert [(plain_text(each.pieces), each.pieces[0].role) for each in blocks[1:3]] == [
            ("+ allows, with any other arguments: get-draft", "attn"),
            ("+ allows list-*", "attn"),
        ]
        await core.do(Accept(kind="policy", name=item.name, digest=item.digest))
        told = [each for each in core.events if isinstance(each, StandingUpdated)]
        assert [rule.counts for rule in told[-1].rules] == [True, True, True]


NAMES_120 = "[capabilities.runtime.wall_seconds]\ndo = 120\n"
TIMEOUT = f"""[[inputs]]
name = "{TIMEOUT_ARGUMENT}"
type = "integer"
description = "Optional overall budget, in seconds. Defaults to 180."
required = false
"""


async def proposed(core: Core, name: str = "long-work") -> NotAcceptedView:
    offered = core.app.library.not_accepted
    return (await core.until(lambda: [each for each in offered() if each.name == name]))[0]


async def accept_shown(core: Core, name: str = "long-work") -> None:
    """Accept what is offered under *name*, with the time that is shown."""
    view = await proposed(core, name)
    seconds = view.run_time.seconds if view.run_time is not None else 0
    await core.do(Accept(kind=view.kind, name=view.name, digest=view.digest, run_seconds=seconds))


def seconds_allowed(core: Core, name: str = "long-work") -> int:
    return core.app.library.find(name).action.limits.wall_seconds


CONNECTOR = "local://tests/scripted@1.0.0"


@pytest.mark.parametrize(
    ("more", "inputs", "limits", "named"),
    [
        (NAMES_120, "", "", (120, "connector")),
        ("", TIMEOUT, "", (300, TIMEOUT_ARGUMENT)),
        (NAMES_120, TIMEOUT, "", (120, "connector")),
        (NAMES_120, TIMEOUT, "[limits]\nwall_seconds = 10\n", None),
        (NAMES_120, "", "[limits]\nmemory_mib = 8\n", (120, "connector")),
        (NAMES_120.replace("120", "20"), "", "", None),
        ("", TIMEOUT.replace('"integer"', '"string"'), "", None),
    ],
)
async def test_a_longer_time_is_shown_and_given_with_the_acceptance(
    home: Path, more: str, inputs: str, limits: str, named: tuple[int, str] | None
) -> None:
    """Named by the connector, or left to each call; a limit of the file's own is never raised."""
    write_action(home, "long-work", install_sleeper(home, seconds=0, more=more), inputs + limits)
    async with Core.open(home, accept=False) as core:
        view = (await proposed(core)).run_time
        assert (None if view is None else (view.seconds, view.named_by)) == named
        await accept_shown(core, CONNECTOR)
        await accept_shown(core)
        usual = 10 if "wall_seconds" in limits else 30
        assert seconds_allowed(core) == (usual if named is None else named[0])
        records = await core.records("library.accepted")
        given = [each for each in records if each["kind"] == "run_time"]
        assert [each["digest"].split()[1] for each in given] == ([str(named[0])] if named else [])


async def test_what_was_not_shown_is_not_accepted(home: Path) -> None:
    """A yes to the file as it was shown is no yes to a time that was not."""
    write_action(home, "long-work", install_sleeper(home, seconds=0, more=NAMES_120))
    async with Core.open(home, accept=False) as core:
        view = await proposed(core)
        for seconds in (0, 119):
            yes = Accept(kind="action", name=view.name, digest=view.digest, run_seconds=seconds)
            with pytest.raises(Conflict, match="changed while you were reviewing"):
                await core.do(yes)
        assert await core.records("library.accepted") == []


async def test_a_time_named_after_the_acceptance_is_not_given(home: Path, tmp_path: Path) -> None:
    """The connector came later: the file was accepted with the usual time, and has that.

    A row of another program's in the database gives it no more.
    """
    write_action(home, "long-work", install_sleeper(home, seconds=0, more=NAMES_120))
    connectors = home / "store" / "connectors"
    shutil.move(connectors, tmp_path / "away")
    async with Core.open(home, accept=False) as core:
        assert (await proposed(core)).run_time is None
        await accept_shown(core)
    shutil.rmtree(connectors, ignore_errors=True)
    shutil.move(tmp_path / "away", connectors)
    async with Core.open(home, accept=False) as core:
        await accept_shown(core, CONNECTOR)
        item = next(each for each in core.app.library.items() if each.name == "long-work")
        assert (item.run_time.seconds, item.run_time.accepted) == (120, False)
        assert seconds_allowed(core) == 30
    change_rows(
        home,
        "INSERT INTO pins(kind, name, digest, taken_at, taken_by, last_record) "
        "SELECT 'run_time', name, digest || ' 120', taken_at, taken_by, last_record "
        "FROM pins WHERE kind = 'action'",
    )
    async with Core.open(home, accept=False) as core:
        await core.until(lambda: core.app.library.ready() or None)
        assert seconds_allowed(core) == 30
        await core.app.library.withdraw_acceptance("action", "long-work", item.digest)
        await accept_shown(core)
        assert seconds_allowed(core) == 120


async def test_the_time_goes_with_the_acceptance(home: Path) -> None:
    """Withdrawn with it, kept over a restart, and not carried over to other bytes."""
    hash_ = install_sleeper(home, seconds=0, more=NAMES_120)
    path = write_action(home, "long-work", hash_)
    async with Core.open(home, accept=False) as core:
        await accept_shown(core, CONNECTOR)
        await accept_shown(core)
    async with Core.open(home, accept=False) as core:
        await core.until(lambda: core.app.library.ready() or None)
        assert seconds_allowed(core) == 120
        digest = next(e.digest for e in core.app.library.items() if e.name == "long-work")
        await core.app.library.withdraw_acceptance("action", "long-work", digest)
        withdrawn = await core.records("library.withdrawn")
        assert [each["kind"] for each in withdrawn] == ["action", "run_time"]
        await accept_shown(core)
        write_action(home, "long-work", hash_, "[limits]\nwall_seconds = 40\n")
        await core.until(lambda: (path.read_text() and core.app.library.not_accepted()) or None)
        await accept_shown(core)
        assert seconds_allowed(core) == 40
        write_action(home, "long-work", hash_)
        view = await proposed(core)
        assert view.before is not None
        wider = [each for each in view.before.changes if each.direction == "wider"]
        assert [(w.kind, w.before, w.after) for w in wider] == [("wall_seconds", "40", "120")]
