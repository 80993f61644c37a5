"""What a changed file allows more than the accepted one, the worst first; which records count, and whose name resembles another."""

import json
import sqlite3
from pathlib import Path

import pytest

from aileron_core.actions.load import load_action
from aileron_core.canonical import sha256_hex
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.store import InstalledConnector
from aileron_core.console_port.file_views import AcceptanceChangeView
from aileron_core.library.acceptance import AcceptanceRecord, load_records, load_withdrawn
from aileron_core.library.comparison import compare_actions, compare_connectors
from aileron_core.library.publishers import publisher_view
from aileron_core.library.removal import find_removed
from aileron_core.library.settings_comparison import compare_policies, compare_settings

ACTION = """+++
name = "send"
version = "1.0.0"
source = "local://me/mail/send@1.0.0"
[[requires.connectors]]
name = "local://me/mail"
version = "1.0.0"
hash = "sha256:%s"
capabilities = ["get", "send"]
[match]
intent = "send a mail"
[[inputs]]
name = "id"
type = "string"
description = "which one"
[[execute]]
id = "go"
connector = "local://me/mail"
op = "send"
idempotent = false
inputs = { id = "${args.id}", folder = "outbox" }
[approval]
required = true
effect = "send"
[approval.preview]
op = "get"
args = { id = "${args.id}" }
[approval.preview.render]
To = "to"
Bcc = "bcc"
[limits]
wall_seconds = 30
+++
# Send a mail
""" % ("0" * 64)

MANIFEST = """[connector]
name = "local://me/mail"
version = "1.0.0"
[capabilities.network]
hosts = ["api.example.com:443"]
[capabilities.runtime]
imports = ["http_request"]
"""
OAUTH = """[capabilities.credential]
kind = "oauth2"
[capabilities.credential.oauth2]
authorize_url = "https://a.example/auth"
token_url = "https://a.example/token"
client_id = "me"
client_secret = "hush-1"
scopes = ["read"]
"""


def compared_actions(
    old: str, new: str, *, hosts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
) -> tuple[AcceptanceChangeView, ...]:
    first, second = (load_action(each.encode(), "send.md") for each in (old, new))
    return compare_actions(first, second, old_hosts=hosts[0], new_hosts=hosts[1])


def wider(old: str, new: str) -> list[tuple[str, str]]:
    """Return kind, and what it is about, of all that *new* allows more."""
    found = [each for each in compared_actions(old, new) if each.direction == "wider"]
    return [(each.kind, each.name or f"{each.before}>{each.after}") for each in found]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("required = true", "required = false", ("asks_no_more", ">")),
        ('["get", "send"]', '["get", "send", "wipe"]', ("ops", ">local://me/mail.wipe")),
        ('effect = "send"', 'effect = "read"', ("effect", "send>read")),
        ('effect = "send"', 'effect = "delete"', ("effect", "send>delete")),
        ('effect = "send"\n', "", ("effect", "send>")),
        ('op = "get"', 'op = "send"', ("preview_op", "get>send")),
        ('{ id = "${args.id}" }\n[approval.preview.render]',
         '{ id = "7" }\n[approval.preview.render]', None),
        ('op = "get"', 'op = "get"\nreach = ["To"]', ("reach", ">To")),
        ('Bcc = "bcc"\n', "", ("shown_fields", "Bcc")),
        ('To = "to"', 'To = "from"', ("shown_from", "To")),
        ("idempotent = false", "idempotent = true", ("idempotent", "go")),
        ('description = "which one"', 'description = "which one"\nrequired = false',
         ("argument_optional", "id")),
        ('type = "string"', 'type = "integer"', ("argument_type", "id")),
        ("wall_seconds = 30", "wall_seconds = 300", ("wall_seconds", "30>300")),
        ("[limits]", "[limits]\nmemory_mib = 1024", ("memory_mib", "64>1024")),
    ],
)  # fmt: skip
def test_each_widening_is_named_and_its_reverse_is_none(
    old: str, new: str, expected: tuple[str, str] | None
) -> None:
    """A key that allows more is in the list of what widens; taking it back is not (an effect is either way)."""
    changed = ACTION.replace(old, new, 1)
    assert changed != ACTION
    found = wider(ACTION, changed)
    if expected is None:
        assert [kind for kind, _ in found] == ["preview_args"]
        return
    assert found == [expected]
    if expected[0] not in ("effect", "preview_op", "shown_from", "argument_type"):
        assert wider(changed, ACTION) == []
        assert compared_actions(changed, ACTION) != ()


