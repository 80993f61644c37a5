"""The store: what is in it is what was put in, or an error; and which connector an action gets."""

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import wasmtime

from aileron_core.clock import SystemClock
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore, InstalledConnector, identity_hash
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.errors import (
    ConnectorRuntimeError,
    FileProblems,
    HashMismatch,
    HomeError,
    NotFound,
)
from tests.support.frozen_clock import FrozenClock
from tests.support.guests import printing

MODULE = bytes(wasmtime.wat2wasm('(module (memory (export "memory") 1) (func (export "_start")))'))
MANIFEST = b'[connector]\nname = "local://a/b"\nversion = "1.0.0"\n'
EXAMPLE = Path(__file__).parents[3] / "examples" / "connectors" / "mail-drafts"


@pytest.fixture
def entry(store: ConnectorStore) -> InstalledConnector:
    return store.install_bytes(MODULE, MANIFEST)


@pytest.fixture
def folder(tmp_path: Path, entry: InstalledConnector) -> Path:
    """Where the store has it."""
    digest = entry.identity.hash.removeprefix("sha256:")
    return tmp_path / "home" / "store" / "connectors" / "sha256" / digest


def test_what_was_installed_comes_back_byte_for_byte(store: ConnectorStore) -> None:
    entry = store.install(EXAMPLE)
    parts = tuple((EXAMPLE / name).read_bytes() for name in ("connector.wasm", "manifest.toml"))
    assert entry.identity.hash == identity_hash(*parts)
    assert store.read(entry.identity.hash) == parts
    assert store.list() == (entry,)


def test_files_are_for_their_owner_only_and_nothing_is_left_in_staging(
    store: ConnectorStore, entry: InstalledConnector, folder: Path, tmp_path: Path
) -> None:
    """0600 in 0700; neither a second install nor a removal leaves a trace."""
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (folder, *sorted(folder.iterdir()))]
    assert modes == [0o700, 0o600, 0o600]
    store.install_bytes(MODULE, MANIFEST)
    assert store.remove(entry.identity.hash)
    assert not store.remove(entry.identity.hash)
    assert list((tmp_path / "home" / "store" / "connectors" / "tmp").iterdir()) == []
    assert store.list() == ()


