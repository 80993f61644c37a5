"""AWS Signature Version 4, as headers of a request. Checked against the vectors that AWS publishes."""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from posixpath import normpath
from urllib.parse import quote, unquote_to_bytes

from aileron_core.connectors.manifest import aws_region_of_host
from aileron_core.connectors.protocol import RequestToSign
from aileron_core.vault.secret import Secret

_UNRESERVED = "-_.~"
_NOT_SIGNED = frozenset({"user-agent", "accept-encoding", "authorization", "content-length"})
"""What the client or a proxy may set or change after the signature."""
_SPACES = re.compile(r" +")


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsKeys:
    """An access key; `session_token` where it is a temporary one."""

    access_key_id: str
    secret: Secret
    session_token: Secret | None = None


def aws_region(host: str) -> str:
    """Return the region in the name of an AWS host, empty if there is none."""
    return aws_region_of_host(host.partition(":")[0]) or ""


def sign(
    request: RequestToSign, keys: AwsKeys, *, service: str, region: str, now: float
) -> dict[str, str]:
    """Return the headers that sign *request*; *now* is in epoch seconds."""
    body_hash = hashlib.sha256(request.body).hexdigest()
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {"X-Amz-Date": stamp, "X-Amz-Content-Sha256": body_hash}
    if keys.session_token is not None:
        added["X-Amz-Security-Token"] = keys.session_token.reveal_text()
    signed = _signed_headers({**request.headers, "Host": request.host}.items(), added.items())
    return {
        **added,
        "Authorization": authorization(
            request, keys, signed, service=service, region=region, stamp=stamp
        ),
    }


def authorization(
    request: RequestToSign,
    keys: AwsKeys,
    signed: Mapping[str, str],
    *,
    service: str,
    region: str,
    stamp: str,
) -> str:
    """Return the value of the Authorization header.

    Args:
        signed: the headers that are signed, by their names in lower case, sorted.
        stamp: the time as `20150830T123600Z`.
    """
    names = ";".join(signed)
    path, _, query = request.path.partition("?")
    canonical = "\n".join(
        (
            request.method,
            _canonical_path(path, service),
            _canonical_query(query),
            *(f"{name}:{value}" for name, value in signed.items()),
            "",
            names,
            hashlib.sha256(request.body).hexdigest(),
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = b"AWS4" + keys.secret.reveal()
    for part in scope.split("/"):
        key = _hmac(key, part)
    signature = _hmac(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}").hex()
    return (
        f"AWS4-HMAC-SHA256 Credential={keys.access_key_id}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )


def _signed_headers(*groups: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers to sign, those of a later group in place of an earlier one's."""
    found = {
        name.lower(): _SPACES.sub(" ", value.strip())
        for group in groups
        for name, value in group
        if name.lower() not in _NOT_SIGNED
    }
    return dict(sorted(found.items()))


def _canonical_path(path: str, service: str) -> str:
    """Return the path encoded once more, as every service but S3 expects it."""
    if service == "s3":
        return path or "/"
    normal = normpath(path or "/").replace("//", "/")
    if path.endswith("/") and normal != "/":
        normal += "/"
    return quote(normal, safe="/" + _UNRESERVED)


def _canonical_query(query: str) -> str:
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return "&".join(
        f"{name}={value}" for name, value in sorted((_encoded(n), _encoded(v)) for n, _, v in pairs)
    )


def _encoded(part: str) -> str:
    return quote(unquote_to_bytes(part), safe=_UNRESERVED)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
