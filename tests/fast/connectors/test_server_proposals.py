"""Manifests: the closed schema and every problem at once; what is proposed of an MCP server, and of which package."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.actions.model import Preview, is_semver
from aileron_core.connectors.manifest import Manifest, parse_manifest
from aileron_core.connectors.manifest_rules import manifest_problems
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.connectors.servers import trees
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.packages import PackageRequest, package_request
from aileron_core.connectors.servers.propose import manifest_bytes, propose_previews, propose_words
from aileron_core.connectors.servers.table import VERSION, WORDS, ServerTable, Word, shown_preview
from aileron_core.connectors.store import staging
from aileron_core.errors import FileProblems, HashMismatch, InvalidRequest, NotFound, Problem


def tool(line: str) -> ToolDefinition:
    """Return the tool that *line* describes: `read get_issue(repo, number:integer, page?)`."""
    head, _, inner = line.partition("(")
    *claims, name = head.split()
    stated = [each.strip() for each in inner.rstrip(")").split(",") if each.strip()]
    pairs = (each.partition(":") for each in stated)
    types = {key.rstrip("?"): {"type": type_ or "string"} for key, _, type_ in pairs}
    required = [each.partition(":")[0] for each in stated if "?" not in each]
    schema = {"type": "object", "properties": types, "required": required}
    hints = {"readOnlyHint": True} if claims else {}
    return ToolDefinition(name=name, input_schema=schema, annotations=hints)


def tools_of(text: str) -> list[ToolDefinition]:
    return [tool(line.strip()) for line in text.strip().splitlines()]


# Names and arguments as servers of issues, pages, clusters, databases and files have them.
ISSUES = """
read get_issue(owner, repo, issue_number:number)
read get_pull_request(owner, repo, pull_number:number)
read get_pull_request_files(owner, repo, pull_number:number)
read get_repository(owner, repo)
read get_file_contents(owner, repo, path)
read list_issues(owner, repo)
read search_issues(q)
update_issue(owner, repo, issue_number:number, title?)
add_issue_comment(owner, repo, issue_number:number, body)
merge_pull_request(owner, repo, pull_number:number)
create_pull_request_review(owner, repo, pull_number:number, body)
delete_repository_label(owner, repo, name)
fork_repository(owner, repo)
lock_issue(owner, repo, issue_number:string)
"""
PAGES = """
read API-retrieve-a-page(page_id)
read API-retrieve-page-markdown(page_id)
read API-get-user(user_id)
read API-get-self()
read API-list-templates(page_id)
API-patch-page(page_id)
API-update-page-markdown(page_id, type)
API-post-page(parent:object)
API-copy-page(page_id)
read API-get-users()
read API-retrieve-a-comment(block_id)
API-create-a-comment(rich_text:array)
API-post-search()
"""
CLUSTER = """
read kubectl_get(resourceType, name?, namespace?)
kubectl_patch(resourceType, name, namespace?, patch?:object)
kubectl_scale(name, replicas:number)
ping()
"""
DATABASE = """
read read_query(query)
write_query(query)
read table(name)
drop_table(name)
"""
OF_ISSUE = dict.fromkeys(("update_issue", "add_issue_comment"), "get_issue")
OF_PAGE = {"API-patch-page": "API-retrieve-a-page"}
PREVIEWS: list[tuple[str, Mapping[str, str]]] = [
    (ISSUES, OF_ISSUE | {"merge_pull_request": "get_pull_request"}),
    (PAGES, OF_PAGE | {"API-update-page-markdown": "API-retrieve-page-markdown"}),
    (CLUSTER, {"kubectl_patch": "kubectl_get"}),
    (DATABASE, {}),
]


@pytest.mark.parametrize(("listed", "expected"), PREVIEWS)
def test_a_preview_is_proposed_only_where_a_read_shows_the_very_thing(
    listed: str, expected: Mapping[str, str]
) -> None:
    """What is made anew, a container of the thing, another type and a read of more are no such thing."""
    known = tools_of(listed)
    proposed = propose_previews(known, propose_words("x", known))
    assert {name: preview.op for name, preview in proposed.items()} == expected


def test_a_proposed_preview_passes_on_what_both_take() -> None:
    """Without its optional name, the read would show every resource."""
    known = tools_of(CLUSTER)
    (preview,) = propose_previews(known, propose_words("k8s", known)).values()
    both = ("resourceType", "name", "namespace")
    assert preview.args == {name: f"${{args.{name}}}" for name in both}


def test_what_a_call_adds_to_the_thing_read_is_no_change_of_it() -> None:
    """An issue has a `body` too, which a comment does not replace."""
    known = tools_of(ISSUES)
    proposed = propose_previews(known, propose_words("x", known))
    assert proposed["update_issue"].render == ()  # what it changes is shown as before and after
    alone = shown_preview(known[0], proposed["add_issue_comment"])
    assert [label for label, _ in alone.render] == ["Answer", "Answer as data"]
    assert (alone.changes, alone.omits_missing) == ((), True)


def test_a_read_whose_word_is_ask_is_no_preview() -> None:
    """Aileron asks it unasked: only what a person lets run without a question is."""
    known = tools_of(ISSUES)
    assert propose_previews(known, {each.name: "ask" for each in known}) == {}
    words: dict[str, Word] = {each.name: "ask" for each in known}
    found = propose_previews(known, {**words, "get_issue": "look"})
    assert found.keys() == {"update_issue", "add_issue_comment"}


def test_a_tool_runs_unasked_only_where_its_author_says_that_it_reads() -> None:
    """A name is no such claim. What agents could not tell apart from another tool is off."""
    known = [*map(tool, ("read list", "get_env", "read a.b", "a_b", "read action_status"))]
    off = dict.fromkeys(("a.b", "a_b", "action_status"), "off")
    assert propose_words("check", known) == {"list": "run", "get_env": "ask", **off}
    assert propose_words("x", known)["action_status"] == "run"


_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)
_NAME = _TEXT.filter(bool)
_FLOAT = st.floats(width=32, allow_nan=False, allow_infinity=False)
_LEAF = st.one_of(_TEXT, st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), _FLOAT)
_JSON = st.recursive(
    _LEAF,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAME, inner, max_size=3)),
    max_leaves=8,
)
_PAIRS = st.dictionaries(_NAME, _TEXT, max_size=2).map(lambda table: tuple(table.items()))
_PREVIEWS = st.builds(
    Preview,
    op=_NAME,
    args=st.dictionaries(_NAME, _JSON, max_size=3),
    render=_PAIRS,
    multiline=st.frozensets(_TEXT, max_size=2),
    gist=st.none() | _TEXT,
    formats=_PAIRS,
    changes=_PAIRS,
    reach=st.lists(_TEXT, max_size=2).map(tuple),
    read_back=st.none() | st.dictionaries(_NAME, _JSON, max_size=2),
)
_WORDS = st.lists(_TEXT, max_size=3)
_VARIABLE = st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True)
_TABLES = st.builds(
    ServerTable,
    run=_WORDS.map(lambda words: ("npx", *words)),
    program=_WORDS.map(lambda words: ("/usr/bin/node", *words)),
    files_read=st.sampled_from([(), ("/a b", '/"')]),
    files_write=st.sampled_from([(), ("/a/ü",)]),
    hosts=st.sampled_from([(), ("b.example:443", "a.example:443")]),
    env=st.dictionaries(_VARIABLE, _TEXT, max_size=2),
    tools=st.dictionaries(_NAME, st.sampled_from(WORDS), max_size=3),
    previews=st.dictionaries(_NAME, _PREVIEWS, max_size=2),
)


@given(_TABLES)
def test_any_table_is_read_back_from_its_manifest(table: ServerTable) -> None:
    """Names, arguments and words are a stranger's: no character of them ends a string or a key."""
    read = parse_manifest(manifest_bytes("fs", table), "manifest.toml")
    assert (read.name, read.version, read.server) == ("mcp://local/fs", VERSION, table)


