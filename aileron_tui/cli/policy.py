"""`aileron policy check|explain|grants`: the rules of a home, what answered a call, and what a person granted."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.read import run_records
from aileron_core.clock import rfc3339
from aileron_core.console_port.events import StandingUpdated
from aileron_core.console_port.intents import ReadStanding
from aileron_core.console_port.standing import GrantView
from aileron_core.errors import FileProblems, NotFound
from aileron_core.home.layout import Home
from aileron_core.library.accepted_settings import load_policy
from aileron_core.policy.policy_file import unknown_fields
from aileron_core.storage.open import open_reader
from aileron_core.text import escape
from aileron_tui.cli.accepted import accepted_actions
from aileron_tui.cli.check import report
from aileron_tui.cli.output import EXIT, CliError, CommandContext, local_time
from aileron_tui.cli.vault import ask, need_console
from aileron_tui.words.bars import counted

_DECISIONS: Mapping[str, str] = {
    AuditEvent.RUN_STARTED: "allow",
    AuditEvent.APPROVAL_STANDING: "allow",
    AuditEvent.RUN_DENIED_BY_RULE: "deny",
}
_SAYS = {
    "allow": "allowed without asking you",
    "deny": "denied without asking you",
    "ask": "left to you",
    None: "nothing on record: no rule and no grant answered it",
}


def check_policy(context: CommandContext, file: str | None) -> int:
    """Print every problem of a `policy.toml` with its line; return 2 if there is one.

    Fields that its tests name are looked for in the actions that the home has accepted.
    """
    home = Home(context.home)
    path = home.policy if file is None else Path(file)
    if file is not None and not path.is_file():
        raise CliError(EXIT.USAGE, f"There is no file {path}.")
    try:
        unknown = unknown_fields(load_policy(path), accepted_actions(home))
        problems = tuple(chain.from_iterable(unknown.values()))
    except FileProblems as error:
        problems = error.problems
    found = [replace(each, file=str(path)) for each in sorted(problems, key=lambda each: each.line)]
    return EXIT.USAGE if report(context, found, int(path.is_file())) else EXIT.DONE


def explain_run(context: CommandContext, run: str) -> int:
    """Print which rule or grant answered a call, or why it was left to the person, as the audit has it.

    Raises:
        NotFound: there is no record of it.
    """
    with closing(open_reader(Home(context.home).database)) as connection:
        records = run_records(connection, run)
    if not records:
        raise NotFound(f"There is no audit record of {run}. `aileron audit list` lists the newest.")
    told = [each for each in records if each.get("rule")]  # another program may have written it
    last: dict[str, Any] = told[-1] if told else {}
    decision = _DECISIONS.get(str(last.get("event")), "ask") if told else None
    found = last.get("looked_at")
    looked_at = [*map(str, cast("list[object]", found))] if isinstance(found, list) else []
    context.show(
        {
            "run": records[0].get("run"),
            "action": records[0].get("action"),
            "decision": decision,
            "by": last.get("by"),
            "reason": last.get("rule"),
            "looked_at": looked_at,
        }
    )
    context.say(f"Decision   {_SAYS[decision]}")
    if told:
        context.say(f"Why        {escape(str(last['rule']))}")
    if looked_at:
        context.say(f"Looked at  {escape(', '.join(looked_at))}")
    return EXIT.DONE


def list_grants(context: CommandContext) -> int:
    """Print the grants of the running console; what their tests compare with is shown there alone."""
    need_console(context, "policy grants")
    grants = ask(context, ReadStanding(), StandingUpdated).grants
    context.show({"items": [_body(each) for each in grants]})
    for each in grants:
        ends = f"ends {local_time(rfc3339(each.ends_at))}"
        rests = f", rests: {each.rests}" if each.rests else ""
        used = f"used {each.used} of {each.uses}"
        context.say(
            f"{each.grant_id:<4} {each.decision:<6} {escape(each.action)}  {used}, {ends}{rests}"
        )
        for key, test in each.tests:
            context.say(f"       {escape(key)}: {test.name}")
    context.say(f"{counted(len(grants), 'grant')}. In the console, 7 lists them and x ends one.")
    return EXIT.DONE


def _body(grant: GrantView) -> dict[str, Any]:
    return {
        "id": grant.grant_id,
        "decision": grant.decision,
        "action": grant.action,
        "tests": {key: test.name for key, test in grant.tests},
        "scope": grant.scope,
        "session": grant.session_id,
        "ends_at": rfc3339(grant.ends_at),
        "uses": grant.uses,
        "used": grant.used,
        "calls": list(grant.calls),
        "rests": grant.rests or None,
    }
