"""Every kind of the console's port survives its codec unchanged, and nothing else is read as one."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aileron_core.console_port.codec import (
    event_from_frame,
    from_json,
    intent_from_frame,
    to_frame,
    to_json,
)
from aileron_core.console_port.events import CoreEvent, Snapshot
from aileron_core.console_port.intents import Intent
from aileron_core.vault.secret import Secret
from tests.support.any_values import values

INTENTS: tuple[type, ...] = get_args(Intent)
EVENTS: tuple[type, ...] = get_args(CoreEvent)
NAMED: Mapping[str, type[Any]] = {each.__name__: each for each in INTENTS}


@pytest.mark.parametrize("kind", [*INTENTS, *EVENTS, Snapshot])
@settings(max_examples=10)
@given(data=st.data())
def test_every_kind_survives_and_a_wrong_field_is_refused(kind: type, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    sent = json.loads(json.dumps(to_json(value)))
    assert from_json(kind, sent) == value
    assert from_json(kind, {**sent, "later": 1}) == value
    if kind is not Snapshot:
        frame = json.loads(json.dumps(to_frame(value)))
        read: Any = intent_from_frame(frame, NAMED) if kind in INTENTS else event_from_frame(frame)
        assert read == value
    for name, hint in get_type_hints(kind).items():
        wrong: list[Any] = [[[[]]]]
        if not {str, Secret} & {hint, *get_args(hint)}:
            wrong.append("no such word")
        for each in wrong:
            with pytest.raises(ValueError, match=r"^[\w\s()]*$") as refused:
                from_json(kind, {**sent, name: each})
            assert "no such word" not in str(refused.value)


@given(st.text(max_size=5), st.dictionaries(st.text(max_size=5), st.integers(), max_size=2))
def test_a_frame_is_of_one_known_kind_and_has_its_fields_alone(name: str, more: Any) -> None:
    fields = {"passphrase": "canary"}
    frame = {"UnlockVault": fields}
    wrong = [{}, {name: fields}, {**frame, name: fields}, {"UnlockVault": more}, {"UnlockVault": 1}]
    wrong += [{"UnlockVault": {**fields, key: 1}} for key in more]
    wrong += [{"UnlockVault": {"passphrase": each}} for each in ("\ud800", "x" * 16_385)]
    for each in wrong:
        with pytest.raises(ValueError, match=r"^[\w\s,']*$"):
            intent_from_frame(each, NAMED)


def test_no_event_has_a_secret() -> None:
    def inside(hint: Any, seen: set[Any]) -> Iterator[Any]:
        if hint in seen:
            return
        seen.add(hint)
        yield hint
        try:
            hints = list(get_type_hints(hint).values()) if isinstance(hint, type) else []
        except TypeError:
            hints = []
        for each in (*get_args(hint), *hints):
            yield from inside(each, seen)

    seen: set[Any] = set()
    found = {each for kind in (*EVENTS, Snapshot) for each in inside(kind, seen)}
    assert str in found
    assert Secret not in found
