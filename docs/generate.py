"""Make the parts of docs/ that are drawn from the code and the snapshot tests.

python docs/generate.py            # write them
python docs/generate.py --check    # say which are stale (exit 1)
"""

import sys
from pathlib import Path

from agent_pages import agent_pages
from commands import with_commands
from keys_page import keys_page

from aileron_core.approval.transitions import FINAL, TRANSITIONS, State

DOCS = Path(__file__).resolve().parent
SNAPSHOTS = DOCS.parent / "tests" / "tui" / "__snapshots__" / "test_looks"

PICTURES = {
    "console.svg": "test_a_mail_that_waits[size1].svg",
    "changed.svg": "test_changed_after_the_look[size1].svg",
    "hostile.svg": "test_hostile_text[size1].svg",
}


def states() -> str:
    """Return docs/states.md, drawn from the table of transitions."""
    lines = [
        "# The life of a run",
        "",
        "Made from the one table in `aileron_core/approval/transitions.py` by `docs/generate.py`.",
        "An edge that is not here does not exist: such an event is refused and changes nothing.",
        "Each one is on disk, with its audit record, before the effect that it permits.",
        "",
        "```mermaid",
        "stateDiagram-v2",
    ]
    lines += [f"    {state} --> {after} : {event}" for (state, event), after in TRANSITIONS.items()]
    lines += [f"    {state} --> [*]" for state in State if state in FINAL]
    lines += [
        "```",
        "",
        "| from | event | to |",
        "|---|---|---|",
        *(f"| {state} | {event} | {after} |" for (state, event), after in TRANSITIONS.items()),
        "",
    ]
    return "\n".join(lines)


def parts() -> dict[Path, str]:
    """Return every generated file with what it should hold."""
    page = DOCS / "command-line.md"
    made = {DOCS / "states.md": states(), page: with_commands(page.read_text(encoding="utf-8"))}
    made[DOCS / "keys.md"] = keys_page()
    made |= {DOCS / "agents" / name: page for name, page in agent_pages().items()}
    for name, snapshot in PICTURES.items():
        made[DOCS / "pictures" / name] = (SNAPSHOTS / snapshot).read_text(encoding="utf-8")
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
