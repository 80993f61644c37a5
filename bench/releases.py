"""Published suites: one archive of 521 files verified, suites of many archives fetched, the worst hostile archive.

Floors: of the archive, the standard library's `tarfile` and `gzip`, each file's SHA-256 and the signature; of
the fetches, eight threads that get the same files by `http.client` over connections that are open already; of
the hostile archives, the same command on a web page.
"""

import contextlib
import hashlib
import http.client
import multiprocessing
import random
import socket
import ssl
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aileron_core.clock import SystemClock
from aileron_core.releases.archive import write_archive
from aileron_core.releases.github import Downloads, GitHub, GitHubSource
from aileron_core.releases.signing import publisher_of, sign_sums
from aileron_core.releases.suite import (
    SIGNATURE_FILE,
    SUMS_FILE,
    Release,
    archive_of,
    portable_archives,
    read_connector,
    read_suite,
)
from bench.support import AILERON, Aims, amount
from tests.fast.releases.test_archive import DAMAGED, REFUSED, refused_archive
from tests.support.suites import write_actions
from tests.support.tls_service import Reply, Request, TlsService, tls_service

ROUNDS = amount(7, check=1)
ACTIONS = amount((15, 516), check=(3, 5))
KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
NAME = "github://aileron/mail-drafts"
ASSETS = "release-assets.githubusercontent.com"
RAW = "raw.githubusercontent.com"
MIB = 1024 * 1024
_EXAMPLE = Path(__file__).parents[1] / "examples" / "connectors" / "mail-drafts"
_AT_ONCE = 8
# A process of its own: what this one has in memory would be counted as its child's.
_MEASURES = """
import resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True)
taken = time.perf_counter() - began
print(done.returncode, taken, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def _suite(folder: Path, actions: int) -> Release:
    """Return a suite of that many actions, with its sums and their signature."""
    write_actions(folder, gated=actions * 7 // 10, reads=actions - actions * 7 // 10, first=0)
    for name in ("connector.wasm", "manifest.toml"):
        (folder / name).write_bytes((_EXAMPLE / name).read_bytes())
    for file in (folder / "manifest.toml", *folder.glob("actions/*/action.md")):
        file.write_text(file.read_text().replace("local://aileron/mail-drafts", NAME))
    found = read_suite(folder)
    found = replace(found, files={**found.files, SUMS_FILE: found.sums})
    signature = sign_sums(found.sums, KEY)
    return replace(found, files={**found.files, SIGNATURE_FILE: signature}, paths={})


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _best(works: Sequence[Callable[[], object]]) -> list[float]:
    """Return the fastest round of each, taken in turn, so that a busy machine slows all alike."""
    taken = [[_seconds(work) for work in works] for _ in range(ROUNDS)]
    return [min(each) for each in zip(*taken, strict=True)]


def _verify_by_hand(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        files = {each.name: opened.extractfile(each) for each in opened}
        read = {name: file.read() for name, file in files.items() if file is not None}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in read.items())
    public = KEY.public_key()
    public.verify(KEY.sign(sums.encode()), sums.encode())


def _one_archive(folder: Path, aims: Aims) -> None:
    suite = _suite(folder / "one", ACTIONS[-1])
    archive = folder / "suite.tar.gz"
    archive.write_bytes(archive_of(suite))
    ours, floor = _best(
        [lambda: publisher_of(read_connector(archive)), lambda: _verify_by_hand(archive)]
    )
    print(
        f"  one archive of {len(suite.files)} files, {archive.stat().st_size // 1000} kB: verified in "
        f"{ours * 1e3:.1f} ms beside {floor * 1e3:.1f} ms (floor): {ours / floor:.2f}"
    )
    aims.at_most("one archive verified, s", ours, 0.1)


def _serve(folder: Path, there: Mapping[tuple[str, str], Reply], hop: float, told: Any) -> None:
    def answer(request: Request) -> object:
        time.sleep(hop)
        return there.get((request.headers["host"], request.path), Reply(status=404))

    with tls_service(folder, "github.com", ASSETS, RAW) as service:
        service.answer = answer
        told.send(service.port)
        told.recv()


@contextlib.contextmanager
def _served(
    folder: Path, there: Mapping[tuple[str, str], Reply], hop: float
) -> Iterator[TlsService]:
    """Run GitHub's hosts in a process of their own, each request *hop* seconds away."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_serve, args=(folder, there, hop, theirs)
    )
    process.start()
    port = ours.recv()
    trust = ssl.create_default_context(cafile=str(folder / "both.pem"))
    try:
        yield TlsService(port=port, trust=trust)
    finally:
        ours.send(None)
        process.join()


def _open_connections(service: TlsService) -> dict[str, http.client.HTTPSConnection]:
    found = {host: http.client.HTTPSConnection(host) for host in ("github.com", ASSETS, RAW)}
    for host, connection in found.items():
        bare = socket.create_connection(("127.0.0.1", service.port))
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sock = service.trust.wrap_socket(bare, server_hostname=host)
    return found


def _get_by_hand(
    connections: Sequence[Mapping[str, http.client.HTTPSConnection]], urls: Sequence[str]
) -> None:
    def get(number: int) -> None:
        for each in urls[number :: len(connections)]:
            url: str | None = each
            while url:
                parts = urlsplit(url)
                connection = connections[number][parts.netloc]
                connection.request("GET", parts.path)
                answer = connection.getresponse()
                answer.read()
                assert answer.status in (200, 302)
                url = answer.headers["Location"]

    with ThreadPoolExecutor(len(connections)) as pool:
        list(pool.map(get, range(len(connections))))


