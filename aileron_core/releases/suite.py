"""A suite as it is published: one connector, its actions, the list of both, and their sums; and as archives that the original project reads.

    suite.toml  connector.wasm  manifest.toml  actions/NAME.md  SHA256SUMS  [SHA256SUMS.sig]
    [publisher.pub  [publisher.pub.sig]]

A folder that it is made from may have `actions/NAME/action.md`, the connector under `connector/`, and
`0.0.0-dev` and `sha256:bound-at-release` where packing puts the version and the connector's hash.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os.path import lexists
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aileron_core.actions.catalog import MAX_FILE, open_plain, read_plain
from aileron_core.actions.load import read_action
from aileron_core.actions.model import UNBOUND_HASH, is_semver
from aileron_core.actions.positions import load_toml
from aileron_core.canonical import sha256_hex
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.protocol import MIB
from aileron_core.connectors.store import (
    MANIFEST_FILE,
    MAX_MANIFEST,
    MAX_MODULE,
    MODULE_FILE,
    identity_hash,
)
from aileron_core.errors import FileProblems, Problem
from aileron_core.releases.archive import read_archive, write_archive
from aileron_core.text import escape

LIST_FILE: Final = "suite.toml"
SUMS_FILE: Final = "SHA256SUMS"
SIGNATURE_FILE: Final = "SHA256SUMS.sig"
PLAIN_SIGNATURE_FILE: Final = "signature.sig"
PLAIN_ARCHIVE: Final = "aileron.tar.gz"
"""Of a single connector or action, as the original project publishes them."""
ACTION_FILE: Final = "action.md"
PUBLIC_KEY_FILE: Final = "publisher.pub"
NEW_KEY_SIGNATURE_FILE: Final = "publisher.pub.sig"
"""By which the publisher's old key signs the new one in `publisher.pub`."""
UNBOUND_VERSION: Final = "0.0.0-dev"
MAX_ARCHIVE: Final = 192 * 1024 * 1024
_MAX_SMALL: Final = 1024 * 1024
MAX_LIST: Final = 128 * 1024
MAX_ACTIONS: Final = 2000
MAX_ACTION_BYTES: Final = 4 * MIB
"""Of all action files, which take some seconds to read. 516 published ones have a fourth of it."""
_LIMITS: Final = {
    LIST_FILE: MAX_LIST,
    MODULE_FILE: MAX_MODULE,
    MANIFEST_FILE: MAX_MANIFEST,
    SUMS_FILE: _MAX_SMALL,
    SIGNATURE_FILE: 64 * 1024,
    PLAIN_SIGNATURE_FILE: 64 * 1024,
    ACTION_FILE: MAX_FILE,
    PUBLIC_KEY_FILE: 4096,
    NEW_KEY_SIGNATURE_FILE: 4096,
}
SIGNATURE_BYTES: Final = 64
"""Of a plain ed25519 signature."""
_ALONE: Final = frozenset({PLAIN_SIGNATURE_FILE, ACTION_FILE})
"""Files that only an archive of a single connector or action contains."""
_UNBOUND = re.compile(rb"(?<![0-9A-Za-z.-])" + re.escape(UNBOUND_VERSION.encode()))
_ACTION = re.compile(r"actions/([a-z0-9][a-z0-9._-]{0,79})\.md")
_ACTION_SIGNATURE = re.compile(r"actions/([a-z0-9][a-z0-9._-]{0,79})\.sig")
_LISTED = re.compile(r"actions/([a-z0-9][a-z0-9._-]{0,79})")
_FRONT_MATTER = re.compile(
    rb"(?:\xef\xbb\xbf)?\+\+\+[ \t]*\r?\n.*?^\+\+\+", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A suite, or a connector alone, as it is published: its files by name, unchecked."""

    origin: str
    """What problems call it: a folder or an archive."""
    files: Mapping[str, bytes] = field(repr=False)
    paths: Mapping[str, str] = field(default_factory=dict[str, str])
    """The paths of files that have another name in the folder than in the archive."""

    def __post_init__(self) -> None:
        """Check what would take long to read.

        Raises:
            FileProblems: its action files are too large together.
        """
        if sum(map(len, self.actions.values())) > MAX_ACTION_BYTES:
            message = f"have more than {MAX_ACTION_BYTES // MIB} MiB together"
            raise FileProblems([Problem(file=self.place("actions"), message=message)])

    @property
    def module(self) -> bytes:
        return self.files[MODULE_FILE]

    @property
    def manifest(self) -> bytes:
        return self.files[MANIFEST_FILE]

    @property
    def connector_hash(self) -> str:
        return identity_hash(self.module, self.manifest)

    @property
    def actions(self) -> dict[str, bytes]:
        """Their files by name in the archive, in order."""
        return {name: data for name, data in sorted(self.files.items()) if _ACTION.fullmatch(name)}

    @property
    def sums(self) -> bytes:
        """What `SHA256SUMS` must contain, in the format of sha256sum."""
        counted = sorted(set(self.files) - {SUMS_FILE, SIGNATURE_FILE})
        return "".join(f"{sha256_hex(self.files[name])}  {name}\n" for name in counted).encode()

    def place(self, name: str) -> str:
        """Return the path of one of its files, for messages."""
        return self.paths.get(name, f"{self.origin}/{name}")


def read_suite(path: Path) -> Release:
    """Return the suite in *path*, an archive or a folder.

    Raises:
        FileProblems: it cannot be read; the archive is damaged, has other files than a suite, or other sums than it says.
    """
    if path.is_dir():
        return _read_folder(path)
    return _whole(_read_archive(path))


def suite_of_archive(data: bytes, origin: str) -> Release:
    """Return the suite in an archive; *origin* is what problems call it.

    Raises:
        FileProblems: as `read_suite`.
    """
    return _whole(_release(data, origin))


def _whole(suite: Release) -> Release:
    for name in (LIST_FILE, MODULE_FILE, MANIFEST_FILE, SUMS_FILE):
        if name not in suite.files:
            raise FileProblems([Problem(file=suite.origin, message=f"has no {name}")])
    alone = any(name in _ALONE or is_action_signature(name) for name in suite.files)
    if alone or suite.files[SUMS_FILE] != suite.sums:
        message = "does not list each file with its sum, in the order of their names"
        raise FileProblems([Problem(file=suite.place(SUMS_FILE), message=message)])
    return suite


def read_connector(path: Path) -> Release:
    """Return what `connector_of_archive` does of the archive *path*.

    Raises:
        FileProblems: as `read_suite`.
    """
    return _connector(_read_archive(path))


def connector_of_archive(data: bytes, origin: str) -> Release:
    """Return the suite in an archive, or the connector where it holds one alone.

    The latter has `connector.wasm`, `manifest.toml` and `signature.sig`, and may have `publisher.pub`.

    Raises:
        FileProblems: as `read_suite`.
    """
    return _connector(_release(data, origin))


def _connector(suite: Release) -> Release:
    named = set(suite.files) - {PUBLIC_KEY_FILE, NEW_KEY_SIGNATURE_FILE}
    alone = named == {MODULE_FILE, MANIFEST_FILE, PLAIN_SIGNATURE_FILE}
    return suite if alone else _whole(suite)


def pack(suite: Release, version: str) -> Release:
    """Return *suite* with *version* and the connector's hash in place of the placeholders, and its sums.

    Raises:
        FileProblems: *version* is none, or the files state another one.
    """
    if not is_semver(version) or version == UNBOUND_VERSION:
        message = f"{version!r} is no version like 1.4.0"
        raise FileProblems([Problem(file=suite.origin, message=message)])
    bound = _bound(suite, version)
    stated = parse_manifest(bound.manifest, suite.place(MANIFEST_FILE)).version
    if stated != version:
        message = f"is {stated}; write {UNBOUND_VERSION} there to have packing put the version in its place"
        raise FileProblems(
            [Problem(file=suite.place(MANIFEST_FILE), key="connector.version", message=message)]
        )
    return replace(bound, files={**bound.files, SUMS_FILE: bound.sums})


def bound_for_check(suite: Release) -> Release:
    """Return *suite* as it would be packed under the version that its manifest states."""
    return _bound(suite, UNBOUND_VERSION)


def archive_of(suite: Release) -> bytes:
    return write_archive(suite.files)


def listed_actions(suite: Release) -> tuple[str, ...]:
    """Return the names of the actions that `suite.toml` lists.

    It has `actions = ["actions/NAME", ...]`, or `[[actions]]` whose `fqn` ends in `/actions/NAME`,
    beside `[suite]`.

    Raises:
        FileProblems: it is no TOML, or lists something else.
    """
    place = suite.place(LIST_FILE)
    try:
        text = suite.files[LIST_FILE].decode()
    except ValueError as error:
        raise FileProblems([Problem(file=place, message="is not UTF-8")]) from error
    document = load_toml(text, place)
    listed: Any = document.get("actions", [])
    names: dict[str, None] = {}
    for entry in cast("list[Any]", listed) if isinstance(listed, list) else [listed]:
        text = cast("dict[str, Any]", entry).get("fqn") if isinstance(entry, dict) else entry
        path = text if isinstance(text, str) else ""
        if isinstance(entry, dict):
            path = "actions/" + path.rpartition("/actions/")[2] if "/actions/" in path else ""
        match = _LISTED.fullmatch(path)
        if match is None or match[1] in names or len(names) == MAX_ACTIONS:
            message = (
                f"lists {escape(path[:80])}, which is no path of an action, is listed twice, or is "
                f"one of more than {MAX_ACTIONS}"
            )
            raise FileProblems([Problem(file=place, key="actions", message=message)])
        names[match[1]] = None
    return tuple(names)


def _release(archive: bytes | BinaryIO, origin: str) -> Release:
    return Release(origin=origin, files=read_archive(archive, origin, limit_of))


def _read_archive(path: Path) -> Release:
    with _named(path), open_plain(path, MAX_ARCHIVE) as archive:
        return _release(archive, str(path))


def _read(path: Path, limit: int) -> bytes:
    with _named(path):
        return read_plain(path, limit)


@contextmanager
def _named(path: Path) -> Generator[None]:
    """Turn an OSError into a problem of *path*."""
    try:
        yield
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise FileProblems([Problem(file=str(path), message=reason)]) from error


def limit_of(name: str) -> int | None:
    """Return how many bytes the file of a release may have; None for a name that no release has."""
    if is_action_signature(name):
        return SIGNATURE_BYTES
    return MAX_FILE if _ACTION.fullmatch(name) else _LIMITS.get(name)


def is_action_signature(name: str) -> bool:
    """Return whether *name* is that of an action's own signature, which `actions/NAME/action.md` had beside it."""
    return _ACTION_SIGNATURE.fullmatch(name) is not None


def _read_folder(folder: Path) -> Release:
    inner = folder / "connector"
    paths = {
        name: (inner if lexists(inner / name) else folder) / name
        for name in (MODULE_FILE, MANIFEST_FILE)
    }
    listed: set[str] | None = None
    if lexists(folder / LIST_FILE):
        paths[LIST_FILE] = folder / LIST_FILE
        files = {LIST_FILE: _read(folder / LIST_FILE, MAX_LIST)}
        listed = set(listed_actions(Release(origin=str(folder), files=files)))
    for name in (PUBLIC_KEY_FILE, NEW_KEY_SIGNATURE_FILE):
        if lexists(folder / name):
            paths[name] = folder / name
    found = dict(action_files(folder / "actions"))
    paths |= {
        f"actions/{name}.md": path for name, path in found.items() if not listed or name in listed
    }
    files = {name: _read(path, limit_of(name) or MAX_FILE) for name, path in paths.items()}
    if listed is None:
        lines = "".join(f'  "actions/{name}",\n' for name in found)
        files[LIST_FILE] = f"actions = [\n{lines}]\n".encode()
    return Release(
        origin=str(folder), files=files, paths={name: str(path) for name, path in paths.items()}
    )


def action_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the action files of *folder* with their names: `NAME.md`, `NAME/action.md`, also where a link leads nowhere."""
    inside = (each / ACTION_FILE for each in folder.glob("*"))
    for path in sorted([*folder.glob("*.md"), *(each for each in inside if lexists(each))]):
        name = path.parent.name if path.name == ACTION_FILE else path.stem
        if path.name != "README.md":
            yield name, path


def _bound(suite: Release, version: str) -> Release:
    def versioned(data: bytes) -> bytes:
        return _UNBOUND.sub(version.encode(), data)

    files = dict(suite.files)
    files[MANIFEST_FILE] = versioned(suite.manifest)
    hash_ = identity_hash(suite.module, files[MANIFEST_FILE]).encode()
    for name, data in suite.actions.items():
        match = _FRONT_MATTER.match(data)
        head = versioned(match[0]).replace(UNBOUND_HASH.encode(), hash_) if match else b""
        files[name] = head + data[len(match[0]) if match else 0 :]
    return replace(suite, files=files)


def portable_archives(suite: Release, version: str, key: Ed25519PrivateKey) -> dict[str, bytes]:
    """Return the assets of its releases by `TAG/NAME`; each archive is signed with *key*."""
    connector = {
        MODULE_FILE: suite.module,
        MANIFEST_FILE: suite.manifest,
        PLAIN_SIGNATURE_FILE: key.sign(suite.module + suite.manifest),
    }
    tag = f"v{version}"
    found = {
        f"{tag}/{LIST_FILE}": suite.files[LIST_FILE],
        f"{tag}/{PLAIN_ARCHIVE}": write_archive(connector),
    }
    for name, data in suite.actions.items():
        files = {ACTION_FILE: data, PLAIN_SIGNATURE_FILE: key.sign(data)}
        found[f"{name.removesuffix('.md')}/{tag}/{PLAIN_ARCHIVE}"] = write_archive(files)
    return found


def portable_problems(suite: Release) -> Iterator[Problem]:
    """Yield what the original project would refuse in *suite*, which keeps every rule here."""
    place = suite.place(MANIFEST_FILE)
    manifest = parse_manifest(suite.manifest, place)
    for key, there in (
        ("provides.ops", manifest.ops),
        ("capabilities.runtime.wall_seconds", manifest.wall_seconds),
    ):
        if there:
            message = "is not known to the original project, which refuses the manifest"
            yield Problem(file=place, key=key, message=message, class_="portability")
    for name, data in suite.actions.items():
        reading = read_action(data, suite.place(name), portable=True)
        yield from (each for each in reading.problems if each.severity == "error")
