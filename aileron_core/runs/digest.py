"""The digest of everything that a person's approval covers, and the three words that stand for it. Pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from aileron_core.actions.model import ConnectorIdentity
from aileron_core.canonical import Json, JsonObject, canonical, encode_large_integers
from aileron_core.hash_words import three_words


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentStep:
    """One step, `${args.x}` filled in, `${step.y}` as written."""

    id: str
    connector: str
    op: str
    inputs: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """Everything that one approval covers."""

    action: str
    action_sha256: str
    connectors: Sequence[ConnectorIdentity]
    steps: Sequence[ConsentStep]
    args: JsonObject
    hosts: Sequence[str]
    accounts: Sequence[JsonObject]
    """What the calls' bindings are, in the order of the connectors."""
    preview: str
    """`preview_digest` of the whole output, `none` or `unavailable`."""
    expires_at: str | None
    preview_reads: Sequence[str] = ()
    """What the preview was allowed to read by POST."""
    wall_seconds: int | None = None
    """How long it may run, where that was accepted beside the file, which does not say it."""
    nonce: str
    """16 secret random bytes as hex; never shown to the agent, so that words and digest cannot be guessed."""


def preview_digest(output: Json) -> str:
    return hashlib.sha256(canonical(encode_large_integers(output))).hexdigest()


def consent_digest(consent: Consent) -> tuple[str, tuple[str, str, str]]:
    """Return the digest as hex, and the three words that stand for it.

    Raises:
        ValueError: an integer beyond 2^53 is in the arguments.
    """
    body: dict[str, Json] = {
        "v": 1,
        "action": {"name": consent.action, "sha256": consent.action_sha256},
        "connectors": [
            {"fqn": part.fqn, "version": part.version, "hash": part.hash}
            for part in consent.connectors
        ],
        "steps": [
            {"id": step.id, "connector": step.connector, "op": step.op, "inputs": step.inputs}
            for step in consent.steps
        ],
        "args": consent.args,
        "hosts": sorted(consent.hosts),
        "binding": list[Json](consent.accounts) or None,
        "preview": consent.preview,
        "expires_at": consent.expires_at,
        "nonce": consent.nonce,
    }
    if consent.preview_reads:
        body["preview_reads"] = sorted(consent.preview_reads)
    if consent.wall_seconds is not None:
        body["wall_seconds"] = consent.wall_seconds
    raw = hashlib.sha256(canonical(body)).digest()
    return raw.hex(), three_words(raw)
