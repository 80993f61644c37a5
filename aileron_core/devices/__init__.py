"""A person's other devices: how each is paired, and what it signs."""

from typing import Literal, TypeAlias

DeviceKind: TypeAlias = Literal["page", "console"]
