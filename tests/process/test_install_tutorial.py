"""docs/first-approval.md does what it says: its own action file, and every command on it."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from aileron_tui.cli.commands import aileron as tree
from examples.mailbox.server import Mailbox
from tests.support.server_harness import ROOT, Attend, aileron, aileron_json

PAGE = (ROOT / "docs" / "first-approval.md").read_text(encoding="utf-8")
ACTION = next(block for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL) if "+++" in block)
COMMANDS = re.findall(r"^    (aileron .*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_is_one(line: str) -> None:
    """Words and options are those of the tree."""
    words = shlex.split(line, comments=True)[1:]
    done = CliRunner().invoke(tree, [*words, "--help"], prog_name="aileron")
    assert done.exit_code == 0, done.output


def test_the_commands_of_the_page_are_those_that_init_prints(tmp_path: Path) -> None:
    """One way in, told once: the page and the command do not drift apart."""
    steps = aileron_json("init", "--example", home=tmp_path / "home")["next"]
    bare = [re.sub(r"^\S*/|(?<=\S) --home \S+", "", step) for step in steps]
    assert [line for line in COMMANDS if line in bare] == bare


def test_the_pages_own_action_is_checked_added_accepted_and_run(
    home: Path, mailbox: Mailbox, attend: Attend, tmp_path: Path
) -> None:
    """Through check, add and a person's yes, with the preview that the page promises."""
    (tmp_path / "readdress-draft.md").write_text(ACTION, encoding="utf-8")
    checked = aileron_json("action", "check", str(tmp_path / "readdress-draft.md"), home=home)
    assert (checked["ok"], checked["problems"]) == (True, [])
    added = aileron_json("action", "add", str(tmp_path / "readdress-draft.md"), home=home)
    assert list(added["items"][0]["bound"]) == ["local://aileron/mail-drafts"]
    console = attend()
    line = next(line for line in COMMANDS if "readdress-draft --arg" in line)
    words = shlex.split(line)[1:]
    pending = aileron_json(*words[: words.index("--wait")], home=home, code=75)
    assert console.approve(pending["approval_id"])
    assert console.state(pending["approval_id"], "completed", "failed")
    assert console.views[pending["approval_id"]]["state"] == "completed"
    (changed,) = (d for d in mailbox.state()["drafts"] if d["id"] == "r-8842190312")
    assert changed["to"] == "ana@example.com"
    assert "not accepted" not in aileron("action", "list", home=home).stdout
