"""The connectors installed on this machine, stored by the hash of their bytes, which is their identity.

    <home>/store/connectors/sha256/<hex>/{connector.wasm, manifest.toml}     0600 in 0700
    <home>/store/connectors/sha256/<hex>/{definitions.json, manifest.toml}   of an MCP server
    <home>/store/connectors/sha256/<hex>/signed.tar.gz                       its publisher's signatures
    <home>/store/connectors/tmp/install-*/                                   staging

Everything here blocks on the disk; call it from a thread, not from the event loop.
"""

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from aileron_core.actions.catalog import read_plain
from aileron_core.actions.model import Action, ConnectorIdentity, ConnectorRequirement
from aileron_core.actions.problems import KeyProblem
from aileron_core.canonical import sha256_hex
from aileron_core.clock import Clock, SystemClock
from aileron_core.connectors.manifest import Manifest, located, parse_manifest
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.connectors.servers.definitions import ToolDefinition, parse_definitions
from aileron_core.connectors.servers.table import server_name, tool_problems
from aileron_core.containment.safe_paths import read_small_file
from aileron_core.errors import FileProblems, HashMismatch, HomeError, NotFound, Problem
from aileron_core.vault.atomic_file import replace_file, sync_folder

MODULE_FILE: Final = "connector.wasm"
DEFINITIONS_FILE: Final = "definitions.json"
"""In the place of a module: the tools of an MCP server."""
MANIFEST_FILE: Final = "manifest.toml"
SIGNED_FILE: Final = "signed.tar.gz"
"""The signatures of the release that it came with; `aileron_core.releases.kept` says what they prove."""
OFFERED_KEYS: Final = "store/publishers"
"""The folder of a home with the keys of publishers that wait for a person to accept them."""
_MAX_SIGNED: Final = 4 * 1024 * 1024
_MAGIC = b"\0asm\x01\0\0\0"
MAX_MODULE = 128 * 1024 * 1024
MAX_MANIFEST = 1024 * 1024
_HEX = re.compile(r"[0-9a-f]{64}")
_SETTLED_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledConnector:
    """A connector in the store, its bytes verified against its hash; of an MCP server its tools are its module."""

    identity: ConnectorIdentity
    manifest: Manifest
    manifest_text: str
    """As it was written."""
    module_bytes: int
    module_sha256: str
    """Lower-case hex."""
    tools: tuple[ToolDefinition, ...] = ()
    """Of an MCP server."""

    @property
    def module_text(self) -> str:
        """Size and hash of its module, as a person reads them."""
        return f"{self.module_bytes:,} bytes, sha256:{self.module_sha256}"

    @property
    def whole_text(self) -> str:
        """All that there is to read of it: its manifest, and each tool of an MCP server."""
        return "\n".join((self.manifest_text, *(f"{each.text}\n" for each in self.tools)))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every `host:port` that it may reach, sorted."""
        return self.manifest.hosts

    @property
    def credential_requirement(self) -> CredentialRequirement | None:
        """What it wants added to its requests; None for nothing."""
        return self.manifest.credential

    @property
    def folder(self) -> str:
        """Where it is, relative to the home."""
        return f"store/connectors/{self.identity.hash.replace(':', '/', 1)}"

    @classmethod
    def of(cls, manifest: Manifest, hash_: str, module: bytes, text: bytes, file: str) -> Self:
        """Return the connector with these bytes; *manifest* is what *text* states.

        Args:
            file: what problems call the manifest.

        Raises:
            FileProblems: the module is not a server's tools where the manifest is a server's, or does not
                fit the words that it has for them.
        """
        tools: tuple[ToolDefinition, ...] = ()
        if manifest.server is not None:
            tools = parse_definitions(module, str(Path(file).with_name(DEFINITIONS_FILE)))
            name = server_name(manifest.name)
            found = tool_problems(name, manifest.server, tools)
            if problems := [KeyProblem(path=path, message=message) for path, message in found]:
                raise FileProblems(located(problems, text.decode(), file))
        return cls(
            identity=ConnectorIdentity(fqn=manifest.name, version=manifest.version, hash=hash_),
            manifest=manifest,
            manifest_text=text.decode(),
            module_bytes=len(module),
            module_sha256=sha256_hex(module),
            tools=tools,
        )


def identity_hash(module: bytes, manifest: bytes) -> str:
    """Return `sha256:` and the hex SHA-256 of the concatenation of both."""
    digest = hashlib.sha256(module)
    digest.update(manifest)
    return "sha256:" + digest.hexdigest()


class ConnectorStore:
    """Installs, lists, reads and removes connectors under one home."""

    def __init__(self, home: Path) -> None:
        self._root = home / "store" / "connectors"
        self._by_hash = self._root / "sha256"
        self._by_hash_text = str(self._by_hash)
        self._clock: Clock = SystemClock()
        self._verified: dict[str, tuple[object, ...]] = {}
        """By hash: the files' stat data when their bytes were last verified."""

    def install(self, source: Path) -> InstalledConnector:
        """Install a folder with `connector.wasm` and `manifest.toml`.

        Repeating it changes nothing; bytes in the store that no longer match their hash are
        replaced. Whether the module can run here is for `check.install_checked` to say.

        Raises:
            NotFound: a file is missing or cannot be read.
            FileProblems: the manifest is invalid, or the module is none; nothing was installed.
            HomeError: the store cannot be written.
        """
        module = read_source(source / MODULE_FILE, MAX_MODULE)
        manifest = read_source(source / MANIFEST_FILE, MAX_MANIFEST)
        return self.install_bytes(module, manifest, origin=str(source))

    def install_bytes(
        self, module: bytes, manifest: bytes, *, origin: str = "", signed: bytes = b""
    ) -> InstalledConnector:
        """Install a module and its manifest, as `install` does.

        Args:
            origin: for messages.
            signed: the signatures of the release that it came with, in place of those kept earlier.
        """
        parsed = parse_manifest(manifest, _label(origin, MANIFEST_FILE))
        check_magic(module, _label(origin, MODULE_FILE))
        problem = (
            "asks to start local programs, which is not supported" if parsed.wants_spawn else ""
        )
        if parsed.server is not None:
            problem = "is that of an MCP server, which has no module: use `aileron server add`"
        if problem:
            raise FileProblems([Problem(file=_label(origin, MANIFEST_FILE), message=problem)])
        return self._install(parsed, MODULE_FILE, module, manifest, origin, signed)

    def install_server(
        self, definitions: bytes, manifest: bytes, *, origin: str = ""
    ) -> InstalledConnector:
        """Install an MCP server's tools and its manifest, as `install` does.

        Raises:
            FileProblems: the manifest is invalid, or its words do not fit the tools; nothing was installed.
            HomeError: the store cannot be written.
        """
        parsed = parse_manifest(manifest, _label(origin, MANIFEST_FILE))
        if parsed.server is None:
            message = "has no table [server]"
            raise FileProblems([Problem(file=_label(origin, MANIFEST_FILE), message=message)])
        return self._install(parsed, DEFINITIONS_FILE, definitions, manifest, origin, b"")

    def _install(
        self,
        parsed: Manifest,
        name: str,
        module: bytes,
        manifest: bytes,
        origin: str,
        signed: bytes,
    ) -> InstalledConnector:
        hash_ = identity_hash(module, manifest)
        file = _label(origin, MANIFEST_FILE)
        installed = InstalledConnector.of(parsed, hash_, module, manifest, file)
        with writing(self._root):
            if not self._has_valid(hash_):
                self._write_entry(hash_, name, module, manifest, signed)
            os.utime(self._folder(hash_))  # the newest build of a server is the one that is offered
            if signed and self.signatures(hash_) != signed:
                replace_file(self._folder(hash_) / SIGNED_FILE, signed)
        return installed

    def list(self) -> tuple[InstalledConnector, ...]:
        """Return the usable connectors, ordered by name, version and hash."""
        return self.scan()[0]

    def scan(self) -> tuple[tuple[InstalledConnector, ...], tuple[Problem, ...]]:
        connectors: list[InstalledConnector] = []
        problems: list[Problem] = []
        for folder in sorted(self._by_hash.glob("*")) if self._by_hash.is_dir() else ():
            if not _HEX.fullmatch(folder.name):
                problems.append(
                    Problem(
                        file=str(folder),
                        message="does not belong in the connector store; remove it",
                    )
                )
                continue
            try:
                connectors.append(self.find("sha256:" + folder.name))
            except FileProblems as error:
                problems.extend(error.problems)
            except (HashMismatch, NotFound) as error:
                problem = Problem(file=str(folder), message=error.message, class_=error.class_)
                problems.append(problem)
        connectors.sort(key=lambda c: (c.identity.fqn, c.identity.version, c.identity.hash))
        return tuple(connectors), tuple(problems)

    def find(self, hash_: str) -> InstalledConnector:
        """Return one installed connector, its bytes verified.

        Raises:
            NotFound: nothing with that hash is installed.
            HashMismatch: the bytes do not match the hash.
            FileProblems: this version cannot use its manifest.
        """
        module, manifest = self.read(hash_)
        file = str(self._folder(hash_) / MANIFEST_FILE)
        parsed = parse_manifest(manifest, file)
        return InstalledConnector.of(parsed, hash_, module, manifest, file)

    def read(self, hash_: str) -> tuple[bytes, bytes]:
        """Return module and manifest, verified against *hash_*.

        Raises:
            NotFound: nothing with that hash is installed.
            HashMismatch: the bytes do not match the hash.
        """
        folder = self._folder(hash_)
        try:
            module = _read_regular(folder / self._module_name(hash_), MAX_MODULE)
            manifest = _read_regular(folder / MANIFEST_FILE, MAX_MANIFEST)
        except FileNotFoundError as error:
            raise NotFound(
                f"no connector {hash_} is installed; install it from its folder and try again",
                details={"hash": hash_},
            ) from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise HashMismatch(
                f"connector {hash_} cannot be read from the store ({reason}); install it again",
                details={"expected": hash_, "computed": None},
            ) from error
        computed = identity_hash(module, manifest)
        if computed != hash_:
            raise HashMismatch(
                f"connector {hash_} changed on disk: its hash is now {computed}; "
                "install it again from where it came",
                details={"expected": hash_, "computed": computed},
            )
        return module, manifest

    def newest(self, hashes: Iterable[str]) -> str:
        """Return which of *hashes* was installed last; empty where none is there."""
        found: list[tuple[int, str]] = []
        for each in hashes:
            with suppress(OSError):
                found.append((self._folder(each).stat().st_mtime_ns, each))
        return max(found, default=(0, ""))[1]

    def superseded(
        self, stored: Iterable[InstalledConnector], accepted: Collection[str]
    ) -> tuple[str, ...]:
        """Return the hashes of those MCP servers in *stored* of which there is a newer build, but for the *accepted*."""
        builds: dict[str, list[str]] = {}
        for each in stored:
            if each.manifest.server is not None:
                builds.setdefault(each.identity.fqn, []).append(each.identity.hash)
        kept = {*accepted, *(self.newest(hashes) for hashes in builds.values())}
        return tuple(each for hashes in builds.values() for each in hashes if each not in kept)

    def signatures(self, hash_: str) -> bytes:
        """Return what lies beside a connector as the signatures of its release; nothing where there are none."""
        try:
            return _read_regular(self._folder(hash_) / SIGNED_FILE, _MAX_SIGNED)
        except OSError:
            return b""

    def verify(self, hash_: str) -> None:
        """Verify that the bytes still match *hash_*; they are read only if the files changed.

        Raises:
            NotFound, HashMismatch: as `read`.
        """
        before = self._signature(hash_)
        if before is not None and self._verified.get(hash_) == before:
            return
        self.read(hash_)
        self._verified.pop(hash_, None)
        # Two changes within one tick of the file system's clock look like one: only files that
        # have been left alone for a while are believed by their times.
        if before is not None and self._settled(before):
            self._verified[hash_] = before

    def _signature(self, hash_: str) -> tuple[tuple[int, ...], ...] | None:
        # Plain strings: this is asked before every call.
        folder = f"{self._by_hash_text}/{_digits(hash_)}/"
        for name in (MODULE_FILE, DEFINITIONS_FILE):
            with suppress(OSError):
                return _times(folder + name), _times(folder + MANIFEST_FILE)
        return None

    def _module_name(self, hash_: str) -> str:
        is_server = (self._folder(hash_) / DEFINITIONS_FILE).is_file()
        return DEFINITIONS_FILE if is_server else MODULE_FILE

    def _settled(self, signature: tuple[tuple[int, ...], ...]) -> bool:
        newest = max(times[-1] for times in signature)
        return 0 < newest < (self._clock.now() - _SETTLED_SECONDS) * 1e9

    def remove(self, hash_: str) -> bool:
        """Remove a connector; False if it was not installed.

        Raises:
            HomeError: the store cannot be written.
        """
        with writing(self._root):
            return remove_entry(self._folder(hash_))

    def _folder(self, hash_: str) -> Path:
        return self._by_hash / _digits(hash_)

    def _has_valid(self, hash_: str) -> bool:
        try:
            self.read(hash_)
        except (NotFound, HashMismatch):
            return False
        return True

    def _write_entry(
        self, hash_: str, name: str, module: bytes, manifest: bytes, signed: bytes
    ) -> None:
        with staging(self._root) as staged:
            _write_new(staged / name, module)
            _write_new(staged / MANIFEST_FILE, manifest)
            if signed:
                _write_new(staged / SIGNED_FILE, signed)
            sync_folder(staged)
            # What is there does not match its hash (`_has_valid` checked that), so it is replaced.
            replace_entry(self._folder(hash_), staged)


