"""A suite from its folder to a home: packed, signed, verified, added and updated; killed at any step, it is there or not."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from aileron_core.actions.suites import finish_adding, read_suites
from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE
from aileron_core.home.layout import Home
from aileron_core.releases.archive import read_archive, write_archive
from aileron_core.releases.signing import read_private_key, read_public_key, sign_sums
from aileron_core.releases.suite import (
    LIST_FILE,
    SIGNATURE_FILE,
    SUMS_FILE,
    Release,
    archive_of,
    limit_of,
    pack,
    portable_archives,
    read_suite,
)
from aileron_core.vault.secret import Secret
from tests.core.releases.conftest import ACTIONS, NAME, published_as, rewrite_file
from tests.core.releases.test_publishers import (
    Repository,
    accept_signed_suite,
    accept_view,
    repository,
)
from tests.core.releases.test_rules import KEY
from tests.fast.releases.test_archive import DAMAGED, REFUSED, refused_archive
from tests.support import killed
from tests.support.core_harness import PASSPHRASE, Core, audit_problems, unlock
from tests.support.forked import run_forked
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.server_harness import aileron, aileron_json
from tests.support.variants import ALL, variants

__all__ = ["repository"]

needs_ssh = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")
OAUTH2 = """[capabilities.credential]
kind = "oauth2"

[capabilities.credential.oauth2]
authorize_url = "https://id.example/authorize"
token_url = "https://id.example/token"
client_id = "me"
scopes = ["drafts.read", "drafts.send"]

[capabilities.runtime]"""


@pytest.fixture
def archive(folder: Path) -> Path:
    """The suite, packed."""
    packed = folder.parent / "suite.tar.gz"
    packed.write_bytes(archive_of(pack(read_suite(folder), "1.4.0")))
    return packed


def keygen(folder: Path, *words: str) -> None:
    subprocess.run(("ssh-keygen", "-q", *words), cwd=folder, check=True, capture_output=True)


def sign_suite(archive: Path, home: Path) -> str:
    """Sign with the key file `key` beside the archive, which is made; return its fingerprint."""
    key = archive.with_name("key")
    keygen(archive.parent, "-t", "ed25519", "-N", "", "-f", "key")
    return aileron_json("suite", "sign", str(archive), "--key", str(key), home=home)["key"]


def with_files(suite: Release, files: dict[str, bytes]) -> bytes:
    """Return an archive of *suite* with these files, and sums of them."""
    changed = replace(suite, files={**suite.files, **files})
    return archive_of(replace(changed, files={**changed.files, SUMS_FILE: changed.sums}))


def installed_items(home: Path) -> tuple[int, list[str]]:
    connectors = aileron_json("connector", "list", home=home)["items"]
    actions = aileron_json("action", "list", home=home)["items"]
    return len(connectors), [each["name"] for each in actions]


@needs_ssh
def test_a_signed_suite_reaches_a_home(archive: Path, home: Path, tmp_path: Path) -> None:
    """Signed by a key file or by ssh-keygen; nothing is accepted; another key's name is refused."""
    key = sign_suite(archive, home)
    ours = archive.read_bytes()
    (tmp_path / SUMS_FILE).write_bytes(read_suite(archive).files[SUMS_FILE])
    keygen(tmp_path, "-Y", "sign", "-n", "aileron-suite", "-f", "key", SUMS_FILE)
    signature = str(tmp_path / f"{SUMS_FILE}.sig")
    aileron_json("suite", "sign", str(archive), "--signature", signature, home=home)
    assert archive.read_bytes() == ours
    verified = aileron_json("suite", "verify", str(archive), "--key", key, home=home)
    assert verified["actions"] == ["get-draft", "list-drafts", "send-draft"]
    other = aileron("suite", "verify", str(archive), "--key", "SHA256:other", home=home, code=1)
    assert "not with SHA256:other" in other.stderr
    (connector,) = aileron_json("action", "add", str(archive), home=home)["connectors"]
    assert (connector["version"], connector["key"]) == ("1.4.0", key)
    items = aileron_json("action", "list", home=home)["items"]
    assert [each["state"] for each in items] == ["held_back"] * 3


def agrees(folder: Path, *words: str, given: bytes = b"") -> bool:
    """Return whether another program finds that what lies in *folder* is whole."""
    return subprocess.run(words, cwd=folder, input=given, capture_output=True).returncode == 0


