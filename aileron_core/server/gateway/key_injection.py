"""A provider's key from the vault, put into a request where the agent sent a placeholder for it.

Only in the header in which that provider expects its key, only on the paths that models are asked at, only
over https to the address that the key was stored for. What comes back is searched for the key.
"""

import hmac
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aileron_core.connectors.http.scrubber import spellings_of
from aileron_core.credentials.model_keys import ModelKeys
from aileron_core.credentials.upstreams import Provider, Upstream
from aileron_core.errors import AileronError, VaultLocked
from aileron_core.ids import token_hash
from aileron_core.server.gateway.client import Framing
from aileron_core.server.gateway.client_request import ClientRequest
from aileron_core.server.gateway.forwarding import Forwarding
from aileron_core.server.gateway.providers import GatewayError, Header
from aileron_core.sessions.model import Session
from aileron_core.sessions.traffic import GatewayRequest, TrafficMeter

LOCKED: Final = (
    "The vault is locked, and model requests of this session need it. A person has to unlock it in the "
    "Aileron console, or with `aileron vault unlock`. Then try again."
)
_HEADERS: Mapping[Provider, tuple[bytes, bytes]] = {
    "anthropic": (b"x-api-key", b""),
    "openai": (b"authorization", b"Bearer "),
    "gemini": (b"x-goog-api-key", b""),
}
"""The header in which a provider expects its key, and what stands before the key."""
_MODEL: Final = rb"[A-Za-z0-9][A-Za-z0-9._-]*"
_PATHS: Mapping[Provider, Mapping[bytes, re.Pattern[bytes]]] = {
    "anthropic": {
        b"POST": re.compile(rb"/v1/(messages(/count_tokens)?|complete)"),
        b"GET": re.compile(rb"/v1/models(/%b)?" % _MODEL),
    },
    "openai": {
        b"POST": re.compile(rb"/v1/(responses(/compact)?|chat/completions|completions|embeddings)"),
        b"GET": re.compile(rb"/v1/models(/%b(:[A-Za-z0-9._-]*)*)?" % _MODEL),  # ft:gpt-4o:me::id
    },
    "gemini": {
        b"POST": re.compile(
            rb"/v1(alpha|beta)?/models/%b:(generateContent|streamGenerateContent|countTokens"
            rb"|embedContent|batchEmbedContents)" % _MODEL
        ),
        b"GET": re.compile(rb"/v1(alpha|beta)?/models(/%b)?" % _MODEL),
    },
}
"""The paths that models are asked at, by method. Not the others of a provider's API: with the same key they
read and delete files, batches, stored answers and tuned models."""
_NOT_SENT: Final = frozenset((b"accept-encoding", b"range", b"if-range"))
"""An answer that is compressed or in parts cannot be searched."""
_PLAIN: Final[Mapping[bytes, tuple[bytes, ...]]] = {
    b"content-encoding": (b"", b"identity"),
    b"transfer-encoding": (b"", b"identity", b"chunked"),
}
_KEY_CHARACTERS: Final = b"%+-./=\\_~" + string.ascii_letters.encode() + string.digits.encode()
"""What providers' keys are made of, and what encodes them."""
_OTHER_METHOD: Final = frozenset(
    (b"x-http-method-override", b"x-http-method", b"x-method-override")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRequest:
    """A request that carries a provider's key."""

    headers: list[Header] = field(repr=False)
    key: bytes = field(repr=False)


def with_key(
    client: ClientRequest,
    path: bytes,
    *,
    session: Session,
    provider: Provider,
    upstream: Upstream,
    keys: ModelKeys,
) -> KeyedRequest | None:
    """Return the request with the key in place of the session's placeholder; None where it has none there.

    Args:
        path: behind our prefix, without the query.

    Raises:
        GatewayError: the key must not be sent with this request, or the vault is locked.
    """
    if not any(_is_placeholder(each, provider, session) for each in client.headers):
        return None
    if provider not in session.terms.key_providers:
        raise GatewayError("forbidden", f"This session may not use the vault's key for {provider}.")
    _check_request(client, path, provider)
    if upstream.scheme != "https":
        raise GatewayError("forbidden", f"{upstream.url} is not https, so no key is sent there.")
    try:
        secret = keys.get(provider, upstream.url)
    except VaultLocked:
        raise GatewayError("locked", LOCKED) from None
    except AileronError:
        raise GatewayError(
            "forbidden",
            f"The vault has no key for {provider} at {upstream.url}. A person has to store it with "
            f"`aileron gateway key set {provider}`.",
        ) from None
    key = secret.reveal()
    secret.wipe()
    headers = [
        (each[0], _HEADERS[provider][1] + key) if _is_placeholder(each, provider, session) else each
        for each in client.headers
        if each[0].lower() not in _NOT_SENT
    ]
    return KeyedRequest(headers=[*headers, (b"Accept-Encoding", b"identity")], key=key)


def _is_placeholder(header: Header, provider: Provider, session: Session) -> bool:
    name, before = _HEADERS[provider]
    value = header[1].strip(b" \t")
    if header[0].lower() != name or value[: len(before)].lower() != before.lower():
        return False
    offered = token_hash(value[len(before) :].strip(b" \t").decode("latin-1"))
    return hmac.compare_digest(offered, session.placeholder_hash)


def _check_request(client: ClientRequest, path: bytes, provider: Provider) -> None:
    """Raise unless *client* asks a model, and no reader could take it for another request."""
    pattern = _PATHS[provider].get(client.method)
    if pattern is None or not pattern.fullmatch(path):
        raise GatewayError(
            "forbidden",
            "The vault's key is sent with requests to models only. This path needs a key of your own.",
        )
    names = [name.lower() for name, _ in client.headers]
    codings = [
        value.strip() for name, value in client.headers if name.lower() == b"transfer-encoding"
    ]
    lengths = [value.strip() for name, value in client.headers if name.lower() == b"content-length"]
    if (
        client.upgrade
        or not _OTHER_METHOD.isdisjoint(names)
        or len(lengths) + len(codings) > 1
        or not all(each.isdigit() for each in lengths)
        or not all(each.lower() == b"chunked" for each in codings)
    ):
        raise GatewayError(
            "invalid",
            "The vault's key is not sent with an Upgrade, another method in a header, or a body whose "
            "length is stated in an unusual way.",
        )


class StreamMask:
    """Overwrites what encodes a secret in a stream with asterisks, so that its length stays.

    Letters, digits and the like at the end are kept back until more comes, whether or not they begin a
    spelling: who has the provider echo guesses would otherwise see in the sizes of the pieces which are right.
    """

    def __init__(self, secret: bytes) -> None:
        # Longest first, so that no spelling leaves a part of a longer one.
        spellings = {each for each in spellings_of(secret) if each}
        self._spellings = sorted(spellings, key=lambda each: (-len(each), each))
        self._characters = bytes({*_KEY_CHARACTERS, *b"".join(spellings)})
        self._most = max(map(len, spellings), default=1) - 1
        self._kept = b""

    def mask(self, data: bytes) -> bytes:
        """Return *data*, which is whole, without the secret."""
        for spelling in self._spellings:
            if spelling in data:
                data = data.replace(spelling, b"*" * len(spelling))
        return data

    def feed(self, data: bytes) -> bytes:
        """Return what can be passed on, now that *data* came."""
        data = self.mask(self._kept + data)
        end = data[max(len(data) - self._most, 0) :]
        kept = len(end) - len(end.rstrip(self._characters))
        self._kept = data[len(data) - kept :]
        return data[: len(data) - kept]

    def rest(self) -> bytes:
        """Return what was kept back; the stream has ended."""
        rest, self._kept = self._kept, b""
        return rest


class KeyedForwarding(Forwarding):
    """Forwards the answer of a request that carried a key, without the key."""

    def __init__(
        self, client: ClientRequest, passing: GatewayRequest, traffic: TrafficMeter, key: bytes
    ) -> None:
        super().__init__(client, passing, traffic)
        self._mask = StreamMask(key)
        self.encoded = False
        """The answer was compressed, although that was not asked for; nothing of it was passed on."""

    def head(self, status: int, reason: bytes, headers: list[Header], framing: Framing) -> None:
        if framing != "none" and is_encoded(headers):
            self.encoded = True
            if self._connection is not None:
                self._connection.drop()
            self._settle("unanswered")
            return
        super().head(status, self._mask.mask(reason), self._masked(headers), framing)

    def body(self, data: bytes) -> None:
        if passed := self._mask.feed(data):
            super().body(passed)

    def end(self, trailers: list[Header], *, reusable: bool) -> None:
        if rest := self._mask.rest():
            super().body(rest)
            self.flush()
        super().end(self._masked(trailers), reusable=reusable)

    def _masked(self, headers: Iterable[Header]) -> list[Header]:
        return [(self._mask.mask(name), self._mask.mask(value)) for name, value in headers]


def is_encoded(headers: Iterable[Header]) -> bool:
    """Return whether a request or an answer with these headers is compressed."""
    return any(
        value.strip().lower() not in _PLAIN.get(name.lower(), (value.strip().lower(),))
        for name, value in headers
    )
