"""Shapes against a plain reference, on random calls; and what is added to a call, or turned to another, never opens one."""

import os
import random
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

import pytest

from aileron_core.actions.model import Action, Approval, Input, Preview, Step
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.standing import FieldTest, GrantOffer, TestName
from aileron_core.policy.offers import cautions, offered_fields, shapes_offered
from aileron_core.policy.shapes import is_plain, is_within, misfits, restricts
from aileron_core.policy.values import Value, addresses, values_of

CASES: Final = 100_000 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 10_000
WORDS = ("Offer", "v3.5 ok", "a@b.example", "x@evil.example", "see evil.com", "12", "7.5", "-3", "", "/docs/a", "/docs/../etc", "docs/a", "\u202egnp", "e.g. this", "b.example", "https://b.example/x", "https://b.example@evil.com")  # fmt: skip
TESTS: tuple[TestName, ...] = ("is", "only", "within", "like", "at_most", "at_least", "plain", "absent", "any")  # fmt: skip
KEYS = ("args.to", "args.text", "args.n", "fetched.To", "fetched.Name")
MAIL = Action(
    name="send-mail", version="1.0.0", source="local://x/y@1.0.0", requires=(), intent="send",
    inputs=(
        Input(name="to", type="string", description="x", format="addresses"),
        Input(name="body", type="string", description="x", multiline=True),
        Input(name="cc", type="string", description="x", required=False, format="addresses"),
    ),
    steps=(Step(id="send", connector="local://x/y", op="send"),),
    approval=Approval(required=True, effect="send", preview=Preview(op="look", render=(("Known", "known"), ("Bcc", "bcc")), reach=("Known",))),
)  # fmt: skip
NOT_WITHIN = (
    ("acme.example", ["x@acme.example.evil.com", "x@evil-acme.example", "x@\u0430cme.example"]),
    ("acme.example", ["x@sub.acme.example", "https://acme.example@evil.com/", "acme.example\n"]),
    ("acme.example", ["https://acme.example\\@evil.com/", "https://acme.example:443:1/"]),
    ("*.acme.example", ["x@evilacme.example"]),
    ("/docs", ["/docs/../etc/passwd", "/docsx/a", "/docs//etc", "/docs/a\\..\\b"]),
    ("sam@acme.example", ["Sam@acme.example"]),
)


def some_value(pick: random.Random) -> Value:
    status = pick.choice(("given", "given", "given", "none", "n/a", "unreadable"))
    if status != "given":
        return Value(status)
    return Value("given", tuple(pick.choices(WORDS, k=pick.choice((0, 1, 1, 1, 2)))))


def some_test(pick: random.Random) -> FieldTest:
    name = pick.choice(TESTS)
    if name in ("absent", "any"):
        return FieldTest(name)
    if name in ("at_most", "at_least"):
        return FieldTest(name, (pick.choice(("7", "-3.0", "12")),))
    if name == "plain":
        return FieldTest(name, (pick.choice(("1", "5", "2000")),))
    if name == "within":
        return FieldTest(name, (pick.choice(("b.example", "a@b.example", "/docs", "docs/")),))
    if name == "like":
        return FieldTest(name, (pick.choice(("*", "O*r", "*5*", "see *com")),))
    return FieldTest(name, tuple(pick.choices(WORDS, k=pick.choice((1, 2)))))


def expected(test: FieldTest, value: Value) -> bool:
    """Say the same as the module, as the documentation says it, slowly."""
    if value.status == "unreadable":
        return False
    if test.name == "absent":
        return value.status in ("none", "n/a")
    if value.status == "n/a":
        return False
    if value.status == "none":
        return test.name in ("any", "only", "plain")
    if test.name == "any":
        return True
    if test.name == "is":
        return list(value.items) == list(test.values)
    if test.name == "only":
        return all(item in test.values for item in value.items)
    if not value.items:
        return False
    return all(one_expected(test, item) for item in value.items)


