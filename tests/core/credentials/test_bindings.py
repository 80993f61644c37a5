"""An account in the vault belongs to one connector, in the bytes and with the hosts it was bound for."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core import errors
from aileron_core.actions.model import ConnectorIdentity
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.protocol import CredentialRequirement, RequestToSign
from aileron_core.console_port.account_intents import BindAccount, named_values
from aileron_core.credentials.binding import CredentialUser
from aileron_core.credentials.bindings import BindingService
from aileron_core.credentials.oauth import TokenEndpoint
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from tests.support.frozen_clock import FrozenClock

PASSPHRASE = "correct horse"
KEY = "canary-key-7261"
USER = CredentialUser(
    identity=ConnectorIdentity(fqn="github://ana/Mail", version="1.0.0", hash="sha256:aa"),
    requirement=CredentialRequirement(kind="api_key", header="X-Key", format="{key}"),
    hosts=("api.example:443",),
)
ATHENA = "athena.eu-west-2.amazonaws.com"
REQUEST = RequestToSign(method="GET", host=ATHENA, path="/", headers={}, body=b"")


@dataclass
class Records:
    """Keeps what is recorded; refuses while `full`."""

    kept: list[tuple[AuditEvent, Mapping[str, Json]]] = field(default_factory=list)
    full: bool = False

    async def __call__(self, event: AuditEvent, summary: str, more: Mapping[str, Json]) -> None:
        if self.full:
            raise errors.StorageUnavailable("The audit cannot be written.")
        assert KEY not in f"{summary} {more}"
        self.kept.append((event, more))


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(tmp_path, FrozenClock())
    made.create(Secret(PASSPHRASE))
    return made


@pytest.fixture
def noted() -> Records:
    return Records()


@pytest.fixture
def bindings(vault: Vault, noted: Records) -> BindingService:
    clock = FrozenClock()
    return BindingService(vault, clock, noted, TokenEndpoint(OutgoingClient, clock))


def account_key(value: str = KEY, **more: Any) -> BindAccount:
    given = {"connector_hash": "", "identity": "work", "account": "", "secret": Secret(value)}
    return BindAccount(**given | more)


async def test_an_account_is_stored_under_its_name_and_on_record(
    bindings: BindingService, noted: Records, vault: Vault
) -> None:
    """Listed while locked; used only when unlocked."""
    bound = await bindings.bind(USER, account_key(account="ana@example.com"))
    assert bound.name == "api_key/mail/work"
    ((event, members),) = noted.kept
    assert event == "binding.created"
    assert (members["binding"], members["hosts"]) == (bound.name, ["api.example:443"])
    credential = await bindings.credential_for(bound, USER)
    assert credential.headers(REQUEST) == {"X-Key": KEY}
    assert credential.hosts == {"api.example:443"}
    vault.lock()
    (listed,) = bindings.for_user(USER)
    assert listed == replace(bound, last_used_at=listed.last_used_at)
    with pytest.raises(errors.VaultLocked):
        await bindings.credential_for(bound, USER)


async def test_an_account_of_one_region_is_sent_to_no_other_regions_hosts(
    bindings: BindingService, noted: Records
) -> None:
    """What a new version adds in another region needs no new yes; what it adds in this one does."""
    names = ("eu-west-2.", "us-east-1.", "")
    west, east, all_regions = (f"athena.{name}amazonaws.com:443" for name in names)
    need = CredentialRequirement(kind="aws_sigv4", service="athena")
    user = replace(USER, requirement=need, hosts=(all_regions, west, east))
    given = account_key(user="AKIDEXAMPLE", region="eu-west-2")
    bound = await bindings.bind(user, given)
    assert (bound.region, set(bound.hosts)) == ("eu-west-2", {all_regions, west})
    assert noted.kept[0][1]["region"] == "eu-west-2"
    credential = await bindings.credential_for(bound, user)
    assert credential.hosts == {all_regions, west}
    for request in (REQUEST, replace(REQUEST, host="athena.amazonaws.com")):
        assert "/eu-west-2/athena/" in credential.headers(request)["Authorization"]
    assert bindings.get(bound.name).consented["region"] == "eu-west-2"
    third = "athena.eu-west-1.amazonaws.com:443"
    assert bound.problem(replace(user, hosts=(*user.hosts, third))) == ""
    gov = "athena.eu-west-2.api.aws:443"
    assert "can now reach" in bound.problem(replace(user, hosts=(*user.hosts, gov)))
    changed = replace(user, hosts=(*user.hosts, gov, third))
    assert set((await bindings.rebind(bound.name, changed)).hosts) == {all_regions, west, gov}
    elsewhere = replace(user, hosts=(west, east))
    with pytest.raises(errors.InvalidRequest, match="has no host in ap-south-1"):
        await bindings.bind(elsewhere, replace(given, identity="far", region="ap-south-1"))


def of(user: CredentialUser, **identity: str) -> CredentialUser:
    return replace(user, identity=replace(user.identity, **identity))


EVIL = replace(USER, hosts=("api.example:443", "evil.example:443"))


@pytest.mark.parametrize(
    ("user", "why"),
    [
        (of(USER, fqn="github://evil/Mail"), "belongs to github://ana/Mail"),
        (of(USER, hash="sha256:bb"), "has changed since"),
        (EVIL, "can now reach evil.example:443"),
        (replace(USER, requirement=CredentialRequirement(kind="basic")), "of kind basic"),
    ],
)
async def test_no_other_connector_gets_it(
    bindings: BindingService, user: CredentialUser, why: str
) -> None:
    """Not one of the same short name, nor an update that asks for more, until a person binds it again."""
    bound = await bindings.bind(USER, account_key())
    assert bindings.for_user(user) == ()
    with pytest.raises(errors.BindingFailed, match=why):
        await bindings.credential_for(bound, user)


async def test_a_person_lets_a_changed_connector_use_it(
    bindings: BindingService, noted: Records
) -> None:
    bound = await bindings.bind(USER, account_key(account="ana"))
    newer = of(replace(USER, hosts=("also.example:443", *USER.hosts)), hash="sha256:bb")
    again = await bindings.rebind(bound.name, newer)
    assert bindings.for_user(newer) == (again,)
    assert bindings.for_user(USER) == ()
    assert (again.account, again.created_at) == (bound.account, bound.created_at)
    assert (await bindings.credential_for(again, newer)).headers(REQUEST) == {"X-Key": KEY}
    with pytest.raises(errors.BindingFailed, match="bound again meanwhile"):
        await bindings.credential_for(bound, newer)
    assert noted.kept[-1][0] == "binding.rebound"


async def test_no_account_is_moved_to_another_connector(bindings: BindingService) -> None:
    """Whoever asks: its secret would go to hosts that its owner never sent it to."""
    bound = await bindings.bind(USER, account_key(account="ana"))
    other = of(EVIL, fqn="github://evil/mail")
    with pytest.raises(errors.Conflict, match="belongs to"):
        await bindings.rebind(bound.name, other)
    assert bindings.all() == (bound,)
    assert bindings.for_user(other) == ()


async def test_a_revoked_account_is_gone_from_every_file(
    bindings: BindingService, noted: Records, tmp_path: Path
) -> None:
    bound = await bindings.bind(USER, account_key())
    await bindings.delete(bound.name)
    assert bindings.all() == ()
    assert noted.kept[-1][0] == "binding.revoked"
    with pytest.raises(errors.BindingFailed, match="not bound any more"):
        await bindings.credential_for(bound, USER)
    with pytest.raises(errors.NotFound):
        await bindings.delete(bound.name)
    assert all(bound.name.encode() not in each.read_bytes() for each in tmp_path.iterdir())


async def test_what_is_not_recorded_is_not_bound(bindings: BindingService, noted: Records) -> None:
    noted.full = True
    with pytest.raises(errors.StorageUnavailable):
        await bindings.bind(USER, account_key())
    assert bindings.all() == ()
    noted.full = False
    bound = await bindings.bind(USER, account_key())
    noted.full = True
    changed = replace(USER, hosts=("also.example:443",))
    for change in (bindings.rebind(bound.name, changed), bindings.delete(bound.name)):
        with pytest.raises(errors.StorageUnavailable):
            await change
    assert bindings.all() == (bound,)
    assert (await bindings.credential_for(bound, USER)).headers(REQUEST) == {"X-Key": KEY}


async def test_a_kind_of_two_parts_is_stored_whole(bindings: BindingService) -> None:
    """That of AWS is in `test_an_account_of_one_region_is_sent_to_no_other_regions_hosts`."""
    user = replace(USER, requirement=CredentialRequirement(kind="basic"))
    bound = await bindings.bind(user, account_key(user="ana"))
    credential = await bindings.credential_for(bound, user)
    assert credential.headers(REQUEST)["Authorization"].startswith("Basic ")
    assert KEY.encode() in credential.secrets()
    with pytest.raises(errors.InvalidRequest, match="too"):
        await bindings.bind(user, account_key(identity="other"))


@pytest.mark.parametrize("bad", ["hu5h", "line\r\nbreak", "x" * 20000, "caf\u00e9-caf\u00e9"])
async def test_a_secret_that_cannot_be_sent_or_found_again_is_refused(
    bindings: BindingService, bad: str
) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        await bindings.bind(USER, account_key(bad))
    assert bad not in str(refused.value)
    assert bindings.all() == ()


@pytest.mark.parametrize("identity", ["", "A", "../x", "a/b", "x" * 65])
async def test_an_identity_is_a_plain_name(bindings: BindingService, identity: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="identity"):
        await bindings.bind(USER, account_key(identity=identity))


async def test_a_name_is_bound_once(bindings: BindingService) -> None:
    """Another account of the same connector has another identity; both count."""
    await bindings.bind(USER, account_key())
    with pytest.raises(errors.Conflict, match="--identity"):
        await bindings.bind(USER, account_key())
    await bindings.bind(USER, account_key(identity="home"))
    names = [each.name for each in bindings.for_user(USER)]
    assert names == ["api_key/mail/home", "api_key/mail/work"]


TOKEN, PEM = KEY, "-----BEGIN KEY-----\ncanary/pem+\u00e9\n-----END KEY-----\n"
SERVER = CredentialUser(
    identity=ConnectorIdentity(fqn="mcp://local/notes", version="0.0.0", hash="sha256:aa"),
    requirement=CredentialRequirement(kind="environment", names=("TOKEN", "PEM")),
    hosts=("api.example:443",),
)


def server_account(**values: str) -> BindAccount:
    secrets = {name: Secret(each) for name, each in values.items()}
    return account_key(named_values(secrets).reveal_text())


def server_asking_for(*names: str) -> CredentialUser:
    """The server after its manifest was changed, to ask for *names*."""
    need = replace(SERVER.requirement, names=names)
    return of(replace(SERVER, requirement=need), hash="sha256:bb")


async def test_a_servers_values_are_one_secret_that_it_gets_at_its_start(
    bindings: BindingService, noted: Records, vault: Vault
) -> None:
    """Listed and on record by their names alone, whole with line breaks, and found again in an answer."""
    bound = await bindings.bind(SERVER, server_account(TOKEN=TOKEN, PEM=PEM))
    assert (bound.name, bound.names) == ("environment/notes/work", ("TOKEN", "PEM"))
    assert noted.kept[0][1]["names"] == ["TOKEN", "PEM"]
    credential = await bindings.credential_for(bound, SERVER)
    assert credential.environment() == {"TOKEN": TOKEN, "PEM": PEM}
    assert (credential.headers(REQUEST), credential.hosts) == ({}, {"api.example:443"})
    spelled = json.dumps([TOKEN, PEM]).encode() + base64.b64encode(PEM.encode())
    scrubbed = Scrubber(credential.secrets()).scrub(spelled)
    assert not any(each in scrubbed for each in (b"canary", base64.b64encode(PEM.encode())[:-4]))
    vault.lock()
    (listed,) = bindings.for_user(SERVER)
    assert listed.names == bound.names
    with pytest.raises(errors.BindingFailed, match="vault was locked"):
        credential.environment()


@pytest.mark.parametrize("names", [("TOKEN", "PEM", "MORE"), ("TOKEN",)])
async def test_an_account_does_not_fit_a_server_that_asks_for_other_values(
    bindings: BindingService, names: tuple[str, ...]
) -> None:
    bound = await bindings.bind(SERVER, server_account(TOKEN=TOKEN, PEM=PEM))
    user = server_asking_for(*names)
    assert "delete the account, and run `aileron binding setup` again" in bound.problem(user)
    assert bindings.for_user(user) == ()
    with pytest.raises(errors.Conflict, match="other values"):
        await bindings.rebind(bound.name, user)
    assert bindings.all() == (bound,)
    again = await bindings.rebind(bound.name, server_asking_for("PEM", "TOKEN"))
    credential = await bindings.credential_for(again, server_asking_for("PEM", "TOKEN"))
    assert credential.environment() == {"TOKEN": TOKEN, "PEM": PEM}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"TOKEN": TOKEN}, "no value for PEM"),
        ({"TOKEN": TOKEN, "PEM": PEM, "LD_PRELOAD": "canary.so"}, "Only these values"),
        ({"TOKEN": "1", "PEM": PEM}, "TOKEN has 1 bytes"),
        ({"TOKEN": TOKEN, "PEM": "canary\0canary"}, "without NUL"),
        ({"TOKEN": TOKEN, "PEM": "canary-\ud800"}, "each name with a text"),
        ({"TOKEN": TOKEN, "PEM": "canary" * 4000}, "more than 16384 bytes"),
        ({"TOKEN": TOKEN, "PEM": [PEM]}, "each name with a text"),
        ([TOKEN], "a JSON object"),
    ],
)
async def test_values_that_no_server_can_be_given_are_refused(
    bindings: BindingService, given: Json, why: str
) -> None:
    with pytest.raises(errors.InvalidRequest, match=why) as refused:
        await bindings.bind(SERVER, account_key(json.dumps(given)))
    assert "canary" not in str(refused.value)
    assert bindings.all() == ()
