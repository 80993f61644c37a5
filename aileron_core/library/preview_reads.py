"""What a person accepted that a connector's previews read by POST: pins of the connector's digest."""

from collections.abc import Iterable
from typing import Final

from aileron_core.library.acceptance import AcceptanceRecord

__all__ = ["KIND", "accepted_reads", "reads_of"]

KIND: Final = "preview"
"""The kind of these pins."""


def reads_of(pins: Iterable[AcceptanceRecord], ref: str) -> list[AcceptanceRecord]:
    """Return the pins of *pins* that are about reads of the connector *ref*, whatever its bytes."""
    return [pin for pin in pins if pin.kind == KIND and pin.name.startswith(f"{ref} ")]


def accepted_reads(pins: Iterable[AcceptanceRecord], ref: str, digest: str) -> dict[str, str]:
    """Return what the connector *ref* with exactly *digest* may read by POST, and who accepted each.

    A connector that is not taken in itself may read nothing.
    """
    found = list(pins)
    if not any((pin.kind, pin.name, pin.digest) == ("connector", ref, digest) for pin in found):
        return {}
    return {
        pin.name.removeprefix(f"{ref} "): pin.taken_by
        for pin in reads_of(found, ref)
        if pin.digest == digest
    }
