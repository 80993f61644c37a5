"""The folder of action files, and what agents may see of it."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from aileron_core.actions.catalog import MAX_FILE, Catalog, CatalogScan, scan
from aileron_core.actions.model import Action
from aileron_core.errors import Problem

Build = Callable[..., bytes]

PREVIEW = """
[approval]
required = true
[approval.preview]
op = "{op}"
render = {{ A = "a" }}
"""


def all_of(found: CatalogScan) -> dict[str, str]:
    return {file.file: file.sha256 for file in found.files}


def entry_states(catalog: Catalog) -> dict[str, str]:
    return {entry.file: entry.state for entry in catalog.entries}


def file_named(manifest: Build, name: str, extra: str = "", **changes: str) -> bytes:
    return manifest(extra, **changes).replace(b'name = "send-note"', f'name = "{name}"'.encode())


def put_action(folder: Path, manifest: Build, **names: str) -> CatalogScan:
    """Write files, each with an action of that name, and look at the folder."""
    for file, name in names.items():
        (folder / f"{file}.md").write_bytes(file_named(manifest, name))
    return scan(folder)


def test_a_missing_folder_holds_no_actions(tmp_path: Path) -> None:
    assert scan(tmp_path / "actions") == CatalogScan()


@pytest.mark.parametrize("what", ["file", "loop", "pipe"])
def test_an_unreadable_folder_offers_nothing(tmp_path: Path, manifest: Build, what: str) -> None:
    """What lay there before counts no more: nobody can say that it still does."""
    folder = tmp_path / "actions"
    folder.mkdir()
    (folder / "note.md").write_bytes(manifest())
    before = scan(folder)
    folder.rename(tmp_path / "aside")
    if what == "file":
        folder.write_text("no folder")
    elif what == "loop":
        folder.symlink_to(folder)
    else:
        os.mkfifo(folder)
    catalog = Catalog(scan(folder, before), all_of(before))
    assert catalog.ready() == {}
    (problem,) = catalog.problems()
    assert (problem.file, problem.message[:16]) == ("actions", "cannot be read: ")


def test_one_bad_file_never_hides_another(tmp_path: Path, manifest: Build) -> None:
    """Each file has its own problems; only regular files of the folder are read."""
    outside = tmp_path / "outside.md"
    outside.write_bytes(file_named(manifest, "outside"))
    folder = tmp_path / "actions"
    folder.mkdir()
    (folder / "good.md").write_bytes(manifest())
    (folder / "broken.md").write_bytes(b"hello")
    (folder / "huge.md").write_bytes(b"+" * (MAX_FILE + 1))
    (folder / "folder.md").mkdir()
    (folder / "leaves.md").symlink_to(outside)
    (folder / "dangling.md").symlink_to(folder / "nowhere.md")
    (folder / "loop.md").symlink_to(folder / "loop.md")
    os.mkfifo(folder / "pipe.md")
    (folder / "notes.txt").write_text("no action")
    (folder / ".hidden.md").write_text("no action")
    found = scan(folder)
    problems = {file.file: [p.message for p in file.problems] for file in found.files}
    assert problems.pop("good.md") == []
    assert problems == {
        "broken.md": ['expected "+++" at start'],
        "dangling.md": ["cannot be read: No such file or directory"],
        "folder.md": ["cannot be read: is not a regular file"],
        "huge.md": ["cannot be read: is larger than 4 MiB"],
        "leaves.md": [
            "cannot be read: is a link to a file outside this folder; copy the file here instead"
        ],
        "loop.md": ["cannot be read: Too many levels of symbolic links"],
        "pipe.md": ["cannot be read: is not a regular file"],
    }
    assert list(Catalog(found, all_of(found)).ready()) == ["send-note"]


def test_a_file_that_may_not_be_read_hides_no_other(manifest: Build) -> None:
    """To an ordinary user: root may read everything."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        (path / "good.md").write_bytes(manifest())
        (path / "closed.md").write_bytes(file_named(manifest, "closed"))
        (path / "closed.md").chmod(0)
        said = ["cannot be read: Permission denied"]
        assert as_an_ordinary_user(lambda: scan(path)) == {"closed.md": said, "good.md": []}
        path.chmod(0)
        assert as_an_ordinary_user(lambda: scan(path)) == {path.name: said}
        path.chmod(0o700)


