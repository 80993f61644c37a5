"""`policy.toml`: what it may say; what the rules say of a call of a built-in tool; and patterns of paths."""

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.actions.load import load_action
from aileron_core.console_port.standing import FieldTest, FieldTests
from aileron_core.errors import FileProblems
from aileron_core.path_patterns import HiddenPaths, matches
from aileron_core.policy.evaluate import evaluate, hidden_paths
from aileron_core.policy.model import (
    DECISIONS,
    TOOLS,
    Decision,
    Facts,
    Policy,
    Rehearsal,
    Rule,
    Verdict,
    to_toml,
)
from aileron_core.policy.policy_file import MAX_RULES, parse_policy, rules_in_force, unknown_fields

PYTEST = Rule(tools=("Bash",), decision="allow", argv=("pytest", "-q", "*"), source="policy.toml:3")
NOTES = Rule(tools=("Write", "Edit"), decision="allow", paths=("notes/**",), reason="notes")


def bash_facts(*argv: str, program: str = "/usr/bin/pytest", named: tuple[str, ...] = ()) -> Facts:
    return Facts(
        tool="Bash", command=" ".join(argv), simple=True, argv=argv, program=program,
        program_writable=False, named=named,
    )  # fmt: skip


def verdict(facts: Facts, *rules: Rule, exceptions: tuple[str, ...] = ()) -> Verdict:
    return evaluate(rules_in_force(Policy(rules=rules, secret_exceptions=exceptions)), facts)


@pytest.mark.parametrize("tool", ["Read", "Glob", "Grep"])
def test_reads_inside_the_project_are_allowed(tool: str) -> None:
    found = verdict(Facts(tool=tool, path="src/tokens.py"))
    assert (found.decision, found.reason) == ("allow", "reads inside the project are allowed")


@pytest.mark.parametrize(
    ("facts", "what"),
    [(Facts(tool="Write", path="a"), " change"), (bash_facts("x"), " command"), (Facts(tool="Read"), "")],
)  # fmt: skip
def test_everything_else_is_asked(facts: Facts, what: str) -> None:
    assert verdict(facts) == Verdict(decision="ask", reason=f"no rule allows this{what}")


@pytest.mark.parametrize(
    "path",
    [
        ".env", "app/.env.production", "prod.env", ".ENV", "tls/server.pem", "server.key", "id_rsa",
        "keys/id_ed25519_work", "x.p12", "x.pfx", "x.kdbx", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
        "credentials.json", "config/secrets.yaml", ".aws/credentials", "home/.ssh/config", ".gnupg/x",
        "terraform.tfstate", "terraform.tfstate.backup", ".kube/config", "infra/.docker/config.json",
    ],
)  # fmt: skip
def test_files_that_hold_secrets_are_denied_to_every_tool(path: str) -> None:
    for tool in TOOLS[:-1]:
        assert verdict(Facts(tool=tool, path=path)).decision == "deny"
    found = verdict(bash_facts("cat", path, named=(path,)))
    assert (found.decision, found.text) == ("deny", f"files of this name may hold secrets: {path}")
    assert path not in found.reason  # which is on record for ever


@pytest.mark.parametrize(
    "path",
    [
        ".env.example", "a/.env.sample", ".env.template", ".env.local.example", "tokens.py", "secrets.py",
        "src/secrets/mod.rs", "environment.py", "env", "id_rsa.pub", "keyboard.py", "locales/en/auth.json",
        "config/credentials.rb", "docs/ssh/config", "package.json", "kube/config.yaml", "pem.go", "cacert.pem",
    ],
)  # fmt: skip
def test_files_that_only_sound_secret_are_read(path: str) -> None:
    assert verdict(Facts(tool="Read", path=path)).decision == "allow"


