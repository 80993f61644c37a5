"""An authorization server on the real wire: login page, token endpoint with PKCE and rotation, device codes."""

import base64
import hashlib
import http.client
import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.support.tls_service import Reply, Request, TlsService, tls_service

CANARY = "canary-51c0"
"""The beginning of every token, code and secret that the server gives."""
CLIENT_ID = "console-client"
CLIENT_SECRET = f"{CANARY}-client-secret"


def _canary(kind: str) -> str:
    return f"{CANARY}-{kind}-{secrets.token_hex(8)}"


def id_token(**claims: object) -> str:
    parts = ({"alg": "none"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in parts]
    return b".".join((*encoded, b"c2lnbmF0dXJl")).decode()


@dataclass(slots=True, kw_only=True)
class AuthorizationServer:
    """What it gives, and what it was asked."""

    service: TlsService
    account: str = "ana@example.com"
    """Told by `/userinfo`, and in an id_token."""
    gives_id_token: bool = True
    claims: dict[str, object] = field(default_factory=dict[str, object])
    """Of the id_token, in place of the right ones."""
    scope: str | None = None
    """Granted in place of what is asked for."""
    lifetime: object = 3600
    rotates: bool = True
    redirect: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Parameters of the redirect, in place of the right ones; None leaves one out."""
    refuses: str = ""
    """The error of every request to the token endpoint."""
    device_approved: threading.Event = field(default_factory=threading.Event)
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    refresh_tokens: set[str] = field(default_factory=set[str])
    access_tokens: set[str] = field(default_factory=set[str])
    grants: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """Forms that the token endpoint was sent."""

    @property
    def base(self) -> str:
        return f"https://{self.service.place}"

    def manifest(self, token_url: str = "") -> str:
        """Return what a connector's manifest says of its account."""
        return (
            '[capabilities.credential]\nkind = "oauth2"\n[capabilities.credential.oauth2]\n'
            f'authorize_url = "{self.base}/authorize"\ntoken_url = "{token_url or self.base + "/token"}"\n'
            f'client_id = "{CLIENT_ID}"\nclient_secret = "{CLIENT_SECRET}"\n'
            'scopes = ["mail.read", "mail.send"]\n'
        )

    def answer(self, request: Request) -> object:
        path, _, query = request.path.partition("?")
        form = dict(parse_qsl(request.body.decode()))
        if path == "/authorize":
            return self._authorize(dict(parse_qsl(query)))
        if path == "/token":
            return self._token(form)
        if path == "/device":
            answer = {"device_code": f"{CANARY}-device", "user_code": "WDJB-MJHT"}
            answer["verification_uri"] = f"{self.base}/activate"
            return {**answer, "expires_in": 600, "interval": 1}
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.access_tokens:
            return Reply(status=401, body={"error": "invalid_token"})
        return {"email": self.account} if path == "/userinfo" else {"done": True, "you sent": token}

    def _authorize(self, asked: dict[str, str]) -> Reply:
        code = _canary("code")
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.base, **self.redirect}
        query = urlencode({name: value for name, value in back.items() if value is not None})
        return Reply(status=302, headers={"Location": f"{asked['redirect_uri']}?{query}"})

    def _token(self, form: dict[str, str]) -> object:
        self.grants.append(form)
        if self.refuses:
            return _refusal(self.refuses, reflected=form)
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return _refusal("invalid_client", reflected=form)
        kind = form.get("grant_type", "")
        if kind == "authorization_code":
            asked = self.codes.pop(form.get("code", ""), None)
            if asked is None or not _is_answer_to(form, asked):
                return _refusal("invalid_grant", reflected=form)
            return self._granted(asked["scope"])
        if kind == "refresh_token":
            if form.get("refresh_token") not in self.refresh_tokens:
                return _refusal("invalid_grant", reflected=form)
            if self.rotates:
                self.refresh_tokens.discard(form["refresh_token"])
            return self._granted("mail.read mail.send", again=True)
        if not self.device_approved.is_set():
            return _refusal("authorization_pending", reflected={})
        return self._granted("mail.read mail.send")

    def _granted(self, scope: str, *, again: bool = False) -> dict[str, object]:
        access, answer = _canary("access"), dict[str, object]()
        self.access_tokens.add(access)
        if self.lifetime is not None:
            answer["expires_in"] = self.lifetime
            if self.rotates or not again:
                answer["refresh_token"] = refresh = _canary("refresh")
                self.refresh_tokens.add(refresh)
        if self.gives_id_token:
            told = {"iss": self.base, "aud": CLIENT_ID, "email": self.account}
            answer["id_token"] = id_token(**told | self.claims)
        granted = scope if self.scope is None else self.scope
        return {"access_token": access, "token_type": "Bearer", "scope": granted, **answer}

    def browse(self, url: str) -> int:
        """Follow *url* as a browser does, and return the status of the last page."""
        for _ in range(5):
            parts = urlsplit(url)
            secure = parts.scheme == "https"
            port = self.service.port if secure else parts.port
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            if secure:
                plain = socket.create_connection(("127.0.0.1", port), timeout=20)
                trust, name = self.service.trust, parts.hostname
                connection.sock = trust.wrap_socket(plain, server_hostname=name)
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            connection.request("GET", target, headers={"Host": parts.netloc})
            response = connection.getresponse()
            response.read()
            connection.close()
            if (url := response.headers.get("Location", "")) == "":
                return response.status
        raise AssertionError("redirected in a circle")


def _is_answer_to(form: dict[str, str], asked: dict[str, str]) -> bool:
    digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    needed = {"code_challenge_method": "S256", "code_challenge": challenge, "response_type": "code"}
    same = {name: form.get(name) for name in ("redirect_uri", "client_id")}
    return (needed | same).items() <= asked.items()


def _refusal(code: str, *, reflected: dict[str, str]) -> Reply:
    """Return an error that repeats what was sent, as a careless server's may."""
    return Reply(status=400, body={"error": code, "error_description": json.dumps(reflected)})


@contextmanager
def authorization_server(folder: Path) -> Iterator[AuthorizationServer]:
    """Run one on a port of the loopback, its certificate in *folder*."""
    with tls_service(folder) as service:
        server = AuthorizationServer(service=service)
        service.answer = server.answer
        yield server
