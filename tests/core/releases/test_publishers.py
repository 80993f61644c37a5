"""A publisher's key: accepted with the first file that it signed, and from then on nothing that another key signed is."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE, SIGNED_FILE, ConnectorStore
from aileron_core.console_port.account_intents import BindAccount
from aileron_core.console_port.intents import Accept, AcceptSuite, RemoveFile, WithdrawAcceptance
from aileron_core.console_port.view_models import NotAcceptedView, PublisherView
from aileron_core.credentials.accounts import credential_users
from aileron_core.errors import Conflict
from aileron_core.releases.archive import write_archive
from aileron_core.releases.kept import offer_path, signatures_of
from aileron_core.releases.suite import (
    SIGNATURE_FILE,
    SUMS_FILE,
    Release,
    archive_of,
    pack,
    read_suite,
)
from aileron_core.vault.secret import Secret
from aileron_tui.draw.blocks import lay_out
from aileron_tui.draw.file_page import file_blocks
from aileron_tui.draw.text import plain_text
from tests.core.releases.conftest import ACTIONS, NAME, published_as, served_release
from tests.support.core_harness import PASSPHRASE, Core, audit_problems, change_rows, unlock
from tests.support.published import signed
from tests.support.server_harness import aileron, aileron_json

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")


class Repository:
    """A publisher's repository, with keys that ssh-keygen made, and a home that takes its releases."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        self._keys = folder.parent / "keys"
        self._keys.mkdir()
        published_as(folder)

    def key(self, name: str) -> str:
        """Return the fingerprint of the key *name*, which is made if it is not there."""
        if not (self._keys / name).exists():
            self._ssh("-q", "-t", "ed25519", "-N", "", "-C", "", "-f", name)
        return self._ssh("-lf", name).split()[1]

    def release(self, version: str, key: str = "", vouched_by: str = "") -> Release:
        """Return a release, signed with *key*, which the key *vouched_by* names the new one."""
        if key:
            self.key(key)
        if vouched_by:
            shutil.copy(self._keys / f"{key}.pub", self.folder / "publisher.pub")
            signature = self._signed("aileron-publisher", vouched_by, self.folder / "publisher.pub")
            (self.folder / "publisher.pub.sig").write_bytes(signature)
        suite = pack(read_suite(self.folder), version)
        if not key:
            return suite
        (self._keys / SUMS_FILE).write_bytes(suite.files[SUMS_FILE])
        signature = self._signed("aileron-suite", key, self._keys / SUMS_FILE)
        return replace(suite, files={**suite.files, SIGNATURE_FILE: signature})

    def add(self, suite: Release, *words: str, code: int = 0) -> str:
        """Run `action add` on *suite*; return what it prints."""
        archive = self._keys / "suite.tar.gz"
        archive.write_bytes(archive_of(suite))
        done = aileron("action", "add", str(archive), *words, home=self.home, code=code)
        return done.stdout + done.stderr

    def put(self, version: str, key: str) -> Release:
        """Put the connector of a release into the store, as another program could."""
        suite = self.release(version, key)
        kept = signatures_of(suite)
        ConnectorStore(self.home).install_bytes(suite.module, suite.manifest, signed=kept)
        return suite

    def files(self) -> dict[Path, bytes]:
        """Return the files of actions, connectors and suites in the home."""
        folders = ("actions", "store/connectors", "suites")
        found = [path for folder in folders for path in (self.home / folder).rglob("*")]
        return {path: path.read_bytes() for path in found if path.is_file()}

    def _signed(self, namespace: str, key: str, file: Path) -> bytes:
        self._ssh("-q", "-Y", "sign", "-n", namespace, "-f", key, str(file))
        signature = file.with_name(f"{file.name}.sig")
        data = signature.read_bytes()
        signature.unlink()
        return data

    def _ssh(self, *words: str) -> str:
        return subprocess.run(
            ("ssh-keygen", *words), cwd=self._keys, check=True, capture_output=True, text=True
        ).stdout


@pytest.fixture
def repository(folder: Path, home: Path) -> Repository:
    return Repository(folder, home)


