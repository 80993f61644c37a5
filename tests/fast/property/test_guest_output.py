"""Whatever a guest prints, asks for or is answered: a value or a failure of a known class, nothing else."""

import json
import string
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from aileron_core.connectors.http.host_names import normalize_host, normalize_host_port
from aileron_core.connectors.wasm.envelope import read_envelope
from aileron_core.connectors.wasm.guest_result import guest_result
from aileron_core.connectors.wasm.invocation import GuestExit
from tests.fast.property.test_guest_slices import at_once
from tests.support.any_values import json_values
from tests.support.making import an_invocation

OUTSIDE = {"external_api_error", "network_error", "binding_failed"}
CLASSES = OUTSIDE | {"connector_runtime_error", "resource_limit_exceeded"}
LONG = st.text(min_size=64, max_size=200)
JSON = json_values(st.text() | LONG, st.integers() | st.floats())
ANSWERS = st.builds(
    lambda output, error, more: {**more, **({"error": error} if error else {}), "output": output},
    JSON,
    st.none() | JSON | st.fixed_dictionaries({"class": st.sampled_from([*CLASSES, 5]), "message": JSON}),
    st.dictionaries(st.text(max_size=5), JSON, max_size=2),
)  # fmt: skip
PRINTED = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(str.encode),
    ANSWERS.map(lambda value: json.dumps(value).encode()),
    st.tuples(ANSWERS, st.integers(0, 60)).map(lambda pair: json.dumps(pair[0]).encode()[: pair[1]]),
)  # fmt: skip
MEMBERS = st.sampled_from(["method", "url", "headers", "body", "credential", "x"])
ENVELOPES = st.dictionaries(MEMBERS, JSON)
SPACE = st.text(" \t\r\n", max_size=3)
KEYS = st.text(max_size=5) | st.sampled_from(["method", "url", "headers", "body"])
HOSTS = st.one_of(
    st.text(max_size=30),
    st.text(string.digits + "xXabcdef.", max_size=20),
    st.text(string.hexdigits + ":.[]%", max_size=30).map("[{}]".format),
    st.ip_addresses().map(lambda ip: f"[{ip}]" if ip.version == 6 else str(ip)),
)


@given(PRINTED, st.sampled_from(["returned", "exited"]), st.sampled_from([0, 1, 2, -1]), st.binary(max_size=50))  # fmt: skip
@example(b'{"output": "\\ud800"}', "returned", 0, b"")
@example(b'{"error": {"class": [], "message": {}}}', "exited", 1, b"\xff")
@example(b'{"error": ' + b'{"x":' * 400 + b"1" + b"}" * 401, "returned", 0, b"")
def test_any_output_is_a_value_or_a_failure(printed: bytes, how: Any, code: int, said: bytes) -> None:  # fmt: skip
    run = an_invocation()
    run.stdout += printed
    run.stderr += said
    result = guest_result(GuestExit(ending=how, code=code if how == "exited" else 0), run)
    if result.failure is None:
        json.dumps(result.output, ensure_ascii=False, allow_nan=False).encode()
        return
    assert result.output is None
    assert result.failure.class_ in CLASSES
    assert result.failure.message
    assert len(result.failure.message) < 3000


@given(st.one_of(st.binary(max_size=100), ENVELOPES.map(lambda value: json.dumps(value).encode())))
@example(b'{"url": "x", "body": "\\ud800"}')
@example(b'{"url": "x", "headers": {"a": null}}')
@example(b'{"url": ' + b"[" * 5000)
def test_any_bytes_are_a_request_or_a_value_error(data: bytes) -> None:
    try:
        envelope = read_envelope(data, at_once)
    except ValueError as error:
        words = str(error)
    else:
        assert envelope.url
        assert all(isinstance(value, str) for value in envelope.headers.values())
        return
    assert 0 < len(words) < 100


def finite(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


@given(st.lists(st.tuples(KEYS, JSON | st.text()), max_size=6), st.lists(SPACE, min_size=28, max_size=28))  # fmt: skip
def test_a_request_is_read_as_any_reader_of_json_reads_it(members: Any, spaces: Any) -> None:
    assume(all(finite(value) for _, value in members))
    space = iter(spaces)
    texts = [
        f"{next(space)}{json.dumps(key)}{next(space)}:{next(space)}{json.dumps(value)}{next(space)}"
        for key, value in [*members, ("url", "https://a.example/")]
    ]
    text = f"{{{','.join(texts)}}}"
    same = json.loads(text)
    try:
        envelope = read_envelope(text.encode(), at_once)
    except ValueError as error:
        refusal = str(error)
    else:
        assert envelope.url == same["url"]
        assert envelope.headers == (same.get("headers") or {})
        assert envelope.method == (same.get("method") or "GET").upper()
        return
    # What is wrong then is a member's type, never the form.
    assert any(refusal.startswith(f"the request's {key}") for key in same)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"url": "x", "z": [' + b"{}," * 200_000 + b"{}]}", "larger than"),
        (b'{"headers": {' + b",".join(b'"%d": ""' % n for n in range(50_000)) + b"}}", "larger than"),
        (b"{" + b",".join(b'"%d": 1' % n for n in range(100)) + b"}", "more than 64 members"),
        (b'{"url": "x"} {}', "not a JSON object"),
        (b'{"url": "x",}', "not a JSON object"),
        (b'["url"]', "not a JSON object"),
        (b"", "not a JSON object"),
    ],
    ids=["array", "headers", "members", "two objects", "comma", "no object", "nothing"],
)  # fmt: skip
def test_a_request_is_large_only_by_its_texts(data: bytes, words: str) -> None:
    """Half a gigabyte of empty objects is never built."""
    with pytest.raises(ValueError, match=words):
        read_envelope(data, at_once)
    large = read_envelope(b'{"url": "x", "body": "' + b"{}," * 1_000_000 + b'"}', at_once)
    assert large.body == b"{}," * 1_000_000


@given(HOSTS, st.integers(-5, 70_000))
@example("9" * 5000, 1)
@example("xn--", 1)
@example("xn--a\u00fc", 1)
@example("\u0660", 1)
@example("0x", 1)
def test_a_host_has_one_spelling_that_is_its_own(host: str, port: int) -> None:
    try:
        found = normalize_host(host)
        entry = normalize_host_port(f"{host}:{port}")
    except ValueError as error:
        words = str(error)
    else:
        assert entry == f"{found}:{port}" == normalize_host_port(entry)
        assert found == normalize_host(found)
        assert found.isascii()
        assert found == found.lower()
        return
    assert words