def one_expected(test: FieldTest, item: str) -> bool:
    (first,) = test.values
    if test.name in ("at_most", "at_least"):
        try:
            found = float(item)
        except ValueError:
            return False
        return found <= float(first) if test.name == "at_most" else found >= float(first)
    if test.name == "like":
        return "\u202e" not in item and fnmatchcase(item, first)
    if test.name == "plain":
        links = ("@", "evil.com", "b.example", "\u202e")
        return len(item) <= int(first) and not any(each in item for each in links)
    inside = {
        "b.example": ("a@b.example", "b.example", "https://b.example/x"),
        "a@b.example": ("a@b.example",),
        "/docs": ("/docs/a",),
        "docs/": ("docs/a",),
    }
    return item in inside[first]


def test_a_shape_is_what_its_reference_says() -> None:
    pick = random.Random(1)
    for _ in range(CASES):
        values = {key: some_value(pick) for key in pick.sample(KEYS, k=pick.randint(1, 5))}
        shape = {key: some_test(pick) for key in pick.sample(KEYS, k=pick.randint(0, 4))}
        wrong = [k for k, v in values.items() if not expected(shape.get(k, FieldTest("absent")), v)]
        gone = {key: Value("none" if key.startswith("args.") else "n/a") for key in KEYS}
        wrong += [k for k in shape if k not in values and not expected(shape[k], gone[k])]
        assert list(misfits(shape, values)) == wrong, (shape, values)


def test_what_is_added_to_a_call_never_opens_a_shape() -> None:
    pick = random.Random(2)
    for _ in range(CASES):
        values = {key: some_value(pick) for key in KEYS[:3]}
        shape = {key: some_test(pick) for key in KEYS[:3]}
        before = misfits(shape, values)
        added = {**values, "args.bcc": Value("given", (pick.choice(WORDS),))}
        assert "args.bcc" in misfits(shape, added)
        key = pick.choice(KEYS[:3])
        spoilt = {**values, key: Value("unreadable", values[key].items)}
        assert {*before, key} <= {*misfits(shape, spoilt)}
        if values[key].items:
            twice = replace(values[key], items=(*values[key].items, "x@evil.example"))
            opened = key in before and key not in misfits(shape, {**values, key: twice})
            assert not opened or shape[key].name == "is", (shape[key], twice)


def shaped_call(known: str = "yes", bcc: str = "", **args: str) -> dict[str, Value]:
    fields = [FieldView(label=name, value=value) for name, value in args.items()]
    gone = FieldView(label="Bcc", value=bcc, missing=not bcc)
    shown = (FieldView(label="Known", value=known), gone)
    return dict(values_of(MAIL, fields, PreviewView(status="ready", fields=shown)))


@pytest.mark.parametrize(
    "changed",
    [
        shaped_call(bcc="x@evil.example", to="Sam <sam@acme.example>", body="Hi"),
        shaped_call(known="no", to="sam@acme.example", body="Hi"),
        shaped_call(to="sam@acme.example", body="Hi, see evil.com"),
        shaped_call(to="sam@acme.example", body="Hi\u2063"),
        shaped_call(to="sam@acme.example", body="x" * 300),
        shaped_call(to="sam@acme.example", body="Hi", cc="x@evil.example"),
        shaped_call(to="sam@acme.example", body="Hi", more="x"),
        shaped_call(to="not an address", body="Hi"),
    ],
)
def test_the_widest_mail_grant_lets_through_only_what_was_meant(changed: dict[str, Value]) -> None:
    made = shaped_call(to="sam@acme.example", body="Hello")
    fields = offered_fields(MAIL, made, {})
    for offer in shapes_offered(MAIL, made, fields):
        shape = {each.key: test for each, test in zip(fields, offer.tests, strict=True)}
        assert not misfits(shape, made)
        assert misfits(shape, changed)


@pytest.mark.parametrize(("place", "text"), [(p, each) for p, all_ in NOT_WITHIN for each in all_])
def test_what_only_looks_as_if_it_were_within_is_not(place: str, text: str) -> None:
    assert not is_within(place, text)


@pytest.mark.parametrize(
    "text",
    ["a@b.example, , c@d.example", "a@b.example;c@d.example", '"x <a@b.example>', "a@b.example\r\nBcc: c@d.example", "a@b.example <c@d.example>", "a@b..example", "a@-b.example", "a@b.example,",
     *(" " * 65_536, "a b " * 16_000, '" ' * 32_000, "<a" * 32_000)],  # which must not take long
)  # fmt: skip
def test_a_list_of_addresses_that_two_programs_might_read_differently_is_none(text: str) -> None:
    assert addresses(text) == ()


