"""A suite is read from GitHub's releases, a mirror or a URL, over TLS, from its hosts alone, and is what was asked for."""

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from aileron_core.clock import SystemClock
from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE
from aileron_core.errors import AileronError, FileProblems
from aileron_core.releases import github as module
from aileron_core.releases.archive import read_archive, write_archive
from aileron_core.releases.github import Downloads, GitHub, GitHubSource, read_url
from aileron_core.releases.suite import LIST_FILE, Release, archive_of, pack, read_suite
from tests.core.releases.conftest import ACTIONS, NAME, published_as, served_release
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.server_harness import CLI, Console, aileron, aileron_json
from tests.support.tls_service import Reply, Request, TlsService, tls_service

BASE = "/aileron/mail-drafts"
ASSETS = "release-assets.githubusercontent.com"
RAW = "raw.githubusercontent.com"
SUITE = f"{BASE}/releases/download/v1.4.0/aileron-suite.tar.gz"


@pytest.fixture
def packed(folder: Path) -> Release:
    """The suite under the name that its repository has."""
    published_as(folder)
    return pack(read_suite(folder), "1.4.0")


class FourHosts:
    """What is at GitHub, by host and path; the rest is 404."""

    def __init__(self, service: TlsService) -> None:
        self.service = service
        self.there: dict[tuple[str, str], Reply] = {}
        service.answer = self._answer

    def _answer(self, request: Request) -> object:
        return self.there.get((request.headers["host"], request.path), Reply(status=404))

    def put(self, host: str, path: str, body: bytes) -> None:
        self.there[host, path] = Reply(body=body)

    def send_on(self, path: str, location: str) -> None:
        self.there["github.com", path] = Reply(status=302, headers={"Location": location})

    def release(self, archive: bytes) -> None:
        self.send_on(SUITE, f"https://{ASSETS}/1?sig=x")
        self.put(ASSETS, "/1?sig=x", archive)

    def read(self, source: str, mirror: str = "") -> Release:
        with closing(self.service.client((), SystemClock())) as client:
            downloads = Downloads(client, lambda _bytes: None)
            return GitHub(downloads, mirror).read_suite(GitHubSource.parse(source))


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[FourHosts]:
    (tmp_path / "tls").mkdir()
    others = (ASSETS, RAW, "objects.githubusercontent.com", "files.example", "evil.example")
    with tls_service(tmp_path / "tls", "github.com", *others) as service:
        yield FourHosts(service)


def test_the_newest_release_is_found_by_its_redirect(hosts: FourHosts, packed: Release) -> None:
    """Without the API; a version that is named is asked for at once."""
    hosts.release(archive_of(packed))
    hosts.send_on(f"{BASE}/releases/latest", f"https://github.com{BASE}/releases/tag/v1.4.0")
    hosts.put("github.com", f"{BASE}/releases/tag/v1.4.0", b"<html>")
    assert hosts.read(NAME).files == packed.files
    assert [each.method for each in hosts.service.seen] == ["HEAD", "HEAD", "GET", "GET"]
    hosts.service.seen.clear()
    assert hosts.read(f"{NAME}@1.4.0").files == packed.files
    assert len(hosts.service.seen) == 2


def put_single_archives(
    hosts: FourHosts, packed: Release, host: str, base: str, action: str, raw: tuple[str, str]
) -> None:
    """Put the suite in the older layout; the path of an action's archive is *action* with its name."""
    hosts.put(*raw, packed.files[LIST_FILE])
    parts = {MODULE_FILE: packed.module, MANIFEST_FILE: packed.manifest, "signature.sig": b"0"}
    hosts.put(host, f"{base}/v1.4.0/aileron.tar.gz", write_archive(parts))
    for name in ACTIONS:
        archive = write_archive({"action.md": packed.files[f"actions/{name}.md"]})
        hosts.put(host, f"{base}/{action.format(name)}/aileron.tar.gz", archive)


DOWNLOADS = f"{BASE}/releases/download"
OF_GITHUB = ("github.com", DOWNLOADS, "actions%2F{}%2Fv1.4.0", (RAW, f"{BASE}/v1.4.0/suite.toml"))


def test_an_archive_for_each_file_makes_a_suite(hosts: FourHosts, packed: Release) -> None:
    put_single_archives(hosts, packed, *OF_GITHUB)
    found = hosts.read(f"{NAME}@1.4.0")
    assert (found.actions, found.connector_hash) == (packed.actions, packed.connector_hash)


