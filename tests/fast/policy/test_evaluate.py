"""What the rules say of a call of a built-in tool, and patterns of paths."""

from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
)
from aileron_core.policy.policy_file import rules_in_force

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


def test_no_rule_allows_what_is_denied_but_an_exception_does() -> None:
    allowed = Rule(tools=("Read",), decision="allow", paths=("tests/server.pem",))
    facts = Facts(tool="Read", path="tests/server.pem")
    assert verdict(facts, allowed).decision == "deny"
    assert verdict(facts, exceptions=("tests/*.pem",)).decision == "allow"


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


MADE = replace(
    bash_facts("make", program="/usr/bin/make"), rehearsal=rehearsed("build/x").rehearsal
)


def test_it_allows_nothing_that_was_not_rehearsed() -> None:
    before = Facts(tool="Bash", command="make > x")
    found = verdict(before, BUILD)
    assert (found.decision, found.before_rehearsal) == ("ask", before)
    failed = verdict(replace(before, rehearsal=Rehearsal(done=False)), BUILD)
    assert (failed.decision, failed.before_rehearsal) == ("ask", None)
    assert failed.reason == "policy.toml:9 allows only what was rehearsed, and this command was not"


def test_rules_that_deny_or_ask_win_over_it_also_for_what_was_changed() -> None:
    make = Rule(tools=("Bash",), decision="ask", argv=("make", "*"))
    assert verdict(MADE, BUILD).decision == "allow"
    for decision in ("ask", "deny"):
        assert verdict(MADE, BUILD, replace(make, decision=decision)).decision == decision
        kept = Rule(tools=("Write",), decision=decision, paths=("build/x",))
        assert verdict(MADE, BUILD, kept).decision == "ask"
    assert verdict(replace(MADE, rehearsal=None), BUILD, make).before_rehearsal is None


def test_with_words_of_a_command_both_must_hold() -> None:
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
    ("pattern", "path"),
    [
        ("*.txt", "README.txt"),
        ("*.txt", "docs/a/README.txt"),
        ("docs/*.txt", "docs/a.txt"),
        ("docs/**", "docs/a/b.txt"),
        ("docs/", "docs/a/b.txt"),
        ("docs/", "old/docs/b.txt"),
        ("./docs/", "docs/b.txt"),
        ("**/build/x", "build/x"),
        ("a/**/z", "a/z"),
        ("a/**/z", "a/b/c/z"),
        ("[ab].txt", "b.txt"),
    ],
)
def test_a_pattern_means(pattern: str, path: str) -> None:
    assert matches(pattern, path, strict=True)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("docs/*.txt", "docs/a/b.txt"),
        ("docs/*.txt", "old/docs/b.txt"),
        ("./docs/", "old/docs/b.txt"),
        ("./Makefile", "sub/Makefile"),
        ("*.txt", "notes.txt/run.sh"),
        ("*.txt", "README.TXT"),
        ("*.txt", "README.txt\n"),
        ("?.txt", "/.txt"),
        ("a/**/z", "a/b/zz"),
        ("*", "."),
        ("?", "."),
        ("*", ""),
    ],
)
def test_what_allows_means_no_more(pattern: str, path: str) -> None:
    """In particular not what is in a folder with such a name, which an agent could make."""
    assert not matches(pattern, path, strict=True)


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