def test_what_a_rule_denies_is_denied_in_any_case_and_beside_others_65_fields_fit_nothing() -> None:
    shape = {"args.to": FieldTest("within", ("evil.example",))}
    assert restricts(shape, {"args.to": Value("given", ("a@b.example", "x@Evil.example"))})
    for odd in ("x@evil.example, b@b.example", "X <x@evil.example>"):
        assert restricts(shape, {"args.to": Value("given", (odd,))})
    for odd in ("Mallory \u2039x@evil.example\u203a", "x@evil.example;b@b.example", "y" * 70_000):
        assert restricts(shape, {"args.to": Value("given", (odd,))}) is None
    assert restricts(shape, {"args.to": Value("unreadable")}) is None
    assert restricts(shape, {"args.to": Value("given", ("{}",), is_json=True)}) is None
    assert restricts(shape, {"args.to": Value("none")}) is False
    values = {f"args.{n}": Value("none") for n in range(65)}
    assert misfits({}, values)
    assert restricts({}, values) is None


@pytest.mark.parametrize(
    ("test", "sure", "unsure"),
    [
        (FieldTest("at_least", ("1000",)), ("1000.5",), ("1e+31", "+5000", "5,000", "9" * 32)),
        (FieldTest("like", ("*password*",)), ("the\nPassword is",), ("pass\u200bword",)),
        (FieldTest("within", ("/secret",)), ("/secret/a",), ("/a/../secret/a", "/secret//a")),
        (FieldTest("is", ("Anna <a@x.example>",)), ("a@x.example", "A@X.example"), ()),
        (FieldTest("absent"), (), ()),
    ],
)
def test_what_a_rule_denies_and_cannot_read_is_asked_about(
    test: FieldTest, sure: tuple[str, ...], unsure: tuple[str, ...]
) -> None:
    for text in sure:
        assert restricts({"args.x": test}, {"args.x": Value("given", (text,))}), text
    for text in unsure:
        assert restricts({"args.x": test}, {"args.x": Value("given", (text,))}) is None, text
    assert restricts({"args.x": test}, {}) is (test.name == "absent")


def test_plain_text_holds_nothing_that_becomes_a_link_however_it_is_written() -> None:
    for dot in (".", "\u3002", "\uff0e", "\uff61", "\u2024", "\ufe52"):
        assert not is_plain(f"see evil{dot}com now", 100), hex(ord(dot))
    links = ('<a href="http:\n/\n/evil.\ncom">', '<a href="http:3405803777">', "[Pay](\\/\\/1)")
    odd = ("a\uff20b", "//evil", "1.2.3.4", "&#46;", "&period;", "javascript:x", "a\u200bb")
    for text in (*links, "evil.\u092d\u093e", *odd):
        assert not is_plain(text, 100), text
    assert is_plain("Hi Sam,\n\nthe offer (3.5 %) stands until 12:30: thanks!\n\tAna", 100)


def test_a_grant_says_to_whom_it_writes_and_where_it_rests_on_the_agents_word() -> None:
    made = shaped_call(to="sam@acme.example", body="Hello")
    fields = offered_fields(MAIL, made, {})
    first, _, widest = shapes_offered(MAIL, made, fields)

    def said(offer: GrantOffer, **changed: FieldTest) -> tuple[str, ...]:
        pairs = zip((each.key for each in fields), offer.tests, strict=True)
        tests = tuple((key, changed.get(key.partition(".")[2], test)) for key, test in pairs)
        return cautions(MAIL, fields, tests)

    assert said(first) == ()
    text = "It may write text of up to 200 characters, without links (Known: yes)."
    assert said(widest) == (text, "Anything may stand in to.")
    nobody = said(widest, Known=FieldTest("any"), body=FieldTest("like", ("*",)))
    assert nobody[0] == "It may write any text, to whomever the agent names."
    assert nobody[-1] == "It rests on the agent's word: nothing that was fetched has to stay."