def _digits(hash_: str) -> str:
    algorithm, _, digits = hash_.partition(":")
    if algorithm != "sha256" or not _HEX.fullmatch(digits):
        raise NotFound(
            f"{hash_!r} is not the hash of a connector; it must be sha256: and 64 hex digits"
        )
    return digits


def _times(path: str) -> tuple[int, int, int, int, int]:
    s = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - a Path costs more than the call
    return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns


def _label(origin: str, name: str) -> str:
    return str(Path(origin) / name) if origin else name


def check_magic(module: bytes, file: str) -> None:
    """Check that *module* begins as one; `Compiler.check` says whether it can run here.

    Raises:
        FileProblems: it is something else; the message says what to build.
    """
    if len(module) > MAX_MODULE:
        raise FileProblems([Problem(file=file, message=f"is larger than {MAX_MODULE} bytes")])
    if not module.startswith(_MAGIC):
        hint = "it is a component: build a core module for WASI preview 1 (wasm32-wasip1)"
        if module[:4] != _MAGIC[:4]:
            hint = "perhaps it is a text file"
        message = f"is not a core WebAssembly module ({hint})"
        raise FileProblems([Problem(file=file, message=message, class_="parse_error")])


def read_source(path: Path, limit: int) -> bytes:
    """Return the bytes of a connector's file outside of the store; a device or a pipe is not waited for.

    Raises:
        NotFound: it is not there, is no file, cannot be read or has more than *limit* bytes.
    """
    try:
        return read_plain(path, limit)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise NotFound(
            f"{path}: {reason}. A connector is a folder with {MODULE_FILE} and {MANIFEST_FILE}."
        ) from error