def offered_item(core: Core, kind: str) -> NotAcceptedView:
    """Return the item of that kind; of several the first."""
    return next(each for each in core.app.library.not_accepted() if each.kind == kind)


async def accept_view(core: Core, view: NotAcceptedView) -> None:
    """Accept what is shown."""
    key = view.signed_with
    await core.do(Accept(kind=view.kind, name=view.name, digest=view.digest, signed_with=key))


async def accept_signed_suite(core: Core, shown: Sequence[NotAcceptedView]) -> None:
    """Accept what is shown as one item."""
    (suite_id,) = {each.suite.suite_id if each.suite else "" for each in shown}
    files = tuple((each.file, each.digest) for each in shown)
    keys = tuple((each.file, each.signed_with) for each in shown if each.signed_with)
    await core.do(AcceptSuite(suite_id=suite_id, files=files, signed_with=keys))


def accepted_versions(core: Core) -> set[str]:
    return {each.identity.version for each in core.app.library.accepted_connectors()}


def whose(view: NotAcceptedView) -> PublisherView:
    assert view.publisher is not None
    return view.publisher


@pytest.fixture
async def accepting(repository: Repository) -> Repository:
    """With a home in which the connector of a release was accepted that the key `key` signed."""
    repository.add(repository.release("1.4.0", "key"))
    async with Core.open(repository.home, accept=False) as core:
        await accept_view(core, offered_item(core, "connector"))
    return repository


async def test_a_publishers_first_file_accepts_its_key(repository: Repository, home: Path) -> None:
    """With the fingerprint that was shown; the others then show it as accepted, until it is withdrawn."""
    release, key = repository.release("1.4.0", "key"), repository.key("key")
    assert f"signed with {key}, seen for the first time" in repository.add(release)
    async with Core.open(home, accept=False) as core:
        suite = [each for each in core.app.library.not_accepted() if each.kind == "action"]
        assert [whose(each).is_new for each in suite] == [True] * len(ACTIONS)
        await accept_signed_suite(core, suite)
        records = await core.records("library.accepted")
        publishers = [each for each in records if each["kind"] == "publisher"]
        assert [(each["name"], each["digest"]) for each in publishers] == [(NAME, key)]
        assert whose(offered_item(core, "connector")).accepted == key
    assert f"signed with {key}, which you accepted" in repository.add(release)
    async with Core.open(home, accept=False) as core:
        await core.do(WithdrawAcceptance(kind="publisher", name=NAME, digest=key))
        assert whose(offered_item(core, "connector")).is_new


async def test_a_suite_and_its_connector_are_one_item(repository: Repository, home: Path) -> None:
    """If a byte of it changed since it was shown, nothing is accepted."""
    repository.add(repository.release("1.4.0", "key"))
    async with Core.open(home, accept=False) as core:
        shown = core.app.library.not_accepted()
        assert sorted(each.kind for each in shown) == ["action"] * 3 + ["connector"]
        (module,) = (home / "store" / "connectors" / "sha256").glob("*/connector.wasm")
        module.write_bytes(module.read_bytes() + b"\0\0")
        with pytest.raises(Conflict, match="Accepted 0 of 4"):
            await accept_signed_suite(core, shown)
        assert not core.app.library.accepted_connectors()
        assert not core.app.library.ready()


async def test_an_accepted_key_is_shown_and_signed(accepting: Repository, home: Path) -> None:
    """Another program that writes a key of its own into the row ends all that was accepted, with an alarm."""
    key = accepting.key("key")
    for words in (("action", "show", "get-draft"), ("connector", "show", "mail-drafts")):
        body = aileron_json(*words, home=home)
        assert body["publisher"] == {"name": NAME, "key": key, "accepted_key": key}
    async with Core.open(home, accept=False) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)
    change_rows(home, "UPDATE pins SET digest = 'SHA256:other' WHERE kind = 'publisher'")
    async with Core.open(home, accept=False) as core:
        await unlock(core)
        assert not core.app.library.accepted_connectors()
        assert any("cannot be relied upon" in each.message for each in core.app.alarms())


