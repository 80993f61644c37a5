"""What a person enters for an account: checked, and in the form in which the vault keeps it."""

import json
from dataclasses import dataclass, field

from aileron_core.connectors.manifest import is_aws_region
from aileron_core.errors import InvalidRequest
from aileron_core.vault.secret import Secret

_SHORTEST_SECRET = 8
"""Bytes. A shorter one could not be told from ordinary text in an answer."""
_MAX_SECRET = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSecret:
    """What a person enters for an account: one value, or the two of a password or an AWS key."""

    value: Secret
    user: str = ""
    """The user name of a password; the access key's id of AWS."""
    session_token: Secret | None = field(default=None)
    region: str = ""
    """The one AWS region that the key is for; empty for that of each host."""

    def stored(self, kind: str) -> Secret:
        """Return it as the vault keeps it.

        Raises:
            InvalidRequest: a part is missing, too short, too long, or cannot be sent in a header.
        """
        if kind == "oauth2":
            raise InvalidRequest(
                "An account of kind oauth2 cannot be typed: you log in at its service, in a browser."
            )
        text = self._checked(kind)
        if kind == "api_key":
            return Secret(text)
        if not self.user:
            missing = "the access key's id" if kind == "aws_sigv4" else "the user name"
            raise InvalidRequest(f"An account of kind {kind} needs {missing} too.")
        if kind == "basic":
            return Secret(json.dumps({"user": self.user, "password": text}))
        token = self.session_token
        return Secret(
            json.dumps(
                {
                    "access_key_id": self.user,
                    "secret_access_key": text,
                    **({"session_token": token.reveal_text()} if token else {}),
                }
            )
        )

    def _checked(self, kind: str) -> str:
        size = len(self.value)
        if not _SHORTEST_SECRET <= size <= _MAX_SECRET:
            raise InvalidRequest(
                f"The secret has {size} bytes; it needs {_SHORTEST_SECRET} to {_MAX_SECRET}. A shorter "
                "one could not be found and removed from a service's answers."
            )
        token = b"" if self.session_token is None else self.session_token.reveal()
        if len(token) + len(self.user.encode()) > _MAX_SECRET:
            raise InvalidRequest(
                f"User name and session token are longer than {_MAX_SECRET} bytes together."
            )
        for what, sent in (("secret", self.value.reveal()), ("session token", token)):
            if any(byte < 0x20 or byte > 0x7E for byte in sent):
                raise InvalidRequest(
                    f"The {what} holds a line break or another character that cannot be sent in a header."
                )
        if not self.user.isprintable() or (":" in self.user and kind == "basic"):
            raise InvalidRequest(
                "The user name holds a colon, a line break or a control character."
            )
        if kind == "aws_sigv4" and not self.user.isascii():
            raise InvalidRequest("An access key's id has ASCII characters only.")
        if self.region and kind != "aws_sigv4":
            raise InvalidRequest(f"An account of kind {kind} has no region.")
        if self.region and not is_aws_region(self.region):
            raise InvalidRequest(f"{self.region[:80]!r} is no AWS region, such as eu-west-1.")
        return self.value.reveal_text()
