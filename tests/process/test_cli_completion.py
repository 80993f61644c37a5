"""What a TAB offers, in a real bash and through click's own protocol for each shell."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.process.tmux import Tmux
from tests.support.forked import run_forked
from tests.support.server_harness import CLI, DRAFT, ROOT, Console, aileron, aileron_json
from tests.support.variants import variants

BIN = Path(sys.executable).parent
SOURCE = ROOT / "examples" / "connectors" / "mail-drafts"
SEND = ("action", "run", "send-draft", "--arg", f"draft_id={DRAFT}")


def completions(home: Path, words: str, *, shell: str = "bash") -> list[str]:
    """Return the raw answer to a press of TAB at the end of *words*; nothing may be on stderr."""
    last = words.split(" ")[-1] if shell == "fish" else str(len(words.split(" ")) - 1)
    env = {"PATH": os.environ["PATH"], "AILERON_HOME": str(home), "COMP_WORDS": words}
    env |= {"COMP_CWORD": last, "_AILERON_COMPLETE": f"{shell}_complete"}
    done = run_forked(CLI, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in done.stdout.splitlines() if line]


def bash_words(home: Path, words: str) -> list[str]:
    return [line.removeprefix("plain,") for line in completions(home, words)]


def test_files_and_folders_are_left_to_the_shell(tmp_path: Path) -> None:
    for words in ("action check", "action add", "connector install"):
        assert completions(tmp_path, f"aileron {words} ") == ["file,"]
    for words in ("connector check", "status --home"):
        assert completions(tmp_path, f"aileron {words} ") == ["dir,"]


def test_names_and_ids_come_from_the_home_with_and_without_a_console(console: Console) -> None:
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
        found = bash_words(home, f"aileron audit show {ran[:30]}")
        assert found in ([ran], [waits["audit_id"], ran])
        assert bash_words(home, "aileron audit show act") == [waits["approval_id"]]
        assert bash_words(home, "aileron open approval ") == [waits["approval_id"]]
        assert bash_words(home.parent, f"aileron action run --home {home} l") == ["list-drafts"]
        if running:
            assert console.end() == 0
    other = completions(console.home, "aileron open approval ", shell="zsh")
    assert other == ["plain", waits["approval_id"], "send-draft"]
    assert completions(console.home, "aileron action run s", shell="fish") == ["plain,send-draft"]


@pytest.mark.parametrize("broken", variants(["no database", "none", "a file", "newer"], 2))
def test_what_is_missing_or_broken_offers_and_says_nothing(tmp_path: Path, broken: str) -> None:
    """A press of TAB never prints an error into the line that somebody types."""
    home = tmp_path / "home"
    if broken == "a file":
        home.write_text("")
    elif broken != "none":
        home.mkdir()
        (home / "aileron.db").write_bytes(b"\xff" * 4096 if broken == "no database" else b"")
        if broken == "newer":
            with closing(sqlite3.connect(home / "aileron.db")) as database:
                database.execute("PRAGMA user_version = 99")
    for words in ("action run", "action remove", "audit show", "open approval", "connector remove"):
        assert completions(home, f"aileron {words} ") == []


def test_what_another_program_wrote_there_does_not_become_a_word(console: Console) -> None:
    """Names that a shell would split, expand or run are not offered."""
    console.end()
    bad = ["$(touch x)", "a b", "*", "; id", "-rf", "`id`", "\x1b[2J", "../x", ""]
    with closing(sqlite3.connect(console.home / "aileron.db")) as database:
        ids = [(f"run-{name}{number}", f"act-{name}{number}") for number, name in enumerate(bad)]
        ids.append(("run-" + "0" * 26, "act-20260101T000000-0123456789abcdef"))
        names = [(f"{name}.md",) for name in bad]
        database.executemany("INSERT INTO pins VALUES('action', ?, 'x', 0, 'person', 1)", names)
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


def test_each_script_is_one_that_its_shell_can_read(tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = aileron("completion", shell, home=tmp_path).stdout
        assert f"_AILERON_COMPLETE={shell}_complete" in script
        told = aileron_json("completion", shell, home=tmp_path)
        assert told == {"shell": shell, "script": script.removesuffix("\n")}
        if path := shutil.which(shell):
            subprocess.run([path, "-n", "-c", script], check=True)


def test_a_press_of_tab_in_a_real_bash_completes(console: Console, tmp_path: Path) -> None:
    (tmp_path / "only-file.md").write_text("")
    rc = tmp_path / "rc"
    rc.write_text(f'PS1="ready> "\nPATH={BIN}:$PATH\neval "$(aileron completion bash)"\n')
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    environment |= {"AILERON_HOME": str(console.home)}
    command = f"bash --noprofile --rcfile {rc} -i"
    with closing(Tmux(console.home.parent / "t", command, environment, tmp_path)) as terminal:
        terminal.until("ready>")
        for typed, whole in (
            ("action run se", "action run send-draft "),
            ("action check on", "action check only-file.md"),
            ("logs --fol", "logs --follow"),
        ):
            terminal.type(f"aileron {typed}\t")
            terminal.until(f"aileron {whole}")
            terminal.press("C-u")


def test_removing_a_connector_is_the_opposite_of_installing_it(home: Path, tmp_path: Path) -> None:
    # Of several versions one has to be named; one that is broken goes by its hash.
    second = shutil.copytree(SOURCE, tmp_path / "second")
    manifest = second / "manifest.toml"
    manifest.write_text(manifest.read_text().replace('version = "0.1.0"', 'version = "0.2.0"'))
    installed = aileron_json("connector", "install", str(second), home=home)
    refused = aileron("connector", "remove", "mail-drafts", home=home, code=1)
    assert installed["hash"] in refused.stderr
    store = home / "store" / "connectors" / "sha256"
    (store / installed["hash"].removeprefix("sha256:") / "manifest.toml").write_text("broken")
    removed = aileron_json("connector", "remove", installed["hash"], home=home)
    assert removed == {"removed": installed["hash"], "actions_without_it": []}
    shutil.copytree(store, tmp_path / "installed")
    (item,) = aileron_json("connector", "list", home=home)["items"]
    full = f"{item['name']}@{item['version']}"
    for name in ("mail-drafts", "mail-drafts@0.1.0", item["name"], full, item["hash"]):
        done = aileron_json("connector", "remove", name, home=home)
        without = ["get-draft", "list-drafts", "send-draft"]
        assert done == {"removed": item["hash"], "actions_without_it": without}
        assert not list(store.iterdir())
        shutil.copytree(tmp_path / "installed", store, dirs_exist_ok=True)
    text = aileron("connector", "remove", "mail-drafts", home=home).stdout
    assert "cannot run without it: get-draft, list-drafts, send-draft" in text
    assert aileron_json("connector", "list", home=home)["items"] == []
    hashes = ("sha256:" + "0" * 64, "sha256:../..", "sha256:")
    for name in ("mail-drafts", "../../actions", "", *hashes):
        done = aileron("connector", "remove", name, home=home, code=1)
        assert done.stderr.startswith("aileron: ")
    assert (home / "actions").is_dir()