def test_what_is_not_what_was_asked_for_is_refused(hosts: FourHosts, packed: Release) -> None:
    """Another host, a third hop, another repository or version in the archive, half of it, an action that is missing."""
    whole = archive_of(packed)
    hosts.send_on(SUITE, "https://evil.example/1")
    hosts.put("evil.example", "/1", whole)
    with pytest.raises(AileronError, match=r"evil\.example:443 is not among the hosts"):
        hosts.read(f"{NAME}@1.4.0")
    assert all(each.headers["host"] != "evil.example" for each in hosts.service.seen)
    for path, following in ((SUITE, "/a"), ("/a", "/b"), ("/b", "/c")):
        hosts.send_on(path, f"https://github.com{following}")
    with pytest.raises(AileronError, match="redirected more than 2 times"):
        hosts.read(f"{NAME}@1.4.0")
    for archive, said in (
        (whole[:-300], "ends in the middle"),
        (b"<html>", "is not a gzip archive"),
    ):
        hosts.release(archive)
        with pytest.raises(FileProblems, match=said):
            hosts.read(f"{NAME}@1.4.0")
    hosts.put("github.com", f"{DOWNLOADS}/v1.5.0/aileron-suite.tar.gz", whole)
    with pytest.raises(FileProblems, match=r"is github://aileron/mail-drafts@1\.4\.0, not what"):
        hosts.read(f"{NAME}@1.5.0")
    hosts.there.clear()
    put_single_archives(hosts, packed, *OF_GITHUB)
    del hosts.there["github.com", f"{DOWNLOADS}/actions%2Fget-draft%2Fv1.4.0/aileron.tar.gz"]
    with pytest.raises(FileProblems, match=r"has no github\.com/.*get-draft"):
        hosts.read(f"{NAME}@1.4.0")


def test_a_mirror_has_the_same_releases_as_plain_files(hosts: FourHosts, packed: Release) -> None:
    """In either layout, and no other host is asked."""
    mirror, base = "https://files.example/aileron", f"/aileron{BASE}"
    hosts.put("files.example", f"{base}/latest", b"v1.4.0\n")
    hosts.put("files.example", f"{base}/v1.4.0/aileron-suite.tar.gz", archive_of(packed))
    assert hosts.read(NAME, mirror).files == packed.files
    hosts.there.clear()
    raw = ("files.example", f"{base}/v1.4.0/suite.toml")
    put_single_archives(hosts, packed, "files.example", base, "actions/{}/v1.4.0", raw)
    assert hosts.read(f"{NAME}@1.4.0", f"{mirror}/").actions == packed.actions
    hosts.put("files.example", f"{base}/latest", b"<html>")
    with pytest.raises(FileProblems, match="has no release"):
        hosts.read(NAME, mirror)
    location = {"Location": "https://github.com/"}
    hosts.there["files.example", f"{base}/latest"] = Reply(status=302, headers=location)
    with pytest.raises(AileronError, match=r"github\.com:443 is not among the hosts"):
        hosts.read(NAME, mirror)
    assert {each.headers["host"] for each in hosts.service.seen} == {"files.example"}


