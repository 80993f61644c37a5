"""What a guest printed becomes the op's result."""

import pytest

from tests.core.connectors.guests import Guest, call, escaped, printing, printing_bytes, wat


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", {}),
        ("\n", {}),
        ("{}", {}),
        ('{"output": {"a": [1, "x", null, true]}}\n', {"a": [1, "x", None, True]}),
        ('{"output": null}', None),
        ('{"output": 12345678901234567890123}', 12345678901234567890123),
        ('{"output": {"n": 9007199254740993}}', {"n": 9007199254740993}),
        ('{"output": "\\ud83d\\ude00"}', "😀"),
        ('{"output": 1, "error": null}', 1),
    ],
)
def test_an_output_is_handed_on_exactly(guest: Guest, text: str, output: object) -> None:
    """Integers keep every digit; nothing printed is success with {}."""
    result = call(guest(printing(text)))
    assert (result.failure, result.output) == (None, output)


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "[1]",
        "{} {}",
        '{"output": NaN}',
        '{"output": 1e999}',
        '{"output": "\\ud800"}',
        '{"output": ' + "[" * 20_000,
        '{"output": ' + "9" * 5000 + "}",
    ],
)
def test_what_has_no_exact_json_form_is_a_runtime_error(guest: Guest, text: str) -> None:
    """Never a guess at what was meant, and never a crash of ours."""
    result = call(guest(printing(text)))
    assert result.output is None
    assert result.failure is not None
    assert result.failure.class_ == "connector_runtime_error"
    assert "not one JSON object" in result.failure.message


@pytest.mark.parametrize(
    ("class_", "kept"),
    [
        ("connector_runtime_error", "connector_runtime_error"),
        ("external_api_error", "external_api_error"),
        ("network_error", "network_error"),
        ("binding_failed", "binding_failed"),
        ("capability_denied", "connector_runtime_error"),
        ("approval_denied", "connector_runtime_error"),
        ("internal_error", "connector_runtime_error"),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_a_typed_error_keeps_only_classes_that_a_connector_can_know(
    guest: Guest, class_: str, kept: str, code: int
) -> None:
    """Also after a non-zero exit, where the typed error stands on stdout."""
    text = f'{{"error": {{"class": "{class_}", "message": "no such team"}}}}'
    result = call(guest(printing(text, then=f"(call $exit (i32.const {code}))")))
    assert result.failure is not None
    assert (result.failure.class_, result.failure.message) == (kept, "no such team")


@pytest.mark.parametrize("error_json", ["3", "{}", '{"class": 5, "message": ["x"]}', '"words"'])
def test_a_malformed_error_is_still_an_error(guest: Guest, error_json: str) -> None:
    """Whatever stands under "error", it is not success."""
    result = call(guest(printing(f'{{"output": 1, "error": {error_json}}}')))
    assert result.output is None
    assert result.failure is not None
    assert result.failure.class_ == "connector_runtime_error"
    assert result.failure.message


@pytest.mark.parametrize(
    "raw",
    [
        b'{"output": {"a":',
        b'{"output": "\xff"}',
        b'{"output": "\xed\xa0\x80"}',
        b"\xff\xfe{\x00}\x00",
        b"\xef\xbb\xbf{}",
        b'{"output": 1}\x00',
        b"\x00" * 100,
        b'{"output": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"output": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}",
        b'{"error": {"message": "' + b"[" * 100 + b'"',
    ],
)
def test_bytes_that_are_no_json_of_ours_are_a_runtime_error(guest: Guest, raw: bytes) -> None:
    """Half a JSON, wrong UTF-8, a byte order mark, more than 200 levels: told, never guessed at."""
    result = call(guest(printing_bytes(raw)))
    assert result.failure is not None
    assert result.failure.class_ == "connector_runtime_error"
    assert "not one JSON object" in result.failure.message


def test_an_output_of_two_hundred_levels_is_an_output(guest: Guest) -> None:
    """The bound is the executor's, which a stored output has to keep."""
    assert call(guest(printing('{"output": ' + "[" * 200 + "]" * 200 + "}"))).failure is None


@pytest.mark.parametrize("code", [0, 1, 2, 255])
def test_a_guest_that_prints_nothing_is_judged_by_its_exit_code(guest: Guest, code: int) -> None:
    """Nothing and 0 is success with {}; nothing and another code is a failure that names it."""
    result = call(guest(wat(f"(call $exit (i32.const {code}))")))
    if code == 0:
        assert (result.failure, result.output) == (None, {})
    else:
        assert result.failure is not None
        named = "a code above 125" if code == 255 else code
        assert result.failure.message == f"the connector exited with {named}"


def test_a_typed_error_is_kept_whatever_the_exit_code(guest: Guest) -> None:
    """wasmtime calls a code above 125 a trap; what the connector printed still counts."""
    text = '{"error": {"class": "external_api_error", "message": "no"}}'
    result = call(guest(printing(text, then="(call $exit (i32.const -1))")))
    assert result.failure is not None
    assert (result.failure.class_, result.failure.message) == ("external_api_error", "no")


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63), 12345678901234567890, 10**40])
def test_integers_keep_every_digit_on_their_way_in_and_out(
    guest: Guest, echo: str, number: int
) -> None:
    """Connectors may go through float64; Aileron never does."""
    result = call(guest(echo), op="x", args={"n": number, "deep": [{"n": -number}]})
    assert result.failure is None
    assert result.output == {"op": "x", "args": {"n": number, "deep": [{"n": -number}]}}