def test_a_path_that_leaves_the_project_is_asked_with_its_target() -> None:
    everything = Rule(tools=TOOLS, decision="allow")
    asking = Rule(tools=TOOLS, decision="ask", reason="asked in any case")
    facts = Facts(tool="Read", outside=True, target="/etc/passwd")
    assert verdict(facts, asking, everything) == Verdict(
        decision="ask", reason="it leads out of the project", about="/etc/passwd"
    )
    secret = replace(facts, target="/home/ann/.ssh/known_hosts")
    assert (verdict(secret, everything).decision, verdict(secret).about) == ("deny", secret.target)


def test_a_rule_allows_a_change_below_its_paths_only() -> None:
    found = verdict(Facts(tool="Write", path="notes/a.md"), NOTES)
    assert (found.decision, found.reason) == ("allow", "notes")
    for path in ("a.md", "old/notes/a.md", "notes/../a.md", "NOTES/a.md", None):
        assert verdict(Facts(tool="Write", path=path), NOTES).decision == "ask"


def test_a_rule_allows_a_simple_command_of_its_words() -> None:
    found = verdict(bash_facts("pytest", "-q", "tests/a.py", "-x"), PYTEST)
    expected = ("allow", "allowed by policy.toml:3", PYTEST)
    assert (found.decision, found.reason, found.rule) == expected
    assert verdict(bash_facts("pytest", "-q"), PYTEST).decision == "allow"
    for argv in (("pytest",), ("pytest", "-x", "-q"), ("/tmp/pytest", "-q"), ("Pytest", "-q")):
        assert verdict(bash_facts(*argv), PYTEST).reason == "no rule allows this command"
    exact, with_paths = replace(PYTEST, argv=("pytest",)), replace(PYTEST, paths=("**",))
    for rule in (exact, with_paths):
        assert verdict(bash_facts("pytest", "-q"), rule).decision == "ask"


def test_it_allows_neither_shell_syntax_nor_a_program_that_the_session_can_write() -> None:
    found = verdict(Facts(tool="Bash", command="pytest -q > out"), PYTEST)
    assert (found.decision, found.rule) == ("ask", None)
    assert found.reason == (
        "policy.toml:3 allows only literal words, and this command has an expansion, redirection, "
        "assignment or operator"
    )
    own = Facts(tool="Bash", simple=True, argv=("pytest", "-q"), program="/p/.venv/bin/pytest")
    why = "policy.toml:3 does not count, because the session can write its program"
    assert verdict(own, PYTEST) == Verdict(decision="ask", reason=why, about=own.program)
    assert "was not found" in verdict(bash_facts("pytest", "-q", program=""), PYTEST).reason


def test_a_rule_denies_a_program_by_any_of_its_names() -> None:
    push = Rule(tools=("Bash",), decision="deny", argv=("git", "push", "*"), reason="I push myself")
    by_path = replace(push, argv=("/usr/bin/git", "push", "*"))
    for argv in (("git", "push"), ("/usr/bin/git", "push", "-f"), ("g", "push")):
        for rule in (push, by_path):
            found = verdict(bash_facts(*argv, program="/usr/bin/git"), rule)
            assert (found.decision, found.reason) == ("deny", "I push myself")
    assert verdict(bash_facts("git", "pull"), push).decision == "ask"


def test_deny_goes_over_ask_and_ask_over_allow() -> None:
    """No rule allows what is denied for its name, but an exception does."""
    allowed = Rule(tools=("Read",), decision="allow", paths=("tests/server.pem",))
    facts = Facts(tool="Read", path="tests/server.pem")
    assert verdict(facts, allowed).decision == "deny"
    assert verdict(facts, exceptions=("tests/*.pem",)).decision == "allow"
    allow, ask, deny = (replace(NOTES, decision=each, reason=each) for each in DECISIONS)
    facts = Facts(tool="Edit", path="notes/a")
    assert verdict(facts, allow, ask, deny).reason == "deny"
    assert verdict(facts, allow, ask).reason == "ask"


