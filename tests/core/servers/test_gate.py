"""A server's tools as actions: nothing before a person accepts it, then each by its word, its large results whole."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.actions.arguments import input_schema
from aileron_core.actions.model import Preview
from aileron_core.actions.validate import validate
from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.store import ConnectorStore, InstalledConnector
from aileron_core.console_port.intents import ReleaseServer
from aileron_core.errors import SERVER_RESULT, Conflict, InvalidArguments, NotFound
from aileron_core.library import home_library, running_servers
from aileron_core.runs.model import cut, is_kept_whole
from tests.support.core_harness import ROOT, Core, audit_problems, records
from tests.support.mcp_servers import TOOLS, UnboxedServers, install, server_notes, table

CHANGED = """
def tools():
    new = noted("changed")
    listed = [tool("get"), tool("set", description="Set it" if new else "")]
    return listed + ([tool("drop"), tool("peek", annotations={"readOnlyHint": True})] if new else [])
"""


@pytest.fixture
async def plain(tmp_path: Path, unboxed: UnboxedServers) -> AsyncIterator[Core]:
    """A core whose home has nothing but what a test installs."""
    (tmp_path / "home").mkdir()
    async with Core.open(tmp_path / "home", accept=False, start_server=unboxed) as core:
        yield core


def add(
    core: Core, source: str = "", listed: Sequence[Json] = TOOLS, **more: Any
) -> InstalledConnector:
    """Install a server that runs *source* beside the home."""
    home = core.app.home.path
    return install(home, table(home.parent, source, **more), listed)


async def accept(core: Core) -> None:
    """Accept the server as it waits."""
    await core.app.library.poll()
    (view,) = core.app.library.not_accepted()
    await core.app.library.accept(view.kind, view.name, view.digest, by="a person")


def notes_of(core: Core, what: str) -> list[str]:
    """Return the notes of the server that begin with *what*."""
    return [each for each in server_notes(core.app.home.path.parent) if each.startswith(what)]


def change_server(core: Core) -> None:
    """Let a server of `CHANGED` list other tools from now on."""
    with (core.app.home.path.parent / "state").open("a") as state:
        state.write("changed\n")


def ready_tools(core: Core) -> list[tuple[str, bool]]:
    return [(each.tool_name, each.gated) for each in core.app.library.ready()]


async def test_nothing_is_offered_or_started_before_a_person_accepts_it(plain: Core) -> None:
    """Then one yes is one call of the tool, and its hash is on record."""
    found = add(plain)
    await plain.app.library.poll()
    assert ready_tools(plain) == []
    with pytest.raises(NotFound):
        await plain.call("small.get", {})
    assert notes_of(plain, "") == []
    await accept(plain)
    assert ready_tools(plain) == [("small_get", False), ("small_set", True)]
    assert (await plain.call("small.get", {"any": 1})).row.state == "completed"
    view = await plain.ask_for("small.set", {"to": "b"})
    assert (notes_of(plain, "call"), (await plain.run(view)).state) == (["call get"], "completed")
    assert notes_of(plain, "call") == ["call get", "call set"]
    (accepted,) = await records(plain.app, "library.accepted")
    assert (accepted["name"], accepted["digest"]) == (found.identity.ref, found.identity.hash)


async def test_a_read_of_the_same_server_shows_what_is_and_what_it_becomes(plain: Core) -> None:
    properties = {"id": {"type": "string"}, "title": {"type": "string"}}
    tools = [TOOLS[0], {"name": "set", "inputSchema": {"type": "object", "properties": properties}}]
    source = f"""
    def call(id, name, args):
        send(id=id, result=text(json.dumps({{"id": args["id"], "title": "Old"}})))

    def tools():
        return {tools!r}
    """
    add(plain, source, tools, previews={"set": Preview(op="get", args={"id": "${args.id}"})})
    await accept(plain)
    view = await plain.ask_for("small.set", {"id": "7", "title": "New"})
    assert {each.label: each.value for each in view.preview.fields}["title"] == "Old"
    assert {each.label: each.value for each in view.new_values}["title"] == "New"


async def test_arguments_are_checked_for_being_there_and_for_plain_types_alone(plain: Core) -> None:
    """A server's pattern may take hours to evaluate, and its `$ref` may lead anywhere."""
    schema: Json = {
        "type": "object",
        "required": ["n"],
        "properties": {
            "n": {"type": "integer"},
            "slow": {"type": "string", "pattern": "^(a+)+$"},
            "ref": {"$ref": "https://elsewhere.example/schema"},
        },
    }
    tools = [{"name": "get", "inputSchema": schema}, TOOLS[1]]
    add(plain, f"def tools(): return {tools!r}", tools)
    await accept(plain)
    (offered,) = (each for each in plain.app.library.ready() if each.tool_name == "small_get")
    assert input_schema(offered) == schema
    for wrong in ({}, {"n": "x"}, {"n": 1, "slow": 5}):
        with pytest.raises(InvalidArguments):
            await plain.call("small.get", wrong)
    assert notes_of(plain, "call") == []
    answer = await plain.call("small.get", {"n": 1, "slow": f"{'a' * 40}!", "ref": [1]})
    assert answer.row.state == "completed"