def test_an_endless_message_is_cut(guest: Guest) -> None:
    """A connector's message is bounded like anything else it says."""
    result = call(guest(printing('{"error": {"message": "' + "x" * 50_000 + '"}}')))
    assert result.failure is not None
    assert len(result.failure.message) == 2000


def test_a_long_complaint_is_reported_by_its_beginning_and_its_end(guest: Guest) -> None:
    """Go says why it panics first, Rust last; what is left out between is counted."""
    said = "panic: first" + "." * 5000 + "last words"
    result = call(guest(printing(said, fd=2, then="(call $exit (i32.const 3))")))
    assert result.failure is not None
    message = result.failure.message
    assert message.startswith("the connector exited with 3; stderr: panic: first...")
    assert message.endswith("...last words")
    assert f"[... {len(said) - 512} bytes ...]" in message


@pytest.mark.parametrize(
    "value", ["1,", "[],", "{},", '"",', '"k":1,', '"\\"",'], ids=["int", "list", "dict", "text", "key", "quote"]
)  # fmt: skip
def test_a_million_small_values_are_refused_before_they_are_parsed(
    guest: Guest, value: str
) -> None:
    """Parsing 8 MiB of them stops every other thread for a second, and costs 40 times their size."""
    size, unit = 7_000_000, len(value)
    body = f"""(local $at i32) (local.set $at (i32.const 65536))
      (loop $fill
        (memory.copy (local.get $at) (i32.const 1024) (i32.const {unit}))
        (local.set $at (i32.add (local.get $at) (i32.const {unit})))
        (br_if $fill (i32.lt_u (local.get $at) (i32.const {65536 + size}))))
      (call $print (i32.const 1) (i32.const 65536) (i32.const {size}))"""
    result = call(guest(wat(body, data=escaped(value), pages=120)))
    assert result.failure is not None
    assert result.failure.class_ == "resource_limit_exceeded"
    assert result.failure.details["limit"] == "output_values"


@pytest.mark.parametrize("inside", ["a,b:[{", '\\"', "x"])
def test_a_large_text_is_one_value_whatever_stands_in_it(guest: Guest, inside: str) -> None:
    """A table or a program as text holds a million commas and brackets."""
    begin, end = '{"output": "', '"}'
    times = 6_000_000 // len(inside)
    body = f"""(local $at i32) (local.set $at (i32.const 65548))
      (memory.copy (i32.const 65536) (i32.const 1024) (i32.const 12))
      (loop $fill
        (memory.copy (local.get $at) (i32.const 1036) (i32.const {len(inside)}))
        (local.set $at (i32.add (local.get $at) (i32.const {len(inside)})))
        (br_if $fill (i32.lt_u (local.get $at) (i32.const {65548 + times * len(inside)}))))
      (memory.copy (local.get $at) (i32.const {1036 + len(inside)}) (i32.const 2))
      (call $print (i32.const 1) (i32.const 65536) (i32.const {14 + times * len(inside)}))"""
    result = call(guest(wat(body, data=escaped(begin + inside + end), pages=120)))
    assert result.failure is None, result.failure
    assert result.output == inside.replace('\\"', '"') * times