@pytest.mark.parametrize("vouched_by", ["key", "new", ""])
async def test_another_key_installs_nothing_and_is_shown_beside_the_accepted_one(
    accepting: Repository, home: Path, vouched_by: str
) -> None:
    """And whether that one signed it; once a person accepted it, the same release is added."""
    old, new = accepting.key("key"), accepting.key("new")
    before = accepting.files()
    suite = accepting.release("1.5.0", "new", vouched_by)
    said = accepting.add(suite, code=1)
    assert f"is signed with {new}, not with {old}, which you accepted for {NAME}" in said
    assert accepting.files() == before
    async with Core.open(home, accept=False) as core:
        view = offered_item(core, "publisher")
        assert (view.name, view.digest, whose(view).accepted) == (NAME, new, old)
        assert whose(view).is_vouched_for is (vouched_by == "key")
        await accept_view(core, view)
        assert not any(each.kind == "publisher" for each in core.app.library.not_accepted())
    accepting.add(suite)
    async with Core.open(home, accept=False) as core:
        added = offered_item(core, "connector")
        assert (added.name, whose(added).accepted) == (f"{NAME}@1.5.0", new)
        await accept_view(core, added)


async def test_an_offered_key_is_declined(accepting: Repository, home: Path) -> None:
    """It is offered no more, and the accepted one stays; what cannot be kept as an offer says what to do."""
    suite = accepting.release("1.5.0", "new")
    accepting.add(suite, code=1)
    async with Core.open(home, accept=False) as core:
        await core.do(
            RemoveFile(kind="publisher", file=Path(offered_item(core, "publisher").file).name)
        )
        left = core.app.library.not_accepted()
        assert {each.kind for each in left} == {"action"}
        assert {whose(each).accepted for each in left} == {accepting.key("key")}
    offer_path(home, NAME).mkdir()
    said = accepting.add(suite, code=1)
    assert "cannot be replaced or removed: Is a directory. Move away what is there" in said


async def test_what_the_key_did_not_sign_is_not_accepted(accepting: Repository, home: Path) -> None:
    """Though another program put it into the store: signed with another key, or not at all."""
    suite = accepting.put("1.5.0", "other")
    accepting.put("1.6.0", "")
    (home / "actions" / "send-draft.md").write_bytes(suite.files["actions/send-draft.md"])
    async with Core.open(home) as core:  # with --accept-installed
        assert accepted_versions(core) == {"1.4.0"}
        held = core.app.library.not_accepted()
        assert [each.kind for each in held] == ["action", "connector", "connector"]
        for view in held:
            with pytest.raises(Conflict, match="that you accepted for github://aileron"):
                await accept_view(core, view)


async def test_a_suite_takes_in_nothing_of_another_key(repository: Repository, home: Path) -> None:
    """Another key or none, which comes with it: it is left out, and the person is told."""
    repository.add(repository.release("1.4.0", "key"))
    (listed,) = (home / "suites").glob("*.json")
    shown_together = json.loads(listed.read_text())
    for version, key in (("1.5.0", "other"), ("1.6.0", "")):
        digest = repository.put(version, key).connector_hash.removeprefix("sha256:")
        shown_together["files"][f"store/connectors/sha256/{digest}"] = digest
    listed.write_text(json.dumps(shown_together))
    async with Core.open(home, accept=False) as core:
        # The one that is accepted first comes last: nothing follows from its place.
        shown = sorted(core.app.library.not_accepted(), key=lambda each: each.kind == "connector")
        said = r"Accepted 4 of 6\. Left out: github://aileron/.* and 1 more, not signed"
        with pytest.raises(Conflict, match=said):
            await accept_signed_suite(core, shown)
        assert accepted_versions(core) == {"1.4.0"}
        assert [each.is_refused for each in core.app.library.not_accepted()] == [True, True]


