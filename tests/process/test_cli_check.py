"""`aileron action check`, as a person and as a program runs it."""

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from examples.mailbox.server import Mailbox
from tests.support.server_harness import DRAFT, ROOT, Console, aileron, aileron_json

EXAMPLES = ROOT / "examples" / "actions"
CORPUS = Path(os.environ.get("AILERON_CORPUS", ROOT.parent / "shared" / "corpus"))
STRICT = (EXAMPLES / "get-draft.md").read_bytes()
LENIENT = STRICT.replace(b'type = "string"', b'type = "String"')


@pytest.fixture
def absent(tmp_path: Path) -> Path:
    """A home that is not there; checking needs none and makes none."""
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One good file, a lenient one, and every kind of bad one."""
    path = tmp_path / "files"
    path.mkdir()
    (path / "good.md").write_bytes(STRICT)
    (path / "lenient.md").write_bytes(LENIENT)
    (path / "broken.md").write_bytes(b"+++\nname = \n+++\n")
    (path / "no-action.md").write_bytes(b"+++\n+++\n")
    (path / "binary.md").write_bytes(b"\xff\xfe\x00")
    (path / "folder.md").mkdir()
    (path / "dangling.md").symlink_to(path / "nowhere.md")
    os.mkfifo(path / "pipe.md")
    (path / "README.md").write_text("not an action")
    (path / "NAME").mkdir()
    (path / "NAME" / "action.md").write_bytes(STRICT)
    return path


def by_file(body: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for problem in body["problems"]:
        found.setdefault(Path(problem["file"]).name, []).append(problem)
    return found


def test_good_files_are_0(absent: Path) -> None:
    """With a count, and an object of the agreed fields."""
    body = aileron_json("action", "check", str(EXAMPLES), home=absent)
    assert body == {"files": 3, "ok": True, "problems": []}
    said = aileron("action", "check", str(EXAMPLES), home=absent).stdout
    assert said.endswith("3 files checked: 0 errors, 0 warnings.\n")
    assert not absent.exists()


def test_one_bad_file_never_hides_the_others(folder: Path, absent: Path) -> None:
    """Each has its own problems with their places; a pipe or a folder holds nothing up."""
    body = aileron_json("action", "check", str(folder), home=absent, code=1)
    assert (body["files"], body["ok"]) == (9, False)
    found = by_file(body)
    assert set(found) == {
        "lenient.md", "broken.md", "no-action.md", "binary.md", "folder.md", "dangling.md",
        "pipe.md",
    }  # fmt: skip
    assert [problem["severity"] for problem in found["lenient.md"]] == ["warning"]
    assert len(found["no-action.md"]) == 6
    (broken,) = found["broken.md"]
    assert (broken["line"], broken["class"]) == (2, "parse_error")
    for problems in found.values():
        for problem in problems:
            assert set(problem) == {
                "file", "line", "column", "key", "severity", "class", "message",
            }  # fmt: skip
    text = aileron("action", "check", str(folder), home=absent, code=1).stdout
    assert f"✗ {folder}/broken.md:2:" in text
    assert f"! {folder}/lenient.md:" in text
    assert text.endswith(", 1 warning.\n")


def test_warnings_alone_are_0_and_portable_makes_them_1(folder: Path, absent: Path) -> None:
    """What runs here is no failure, unless the question was whether it runs elsewhere."""
    path = str(folder / "lenient.md")
    assert aileron_json("action", "check", path, home=absent)["ok"] is True
    body = aileron_json("action", "check", path, "--portable", home=absent, code=1)
    assert [(p["class"], p["severity"]) for p in body["problems"]] == [
        ("portability", "error"),
        ("leniency", "warning"),
    ]
    assert body["problems"][0]["key"] == "inputs[0].type"
    strict = str(folder / "good.md")
    assert aileron_json("action", "check", strict, "--portable", home=absent)["problems"] == []


def test_a_path_that_leads_nowhere_is_2(tmp_path: Path, absent: Path) -> None:
    """So is a folder without action files, and no path at all: nothing was checked."""
    (tmp_path / "void").mkdir()
    for bad in ("nowhere.md", "void"):
        done = aileron("action", "check", str(tmp_path / bad), home=absent, code=2)
        assert done.stderr.startswith("aileron: ")
        assert done.stderr.count("\n") == 1
    aileron("action", "check", home=absent, code=2)


def test_many_faults_of_one_file_are_reported_in_one_look(tmp_path: Path, absent: Path) -> None:
    """Faults of the TOML and broken rules in the order of the file, with line, column and key."""
    text = STRICT.decode().replace('version = "0.1.0"\nsource', "version = 0.1.0\nsource")
    text = text.replace('name = "get-draft"', 'name = "Get draft"').replace("true\n", "yes\n")
    path = tmp_path / "many.md"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    problems = aileron_json("action", "check", str(path), home=absent, code=1)["problems"]
    assert [(p["line"], p["column"], p["key"], p["class"]) for p in problems] == [
        (2, 1, "name", "validation_error"),
        (3, 14, "version", "parse_error"),
        (25, 14, "execute[0].idempotent", "parse_error"),
    ]
    said = aileron("action", "check", str(path), home=absent, code=1).stdout
    assert f"✗ {path}:3:14: version: invalid TOML front matter: Expected newline" in said
    assert said.endswith("1 file checked: 3 errors, 0 warnings.\n")


def test_hostile_text_reaches_no_terminal(tmp_path: Path, absent: Path) -> None:
    """Of a file's name as of its words."""
    path = tmp_path / "a\x1b[2J.md"
    path.write_bytes(STRICT.replace(b'type = "string"', b'type = "\\u001b]0;x\\u0007"'))
    done = aileron("action", "check", str(path), home=absent, code=1)
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert "‹ESC›" in done.stdout


