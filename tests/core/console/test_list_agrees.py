"""`aileron action list` and the console judge the same files by the same rules."""

import json
from pathlib import Path

from click.testing import CliRunner

from aileron_tui.cli.commands import aileron
from tests.support.core_harness import Start

GATED_CHAIN = """\
[[execute]]
id = "after"
connector = "local://aileron/mail-drafts"
op = "update_draft"
inputs = { id = "${send.id}" }

[approval]
"""


async def test_the_list_says_of_every_file_what_the_console_says(start: Start, home: Path) -> None:
    """Regression: the list called ready what the console does not offer."""
    sent = (home / "actions" / "send-draft.md").read_text(encoding="utf-8")
    chain = sent.replace('"send-draft"', '"chain"').replace('["send_draft"]', '["send_draft", "update_draft"]')  # fmt: skip
    (home / "actions" / "chain.md").write_text(
        chain.replace("[approval]\n", GATED_CHAIN), encoding="utf-8"
    )
    read = (home / "actions" / "get-draft.md").read_text(encoding="utf-8")
    (home / "actions" / "other.md").write_text(
        read.replace('"get-draft"', '"other"').replace(
            'version = "0.1.0"\nhash', 'version = "9.9.9"\nhash'
        ),
        encoding="utf-8",
    )
    async with start() as core:
        console = {
            entry.name: (entry.state, [problem.message for problem in entry.problems])
            for entry in core.app.library.entries()
        }
    done = CliRunner().invoke(aileron, ["action", "list", "--json", "--home", str(home)])
    listed = {
        item["name"]: (item["state"], [problem["message"] for problem in item["problems"]])
        for item in json.loads(done.stdout)["items"]
    }
    assert listed == console
    assert done.exit_code == 1
    assert console["send-draft"] == ("ready", [])
    assert console["chain"] == ("ready", [])
    assert "not local://aileron/mail-drafts@9.9.9" in console["other"][1][0]


async def test_an_action_that_cannot_run_stands_there_as_such_with_the_reason(
    start: Start, home: Path
) -> None:
    """Its file was accepted, and its op is not among the capabilities: every call of it is refused."""
    path = home / "actions" / "send-draft.md"
    sent = path.read_text(encoding="utf-8")
    path.write_text(
        sent.replace('capabilities = ["send_draft"]', 'capabilities = ["get_draft"]'),
        encoding="utf-8",
    )
    async with start():
        pass
    said = CliRunner().invoke(aileron, ["action", "list", "--home", str(home)]).stdout
    (row,) = (line for line in said.splitlines() if "send-draft " in line)
    assert row.startswith("✗ send-draft")
    assert "needs approval " in row
    assert row.endswith("  cannot run")
    assert "is not among the capabilities" in said
    done = CliRunner().invoke(aileron, ["action", "list", "--json", "--home", str(home)])
    reasons = {item["name"]: item["cannot_run"] for item in json.loads(done.stdout)["items"]}
    assert "send_draft is not among the capabilities" in reasons.pop("send-draft")
    assert set(reasons.values()) == {None}