def test_what_is_not_there_in_one_of_both_is_compared_too() -> None:
    """No grants any more, and no preview: then a person asks blindly."""
    asks = ACTION.replace("required = true", "required = true\ngrants = false")
    start, end = ACTION.index("[approval.preview]"), ACTION.index("[limits]")
    blind = ACTION[:start] + ACTION[end:]
    for old, new, said in ((asks, ACTION, ("no_grants", ">")), (ACTION, blind, ("preview", ">"))):
        assert (wider(old, new), wider(new, old)) == ([said], [])


def test_the_most_dangerous_comes_first_and_what_narrows_last() -> None:
    changed = (
        ACTION.replace("required = true", "required = false")
        .replace('capabilities = ["get", "send"]', 'capabilities = ["get", "send", "wipe"]')
        .replace('Bcc = "bcc"\n', "")
        .replace('folder = "outbox"', 'folder = "elsewhere"')
        .replace("wall_seconds = 30", "wall_seconds = 5")
    )
    found = compared_actions(ACTION, changed, hosts=(("a.example:443",), ("evil.example:443",)))
    assert [(each.direction, each.kind) for each in found] == [
        ("wider", "asks_no_more"), ("wider", "ops"), ("wider", "hosts"), ("wider", "shown_fields"),
        ("other", "step_inputs"), ("narrower", "hosts"), ("narrower", "wall_seconds"),
    ]  # fmt: skip
    (sent,) = [each for each in found if each.kind == "step_inputs"]
    assert (sent.name, sent.before, sent.after) == ("go.folder", "outbox", "elsewhere")


def test_two_inputs_of_steps_that_read_alike_hide_nothing_of_each_other() -> None:
    """Step `a` with `b.c`, and step `a.b` with `c`: a change of the first was not named."""
    step = '[[execute]]\nid = "%s"\nconnector = "local://me/mail"\nop = "send"\ninputs = { "%s" = "me" }\n'
    both = f"{step % ('a', 'b.c')}{step % ('a.b', 'c')}"
    old = ACTION.replace("[approval]\n", f"{both}[approval]\n")
    new = old.replace('"b.c" = "me"', '"b.c" = "evil"')
    assert [(each.before, each.after) for each in compared_actions(old, new)] == [("me", "evil")]


def test_what_is_asked_after_the_run_is_compared_too() -> None:
    """It is a request as those before the run are, with arguments of its own."""
    old = ACTION.replace('effect = "send"', 'effect = "change"')
    render = "[approval.preview.render]"
    new = old.replace(render, 'read_back = { id = "${go.id}" }\n' + render)
    assert wider(old, new) == wider(new, old) == [("preview_args", "read_back")]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("# Send a mail", "# Read a mail", "text"),
        ('intent = "send a mail"', 'intent = "read a mail"', "text"),
        ('version = "1.0.0"\nsource', 'version = "1.0.1"\nsource', "version"),
        ("0" * 64, "1" * 64, "connector_bytes"),
        ('id = "go"', 'id = "run"', "steps"),
        ('description = "which one"', 'description = "which one"\nformat = "html"', "text"),
        ("[limits]", '[approval.preview.formats]\nTo = "html"\n[limits]', "text"),
    ],
)
def test_what_neither_widens_nor_narrows_is_named_too(old: str, new: str, kind: str) -> None:
    found = compared_actions(ACTION, ACTION.replace(old, new, 1))
    assert [(each.direction, each.kind) for each in found] == [("other", kind)]


def manifests(
    old: str, new: str, modules: tuple[bytes, bytes] = (b"m", b"m")
) -> list[tuple[str, ...]]:
    first, second = (
        InstalledConnector.of(parse_manifest(text, "m"), "sha256:0", module, text, "m")
        for text, module in ((old.encode(), modules[0]), (new.encode(), modules[1]))
    )
    found = compare_connectors(first, second)
    return [(e.direction, e.kind, e.name, e.before, e.after) for e in found]