BUILD = Rule(tools=("Bash",), decision="allow", changes=("build/**",), source="policy.toml:9")


def rehearsed(*paths: str, own: int = 0) -> Facts:
    rehearsal = Rehearsal(done=True, paths=paths, own_changes=own)
    return Facts(tool="Bash", command="cd build && make", rehearsal=rehearsal)


def test_a_rule_allows_a_rehearsed_command_by_what_it_changed() -> None:
    found = verdict(rehearsed("build/x", "build"), BUILD)
    expected = ("allow", "allowed by policy.toml:9, by what its rehearsal changed")
    assert (found.decision, found.reason) == expected
    nothing = replace(BUILD, changes=())
    assert verdict(rehearsed(), BUILD).decision == verdict(rehearsed(), nothing).decision == "allow"
    for facts, rule in (
        (rehearsed("build/x", "src/x"), BUILD),
        (rehearsed("Build/x"), BUILD),
        (rehearsed("/mnt/build/x"), replace(BUILD, changes=("x",))),
        (rehearsed("build/x"), nothing),
        (rehearsed("build/x", own=1), BUILD),
        (rehearsed(".git/config"), replace(BUILD, changes=("**",))),
        (rehearsed("a/.GIT/hooks/x"), replace(BUILD, changes=("**", "x"))),
        (rehearsed("build/.env"), BUILD),
    ):
        found = verdict(facts, rule)
        assert found.decision == "ask", facts
        assert found.before_rehearsal is None
    git = replace(BUILD, changes=(".git/**",))
    assert verdict(rehearsed(".git/refs/x"), git).decision == "allow"
    assert verdict(rehearsed("build/.env"), BUILD).text == (
        "policy.toml:9 does not count, because of what it changes: files of this name may hold secrets: build/.env"
    )
    # It allows nothing that was not rehearsed.
    before = Facts(tool="Bash", command="make > x")
    found = verdict(before, BUILD)
    assert (found.decision, found.before_rehearsal) == ("ask", before)
    failed = verdict(replace(before, rehearsal=Rehearsal(done=False)), BUILD)
    assert (failed.decision, failed.before_rehearsal) == ("ask", None)
    assert failed.reason == "policy.toml:9 allows only what was rehearsed, and this command was not"


MADE = replace(bash_facts("make"), rehearsal=rehearsed("build/x").rehearsal)


def test_rules_that_deny_or_ask_win_over_it_also_for_what_was_changed() -> None:
    make = Rule(tools=("Bash",), decision="ask", argv=("make", "*"))
    assert verdict(MADE, BUILD).decision == "allow"
    for decision in ("ask", "deny"):
        assert verdict(MADE, BUILD, replace(make, decision=decision)).decision == decision
        kept = Rule(tools=("Write",), decision=decision, paths=("build/x",))
        assert verdict(MADE, BUILD, kept).decision == "ask"
    assert verdict(replace(MADE, rehearsal=None), BUILD, make).before_rehearsal is None
    # With words of a command both must hold.
    both = replace(BUILD, argv=("make", "*"))
    assert verdict(MADE, both).decision == "allow"
    other, rm = replace(MADE, rehearsal=rehearsed("x").rehearsal), replace(MADE, argv=("rm",))
    for facts in (other, rm, rehearsed("build/x")):
        assert verdict(facts, both).decision == "ask"
    assert verdict(replace(rm, rehearsal=None), both).before_rehearsal is None


def test_a_search_leaves_out_what_its_tool_may_not_read() -> None:
    ask = Rule(tools=("Grep",), decision="ask", paths=("private/",))
    rules = rules_in_force(Policy(rules=(ask,), secret_exceptions=("tests/*.pem",)))
    hidden = HiddenPaths(hidden_paths(rules, Facts(tool="Grep", path=".")))
    paths = ("a/.env", "private/a", "a/.env.example", "tests/x.pem")
    assert [hidden.hides(each) for each in paths] == [True, True, False, False]
    asked = HiddenPaths(hidden_paths(rules, Facts(tool="Grep", path="private")))
    assert [asked.hides(f"private/{each}") for each in ("a", ".env")] == [False, True]