def _single_archives(folder: Path, actions: int, hop: float, aims: Aims) -> None:
    suite = _suite(folder / f"{actions}-{hop}", actions)
    there: dict[tuple[str, str], Reply] = {}
    urls: list[str] = []
    for number, (name, data) in enumerate(portable_archives(suite, "0.1.0", KEY).items()):
        tag, _, file = name.rpartition("/")
        if file == "suite.toml":
            host, path = RAW, f"/aileron/mail-drafts/{tag}/{file}"
            there[host, path] = Reply(body=data)
        else:
            host, path = (
                "github.com",
                f"/aileron/mail-drafts/releases/download/{quote(tag, safe='')}/{file}",
            )
            there[host, path] = Reply(
                status=302, headers={"Location": f"https://{ASSETS}/{number}"}
            )
            there[ASSETS, f"/{number}"] = Reply(body=data)
        urls.append(f"https://{host}{path}")

    def fetch() -> None:
        client = service.client((), SystemClock())
        with contextlib.closing(client):
            downloads = Downloads(client, lambda _bytes: None)
            found = GitHub(downloads).read_suite(GitHubSource.parse(f"{NAME}@0.1.0"))
        assert len(found.actions) == actions

    (folder / f"tls-{actions}-{hop}").mkdir()
    with _served(folder / f"tls-{actions}-{hop}", there, hop) as service:
        kept = [_open_connections(service) for _ in range(_AT_ONCE)]

        def get() -> None:
            _get_by_hand(kept, urls)

        ours, floor = (_seconds(fetch), _seconds(get)) if hop else _best([fetch, get])
    what = f"{actions} actions, each an archive, {hop * 1e3:.0f} ms a hop"
    print(f"  {what:44} {ours:6.2f} s beside {floor:.2f} s (floor): {ours / floor:.2f}")
    aims.at_most(f"{what}, s", ours, 20 if hop else 1 if actions < 100 else 5)


def _large() -> Iterator[tuple[str, bytes]]:
    """Yield archives that are as large as they may be, or that cost much to look at."""
    example = {name: (_EXAMPLE / name).read_bytes() for name in ("connector.wasm", "manifest.toml")}

    def suite(files: Mapping[str, bytes]) -> bytes:
        whole = {**example, "suite.toml": b"actions = []\n", **files}
        lines = (f"{hashlib.sha256(whole[name]).hexdigest()}  {name}\n" for name in sorted(whole))
        return write_archive({**whole, SUMS_FILE: "".join(lines).encode()})

    size = amount(128, check=2) * MIB
    table = b'[[a]]\nb = "c"\n'
    for what, fill in (("random bytes", random.Random(7).randbytes), ("zeros", bytes)):
        module = {"connector.wasm": b"\0asm\1\0\0\0" + fill(size - 8)}
        yield f"a module as large as it may be, of {what}", suite(module)
        actions = {f"actions/a{number}.md": fill(size // 32) for number in range(14)}
        yield f"as much as there may be, of {what}", suite(module | actions)
    for count in (1, 16):
        front = b"+++\n" + table * (size // 32 // count // len(table) - 1) + b"+++\n"
        actions = {f"actions/a{number}.md": front for number in range(count)}
        yield f"{count} actions of 4 MiB of TOML together", suite(actions)
    yield (
        "a manifest of 1 MiB of TOML",
        suite({"manifest.toml": table * (size // 128 // len(table))}),
    )


def _add(archive: Path, data: bytes) -> tuple[float, float]:
    """Return seconds and MiB that a command takes to refuse *data*."""
    archive.write_bytes(data)
    home = str(archive.parent / "home")
    command = [*AILERON, "action", "add", "--unsigned", str(archive), "--home", home]
    measured = [sys.executable, "-I", "-S", "-c", _MEASURES, *command]
    told = subprocess.run(measured, capture_output=True, text=True, check=True).stdout
    code, seconds, kib = told.split()
    if code != "1":
        sys.exit(f"{command} ended with {code}")
    return float(seconds), float(kib) / 1024


def _hostile(folder: Path, aims: Aims) -> None:
    archive = folder / "hostile.tar.gz"
    floor = _add(archive, b"<html>")
    print(f"  a web page, refused by `action add` (floor): {floor[0]:.2f} s, {floor[1]:.0f} MiB")
    small = {name: refused_archive(name) for name in REFUSED} | {
        name: data for name, (data, _) in DAMAGED.items()
    }
    some = amount([*small.values()], check=[*small.values()][:2])
    slowest = max(_add(archive, data) for data in some)
    named = chain([(f"the slowest of {len(some)} small ones", slowest)], _add_each(archive))
    worst = [0.0, 0.0]
    for what, taken in named:
        ratios = ", ".join(f"{ours / bare:.2f}" for ours, bare in zip(taken, floor, strict=True))
        print(f"  {what:50} {taken[0]:5.2f} s, {taken[1]:4.0f} MiB: {ratios}")
        worst = [*map(max, worst, taken)]
    aims.at_most("worst hostile archive, s", worst[0], 1)
    aims.at_most("worst hostile archive, MiB", worst[1], 250)


def _add_each(archive: Path) -> Iterator[tuple[str, tuple[float, float]]]:
    for what, data in _large():
        yield what, min(_add(archive, data) for _ in range(amount(3, check=1)))


def main() -> None:
    """Print the figures, each beside its floor."""
    print("releases: published suites")
    aims = Aims()
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as name:
        folder = Path(name)
        _one_archive(folder, aims)
        for actions in ACTIONS:
            _single_archives(folder, actions, 0, aims)
        _single_archives(folder, ACTIONS[-1], 0.1, aims)
        _hostile(folder, aims)
    aims.report()


if __name__ == "__main__":
    main()