def test_a_connector_names_hosts_functions_credential_and_its_code() -> None:
    host = '"api.example.com:443"'
    changed = (MANIFEST + OAUTH).replace(f"[{host}]", f'["evil.example:443", {host}]')
    before, after = (f"{n} bytes, sha256:{sha256_hex(each)}" for n, each in ((1, b"1"), (2, b"22")))
    assert manifests(MANIFEST, changed, (b"1", b"22")) == [
        ("wider", "hosts", "", "", "evil.example:443"),
        ("wider", "credential", "", "", "oauth2"),
        ("other", "module", "", before, after),
    ]
    assert [each[0] for each in manifests(changed, MANIFEST)] == ["narrower", "narrower"]


def test_another_place_for_a_credential_is_wider_and_no_secret_is_quoted() -> None:
    old = MANIFEST + OAUTH
    new = old.replace("https://a.example/token", "https://evil.example/token")
    new = new.replace("hush-1", "hush-2").replace('["read"]', '["read", "admin"]')
    assert manifests(old, new) == [
        ("wider", "credential_part", "token_url", "https://a.example/token", "https://evil.example/token"),
        ("wider", "credential_part", "client_secret", "", ""),
        ("wider", "scopes", "", "", "admin"),
    ]  # fmt: skip


WRITE = '[[rule]]\ntools = ["Write"]\ndecision = "{}"\n'
GIT = '[[rule]]\ntools = ["Bash"]\ncommand = ["git", "commit", "-m", "a b"]\ndecision = "allow"\n'


@pytest.mark.parametrize(
    ("old", "new", "kind", "direction"),
    [
        ("", WRITE.format("allow"), "rule_allows", "wider"),
        (WRITE.format("allow"), "", "rule_allows", "narrower"),
        ("", WRITE.format("ask"), "rule_asks", "narrower"),
        (WRITE.format("ask"), "", "rule_asks", "wider"),
        ("", WRITE.format("deny"), "rule_denies", "narrower"),
        (WRITE.format("deny"), "", "rule_denies", "wider"),
        ("", '[secrets]\nexcept = ["a"]', "secret_except", "wider"),
        ('[secrets]\nexcept = ["a"]', "", "secret_except", "narrower"),
        (WRITE.format("ask"), WRITE.format("ask") + 'reason = "x"', "text", "other"),
    ],
)
def test_each_difference_has_a_direction(old: str, new: str, kind: str, direction: str) -> None:
    (change,) = compare_policies(old, new)
    assert (change.kind, change.direction) == (kind, direction)


def test_what_allows_more_comes_first_and_words_with_blanks_are_quoted() -> None:
    changes = compare_policies(WRITE.format("allow"), GIT)
    assert [(each.direction, each.before, each.after) for each in changes] == [
        ("wider", "", "Bash: 'git' 'commit' '-m' 'a b'"),
        ("narrower", "Write", ""),
    ]
    assert compare_policies(GIT, GIT) == ()


def test_what_a_rule_lets_a_command_change_is_said() -> None:
    rules = '[[rule]]\ntools = ["Bash"]\ndecision = "allow"\nchanges = {}\n'
    some = rules.format('["build/**", "*.log"]') + 'command = ["make"]\n'
    assert [each.after or each.before for each in compare_policies(rules.format("[]"), some)] == [
        "Bash: make, if it changes only build/**, *.log",
        "Bash, if it changes nothing",
    ]


MAIL = """[[rule]]
actions = ["send", "get_*"]
agents = ["codex"]
decision = "{}"
{}where = {{ "args.text" = {{ plain = 2000 }}, "fetched.To" = {{ within = "northwind.example" }} }}
"""


