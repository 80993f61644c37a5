"""What is kept of a release beside what it brought: its signatures, to be verified again from the files.

    <home>/store/connectors/sha256/<hex>/signed.tar.gz    beside a connector: sums, signatures, public key
    <home>/store/publishers/<hex>.tar.gz                  a key that is not the accepted one of a publisher

Neither says whose a file is: that follows from the signatures alone, whenever they are read.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aileron_core.actions.catalog import read_plain
from aileron_core.canonical import sha256_hex
from aileron_core.connectors.store import (
    MANIFEST_FILE,
    MODULE_FILE,
    OFFERED_KEYS,
    ConnectorStore,
    InstalledConnector,
)
from aileron_core.errors import AileronError, FileProblems, HomeError
from aileron_core.releases.archive import read_archive, write_archive
from aileron_core.releases.signing import (
    NEW_KEY_NAMESPACE,
    PublisherKey,
    publisher_of,
    read_public_key,
    verify_sums,
)
from aileron_core.releases.suite import (
    NEW_KEY_SIGNATURE_FILE,
    PLAIN_SIGNATURE_FILE,
    PUBLIC_KEY_FILE,
    SIGNATURE_FILE,
    SUMS_FILE,
    Release,
    is_action_signature,
    limit_of,
)
from aileron_core.vault.atomic_file import replace_file

UNSIGNED: Final = "is not signed, so nobody vouches for it"
_KEPT: Final = frozenset(
    {SUMS_FILE, SIGNATURE_FILE, PLAIN_SIGNATURE_FILE, PUBLIC_KEY_FILE, NEW_KEY_SIGNATURE_FILE}
)
_NAME_FILE: Final = "name"
_MAX_OFFER: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class SignedRelease:
    """A release of which a signature fits a connector."""

    fqn: str
    """The connector's own name, in the manifest that was signed."""
    key: PublisherKey
    sums: Mapping[str, str]
    """What was signed: lower-case hex SHA-256 by the name of the file."""
    signatures: Mapping[str, bytes]
    """Of the older layout: by the name of the action's file, a signature of it alone."""
    verified: dict[tuple[str, str], bool] = field(
        default_factory=dict[tuple[str, str], bool], compare=False
    )
    """Whether such a signature fits a file with that SHA-256: asked with every change in the home."""

    def has_action(self, file: str, sha256: str, data: bytes) -> bool:
        """Return whether the key signed *data*, whose SHA-256 is *sha256*, as the action file *file*."""
        if self.sums:
            return self.sums.get(f"actions/{file}") == sha256
        if (signature := self.signatures.get(file)) is None:
            return False
        if (file, sha256) not in self.verified:
            self.verified[file, sha256] = self.key.signed(signature, data)
        return self.verified[file, sha256]


@dataclass(frozen=True, slots=True)
class OfferedKey:
    """A key with which a release of a publisher was signed, and which is not the accepted one."""

    name: str
    """The publisher's, as `github://OWNER/REPO`."""
    key: PublisherKey
    file: str
    """In which it lies, from the home."""
    vouched_by: str
    """The fingerprint of the key that signed it as the publisher's new one; empty without one."""


def unsigned_actions(suite: Release, key: PublisherKey) -> dict[str, str]:
    """Return what is wrong with the signature of each action file of *suite*, by its name in the archive.

    Where the sums are signed, the whole suite is. An action of the older layout has a signature of its own.
    """
    if SIGNATURE_FILE in suite.files:
        return {}
    found: dict[str, str] = {}
    for name, data in suite.actions.items():
        signature = suite.files.get(f"{name.removesuffix('.md')}.sig")
        if signature is None:
            found[name] = UNSIGNED
        elif not key.signed(signature, data):
            found[name] = "was changed after it was signed, or was signed with another key"
    return found


def signatures_of(suite: Release, before: bytes = b"") -> bytes:
    """Return what is kept of *suite*; nothing where its publisher is not known.

    Args:
        before: what is kept beside its connector already. Signatures of single actions in it stay.
    """
    if publisher_of(suite) is None:
        return b""
    earlier: Mapping[str, bytes] = {}
    if before and SIGNATURE_FILE not in suite.files:
        with suppress(FileProblems):
            earlier = read_archive(before, "", _limit)
    kept = {name: data for name, data in earlier.items() if is_action_signature(name)}
    kept |= {name: data for name, data in suite.files.items() if _limit(name) is not None}
    return write_archive(kept)