def test_the_manifest_of_a_package_names_its_tree_and_secrets() -> None:
    table = ServerTable(
        run=("npx", "-y", "@x/y"),
        program=("/usr/bin/node", "{tree}/i.js", "${secret.KEY}"),
        package="npm:@x/y@1.2.3",
        tree="sha256:" + "0" * 64,
        hosts=("a.example:443",),
        secrets=("KEY",),
        tools={"a": "ask"},
    )
    assert parse_manifest(manifest_bytes("y", table), "m").server == table
    remote = ServerTable(
        url="https://a.example/mcp",
        credential=CredentialRequirement(kind="api_key", header="X-Key", format="{key}"),
        hosts=("a.example:443",),
    )
    assert parse_manifest(manifest_bytes("z", remote), "m").server == remote
    rehearsed = ServerTable(run=("a",), program=("/a",), files_write=("/b",), rehearse=True)
    assert parse_manifest(manifest_bytes("r", rehearsed), "m").server == rehearsed


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[server]\nurl = "http://a.example/mcp"\ntools = {}', "server.url"),
        ('[server]\nurl = "http://127.0.0.1:80/mcp"\ntools = {}', "server.url"),
        ('[server]\nurl = "https://me:key@a.example/mcp"\ntools = {}', "server.url"),
        ('[server]\nurl = "https://a.example"\nhosts = ["b.example:443"]\ntools = {}', "server.hosts"),
        ('[server]\nurl = "https://a.example"\ntools = {}\n[capabilities.credential]\nkind = "basic"', "capabilities.credential"),
        ('[server]\nprogram = ["/a"]\ntools = {}\n[capabilities.credential]\nkind = "api_key"', "capabilities.credential"),
    ],
)  # fmt: skip
def test_a_remote_server_is_one_https_url_and_at_most_a_key(text: str, key: str) -> None:
    head = '[connector]\nname = "mcp://local/a"\nversion = "1.0.0"\n'
    with pytest.raises(FileProblems) as found:
        parse_manifest((head + text).encode(), "m")
    assert [each.key for each in found.value.problems] == [key]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("npx -y @acme/mcp@^1.2 /data --x", PackageRequest(registry="npm", name="@acme/mcp", version="^1.2", args=("/data", "--x"))),
        ("/opt/node/bin/npx --package=mcp@latest go -y", PackageRequest(registry="npm", name="mcp", command="go", args=("-y",))),
        ("uvx Acme_MCP@1.0 -v", PackageRequest(registry="pypi", name="acme-mcp", version="==1.0", command="Acme_MCP", args=("-v",))),
        ("uv tool run --from mcp[cli]>=2,<3 mcp run", PackageRequest(registry="pypi", name="mcp", extras="[cli]", version=">=2,<3", command="mcp", args=("run",))),
        ("/usr/bin/node server.js", None),
        ("uv run server.py", None),
    ],
)  # fmt: skip
def test_a_command_names_its_package(line: str, wanted: PackageRequest | None) -> None:
    assert package_request(line.split()) == wanted


