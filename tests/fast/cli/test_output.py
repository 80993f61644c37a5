"""What commands print and how they end."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aileron_core import errors
from aileron_tui.cli.action_run import _report
from aileron_tui.cli.check import check_actions
from aileron_tui.cli.output import EXIT, CliError, CommandContext, exit_code, safe_json
from tests.support.any_values import json_values

CODES = (
    (69, [errors.ConsoleUnavailable]),
    (77, [errors.Unauthorized, errors.Forbidden, errors.CapabilityDenied]),
    (2, [errors.InvalidArguments, errors.InvalidRequest]),
    (70, [errors.InternalError, errors.IllegalTransition]),
    (1, [errors.HomeError, errors.Conflict, errors.StorageUnavailable]),
)
RAISED = [(kind("x"), code) for code, kinds in CODES for kind in kinds]
REFUSED = (errors.Forbidden("x"), errors.CapabilityDenied("x"))
OURS = {errors.InvalidArguments("x"): 2, errors.InternalError("x"): 70}
OTHERS = {errors.NotFound("x"): 1, errors.ExternalApiError("x", status=500): 1}
ANSWERED = dict.fromkeys(REFUSED, 77) | OURS | OTHERS
SENT = [(errors.ConsoleErrorResponse(each.to_failure()), code) for each, code in ANSWERED.items()]
WORDS = st.sampled_from(
    ["+++\n", "[[inputs]]\n", "name = ", '"\\u001b[2J"', "\n", "[", "]", "é\u202e", "x = 1\n"]
)
DATA = st.one_of(st.binary(max_size=50), st.lists(WORDS).map("".join).map(str.encode))


@given(json_values())
@example({"\x7f": ["\x1b[2J", "\x9b", "\u202e", "\ud800", "\x7f"]})
def test_json_is_printable_ascii_and_says_what_was_meant(value: Any) -> None:
    printed = safe_json(value)
    assert printed.isascii()
    assert printed.isprintable()
    assert json.loads(printed) == value


@pytest.mark.parametrize(("error", "code"), [*RAISED, *SENT, (CliError(EXIT.PENDING, "x"), 75)])
def test_every_error_has_its_exit_code(error: errors.AileronError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("code", "named", "retriable"),
    [
        (EXIT.USAGE, "invalid_request", False),
        (EXIT.FAILED, "unavailable", True),
        (EXIT.OUR_BUG, "internal_error", False),
    ],
)
def test_a_command_ending_by_itself_says_its_class(code: int, named: str, retriable: bool) -> None:
    """A program that reads the one error body learns whether another try may help."""
    failure = CliError(code, "x").to_failure()
    assert (failure.class_, failure.retriable) == (named, retriable)


@pytest.mark.parametrize("status", ["denied", "expired", "withdrawn"])
def test_a_run_half_way_says_what_finished(status: str, capsys: pytest.CaptureFixture[str]) -> None:
    context = CommandContext(home=Path("/"), json=False, color=False)
    body = {"status": status, "completed_steps": ["find", "a\x1b[2J"]}
    assert _report(context, body) == 76
    said = capsys.readouterr().out
    assert "Steps completed: find, a" in said
    assert "\x1b" not in said
    assert _report(context, {"status": status}) == 76
    assert "completed" not in capsys.readouterr().out


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=DATA, portable=st.booleans())
def test_any_file_is_answered_in_both_forms(
    data: bytes, portable: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
