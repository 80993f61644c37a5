"""A suite with a broken rule, as a folder, as one archive and as many: not passed, packed, signed or installed."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from aileron_core.connectors.manifest import parse_manifest
from aileron_core.connectors.store import MANIFEST_FILE
from aileron_core.errors import FileProblems
from aileron_core.releases import rules
from aileron_core.releases.rules import file_problems, suite_problems
from aileron_core.releases.suite import (
    SUMS_FILE,
    Release,
    archive_of,
    bound_for_check,
    pack,
    portable_archives,
    read_suite,
)
from aileron_tui.cli.scaffold import connector_templates
from tests.core.releases.conftest import ACTIONS, NAME, published_as, rewrite_file, served_release
from tests.support.server_harness import aileron, aileron_json
from tests.support.variants import ALL, variants


def without_ops(suite: Path) -> None:
    """Let the manifest not say which ops there are: they are tried then."""
    file = suite / "connector" / MANIFEST_FILE
    file.write_text(file.read_text().partition("# What agents read of an op")[0])


def errors_of(suite: Release) -> str:
    problems = suite_problems(suite, tries_ops=True)
    return "\n".join(str(each) for each in problems if each.severity == "error")


def said_of_files(suite: Release) -> str:
    """Without compiling the module."""
    try:
        manifest = parse_manifest(suite.manifest, suite.place(MANIFEST_FILE))
    except FileProblems as error:
        return str(error)
    return "\n".join(str(each) for each in file_problems(suite, manifest))


def test_a_good_suite_is_packed_to_the_same_bytes_everywhere(folder: Path, tmp_path: Path) -> None:
    """Bound to its version and hash, whatever the order, times and modes of its files are."""
    assert errors_of(bound_for_check(read_suite(folder))) == ""
    packed = pack(read_suite(folder), "1.4.0")
    (tmp_path / "a.tar.gz").write_bytes(archive_of(packed))
    again = read_suite(tmp_path / "a.tar.gz")
    assert (errors_of(again), again.files) == ("", packed.files)
    send = again.files["actions/send-draft.md"].decode()
    assert again.connector_hash in send
    assert send.count("1.4.0") == 3
    assert "0.0.0-dev" not in send + again.manifest.decode()
    shutil.copytree(folder, tmp_path / "other", copy_function=shutil.copyfile)
    (tmp_path / "other/actions/get-draft/action.md").chmod(0o444)
    assert archive_of(pack(read_suite(tmp_path / "other"), "1.4.0")) == archive_of(packed)


def test_ops_that_the_manifest_does_not_name_are_tried(folder: Path) -> None:
    """An op counts as there unless the connector answers as to one that nobody has."""
    without_ops(folder)
    assert errors_of(bound_for_check(read_suite(folder))) == ""
    _preview_op_missing(folder)
    assert "asks get_everything, which is no op" in errors_of(bound_for_check(read_suite(folder)))


GUESSING = """
import json, aileron_host
op = json.loads(aileron_host.read())["op"]
if op == "get_draft":
    said = "an id is missing"
elif op.startswith("get"):
    said = "%s... (%d letters) is no op; did you mean get_draft?" % (op[:8], len(op))
else:
    said = "%s is no op" % op
aileron_host.write(json.dumps({"error": {"class": "connector_runtime_error", "message": said}}))
"""


def test_an_op_is_missing_where_the_connector_guesses_another(folder: Path, tmp_path: Path) -> None:
    """It answers to each name with another sentence, which is that of a name much like it."""
    for name in ("build.py", "micropython.wasm"):
        shutil.copy(connector_templates() / "python" / name, tmp_path)
    (tmp_path / "connector.py").write_text(GUESSING)
    subprocess.run([sys.executable, tmp_path / "build.py"], check=True, timeout=60)
    shutil.copy(tmp_path / "connector.wasm", folder / "connector")
    without_ops(folder)
    assert errors_of(bound_for_check(read_suite(folder))) == ""
    _preview_op_missing(folder)
    assert "asks get_everything, which is no op" in errors_of(bound_for_check(read_suite(folder)))


def test_ops_too_many_to_try_must_be_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them is called missing because it was not tried."""
    without_ops(folder)
    monkeypatch.setattr(rules, "_MOST_TRIED", 0)
    suite = bound_for_check(read_suite(folder))
    assert "provides.ops: is missing; list the ops there" in errors_of(suite)


def _rewriting_action(name: str, before: str, after: str) -> Callable[[Path], None]:
    return lambda suite: rewrite_file(suite / "actions" / name / "action.md", before, after)