async def test_no_key_follows_a_withdrawn_one_by_itself(accepting: Repository, home: Path) -> None:
    """`--accept-installed` does not take in what another key signed, or none, once a person withdrew one."""
    withdrawn = WithdrawAcceptance(kind="publisher", name=NAME, digest=accepting.key("key"))
    async with Core.open(home, accept=False) as core:
        await core.do(withdrawn)
    accepting.put("1.5.0", "other")
    accepting.put("1.6.0", "")
    async with Core.open(home) as core:
        assert accepted_versions(core) == {"1.4.0"}
        assert [each["by"] for each in await core.records("library.accepted")] == ["person"] * 2


async def test_nothing_unsigned_replaces_what_is_signed(repository: Repository, home: Path) -> None:
    """With --unsigned either, whether the key is accepted yet or not. An action that was edited says it."""
    repository.add(repository.release("1.4.0", "key"))
    key = repository.key("key")
    for _ in range(2):
        before = repository.files()
        said = repository.add(repository.release("1.5.0"), "--unsigned", code=1)
        assert f"other releases of {NAME} are signed with {key}" in said
        assert repository.files() == before
        async with Core.open(home, accept=False) as core:
            if not core.app.library.accepted_connectors():
                await accept_view(core, offered_item(core, "connector"))
    edited = home / "actions" / "send-draft.md"
    edited.write_text(edited.read_text() + "\nMore.\n")
    async with Core.open(home, accept=False) as core:
        found = {each.file: each for each in core.app.library.not_accepted()}
        assert whose(found["send-draft.md"]) == PublisherView(name=NAME, accepted=key)
        assert whose(found["get-draft.md"]).key == key


async def test_an_unsigned_release_says_so_on_each_item(repository: Repository, home: Path) -> None:
    repository.add(repository.release("1.4.0"), "--unsigned")
    async with Core.open(home, accept=False) as core:
        found = [each.publisher for each in core.app.library.not_accepted()]
        assert found == [PublisherView(name=NAME)] * (len(ACTIONS) + 1)


def _claimed(place: Path) -> None:
    place.write_text('{"signed by": "github://aileron/mail-drafts"}')


def _pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


@pytest.mark.parametrize("change", [Path.unlink, _claimed, _pipe, None])
async def test_an_item_shows_what_the_files_prove(
    repository: Repository, home: Path, change: Callable[[Path], None] | None
) -> None:
    """Not what somebody wrote there, nor a key of another release; and none but the one shown is accepted."""
    repository.add(repository.release("1.4.0", "key"))
    async with Core.open(home, accept=False) as core:
        shown = offered_item(core, "connector")
        (folder,) = (home / "store" / "connectors" / "sha256").iterdir()
        if change:
            change(folder / SIGNED_FILE)
        else:
            (folder / SIGNED_FILE).write_bytes(signatures_of(repository.release("1.5.0", "key")))
        with pytest.raises(Conflict, match="changed while you were reviewing"):
            await accept_view(core, shown)
        assert whose(offered_item(core, "connector")) == PublisherView(name=NAME)
        assert not await core.records("library.accepted")


async def test_a_signature_of_another_key_is_new(repository: Repository, home: Path) -> None:
    """The very same connector, signed by somebody else between the look and the key press."""
    repository.add(repository.release("1.4.0", "key"))
    async with Core.open(home, accept=False) as core:
        shown = offered_item(core, "connector")
        repository.put("1.4.0", "other")
        with pytest.raises(Conflict, match="changed while you were reviewing"):
            await accept_view(core, shown)
        assert whose(offered_item(core, "connector")).key == repository.key("other")


