"""What a digest covers: every member of it, and nothing else."""

import hashlib
import json
from dataclasses import replace
from importlib import resources

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aileron_core.actions.model import ConnectorIdentity
from aileron_core.canonical import Json
from aileron_core.hash_words import three_words, words_list
from aileron_core.runs.digest import Consent, ConsentStep, consent_digest, preview_digest
from tests.support.any_values import json_values

CONSENT = Consent(
    action="send-draft",
    action_sha256="a" * 64,
    connectors=[ConnectorIdentity(fqn="local://aileron/mail", version="0.1.0", hash="sha256:" + "b" * 64)],
    steps=[ConsentStep(id="send", connector="local://aileron/mail", op="send", inputs={"id": "r-1"})],
    args={"draft_id": "r-1", "count": 3},
    hosts=["b.example:443", "a.example:443"],
    accounts=(),
    preview="c" * 64,
    expires_at="2026-10-08T14:32:00.000Z",
    nonce="d" * 32,
)  # fmt: skip

FROZEN = "7a053c4fd3da6db3e43c2e75afdb6907074c56ac0674f6dec47a9dafd93a2168"
"""SHA-256 of the words of list 2, joined by blanks."""

LISTED = resources.files("aileron_core").joinpath("words.txt").read_text("ascii").split()
JSON = json_values(st.text(max_size=8), st.integers(-(2**53) + 1, 2**53 - 1))


def _reference(consent: Consent) -> bytes:
    """docs/wire.md#digest, written down once more without our canonical text (ASCII keys sort alike)."""
    body = {
        "v": 1,
        "action": {"name": consent.action, "sha256": consent.action_sha256},
        "connectors": [
            {"fqn": c.fqn, "version": c.version, "hash": c.hash} for c in consent.connectors
        ],
        "steps": [
            {"id": s.id, "connector": s.connector, "op": s.op, "inputs": s.inputs}
            for s in consent.steps
        ],
        "args": consent.args,
        "hosts": sorted(consent.hosts),
        "binding": list(consent.accounts) or None,
        "preview": consent.preview,
        "expires_at": consent.expires_at,
        "nonce": consent.nonce,
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).digest()


def test_the_digest_is_what_wire_says() -> None:
    digest, words = consent_digest(CONSENT)
    raw = _reference(CONSENT)
    assert digest == raw.hex()
    number = int.from_bytes(raw, "big") >> (256 - 33)
    old = (LISTED[number >> 22], LISTED[number >> 11 & 2047], LISTED[number & 2047])
    assert all(now in (_neutral(word), word) for now, word in zip(words, old, strict=True))
    assert words_list(digest, words) == 2


def _digest_at(first: int) -> bytes:
    return ((first << 22 | first << 11 | first) << 31).to_bytes(8, "big")


def _neutral(word: str) -> str:
    return three_words(_digest_at(LISTED.index(word)))[0]


def test_no_new_word_reads_as_a_verdict() -> None:
    """ "Head of the audit chain: wheel · broken" said that the chain was broken."""
    now = [three_words(_digest_at(place))[0] for place in range(2048)]
    verdicts = "broken valid trust danger safe wrong error intact verify false true alarm confirm"
    assert not {*verdicts.split()} & {*now}
    assert {*verdicts.split()} <= {*LISTED}  # so old records still can be read by their list
    assert len({word[:4] for word in now}) == 2048
    assert all(4 <= len(word) <= 7 and word.isalpha() for word in now)
    assert sum(old != new for old, new in zip(LISTED, now, strict=True)) < 150
    whole = hashlib.sha256(" ".join(now).encode()).hexdigest()
    assert whole == FROZEN, "a list that records name never changes: make another"


def test_stored_words_are_told_by_the_list_they_are_from() -> None:
    """Words of a call that waited while an older Aileron ran stay as they were displayed."""
    at = LISTED.index("broken")
    digest = _digest_at(at)
    assert words_list(digest.hex(), three_words(digest)) == 2
    assert words_list(digest.hex(), ("broken", "broken", "broken")) == 1
    assert words_list("not hex", ("broken", "broken", "broken")) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(CONSENT, action="send-drafts"),
        replace(CONSENT, action_sha256="a" * 63 + "b"),
        replace(CONSENT, connectors=[replace(CONSENT.connectors[0], hash="sha256:" + "c" * 64)]),
        replace(CONSENT, connectors=[replace(CONSENT.connectors[0], version="0.1.1")]),
        replace(CONSENT, connectors=[replace(CONSENT.connectors[0], fqn="local://x/mail")]),
        replace(CONSENT, steps=[replace(CONSENT.steps[0], op="delete")]),
        replace(CONSENT, steps=[replace(CONSENT.steps[0], inputs={"id": "r-2"})]),
        replace(CONSENT, steps=[*CONSENT.steps, CONSENT.steps[0]]),
        replace(CONSENT, args={"draft_id": "r-1", "count": 4}),
        replace(CONSENT, args={"draft_id": "r-1"}),
        replace(CONSENT, hosts=["b.example:443", "a.example:444"]),
        replace(CONSENT, accounts=({"name": "api_key/mail/anna"},)),
        replace(CONSENT, preview="none"),
        replace(CONSENT, preview="unavailable"),
        replace(CONSENT, expires_at="2026-10-08T14:32:00.001Z"),
        replace(CONSENT, expires_at=None),
        replace(CONSENT, preview_reads=["GraphQL queries at a.example/graphql"]),
        replace(CONSENT, preview_reads=["unchecked requests of a to a.example/read"]),
        replace(CONSENT, nonce="d" * 31 + "e"),
    ],
)
def test_each_member_changes_the_digest(other: Consent) -> None:
    assert consent_digest(other)[0] != consent_digest(CONSENT)[0]


def test_the_order_of_hosts_and_arguments_does_not_matter() -> None:
    hosts = ["a.example:443", "b.example:443"]
    turned = replace(CONSENT, hosts=hosts, args={"count": 3, "draft_id": "r-1"})
    assert consent_digest(turned) == consent_digest(CONSENT)


def test_integers_that_readers_disagree_on_are_refused_in_arguments() -> None:
    with pytest.raises(ValueError, match=r"2|safe|integer|range"):
        consent_digest(replace(CONSENT, args={"count": 2**53 + 1}))


def test_integers_of_a_preview_are_told_apart_exactly() -> None:
    """A reader of doubles would take these for equal; a preview's digest does not."""
    assert preview_digest({"n": 2**53 + 1}) != preview_digest({"n": 2**53 + 2})
    assert preview_digest({"n": 1}) != preview_digest({"n": "1"})
    assert preview_digest({"n": True}) != preview_digest({"n": 1})


@given(JSON, JSON)
def test_previews_have_different_digests_if_they_differ(before: Json, after: Json) -> None:
    """The same answer of the service never counts as a difference."""
    assert preview_digest(json.loads(json.dumps(before))) == preview_digest(before)
    assume(json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True))
    assert preview_digest(before) != preview_digest(after)
