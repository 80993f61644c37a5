"""Linear, Google and Athena behind TLS under their own names, as far as published connectors use them."""

import hashlib
import hmac
import json
import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.support.core_harness import Mailbox
from tests.support.google_service import HOSTS, Google, google_at
from tests.support.tls_service import Reply, Request, TlsService, tls_service

LINEAR_KEY = "lin_api_canary0f51b2d9"
ACCESS_KEY_ID = "AKIACANARY00EXAMPLE0"
SECRET_ACCESS_KEY = "canary/41xBq+0eEXAMPLEKEY"
QUERY = "11111111-2222-3333-4444-555555555555"
_LINEAR = "api.linear.app"
_ATHENA = tuple(f"athena.{region}.amazonaws.com" for region in ("eu-west-1", "us-east-1"))
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)


@dataclass(slots=True, kw_only=True)
class Published:
    """What the three services hold, and what reached them."""

    service: TlsService
    google: Google
    labels: set[str] = field(default_factory=lambda: {"bug", "urgent"})
    """Of the one issue at Linear."""
    query_state: str = "RUNNING"
    """Of the one query at Athena."""

    def answer(self, request: Request) -> object:
        host = request.headers.get("host", "")
        if host == _LINEAR:
            return self._linear(request)
        if re.fullmatch(r"athena\.[a-z0-9-]+\.amazonaws\.com", host):
            return self._athena(request)
        return self.google.answer(request)

    def _linear(self, request: Request) -> Reply:
        if (request.method, request.path) != ("POST", "/graphql"):
            return Reply(status=404)
        if request.headers.get("authorization") != LINEAR_KEY:  # a key has no Bearer before it
            return _graphql_error(401, "Authentication required", "AUTHENTICATION_ERROR")
        if request.headers.get("content-type") != "application/json":
            return _graphql_error(400, "Not JSON", "BAD_REQUEST")
        asked = json.loads(request.body)
        if re.match(r"query\b[^{]*\{\s*organization\b", asked["query"]):
            found = {"organization": {"id": "org-1", "name": "Octo", "urlKey": "octo"}}
            return Reply(body={"data": found})
        if re.match(r"mutation\b[^{]*\{\s*issueRemoveLabel\b", asked["query"]):
            given = asked["variables"]
            if given["id"] != "OCT-1" or given["labelId"] not in self.labels:
                return _graphql_error(200, "Entity not found", "INPUT_ERROR")
            self.labels.discard(given["labelId"])
            return Reply(body={"data": {"issueRemoveLabel": {"success": True}}})
        return _graphql_error(400, "Cannot query field", "GRAPHQL_VALIDATION_FAILED")

    def _athena(self, request: Request) -> Reply:
        if problem := _signature_problem(request, "athena"):
            return _aws_error(problem, "The request was refused.")
        if request.headers.get("content-type") != "application/x-amz-json-1.1":
            return _aws_error("UnknownOperationException", "")
        asked = json.loads(request.body)
        target = request.headers["x-amz-target"].removeprefix("AmazonAthena.")
        if target == "ListWorkGroups":
            return Reply(body={"WorkGroups": [{"Name": "primary", "State": "ENABLED"}]})
        if target not in ("GetQueryExecution", "StopQueryExecution"):
            return _aws_error("UnknownOperationException", "")
        if asked["QueryExecutionId"] != QUERY:
            missing = f"QueryExecution {asked['QueryExecutionId']} was not found"
            return _aws_error("InvalidRequestException", missing)
        if target == "StopQueryExecution":
            self.query_state = "CANCELLED"
            return Reply(body={})
        status = {"State": self.query_state}
        return Reply(body={"QueryExecution": {"QueryExecutionId": QUERY, "Status": status}})


def _graphql_error(status: int, message: str, code: str) -> Reply:
    error = {"message": message, "extensions": {"code": code}}
    return Reply(status=status, body={"errors": [error]})


def _aws_error(kind: str, message: str) -> Reply:
    return Reply(status=400, body={"__type": kind, "message": message})


def _signature_problem(request: Request, service: str) -> str:
    """Return the error that AWS answers a wrongly signed request with, empty where its signature holds."""
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if found is None:
        return "MissingAuthenticationTokenException"
    key_id, day, region, named, signed, signature = found.groups()
    if key_id != ACCESS_KEY_ID:
        return "UnrecognizedClientException"
    headers = request.headers
    stamp, host = headers.get("x-amz-date", ""), headers["host"]
    names = signed.split(";")
    required = {"host", *(name for name in headers if name.startswith("x-amz-"))}
    if names != sorted(names) or not required.issubset(names):
        return "InvalidSignatureException"
    if (day, named) != (stamp[:8], service) or f"{service}.{region}." not in host:
        return "InvalidSignatureException"
    # AWS lets a request's time differ from its own by 300 seconds.
    sent = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    body_hash = hashlib.sha256(request.body).hexdigest()
    if abs(time.time() - sent) > 300 or headers.get("x-amz-content-sha256") != body_hash:
        return "InvalidSignatureException"
    path, _, query = request.path.partition("?")
    lines = [request.method, path, query]  # of a POST to `/` there is nothing to normalize
    lines += [f"{name}:{' '.join(headers[name].split())}" for name in names]
    lines += ["", signed, body_hash]
    scope = f"{day}/{region}/{named}/aws4_request"
    hashed = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    key = f"AWS4{SECRET_ACCESS_KEY}".encode()
    for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}"):
        key = hmac.digest(key, part.encode(), "sha256")
    return "" if hmac.compare_digest(key.hex(), signature) else "InvalidSignatureException"


@contextmanager
def published(folder: Path, mailbox: Mailbox) -> Generator[Published]:
    """Run the three of them, Gmail in front of *mailbox*; their certificate is `both.pem` in *folder*."""
    with tls_service(folder, _LINEAR, *_ATHENA, *HOSTS) as service:
        services = Published(service=service, google=google_at(service, mailbox))
        service.answer = services.answer
        yield services