async def test_a_key_is_accepted_for_who_was_shown(repository: Repository, home: Path) -> None:
    """An action names several connectors, by names of its own: only what a connector is called itself counts."""
    suite, key = repository.release("1.4.0"), Ed25519PrivateKey.from_private_bytes(b"k" * 32)
    friend = "github://friend/mail-drafts"
    friends = suite.manifest.replace(NAME.encode(), friend.encode())
    theirs = replace(suite, files={**suite.files, MANIFEST_FILE: friends})
    text = suite.files["actions/get-draft.md"].decode()
    start, end = text.index("[[requires.connectors]]"), text.index("[match]")
    need = text[start:end]
    other = need.replace(suite.connector_hash, theirs.connector_hash)
    store, file = ConnectorStore(home), home / "actions" / "get-draft.md"
    file.parent.mkdir(parents=True)

    def sign(manifest: bytes, action: bytes) -> None:
        kept = signed(key, suite.module, manifest, **{"get-draft": action})
        store.install_bytes(suite.module, manifest, signed=kept)

    lying = text.replace(need, other).encode()
    file.write_bytes(lying)
    sign(friends, lying)
    async with Core.open(home, accept=False) as core:
        assert whose(offered_item(core, "action")) == PublisherView(name=NAME)
        both = text.replace(need, need + other.replace(NAME, friend)).encode()
        file.write_bytes(both)
        sign(friends, both)
        store.install_bytes(suite.module, suite.manifest)
        await core.app.library.poll()
        shown = offered_item(core, "action")
        assert whose(shown).name == friend
        sign(suite.manifest, both)
        with pytest.raises(Conflict, match="changed while you were reviewing"):
            await accept_view(core, shown)
        assert whose(offered_item(core, "action")).name == NAME


async def test_actions_of_the_older_layout_are_signed(repository: Repository, home: Path) -> None:
    """What is not signed is taken by `--unsigned` alone, what another key signed never; each says its own."""
    suite = repository.release("1.4.0")
    key, other = (Ed25519PrivateKey.from_private_bytes(each * 32) for each in (b"k", b"o"))
    signers = {"get-draft": key, "list-drafts": None, "send-draft": other}
    raw, assets = "/aileron/mail-drafts/v1.4.0", "/aileron/mail-drafts/releases/download"
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    there = {f"{raw}/suite.toml": suite.files["suite.toml"], f"{raw}/publisher.pub": public}
    connector = {MODULE_FILE: suite.module, MANIFEST_FILE: suite.manifest}
    connector["signature.sig"] = key.sign(suite.module + suite.manifest)
    there[f"{assets}/v1.4.0/aileron.tar.gz"] = write_archive(connector)
    for name, signer in signers.items():
        data = suite.files[f"actions/{name}.md"]
        signed = {} if signer is None else {"signature.sig": signer.sign(data)}
        archive = write_archive({"action.md": data, **signed})
        there[f"{assets}/actions%2F{name}%2Fv1.4.0/aileron.tar.gz"] = archive
    with served_release(there, "github.com", "raw.githubusercontent.com") as routes:
        words = ("action", "add", *routes)
        first = aileron(*words, f"{NAME}@1.4.0", home=home, code=1)
        assert "list-drafts.md: is not signed" in first.stdout + first.stderr
        second = aileron(*words, "--unsigned", f"{NAME}@1.4.0", home=home, code=1)
        assert "send-draft.md: was changed after it was signed" in second.stdout + second.stderr
        aileron(*words, "--unsigned", f"{NAME}/actions/list-drafts@1.4.0", home=home)
    async with Core.open(home, accept=False) as core:
        found = {each.name: whose(each) for each in core.app.library.not_accepted()}
        assert found[f"{NAME}@1.4.0"].key == found["get-draft"].key != ""
        assert found["list-drafts"] == PublisherView(name=NAME)
        assert "send-draft" not in found