@pytest.mark.parametrize(
    ("decision", "more", "kind", "direction", "end"),
    [
        ("allow", "", "rule_allows", "wider", ""),
        ("allow", 'other_args = "any"\n', "rule_opens", "wider", ""),
        ("ask", "grants = false\n", "rule_asks", "narrower", "; no grants"),
        ("deny", 'reason = "x"\n', "rule_denies", "narrower", ""),
    ],
)
def test_a_rule_for_actions_is_told_in_words_and_one_for_any_other_arguments_apart(
    decision: str, more: str, kind: str, direction: str, end: str
) -> None:
    (change,) = compare_policies("", MAIL.format(decision, more))
    assert (change.kind, change.direction) == (kind, direction)
    assert change.after == (
        "send, get_* (agent codex): args.text text of up to 2,000 characters, without links; "
        f"fetched.To within northwind.example{end}"
    )
    in_other_words = MAIL.format(decision, more).replace("2000", "1_000 ")
    assert len(compare_policies(MAIL.format(decision, more), in_other_words)) == 2


CAT = '[[rule]]\ntools = ["Bash"]\ncommand = ["cat", "*"]\npaths = ["{}"]\ndecision = "deny"\n'
PATHS = '[[rule]]\ntools = ["Write"]\npaths = {}\ndecision = "allow"\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CAT.format("a/**"), CAT.format("b/**")),
        (PATHS.format('["a, b"]'), PATHS.format('["a", "b"]')),
    ],
)
def test_rules_that_differ_in_anything_but_their_reasons_are_not_equal(old: str, new: str) -> None:
    assert [each.direction for each in compare_policies(old, new)] == ["wider", "narrower"]


def test_what_cannot_be_read_is_not_compared() -> None:
    with pytest.raises(ValueError, match="policy"):
        compare_policies("of_a_later_version = 1", "")


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        ("[console]\narm_ms = 400", "[console]\narm_ms = 250", "wider"),
        ("", "[console]\narm_ms = 250", "wider"),
        ("[console]\narm_ms = 300", "", "narrower"),
        ("[vault]\nlock_minutes = 5", "[vault]\nlock_minutes = 0", "wider"),
        ("[vault]\nlock_minutes = 0", "", "narrower"),
        ("[approval]\nexpires_seconds = 60", "", "wider"),
        ("[history]\ndays = 1", "[history]\ndays = 0", "narrower"),
        ("[mcp]\ntools = ['a']", "[mcp]\ntools = ['*']", "wider"),
        ("", "[launch.claude]\nargs = ['--x']", "wider"),
        ("[launch.claude]\nargs = ['--x']", "", "wider"),
        ("", "[launch]\nread = ['~/a']", "wider"),
        ("[launch]\nread = ['~/a', '~/b']", "[launch]\nread = ['~/b']", "narrower"),
        ("[launch]\nwrite = ['~/a']", "[launch]\nwrite = ['~/b']", "wider"),
        ("", "[launch]\nhide = ['.env']", "narrower"),
        ("[launch]\nhide = ['.env', 'a']", "[launch]\nhide = ['.env']", "wider"),
        ("", "[notify]\ncommand = ['sh']", "wider"),
        ("", "[gateway]\nopenai = 'https://a.example'", "wider"),
        ("[gateway]\nopenai = 'https://a.example'", "", "narrower"),
        ("[gateway]\nrequire_unlocked = true", "", "wider"),
        ("", "[gateway]\nrequire_unlocked = true", "narrower"),
        ("[gateway]\ninspect = true", "", "wider"),
        ("", "[gateway]\ninspect = true", "narrower"),
        ("", "[builtin.bash]\nrehearse = 'never'", "wider"),
        ("[builtin.bash]\nrehearse = 'never'", "", "narrower"),
        ("", "[builtin.bash]\nrehearse = 'always'", "other"),
        ("", "[console.keys]\ndeny = 'a'", "wider"),
        ("", "[console]\ntheme = 'dark'", "other"),
        ("", "[of_a_later_version]\nsetting = true", "wider"),
    ],
)
def test_each_setting_has_a_direction(old: str, new: str, direction: str) -> None:
    """One that nobody thought of allows more."""
    (change,) = compare_settings(old, new)
    assert change.direction == direction


