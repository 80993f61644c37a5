"""Reading manifests: the closed schema, names and versions, and every problem at once."""

from collections.abc import Iterator

import pytest

from aileron_core.actions.model import is_semver
from aileron_core.actions.problems import KeyProblem
from aileron_core.connectors.manifest import Manifest, parse_manifest
from aileron_core.connectors.manifest_rules import manifest_problems
from aileron_core.errors import FileProblems, Problem

HEAD = '[connector]\nname = "local://a/b"\nversion = "1.0.0"\n'


def problems_of(text: str) -> dict[str, Problem]:
    with pytest.raises(FileProblems) as caught:
        parse_manifest(text.encode(), "m.toml")
    return {problem.key: problem for problem in caught.value.problems}


def test_the_smallest_manifest_asks_for_nothing() -> None:
    """No table means no host, no credential, no program."""
    expected = Manifest(name="local://a/b", version="1.0.0")
    assert parse_manifest(HEAD.encode(), "m.toml") == expected
    assert expected.hosts == ()
    assert expected.credential_kind is None


def test_hosts_are_lower_case_sorted_and_listed_once() -> None:
    """The list is one to compare with, whatever order its author liked."""
    text = (
        HEAD
        + '[capabilities.network]\nhosts = ["B.example:443", "a.example:80", "b.example:443"]\n'
    )
    assert parse_manifest(text.encode(), "m").hosts == ("a.example:80", "b.example:443")


def test_every_problem_is_reported_with_its_line() -> None:
    """An author mends the file once, not once per problem."""
    found = problems_of(
        """x = 1
[connector]
name = "nonsense"
version = "v1"
[capabilities.network]
hosts = ["*.example:443"]
wild = true
[capabilities.credential]
kind = "api_key"
format = "no placeholder"
service = "s3"
"""
    )
    assert {key: (p.class_, p.line) for key, p in found.items()} == {
        "x": ("parse_error", 1),
        "capabilities.network.wild": ("parse_error", 7),
        "connector.name": ("validation_error", 3),
        "connector.version": ("validation_error", 4),
        "capabilities.network.hosts[0]": ("validation_error", 6),
        "capabilities.credential.format": ("validation_error", 10),
        "capabilities.credential.service": ("validation_error", 11),
    }


@pytest.mark.parametrize(
    "entry",
    [
        "example.com",
        "https://example.com:443",
        "*.example.com:443",
        "10.0.0.0/8:443",
        "example.com:0",
        "example.com:65536",
        "example.com:https",
        "exa mple.com:443",
        "user@example.com:443",
        "[::1:443",
        ":443",
        "example..com:443",
    ],
)
def test_a_host_is_one_name_and_one_port(entry: str) -> None:
    """Nothing that could mean more than one place is taken."""
    found = problems_of(HEAD + f'[capabilities.network]\nhosts = ["{entry}"]\n')
    assert entry in found["capabilities.network.hosts[0]"].message


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ('[capabilities.credential]\nkind = "digest"\n', "capabilities.credential.kind"),
        ('[capabilities.credential]\nscope = "s"\n', "capabilities.credential.kind"),
        ('[capabilities.credential]\nkind = "oauth2"\n', "capabilities.credential.oauth2"),
        (
            '[capabilities.credential]\nkind = "api_key"\nheader = "X Y"\n',
            "capabilities.credential.header",
        ),
        (
            '[capabilities.credential]\nkind = "api_key"\nformat = "{key}\\r\\nX: y"\n',
            "capabilities.credential.format",
        ),
        (
            (
                '[capabilities.credential]\nkind = "oauth2"\n[capabilities.credential.oauth2]\n'
                'authorize_url = "http://evil.example/"\ntoken_url = "https://t.example/"\n'
                'client_id = "c"\nscopes = ["s"]\n'
            ),
            "capabilities.credential.oauth2.authorize_url",
        ),
        ("[connector.idempotency]\n", "connector.idempotency.default"),
        (
            "[capabilities.runtime.wall_seconds]\nread = 301\n",
            "capabilities.runtime.wall_seconds.read",
        ),
        ("[provides]\nintents = [1]\n", "provides.intents[0]"),
        ('[provides.ops.a]\ndescription = " "\n', "provides.ops.a.description"),
        ("capabilities = 3\n", "capabilities"),
    ],
)
def test_each_rule_of_the_table_holds(body: str, key: str) -> None:
    text = body + HEAD if body.startswith("capabilities =") else HEAD + body
    assert any(key in found for found in problems_of(text))


