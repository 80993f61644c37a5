"""`policy.toml`: strict, every problem with its key and line."""

import pytest

from aileron_core.errors import FileProblems
from aileron_core.policy.model import Policy, Rule
from aileron_core.policy.policy_file import MAX_RULES, parse_policy

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
    notes = Rule(
        tools=("Write", "Edit"), paths=("notes/**",), decision="allow", source="policy.toml:1"
    )
    push = Rule(
        tools=("Bash",),
        argv=("git", "push", "*"),
        decision="deny",
        reason="I push myself",
        source="policy.toml:6",
    )
    policy = parse_policy(WHOLE)
    assert policy == Policy(rules=(notes, push), secret_exceptions=("tests/*.pem",), text=WHOLE)
    assert parse_policy("") == Policy()


def test_a_rule_may_be_about_what_a_command_changes_also_nothing() -> None:
    text = '[[rule]]\ntools = ["Bash"]\ndecision = "allow"\nchanges = {}\n'
    for written, read in (('["build/**"]', ("build/**",)), ("[]", ())):
        (rule,) = parse_policy(text.format(written)).rules
        assert (rule.changes, rule.argv) == (read, ())


def test_before_it_is_accepted_only_what_restricts_counts() -> None:
    policy = parse_policy(WHOLE).restrictions()
    assert [rule.decision for rule in policy.rules] == ["deny"]
    assert not policy.secret_exceptions


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
    [(key, line, _)] = policy_problems(
        '[[rule]]\ntools = ["Read"]\ndecision = "ask"\n' * (MAX_RULES + 1)
    )
    assert (key, line) == (f"rule[{MAX_RULES}]", 3 * MAX_RULES + 1)