def as_an_ordinary_user(look: Callable[[], CatalogScan]) -> dict[str, list[str]]:
    """Return the messages by file of what *look* finds in a child that is not root."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            found = {file.file: [p.message for p in file.problems] for file in look().files}
            os.write(writer, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        answer: dict[str, list[str]] = json.loads(said.read())
    os.waitpid(child, 0)
    return answer


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_what_is_no_file_costs_no_handle(tmp_path: Path) -> None:
    """The folder is read every second; one left open each time would end the console."""
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        scan(tmp_path)
    # Not equal: what an earlier test left may end meanwhile.
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_link_within_the_folder_is_read(tmp_path: Path, manifest: Build) -> None:
    """People keep versions side by side."""
    (tmp_path / "v1.text").write_bytes(manifest())
    (tmp_path / "note.md").symlink_to("v1.text")
    (file,) = scan(tmp_path).files
    assert file.action is not None
    assert file.action.file == "note.md"


def test_a_name_that_is_no_text_is_a_problem_of_that_file(tmp_path: Path, manifest: Build) -> None:
    """It could not be written to the wire."""
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_bytes(manifest())
    except OSError:
        pytest.skip("this file system has only UTF-8 names")
    (scanned,) = scan(tmp_path).files
    assert scanned.file == "\\xff.md"
    assert "not UTF-8" in scanned.problems[0].message


def test_a_second_scan_parses_only_what_changed(tmp_path: Path, manifest: Build) -> None:
    first = put_action(tmp_path, manifest, a="a", b="b")
    (tmp_path / "b.md").write_bytes(file_named(manifest, "c"))
    second = scan(tmp_path, first)
    assert second.files[0].action is first.files[0].action
    assert second.files[1].action is not None
    assert second.files[1].action.name == "c"


def test_only_bytes_that_were_accepted_are_ready(tmp_path: Path, manifest: Build) -> None:
    found = put_action(tmp_path, manifest, a="a", b="b", c="c")
    digests = all_of(found)
    accepted = {"a.md": digests["a.md"], "b": f"sha256:{digests['b.md']}", "c": digests["a.md"]}
    catalog = Catalog(found, accepted)
    assert entry_states(catalog) == {"a.md": "ready", "b.md": "ready", "c.md": "held_back"}
    assert ([entry.name for entry in catalog.not_accepted()], catalog.problems()) == (["c"], ())
    (tmp_path / "a.md").write_bytes(file_named(manifest, "a") + b"\n")
    assert entry_states(Catalog(scan(tmp_path), accepted))["a.md"] == "held_back"
    assert list(Catalog(found, {}).ready()) == []


def test_of_two_files_with_one_name_the_later_is_an_error(tmp_path: Path, manifest: Build) -> None:
    """By action name and by tool name, in the order of file names, with the place of the name."""
    (tmp_path / "1.md").write_bytes(file_named(manifest, "a-b"))
    (tmp_path / "2.md").write_bytes(file_named(manifest, "a-b") + b"\n")
    (tmp_path / "3.md").write_bytes(file_named(manifest, "a.b"))
    found = scan(tmp_path)
    catalog = Catalog(found, all_of(found))
    assert entry_states(catalog) == {"1.md": "ready", "2.md": "error", "3.md": "error"}
    first, second = catalog.problems()
    assert (first.file, first.line, first.key) == ("2.md", 2, "name")
    assert "action name a-b is already used by 1.md" in first.message
    assert "tool name a_b is already used by 1.md" in second.message


def test_a_file_that_nobody_accepted_pushes_out_none(tmp_path: Path, manifest: Build) -> None:
    """Else whoever may write a file could switch an action off."""
    (tmp_path / "real.md").write_bytes(manifest())
    accepted = all_of(scan(tmp_path))
    (tmp_path / "0.md").write_bytes(manifest() + b"planted\n")
    assert entry_states(Catalog(scan(tmp_path), accepted)) == {"0.md": "error", "real.md": "ready"}


def test_extra_problems_keep_an_action_from_being_offered(tmp_path: Path, manifest: Build) -> None:
    """Errors do, warnings do not; what was not accepted is not asked about."""
    found = put_action(tmp_path, manifest, a="a", b="b", c="c")
    accepted = {name: digest for name, digest in all_of(found).items() if name != "c.md"}
    asked: list[str] = []

    def extra(action: Action) -> list[Problem]:
        asked.append(action.name)
        severity = "error" if action.name == "a" else "warning"
        key = "requires.connectors[0].hash"
        return [Problem(file=action.file, message="not there", key=key, severity=severity)]

    catalog = Catalog(found, accepted, extra_problems=extra)
    assert entry_states(catalog) == {"a.md": "error", "b.md": "ready", "c.md": "held_back"}
    assert (asked, [len(entry.problems) for entry in catalog.entries]) == (["a", "b"], [1, 1, 0])
    (problem,) = catalog.problems()
    assert (problem.line, problem.column) == (9, 1)


def add_action(folder: Path, manifest: Build, name: str, extra: str = "", op: str = "read") -> Path:
    """Write an action file whose step runs *op* and may be repeated."""
    new = f'op = "{op}"\nidempotent = true'
    data = file_named(manifest, name, extra, old='op = "send"\nidempotent = false', new=new)
    (folder / f"{name}.md").write_bytes(data)
    return folder / f"{name}.md"


@pytest.fixture
def looking(tmp_path: Path, manifest: Build) -> Path:
    """A folder with an action whose preview asks `read`."""
    (tmp_path / "send.md").write_bytes(manifest(PREVIEW.format(op="read")))
    return tmp_path


def test_a_preview_asks_what_a_ready_action_declares_safe(looking: Path, manifest: Build) -> None:
    """A file that is not accepted lends nothing; accepted, it does."""
    reads = add_action(looking, manifest, "read")
    found = scan(looking)
    accepted = all_of(found)
    assert entry_states(Catalog(found, accepted)) == {"read.md": "ready", "send.md": "ready"}
    del accepted["read.md"]
    catalog = Catalog(found, accepted)
    assert entry_states(catalog) == {"read.md": "held_back", "send.md": "error"}
    (problem,) = catalog.problems()
    assert (problem.key, problem.line) == ("approval.preview.op", 24)
    assert "accepted action; accept read, which declares it" in problem.message
    reads.unlink()
    (problem,) = Catalog(scan(looking), accepted).problems()
    assert "accepted action; add and accept an action with such a step" in problem.message


def test_a_preview_may_not_ask_an_op_of_a_gated_action(looking: Path, manifest: Build) -> None:
    """Looking must never be what a person is asked about."""
    add_action(looking, manifest, "read")
    add_action(looking, manifest, "gated", "[approval]\nrequired = true\n")
    found = scan(looking)
    catalog = Catalog(found, all_of(found))
    assert entry_states(catalog) == {"gated.md": "ready", "read.md": "ready", "send.md": "error"}
    assert "read is an op of the gated action gated; " in catalog.problems()[0].message


def test_an_action_that_breaks_the_rule_lends_nothing(looking: Path, manifest: Build) -> None:
    """What is not offered is not loaded: whoever looks through it is not offered either."""
    add_action(looking, manifest, "read", PREVIEW.format(op="other").replace("true", "false"))
    found = scan(looking)
    catalog = Catalog(found, all_of(found))
    assert entry_states(catalog) == {"read.md": "error", "send.md": "error"}
    assert [problem.key for problem in catalog.problems()] == ["approval.preview.op"] * 2


def test_a_preview_asks_its_own_connector(looking: Path, manifest: Build) -> None:
    """An op of the same name elsewhere says nothing about this one."""
    other = add_action(looking, manifest, "read")
    other.write_bytes(other.read_bytes().replace(b"//acme/notes", b"//acme/other"))
    found = scan(looking)
    assert entry_states(Catalog(found, all_of(found))) == {"read.md": "ready", "send.md": "error"}
