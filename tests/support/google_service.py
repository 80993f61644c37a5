"""Google behind TLS, as Gmail's connector meets it: login page, token endpoint, account, and a mailbox."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from tests.support.authorization_server import AuthorizationServer
from tests.support.core_harness import Mailbox
from tests.support.tls_service import Reply, Request, TlsService, tls_service

GMAIL = "gmail.googleapis.com"
_PLACES = {
    ("accounts.google.com", "/o/oauth2/v2/auth"): "/authorize",
    ("oauth2.googleapis.com", "/token"): "/token",
    ("openidconnect.googleapis.com", "/v1/userinfo"): "/userinfo",
}
HOSTS = (GMAIL, *(host for host, _ in _PLACES))


@dataclass(slots=True, kw_only=True)
class Google:
    """The authorization server, and the mailbox of the one account."""

    server: AuthorizationServer
    mailbox: Mailbox

    def answer(self, request: Request) -> object:
        host = request.headers.get("host", "")
        path, mark, query = request.path.partition("?")
        if host == GMAIL:
            return self._gmail(request)
        if (place := _PLACES.get((host, path))) is None:
            return Reply(status=404)
        return self.server.answer(replace(request, path=f"{place}{mark}{query}"))

    def _gmail(self, request: Request) -> Reply:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.server.access_tokens:
            refused = {"code": 401, "message": "Invalid Credentials", "status": "UNAUTHENTICATED"}
            return Reply(status=401, body={"error": refused})
        names = {"host", "content-type"} & request.headers.keys()
        given: dict[str, Any] = {"headers": {name: request.headers[name] for name in names}}
        given |= {"content": request.body or None, "trust_env": False}
        url = f"http://127.0.0.1:{self.mailbox.port}{request.path}"
        answer = httpx.request(request.method, url, **given)
        return Reply(status=answer.status_code, body=answer.json() if answer.content else None)


def google_at(service: TlsService, mailbox: Mailbox) -> Google:
    redirect: dict[str, str | None] = {"iss": "https://accounts.google.com"}
    server = AuthorizationServer(service=service, redirect=redirect, gives_id_token=False)
    return Google(server=server, mailbox=mailbox)


@contextmanager
def google_service(folder: Path, mailbox: Mailbox) -> Iterator[Google]:
    with tls_service(folder, *HOSTS) as service:
        google = google_at(service, mailbox)
        service.answer = google.answer
        yield google
