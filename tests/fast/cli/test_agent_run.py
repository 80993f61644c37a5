"""What a person types at `aileron run`."""

import io
import sys

import pytest

from aileron_core.errors import InvalidRequest
from aileron_tui.cli.agent_run import read_line


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_line_that_is_not_utf8_is_an_error_of_that_line_alone(
    monkeypatch: pytest.MonkeyPatch, errors: str
) -> None:
    """In any locale: Python decodes what is typed by it. A conversation goes on after an `AileronError`."""
    typed = io.TextIOWrapper(io.BytesIO(b"caf\xff\n"), encoding="utf-8", errors=errors)
    monkeypatch.setattr(sys, "stdin", typed)
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        read_line("")
