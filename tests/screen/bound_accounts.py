"""Accounts and the connectors that need them, as the screens are tested with."""

from dataclasses import replace

from aileron_core.console_port import account_views
from aileron_core.console_port.events import VaultStatus
from tests.support.screens.calls import NOW

UNLOCKED = VaultStatus(state="unlocked", entries=2)

MAIL = account_views.CredentialUserView(
    connector="github://aileron/mail",
    ref="github://aileron/mail@1.1.0",
    hash="sha256:" + "b" * 64,
    kind="api_key",
    hosts=("api.mail.example:443", "new.mail.example:443"),
    header="X-Key",
    scope="all of \u202eit",
    access_key_id="",
    client_id="",
    default_name="api_key/mail/default",
)
DRIVE = replace(
    MAIL,
    connector="github://aileron/drive",
    ref="github://aileron/drive@2.0.0",
    hash="sha256:" + "d" * 64,
    kind="oauth2",
    hosts=("drive.example:443",),
    client_id="our-client",
    default_name="oauth2/drive/default",
    scopes=("files.read", "files.\u202ewrite"),
    login_host="login.drive.example:443",
    token_host="tokens.drive.example:443",
)
ANA = account_views.BoundAccountView(
    name="api_key/mail/work",
    connector=MAIL.connector,
    connector_hash=MAIL.hash,
    hosts=MAIL.hosts,
    account="ana@example.com",
    created_at=NOW - 90_000,
    last_used_at=NOW - 7_300,
    problem="",
    remedy="",
    remembered_for=("send-mail",),
)
CHANGED = replace(
    ANA,
    name="api_key/mail/home",
    account="ana@home.example",
    connector_hash="sha256:" + "a" * 64,
    hosts=("api.mail.example:443", "old.mail.example:443"),
    problem="the connector can now reach new.mail.example:443",
    remedy="rebind",
    last_used_at=None,
    remembered_for=(),
)
ENDED = replace(
    ANA,
    name="oauth2/drive/ana",
    connector=DRIVE.connector,
    connector_hash=DRIVE.hash,
    hosts=DRIVE.hosts,
    is_stale=True,
    problem="its service does not accept the login any more",
    remedy="reauthorize",
    remembered_for=(),
)
GITHUB = replace(
    MAIL,
    connector="mcp://local/github",
    ref="mcp://local/github@2.0.0",
    hash="sha256:" + "e" * 64,
    kind="environment",
    hosts=("api.github.com:443",),
    scope="",
    default_name="environment/github/default",
    names=("GITHUB_TOKEN", "WEBHOOK_SECRET"),
)
OTHER_VALUES = replace(
    ANA,
    name="environment/github/default",
    connector=GITHUB.connector,
    connector_hash="sha256:" + "a" * 64,
    hosts=GITHUB.hosts,
    names=("GITHUB_TOKEN", "OLD_KEY"),
    problem="the server now asks for other values: delete the account, and run `aileron binding setup` again",
    remedy="revoke",
    remembered_for=(),
)
LOGIN = account_views.LoginView(
    login_id="login-1",
    state="waiting",
    url="https://login.drive.example/authorize?state=x&code_challenge=y",
    user_code="",
    scopes=("files.read",),
    token_host="login.drive.example:443",
    expires_at=NOW + 300,
    account="",
    missing=(),
)


def accounts(*bound: account_views.BoundAccountView) -> account_views.AccountsUpdated:
    return account_views.AccountsUpdated(accounts=bound, users=(MAIL, DRIVE))
