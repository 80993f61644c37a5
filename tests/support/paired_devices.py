"""A device as the review page is one: a key of its own, requests that it signs, decisions that it signs.

link = secret_of(core)
device = Device(url)
words = await device.pair(link)
"""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aileron_core.canonical import canonical, sha256_hex

API = "/review/api/"


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def point_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def sign(key: ec.EllipticCurvePrivateKey, text: bytes) -> bytes:
    """Return `r || s`, as WebCrypto does."""
    r, s = decode_dss_signature(key.sign(text, ec.ECDSA(SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def compact(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


@dataclass(kw_only=True)
class Device:
    """One that talks to the console at *url*."""

    url: str
    origin: str = ""
    """Where its page is; empty: at the console itself."""
    key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    device_id: str = ""
    start: str = ""
    number: int = 0
    words: tuple[str, ...] = ()
    item: Any = None
    """The last one that it was sent."""
    shown: str = ""

    def browser_headers(self) -> dict[str, str]:
        return {"Origin": self.origin or self.url, "Sec-Fetch-Site": "same-origin"}

    def headers(self, name: str, body: bytes) -> dict[str, str]:
        """Return those of a signed request; its number is the next one."""
        self.number += 1
        signed: dict[str, Any] = {"start": self.start, "method": "POST", "path": API + name}
        signed |= {"number": self.number, "body": sha256_hex(body)}
        return {
            **self.browser_headers(),
            "Content-Type": "application/json",
            "Aileron-Device": self.device_id,
            "Aileron-Number": str(self.number),
            "Aileron-Signature": sign(self.key, b"aileron request v1\0" + canonical(signed)).hex(),
        }

    async def post(
        self, name: str, body: object, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Return the answer to a request, signed unless it has other *headers*."""
        sent = body if isinstance(body, bytes) else compact(body)
        async with httpx.AsyncClient(timeout=60, verify=False) as client:
            signed = self.headers(name, sent) if headers is None else headers
            return await client.post(self.url + API + name, content=sent, headers=signed)

    async def redeem(self, secret: str) -> httpx.Response:
        """Redeem a link; the key is fixed, and not shown yet."""
        self._random = secrets.token_bytes(32)
        commitment = hashlib.sha256(point_of(self.key) + self._random).hexdigest()
        body = {"secret": secret, "commitment": commitment}
        answer = await self.post("link", body, self.browser_headers() | JSON)
        if answer.status_code == 200:
            self.device_id, self.start = answer.json()["device"], answer.json()["start"]
        return answer

    async def show_key(self) -> httpx.Response:
        shown = {"device": self.device_id, "key": point_of(self.key).hex()}
        shown["random"] = self._random.hex()
        answer = await self.post("key", shown, self.browser_headers() | JSON)
        if answer.status_code == 200:
            self.words = tuple(answer.json()["words"])
        return answer

    async def look(self, approval_id: str) -> Any:
        """Be sent a call, and return it."""
        answer = await self.post("item", {"id": approval_id})
        assert answer.status_code == 200, answer.text
        self.item, self.shown = answer.json(), sha256_hex(answer.content)
        return self.item

    def every_line(self) -> list[list[int]]:
        last = self.item["lines"] + sum(each["lines"] for each in self.item["parts"]) - 1
        return [[0, last]] if last >= 0 else []

    def answer(
        self,
        verdict: str,
        *,
        unseen: int = 0,
        seen: object = None,
        reason: str = "",
        key: ec.EllipticCurvePrivateKey | None = None,
        change: Callable[[dict[str, Any]], object] = lambda _: None,
        **other: Any,
    ) -> dict[str, Any]:
        """Return a signed answer to the last item; *other* members of the decision are as given."""
        decision: dict[str, Any] = {
            "home": self.item["home"], "approval": self.item["id"], "digest": self.item["digest"],
            "shown": self.shown, "verdict": verdict, "reason": sha256_hex(reason.encode()),
            "unseen": unseen, "device": self.device_id, "at": int(time.time() * 1000), **other,
        }  # fmt: skip
        signature = sign(key or self.key, b"aileron decision v1\0" + canonical(decision))
        body: dict[str, Any] = {
            "decision": decision, "signature": signature.hex(), "reason": reason,
            "seen": self.every_line() if seen is None else seen,
        }  # fmt: skip
        change(body)
        return body

    async def decide(self, verdict: str, **more: Any) -> httpx.Response:
        return await self.post("decide", self.answer(verdict, **more))


JSON = {"Content-Type": "application/json"}
