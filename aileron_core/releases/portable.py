"""The archives that the original project reads: one for the connector, and one for each action."""

from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aileron_core.actions.load import read_action
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.store import MANIFEST_FILE, MODULE_FILE
from aileron_core.errors import Problem
from aileron_core.releases.archive import write_archive
from aileron_core.releases.suite import (
    ACTION_FILE,
    LIST_FILE,
    PLAIN_ARCHIVE,
    PLAIN_SIGNATURE_FILE,
    Release,
)


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