def test_broken_toml_names_its_place() -> None:
    """The line and column of the first thing that is no TOML."""
    with pytest.raises(FileProblems) as caught:
        parse_manifest(b'[connector]\nname = "a\n', "m.toml")
    (problem,) = caught.value.problems
    assert (problem.class_, problem.line) == ("parse_error", 2)


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("data", [b"\xff\xfe", b"x = " + b"[" * 5000, b"x = 9" * 10, b"a=1\0"])
def test_bytes_that_are_no_manifest_are_a_problem_and_no_crash(data: bytes) -> None:
    """Hostile bytes end as a problem of the file."""
    with pytest.raises(FileProblems):
        parse_manifest(data, "m.toml")


def test_a_client_secret_is_not_in_what_a_manifest_prints() -> None:
    """A manifest ends up in tracebacks and logs; the secret in it does not."""
    text = (
        HEAD + '[capabilities.credential]\nkind = "oauth2"\n[capabilities.credential.oauth2]\n'
        'authorize_url = "https://a.example/"\ntoken_url = "https://t.example/"\n'
        'client_id = "c"\nclient_secret = "hush-hush"\nscopes = ["s"]\n'
    )
    manifest = parse_manifest(text.encode(), "m.toml")
    assert "hush-hush" not in repr(manifest)
    assert manifest.credential is not None
    assert manifest.credential.oauth2 is not None
    assert manifest.credential.oauth2.client_secret == "hush-hush"


@pytest.mark.parametrize(
    ("entry", "normal"),
    [
        ("API.Example.:443", "api.example:443"),
        ("bücher.example:443", "xn--bcher-kva.example:443"),
        ("[2A00:0::1]:0443", "[2a00::1]:443"),
        ("2130706433:80", "127.0.0.1:80"),
        ("10.1:80", "10.0.0.1:80"),
    ],
)
def test_a_listed_host_has_one_spelling(entry: str, normal: str) -> None:
    """What a person accepts is shown as what will be reached."""
    text = HEAD + f'[capabilities.network]\nhosts = ["{entry}"]\n'
    assert parse_manifest(text.encode(), "m").hosts == (normal,)


def name_problems(text: str) -> Iterator[KeyProblem]:
    return manifest_problems({"connector": {"name": text, "version": "1.0.0"}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "github:/a/b",
        "http://a/b",
        "GITHUB://a/b",
        "github://a",
        "github:///b",
        "github://a/",
        "github://a/../b",
        "github://a/b@1.0.0",
        "github://a/b?x",
        "github://a//b",
        "github://a/b c",
        "github://a/b+c",
        "github://a/\u202eb",
        "local://a/" + "b" * 300,
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    """Nothing but scheme, owner and path in plain letters is a name."""
    (problem,) = name_problems(text)
    assert problem.path == ("connector", "name")


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("0.0.0-dev", True),
        ("1.0.0-a.1.b", True),
        ("1.0.0+x", True),
        ("1.0", False),
        ("01.0.0", False),
        ("v1.0.0", False),
        ("1.0.0-01", False),
        ("1.0.0\n", False),
        (f"{'9' * 253}.0.0", False),
        ("١.0.0", False),
    ],
)
def test_versions_are_strict(text: str, good: bool) -> None:
    assert is_semver(text) is good