def _read_regular(path: Path, limit: int) -> bytes:
    """Read a file of the store without following a link or blocking on a device or FIFO."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    data = read_small_file(descriptor, limit)
    if data is None:
        raise OSError(errno.EINVAL, "not a regular file")
    return data


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


@contextmanager
def staging(root: Path) -> Generator[Path]:
    """Yield an empty folder beside what is kept in `root/sha256`, which ends with this.

    Raises:
        HomeError: the store cannot be written.
    """
    with writing(root):
        for each in (root.parent, root, root / "sha256", root / "tmp"):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="install-", dir=root / "tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replace_entry(entry: Path, staged: Path) -> None:
    """Move what was *staged* to its place in the store, whatever is there."""
    remove_entry(entry)
    staged.rename(entry)
    sync_folder(entry.parent)


def remove_entry(entry: Path) -> bool:
    """Remove what the store keeps as *entry*, so that no half of it is ever there; False if nothing is."""
    temporary = entry.parent.parent / "tmp"
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    away = Path(tempfile.mkdtemp(prefix="remove-", dir=temporary))
    try:
        entry.rename(away / entry.name)
    except FileNotFoundError:
        return False
    finally:
        shutil.rmtree(away, ignore_errors=True)
    return True


@contextmanager
def writing(root: Path) -> Generator[None]:
    """Turn an OSError into a HomeError that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise HomeError(
            f"the connector store {root} cannot be written ({reason}); free up space or fix "
            "its permissions, and try again"
        ) from error


def availability_problems(
    action: Action, installed: Mapping[str, ConnectorIdentity], accepted: Mapping[str, str]
) -> list[Problem]:
    """Return the reasons why *action* cannot be offered to agents.

    Args:
        action: an action whose file is accepted.
        installed: the connectors in the store, by hash.
        accepted: the hash that a person accepted, by `fqn@version`.
    """
    problems: list[Problem] = []
    for index, requirement in enumerate(action.requires):
        if message := _unusable(requirement, installed.get(requirement.hash), accepted):
            key = f"requires.connectors[{index}].hash"
            problems.append(Problem(file=action.file, key=key, message=message))
    return problems


def _unusable(
    requirement: ConnectorRequirement,
    identity: ConnectorIdentity | None,
    accepted: Mapping[str, str],
) -> str | None:
    ref = f"{requirement.fqn}@{requirement.version}"
    if identity is None:
        return f"{ref} with this hash is not installed; install it with `aileron connector install FOLDER`"
    if identity.ref != ref:
        return f"the connector with this hash is {identity.ref}, not {ref}"
    if accepted.get(ref) != requirement.hash:
        return f"{ref} is not accepted: accept it in the console"
    return None
