"""Fully qualified names of connectors, as manifests state them."""

import re
from dataclasses import dataclass

from aileron_core.actions import names

_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")
MAX_NAME_LENGTH = 256
"""Of a name and of a version in a manifest, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fqn:
    """`<scheme>://<owner>/<path>`, in the spelling of the manifest."""

    scheme: str
    owner: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.owner}/{self.path}"

    @classmethod
    def parse(cls, text: str) -> "Fqn":
        """Parse a name without `@version`.

        Raises:
            ValueError: it is malformed; the message says how, for a person to read.
        """
        if len(text) > MAX_NAME_LENGTH:
            raise ValueError(f"is longer than {MAX_NAME_LENGTH} characters")
        scheme, separator, rest = text.partition("://")
        if not separator:
            raise ValueError("must look like local://owner/name")
        if scheme not in names.SCHEMES:
            raise ValueError(f"scheme must be one of {', '.join(names.SCHEMES)}")
        if "@" in rest:
            raise ValueError("must not contain '@': write the version under the key version")
        owner, _, path = rest.partition("/")
        if not owner:
            raise ValueError("has no owner; it must look like local://owner/name")
        if not path:
            raise ValueError("has no name after the owner; it must look like local://owner/name")
        for segment in (owner, *path.split("/")):
            if segment in {"", ".", ".."} or not _SEGMENT.fullmatch(segment):
                raise ValueError("segments may contain only letters, digits and . _ ~ -")
        return cls(scheme=scheme, owner=owner, path=path)
