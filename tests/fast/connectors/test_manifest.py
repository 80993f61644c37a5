"""Reading manifests: the closed schema, names and versions, and every problem at once."""

import pytest

from aileron_core.actions.model import is_semver
from aileron_core.connectors.manifest import Manifest, parse_manifest
from aileron_core.connectors.manifest_rules import manifest_problems
from aileron_core.errors import FileProblems, Problem

HEAD = '[connector]\nname = "local://a/b"\nversion = "1.0.0"\n'


NETWORK = "[capabilities.network]\n"
CREDENTIAL = "[capabilities.credential]\n"
OAUTH2 = f"""{CREDENTIAL}kind = "oauth2"
[capabilities.credential.oauth2]
authorize_url = "https://a.example/"
token_url = "https://t.example/"
client_id = "c"
client_secret = "hush-hush"
scopes = ["s"]
"""


def parsed(more: str = "") -> Manifest:
    return parse_manifest((HEAD + more).encode(), "m.toml")


def problems_of(text: str) -> dict[str, Problem]:
    with pytest.raises(FileProblems) as caught:
        parse_manifest(text.encode(), "m.toml")
    return {problem.key: problem for problem in caught.value.problems}


def test_the_smallest_manifest_asks_for_nothing() -> None:
    """No table means no host, no credential, no program."""
    expected = Manifest(name="local://a/b", version="1.0.0")
    assert parsed() == expected
    assert (expected.hosts, expected.credential_kind) == ((), None)


def test_hosts_are_lower_case_sorted_and_listed_once() -> None:
    """The list is one to compare with, whatever order its author liked."""
    listed = parsed(f'{NETWORK}hosts = ["B.example:443", "a.example:80", "b.example:443"]\n')
    assert listed.hosts == ("a.example:80", "b.example:443")


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


NO_HOST = {
    "no port": ("example.com", "example.com:0", "example.com:65536", "example.com:https"),
    "more than a host": ("https://example.com:443", "user@example.com:443"),
    "more than one host": ("*.example.com:443", "10.0.0.0/8:443"),
    "no name": (":443", "exa mple.com:443", "example..com:443", "[::1:443"),
}


@pytest.mark.parametrize("kind", NO_HOST)
def test_a_host_is_one_name_and_one_port(kind: str) -> None:
    """Nothing that could mean more than one place is taken."""
    for entry in NO_HOST[kind]:
        found = problems_of(f'{HEAD}{NETWORK}hosts = ["{entry}"]\n')
        assert entry in found["capabilities.network.hosts[0]"].message


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (f'{CREDENTIAL}kind = "digest"\n', "capabilities.credential.kind"),
        (f'{CREDENTIAL}scope = "s"\n', "capabilities.credential.kind"),
        (f'{CREDENTIAL}kind = "oauth2"\n', "capabilities.credential.oauth2"),
        (f'{CREDENTIAL}kind = "api_key"\nheader = "X Y"\n', "capabilities.credential.header"),
        (f'{CREDENTIAL}kind = "api_key"\nformat = "{{key}}\\r\\nX"\n', "credential.format"),
        (OAUTH2.replace("https://a", "http://a"), "credential.oauth2.authorize_url"),
        ("[connector.idempotency]\n", "connector.idempotency.default"),
        ("[capabilities.runtime.wall_seconds]\nread = 301\n", "runtime.wall_seconds.read"),
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
    manifest = parsed(OAUTH2)
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
    assert parsed(f'{NETWORK}hosts = ["{entry}"]\n').hosts == (normal,)


NO_NAME = {
    "no scheme of a store": ("", "github:/a/b", "http://a/b", "GITHUB://a/b"),
    "no owner or path": ("github://a", "github:///b", "github://a/", "github://a//b"),
    "another path": ("github://a/../b", "github://a/b@1.0.0", "github://a/b?x"),
    "other letters": ("github://a/b c", "github://a/b+c", "github://a/\u202eb"),
    "too long": ("local://a/" + "b" * 300,),
}


@pytest.mark.parametrize("kind", NO_NAME)
def test_what_is_no_name_is_refused(kind: str) -> None:
    """Nothing but scheme, owner and path in plain letters is a name."""
    for text in NO_NAME[kind]:
        (problem,) = manifest_problems({"connector": {"name": text, "version": "1.0.0"}})
        assert problem.path == ("connector", "name"), text


def test_versions_are_strict() -> None:
    tails = ("1.0.0-a.1.b", "1.0.0+x", "1.0.0+20130313144700", "1.0.0-x-y-z.--")
    assert all(map(is_semver, ("0.0.0-dev", *tails)))
    loose = ("1.0", "01.0.0", "v1.0.0", "1.0.0-01", "1.0.0\n", f"{'9' * 253}.0.0", "١.0.0")
    assert not any(map(is_semver, loose))
