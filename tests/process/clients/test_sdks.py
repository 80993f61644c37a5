"""The official SDKs, unmodified, under `aileron launch --augment`: approved, denied, pending, mixed."""

import pytest

from tests.process.clients.cases import CASES, go
from tests.support.variants import ALL

MANNERS = [
    f"{program}.py {manner}"
    for program, manners in {
        "sdk_chat": "whole streamed chunks async-streamed",
        "sdk_responses": "whole streamed chained async-streamed",
        "sdk_messages": "whole streamed runner async-streamed",
    }.items()
    for manner in manners.split()
]
PAIRS = [
    (words, case)
    for number, words in enumerate(MANNERS)
    for place, case in enumerate(CASES)
    if ALL or (number + place) % len(CASES) == 0
]
"""All with `make test-all`; without it each manner once, and so each case with each wire format."""


@pytest.mark.parametrize(("words", "case"), PAIRS)
def test_a_program_on_an_sdk(words: str, case: str, request: pytest.FixtureRequest) -> None:
    """It knows nothing of Aileron, and never sees one of its tools."""
    go(case, request, *words.split())