BAD_LINES = {
    "outside Aileron's box": ("docker run -i mcp/github", "/usr/bin/podman run x"),
    "npx -c:": ("npx -c evil",),
    "npx --registry:": ("npx --registry=https://evil.example mcp",),
    "uvx --with:": ("uvx --with other mcp",),
    "write a package of the registry": (
        *("npx github:acme/mcp", "npx -y ./mcp", "npx -y"),
        "uvx --from git+https://example.com/mcp mcp",
    ),
}


@pytest.mark.parametrize("why", BAD_LINES)
def test_what_is_not_understood_is_refused_by_name(why: str) -> None:
    for line in BAD_LINES[why]:
        with pytest.raises(InvalidRequest, match=why):
            package_request(line.split())


def _kept(home: Path, change: Callable[[Path], object] = str) -> str:
    with staging(trees.packages_root(home)) as folder:
        (folder / "lib" / "empty").mkdir(parents=True)
        (folder / "lib" / "index.js").write_text("serve()")
        (folder / "run").write_text("#!/bin/sh")
        (folder / "run").chmod(0o755)
        (folder / "bin").symlink_to("lib/index.js")
        change(folder)
        return trees.keep_tree(home, folder)


def _rewrite(folder: Path) -> None:
    """Change one byte, and put the time of the change back."""
    file = folder / "lib" / "index.js"
    times = file.stat()
    file.chmod(0o600)
    file.write_text("serveX)")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def _relink(folder: Path) -> None:
    (folder / "bin").unlink()
    (folder / "bin").symlink_to("run")