def test_a_lenient_action_is_offered_with_its_warnings(home: Path, mailbox: Mailbox) -> None:
    """Ready, with warnings in `action list` and none among the load errors; its run takes camelCase."""
    lenient = (
        (home / "actions" / "get-draft.md")
        .read_text()
        .replace('name = "id"\ntype = "string"', 'name = "draftId"\ntype = "ID"')
        .replace("${args.id}", "${args.draftId}")
    )
    assert "draftId" in lenient.partition("[[execute]]")[0]
    (home / "actions" / "get-draft.md").write_text(lenient)
    with contextlib.closing(Console(home, mailbox)) as console:
        body = console.get("/v1/actions", token=console.session()["token"]).json
        assert body["load_errors"] == []
        (offered,) = [item for item in body["items"] if item["name"] == "get-draft"]
        assert offered["input_schema"]["properties"]["draftId"]["type"] == "string"
        ran = aileron_json("action", "run", "get-draft", "--arg", f"draftId={DRAFT}", home=home)
        assert ran["status"] == "completed"
        items = aileron_json("action", "list", home=home)["items"]
    (listed,) = [item for item in items if item["name"] == "get-draft"]
    assert listed["state"] == "ready"
    assert [(p["class"], p["severity"]) for p in listed["problems"]] == [
        ("leniency", "warning")
    ] * 2


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the checkout")
@pytest.mark.parametrize(
    ("suite", "files", "warned"), [("athena", 15, 0), ("google", 21, 0), ("linear-sample", 68, 66)]
)
def test_every_published_action_passes(absent: Path, suite: str, files: int, warned: int) -> None:
    """The generated ones with warnings."""
    body = aileron_json("action", "check", str(CORPUS / suite / "actions"), home=absent)
    assert (body["files"], body["ok"]) == (files, True)
    assert len({problem["file"] for problem in body["problems"]}) == warned


def test_a_file_that_is_named_twice_is_checked_once(folder: Path, absent: Path) -> None:
    """Folders may overlap."""
    shutil.rmtree(folder / "NAME")
    good = str(folder / "good.md")
    assert aileron_json("action", "check", good, good, home=absent)["files"] == 1
