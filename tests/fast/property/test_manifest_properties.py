"""Any bytes are a manifest or a list of problems."""

from hypothesis import given
from hypothesis import strategies as st

from aileron_core.connectors.manifest import Manifest, parse_manifest
from aileron_core.errors import FileProblems

_TABLES = ["connector", "capabilities", "network", "credential", "oauth2", "spawn", "hosts"]
_MEMBERS = ["kind", "name", "version", "idempotency", "default", "format", "scopes", "programs"]
_KEYS = st.sampled_from([*_TABLES, *_MEMBERS, "x"])
_TEXTS = ['"a"', '"local://a/b"', '"1.0.0"', '"oauth2"', '"api_key"', '"{key}"']
_OTHERS = ["1", "1.5", "true", "[]", "[1]", '["a:1"]', "{}", "[{}]", "2020-01-01", "nan"]
_VALUES = st.sampled_from([*_TEXTS, *_OTHERS, '{a = {argv = ["x"]}}'])
_HEADERS = st.lists(_KEYS, min_size=1, max_size=3).map(lambda keys: f"[{'.'.join(keys)}]")
_LINES = st.one_of(_HEADERS, st.tuples(_KEYS, _VALUES).map(" = ".join))


def _read(data: bytes) -> Manifest | None:
    try:
        return parse_manifest(data, "m.toml")
    except FileProblems as error:
        problems = error.problems
    assert problems
    assert all(p.class_ in {"parse_error", "validation_error"} for p in problems)
    return None


@given(st.binary(max_size=200))
def test_any_bytes_end_as_manifest_or_problems(data: bytes) -> None:
    _read(data)


@given(st.lists(_LINES, max_size=12))
def test_any_arrangement_of_known_words_ends_as_manifest_or_problems(lines: list[str]) -> None:
    head = '[connector]\nname = "local://a/b"\nversion = "1.0.0"\n'
    manifest = _read((head + "\n".join(lines)).encode())
    if manifest is not None:
        assert manifest.name == "local://a/b"
        assert all(host == host.lower() and ":" in host for host in manifest.hosts)
