"""What a home holds, for commands, with or without a console: acceptances, connectors, accounts."""

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from aileron_core.actions.model import is_semver, semver_order
from aileron_core.clock import SystemClock
from aileron_core.connectors.servers.table import PREFIX, ServerTable
from aileron_core.connectors.store import ConnectorStore, InstalledConnector
from aileron_core.console_port.codec import to_frame
from aileron_core.console_port.intents import RemoveFile
from aileron_core.errors import AileronError, ConsoleUnavailable, FileProblems, Forbidden
from aileron_core.home.client import HomeClient
from aileron_core.home.layout import Home
from aileron_core.home.owner import OwnerNotVerified, lock_owner
from aileron_core.launch.interfaces import AcceptedSettings
from aileron_core.library import removal
from aileron_core.library.acceptance import AcceptanceRecord, load_records
from aileron_core.library.removal import FileKind
from aileron_core.library.settings_comparison import settings_sha256
from aileron_core.settings import LaunchPaths, LaunchSettings, Settings, load_settings
from aileron_core.storage.open import open_reader

if TYPE_CHECKING:
    from aileron_core.actions.catalog import Catalog
    from aileron_core.actions.model import Action
    from aileron_core.console_port.account_views import ModelKeyView
    from aileron_core.credentials.binding import Binding


def load_acceptances(home: Home) -> list[AcceptanceRecord]:
    """Return the acceptance records of *home*.

    Raises:
        HomeError: the database cannot be used.
    """
    if not home.database.exists():
        return []  # no console ever ran here
    with closing(open_reader(home.database)) as connection:
        return load_records(connection)


def remove_file(home: Home, kind: FileKind, name: str) -> None:
    """Remove a file, and have it be accepted no more, however soon it is back.

    Args:
        name: of the action's file, or the connector's hash.

    Raises:
        ConsoleUnavailable: a console owns the home, and does not answer.
        AileronError: it could not be recorded or removed, or there is none.
    """
    if not home.database.exists():  # no console ever ran here, so nothing was accepted
        removal.remove(home.path, kind, name)
        return
    try:
        is_running = lock_owner(home.path) is not None
    except OwnerNotVerified as error:
        raise ConsoleUnavailable(str(error)) from error
    if is_running:
        frame = to_frame(RemoveFile(kind=kind, file=name))
        HomeClient(home.path).request("POST", "/v1/intents", frame)
        return
    import asyncio

    from aileron_core import app

    asyncio.run(app.remove_file(home, kind, name))


def accepted_connectors(home: Home) -> Sequence[InstalledConnector]:
    """Return the installed connectors that a person accepted; errors as of `load_acceptances`."""
    accepted = {each.digest for each in load_acceptances(home) if each.kind == "connector"}
    return [each for each in ConnectorStore(home.path).list() if each.identity.hash in accepted]


def accepted_servers(home: Home) -> Mapping[str, ServerTable]:
    """Return the MCP servers that a person accepted, by name; errors as of `load_acceptances`."""
    store = ConnectorStore(home.path)
    found: dict[str, ServerTable] = {}
    for each in load_acceptances(home):
        if each.kind == "connector" and each.name.startswith(PREFIX):
            with suppress(AileronError):  # it cannot be used, so nothing stands in the agent's own
                if (table := store.find(each.digest).manifest.server) is not None:
                    found[each.name.removeprefix(PREFIX).partition("@")[0]] = table
    return found


def accepted_version(home: Home, fqn: str) -> str:
    """Return the highest version of the connector *fqn* that is on record as accepted; empty for none."""
    refs = [
        each.name.rpartition("@") for each in load_acceptances(home) if each.kind == "connector"
    ]
    versions = [version for name, _, version in refs if name == fqn and is_semver(version)]
    return max(versions, key=semver_order, default="")


def accepted_actions(home: Home) -> "list[Action]":
    """Return the actions that agents can call, as the home has them on record."""
    installed = {each.identity.hash: each for each in ConnectorStore(home.path).list()}
    found = home_catalog(home, installed).entries
    return [each.action for each in found if each.action is not None and each.state == "ready"]


