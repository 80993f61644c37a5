"""What each kind of credential adds to a request, and AWS's published vectors for its signature."""

import base64
from typing import Any

import pytest

from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.protocol import RequestToSign
from aileron_core.credentials.kinds import ApiKey, AwsSignature, BasicPassword
from aileron_core.credentials.sigv4 import AwsKeys, authorization, sign
from aileron_core.errors import BindingFailed
from aileron_core.vault.secret import Secret
from tests.support.frozen_clock import FrozenClock

HOSTS = frozenset({"api.example:443"})
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
SECRET = Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
KEYS = AwsKeys(access_key_id="AKIDEXAMPLE", secret=SECRET)


def request(path: str = "/", method: str = "GET", body: bytes = b"", **more: str) -> RequestToSign:
    host = more.pop("host", "example.amazonaws.com")
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    return RequestToSign(method=method, host=host, path=path, headers=headers, body=body)


def signature(value: str) -> str:
    return value.rpartition("Signature=")[2]


# From the test suite of Signature Version 4: its date, region and service are always these.
VANILLA = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
FORM = "application/x-www-form-urlencoded"
VECTORS = {
    "get-vanilla": (request(), VANILLA),
    "get-vanilla-query-order-key-case": (
        request("/?Param2=value2&Param1=value1"),
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "get-vanilla-utf8-query": (
        request("/?%E1%88%B4=bar"),
        "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
    ),
    "get-space": (
        request("/example space/"),
        "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
    ),
    "normalize-path/get-relative-relative": (request("/example1/example2/../.."), VANILLA),
    "post-header-key-sort": (
        request(method="POST", my_header1="value1"),
        "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
    ),
    "post-x-www-form-urlencoded": (
        request(method="POST", body=b"Param1=value1", content_type=FORM),
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
}


@pytest.mark.parametrize(("asked", "expected"), VECTORS.values(), ids=VECTORS)
def test_a_signature_is_that_of_the_published_vector(asked: RequestToSign, expected: str) -> None:
    stamp = "20150830T123600Z"
    signed = dict(sorted({"host": asked.host, "x-amz-date": stamp, **asked.headers}.items()))
    value = authorization(asked, KEYS, signed, service="service", region="us-east-1", stamp=stamp)
    assert signature(value) == expected
    credential = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"
    assert value.startswith(f"AWS4-HMAC-SHA256 Credential={credential}, ")


def test_what_is_added_to_a_request_signs_all_of_it() -> None:
    """The published example of S3, whose signature covers the hash of the body."""
    secret = Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    keys = AwsKeys(access_key_id="AKIAIOSFODNN7EXAMPLE", secret=secret)
    more: Any = {"User_Agent": "any", "X_Amz_Date": "the guest's own", "Range": "bytes=0-9"}
    asked = request("/test.txt", host="examplebucket.s3.amazonaws.com", **more)
    added = sign(asked, keys, service="s3", region="us-east-1", now=1369353600.0)
    assert added["X-Amz-Date"] == "20130524T000000Z"
    assert added["X-Amz-Content-Sha256"] == EMPTY
    assert "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date," in added["Authorization"]
    published = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert signature(added["Authorization"]) == published


def test_the_region_is_that_of_the_host_and_a_temporary_key_sends_its_token() -> None:
    """A host without a region needs the account's. The token is signed too, and removed from answers as the key is."""
    keys = AwsKeys(access_key_id="A", secret=Secret("secret-key"), session_token=Secret("a-token"))
    signer = AwsSignature(keys=keys, service="athena", hosts=HOSTS, clock=FrozenClock())
    added = signer.headers(request(host="athena.eu-west-2.amazonaws.com"))
    assert "/eu-west-2/athena/aws4_request" in added["Authorization"]
    assert added["X-Amz-Security-Token"] == "a-token"
    assert "x-amz-security-token" in added["Authorization"]
    made = signature(added["Authorization"]).encode()
    assert signer.secrets() == [b"secret-key", b"a-token", made]
    with pytest.raises(BindingFailed, match="names no AWS region"):
        signer.headers(request(host="athena.amazonaws.com"))


def test_what_is_sent_is_as_the_manifest_and_the_standards_say() -> None:
    key = Secret("k-{key}-1")
    for kind in ("api_key", "oauth2"):
        sent = ApiKey(secret=key, hosts=HOSTS, kind=kind).headers(request())
        assert sent == {"Authorization": "Bearer k-{key}-1"}
    own = ApiKey(secret=key, hosts=HOSTS, header="X-Key", format="v1 {key}")
    assert own.headers(request()) == {"X-Key": "v1 k-{key}-1"}
    basic = BasicPassword(user="Aladdin", password=Secret("open sesame"), hosts=HOSTS)
    sent = basic.headers(request())["Authorization"]
    assert sent == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="  # RFC 7617, 2
    scrubbed = Scrubber(basic.secrets()).scrub(b"you sent " + sent.encode())
    assert base64.b64encode(b"Aladdin:open sesame")[:-2] not in scrubbed


@pytest.mark.parametrize("bad", ["a\r\nX: y", "", "caf\u00e9"])
def test_a_key_that_no_header_can_hold_is_not_sent(bad: str) -> None:
    with pytest.raises(BindingFailed) as caught:
        ApiKey(secret=Secret(bad), hosts=HOSTS).headers(request())
    assert not bad or bad not in str(caught.value)


def test_no_credential_prints_its_secret() -> None:
    secret = Secret("hush-hush")
    keys = AwsKeys(access_key_id="A", secret=secret)
    basic = BasicPassword(user="u", password=secret, hosts=HOSTS)
    signer = AwsSignature(keys=keys, service="s", hosts=HOSTS, clock=FrozenClock())
    for credential in (ApiKey(secret=secret, hosts=HOSTS), basic, signer):
        assert "hush" not in repr(credential)
