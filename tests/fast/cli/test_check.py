"""`aileron action check` on whatever lies in a file."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aileron_tui.cli.check import check_actions
from aileron_tui.cli.output import EXIT, CommandContext

WORDS = st.sampled_from(
    ["+++\n", "[[inputs]]\n", "name = ", '"\\u001b[2J"', "\n", "[", "]", "é\u202e", "x = 1\n"]
)
DATA = st.one_of(st.binary(max_size=50), st.lists(WORDS).map("".join).map(str.encode))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=DATA, portable=st.booleans())
def test_any_file_is_answered_in_both_forms(
    data: bytes, portable: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An exit code that agrees with `ok`, and nothing that a terminal obeys."""
    path = tmp_path / "any.md"
    path.write_bytes(data)
    codes: list[int] = []
    printed: list[str] = []
    for as_json in (True, False):
        context = CommandContext(home=tmp_path / "home", json=as_json, color=False)
        codes.append(check_actions(context, [str(path), str(tmp_path)], portable=portable))
        printed.append(capsys.readouterr().out)
    body = json.loads(printed[0])
    assert codes == [EXIT.DONE if body["ok"] else EXIT.FAILED] * 2
    assert body["files"] == 1
    assert body["ok"] is not any(each["severity"] == "error" for each in body["problems"])
    lines = printed[1].splitlines()
    assert len(lines) == len(body["problems"]) + 1
    assert all(line.isprintable() for line in lines)