def home_catalog(home: Home, installed: Mapping[str, InstalledConnector]) -> "Catalog":
    """Return the action files of *home*; *installed*: its connectors, by hash. Errors as of `load_acceptances`."""
    from aileron_core.actions.catalog import Catalog, read_scanned, scan
    from aileron_core.connectors.store import availability_problems
    from aileron_core.library.accepted_contents import AcceptedContents

    records = load_acceptances(home)
    actions = {each.name: each.digest for each in records if each.kind == "action"}
    found, copies = scan(home.actions), AcceptedContents(home.path)
    kept = {
        each.file: read_scanned(each.file, data)
        for each in found.files
        if each.file in actions
        and actions[each.file] != each.sha256
        and (data := copies.read(actions[each.file])) is not None
    }
    connectors = {each.name: each.digest for each in records if each.kind == "connector"}
    identities = {digest: each.identity for digest, each in installed.items()}
    return Catalog(
        found,
        actions,
        kept=kept,
        extra_problems=lambda action: availability_problems(action, identities, connectors),
    )


def stored_bindings(home: Path) -> "Sequence[Binding]":
    """Return the bound accounts as the vault's file has them, unverified."""
    from aileron_core.credentials.binding import stored_bindings
    from aileron_core.vault.vault import Vault

    return stored_bindings(Vault(home, SystemClock()))


def stored_model_keys(home: Path, settings: Settings) -> "Sequence[ModelKeyView]":
    """Return the providers' keys as the vault's file lists them, unverified."""
    from aileron_core.credentials.model_keys import stored_model_keys
    from aileron_core.credentials.upstreams import base_urls
    from aileron_core.vault.vault import Vault

    return stored_model_keys(Vault(home, SystemClock()), base_urls(settings.gateway))


def require_accepted_settings(
    home: Path, settings: Settings, agent: str, *, uses_hosts: bool = False
) -> None:
    """Refuse launching *agent* with settings that the console, which has the vault, has not verified.

    Args:
        uses_hosts: its sandbox reaches the hosts that they list.

    Raises:
        Forbidden: they are not what was accepted, or the vault is locked.
        ConsoleUnavailable: there are such settings, and no console owns the home.
    """
    hosts = settings.launch_hosts if uses_hosts else ()
    own, paths = settings.launch.get(agent, LaunchSettings()), settings.paths
    has_settings = own != LaunchSettings() or paths != LaunchPaths() or bool(hosts)
    try:
        _, body = HomeClient(home).request("GET", "/v1/projects")
    except ConsoleUnavailable:
        if has_settings:
            raise
        return  # the launch itself says so
    counts: str | None = body.get("settings")
    if counts is None or counts == settings_sha256(settings.text):
        return
    if has_settings or _may_have_hidden(home, counts):
        raise Forbidden(
            "config.toml has settings for this launch, or had some that hide paths, and is not "
            "verified. Unlock the vault in the console; if config.toml was changed since you accepted "
            "it, restart the console, look at it there and accept it. Nothing was started."
        )


def accepted_mirror(home: Path) -> str:
    """Return the URL that `github://` is fetched from instead of GitHub; empty for GitHub.

    Raises:
        Forbidden: the settings name one, and are not what was accepted, or the vault is locked.
        ConsoleUnavailable: likewise, and no console owns the home, which has a vault.
    """
    from aileron_core.vault.vault import Vault

    settings = load_settings(Home(home).config)
    if not settings.mirror or Vault(home, SystemClock()).state == "absent":
        return settings.mirror
    _, body = HomeClient(home).request("GET", "/v1/projects")
    if body.get("settings") in (None, settings_sha256(settings.text)):
        return settings.mirror
    raise Forbidden(
        "config.toml names a mirror, and is not verified. Unlock the vault in the console; if "
        "config.toml was changed since you accepted it, restart the console, look at it there and "
        "accept it. Nothing was fetched."
    )


def _may_have_hidden(home: Path, counts: str) -> bool:
    """Return whether the accepted `config.toml` hides paths that the one in the home may not hide any more.

    Args:
        counts: the hash of what it sets; empty while the vault is locked, when only its copy in the home says what was accepted.
    """
    copy = home / "store" / "accepted-config.toml"
    try:
        accepted = load_settings(copy)
    except FileProblems:
        return True
    if counts and counts != settings_sha256(accepted.text):
        return True  # the copy is gone or another's
    return bool(accepted.paths.hide)


def accepted_launch_settings(home: Path, agent: str, path: Path) -> AcceptedSettings | None:
    """Return what a person accepted for launches of *agent* in the folder *path*, None if nothing.

    For their own home this is that checks in their settings do not run.

    Raises:
        ConsoleUnavailable: no console owns the home.
    """
    _, body = HomeClient(home).request("GET", "/v1/projects")
    found = {(each["agent"], each["path"]): each for each in body["items"]}
    each = found.get((agent, str(path)))
    if each is None:
        return None
    at = datetime.fromisoformat(each["taken_at"]).timestamp()
    return AcceptedSettings(digest=each["digest"], accepted_at=at)
