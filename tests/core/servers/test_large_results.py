"""A large result reaches its agent whole, and the database keeps its beginning."""

from pathlib import Path
from typing import Any

import pytest

from aileron_core.canonical import Json, JsonObject
from aileron_core.errors import SERVER_RESULT
from aileron_core.runs.model import cut, is_kept_whole
from tests.support.core_harness import Core, audit_problems
from tests.support.mcp_servers import UnboxedServers, install, table

SIZE = 3_000_000
ANSWERS = f"""
def call(id, name, args):
    send(id=id, result=text("x" * {SIZE}, isError=name == "set" and bool(args)))
"""


async def result_of(core: Core, session_id: str, approval_id: str) -> Any:
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
        whole = await result_of(core, *asked)
        assert whole == "x" * SIZE
        live = core.live(ended)
        assert await core.app.gate.store.tampered_columns(live) == ()
    assert (home / "aileron.db").stat().st_size < SIZE / 2
    assert audit_problems(home) == []
    async with Core.open(home, start_server=unboxed) as core:
        kept = await result_of(core, *asked)
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
    parts: JsonObject = {
        "a": [{"n": n, "b": None} for n in range(100_000)],
        "b": {"x": 1},
        "c": "y" * 500_000,
    }
    found: Any = cut(parts)
    assert [*found] == ["b", "a", "…"]
    assert (found["b"], found["…"]) == ({"x": 1}, "1 more were not kept")
    *kept, last, note = found["a"]
    assert kept == parts["a"][: len(kept)]  # type: ignore[index]
    assert last == {"…": "2 more were not kept"}
    assert note == f"… ({100_000 - len(kept) - 1:,} more were not kept)"
    assert 1_000 < len(kept) < 4_096
    assert is_kept_whole([found])
