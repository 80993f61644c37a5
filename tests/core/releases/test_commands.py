"""From a publisher's folder to a home: check, pack, sign, verify, and what `action add` takes of an archive."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from aileron_core.actions.suites import read_suites
from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE
from aileron_core.home.layout import Home
from aileron_core.releases.archive import read_archive, write_archive
from aileron_core.releases.signing import read_private_key, read_public_key
from aileron_core.releases.suite import (
    SUMS_FILE,
    Release,
    archive_of,
    limit_of,
    pack,
    portable_archives,
    read_suite,
)
from tests.core.releases.conftest import rewrite
from tests.fast.releases.test_archive import DAMAGED, REFUSED, packed
from tests.support.server_harness import aileron, aileron_json
from tests.support.variants import ALL

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


def sign(archive: Path, home: Path) -> str:
    """Sign with the key file `key` beside the archive, which is made; return its fingerprint."""
    key = archive.with_name("key")
    keygen(archive.parent, "-t", "ed25519", "-N", "", "-f", "key")
    return aileron_json("suite", "sign", str(archive), "--key", str(key), home=home)["key"]


def with_files(suite: Release, files: dict[str, bytes]) -> bytes:
    """Return an archive of *suite* with these files, and sums of them."""
    changed = replace(suite, files={**suite.files, **files})
    return archive_of(replace(changed, files={**changed.files, SUMS_FILE: changed.sums}))


def installed(home: Path) -> tuple[int, list[str]]:
    connectors = aileron_json("connector", "list", home=home)["items"]
    actions = aileron_json("action", "list", home=home)["items"]
    return len(connectors), [each["name"] for each in actions]


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")
def test_a_signed_suite_reaches_a_home(archive: Path, home: Path, tmp_path: Path) -> None:
    """Signed by a key file or by ssh-keygen; nothing is accepted; another key's name is refused."""
    key = sign(archive, home)
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
    body = aileron_json("action", "add", str(archive), home=home)
    (connector,) = body["connectors"]
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
    sign(archive, home)
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
    sums = (unpacked / SUMS_FILE).read_bytes()
    signed = agrees(unpacked, *verify, *named, given=sums)
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
    plain = read_archive(alone, "", limit_of)["signature.sig"]
    (tmp_path / "signature.sig").write_bytes(plain)
    pem = load_ssh_public_key(public).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "public").write_bytes(pem)
    parts = [(unpacked / name).read_bytes() for name in (MODULE_FILE, MANIFEST_FILE)]
    (tmp_path / "signed").write_bytes(b"".join(parts))
    check = ("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "public", "-rawin")
    fits = agrees(tmp_path, *check, "-in", "signed", "-sigfile", "signature.sig")
    assert fits == (change in ("", SUMS_FILE))


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")
def test_what_was_changed_after_it_was_signed_is_not_added(archive: Path, home: Path) -> None:
    """Though its sums were made anew; and nothing of it is installed."""
    sign(archive, home)
    signed = read_suite(archive)
    send = signed.files["actions/send-draft.md"].replace(b"required = true", b"required = false")
    archive.write_bytes(with_files(signed, {"actions/send-draft.md": send}))
    for words in (("suite", "verify"), ("action", "add"), ("connector", "install")):
        done = aileron(*words, str(archive), home=home, code=1)
        assert "were changed after they were signed" in done.stderr
    assert installed(home) == (0, [])


def test_a_bad_action_file_blocks_itself_and_a_bad_connector_all(archive: Path, home: Path) -> None:
    good = read_suite(archive)
    manifest = good.manifest.replace(b"[connector]", b"[connectors]")
    cases: list[tuple[dict[str, bytes], tuple[int, list[str]]]] = [
        ({MANIFEST_FILE: manifest}, (0, [])),
        ({"actions/list-drafts.md": b"+++\nname = 1\n+++\n"}, (1, ["get-draft", "send-draft"])),
    ]
    for changed, found in cases:
        archive.write_bytes(with_files(good, changed))
        aileron("action", "add", "--unsigned", str(archive), home=home, code=1)
        assert installed(home) == found
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
    rewrite(folder / "actions/list-drafts/action.md", "[match]", "[matches]")
    rewrite(folder / "connector" / MANIFEST_FILE, "[capabilities.runtime]", OAUTH2)
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
    hostile = {name: (packed(name), said) for name, (_, said) in REFUSED.items()} | DAMAGED
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
    assert (found["hash"], installed(home)) == (suite.connector_hash, (1, []))
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
    other = pack(replace(own, files={**own.files, **files}), "1.4.0")
    archive.write_bytes(archive_of(other))
    before = sorted(each.read_bytes() for each in (home / "actions").glob("*.md"))
    done = aileron("action", "add", "--unsigned", str(archive), home=home, code=1)
    assert "would replace send-draft of local://aileron/mail-drafts" in done.stdout + done.stderr
    assert sorted(each.read_bytes() for each in (home / "actions").glob("*.md")) == before
