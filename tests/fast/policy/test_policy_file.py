"""`policy.toml`: strict, every problem with its key and line; and a rule for actions written out again."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.actions.load import load_action
from aileron_core.console_port.standing import FieldTest, FieldTests
from aileron_core.errors import FileProblems
from aileron_core.policy.model import Policy, Rule, to_toml
from aileron_core.policy.policy_file import MAX_RULES, parse_policy, unknown_fields

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


def test_a_rule_may_be_about_what_a_command_changes_also_nothing() -> None:
    text = '[[rule]]\ntools = ["Bash"]\ndecision = "allow"\nchanges = {}\n'
    for written, read in (('["build/**"]', ("build/**",)), ("[]", ())):
        (rule,) = parse_policy(text.format(written)).rules
        assert (rule.changes, rule.argv) == (read, ())


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
    rule = '[[rule]]\ntools = ["Read"]\ndecision = "ask"\n'
    [(key, line, _)] = policy_problems(rule * (MAX_RULES + 1))
    assert (key, line) == (f"rule[{MAX_RULES}]", 3 * MAX_RULES + 1)


SEND = Path(__file__).parents[3] / "examples" / "actions" / "send-draft.md"
WHERE = 'actions = ["send"]\ndecision = "allow"\nwhere = {{ {} }}'


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
    ("rule", "key", "line", "words"),
    [
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
def test_what_a_rule_for_actions_may_not_say(rule: str, key: str, line: int, words: str) -> None:
    [found] = policy_problems(f"[[rule]]\n{rule}\n")
    assert found[:2] == (key, line)
    assert words in found[2]


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
