"""What a TAB offers, in a real bash and through click's own protocol for each shell."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.process.tmux import Tmux
from tests.support.forked import run_forked
from tests.support.server_harness import CLI, DRAFT, Console, aileron, aileron_json
from tests.support.variants import variants

BIN = Path(sys.executable).parent
SEND = ("action", "run", "send-draft", "--arg", f"draft_id={DRAFT}")


def completions(home: Path, words: str, *, shell: str = "bash") -> list[str]:
    """Return the raw answer to a press of TAB at the end of *words*; nothing may be on stderr."""
    last = words.split(" ")[-1] if shell == "fish" else str(len(words.split(" ")) - 1)
    env = {"PATH": os.environ["PATH"], "AILERON_HOME": str(home), "COMP_WORDS": words,
           "COMP_CWORD": last, "_AILERON_COMPLETE": f"{shell}_complete"}  # fmt: skip
    done = run_forked(CLI, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in done.stdout.splitlines() if line]


def bash_words(home: Path, words: str) -> list[str]:
    return [line.removeprefix("plain,") for line in completions(home, words)]


@pytest.mark.parametrize(
    "words",
    ["aileron action check ", "aileron action add ", "aileron connector install ",
     "aileron connector check ", "aileron status --home "],
)  # fmt: skip
def test_files_and_folders_are_left_to_the_shell(tmp_path: Path, words: str) -> None:
    kind = "file" if re.search("action|install", words) else "dir"
    assert completions(tmp_path, words) == [f"{kind},"]


def test_names_and_ids_come_from_the_home_with_and_without_a_console(console: Console) -> None:
    """Actions that were accepted, connectors by their last word, runs, approvals that wait."""
    ran = aileron_json("action", "run", "list-drafts", home=console.home)["audit_id"]
    waits = aileron_json(*SEND, home=console.home, code=75)
    (console.home / "actions" / "new-file.md").write_text("not accepted")
    for running in (True, False):
        home = console.home
        assert bash_words(home, "aileron action run ") == ["get-draft", "list-drafts", "send-draft"]
        assert bash_words(home, "aileron action run s") == ["send-draft"]
        assert "new-file" in bash_words(home, "aileron action remove ")
        assert bash_words(home, "aileron connector remove ") == ["mail-drafts"]
        assert set(bash_words(home, "aileron audit show ")) == {ran, waits["audit_id"]}
        assert bash_words(home, f"aileron audit show {ran[:30]}") in (
            [ran],
            [waits["audit_id"], ran],
        )
        assert bash_words(home, "aileron audit show act") == [waits["approval_id"]]
        assert bash_words(home, "aileron open approval ") == [waits["approval_id"]]
        assert bash_words(home.parent, f"aileron action run --home {home} l") == ["list-drafts"]
        if running:
            assert console.end() == 0
    other = completions(console.home, "aileron open approval ", shell="zsh")
    assert other == ["plain", waits["approval_id"], "send-draft"]
    assert completions(console.home, "aileron action run s", shell="fish") == ["plain,send-draft"]


@pytest.mark.parametrize(
    "words",
    ["aileron action run ", "aileron action remove ", "aileron audit show ",
     "aileron open approval ", "aileron connector remove "],
)  # fmt: skip
@pytest.mark.parametrize("broken", variants(["no database", "none", "a file", "newer"], 2))
def test_what_is_missing_or_broken_offers_nothing_and_says_nothing(
    tmp_path: Path, words: str, broken: str
) -> None:
    """A press of TAB never prints an error into the line that somebody types."""
    home = tmp_path / "home"
    if broken == "a file":
        home.write_text("")
    elif broken == "no database":
        home.mkdir()
        (home / "aileron.db").write_bytes(b"\xff" * 4096)
    elif broken == "newer":
        home.mkdir()
        with closing(sqlite3.connect(home / "aileron.db")) as database:
            database.execute("PRAGMA user_version = 99")
    assert completions(home, words) == []


def test_what_another_program_wrote_there_does_not_become_a_word(console: Console) -> None:
    """Names that a shell would split, expand or run are not offered."""
    console.end()
    bad = ["$(touch x)", "a b", "*", "; id", "-rf", "`id`", "\x1b[2J", "../x", ""]
    with closing(sqlite3.connect(console.home / "aileron.db")) as database:
        ids = [(f"run-{name}{number}", f"act-{name}{number}") for number, name in enumerate(bad)]
        ids.append(("run-" + "0" * 26, "act-20260101T000000-0123456789abcdef"))
        database.executemany(
            "INSERT INTO pins VALUES('action', ?, 'x', 0, 'person', 1)",
            [(f"{name}.md",) for name in bad],
        )
        database.executemany(
            "INSERT INTO runs(run_id, approval_id, session_id, action, action_sha256, "
            "args_sha256, gated, state, requested_at, times_asked, note, delivered, last_record) "
            "VALUES(?, ?, '', 'evil\n\x1b[31m', '', '', 1, 'pending', 0, 1, '', 0, 1)",
            ids,
        )
        database.commit()
    for name in bad:
        if "/" not in name:
            (console.home / "actions" / f"{name}.md").write_text("x")
    for command in ("run", "remove"):
        found = bash_words(console.home, f"aileron action {command} ")
        assert found == ["get-draft", "list-drafts", "send-draft"]
    assert bash_words(console.home, "aileron audit show ") == ["run-" + "0" * 26]
    lines = completions(console.home, "aileron open approval ", shell="zsh")
    assert lines[:2] == ["plain", "act-20260101T000000-0123456789abcdef"]
    assert len(lines) == 3
    assert lines[2].isprintable()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_is_one_that_its_shell_can_read(tmp_path: Path, shell: str) -> None:
    """`aileron completion SHELL`; checked by the shell where it is installed."""
    script = aileron("completion", shell, home=tmp_path).stdout
    assert f"_AILERON_COMPLETE={shell}_complete" in script
    assert aileron_json("completion", shell, home=tmp_path) == {
        "shell": shell, "script": script.removesuffix("\n"),
    }  # fmt: skip
    if path := shutil.which(shell):
        subprocess.run([path, "-n", "-c", script], check=True)


def test_a_press_of_tab_in_a_real_bash_completes(console: Console, tmp_path: Path) -> None:
    """A person's own shell: the name of an action appears behind the cursor, a path too."""
    (tmp_path / "only-file.md").write_text("")
    rc = tmp_path / "rc"
    rc.write_text(f'PS1="ready> "\nPATH={BIN}:$PATH\neval "$(aileron completion bash)"\n')
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8",
                   "AILERON_HOME": str(console.home)}  # fmt: skip
    with contextlib.closing(
        Tmux(console.home.parent / "t", f"bash --noprofile --rcfile {rc} -i", environment, tmp_path)
    ) as terminal:
        terminal.until("ready>")
        terminal.type("aileron action run se\t")
        terminal.until("aileron action run send-draft ")
        terminal.press("C-u")
        terminal.type("aileron action check on\t")
        terminal.until("aileron action check only-file.md")
        terminal.press("C-u")
        terminal.type("aileron logs --fol\t")
        terminal.until("aileron logs --follow")


