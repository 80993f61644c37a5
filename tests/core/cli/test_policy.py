"""`aileron policy`: what is wrong with rules, what answered a call, and which grants there are."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.core.runs.test_standing import ALLOWED, ANNA, end, opened
from tests.support.core_harness import DRAFT, Mailbox
from tests.support.granting import grant
from tests.support.review_harness import serving
from tests.support.server_harness import aileron


async def printed(*words: str, home: Path, code: int = 0) -> str:
    return (await asyncio.to_thread(aileron, "policy", *words, home=home, code=code)).stdout


async def printed_json(*words: str, home: Path, code: int = 0) -> dict[str, Any]:
    return json.loads(await printed(*words, "--json", home=home, code=code))


async def test_check_names_each_problem_and_unknown_field(tmp_path: Path, mailbox: Mailbox) -> None:
    async with opened(tmp_path, mailbox):
        pass
    file = tmp_path / "policy.toml"
    rule = '[[rule]]\nactions = ["readdress"]\ndecision = "allow"\nwhere = {{ "{}" = "any" }}\n'
    file.write_text(rule.format("fetched.Tu") + "bogus = 1\n")
    printed_text = await printed("check", home=tmp_path, code=2)
    assert f"{file}:5:1: rule[0].bogus: is not a key here" in printed_text
    file.write_text(rule.format("fetched.Tu"))
    found = await printed_json("check", str(file), home=tmp_path, code=2)
    (problem,) = found["problems"]
    assert (problem["line"], problem["key"]) == (4, 'rule[0].where."fetched.Tu"')
    assert "there is args.bcc" in problem["message"]
    assert "fetched.To" in problem["message"]
    file.write_text(rule.format("fetched.To"))
    assert "0 errors" in await printed("check", home=tmp_path)


async def test_explain_says_what_answered_a_call_or_why(tmp_path: Path, mailbox: Mailbox) -> None:
    denied = '\n[[rule]]\nactions = ["readdress"]\ndecision = "deny"\nwhere = { "args.to" = { within = "evil.example" } }\n'
    async with opened(tmp_path, mailbox, ALLOWED + denied) as core:
        row = await end(core, await core.call("readdress", {"id": DRAFT, "to": ANNA}))
        found = await printed_json("explain", row.run_id, home=tmp_path)
        assert found.pop("reason").startswith("allowed by policy.toml:2")
        assert found == {
            "run": row.run_id, "action": "readdress", "decision": "allow", "by": "policy.toml:2",
            "looked_at": ["args.id", "args.to", "fetched.To", "fetched.Subject"],
        }  # fmt: skip
        assert "Anna" not in await printed("explain", row.run_id, home=tmp_path)
        bad = (await core.call("readdress", {"id": DRAFT, "to": "x@evil.example"})).row
        found = await printed_json("explain", bad.run_id, home=tmp_path)
        expected = {"decision": "deny", "by": "policy.toml:7", "looked_at": ["args.to"]}
        assert {name: found[name] for name in expected} == expected
        call = await core.call("readdress", {"id": DRAFT, "to": ANNA, "bcc": ANNA})
        asked = await end(core, call)
        await core.app.approvals.deny(asked.approval_id or "", "")
        text = await printed("explain", asked.approval_id or "", home=tmp_path)
        assert "left to you" in text
        assert "policy.toml:2 does not allow it, because of args.bcc" in text
    await printed("explain", "run-1", home=tmp_path, code=1)


async def test_grants_are_listed_by_their_console(tmp_path: Path, mailbox: Mailbox) -> None:
    """Without what was fetched: any program of the account can ask for the list."""
    async with opened(tmp_path, mailbox) as core, serving(core):
        view = await core.ask_for("readdress", {"id": DRAFT, "to": ANNA})
        await grant(core, view, 3)
        (found,) = (await printed_json("grants", home=tmp_path))["items"]
        expected = {"id": "g1", "action": "readdress", "uses": 5, "used": 0}
        assert {name: found[name] for name in expected} == expected
        assert found["tests"]["fetched.To"] == "is"
        text = await printed("grants", home=tmp_path)
        assert "fetched.To: is" in text
        assert "Anna" not in text
    await printed("grants", home=tmp_path, code=69)