@pytest.mark.parametrize("name", ["connector.wasm", "manifest.toml"])
def test_a_changed_byte_is_found_and_mended_by_installing_again(
    store: ConnectorStore, entry: InstalledConnector, folder: Path, name: str
) -> None:
    """Module and manifest are one identity; bytes that do not fit it make way for those that do."""
    with (folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(HashMismatch, match="changed on disk"):
        store.read(entry.identity.hash)
    assert store.list() == ()
    assert [p.class_ for p in store.scan()[1]] == ["hash_mismatch"]
    assert store.install_bytes(MODULE, MANIFEST) == entry
    assert store.read(entry.identity.hash) == (MODULE, MANIFEST)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
@pytest.mark.parametrize("is_link", [True, False])
def test_a_link_or_folder_in_place_of_a_file_is_not_read_and_leaves_no_descriptor_open(
    store: ConnectorStore, entry: InstalledConnector, folder: Path, tmp_path: Path, is_link: bool
) -> None:
    """A file of the store is a file, even if a link leads to the same bytes."""
    module = (folder / "connector.wasm").rename(tmp_path / "aside")
    if is_link:
        (folder / "connector.wasm").symlink_to(module)
    else:
        (folder / "connector.wasm").mkdir()
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        with pytest.raises(HashMismatch, match="cannot be read from the store"):
            store.read(entry.identity.hash)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@pytest.mark.parametrize(
    "text", ["sha256:bound-at-release", "", "sha256:../../x", "md5:" + "0" * 64]
)
def test_what_is_no_hash_reaches_no_path(store: ConnectorStore, text: str) -> None:
    """A hash from an action file is hostile text."""
    with pytest.raises(NotFound):
        store.read(text)


PROGRAMS = (
    b'[[capabilities.spawn.programs]]\npath = "/bin/x"\n'
    b'[capabilities.spawn.operations.go]\nargv = ["x"]\n'
)


@pytest.mark.parametrize(
    ("module", "more", "words"),
    [
        (b"(module)", b"", "perhaps it is a text file"),
        (b"\0asm\x0d\0\1\0", b"", "it is a component"),
        (b"", b"", "perhaps it is a text file"),
        (MODULE, PROGRAMS, "local programs"),
    ],
)
def test_what_is_no_module_or_starts_programs_is_refused(
    store: ConnectorStore, module: bytes, more: bytes, words: str
) -> None:
    """By its first bytes: nothing that wasmtime takes as text is ever compiled."""
    with pytest.raises(FileProblems, match=words):
        store.install_bytes(module, MANIFEST + more)


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    with pytest.raises(HomeError, match="cannot be written"):
        ConnectorStore(tmp_path / "home").install_bytes(MODULE, MANIFEST)


class Counting(ConnectorStore):
    """Counts how often bytes were read."""

    reads = 0

    def read(self, hash_: str) -> tuple[bytes, bytes]:
        self.reads += 1
        return super().read(hash_)


def settled_store(tmp_path: Path) -> tuple[Counting, str, Path]:
    """A store whose files have been left alone for longer than a file system's clock ticks."""
    store = Counting(tmp_path / "home")
    hash_ = store.install_bytes(MODULE, MANIFEST).identity.hash
    store._clock = FrozenClock(SystemClock().now() + 3600)
    store.reads = 0
    (module,) = (tmp_path / "home").rglob("connector.wasm")
    return store, hash_, module


@pytest.mark.parametrize(("changed_now", "reads"), [(False, 1), (True, 3)])
def test_files_are_read_once_unless_changed(tmp_path: Path, changed_now: bool, reads: int) -> None:
    """No call of a 7 MB module hashes them; two changes within one tick of a clock would look like one."""
    store, hash_, module = settled_store(tmp_path)
    if changed_now:
        store._clock = FrozenClock(module.stat().st_ctime)
    for _ in range(3):
        store.verify(hash_)
    assert store.reads == reads


def test_a_change_of_the_same_length_and_time_is_seen_after_a_check(tmp_path: Path) -> None:
    """Whoever sets the time of modification back cannot set the time of change."""
    store, hash_, module = settled_store(tmp_path)
    store.verify(hash_)
    before = module.stat()
    data = bytearray(module.read_bytes())
    data[-1] ^= 1
    module.write_bytes(bytes(data))
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(HashMismatch):
        store.verify(hash_)
    module.unlink()
    with pytest.raises(NotFound):
        store.verify(hash_)


async def test_an_installed_connector_is_found_by_all_three(
    store: ConnectorStore, registry: ConnectorRegistry
) -> None:
    identity = store.install(EXAMPLE).identity
    found = await registry.get(identity.fqn, identity.version, identity.hash)
    assert found.identity == identity
    assert found.hosts == ("gmail.googleapis.com:443",)
    listed, problems = await registry.scan()
    assert ([c.identity for c, _ in listed], problems) == ([identity], ())


async def test_what_is_missing_is_said_with_what_is_there(
    store: ConnectorStore, registry: ConnectorRegistry
) -> None:
    """A hash alone does not make a connector the one that the action names."""
    name, nothing = "local://aileron/mail-drafts", "sha256:" + "0" * 64
    with pytest.raises(NotFound, match="install it from its folder first"):
        await registry.get(name, "0.1.0", nothing)
    installed = store.install(EXAMPLE)
    with pytest.raises(NotFound, match="a different hash"):
        await registry.get(name, "0.1.0", nothing)
    with pytest.raises(NotFound, match=r"installed versions: 0\.1\.0"):
        await registry.get(name, "0.2.0", "sha256:bound-at-release")
    with pytest.raises(HashMismatch, match="not local://else/where"):
        await registry.get("local://else/where", "0.1.0", installed.identity.hash)


@pytest.mark.parametrize("damage", ["change", "remove"])
async def test_bytes_are_checked_before_every_run(
    guest: Callable[..., WasmConnector], store: ConnectorStore, tmp_path: Path, damage: str
) -> None:
    """Also of a module that ran before and is in memory."""
    connector = guest(printing('{"output": 1}'))
    assert (await connector.call("x", {}, limits=Limits())).output == 1
    if damage == "remove":
        store.remove(connector.identity.hash)
    else:
        digits = connector.identity.hash.removeprefix("sha256:")
        folder = tmp_path / "home" / "store" / "connectors" / "sha256" / digits
        (folder / "manifest.toml").write_bytes(b"# changed")
    with pytest.raises(HashMismatch):
        await connector.call("x", {}, limits=Limits())


@pytest.mark.parametrize(
    ("imported", "named"),
    [
        ('(import "aileron_host" "http_request" (func (param i64)))', "http_request"),
        ('(import "env" "system" (func))', "unknown import: `env::system`"),
    ],
)
def test_an_import_that_the_host_does_not_offer_is_an_error_that_names_it(
    guest: Callable[..., WasmConnector], imported: str, named: str
) -> None:
    """Another signature, another function: nothing of it runs, however it came into the store."""
    text = f'(module {imported} (memory (export "memory") 1) (func (export "_start")))'
    with pytest.raises(ConnectorRuntimeError, match=named):
        asyncio.run(guest(text).prepare())