def verified_release(
    store: ConnectorStore, connector: InstalledConnector, kept: bytes
) -> SignedRelease | None:
    """Return the release that *kept* proves a connector of *store* to be of; None where no signature fits it.

    Args:
        kept: as `signatures_of` made it; anything else in its place proves nothing.
    """
    fqn = connector.identity.fqn
    try:
        files = read_archive(kept, "", _limit)
        if (signature := files.get(SIGNATURE_FILE)) is not None:
            sums = files[SUMS_FILE]
            key = verify_sums(sums, signature, "")
            lines = (line.partition("  ") for line in sums.decode().splitlines())
            listed = {name: digest for digest, _, name in lines}
            manifest = sha256_hex(connector.manifest_text.encode())
            stated = (listed.get(MODULE_FILE), listed.get(MANIFEST_FILE))
            fits = stated == (connector.module_sha256, manifest)
            return SignedRelease(fqn, key, listed, {}) if fits else None
        key = read_public_key(files[PUBLIC_KEY_FILE], "")
        content = b"".join(store.read(connector.identity.hash))
        if not key.signed(files[PLAIN_SIGNATURE_FILE], content):
            return None
        of_actions = {
            f"{Path(name).stem}.md": data
            for name, data in files.items()
            if is_action_signature(name)
        }
        return SignedRelease(fqn, key, {}, of_actions)
    except (AileronError, FileProblems, KeyError, ValueError):
        return None


def offer_path(home: Path, name: str) -> Path:
    """Return where another key of the publisher *name* is kept until a person accepts it."""
    return home / OFFERED_KEYS / f"{sha256_hex(name.encode())}.tar.gz"


def offer_of(name: str, suite: Release, key: PublisherKey) -> bytes:
    """Return what is kept of *key*, with which *suite* of *name* is signed: the old key's word on it, if any.

    Raises:
        FileProblems: the suite has a `publisher.pub` that is no key.
    """
    files = {_NAME_FILE: name.encode(), PUBLIC_KEY_FILE: key.line}
    new = {each: suite.files.get(each, b"") for each in (PUBLIC_KEY_FILE, NEW_KEY_SIGNATURE_FILE)}
    public = new[PUBLIC_KEY_FILE]
    if all(new.values()) and read_public_key(public, suite.place(PUBLIC_KEY_FILE)) == key:
        files |= new
    return write_archive(files)


def put_offer(home: Path, name: str, data: bytes | None) -> None:
    """Keep *data*, as `offer_of` made it, as the offered key of the publisher *name*; None: none any more.

    Raises:
        HomeError: it cannot be written or removed.
    """
    path = offer_path(home, name)
    try:
        if data is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as error:
        raise HomeError(
            f"The file {path}, of an offered key, cannot be replaced or removed: {error.strerror}. "
            "Move away what is there, then try again."
        ) from error


def read_offers(home: Path) -> tuple[OfferedKey, ...]:
    """Return the keys that are offered in *home*; what is none offers nothing."""
    found = (_read_offer(home, path) for path in sorted((home / OFFERED_KEYS).glob("*.tar.gz")))
    return tuple(each for each in found if each is not None)


def _read_offer(home: Path, path: Path) -> OfferedKey | None:
    try:
        files = read_archive(read_plain(path, _MAX_OFFER), "", _limit_in_offer)
        name, public = files[_NAME_FILE].decode("ascii"), files[PUBLIC_KEY_FILE]
        key = read_public_key(public, "")
    except (OSError, FileProblems, KeyError, ValueError):
        return None
    if path != offer_path(home, name):
        return None
    try:
        signature = files[NEW_KEY_SIGNATURE_FILE]
        vouched_by = verify_sums(public, signature, "", NEW_KEY_NAMESPACE).fingerprint
    except (FileProblems, KeyError):
        vouched_by = ""
    return OfferedKey(name, key, f"{OFFERED_KEYS}/{path.name}", vouched_by)


def _limit(name: str) -> int | None:
    return limit_of(name) if name in _KEPT or is_action_signature(name) else None


def _limit_in_offer(name: str) -> int | None:
    return 512 if name == _NAME_FILE else _limit(name)