_RULES = st.lists(
    st.builds(Rule, tools=st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3).map(tuple),
              decision=st.sampled_from(DECISIONS),
              paths=st.lists(st.sampled_from(["a", "b/", "**", "*.x"]), max_size=2).map(tuple),
              argv=st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple),
              changes=st.sampled_from([None, (), ("b/",), ("**",)])), max_size=6,
)  # fmt: skip
_CHANGED = st.lists(st.sampled_from(["a", "b/c", ".git/x", "b/.env", "/a"]), max_size=2)
_REHEARSALS = st.builds(
    Rehearsal, done=st.booleans(), paths=_CHANGED.map(tuple), own_changes=st.integers(0, 1)
)
_FACTS = st.builds(
    Facts,
    tool=st.sampled_from(TOOLS),
    path=st.sampled_from([None, "a", "b/c", "d.x", ".env"]),
    outside=st.booleans(),
    target=st.sampled_from(["/a", "/b/c"]),
    simple=st.booleans(),
    argv=st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple),
    program=st.sampled_from(["", "/usr/bin/a"]),
    program_writable=st.booleans(),
    named=st.lists(st.sampled_from(["a", ".env"]), max_size=1).map(tuple),
    rehearsal=st.none() | _REHEARSALS,
)
_ORDER: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}


@given(_RULES, _FACTS)
def test_more_restrictions_never_allow_more(rules: list[Rule], facts: Facts) -> None:
    """Nor does the order of the rules matter, and no rule allows what is outside or secret."""
    found = verdict(facts, *rules)
    assert verdict(facts, *reversed(rules)).decision == found.decision
    without = tuple(rule for rule in rules if rule.decision == "allow")
    assert _ORDER[verdict(facts, *without).decision] <= _ORDER[found.decision]
    assert found.reason
    if ".env" in facts.paths:
        assert found.decision == "deny"
    elif facts.outside:
        assert (found.decision == "deny") or found.about == facts.target
        assert found.decision != "allow"
    if found.decision != "allow" or facts.tool != "Bash":
        return
    if found.rule.changes is not None:
        assert (facts.rehearsal.done, facts.rehearsal.own_changes) == (True, 0)
        assert not {".git/x", "b/.env", "/a"} & {*facts.rehearsal.paths}
    if found.rule.changes is None or found.rule.argv:
        assert (facts.simple, bool(facts.program), facts.program_writable) == (True, True, False)


@pytest.mark.parametrize(
    ("pattern", "path", "means"),
    [
        ("*.txt", "README.txt", True),
        ("*.txt", "docs/a/README.txt", True),
        ("docs/*.txt", "docs/a.txt", True),
        ("docs/**", "docs/a/b.txt", True),
        ("docs/", "docs/a/b.txt", True),
        ("docs/", "old/docs/b.txt", True),
        ("./docs/", "docs/b.txt", True),
        ("**/build/x", "build/x", True),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z", True),
        ("[ab].txt", "b.txt", True),
        ("docs/*.txt", "docs/a/b.txt", False),
        ("docs/*.txt", "old/docs/b.txt", False),
        ("./docs/", "old/docs/b.txt", False),
        ("./Makefile", "sub/Makefile", False),
        ("*.txt", "notes.txt/run.sh", False),
        ("*.txt", "README.TXT", False),
        ("*.txt", "README.txt\n", False),
        ("?.txt", "/.txt", False),
        ("a/**/z", "a/b/zz", False),
        ("*", ".", False),
        ("?", ".", False),
        ("*", "", False),
    ],
)
def test_what_allows_means_its_pattern_and_no_more(pattern: str, path: str, means: bool) -> None:
    """In particular not what is in a folder with such a name, which an agent could make."""
    assert matches(pattern, path, strict=True) is means