async def test_a_changed_tool_waits_until_a_person_accepts_the_difference(plain: Core) -> None:
    add(plain, CHANGED)
    await accept(plain)
    view = await plain.ask_for("small.set", {})
    change_server(plain)
    assert (await plain.run(view)).state == "failed"
    (failed,) = await records(plain.app, "run.failed")
    assert (failed["class"], notes_of(plain, "call set")) == ("hash_mismatch", [])
    assert (await plain.call("small.get", {})).row.state == "completed"

    (offer,) = await plain.until(plain.app.library.not_accepted)
    assert offer.is_update
    assert [(each.kind, each.name, each.after) for each in offer.before.changes] == [
        ("tools", "", "drop: ask"),
        ("tools", "", "peek: run"),
        ("text", "drop", ""),
        ("text", "peek", ""),
        ("text", "set description", "Set it"),
    ]
    assert ready_tools(plain) == [("small_get", False), ("small_set", True)]
    await accept(plain)
    names = [("small_drop", True), ("small_get", False), ("small_peek", False), ("small_set", True)]
    assert ready_tools(plain) == names
    assert (await plain.run(await plain.ask_for("small.set", {"again": True}))).state == "completed"
    assert len([*(plain.app.home.path / "store" / "connectors" / "sha256").iterdir()]) == 1


