"""What commands print and how they end."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aileron_core import errors
from aileron_tui.cli.output import EXIT, CliError, exit_code, safe_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
@example({"\x7f": ["\x1b[2J", "\x9b", "\u202e", "\ud800", "\x7f"]})
def test_json_is_printable_ascii_and_says_what_was_meant(value: Any) -> None:
    """A terminal obeys nothing in it, and a program reads it back unchanged."""
    printed = safe_json(value)
    assert printed.isascii()
    assert printed.isprintable()
    assert json.loads(printed) == value


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConsoleUnavailable("x"), 69),
        (errors.Unauthorized("x"), 77),
        (errors.Forbidden("x"), 77),
        (errors.InvalidArguments("x"), 2),
        (errors.InvalidRequest("x"), 2),
        (errors.InternalError("x"), 70),
        (errors.IllegalTransition("x"), 70),
        (errors.HomeError("x"), 1),
        (errors.Conflict("x"), 1),
        (errors.StorageUnavailable("x"), 1),
        (errors.CapabilityDenied("x"), 77),
        (CliError(EXIT.PENDING, "x"), 75),
        (errors.ConsoleErrorResponse(errors.Forbidden("x").to_failure()), 77),
        (errors.ConsoleErrorResponse(errors.CapabilityDenied("x").to_failure()), 77),
        (errors.ConsoleErrorResponse(errors.InvalidArguments("x").to_failure()), 2),
        (errors.ConsoleErrorResponse(errors.InternalError("x").to_failure()), 70),
        (errors.ConsoleErrorResponse(errors.ExternalApiError("x", status=500).to_failure()), 1),
        (errors.ConsoleErrorResponse(errors.NotFound("x").to_failure()), 1),
    ],
)
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
def test_a_command_that_ends_by_itself_says_of_what_class_that_is(
    code: int, named: str, retriable: bool
) -> None:
    """A program that reads the one error body learns whether another try may help."""
    failure = CliError(code, "x").to_failure()
    assert (failure.class_, failure.retriable) == (named, retriable)
