"""What may come as an MCP message: right, nearly right, and anything else."""

import json

from hypothesis import strategies as st

from tests.support.any_values import FINITE, json_values

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
JSON = json_values(TEXT)

IDS = st.one_of(
    st.integers(-5, 5), st.integers(), TEXT, st.none(), st.booleans(), FINITE, st.just([1]),
    st.text(st.characters(categories=["Cs"]), max_size=2),
)  # fmt: skip
METHODS = st.sampled_from(
    ["initialize", "notifications/initialized", "notifications/cancelled",
     "notifications/progress", "ping", "server/discover", "subscriptions/listen", "tools/call",
     "tools/list", "", "\r\nX: 1"]
)  # fmt: skip
TOOLS = st.sampled_from(
    ["read_inbox", "get_draft", "list_drafts", "send_draft", "check_action_status",
     "withdraw_action"]
)  # fmt: skip
VERSIONS = st.sampled_from(["2025-03-26", "2025-11-25", "2026-07-28", "2027-01-01", "", "é\n", 5])
NEW = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "a-test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PARAMS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "_meta": st.just(NEW) | JSON | st.fixed_dictionaries(
            {},
            optional={
                "io.modelcontextprotocol/protocolVersion": VERSIONS | JSON,
                "io.modelcontextprotocol/clientInfo": JSON,
                "io.modelcontextprotocol/clientCapabilities": st.just({}) | JSON,
                "progressToken": IDS,
            },
        ),
        "arguments": st.just({"text": "x"}) | JSON,
        "capabilities": st.just({}) | JSON,
        "clientInfo": st.just({"name": "x", "version": "1"}) | JSON,
        "name": TOOLS | JSON,
        "protocolVersion": VERSIONS | JSON,
        "requestId": IDS,
    },
)  # fmt: skip
MESSAGES = st.fixed_dictionaries(
    {},
    optional={"jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2, None]), "id": IDS,
              "method": METHODS | METHODS | JSON, "params": PARAMS, "result": JSON, "error": JSON},
)  # fmt: skip
# Whole requests, so that what is inside them is looked at too.
REQUESTS = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers(1, 9), "method": METHODS, "params": PARAMS}
)


def deep(levels: int) -> bytes:
    return b'[{"id":1,"method":"ping","params":' + b"[" * levels + b"]" * levels + b"}]"


FRAMES = st.one_of(
    st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"")),
    JSON.map(lambda value: json.dumps(value).encode()),
    MESSAGES.map(lambda value: json.dumps(value).encode()),
    REQUESTS.map(lambda value: json.dumps(value).encode()),
    st.lists(MESSAGES, max_size=3).map(lambda value: json.dumps(value).encode()),
    st.tuples(MESSAGES, st.integers(0, 200)).map(lambda p: json.dumps(p[0]).encode()[: p[1]]),
    MESSAGES.map(lambda value: json.dumps(value).encode("utf-16")),
    st.integers(1, 3_000).map(deep),
)  # fmt: skip
