"""Ops of an accepted connector as tools of one session: asked, unless an accepted action lets the agent call them so."""

import json
from pathlib import Path

import pytest

from aileron_core.canonical import Json
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.intents import WithdrawAcceptance
from aileron_core.errors import Conflict, FileProblems, InvalidArguments, NotFound
from aileron_core.proxy_settings import PluginTools
from aileron_core.runs.transitions import RunState
from aileron_core.server.agent_api import AgentApi
from aileron_core.sessions.model import Session
from aileron_tui.cli.check import validate_project
from aileron_tui.cli.output import EXIT, CommandContext
from tests.support.core_harness import DRAFT, ROOT, Core, Mailbox, Start, open_session, writes

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
    ended = await core.run(view)
    assert (ended.state, "POST send" in writes(mailbox)) == ("failed", False)


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
    context = CommandContext(home=home, json=True, color=False)
    assert validate_project(context, file) == EXIT.FAILED
    found = json.loads(capsys.readouterr().out)["problems"]
    keys = [each["key"] for each in found]
    assert sorted(keys) == [
        "launch.codex.args", "launch.codex.args", "launch.codex.env.PATH", "launch.codex.env.TZ",
        "mcp_proxy.plugin_tools[0].plugin", "mcp_proxy.plugin_tools[1].expose[1]",
        "mcp_proxy.plugin_tools[2].expose", "mcp_proxy.plugin_tools[2].plugin", "rule", "server",
    ]  # fmt: skip
    assert "no op 'list_draft'" in next(each["message"] for each in found if "[1]" in each["key"])
    assert not any("was not compared" in each["message"] for each in found)