def test_the_archives_of_the_original_project_are_read_from_its_layout(
    hosts: FourHosts, packed: Release, folder: Path, tmp_path: Path
) -> None:
    """As `suite pack --portable` writes them: three files for the connector, each signed; what it would refuse is not packed."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key").write_bytes(pem)
    options = ("--version", "1.4.0", "--output", str(tmp_path / "a.tar.gz"))
    pack_ = ("suite", "pack", str(folder), *options)
    words = (*pack_, "--portable", "--key", str(tmp_path / "key"))
    refused = aileron(*words, home=tmp_path, code=1).stderr
    assert "provides.ops: is not known to the original project" in refused
    assert "approval.preview.gist: is an extension" in refused
    assert not (tmp_path / "a.tar.gz").exists()
    manifest = folder / "connector" / MANIFEST_FILE
    manifest.write_text(manifest.read_text().partition("# What agents read of an op")[0])
    send = folder / "actions/send-draft/action.md"
    send.write_text(re.sub(r"(?m)^(effect|gist) = .*\n", "", send.read_text()))
    aileron(*pack_, "--portable", home=tmp_path, code=2)
    written = Path(aileron_json(*words, home=tmp_path)["portable"])
    own = read_suite(tmp_path / "a.tar.gz")
    parts = read_archive((written / "v1.4.0/aileron.tar.gz").read_bytes(), "a", lambda _name: 2**30)
    assert parts.keys() == {MODULE_FILE, MANIFEST_FILE, "signature.sig"}
    key.public_key().verify(parts["signature.sig"], own.module + own.manifest)
    for file in written.rglob("*.tar.gz"):
        tag = quote(str(file.parent.relative_to(written)), safe="")
        hosts.put("github.com", f"{DOWNLOADS}/{tag}/{file.name}", file.read_bytes())
    hosts.put(RAW, f"{BASE}/v1.4.0/suite.toml", (written / "v1.4.0/suite.toml").read_bytes())
    found = hosts.read(f"{NAME}@1.4.0")
    assert (found.actions, found.connector_hash) == (own.actions, own.connector_hash)


@pytest.mark.parametrize(
    "source",
    ["github://", "github://o", "github://o/..", "github://o/r/x", "github://o/r@1", "github://o/r@v1.0.0",
     "github://o/r/actions/../x", "github://o@e/r", "github://o/r@1.0.0@1.0.0", "github://-o/r"],
)  # fmt: skip
def test_a_source_of_another_form_is_refused(source: str) -> None:
    with pytest.raises(FileProblems, match="is not github://OWNER/REPO"):
        GitHubSource.parse(source)


@pytest.mark.parametrize("mirror", ["", "https://files.example"])
def test_action_add_takes_a_repository(packed: Release, tmp_path: Path, mirror: str) -> None:
    """The connector and the one action that was named; nothing of them is accepted."""
    path = f"{BASE}/v1.4.0/aileron-suite.tar.gz" if mirror else SUITE
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(f'[store]\nmirror = "{mirror}"\n')
    with served_release(
        {path: archive_of(packed)}, "files.example" if mirror else "github.com"
    ) as routes:
        words = ("--unsigned", *routes, f"{NAME}/actions/get-draft@1.4.0")
        body = aileron_json("action", "add", *words, home=home)
    assert [each["name"] for each in body["items"]] == ["get-draft"]
    assert body["connectors"][0]["hash"] == packed.connector_hash
    (item,) = aileron_json("action", "list", home=home)["items"]
    assert item["state"] == "held_back"


def test_a_version_older_than_the_accepted_one_is_taken_only_if_it_is_named(
    packed: Release, folder: Path, tmp_path: Path
) -> None:
    """Whoever answers in GitHub's place cannot lead back to an older release by calling it the newest."""
    newer, newest = (pack(read_suite(folder), version) for version in ("1.9.0", "1.10.0"))
    suites = {"1.4.0": packed, "1.9.0": newer, "1.10.0": newest}
    latest, home = "1.9.0", tmp_path / "home"

    def answer(asked: HttpRequest, _body: bytes) -> None:
        found = [v for v in suites if asked.path.startswith(f"{DOWNLOADS}/v{v}/")]
        if asked.path.endswith("/releases/latest"):
            reply(asked, 302, b"", {"Location": f"https://github.com{BASE}/releases/tag/v{latest}"})
        else:
            reply(asked, 200, archive_of(suites[found[0]]) if found else b"", {})

    with http_server(answer) as server:
        route = f"github.com:443=127.0.0.1:{server.server_address[1]}"

        def add(source: str, code: int = 0) -> str:
            words = ("--unsigned", "--route", route, source)
            return aileron("connector", "install", *words, home=home, code=code).stderr

        add(NAME)
        Console(home).end()  # with everything accepted
        latest = "1.4.0"
        refused = add(NAME, code=1)
        assert "1.4.0 as its newest release, which is older than the accepted 1.9.0" in refused
        add(f"{NAME}@1.4.0")
        latest = "1.10.0"
        add(NAME)


URL = "https://files.example/suite.tar.gz"


def downloaded(service: TlsService, url: str) -> Release:
    with closing(service.client((), SystemClock())) as client:
        return read_url(Downloads(client, lambda _bytes: None), url)


def test_an_archive_is_read_from_its_host_alone(packed: Release, tmp_path: Path) -> None:
    """A redirect leads to another path, and to no other host."""
    parts = {MODULE_FILE: packed.module, MANIFEST_FILE: packed.manifest, "signature.sig": b"0"}
    there = {
        "/suite.tar.gz": Reply(body=archive_of(packed)),
        "/connector": Reply(body=write_archive(parts)),
        "/moved?token=1": Reply(status=302, headers={"Location": "/suite.tar.gz"}),
        "/away": Reply(status=302, headers={"Location": "https://evil.example/suite.tar.gz"}),
    }
    with tls_service(tmp_path, "files.example", "evil.example") as service:
        service.answer = lambda request: there.get(request.path, Reply(status=404))
        assert downloaded(service, URL).files == packed.files
        assert downloaded(service, "https://files.example/moved?token=1").files == packed.files
        assert downloaded(service, "https://files.example/connector").actions == {}
        service.seen.clear()
        with pytest.raises(AileronError, match=r"evil\.example:443 is not among the hosts"):
            downloaded(service, "https://files.example/away")
        with pytest.raises(FileProblems, match=r"files\.example/gone: is not there"):
            downloaded(service, "https://files.example/gone?token=1")
        assert {each.headers["host"] for each in service.seen} == {"files.example"}


