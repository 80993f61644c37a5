"""Which reads by POST were accepted of a connector, by its digest, and by whom; when unchecked ones count."""

from collections.abc import Iterable
from typing import Final

from aileron_core.actions.model import Action, ConnectorIdentity
from aileron_core.connectors.read_names import unchecked_op
from aileron_core.library.acceptance import AcceptanceRecord

KIND: Final = "preview"
"""The kind of such an acceptance."""


def reads_of(records: Iterable[AcceptanceRecord], ref: str) -> list[AcceptanceRecord]:
    """Return those of *records* that are about reads of the connector *ref*, whatever its bytes."""
    return [each for each in records if each.kind == KIND and each.name.startswith(f"{ref} ")]


def accepted_reads(records: Iterable[AcceptanceRecord], ref: str, digest: str) -> dict[str, str]:
    """Return what the connector *ref* with exactly *digest* may read by POST, and who accepted each.

    A connector that is not accepted itself may read nothing.
    """
    found = list(records)
    if not any((each.kind, each.name, each.digest) == ("connector", ref, digest) for each in found):
        return {}
    return {
        each.name.removeprefix(f"{ref} "): each.accepted_by
        for each in reads_of(found, ref)
        if each.digest == digest
    }


def why_not_counted(read: str, identity: ConnectorIdentity, actions: Iterable[Action]) -> str:
    """Return why *read* of a connector does not count, as a sentence; empty where it does.

    Unchecked requests count only of an op that an accepted action declares idempotent of exactly
    these bytes, and that no accepted action gates.

    Args:
        read: as `posted_reads` names it.
        identity: the connector's.
        actions: those that are accepted and have no errors.
    """
    op = unchecked_op(read)
    declared = not op
    for action in actions:
        steps = [each for each in action.steps if (each.connector, each.op) == (identity.fqn, op)]
        if steps and action.gated:
            return f"It does not count: the gated action {action.name} has the op {op}."
        pinned = (identity.fqn, identity.hash) in {
            (each.fqn, each.hash) for each in action.requires
        }
        declared |= pinned and any(each.idempotent is True for each in steps)
    return "" if declared else f"It does not count: no accepted action declares {op} idempotent."


def reads_gated_by(
    records: Iterable[AcceptanceRecord], actions: Iterable[Action]
) -> list[AcceptanceRecord]:
    """Return those of *records* that let an op send unchecked requests which one of *actions* gates."""
    gated = {(step.connector, step.op) for each in actions if each.gated for step in each.steps}
    return [each for each in records if each.kind == KIND and _connector_and_op(each.name) in gated]


def _connector_and_op(name: str) -> tuple[str, str]:
    ref, _, read = name.partition(" ")
    return ref.rpartition("@")[0], unchecked_op(read)
