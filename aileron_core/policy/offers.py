"""The grants that a person is offered beside a waiting call: three shapes, and each field's tests. Pure."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Literal

from aileron_core.actions.interpolate import references
from aileron_core.actions.model import Action, is_builtin
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.standing import (
    FieldTest,
    FieldTests,
    GrantOffer,
    OfferedField,
)
from aileron_core.policy.shapes import fits, is_well_formed, number
from aileron_core.policy.values import ARGUMENT, FETCHED, Value, Values, address

TEXT_FORMATS: Final = ("html", "markdown", "text")
_PLAIN_SIZES: Final = (200, 500, 1000, 2000, 5000, 20_000)
_NEVER: Final = ("pay", "delete")
_EXACT: Final = ("run", None)
ABSENT: Final = FieldTest("absent")
ANY: Final = FieldTest("any")


def why_no_grant(action: Action, values: Values, forbidden_by: str) -> str:
    """Return why no grant can be made beside a call, as a sentence; empty where one can.

    Args:
        action: that is called.
        values: of the call.
        forbidden_by: the rule that forbids grants for it, if one does.
    """
    approval = action.approval
    if approval.effect in _NEVER:
        return f"An action whose effect is {approval.effect} is asked about each time."
    if not approval.grants:
        return "Its action file says that it is asked about each time."
    if forbidden_by:
        return f"{forbidden_by} has it asked about each time."
    unread = [key for key, value in values.items() if value.status == "unreadable"]
    if unread and not is_builtin(action.name):
        return f"Nothing can be said of later calls: {', '.join(unread)} could not be fetched, or stands there twice."
    return ""


def offered_fields(
    action: Action, values: Values, shown: Mapping[str, FieldView]
) -> tuple[OfferedField, ...]:
    """Return every field of a call with the tests that a grant may put to it, narrowest first.

    Args:
        action: that is called.
        values: of the call.
        shown: by key, what the person is shown of each that is there.
    """
    preview = action.approval.preview
    reach = {f"{FETCHED}{label}" for label in (preview.reach if preview else ())}
    labels = {f"{ARGUMENT}{each.name}": each.label or each.name for each in action.inputs}
    keys = sorted(values, key=lambda key: (key not in reach, not key.startswith(FETCHED)))
    return tuple(
        OfferedField(
            key=key,
            field=shown.get(key)
            or FieldView(label=labels.get(key, key.partition(".")[2]), missing=True),
            tests=_tests(action, key, values[key]),
            is_reach=key in reach,
        )
        for key in keys
    )


def is_exact(action: Action) -> bool:
    """Return whether a grant can only be for the very call."""
    return is_builtin(action.name) or action.approval.effect in _EXACT


def text_keys(action: Action) -> frozenset[str]:
    """Return the fields that the file of *action* marks as text."""
    keys = [f"{ARGUMENT}{e.name}" for e in action.inputs if e.multiline or e.format in TEXT_FORMATS]
    preview = action.approval.preview
    if preview is not None:
        formatted = [label for label, name in preview.formats if name in TEXT_FORMATS]
        keys += [f"{FETCHED}{label}" for label in (*preview.multiline, *formatted)]
    return frozenset(keys)


def _reaching(action: Action) -> frozenset[str]:
    """Return the arguments that become the value of a field which says what a call reaches."""
    preview = action.approval.preview
    changes = preview.changes if preview is not None else ()
    reach = preview.reach if preview is not None else ()
    made = {label: template for label, template in changes if label in reach}
    return frozenset(f"{ARGUMENT}{each.path}" for each in references(made) if each.is_argument)


def _tests(action: Action, key: str, value: Value) -> tuple[FieldTest, ...]:
    if value.status == "n/a":
        return (ABSENT,)
    tests = [FieldTest("is", value.items) if value.status == "given" else ABSENT]
    if is_exact(action):
        return tuple(tests)
    is_text, sends = key in text_keys(action), action.approval.effect == "send"
    if not is_text:
        tests += _narrower(value)
    longest = max(map(len, value.items), default=_PLAIN_SIZES[0])
    tests += [FieldTest("plain", (str(size),)) for size in _PLAIN_SIZES if size >= 2 * longest][:1]
    # What is sent is text without links, to whom the person saw; what a field becomes, its argument says.
    to_others = key.startswith(FETCHED) and any("@" in each for each in value.items)
    if not ((sends and (is_text or to_others)) or key in _reaching(action)):
        tests.append(ANY)
    return tuple(each for each in tests if fits(each, value))


def _narrower(value: Value) -> list[FieldTest]:
    found = [FieldTest("only", value.items)] if len(value.items) > 1 else []
    domains = {address(item).rpartition("@")[2] for item in value.items}
    if value.items and "" not in domains:
        found.append(FieldTest("within", tuple(sorted(domains))))
    if len(value.items) == 1 and number(value.items[0]) is not None:
        found.append(FieldTest("at_most", value.items))
    return found


def shapes_offered(
    action: Action, values: Values, fields: Sequence[OfferedField]
) -> tuple[GrantOffer, ...]:
    """Return the shapes that a person may choose, narrowest first."""

    def offer(number: Literal[1, 2, 3], varies: AbstractSet[str]) -> GrantOffer:
        free = ("any", "plain")
        tests = (
            each.tests[-1] if each.key in varies and each.tests[-1].name in free else each.tests[0]
            for each in fields
        )
        return GrantOffer(number=number, tests=tuple(tests))

    offers, texts = [offer(1, frozenset())], text_keys(action)
    if is_exact(action):
        return tuple(offers)
    inputs = {each.key for each in fields if each.key.startswith(ARGUMENT) and each.key in texts}
    if inputs:
        offers.append(offer(2, inputs))
    reach = [each.key for each in fields if each.is_reach]
    if reach and all(values[key].status == "given" for key in reach):
        rest = {key for key in values if values[key].status == "given" or key in texts}
        offers.append(offer(3, rest.difference(reach)))
    return tuple(offers)


def refusal(fields: Sequence[OfferedField], tests: FieldTests, values: Values) -> str:
    """Return why a grant with *tests* cannot be made beside the call with *values*, as a sentence; empty where it can."""
    chosen = dict(tests)
    if [each.key for each in fields] != [key for key, _ in tests]:
        return "Every field of the call needs a test."
    for each in fields:
        test, names = chosen[each.key], {one.name for one in each.tests}
        if test.name not in names | _edited(names):
            return f"{each.key} cannot have the test {test.name}."
        if not is_well_formed(test):
            return f"The values of the test {test.name} of {each.key} are none that it takes."
        if not fits(test, values[each.key]):
            return f"This very call does not match: {each.key}."
    return ""


def _edited(names: AbstractSet[str]) -> set[str]:
    """Return the further tests that a person may write for a field that has those of *names*."""
    return {"only", "within", "like", "at_least", "at_most"} if "any" in names else set()


def cautions(action: Action, fields: Sequence[OfferedField], tests: FieldTests) -> tuple[str, ...]:
    """Return what a grant with *tests* lets through that its owner may not think of, as sentences.

    They quote values of the service, which whoever draws them makes visible.
    """
    chosen, said, texts = dict(tests), list[str](), text_keys(action)
    fixed = [each for each in fields if chosen[each.key].name in ("is", "only", "within")]
    fetched = [each for each in fixed if each.key.startswith(FETCHED)]
    free = [
        chosen[key] for key in texts & chosen.keys() if chosen[key].name in ("any", "plain", "like")
    ]
    if free:
        sizes = [int(test.values[0]) for test in free if test.name == "plain"]
        text = "any text"
        if len(sizes) == len(free):
            text = f"text of up to {max(sizes):,} characters, without links"
        to = "; ".join(
            f"{each.field.label}: {', '.join(chosen[each.key].values)}"
            for each in [e for e in fixed if e.is_reach] or fetched or fixed
        )
        said.append(f"It may write {text}{f' ({to})' if to else ', to whomever the agent names'}.")
    names = [
        each.field.label
        for each in fields
        if chosen[each.key].name == "any" and each.key not in texts
    ]
    if names:
        said.append(f"Anything may stand in {', '.join(names)}.")
    if not fetched:
        said.append("It rests on the agent's word: nothing that was fetched has to stay.")
    return tuple(said)
