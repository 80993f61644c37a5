"""Which reads by POST were accepted of a connector, by its digest, and by whom."""

from collections.abc import Iterable
from typing import Final

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
