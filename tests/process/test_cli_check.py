"""`aileron action check`, as a person and as a program runs it."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.server_harness import ROOT, aileron, aileron_json

EXAMPLES = ROOT / "examples" / "actions"
DIGEST = re.findall(rb"sha256:[0-9a-f]{64}", (EXAMPLES / "send-draft.md").read_bytes())[0]
STRICT = (EXAMPLES / "get-draft.md").read_bytes()
LENIENT = STRICT.replace(b'type = "string"', b'type = "String"')


@pytest.fixture
def absent(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def checked_folder(tmp_path: Path) -> Path:
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
    body = aileron_json("action", "check", str(EXAMPLES), home=absent)
    assert body == {"files": 3, "ok": True, "problems": []}
    said = aileron("action", "check", str(EXAMPLES), home=absent).stdout
    assert said.endswith("3 files checked: 0 errors, 0 warnings.\n")
    assert not absent.exists()


def test_a_folder_whose_previews_break_a_rule_is_warned_of(tmp_path: Path, absent: Path) -> None:
    """Once the file that declares their op is missing, or asks itself; of one file alone nobody knows."""
    for name in ("get-draft", "send-draft"):
        data = (EXAMPLES / f"{name}.md").read_bytes()
        (tmp_path / f"{name}.md").write_bytes(data.replace(DIGEST, b"sha256:bound-at-release"))
    send, get = tmp_path / "send-draft.md", tmp_path / "get-draft.md"
    assert aileron_json("action", "check", str(tmp_path), home=absent)["problems"] == []
    gated = get.read_bytes().replace(b"+++\n\n#", b"\n[approval]\nrequired = true\n+++\n\n#")
    get.write_bytes(gated)
    body = aileron_json("action", "check", str(tmp_path), home=absent)
    assert [(each["file"], each["key"]) for each in body["problems"]] == [
        (str(send), "approval.preview.op")
    ]
    assert "is an op of the gated action get-draft" in body["problems"][0]["message"]
    get.unlink()
    said = aileron("action", "check", str(tmp_path), home=absent).stdout
    assert "must be declared idempotent = true" in said
    assert "send-draft.md:" in said
    assert said.endswith("1 file checked: 0 errors, 1 warning.\n")
    assert aileron_json("action", "check", str(send), home=absent)["problems"] == []


def test_one_bad_file_never_hides_the_others(checked_folder: Path, absent: Path) -> None:
    """Each has its own problems with their places; a pipe or a folder holds nothing up."""
    body = aileron_json("action", "check", str(checked_folder), home=absent, code=1)
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
    text = aileron("action", "check", str(checked_folder), home=absent, code=1).stdout
    assert f"✗ {checked_folder}/broken.md:2:" in text
    assert f"! {checked_folder}/lenient.md:" in text
    assert text.endswith(", 1 warning.\n")


def test_warnings_alone_are_0_and_portable_makes_them_1(checked_folder: Path, absent: Path) -> None:
    """What runs here is no failure, unless the question was whether it runs elsewhere."""
    path = str(checked_folder / "lenient.md")
    assert aileron_json("action", "check", path, home=absent)["ok"] is True
    body = aileron_json("action", "check", path, "--portable", home=absent, code=1)
    assert [(p["class"], p["severity"]) for p in body["problems"]] == [
        ("portability", "error"),
        ("leniency", "warning"),
    ]
    assert body["problems"][0]["key"] == "inputs[0].type"
    strict = str(checked_folder / "good.md")
    assert aileron_json("action", "check", strict, "--portable", home=absent)["problems"] == []


def test_a_path_that_leads_nowhere_is_2(tmp_path: Path, absent: Path) -> None:
    """So is a folder without action files, and no path at all: nothing was checked."""
    (tmp_path / "void").mkdir()
    for bad in ("nowhere.md", "void"):
        done = aileron("action", "check", str(tmp_path / bad), home=absent, code=2)
        assert done.stderr.startswith("aileron: ")
        assert done.stderr.count("\n") == 1
    aileron("action", "check", home=absent, code=2)
