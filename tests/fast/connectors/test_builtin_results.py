"""What a person is shown of a rehearsed command: everything that their yes keeps."""

from aileron_core.connectors.builtin.results import command_preview


def test_a_change_without_a_diff_says_what_it_is() -> None:
    """Else two rehearsals that differ there would look alike."""
    binary = {"type": "ELF program or library", "bytes": 4096, "sha256": "ab12"}
    rehearsed = {
        "exit_code": 0,
        "changes": [
            {"path": "a", "kind": "link", "target": "../b", "previous_target": "c"},
            {"path": "run", "kind": "mode", "mode": "0755", "previous_mode": "0644"},
            {"path": "bin", "kind": "made", "mode": "0644", "binary": binary},
        ],
        "own_paths": ["/home/me/.profile"],
        "own_changes": 3,
    }
    preview = command_preview({"command": "make"}, {}, rehearsed)
    assert isinstance(preview, dict)
    assert preview["changes"] == [
        "link a; leads to ../b; led to c",
        "mode run; mode 0755, was 0644",
        "made bin; mode 0644; ELF program or library, 4,096 bytes; SHA-256 ab12",
        "outside the project: /home/me/.profile",
        "and 2 more in the tools' own folders",
    ]
