"""Whatever is changed of a signed decision on its way, nothing but the decision itself is read."""

import json
import random
from typing import Any

from aileron_core.devices.signed import Decision, SignedDecision
from tests.support.paired_devices import new_key, point_of, sign

DECISION: dict[str, Any] = {
    "home": "/home/ana/.aileron", "approval": "act-20261129T120000-0123456789abcdef",
    "digest": "ab" * 32, "shown": "cd" * 32, "verdict": "deny", "reason": "ef" * 32, "unseen": 3,
    "device": "dev-0123456789abcdef", "at": 1_796_000_000_000,
}  # fmt: skip
MUTATIONS = 100_000
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**53, 2**53 - 1, 1.0, 1e300, "", "approve", "deny", "Deny", "\ud800",
    "\u202e", "x" * 5000, [], {}, ["deny"], "ab" * 32, "AB" * 32,
)  # fmt: skip


def mutated(draw: random.Random, text: str, signature: str) -> tuple[Any, str]:
    """Return a decision and its signature as they might arrive, changed in one of many ways."""
    kind = draw.randrange(6)
    if kind == 0:  # one character of the text
        at = draw.randrange(len(text))
        text = text[:at] + chr(draw.randrange(32, 127)) + text[at + 1 :]
    elif kind == 1:  # one digit of the signature
        at = draw.randrange(len(signature))
        signature = signature[:at] + draw.choice("0123456789abcdef") + signature[at + 1 :]
    try:
        decision: Any = json.loads(text)
    except ValueError:
        return text, signature
    if not isinstance(decision, dict):
        return decision, signature
    if kind == 2:
        decision[draw.choice([*decision])] = draw.choice(_VALUES)
    elif kind == 3:
        del decision[draw.choice([*decision])]
    elif kind == 4:
        decision[draw.choice(("more", "Verdict", "remember", ""))] = draw.choice(_VALUES)
    elif kind == 5:
        first, second = draw.sample([*decision], 2)
        decision[first], decision[second] = decision[second], decision[first]
    return decision, signature


def test_of_100_000_changed_decisions_none_is_another_one_that_holds() -> None:
    """Each is refused as unreadable or unsigned, or is word for word what was signed."""
    key = new_key()
    point, signed = point_of(key), Decision.from_json(dict(DECISION))
    text, signature = json.dumps(DECISION), sign(key, signed.text()).hex()
    assert SignedDecision(decision=signed, key=point, signature=bytes.fromhex(signature)).holds
    draw, read, held = random.Random(32), 0, 0
    for _ in range(MUTATIONS):
        changed, mark = mutated(draw, text, signature)
        try:
            decision = Decision.from_json(changed)
        except ValueError:
            continue
        read += 1
        if decision == signed and mark == signature:
            held += 1  # what was changed was a blank, or put back
            continue
        found = SignedDecision(decision=decision, key=point, signature=bytes.fromhex(mark))
        assert not found.holds, changed
    assert MUTATIONS / 5 < read < MUTATIONS
    assert held < read / 4