_CHANGES: dict[str, Callable[[Path], object]] = {
    "byte": _rewrite,
    "link": _relink,
    "added": lambda folder: (folder / "lib" / "new.js").touch(),
    "removed": lambda folder: (folder / "run").unlink(),
    "folder": lambda folder: (folder / "lib" / "empty").rmdir(),
    "executable": lambda folder: (folder / "lib" / "index.js").chmod(0o755),
}


def _read_again(folder: Path) -> str:
    raise AssertionError(folder)


@pytest.mark.parametrize("name", _CHANGES)
def test_a_package_that_changed_is_not_started(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its files were read before and believed by their times since."""
    monkeypatch.setattr(trees, "_SETTLED_SECONDS", -60)
    change = _CHANGES[name]
    tree = _kept(tmp_path)
    assert tree == _kept(tmp_path / "other") != _kept(tmp_path, change)
    folder = trees.verify_tree(tmp_path, tree)
    with monkeypatch.context() as unread:
        unread.setattr(trees, "tree_hash", _read_again)
        assert trees.verify_tree(tmp_path, tree) == folder
    assert not any(each.stat().st_mode & 0o222 for each in folder.rglob("*") if each.is_file())
    probe = tmp_path / "probe"
    probe.touch()
    while probe.stat().st_ctime_ns <= folder.stat().st_ctime_ns:  # the file system's clock ticks
        probe.touch()
    change(folder)
    with pytest.raises(HashMismatch, match="changed on disk"):
        trees.verify_tree(tmp_path, tree)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", ".."])
def test_a_package_with_a_link_that_leads_out_is_not_kept(tmp_path: Path, target: str) -> None:
    with pytest.raises(trees.BadTree, match="leads out of it"):
        _kept(tmp_path, lambda folder: (folder / "out").symlink_to(target))
    assert [*(tmp_path / "store" / "servers").glob("*/*")] == []


def test_a_package_that_no_server_names_is_removed(tmp_path: Path) -> None:
    tree, other = _kept(tmp_path), _kept(tmp_path, _rewrite)
    trees.collect(tmp_path, [other])
    trees.verify_tree(tmp_path, other)
    with pytest.raises(NotFound, match="aileron server update"):
        trees.verify_tree(tmp_path, tree)


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


def parsed_manifest(more: str = "") -> Manifest:
    return parse_manifest((HEAD + more).encode(), "m.toml")


def problems_of(text: str) -> dict[str, Problem]:
    with pytest.raises(FileProblems) as caught:
        parse_manifest(text.encode(), "m.toml")
    return {problem.key: problem for problem in caught.value.problems}


def test_the_smallest_manifest_asks_for_nothing() -> None:
    """No table means no host, no credential, no program."""
    expected = Manifest(name="local://a/b", version="1.0.0")
    assert parsed_manifest() == expected
    assert (expected.hosts, expected.credential_kind) == ((), None)


def test_hosts_are_lower_case_sorted_and_listed_once() -> None:
    """The list is one to compare with, whatever order its author liked."""
    listed = parsed_manifest(
        f'{NETWORK}hosts = ["B.example:443", "a.example:80", "b.example:443"]\n'
    )
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
    manifest = parsed_manifest(OAUTH2)
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
    assert parsed_manifest(f'{NETWORK}hosts = ["{entry}"]\n').hosts == (normal,)


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