async def test_of_a_server_that_lists_other_tools_each_time_the_newest_listing_is_offered_in_a_while(
    plain: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To install one costs the loop of everybody: not each that differs is, and the last one is not forgotten."""
    source = """
    def tools():
        new = f"new{time.time_ns()}"
        note(f"lists {new}")
        return [tool("get"), tool("set"), tool(new)]

    def call(id, name, args):
        send(method="notifications/tools/list_changed")
        send(id=id, result=text("ok"))
    """
    monkeypatch.setattr(running_servers, "_QUIET_SECONDS", 2.0)
    add(plain, source)
    await accept(plain)
    installed: list[object] = []
    real = home_library._install_listed
    monkeypatch.setattr(
        home_library, "_install_listed", lambda *what: (installed.append(what), real(*what))
    )
    for number in range(8):
        assert (await plain.call("small.get", {"n": number})).row.state == "completed"

    def listed() -> list[str]:
        return [each.removeprefix("lists ") for each in notes_of(plain, "lists ")]

    await plain.until(lambda: f"{listed()[-1]}: ask" in repr(plain.app.library.not_accepted()))
    assert len(installed) < len(listed()) - 3


@pytest.mark.parametrize("previews", [{}, {"set": Preview(op="get")}])
async def test_what_waited_when_the_console_ended_waits_again_and_runs(
    tmp_path: Path, unboxed: UnboxedServers, previews: dict[str, Preview]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    install(home, table(tmp_path, previews=previews))
    async with Core.open(home, start_server=unboxed) as core:
        asked = await core.ask_for("small.set", {})
    async with Core.open(home, start_server=unboxed) as core:
        ended = await core.run(await core.looked(asked.approval_id))
        assert (ended.state, notes_of(core, "call set")) == ("completed", ["call set"])


async def test_what_waited_for_a_person_does_not_run_with_other_bytes(plain: Core) -> None:
    add(plain)
    await accept(plain)
    view = await plain.ask_for("small.set", {})
    add(plain, env={"STATE": str(plain.app.home.path.parent / "state"), "MORE": "1"})
    await accept(plain)
    assert ((await plain.run(view)).state, notes_of(plain, "call set")) == ("failed", [])


async def test_no_project_and_no_file_reaches_a_tool_in_another_way(plain: Core) -> None:
    add(plain)
    await accept(plain)
    with pytest.raises(Conflict):
        plain.app.library.find_op("small.set")
    problems = validate(replace(plain.app.library.find("small.get").action, schema=None))
    assert [each.message for each in problems if each.path[0] == "requires"]


@pytest.mark.parametrize("is_file_first", [False, True])
async def test_what_was_accepted_first_keeps_its_name(plain: Core, is_file_first: bool) -> None:
    """An action that is no server's and a tool: agents would know both as `small_get`."""
    home = plain.app.home.path

    def add_file() -> None:
        text = (ROOT / "examples" / "actions" / "get-draft.md").read_text("utf-8")
        (home / "actions").mkdir(exist_ok=True)
        (home / "actions" / "get.md").write_text(text.replace('"get-draft"', '"small-get"', 1))

    ConnectorStore(home).install(ROOT / "examples" / "connectors" / "mail-drafts")
    await accept(plain)
    steps = [add_file, lambda: add(plain)]
    for each in steps if is_file_first else reversed(steps):
        each()
        await accept(plain)
    names = {each.name for each in plain.app.library.ready()}
    assert ("small-get" in names, "small.get" in names) == (is_file_first, not is_file_first)
    assert "small.set" in names


async def test_a_server_that_ended_too_often_starts_again_at_a_persons_word(plain: Core) -> None:
    add(plain, "def call(*_): os._exit(1)")
    await accept(plain)
    for _ in range(4):
        await plain.call("small.get", {})

    def held() -> bool:
        items = plain.app.library.items()
        return any(each.is_held and each.state == "cannot_run" for each in items)

    await plain.until(held)
    count = len(notes_of(plain, "call get"))
    await plain.app.console.carry_out(ReleaseServer(name="mcp://local/small"))
    assert not held()
    await plain.call("small.get", {})
    assert (count, len(notes_of(plain, "call get"))) == (3, 4)


async def test_what_a_server_lists_anew_keeps_a_persons_words_of_meanwhile(plain: Core) -> None:
    """A change of theirs waited; an update that waits is not replaced at all."""
    add(plain, CHANGED)
    await accept(plain)
    add(plain, CHANGED, tools={"get": "off", "set": "ask"})
    await plain.app.library.poll()
    change_server(plain)
    await plain.call("small.get", {})
    await plain.until(lambda: "+ drop" in words_of(plain))
    assert words_of(plain) == "− get: run + drop: ask + peek: run"


def words_of(core: Core) -> str:
    offer, *others = core.app.library.not_accepted()
    if others:
        return ""  # for a moment, the new one stands beside the old one
    assert offer.before is not None
    changes = [each for each in offer.before.changes if each.kind == "tools"]
    gone = [f"− {each.before}" for each in changes if each.before]
    return " ".join((*gone, *(f"+ {each.after}" for each in changes if each.after)))


async def test_arguments_that_a_killed_console_left_are_gone_with_the_next_start(
    tmp_path: Path, unboxed: UnboxedServers
) -> None:
    """Of a server that may have no call any more."""
    left = tmp_path / "home" / "run" / "rehearsals" / "1-small-ab" / "requests" / "cd"
    left.parent.mkdir(parents=True)
    left.write_text("{}")
    async with Core.open(tmp_path / "home", accept=False, start_server=unboxed):
        assert not left.exists()


SIZE = 3_000_000
ANSWERS = f"""
def call(id, name, args):
    send(id=id, result=text("x" * {SIZE}, isError=name == "set" and bool(args)))
"""


async def text_read(core: Core, session_id: str, approval_id: str) -> Any:
    """Return the tool's text, as its agent reads it."""
    row = await core.app.approvals.wait_for_result(session_id, approval_id, 0)
    found: Any = row.output["output"] if row.output else row.failure.details[SERVER_RESULT]  # type: ignore[union-attr]
    return found["content"][0]["text"]


@pytest.mark.parametrize("args", [{}, {"fails": True}])
async def test_a_large_result_reaches_its_agent_and_its_beginning_stays(
    tmp_path: Path, unboxed: UnboxedServers, args: dict[str, Json]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    install(home, table(tmp_path, ANSWERS))
    async with Core.open(home, start_server=unboxed) as core:
        ended = await core.run(await core.ask_for("small.set", args))
        assert ended.state == ("failed" if args else "completed")
        asked = core.session.session_id, ended.approval_id
        assert (await text_read(core, *asked)) == "x" * SIZE
        assert await core.app.gate.store.tampered_columns(core.live(ended)) == ()
    assert (home / "aileron.db").stat().st_size < SIZE / 2
    assert audit_problems(home) == []
    async with Core.open(home, start_server=unboxed) as core:
        kept = await text_read(core, *asked)
        count = kept.index("…")
        assert kept == "x" * count + f"… ({SIZE - count:,} more characters were not kept)"
        assert count > 200_000
    assert audit_problems(home) == []


def test_what_is_kept_whole_and_what_of_the_rest() -> None:
    """The small parts first, then as much as there is room for, with a word where something is left out."""
    assert is_kept_whole(["x" * 1024 * 1024])
    assert not is_kept_whole(["x" * 1024 * 512, "x" * 1024 * 513])
    assert is_kept_whole([["x"] * 16_000])
    assert not is_kept_whole([["x"] * 17_000])
    rows = [{"n": n, "b": None} for n in range(100_000)]
    parts: JsonObject = {"a": rows, "b": {"x": 1}, "c": "y" * 500_000}
    found: Any = cut(parts)
    assert [*found] == ["b", "a", "…"]
    assert (found["b"], found["…"]) == ({"x": 1}, "1 more were not kept")
    *kept, last, note = found["a"]
    assert kept == rows[: len(kept)]
    assert last == {"…": "2 more were not kept"}
    assert note == f"… ({100_000 - len(kept) - 1:,} more were not kept)"
    assert 1_000 < len(kept) < 4_096
    assert is_kept_whole([found])
