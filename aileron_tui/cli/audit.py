"""`aileron audit list|show|verify`: reads the database itself, with or without a console."""

import json
from contextlib import ExitStack, closing
from typing import Any

from aileron_core.audit.read import list_records, run_records, session_records, verify_home
from aileron_core.canonical import Json
from aileron_core.clock import rfc3339
from aileron_core.console_port.view_models import HistoryQuery
from aileron_core.errors import NotFound
from aileron_core.home.layout import Home
from aileron_core.storage.open import open_reader
from aileron_core.text import escape
from aileron_tui.cli.completing import newest_ids
from aileron_tui.cli.output import EXIT, CliError, CommandContext, did_you_mean, local_time
from aileron_tui.cli.process import Given
from aileron_tui.words.bars import counted

_SESSION = "ses-"
_WITHOUT_VAULT = (
    "This check has no key: it detects accidents and carelessness, not a program of your own",
    "account that rewrites everything. With a vault, that is detected as well.",
)
_WITH_VAULT = (
    "This check has no key: it detects accidents and carelessness. A program of your own account",
    "that rewrites everything is detected when you unlock the vault, and by V in the console.",
)


def list_audit(
    context: CommandContext, limit: int, *, unseal: bool, passphrase: Given, **wanted: Any
) -> int:
    """Print the newest records that are *wanted* (`HistoryQuery`), the oldest first, and how much was not searched."""
    query, sealed, deleted, edited = HistoryQuery(**wanted), 0, 0, 0
    if unseal and not query.words:
        raise CliError(EXIT.USAGE, "--unseal needs --grep.")
    since = "" if query.since is None else rfc3339(query.since)
    with ExitStack() as stack:
        connection = stack.enter_context(closing(open_reader(Home(context.home).database)))
        if query == HistoryQuery(since=query.since):
            records = list_records(connection, limit=limit, since=since)
        else:
            from aileron_tui.cli.kept_call import Choice
            from aileron_tui.cli.vault import opened_history

            keys = stack.enter_context(opened_history(context, passphrase)) if unseal else None
            choice = Choice(connection, query, keys)
            records = list_records(connection, limit=limit, since=since, wanted=choice.takes)
            sealed, deleted, edited = map(len, (choice.sealed, choice.deleted, choice.edited))
    context.show({"items": records, "sealed": sealed, "deleted": deleted, "edited": edited})
    for record in records:
        of_run = f"  {record['run']}" if record["run"] else ""
        context.say(
            f"{record['seq']:>7}  {_printable(record['at']):<19}  {_printable(record['event']):<22}  "
            f"{_printable(record['actor']):<8}  {_printable(record['summary'])}{escape(of_run)}"
        )
    if sealed:
        why = "could not be opened" if unseal else "was not searched: use --unseal"
        context.say(f"What {counted(sealed, 'call')} contained is sealed, and {why}.")
    if deleted:
        context.say(f"What {counted(deleted, 'call')} contained is not kept any more.")
    if edited:
        what = f"What {counted(edited, 'call')} contained was not searched"
        context.say(f"{what}: another program changed the database.")
    return EXIT.DONE


def show_audit(context: CommandContext, run: str, *, unseal: bool, passphrase: Given) -> int:
    """Print what is kept of one call, then every record of it; *run* may be an approval's or a session's id.

    With *unseal* what is sealed of it too, by the vault's passphrase, by descriptor or file, or typed.
    """
    from aileron_tui.cli.kept_call import call_lines, read_call

    with closing(open_reader(Home(context.home).database)) as connection:
        is_session = run.startswith(_SESSION)
        records = session_records(connection, run) if is_session else run_records(connection, run)
        call = None if is_session else read_call(connection, run)
        if unseal and call is not None and call["sealed"]:
            from aileron_tui.cli.vault import opened_history

            with opened_history(context, passphrase) as keys:
                call = read_call(connection, run, keys)
    if not records:
        known = (
            each for each, _ in (*newest_ids(context.home, "run"), *newest_ids(context.home, "act"))
        )
        raise NotFound(
            f"There is no audit record of {run}.{did_you_mean(run, known, likeness=0.9)}"
        )
    if context.json:
        context.show({"call": call, "items": records})
        return EXIT.DONE
    for line in call_lines(call) if call else ():
        context.say(line)
    for record in records:
        context.say(
            f"{_printable(record['seq']):>7}  {_printable(record['at'])}  {_printable(record['event'])}",
            bold=True,
        )
        for key in sorted(record):
            if key not in ("seq", "at", "event") and record[key] is not None:
                context.say(f"         {escape(key)}: {_printable(record[key])}")
    return EXIT.DONE


def _printable(value: Json) -> str:
    """Return *value* safe to print: any program of this user can edit the table that it came from."""
    return escape(_plain(value))


def _plain(value: Json) -> str:
    """Return *value* as a person reads it: a list of words as words, anything deeper as JSON."""
    if isinstance(value, str):
        return local_time(value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(str(each) for each in value)
    return json.dumps(value, ensure_ascii=False)


def verify_audit(context: CommandContext) -> int:
    """Verify the whole audit; return 1 if something is wrong."""
    home = Home(context.home)
    with closing(open_reader(home.database)) as connection:
        report = verify_home(connection, home.path)
    context.show(
        {
            "ok": report.ok,
            "records": report.records,
            "head": report.head,
            "problems": [problem.to_json() for problem in report.problems],
        }
    )
    for problem in report.problems:
        context.say(f"✗ {problem.seq:>7}  {problem.kind:<9}  {escape(problem.message)}", fg="red")
    if report.ok:
        context.say(
            f"✓ {report.records} records, no gaps, chain verified. Head {report.head[:16]}…",
            fg="green",
        )
        for line in _WITH_VAULT if (home.path / "vault.json").exists() else _WITHOUT_VAULT:
            context.say(f"  {line}")
    return EXIT.DONE if report.ok else EXIT.FAILED
