"""What another `policy.toml` or `config.toml` is said to allow."""

import pytest

from aileron_core.library.settings_comparison import compare_policies, compare_settings

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