# Options anywhere, and what is wrong with them


# Removing a connector


def test_removing_a_connector_is_the_opposite_of_installing_it(home: Path, tmp_path: Path) -> None:
    """By any of its names; what had named it is said; what is not there is a sentence."""
    source = Path(__file__).resolve().parents[2] / "examples" / "connectors" / "mail-drafts"
    store = home / "store" / "connectors" / "sha256"
    shutil.copytree(store, tmp_path / "installed")
    (item,) = aileron_json("connector", "list", home=home)["items"]
    full = f"{item['name']}@{item['version']}"
    for name in ("mail-drafts", "mail-drafts@0.1.0", item["name"], full, item["hash"]):
        done = aileron_json("connector", "remove", name, home=home)
        assert done == {
            "removed": item["hash"],
            "actions_without_it": ["get-draft", "list-drafts", "send-draft"],
        }
        assert not list(store.iterdir())
        shutil.copytree(tmp_path / "installed", store, dirs_exist_ok=True)
    aileron("connector", "remove", "mail-drafts", home=home)
    assert aileron_json("connector", "list", home=home)["items"] == []
    aileron("connector", "install", str(source), home=home)
    text = aileron("connector", "remove", "mail-drafts", home=home).stdout
    assert "cannot run without it: get-draft, list-drafts, send-draft" in text
    for name in (
        "mail-drafts",
        "sha256:" + "0" * 64,
        "sha256:../..",
        "../../actions",
        "",
        "sha256:",
    ):
        done = aileron("connector", "remove", name, home=home, code=1)
        assert done.stderr.startswith("aileron: ")
    assert (home / "actions").is_dir()


def test_of_several_versions_one_has_to_be_named(home: Path, tmp_path: Path) -> None:
    """The list of what fits, with hashes; a connector that is broken goes by its hash."""
    source = Path(__file__).resolve().parents[2] / "examples" / "connectors" / "mail-drafts"
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(source / "connector.wasm", second)
    manifest = (source / "manifest.toml").read_text()
    (second / "manifest.toml").write_text(
        manifest.replace('version = "0.1.0"', 'version = "0.2.0"')
    )
    newer = aileron_json("connector", "install", str(second), home=home)
    refused = aileron("connector", "remove", "mail-drafts", home=home, code=1)
    assert newer["hash"] in refused.stderr
    folder = home / "store" / "connectors" / "sha256" / newer["hash"].removeprefix("sha256:")
    (folder / "manifest.toml").write_text("broken")
    removed = aileron_json("connector", "remove", newer["hash"], home=home)
    assert removed == {"removed": newer["hash"], "actions_without_it": []}
    assert len(aileron_json("connector", "list", home=home)["items"]) == 1