def _preview_op_missing(suite: Path) -> None:
    rewrite_file(
        suite / "actions/send-draft/action.md", 'op = "get_draft"', 'op = "get_everything"'
    )
    rewrite_file(suite / "actions/get-draft/action.md", '"get_draft"', '"get_everything"')


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "preview's op is missing": (_preview_op_missing, "asks get_everything, which is no op"),
    "preview's op may change": (
        _rewriting_action("get-draft", "idempotent = true", "idempotent = false"),
        "must be declared idempotent = true",
    ),
    "preview's op is gated": (
        _rewriting_action("get-draft", "+++\n\n#", "\n[approval]\nrequired = true\n+++\n\n#"),
        "is an op of the gated action get-draft",
    ),
    "preview's argument": (_rewriting_action("send-draft", "${args.draft_id}", "${args.draft}"), "draft"),
    "multiline of no field": (
        _rewriting_action("send-draft", 'multiline = ["Body"]', 'multiline = ["Text"]'), "multiline",
    ),
    "no field is shown": (_rewriting_action("send-draft", "[approval.preview.render]", "[x.y]"), "render"),
    "capability": (
        _rewriting_action("send-draft", 'capabilities = ["send_draft"]', 'capabilities = ["send"]'),
        "runs send_draft, which is not among the capabilities",
    ),
    "op": (
        _rewriting_action("list-drafts", '"list_drafts"', '"list_all"'),
        "runs list_all, which is no op of the connector",
    ),
    "name": (_rewriting_action("send-draft", 'name = "send-draft"', 'name = "send"'), "name: is send, in a file"),
    "version": (
        _rewriting_action("send-draft", '\nversion = "0.0.0-dev"\nsource', '\nversion = "0.0.1"\nsource'),
        "version: is 0.0.1",
    ),
    "source": (_rewriting_action("send-draft", "local://aileron/mail-drafts/", "local://other/x/"), "source: "),
    "hash": (
        _rewriting_action("send-draft", "sha256:bound-at-release", "sha256:" + "0" * 64),
        "hash: is sha256:000",
    ),
    "list": (
        lambda suite: rewrite_file(suite / "suite.toml", '"actions/get-draft", ', '"actions/gone", '),
        "lists gone, which is not there",
    ),
    "manifest": (
        lambda suite: rewrite_file(suite / "connector" / MANIFEST_FILE, "[connector]", "[connectors]"),
        MANIFEST_FILE,
    ),
}  # fmt: skip
PREVIEW_RULES = tuple(BROKEN)[:6]
"""The rules about previews, which keep a person from being shown something else than is done."""


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_is_checked_in_both_layouts(folder: Path, tmp_path: Path, rule: str) -> None:
    """With the same message, which gives the file's path there."""
    damage, sentence = BROKEN[rule]
    damage(folder)
    assert sentence in said_of_files(bound_for_check(read_suite(folder)))
    if rule == "manifest":  # without a version there is nothing to pack
        with pytest.raises(FileProblems, match=sentence):
            pack(read_suite(folder), "1.4.0")
        return
    (tmp_path / "a.tar.gz").write_bytes(archive_of(pack(read_suite(folder), "1.4.0")))
    found = said_of_files(read_suite(tmp_path / "a.tar.gz"))
    assert sentence in found
    assert f"{tmp_path}/a.tar.gz/" in found


def test_an_archive_says_what_it_holds(folder: Path, tmp_path: Path) -> None:
    """A file that its sums do not list, or list otherwise, is no part of it."""
    packed = pack(read_suite(folder), "1.4.0")
    for files in (
        {**packed.files, "actions/more.md": b"+++\n+++\n"},
        {**packed.files, "suite.toml": b"actions = []\n"},
        {name: data for name, data in packed.files.items() if name != SUMS_FILE},
        {name: data for name, data in packed.files.items() if name != MANIFEST_FILE},
    ):
        (tmp_path / "a.tar.gz").write_bytes(archive_of(replace(packed, files=files)))
        with pytest.raises(FileProblems, match=r"has no|does not list"):
            read_suite(tmp_path / "a.tar.gz")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, _endless, _loop, Path.mkdir])
@pytest.mark.parametrize(
    "name",
    [
        *("suite.toml", "publisher.pub", "actions/get-draft/action.md"),
        *("connector/connector.wasm", "connector/manifest.toml"),
    ],
)
def test_what_is_no_file_in_a_folder_is_neither_read_nor_left_out(
    folder: Path, home: Path, name: str, make: Callable[[Path], None]
) -> None:
    """A pipe, a device, a link that leads nowhere; nor by the commands that read one of them alone."""
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    said = "is not a regular file|Too many levels of symbolic links"
    with pytest.raises(FileProblems, match=rf"{name}: cannot be read: ({said})"):
        read_suite(folder)
    if "/" in name:
        words = ("connector", "install") if name.startswith("connector") else ("action", "add")
        done = aileron(*words, str(folder / name.partition("/")[0]), home=home, code=1)
        assert re.search(f"{name}: .*({said})", done.stdout + done.stderr)


@pytest.mark.parametrize("version", ["1.5.0", "0.0.0-dev", "v1", ""])
def test_a_version_that_the_files_do_not_state_is_not_packed(folder: Path, version: str) -> None:
    packed = pack(read_suite(folder), "1.4.0")
    with pytest.raises(FileProblems):
        pack(packed, version)


def test_a_list_that_costs_memory_is_refused_before_it_is_read(folder: Path) -> None:
    """A key of many parts, deep nesting, more actions than a suite has."""
    for text in (
        ".".join("a" * 20_000) + " = 1\n",
        "a = " + "[" * 10_000,
        "actions = [" + ",".join(f'"actions/a{n}"' for n in range(2001)) + "]",
    ):
        (folder / "suite.toml").write_text(text)
        with pytest.raises(FileProblems, match=r"dotted key|nested too deeply|more than 2000"):
            read_suite(folder)


def test_action_files_that_take_long_to_read_are_refused_before(folder: Path) -> None:
    """Each is as small as it has to be; in an archive of a few kilobytes they would take minutes."""
    packed = pack(read_suite(folder), "1.4.0")
    large = b"+++\n" + b'[[a]]\nb = "c"\n' * 100_000 + b"+++\n"
    with pytest.raises(FileProblems, match="actions: have more than 4 MiB together"):
        replace(packed, files={**packed.files, **{f"actions/{n}.md": large for n in "abc"}})
    for name in ACTIONS:
        (folder / "actions" / name / "action.md").write_bytes(large)
    with pytest.raises(FileProblems, match="actions: have more than 4 MiB together"):
        read_suite(folder)


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

    with served_release(there, "github.com", "raw.githubusercontent.com") as routes:
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
