"""An archive is read from a URL over TLS, from its host alone; what ends in the middle leaves nothing."""

import os
import signal
import subprocess
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from aileron_core.clock import SystemClock
from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE
from aileron_core.errors import AileronError, FileProblems
from aileron_core.releases import github as module
from aileron_core.releases.archive import write_archive
from aileron_core.releases.github import Downloads, read_url
from aileron_core.releases.suite import Release, archive_of, pack, read_suite
from tests.core.releases.conftest import served
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.server_harness import CLI, aileron, aileron_json
from tests.support.tls_service import Reply, Request, TlsService, tls_service

URL = "https://files.example/suite.tar.gz"


@pytest.fixture
def packed(folder: Path) -> Release:
    return pack(read_suite(folder), "1.4.0")


def read(service: TlsService, url: str) -> Release:
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
        assert read(service, URL).files == packed.files
        assert read(service, "https://files.example/moved?token=1").files == packed.files
        assert read(service, "https://files.example/connector").actions == {}
        service.seen.clear()
        with pytest.raises(AileronError, match=r"evil\.example:443 is not among the hosts"):
            read(service, "https://files.example/away")
        with pytest.raises(FileProblems, match=r"files\.example/gone: is not there"):
            read(service, "https://files.example/gone?token=1")
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
    there = {"/?secret=1": body, "/suite.tar.gz?secret=1": body}
    with served(there, "files.example") as routes:
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
def test_ctrl_c_while_downloading_leaves_nothing(
    packed: Release, tmp_path: Path, source: str
) -> None:
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
    assert len(asked_for) == wanted
    assert list(temporary.iterdir()) == []
    left = sorted(each.name for each in home.rglob("*") if each.is_file())
    assert not [name for name in left if name.endswith((".md", ".wasm", ".toml", ".json"))]