def test_what_is_written_differently_and_says_the_same_is_no_difference() -> None:
    assert compare_settings("console = {arm_ms = 300}", "# mine\n[console]\narm_ms = 300\n") == ()


def accepted_database(*events: tuple[str, str], digest: str = "d1") -> sqlite3.Connection:
    """A row for `a.md` with *digest*, and a record for each (event, digest)."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE pins(kind, name, digest, taken_at, taken_by)")
    connection.execute("CREATE TABLE audit(seq INTEGER PRIMARY KEY, run, event, body)")
    connection.execute("INSERT INTO pins VALUES('action', 'a.md', ?, 1.0, 'person')", (digest,))
    for event, said in events:
        body = json.dumps({"kind": "action", "name": "a.md", "digest": said})
        connection.execute("INSERT INTO audit(event, body) VALUES(?, ?)", (event, body))
    return connection


@pytest.mark.parametrize("accepted", ["library.accepted", "library.taken_in"])
@pytest.mark.parametrize("ended", ["library.withdrawn", "library.held_back"])
def test_records_count_under_their_present_and_their_older_names(accepted: str, ended: str) -> None:
    counts = accepted_database((accepted, "d1"))
    assert [(each.name, each.digest) for each in load_records(counts)] == [("a.md", "d1")]
    assert load_withdrawn(counts) == set()
    over = accepted_database((accepted, "d1"), (ended, "d1"))
    assert (load_records(over), load_withdrawn(over)) == ([], {("action", "a.md", "d1")})
    again = accepted_database((accepted, "d1"), (ended, "d1"), (accepted, "d1"))
    assert (len(load_records(again)), load_withdrawn(again)) == (1, set())


def test_a_name_that_no_file_can_have_is_not_gone(tmp_path: Path) -> None:
    """Another program may have put it on record; nor does it stop the looking."""
    given = AcceptanceRecord(kind="action", name="x\0.md", digest="", accepted_at=0, accepted_by="")
    assert find_removed(tmp_path, [given]) == []


ACCEPTED = ("github://google/drive", "github://aileron-hq/mail")


def resembled(name: str, key: str = "SHA256:new") -> tuple[str, tuple[str, ...]]:
    """Return what the publisher *name* resembles, and as whom its key is known."""
    view = publisher_view(name, key, dict.fromkeys(ACCEPTED, "SHA256:theirs"))
    assert view is not None
    return view.resembles, view.known_as


@pytest.mark.parametrize(
    ("name", "resembles"),
    [
        ("github://goog1e/drive", "github://google/drive"),
        ("github://Google/other", "github://google/drive"),
        ("gitlab://google/drive", "github://google/drive"),
        ("github://g00gle/x", "github://google/drive"),
        ("github://googlee/drive", "github://google/drive"),
        ("github://aileron_hq/mail", "github://aileron-hq/mail"),
        ("github://google/gmail", ""),
        ("github://google/drive", ""),
        ("github://linear/drive", ""),
    ],
)
def test_a_name_that_resembles_an_accepted_publisher_is_said(name: str, resembles: str) -> None:
    """The owner's name is what counts: another repository of the same owner is no imitation."""
    assert resembled(name)[0] == resembles


def test_a_key_is_known_by_the_same_owners_repositories_alone() -> None:
    assert resembled("github://google/gmail", "SHA256:theirs")[1] == ("github://google/drive",)
    assert (
        resembled("github://google/gmail")[1]
        == resembled("github://goggle/x", "SHA256:theirs")[1]
        == ()
    )


def test_another_key_of_the_same_owner_is_said() -> None:
    """Of a key that is new: of no file that nobody signed, and not where one of the owner's has this key."""
    keys = {"github://google/drive": "SHA256:theirs", "github://aileron-hq/mail": "SHA256:new"}
    for name, key, other in (
        ("github://google/gmail", "SHA256:new", "github://google/drive"),
        ("github://google/gmail", "SHA256:theirs", ""),
        ("github://google/gmail", "", ""),
        ("github://google/drive", "SHA256:new", ""),
        ("github://linear/drive", "SHA256:new", ""),
    ):
        view = publisher_view(name, key, keys)
        assert view is not None
        assert view.other_key_of == other, (name, key)