@pytest.mark.skipif(
    not all(map(shutil.which, ("openssl", "sha256sum", "ssh-keygen", "tar"))), reason="needs them"
)
@pytest.mark.parametrize("change", ["", MODULE_FILE, MANIFEST_FILE, SUMS_FILE, "other key"])
def test_other_programs_verify_ours(archive: Path, home: Path, tmp_path: Path, change: str) -> None:
    """sha256sum and ssh-keygen of a suite, openssl of the original project's archives; nor what was changed."""
    sign_suite(archive, home)
    keygen(tmp_path, "-t", "ed25519", "-N", "", "-f", "other")
    public = (tmp_path / ("other.pub" if change == "other key" else "key.pub")).read_bytes()
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(("tar", "-xzf", archive, "-C", unpacked), check=True)
    if change in read_suite(archive).files:
        (unpacked / change).write_bytes((unpacked / change).read_bytes() + b"x")
    (tmp_path / "signers").write_bytes(b"me " + public)
    verify = ("ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "signers"), "-I", "me")
    named = ("-n", "aileron-suite", "-s", "SHA256SUMS.sig")
    signed = agrees(unpacked, *verify, *named, given=(unpacked / SUMS_FILE).read_bytes())
    assert signed == (change not in (SUMS_FILE, "other key"))
    whole = agrees(unpacked, "sha256sum", "-c", "--strict", SUMS_FILE)
    assert whole == (change in ("", "other key"))
    files = {name: (unpacked / name).read_bytes() for name in read_suite(archive).files}
    changed = tmp_path / "changed.tar.gz"
    changed.write_bytes(write_archive(files))
    words = ("--key", read_public_key(public, "").fingerprint)
    ours = aileron("suite", "verify", str(changed), *words, home=home, code=None)
    assert (ours.returncode == 0) == (signed and whole)
    key = read_private_key((tmp_path / "key").read_bytes(), "key")
    alone = portable_archives(read_suite(archive), "1.4.0", key)["v1.4.0/aileron.tar.gz"]
    (tmp_path / "signature.sig").write_bytes(read_archive(alone, "", limit_of)["signature.sig"])
    pem = load_ssh_public_key(public).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "public").write_bytes(pem)
    parts = [(unpacked / name).read_bytes() for name in (MODULE_FILE, MANIFEST_FILE)]
    (tmp_path / "signed").write_bytes(b"".join(parts))
    check = ("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "public", "-rawin")
    fits = agrees(tmp_path, *check, "-in", "signed", "-sigfile", "signature.sig")
    assert fits == (change in ("", SUMS_FILE))


@needs_ssh
def test_what_was_changed_after_it_was_signed_is_not_added(archive: Path, home: Path) -> None:
    """Though its sums were made anew; and nothing of it is installed."""
    sign_suite(archive, home)
    signed = read_suite(archive)
    send = signed.files["actions/send-draft.md"].replace(b"required = true", b"required = false")
    archive.write_bytes(with_files(signed, {"actions/send-draft.md": send}))
    for words in (("suite", "verify"), ("action", "add"), ("connector", "install")):
        done = aileron(*words, str(archive), home=home, code=1)
        assert "were changed after they were signed" in done.stderr
    assert installed_items(home) == (0, [])


def test_a_bad_action_file_blocks_itself_and_a_bad_connector_all(archive: Path, home: Path) -> None:
    good = read_suite(archive)
    cases: list[tuple[dict[str, bytes], tuple[int, list[str]]]] = [
        ({MANIFEST_FILE: good.manifest.replace(b"[connector]", b"[connectors]")}, (0, [])),
        ({"actions/list-drafts.md": b"+++\nname = 1\n+++\n"}, (1, ["get-draft", "send-draft"])),
    ]
    for changed, found in cases:
        archive.write_bytes(with_files(good, changed))
        aileron("action", "add", "--unsigned", str(archive), home=home, code=1)
        assert installed_items(home) == found
    (suite,) = read_suites(home / "suites")
    assert suite.view.refused
    assert all("list-drafts" in each for each in suite.view.refused), "the item says what is left"


def test_an_archive_is_as_readable_as_other_files(folder: Path, home: Path, tmp_path: Path) -> None:
    """Its mode is what the umask says: others fetch it."""
    packed = tmp_path / "suite.tar.gz"
    (tmp_path / "other").touch()
    words = ("--version", "1.4.0", "--output", str(packed))
    aileron("suite", "pack", str(folder), *words, home=home)
    assert packed.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_what_is_added_is_printed(folder: Path, archive: Path, home: Path) -> None:
    """Which actions ask for consent, what is shown then, the account and its scopes, what cannot be used; also as JSON."""
    words = ("action", "add", "--unsigned", str(archive))
    printed = aileron(*words, home=home).stdout
    assert "added get-draft: runs at once" in printed
    shown = "needs approval, shows To, Cc, Bcc, Subject, Body (by get_draft)"
    assert f"added send-draft: {shown}" in printed
    rewrite_file(folder / "actions/list-drafts/action.md", "[match]", "[matches]")
    rewrite_file(folder / "connector" / MANIFEST_FILE, "[capabilities.runtime]", OAUTH2)
    archive.write_bytes(archive_of(pack(read_suite(folder), "1.4.0")))
    printed = aileron(*words, home=home, code=1).stdout
    assert "asks for oauth2 credential: drafts.read, drafts.send" in printed
    body = json.loads(aileron(*words, "--json", home=home, code=1).stdout)
    found = {each["name"]: (each["gated"], each["preview"]) for each in body["items"]}
    assert found == {"get-draft": (False, None), "send-draft": (True, "get_draft")}
    assert body["connectors"][0]["scopes"] == ["drafts.read", "drafts.send"]
    assert [Path(each["file"]).stem for each in body["problems"]] == ["list-drafts"] * 2


def test_no_hostile_archive_leaves_a_file(home: Path, tmp_path: Path) -> None:
    """Each of sixty is refused by a sentence about what is in it; `make test` takes some of each kind."""
    hostile = {name: (refused_archive(name), said) for name, (_, said) in REFUSED.items()} | DAMAGED
    assert len(hostile) >= 60
    archive, temporary = tmp_path / "a.tar.gz", tmp_path / "temporary"
    temporary.mkdir()
    Home(home).prepare()
    before = {*home.rglob("*")}
    for name, (data, said) in sorted(hostile.items())[:: 1 if ALL else 5]:
        archive.write_bytes(data)
        words = ("action", "add", "--unsigned", str(archive))
        refused = aileron(*words, home=home, code=1, env={"TMPDIR": str(temporary)}).stderr
        assert re.search(f"{archive}: .*({said})", refused), name
        assert {*home.rglob("*"), *temporary.rglob("*")} == before, name


def test_a_connector_is_installed_from_either_archive(archive: Path, home: Path) -> None:
    """A suite's, or one that holds a connector alone, as other publishers make it."""
    suite = read_suite(archive)
    said = aileron("connector", "install", str(archive), home=home, code=1).stderr
    assert "is not signed, so nobody vouches for it" in said
    aileron("connector", "install", "--unsigned", str(archive), home=home)
    parts = {MODULE_FILE: suite.module, MANIFEST_FILE: suite.manifest, "signature.sig": b"0" * 64}
    alone = archive.with_name("aileron.tar.gz")
    alone.write_bytes(write_archive(parts))
    found = aileron_json("connector", "install", "--unsigned", str(alone), home=home)
    assert (found["hash"], installed_items(home)) == (suite.connector_hash, (1, []))
    alone.write_bytes(write_archive({**parts, "actions/more.md": b""}))
    aileron("connector", "install", "--unsigned", str(alone), home=home, code=1)


def test_a_suite_does_not_replace_the_actions_of_another(archive: Path, home: Path) -> None:
    """Of another repository: what is there stays, and is named."""
    aileron("action", "add", "--unsigned", str(archive), home=home)
    own = read_suite(archive)
    files = {name: data for name, data in own.files.items() if name != MODULE_FILE}
    for name, data in files.items():
        named = data.replace(b"local://aileron/mail-drafts", b"local://evil/other")
        files[name] = named.replace(own.connector_hash.encode(), b"sha256:bound-at-release")
    archive.write_bytes(archive_of(pack(replace(own, files={**own.files, **files}), "1.4.0")))
    before = sorted(each.read_bytes() for each in (home / "actions").glob("*.md"))
    done = aileron("action", "add", "--unsigned", str(archive), home=home, code=1)
    assert "would replace send-draft of local://aileron/mail-drafts" in done.stdout + done.stderr
    assert sorted(each.read_bytes() for each in (home / "actions").glob("*.md")) == before


PLACE = "/aileron/mail-drafts/releases"


class GitHub:
    """Its newest release is 1.5.0, until another one is."""

    def __init__(self) -> None:
        self.archive, self.newest = b"", "1.5.0"
        self.asked: list[str] = []

    def answer(self, asked: HttpRequest, _body: bytes) -> None:
        self.asked.append(asked.path)
        if asked.path == f"{PLACE}/latest":
            reply(asked, 302, b"", {"Location": f"https://github.com{PLACE}/tag/v{self.newest}"})
        elif asked.path.endswith("/v1.5.0/aileron-suite.tar.gz"):
            reply(asked, 200, self.archive, {})
        else:
            reply(asked, 200 if "/tag/" in asked.path else 404, b"", {})


@pytest.fixture
def github() -> Iterator[tuple[GitHub, tuple[str, ...]]]:
    """GitHub, and the words of a command that is led there."""
    made = GitHub()
    with http_server(made.answer) as server:
        yield made, ("--route", f"github.com:443=127.0.0.1:{server.server_address[1]}")


async def accept_all(core: Core) -> None:
    """Accept all that waits, which is one item."""
    await accept_signed_suite(core, core.app.library.not_accepted())


def versions(core: Core) -> dict[str, str]:
    return {each.name: each.version for each in core.app.library.ready()}


@needs_ssh
async def test_a_newer_release_waits_until_it_is_accepted_and_the_one_before_is_kept(
    repository: Repository, home: Path, github: tuple[GitHub, tuple[str, ...]]
) -> None:
    """What is not in it any more stays; nothing is fetched where there is nothing newer."""
    service, led = github
    repository.add(repository.release("1.4.0", "key"))
    async with Core.open(home, accept=False) as core:
        await accept_all(core)
    rewrite_file(repository.folder / "actions/send-draft/action.md", "already written", "written")
    shutil.rmtree(repository.folder / "actions" / "list-drafts")
    rewrite_file(repository.folder / LIST_FILE, ', "actions/list-drafts"', "")
    service.archive = archive_of(repository.release("1.5.0", "key"))
    said = aileron("update", *led, home=home).stdout
    assert "list-drafts is not in this release any more" in said
    assert "what you accepted before counts until then" in said
    assert "installed github://aileron/mail-drafts@1.5.0" in said
    async with Core.open(home, accept=False) as core:
        assert set(versions(core).values()) == {"1.4.0"}
        gone = {each.suite and each.suite.gone for each in core.app.library.not_accepted()}
        assert gone == {("list-drafts",)}
        await accept_all(core)
        now = {"get-draft": "1.5.0", "list-drafts": "1.4.0", "send-draft": "1.5.0"}
        assert versions(core) == now
    service.asked.clear()
    body = aileron_json("update", "aileron/mail-drafts", *led, home=home)
    assert body["looked"] == [{"name": NAME, "accepted": "1.5.0", "newest": "1.5.0", "gone": []}]
    service.newest = "1.4.0"
    said = aileron("update", *led, home=home, code=1).stdout
    assert "older than the accepted 1.5.0" in said
    assert not [each for each in service.asked if each.endswith(".gz")]

    for offered, other in (("1.4.0", "1.5.0"), ("1.5.0", "1.4.0")):
        aileron("update", "send-draft", "--back", home=home)
        async with Core.open(home, accept=False) as core:
            assert versions(core)["send-draft"] == other
            (waits,) = core.app.library.not_accepted()
            await accept_view(core, waits)
            assert versions(core)["send-draft"] == offered
    nowhere = ("--route", "github.com:443=127.0.0.1:1")
    assert f"✗ {NAME}: github.com" in aileron("update", *nowhere, home=home, code=1).stdout
    said = aileron("update", "list-drafts", "--back", home=home, code=1).stderr
    assert "No version of list-drafts was accepted before" in said


@needs_ssh
def test_what_is_not_accepted_is_not_looked_up(
    home: Path, github: tuple[GitHub, tuple[str, ...]]
) -> None:
    service, led = github
    assert "Nothing to look up" in aileron("update", *led, home=home).stdout
    assert service.asked == []
    said = aileron("update", "nothing", *led, home=home, code=1).stderr
    assert "Nothing called nothing is accepted" in said


Seen = tuple[frozenset[tuple[str, str]], ...]


def steps(template: Path, home: Path, *words: str) -> Iterator[int]:
    """Do *words* in a copy of *template*, again and again, each time killed one step later; at last not."""
    for step in range(1, 1000):
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(template, home)
        done = run_forked([sys.executable, "-I", killed.__file__, str(step), str(home), *words])
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        yield step
        if done.returncode == 0:
            return


async def seen(home: Path) -> tuple[Seen, Seen]:
    """Return what is accepted in *home*, and what waits: actions and connectors with their versions."""
    async with Core.open(home, accept=False) as core:
        if core.app.vault.state == "locked":
            await unlock(core)
        library = core.app.library
        waits = library.not_accepted()
        accepted = (
            frozenset((each.name, each.version) for each in library.ready()),
            frozenset(
                (each.identity.ref, each.identity.hash) for each in library.accepted_connectors()
            ),
        )
        offered = (
            frozenset((each.name, each.digest) for each in waits if each.kind == "action"),
            frozenset((each.name, each.digest) for each in waits if each.kind == "connector"),
        )
    assert audit_problems(home) == []
    return accepted, offered


@pytest.fixture
def archives(folder: Path) -> dict[str, str]:
    """The suite in two versions, signed with one key."""
    published_as(folder)
    found: dict[str, str] = {}
    for version in ("1.4.0", "1.5.0"):
        suite = pack(read_suite(folder), version)
        signed = {**suite.files, SIGNATURE_FILE: sign_sums(suite.files[SUMS_FILE], KEY)}
        path = folder.with_name(f"{version}.tar.gz")
        path.write_bytes(archive_of(replace(suite, files=signed)))
        found[version] = str(path)
    return found


async def waiting_home(archives: dict[str, str], home: Path, *, update: bool, vault: bool) -> None:
    """Make a home in which the newer version waits, in place of the accepted older one if *update*."""
    home.mkdir()
    if update:
        aileron("action", "add", archives["1.4.0"], home=home)
    async with Core.open(home) as core:
        if vault:
            core.app.vault.create(Secret(PASSPHRASE))
            await core.until_record("library.authenticated", 3)


@pytest.mark.parametrize("what", variants(["update", "back", "new"], 2))
async def test_a_kill_at_any_step_of_adding(
    archives: dict[str, str], tmp_path: Path, what: str
) -> None:
    """What was accepted counts as before, and of the new files all or none wait: a console moves the rest."""
    template, home = tmp_path / "template", tmp_path / "home"
    await waiting_home(archives, template, update=what != "new", vault=False)
    words, waiting = ("action", "add", archives["1.5.0"]), {(0, 0), (0, 1), (len(ACTIONS), 1)}
    if what == "back":
        aileron(*words, home=template)
        async with Core.open(template):
            words = ("update", "aileron/mail-drafts", "--back")
            waiting = {(0, 0), (len(ACTIONS), 0)}
    before, _ = await seen(template)
    found: set[tuple[int, int]] = set()
    for _ in steps(template, home, *words):
        after, waits = await seen(home)
        assert after == before
        found.add((len(waits[0]), len(waits[1])))
    assert found == waiting


def test_what_a_killed_add_left_goes_with_a_later_one(archives: dict[str, str], home: Path) -> None:
    """An hour later, when it cannot be that of a command that still runs."""
    aileron("action", "add", archives["1.4.0"], home=home)
    left = [home / "actions/.add-x/a.md", home / "suites/.x", home / "store/connectors/tmp/x/a"]
    for each in left:
        each.parent.mkdir(exist_ok=True)
        each.touch()
    for age, stays in ((0, True), (3700, False)):
        for each in chain(left, (each.parent for each in left)):
            os.utime(each, (time.time() - age,) * 2)
        aileron("action", "add", archives["1.4.0"], home=home)
        assert [each.exists() for each in left] == [stays] * 3


def test_a_file_that_a_person_changed_meanwhile_stays(archives: dict[str, str], home: Path) -> None:
    """Though it is one that a killed command had still to move; what an add replaces can have any date."""
    file = home / "actions" / "send-draft.md"
    for version in ("1.4.0", "1.5.0"):
        aileron("action", "add", archives[version], home=home)
        assert f'version = "{version}"' in file.read_text()
        os.utime(file, (time.time() + 86400,) * 2)
    written = home / "actions" / ".added-x"
    written.mkdir()
    for name in ("send-draft.md", "more.md"):
        (written / name).write_text("older")
    finish_adding(home / "actions")
    assert "older" not in file.read_text()
    assert (home / "actions" / "more.md").read_text() == "older"
    assert not written.exists()


@pytest.mark.parametrize(
    ("update", "vault"), variants([(True, True), (False, False), (True, False)])
)
async def test_a_kill_at_any_step_of_an_acceptance(
    archives: dict[str, str], tmp_path: Path, update: bool, vault: bool
) -> None:
    """Of a suite with its connector and its publisher's key: all of it counts, or what counted before."""
    template, home = tmp_path / "template", tmp_path / "home"
    await waiting_home(archives, template, update=update, vault=vault)
    aileron("action", "add", archives["1.5.0"], home=template)
    before = await seen(template)
    found = [await seen(home) for _ in steps(template, home, "accept")]
    assert ({*found}, found[-1][1]) == ({before, found[-1]}, (frozenset(), frozenset()))
