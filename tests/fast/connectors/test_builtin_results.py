"""What built-in tools return: what cannot be read of their workers, what a person is shown, how large it is."""

import io
import struct
from typing import Any

import pytest

from aileron_core.connectors.builtin.results import command_preview
from aileron_core.connectors.builtin.worker.frames import BrokenFrame, read_frame
from aileron_core.connectors.protocol import is_deeper_than, is_small


def test_a_change_without_a_diff_says_what_it_is() -> None:
    """Else two rehearsals that differ there would look alike."""
    binary = {"type": "ELF program or library", "bytes": 4096, "sha256": "ab12"}
    text = {"type": "text", "bytes": 5, "sha256": "cd34"}
    changes = [
        {"path": "a", "kind": "link", "target": "../b", "previous_target": "c"},
        {"path": "run", "kind": "mode", "mode": "0755", "previous_mode": "0644"},
        {"path": "bin", "kind": "made", "mode": "0644", "binary": binary},
        {"path": "old", "kind": "changed", "binary": text, "previous_binary": binary},
    ]
    own = {"own_paths": ["/home/me/.profile"], "own_changes": 3}
    rehearsed = {"exit_code": 0, "changes": changes, "stdout": "ok", "stderr": "error\n", **own}
    preview = command_preview({"command": "make"}, {}, rehearsed)
    assert isinstance(preview, dict)
    assert preview["output"] == "ok\nerror\n"
    assert preview["changes"] == [
        "link a; leads to ../b; led to c",
        "mode run; mode 0755, was 0644",
        "made bin; mode 0644; ELF program or library, 4,096 bytes; SHA-256 ab12",
        "changed old; text, 5 bytes; SHA-256 cd34; was ELF program or library, 4,096 bytes; SHA-256 ab12",
        "outside the project: /home/me/.profile",
        "and 2 more in the tools' own folders",
    ]


def test_what_git_stores_by_its_hash_is_one_line_that_changes_with_it() -> None:
    """A link, a text or a changed file in its place is shown like any other."""
    name = f".git/objects/ab/{'c' * 38}"
    binary = {"type": "binary data", "bytes": 5, "sha256": "1" * 64}
    stored = [
        {"path": ".git/objects/ab", "kind": "made", "mode": "0755", "folder": True},
        {"path": name, "kind": "made", "mode": "0444", "binary": binary},
        {"path": f"sub/{name}", "kind": "made", "mode": "0444", "binary": binary},
        {"path": f"sub2/{name}", "kind": "made", "mode": "0444", "git": True},
    ]
    others = [
        {"path": name, "kind": "changed", "mode": "0444", "binary": binary},
        {"path": name, "kind": "made", "target": "/etc/passwd"},
        {"path": f"{name}\n", "kind": "made", "mode": "0444", "binary": binary},
        {"path": ".git/hooks", "kind": "made", "mode": "0755", "folder": True},
    ]

    def shown(*changes: dict[str, object]) -> list[str]:
        preview = command_preview({"command": "git commit"}, {}, {"changes": [*changes]})
        assert isinstance(preview, dict)
        lines = preview["changes"]
        assert isinstance(lines, list)
        return [str(each) for each in lines]

    *apart, folded = shown(*stored, *others)
    assert len(apart) == len(others)
    assert folded.startswith("made 4 files and folders of git's objects; SHA-256 of their list ")
    other = {**stored[1], "binary": {**binary, "sha256": "2" * 64}}
    assert shown(stored[0], other, *stored[2:]) != [folded]
    assert shown(*stored) == [folded]


@pytest.mark.parametrize("data", [b"[" * 200_000, b"\xff", b"[]", b"{"])
def test_what_cannot_be_read_is_no_frame(data: bytes) -> None:
    with pytest.raises(BrokenFrame):
        read_frame(io.BytesIO(struct.pack(">I", len(data)) + data))


def test_small_is_what_has_few_values_and_short_texts() -> None:
    """Counted in every part; what is not small is not walked to its end."""
    for small in (None, {}, "x" * 1000, "x" * 1001, [1] * 100):
        assert is_small(small, 100)
    in_parts: list[Any] = [{"a": [[1] * 60, {"b": [1] * 60}]}, {"a": ["x" * 3200, "y" * 3201]}]
    for large in ("x" * 6401, [1] * 101, *in_parts):
        assert not is_small(large, 100)


def test_depth_counts_objects_and_arrays() -> None:
    """The last level that may be there, and the first that may not."""
    assert not is_deeper_than(2, {"a": [1]})
    assert is_deeper_than(2, {"a": [[1]]})
