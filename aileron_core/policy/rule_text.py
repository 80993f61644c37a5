"""Rules and grants for actions as text: in words, and as lines of `policy.toml`. Pure.

Both hold what a file or a service says: whoever draws the words makes hidden characters visible, the lines escape them.
"""

from typing import Final

from aileron_core.actions.interpolate import number_text
from aileron_core.console_port.standing import FieldTest, FieldTests
from aileron_core.policy.model import ActionRule, Decision

_WORDS: Final = {
    "at_most": "at most",
    "at_least": "at least",
    "absent": "absent",
    "any": "anything",
}
_NUMBERS: Final = ("plain", "at_most", "at_least")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def in_words(test: FieldTest) -> str:
    """Return what a field has to be, as it stands after the field's name."""
    if test.name == "plain":
        return f"text of up to {int(test.values[0]):,} characters, without links"
    found = ", ".join(test.values)
    if test.name in ("is", "only") and not test.values:
        found = "nothing"
    return f"{_WORDS.get(test.name, test.name)} {found}".rstrip()


def limits_in_words(rule: ActionRule) -> tuple[str, ...]:
    """Return to which calls of its actions *rule* is limited, besides its tests."""
    found = [f"effect {' or '.join(rule.effects)}"] if rule.effects else []
    if rule.agents:
        found.append(f"agent {' or '.join(rule.agents)}")
    if rule.contained is not None:
        found.append("contained sessions" if rule.contained else "sessions without a sandbox")
    return tuple(found)


def rule_in_words(rule: ActionRule) -> str:
    """Return what *rule* is about, in one line."""
    limits = limits_in_words(rule)
    text = ", ".join(rule.actions) + (f" ({', '.join(limits)})" if limits else "")
    parts = [f"{key} {in_words(test)}" for key, test in rule.where.items()]
    parts += [] if rule.grants else ["no grants"]
    return f"{text}: {'; '.join(parts)}" if parts else text


def to_toml(action: str, decision: Decision, tests: FieldTests) -> str:
    """Return a rule for calls of *action* as lines of `policy.toml`.

    `parse_policy` refuses them where a value is longer than a rule can hold.
    """
    lines = ["[[rule]]", f"actions = [{_quoted(action)}]", f'decision = "{decision}"']
    lines += ["", "[rule.where]"] if tests else []
    lines += [f"{_quoted(key)} = {_test(test)}" for key, test in tests]
    return "\n".join((*lines, ""))


def _test(test: FieldTest) -> str:
    if test.name in ("absent", "any"):
        return f'"{test.name}"'
    # A number that TOML's floats would round stays a text.
    exact = test.name in _NUMBERS and all(number_text(float(e)) == e for e in test.values)
    values = list(test.values) if exact else [_quoted(each) for each in test.values]
    is_one = len(values) == 1 and test.name != "only"
    written = values[0] if is_one else f"[{', '.join(values)}]"
    return f"{{ {test.name} = {written} }}"


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
