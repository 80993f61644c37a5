"""What a guest printed becomes the op's result."""

import pytest

from tests.support.guests import PRINT, Guest, call, failed, filling, printing, wat


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("\n", {}),
        ('{"output": {"a": [1, "x", null, true]}}\n', {"a": [1, "x", None, True]}),
        ('{"output": null}', None),
        ('{"output": 1, "error": null}', 1),
    ],
)
def test_an_output_is_handed_on_exactly(guest: Guest, text: str, output: object) -> None:
    """Integers keep every digit; nothing printed is success with {}."""
    result = call(guest(printing(text)))
    assert (result.failure, result.output) == (None, output)


@pytest.mark.parametrize(
    ("class_", "kept"),
    [
        ("external_api_error", "external_api_error"),
        ("binding_failed", "binding_failed"),
        ("capability_denied", "connector_runtime_error"),
        ("internal_error", "connector_runtime_error"),
    ],
)
@pytest.mark.parametrize("code", [0, 1, -1])
def test_a_typed_error_keeps_only_classes_that_a_connector_can_know(
    guest: Guest, class_: str, kept: str, code: int
) -> None:
    """Also after a non-zero exit, and one above 125, which wasmtime calls a trap."""
    text = f'{{"error": {{"class": "{class_}", "message": "no such team"}}}}'
    failure = failed(call(guest(printing(text, then=f"(call $exit (i32.const {code}))"))))
    assert (failure.class_, failure.message) == (kept, "no such team")


@pytest.mark.parametrize("error_json", ["3", "{}", '{"class": 5, "message": ["x"]}', '"words"'])
def test_a_malformed_error_is_still_an_error(guest: Guest, error_json: str) -> None:
    result = call(guest(printing(f'{{"output": 1, "error": {error_json}}}')))
    assert result.output is None
    assert failed(result).class_ == "connector_runtime_error"
    assert failed(result).message


@pytest.mark.parametrize(
    "raw",
    [
        b"hello",
        b"{} {}",
        b'{"output": NaN}',
        b'{"output": 1e999}',
        b'{"output": "\\ud800"}',
        b'{"output": ' + b"9" * 5000 + b"}",
        b'{"output": {"a":',
        b'{"output": "\xff"}',
        b'{"output": "\xed\xa0\x80"}',
        b"\xff\xfe{\x00}\x00",
        b"\xef\xbb\xbf{}",
        b'{"output": 1}\x00',
        b'{"output": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}",
        b'{"error": {"message": "' + b"[" * 100 + b'"',
    ],
)
def test_bytes_that_are_no_json_of_ours_are_a_runtime_error(guest: Guest, raw: bytes) -> None:
    """Half a JSON, wrong UTF-8, a byte order mark, more than 200 levels: told, never guessed at."""
    failure = failed(call(guest(printing(raw))))
    assert failure.class_ == "connector_runtime_error"
    assert "not one JSON object" in failure.message


def test_an_output_of_two_hundred_levels_is_an_output(guest: Guest) -> None:
    """The bound is the executor's, which a stored output has to keep."""
    assert call(guest(printing('{"output": ' + "[" * 200 + "]" * 200 + "}"))).failure is None


@pytest.mark.parametrize("code", [0, 1, 255])
def test_a_guest_that_prints_nothing_is_judged_by_its_exit_code(guest: Guest, code: int) -> None:
    """Nothing and 0 is success with {}; nothing and another code is a failure that names it."""
    result = call(guest(wat(f"(call $exit (i32.const {code}))")))
    if code == 0:
        assert (result.failure, result.output) == (None, {})
    else:
        named = "a code above 125" if code == 255 else code
        assert failed(result).message == f"the connector exited with {named}"


def test_a_long_complaint_is_reported_by_its_beginning_and_its_end(guest: Guest) -> None:
    """Go says why it panics first, Rust last; what is left out between is counted."""
    said = "panic: first" + "." * 5000 + "last words"
    message = failed(call(guest(printing(said, fd=2, then="(call $exit (i32.const 3))")))).message
    assert message.startswith("the connector exited with 3; stderr: panic: first...")
    assert message.endswith("...last words")
    assert f"[... {len(said) - 512} bytes ...]" in message


@pytest.mark.parametrize("value", ["1,", '"k":1,', '"\\"",'], ids=["int", "key", "quote"])
def test_a_million_small_values_are_refused_before_parsing(guest: Guest, value: str) -> None:
    """Parsing 8 MiB of them stops every other thread for a second, and costs 40 times their size."""
    failure = failed(call(guest(filling("", value, 7_000_000, "", PRINT))))
    assert failure.class_ == "resource_limit_exceeded"
    assert failure.details["limit"] == "output_values"