async def test_a_connectors_own_signature_is_checked_with_the_key_beside_it(
    repository: Repository, home: Path, tmp_path: Path
) -> None:
    """Of the older layout, by openssl: raw ed25519 over the module and the manifest."""
    suite = repository.release("1.4.0")
    (tmp_path / "signed").write_bytes(suite.module + suite.manifest)
    for words in (
        ("genpkey", "-algorithm", "ed25519", "-out", "key"),
        ("pkey", "-in", "key", "-pubout", "-out", "publisher.pub"),
        ("pkeyutl", "-sign", "-inkey", "key", "-rawin", "-in", "signed", "-out", "signature.sig"),
    ):
        subprocess.run(("openssl", *words), cwd=tmp_path, check=True, capture_output=True)
    names = ("publisher.pub", "signature.sig")
    parts = {MODULE_FILE: suite.module, MANIFEST_FILE: suite.manifest}
    parts |= {each: (tmp_path / each).read_bytes() for each in names}
    archive = tmp_path / "aileron.tar.gz"
    flipped = bytes([parts["signature.sig"][0] ^ 1]) + parts["signature.sig"][1:]
    archive.write_bytes(write_archive({**parts, "signature.sig": flipped}))
    said = aileron("connector", "install", "--unsigned", str(archive), home=home, code=1).stderr
    assert "does not fit the connector and the key in publisher.pub" in said
    archive.write_bytes(write_archive(parts))
    key = aileron_json("connector", "install", str(archive), home=home)["key"]
    (kept,) = (home / "store" / "connectors" / "sha256").glob(f"*/{SIGNED_FILE}")
    true = kept.read_bytes()
    kept.write_bytes(write_archive({**parts, "signature.sig": flipped}))
    async with Core.open(home, accept=False) as core:
        assert whose(offered_item(core, "connector")) == PublisherView(name=NAME)
        kept.write_bytes(true)
        await core.app.library.poll()
        assert whose(offered_item(core, "connector")).key == key
        await accept_view(core, offered_item(core, "connector"))
        accepted = [each["kind"] for each in await core.records("library.accepted")]
        assert accepted == ["publisher", "connector"]


CREDENTIAL = """
[capabilities.credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {key}"
"""


@pytest.mark.parametrize(
    ("version", "old", "new", "moves"),
    [
        ("1.5.0", "Bearer {key}", "Bearer {key}", True),
        ("1.3.0", "Bearer {key}", "Bearer {key}", False),
        ("1.5.0", 'hosts = ["gmail', 'hosts = ["other.example:443", "gmail', False),
        ("1.5.0", "Bearer {key}", "Token {key}", False),
    ],
    ids=["the same", "older", "one host more", "sent in another way"],
)
async def test_an_account_goes_with_its_connector_to_the_next_version_of_the_same_key(
    repository: Repository, home: Path, version: str, old: str, new: str, moves: bool
) -> None:
    """Where it asks for the same and reaches the same hosts, and its item says so; else a person binds it again."""
    manifest = repository.folder / "connector" / MANIFEST_FILE
    manifest.write_text(manifest.read_text() + CREDENTIAL)
    repository.add(repository.release("1.4.0", "key"))
    async with Core.open(home, accept=False) as core:
        await accept_view(core, offered_item(core, "connector"))
        core.app.vault.create(Secret(PASSPHRASE))
        (user,) = credential_users(core.app.library.accepted_connectors())
        hash_, secret = user.identity.hash, Secret("the-secret-key")
        bind = BindAccount(connector_hash=hash_, identity="work", account="a", secret=secret)
        bound = await core.app.bindings.bind(user, bind)
        manifest.write_text(manifest.read_text().replace(old, new))
        await asyncio.to_thread(repository.add, repository.release(version, "key"))
        await core.app.library.poll()
        later = offered_item(core, "connector")
        assert later.accounts_of == (("1.4.0",) if moves else ())
        assert core.app.bindings.get(bound.name).connector_hash == bound.connector_hash
        await accept_view(core, later)
        now = core.app.bindings.get(bound.name).connector_hash
        assert (now == later.digest, now == bound.connector_hash) == (moves, not moves)
        assert len(await core.records("binding.rebound")) == moves
    assert audit_problems(home) == []


async def test_where_a_connector_was_taken_from_stands_on_its_item(
    repository: Repository, home: Path, tmp_path: Path
) -> None:
    """Though it came alone, and through a route of this machine."""
    archive = tmp_path / "mail.tar.gz"
    archive.write_bytes(archive_of(repository.release("1.4.0", "key")))
    routed = ("--route", "github.com:443=127.0.0.1:9")
    aileron("connector", "install", str(archive), *routed, home=home)
    async with Core.open(home, accept=False) as core:
        shown = offered_item(core, "connector")
        assert shown.source == f"{archive} (through --route, from this machine)"
        lines = lay_out(file_blocks(shown), 160, 13).lines
        assert any(str(archive) in plain_text(each) for each in lines)
