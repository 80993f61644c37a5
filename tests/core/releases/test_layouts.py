"""A suite with a broken rule, as a folder, as one archive and as many: not passed, not signed, not installed."""

from collections.abc import Callable, Iterator
from itertools import cycle, product
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from aileron_core.releases.suite import archive_of, pack, portable_archives, read_suite
from tests.core.releases.conftest import NAME, published_as, served
from tests.core.releases.test_rules import BROKEN, PREVIEW_RULES
from tests.support.server_harness import aileron, aileron_json
from tests.support.variants import ALL, variants

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _as_folder(folder: Path, home: Path) -> Iterator[tuple[str, ...]]:
    aileron("connector", "install", str(folder / "connector"), home=home, code=None)
    yield (str(folder),)


def _as_one_archive(folder: Path, home: Path) -> Iterator[tuple[str, ...]]:
    archive = folder.with_name("a.tar.gz")
    archive.write_bytes(archive_of(pack(read_suite(folder), "1.4.0")))
    yield ("--unsigned", str(archive))


def _as_single_archives(folder: Path, home: Path) -> Iterator[tuple[str, ...]]:
    files = portable_archives(pack(read_suite(folder), "1.4.0"), "1.4.0", KEY)
    there = {"/aileron/mail-drafts/v1.4.0/suite.toml": files["v1.4.0/suite.toml"]}
    for name, data in files.items():
        tag, _, file = name.rpartition("/")
        there[f"/aileron/mail-drafts/releases/download/{quote(tag, safe='')}/{file}"] = data

    with served(there, "github.com", "raw.githubusercontent.com") as routes:
        yield ("--unsigned", *routes, f"{NAME}@1.4.0")


def _no_module(folder: Path) -> None:
    (folder / "connector" / "connector.wasm").write_bytes(b"\0asm\1\0\0\0\xff")


ARCHIVES = (_as_one_archive, _as_single_archives)
LAYOUTS = (_as_folder, *ARCHIVES)
# That each rule is found in each layout is proven of the rules themselves.
BREACHES = product(PREVIEW_RULES, LAYOUTS) if ALL else zip(PREVIEW_RULES, cycle(LAYOUTS))


@pytest.mark.parametrize(("rule", "layout"), [*BREACHES, *product(["connector"], ARCHIVES)])
def test_what_breaks_a_rule_is_not_installed(
    folder: Path, home: Path, rule: str, layout: Callable[[Path, Path], Iterator[tuple[str, ...]]]
) -> None:
    """Of the actions that one alone, with what it needs; of a suite whose connector cannot run, nothing."""
    published_as(folder)
    damage, sentence = BROKEN.get(rule, (_no_module, "connector.wasm"))
    damage(folder)
    for words in layout(folder, home):
        done = aileron("action", "add", *words, home=home, code=1)
        assert sentence in done.stdout + done.stderr
    names = {each["name"] for each in aileron_json("action", "list", home=home)["items"]}
    whole = rule in PREVIEW_RULES
    assert len(aileron_json("connector", "list", home=home)["items"]) == whole
    assert ("list-drafts" in names, "send-draft" in names) == (whole, False)


@pytest.mark.parametrize("rule", variants(PREVIEW_RULES))
def test_what_breaks_a_rule_is_not_packed_nor_signed(folder: Path, home: Path, rule: str) -> None:
    """A check says why, of the folder and of the archive."""
    damage, sentence = BROKEN[rule]
    damage(folder)
    bad = pack(read_suite(folder), "1.4.0")
    archive, key = folder.with_name("a.tar.gz"), folder.with_name("key")
    archive.write_bytes(archive_of(bad))
    key.write_bytes(PEM)
    for words in (
        ("check", folder), ("check", archive), ("sign", archive, "--key", key),
        ("pack", folder, "--version", "1.4.0", "--output", archive),
    ):  # fmt: skip
        done = aileron("suite", *map(str, words), home=home, code=1)
        assert sentence in done.stdout + done.stderr
    assert archive.read_bytes() == archive_of(bad)
