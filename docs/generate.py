"""Make the parts of docs/ that are drawn from the code and the snapshot tests.

python docs/generate.py            # write them
python docs/generate.py --check    # say which are stale (exit 1)
"""

import sys
from pathlib import Path

from agent_pages import agent_pages, with_variables
from commands import BEGIN, END, with_commands
from keys_page import keys_page
from rules_page import with_secret_files
from trusted_code_page import trusted_code_page

from aileron_core.runs.transitions import FINAL, TRANSITIONS, RunState

DOCS = Path(__file__).resolve().parent
SNAPSHOTS = DOCS.parent / "tests" / "screen" / "__snapshots__"

PICTURES = {
    "pair.svg": "test_a_link_that_pairs_a_browser_is_text_and_qr_code",
    "console.svg": "test_a_mail_that_waits",
    "before-after.svg": "test_a_change_in_sight",
    "batch.svg": "test_many_calls_in_one_row",
    "edit.svg": "test_the_arguments_of_a_call_as_a_form",
    "changed.svg": "test_what_changed_after_the_look",
    "vault.svg": "test_the_passphrase_is_typed_unseen",
    "hostile.svg": "test_hostile_text",
    "formats.svg": "test_a_mail_in_html_as_readable_text",
    "filter.svg": "test_a_filter_that_is_kept_stands_above_the_rows",
    "palette.svg": "test_the_palette_lists_what_is_possible_here",
    "paused.svg": "test_while_all_calls_are_held",
    "stop.svg": "test_stop_everything_says_what_it_would_stop",
    "activity.svg": "test_activity_names_each_call_once_with_what_became_of_it",
    "as-seen.svg": "test_the_screen_as_it_was_seen_says_that_it_is_not_live",
    "audit.svg": "test_an_audit_that_was_verified_says_when",
    "actions.svg": "test_actions_and_connectors_with_how_they_stand",
    "accept.svg": "test_an_action_is_read_before_it_is_accepted",
    "accept-changed.svg": "test_a_changed_action_begins_with_what_it_allows_more",
    "suite.svg": "test_515_files_are_one_item_that_begins_with_those_to_look_at",
    "builtin-edit.svg": "test_a_change_of_a_file_is_shown_as_its_difference",
    "builtin-bash.svg": "test_a_command_shows_what_its_rehearsal_did",
    "grant.svg": "test_the_panel_of_a_grant",
    "rules.svg": "test_grants_and_rules_say_what_they_answer",
    "sessions.svg": "test_sessions_say_who_is_there_and_what_contains_them",
}
"""The pictures of the pages, by the test whose snapshot each is a copy of."""


def with_states(page: str) -> str:
    """Return *page* with the table of transitions between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {state} --> {after} : {event}" for (state, event), after in TRANSITIONS.items()]
    lines += [f"    {state} --> [*]" for state in RunState if state in FINAL]
    lines += [
        "```",
        "",
        "| from | event | to |",
        "|---|---|---|",
        *(f"| {state} | {event} | {after} |" for (state, event), after in TRANSITIONS.items()),
    ]
    body = "\n".join(lines)
    return f"{before}{BEGIN}\n\n{body}\n\n{END}{after}"


def parts() -> dict[Path, str]:
    """Return every generated file with what it should hold."""
    filled = {
        DOCS / "states.md": with_states,
        DOCS / "command-line.md": with_commands,
        DOCS / "rules.md": with_secret_files,
        DOCS / "variables.md": with_variables,
    }
    made = {page: fill(page.read_text(encoding="utf-8")) for page, fill in filled.items()}
    made[DOCS / "keys.md"] = keys_page()
    made[DOCS / "trusted-code.md"] = trusted_code_page()
    made |= {DOCS / "agents" / name: page for name, page in agent_pages().items()}
    for name, test in PICTURES.items():
        stored = SNAPSHOTS / "test_pictures" / f"{test}[120x36].svg"
        made[DOCS / "pictures" / name] = stored.read_text(encoding="utf-8")
    return made


def main(check: bool) -> int:
    """Write the parts, or compare them."""
    stale = [
        path
        for path, text in parts().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(f"{'stale' if check else 'wrote'} {path.relative_to(DOCS.parent)}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(parts()[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
