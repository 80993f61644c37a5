"""What shows each carried row of the agents' tables: starts of the real agents, and what a request then has.

A start has several rows where its requests can show them all. What a row's words are is the setting's own
value, or an address that only this setting makes; without it the request would not have them.
"""

from collections.abc import Mapping, Sequence

from tests.agents.route_cases.claude import CLAUDE
from tests.agents.route_cases.codex import CODEX
from tests.agents.route_cases.gemini import GEMINI
from tests.agents.route_cases.goose import GOOSE
from tests.agents.route_cases.opencode import OPENCODE
from tests.agents.route_cases.pi import PI
from tests.agents.routed import Case

CARRIED: Mapping[str, Sequence[Case]] = {
    "codex": CODEX,
    "opencode": OPENCODE,
    "claude": CLAUDE,
    "goose": GOOSE,
    "pi": PI,
    "gemini": GEMINI,
}
