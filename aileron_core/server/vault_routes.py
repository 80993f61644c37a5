"""The routes of the vault, on the home's socket alone: a passphrase comes in a body, and is in no answer."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from aileron_core.app import App
from aileron_core.clock import rfc3339
from aileron_core.errors import InvalidRequest
from aileron_core.server.bodies import (
    ChangePassphraseBody,
    CreateVaultBody,
    LockedVaultBody,
    SetKeyringBody,
    UnlockedVaultBody,
    UnlockVaultBody,
    VaultBody,
)
from aileron_core.server.request_parsing import app_of, read_body
from aileron_core.server.route_spec import RouteSpec
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Unlocked


async def status(request: Request) -> Response:
    """Return whether there is a vault, and whether it is locked."""
    return JSONResponse(_vault(app_of(request)))


async def create(request: Request) -> Response:
    """Create the vault, from a vault of version 1 if one is named; it is unlocked then."""
    given = await read_body(request, CreateVaultBody)
    passphrase, named = Secret(given.text("passphrase")), given.text("import_from")
    if named and not Path(named).is_absolute():
        raise InvalidRequest("'import_from' must be an absolute path.")
    app = app_of(request)
    created = await app.vault_service.create(
        passphrase, way="command line", import_from=Path(named) if named else None
    )
    body = _unlocked(app, created)
    await app.vault_followed()
    return JSONResponse(body, status_code=201)


async def unlock(request: Request) -> Response:
    """Unlock the vault with its passphrase; wrong ones are counted, and slow the next attempt down."""
    passphrase = Secret((await read_body(request, UnlockVaultBody)).text("passphrase"))
    app = app_of(request)
    unlocked = await app.vault_service.unlock(passphrase, way="command line")
    body = _unlocked(app, unlocked)
    await app.vault_followed()  # whoever reads the answer may use at once what was accepted
    return JSONResponse(body)


async def lock(request: Request) -> Response:
    """Lock the vault. Doing so again changes nothing."""
    body: LockedVaultBody = {"was_unlocked": await app_of(request).vault_service.lock()}
    return JSONResponse(body)


async def change_passphrase(request: Request) -> Response:
    """Change the vault's passphrase; it stays locked or unlocked."""
    body = await read_body(request, ChangePassphraseBody)
    old, new = Secret(body.text("old")), Secret(body.text("new"))
    app = app_of(request)
    await app.vault_service.change_passphrase(old, new, way="command line")
    return JSONResponse(_vault(app))


async def set_keyring(request: Request) -> Response:
    """Have the keyring of the operating system keep a key that opens the vault, or not."""
    body = await read_body(request, SetKeyringBody)
    app = app_of(request)
    await app.vault_service.set_keyring(Secret(body.text("passphrase")), on=body.flag("on"))
    return JSONResponse(_vault(app))


def _vault(app: App) -> VaultBody:
    status = app.vault_service.status()
    return {
        "state": status.state,
        "problem": status.problem,
        "entries": status.entries,
        "failed_attempts": status.failed_attempts,
        "failed_since": None if status.failed_since is None else rfc3339(status.failed_since),
        "unattended": status.unattended,
        "keyring": status.has_keyring,
    }


def _unlocked(app: App, done: Unlocked) -> UnlockedVaultBody:
    return {
        "vault": {**_vault(app), "problem": done.problem},
        "failed_attempts": done.failed.count,
        "failed_since": rfc3339(done.failed.since) if done.failed.count else None,
        "imported": done.imported,
    }


ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec("GET", "/v1/vault", "socket", status, {200: VaultBody}),
    RouteSpec("POST", "/v1/vault", "socket", create, {201: UnlockedVaultBody}, CreateVaultBody),
    RouteSpec(
        "POST", "/v1/vault/unlock", "socket", unlock, {200: UnlockedVaultBody}, UnlockVaultBody
    ),
    RouteSpec("POST", "/v1/vault/lock", "socket", lock, {200: LockedVaultBody}),
    RouteSpec(
        "POST",
        "/v1/vault/change-passphrase",
        "socket",
        change_passphrase,
        {200: VaultBody},
        ChangePassphraseBody,
    ),
    RouteSpec("POST", "/v1/vault/keyring", "socket", set_keyring, {200: VaultBody}, SetKeyringBody),
)