def test_files_at_once_have_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is kept beyond it, and what is asked for later is refused with the same sentence."""
    monkeypatch.setattr(module, "MAX_ARCHIVE", 1000)
    both = threading.Barrier(2)

    def answer(request: Request) -> Reply:
        if request.path != "/later":
            both.wait(20)
        return Reply(body=b"x" * 600)

    with tls_service(tmp_path, "files.example") as service:
        service.answer = answer
        with closing(service.client((), SystemClock())) as client:
            downloads = Downloads(client, lambda _bytes: None)
            get = partial(downloads.get, limit=1000, hosts={"files.example:443"})
            names = [f"https://files.example/{name}" for name in ("a", "b")]
            with pytest.raises(FileProblems, match="is too large: all files of a release"):
                downloads.at_once([partial(get, each) for each in names])
            with pytest.raises(FileProblems, match="is too large: all files of a release"):
                get("https://files.example/later")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://files.example/secret.tar.gz", "must begin with https://"),
        ("https://me:secret@files.example/suite.tar.gz", "user information\n"),
        ("https:///suite.tar.gz?secret", "has no host"),
        ("https://10.0.0.1/suite.tar.gz?secret", "is a private address"),
    ],
)
def test_another_url_is_refused(url: str, said: str, tmp_path: Path) -> None:
    """Of a URL with a secret in it, the sentence has the rest; nothing was sent."""
    refused = aileron("action", "add", url, home=tmp_path / "home", code=None).stderr
    assert said in refused
    assert "secret@" not in refused
    assert "?secret" not in refused


def test_a_private_address_is_asked_for_a_mirror_alone(tmp_path: Path) -> None:
    """Nothing answers there; an address of this machine is never asked."""
    for address, said in (("fd00::1", "[fd00::1]:443"), ("::1", "is loopback")):
        (tmp_path / "config.toml").write_text(f'[store]\nmirror = "https://[{address}]"\n')
        refused = aileron("action", "add", "github://owner/repo", home=tmp_path, code=None).stderr
        assert said in refused
        assert "is a private address" not in refused


def test_action_add_takes_a_url(packed: Release, tmp_path: Path) -> None:
    """What is printed and what the home notes of it has no secret of its query, with or without a path before that."""
    home = tmp_path / "home"
    body = archive_of(packed)
    with served_release(
        {"/?secret=1": body, "/suite.tar.gz?secret=1": body}, "files.example"
    ) as routes:
        unsigned = ("action", "add", *routes, "https://files.example?secret=1")
        refused = aileron(*unsigned, home=home, code=1).stderr
        assert "https://files.example: is not signed" in refused
        assert "secret" not in refused
        words = ("--unsigned", *routes, f"{URL}?secret=1")
        added = aileron_json("action", "add", *words, home=home)
    assert added["connectors"][0]["hash"] == packed.connector_hash
    assert len(added["items"]) == 3
    written = b"".join(each.read_bytes() for each in home.rglob("*") if each.is_file())
    assert URL.encode() in written
    assert b"secret" not in written


@pytest.mark.real
@pytest.mark.parametrize("source", [URL, "github://aileron/mail-drafts@1.4.0"])
def test_ctrl_c_in_a_download_leaves_nothing(packed: Release, tmp_path: Path, source: str) -> None:
    """Of one archive, or of eight that come at once; the command ends at once."""
    archive, names = archive_of(packed), [f"actions/a{number}" for number in range(20)]
    asked_for: list[str] = []

    def answer(asked: HttpRequest, _body: bytes) -> None:
        if asked.path.endswith("aileron-suite.tar.gz") or "publisher.pub" in asked.path:
            reply(asked, 404, b"", {})
        elif asked.path.endswith("suite.toml"):
            reply(asked, 200, f"actions = {names}".encode(), {})
        else:
            asked.send_response(200)
            asked.send_header("Content-Length", str(len(archive)))
            asked.end_headers()
            asked.wfile.write(archive[: len(archive) // 2])
            asked_for.append(asked.path)
            time.sleep(30)

    home, temporary = tmp_path / "home", tmp_path / "tmp"
    temporary.mkdir()
    with http_server(answer) as server:
        hosts = ("files.example", "github.com", "raw.githubusercontent.com")
        place = f"127.0.0.1:{server.server_address[1]}"
        routes = [word for host in hosts for word in ("--route", f"{host}:443={place}")]
        command = (*CLI, "action", "add", "--unsigned", *routes, source, "--home", str(home))
        with subprocess.Popen(
            command, env={**os.environ, "TMPDIR": str(temporary)}, stderr=subprocess.PIPE
        ) as process:
            wanted = 1 if source == URL else 8
            until = time.monotonic() + 30
            while len(asked_for) < wanted and time.monotonic() < until:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
    assert (len(asked_for), list(temporary.iterdir())) == (wanted, [])
    left = sorted(each.name for each in home.rglob("*") if each.is_file())
    assert not [name for name in left if name.endswith((".md", ".wasm", ".toml", ".json"))]