def test_what_denies_disregards_case_and_means_all_that_is_within() -> None:
    """`.ENV` is `.env` where the file system says so."""
    assert matches(".env", ".ENV", strict=False)
    assert matches("private", "docs/private/a/b.txt", strict=False)
    assert not matches("private", "docs/privateer", strict=False)
    hidden = HiddenPaths((".env*", "!.env.example", "docs/"))  # the last that matches says so
    paths = ("a/.env.local", "a/.env.example", "docs/.env.example")
    assert [hidden.hides(each) for each in paths] == [True, False, True]


_NAMES = st.lists(st.text("ab.*", min_size=1, max_size=4), min_size=1, max_size=4)


@given(_NAMES)
def test_a_literal_path_means_itself_and_nothing_longer(names: list[str]) -> None:
    """Whatever a name consists of, its brackets and stars in brackets are only that name."""
    path = "/".join(names)
    literal = "./" + "/".join("".join(f"[{each}]" for each in name) for name in names)
    if all(name not in (".", "..") for name in names):
        assert matches(literal, path, strict=True)
        assert not matches(literal, f"{path}/x", strict=True)
        assert not matches(literal, f"{path}x", strict=True)
        assert matches(literal, f"{path}/x", strict=False)


_PATTERNS = st.lists(
    st.sampled_from(["a", "!a", "b/", "!b/**", "**/a.*", "a/b", "!./b", "**", "[ab]*", "!*.b"]),
    max_size=4,
)


@given(_PATTERNS, _NAMES)
def test_the_last_pattern_that_matches_decides(patterns: list[str], names: list[str]) -> None:
    """However few names are compared with all of the patterns."""
    path = "/".join(names)
    matching = [p for p in patterns if matches(p.lstrip("!"), path, strict=p.startswith("!"))]
    hides = bool(matching) and not matching[-1].startswith("!")
    assert HiddenPaths(patterns).hides(path) == hides


def means(pattern: list[str], names: list[str]) -> bool:
    """What a pattern means, name by name."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        return means(pattern[1:], names) or bool(names and means(pattern, names[1:]))
    return bool(names and fnmatchcase(names[0], pattern[0]) and means(pattern[1:], names[1:]))


_WORDS = st.sampled_from(["a", "b", "ab", "a*", "?b", "[!a]", "**"])


@given(
    st.lists(_WORDS, min_size=1, max_size=4),
    st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=4),
)
def test_what_allows_is_decided_name_by_name(pattern: list[str], names: list[str]) -> None:
    """However the last name alone decides it sooner."""
    anywhere = ["**"] if len(pattern) == 1 else []
    expected = means(anywhere + pattern, names)
    assert matches("/".join(pattern), "/".join(names), strict=True) == expected
    assert matches("./" + "/".join(pattern), "/".join(names), strict=True) == means(pattern, names)


WHOLE = """\
[[rule]]
tools = ["Write", "Edit"]
paths = ["notes/**"]
decision = "allow"

[[rule]]
tools = ["Bash"]
command = ["git", "push", "*"]
decision = "deny"
reason = "I push myself"

[secrets]
except = ["tests/*.pem"]
"""


def policy_problems(text: str) -> list[tuple[str, int, str]]:
    with pytest.raises(FileProblems) as caught:
        parse_policy(text)
    return [(each.key, each.line, each.message) for each in caught.value.problems]


def test_rules_and_exceptions_are_read_with_their_lines() -> None:
    """Before they are accepted, only those that restrict count."""
    notes = Rule(
        tools=("Write", "Edit"), paths=("notes/**",), decision="allow", source="policy.toml:1"
    )
    argv, why = ("git", "push", "*"), "I push myself"
    push = Rule(tools=("Bash",), argv=argv, decision="deny", reason=why, source="policy.toml:6")
    policy = parse_policy(WHOLE)
    assert [rule.decision for rule in policy.restrictions().rules] == ["deny"]
    assert not policy.restrictions().secret_exceptions
    assert policy == Policy(rules=(notes, push), secret_exceptions=("tests/*.pem",), text=WHOLE)
    assert parse_policy("") == Policy()
    # A rule may be about what a command changes, also nothing.
    text = '[[rule]]\ntools = ["Bash"]\ndecision = "allow"\nchanges = {}\n'
    for written, read in (('["build/**"]', ("build/**",)), ("[]", ())):
        (rule,) = parse_policy(text.format(written)).rules
        assert (rule.changes, rule.argv) == (read, ())


WHERE = 'actions = ["send"]\ndecision = "allow"\nwhere = {{ {} }}'


@pytest.mark.parametrize(
    ("rule", "key", "line", "words"),
    [
        ('tools = ["Bash"]\ndecision = "ask"\nallow = 1', "rule[0].allow", 4, "is not a key here"),
        ('tools = ["Bash"]\ndecision = "deny"\nchanges = []', "rule[0].changes", 4, "only goes with"),
        ('tools = ["Write"]\ndecision = "allow"\nchanges = []', "rule[0].changes", 4, "only goes with"),
        ('tools = ["Bash"]\ndecision = "allow"\nchanges = ["/x"]', "rule[0].changes[0]", 4, "a path in"),
        ('tools = ["Bash"]\ndecision = "allow"\nchanges = []\ncommand = ["*"]', "rule[0].command[0]", 5, "name of"),
        ('tools = ["Bash", "bash"]\ndecision = "ask"', "rule[0].tools", 2, "a list of tools"),
        ('decision = "ask"', "rule[0].tools", 1, "a list of tools"),
        ('tools = ["Read"]', "rule[0].decision", 1, "must be"),
        ('tools = ["Read"]\ndecision = "yes"', "rule[0].decision", 3, "must be"),
        ('tools = ["Bash"]\ndecision = "allow"', "rule[0].command", 1, "name the words"),
        ('tools = ["Bash"]\ncommand = ["*"]\ndecision = "allow"', "rule[0].command[0]", 3, "name of a program"),
        ('tools = ["Bash"]\ncommand = ["*", "a"]\ndecision = "ask"', "rule[0].command[0]", 3, "last word"),
        ('tools = ["Bash"]\ncommand = []\ndecision = "deny"', "rule[0].command", 3, "list of 1"),
        ('tools = ["Read"]\ncommand = ["a"]\ndecision = "deny"', "rule[0].command", 3, "only goes with"),
        ('tools = ["Bash"]\npaths = ["a"]\ncommand = ["a"]\ndecision = "allow"', "rule[0].paths", 3, "cannot allow"),
        ('tools = ["Read"]\npaths = ["/etc/**"]\ndecision = "deny"', "rule[0].paths[0]", 3, "in the project"),
        ('tools = ["Read"]\npaths = ["../a"]\ndecision = "deny"', "rule[0].paths[0]", 3, "in the project"),
        ('tools = ["Read"]\npaths = []\ndecision = "allow"', "rule[0].paths", 3, "list of 1"),
        ('tools = ["Read"]\ndecision = "ask"\nreason = "a\\nb"', "rule[0].reason", 4, "one line"),
        ('actions = ["a"]\ndecision = "ask"\npaths = ["b"]', "rule[0].paths", 4, "the keys are actions, effects"),
        ('actions = []\ndecision = "ask"', "rule[0].actions", 2, "names of actions"),
        ('actions = ["a"]\neffects = ["fly"]\ndecision = "ask"', "rule[0].effects[0]", 3, "must be of read"),
        ('actions = ["a"]\nagents = ["me"]\ndecision = "ask"', "rule[0].agents[0]", 3, "must be of"),
        ('actions = ["a"]\ncontained = "yes"\ndecision = "ask"', "rule[0].contained", 3, "true or false"),
        ('actions = ["a"]\ngrants = 1\ndecision = "ask"', "rule[0].grants", 3, "true or false"),
        ('actions = ["a"]\nother_args = "some"\ndecision = "allow"', "rule[0].other_args", 3, "can only be"),
        ('actions = ["a"]\nother_args = "any"\ndecision = "deny"', "rule[0].other_args", 3, "decision = \"allow\""),
        ('actions = ["a"]\ndecision = "allow"\nwhere = 3', "rule[0].where", 4, "a table of tests"),
        (WHERE.format('"to" = "any"'), 'rule[0].where.to', 4, '"args.NAME" or "fetched.LABEL"'),
        (WHERE.format('"args." = "any"'), 'rule[0].where."args."', 4, '"args.NAME" or "fetched.LABEL"'),
        (WHERE.format('"args.a" = "none"'), 'rule[0].where."args.a"', 4, 'must be "absent", "any" or one test'),
        (WHERE.format('"args.a" = { isnt = "b" }'), 'rule[0].where."args.a"', 4, "one test of is, only"),
        (WHERE.format('"args.a" = { is = "b", like = "c" }'), 'rule[0].where."args.a"', 4, "one test of"),
        (WHERE.format('"args.a" = { any = true }'), 'rule[0].where."args.a"', 4, "one test of"),
        (WHERE.format('"args.a" = { at_most = "nine" }'), 'rule[0].where."args.a".at_most', 4, "must be a number"),
        (WHERE.format('"args.a" = { at_most = [] }'), 'rule[0].where."args.a".at_most', 4, "must be a number"),
        (WHERE.format('"args.a" = { at_least = [1, 2] }'), 'rule[0].where."args.a".at_least', 4, "must be a number"),
        (WHERE.format('"args.a" = { plain = 0 }'), 'rule[0].where."args.a".plain', 4, "from 1 to 20000"),
        (WHERE.format('"args.a" = { plain = true }'), 'rule[0].where."args.a".plain', 4, "from 1 to 20000"),
        (WHERE.format('"args.a" = { within = "" }'), 'rule[0].where."args.a".within', 4, "must be a domain"),
        (WHERE.format('"args.a" = { within = "https://b.example" }'), 'rule[0].where."args.a".within', 4, "must be a domain"),
        (WHERE.format('"args.a" = { like = [] }'), 'rule[0].where."args.a".like', 4, "must be a text"),
        ('actions = ["a"]\ngrants = false\ndecision = "allow"', "rule[0].grants", 3, 'decision = "ask"'),
        (WHERE.format('"args.a" = { is = { b = 1 } }'), 'rule[0].where."args.a".is', 4, "must be a text"),
        (WHERE.format('"args.a" = { is = "' + "x" * 401 + '" }'), 'rule[0].where."args.a".is', 4, "must be a text"),
    ],
)  # fmt: skip
def test_what_a_rule_may_not_say(rule: str, key: str, line: int, words: str) -> None:
    [found] = policy_problems(f"[[rule]]\n{rule}\n")
    assert found[:2] == (key, line)
    assert words in found[2]


def test_every_problem_is_named_and_so_is_what_is_not_toml() -> None:
    text = '[rules]\n[secrets]\nexcept = ["~/x"]\nalso = 1\n[[rule]]\n'
    assert {key for key, _, _ in policy_problems(text)} == {
        "rules", "secrets.also", "secrets.except[0]", "rule[0].tools", "rule[0].decision",
    }  # fmt: skip
    assert policy_problems("[[rule]\n")[0][:2] == ("", 1)
    assert policy_problems('rule = "x"')[0][0] == "rule"
    rule = '[[rule]]\ntools = ["Read"]\ndecision = "ask"\n'
    [(key, line, _)] = policy_problems(rule * (MAX_RULES + 1))
    assert (key, line) == (f"rule[{MAX_RULES}]", 3 * MAX_RULES + 1)


SEND = Path(__file__).parents[3] / "examples" / "actions" / "send-draft.md"


def test_a_rule_for_actions_is_read_with_its_tests() -> None:
    (rule,) = parse_policy(
        '[[rule]]\nactions = ["get_*", "send"]\neffects = ["read", "send"]\nagents = ["codex"]\n'
        'contained = true\ndecision = "ask"\ngrants = false\n'
        'where = { "args.a" = { only = ["x", 1, true] }, "fetched.New to you" = "absent" }\n'
    ).action_rules
    expected = (("get_*", "send"), ("read", "send"), ("codex",))
    assert (rule.actions, rule.effects, rule.agents) == expected
    assert (rule.contained, rule.is_open, rule.grants) == (True, False, False)
    assert rule.where == {
        "args.a": FieldTest("only", ("x", "1", "true")),
        "fetched.New to you": FieldTest("absent"),
    }
    assert rule.source == "policy.toml:1"


@pytest.mark.parametrize(
    ("actions", "where", "unknown"),
    [
        ("send-draft", '"args.draft_id" = "any", "fetched.To" = "any"', []),
        ("send-draft", '"args.draft" = "any"', ["args.draft"]),
        ("s*", '"fetched.to" = "any"', ["fetched.to"]),
        ("elsewhere.*", '"args.x" = "any"', []),
    ],
)
def test_an_unknown_field_is_a_problem(actions: str, where: str, unknown: list[str]) -> None:
    text = f'# mine\n[[rule]]\nactions = ["{actions}"]\ndecision = "deny"\nwhere = {{ {where} }}\n'
    found = unknown_fields(parse_policy(text), [load_action(SEND.read_bytes(), SEND.name)])
    assert [each.line for each in found.get("policy.toml:2", [])] == [5] * len(unknown)
    assert all(each in str(found) for each in unknown)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBER = st.decimals(-(10**20), 10**20, places=3).map(str)
TESTS = st.one_of(
    st.sampled_from([FieldTest("absent"), FieldTest("any")]),
    st.integers(1, 20_000).map(lambda n: FieldTest("plain", (str(n),))),
    NUMBER.flatmap(
        lambda n: st.sampled_from([FieldTest("at_most", (n,)), FieldTest("at_least", (n,))])
    ),
    st.tuples(st.sampled_from(["is", "only"]), st.lists(TEXT, max_size=4)).map(
        lambda each: FieldTest(each[0], tuple(each[1]))
    ),
    st.lists(TEXT, min_size=1, max_size=4).map(lambda each: FieldTest("like", tuple(each))),
    st.sampled_from(["acme.example", "*.b.example", "a'b@c.example", '/no"tes', "a b/"]).map(
        lambda place: FieldTest("within", (place,))
    ),
)
KEYS = st.tuples(st.sampled_from(["args.", "fetched."]), TEXT.filter(bool)).map("".join)


@given(st.dictionaries(KEYS, TESTS, max_size=6).map(lambda each: tuple(each.items())))
def test_a_grant_written_as_a_rule_is_read_back_as_the_same_tests(tests: FieldTests) -> None:
    """Also where a service's values hold quotes, line ends or invisible characters: they are escaped."""
    text = to_toml("send", "allow", tests)
    assert text.replace("\n", "").isprintable()
    (rule,) = parse_policy(text).action_rules
    assert (rule.actions, rule.decision, rule.where) == (("send",), "allow", dict(tests))


def test_every_example_of_the_page_on_rules_is_read() -> None:
    page = (Path(__file__).parents[3] / "docs" / "rules.md").read_text(encoding="utf-8")
    examples = [each.split("```")[0] for each in page.split("```toml\n")[1:]]
    assert len([parse_policy(each) for each in examples]) >= 8
