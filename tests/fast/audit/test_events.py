"""The names of audit events: fixed for ever, and written in one place."""

import ast
import re
from pathlib import Path

import aileron_core
from aileron_core.audit.events import AuditEvent

ROOT = Path(aileron_core.__file__).parent.parent
PACKAGES = ("aileron_core", "aileron_mcp", "aileron_tui")
FILES = [path for each in PACKAGES for path in sorted((ROOT / each).rglob("*.py"))]
SOURCES = [path for path in FILES if path.parts[-2:] != ("audit", "events.py")]
EVER_WRITTEN = """
    approval.approved approval.denied approval.expired approval.withdrawn arguments.forgotten
    audit.cut audit.unreadable call.refused console.everything_stopped console.paused console.port
    console.resumed console.started console.stopped gateway.passed history.erased history.sealed library.accepted
    library.held_back library.removed library.taken_in library.withdrawn outcome.looked_at outcome.settled preview.fetched preview.unavailable
    read_back.differed read_back.held read_back.seen read_back.unavailable recheck.conflict recheck.differed recheck.held recheck.undone run.acknowledged run.asked_again run.completed
    run.delivered run.failed run.halted run.recovered run.requested run.started run.stopped run.unknown
    session.ended session.held session.opened session.seen_outside storage.mended storage.migrated
"""


def test_a_name_that_was_written_once_is_known_for_ever() -> None:
    """Records of old homes are hashed with these names in them."""
    assert set(EVER_WRITTEN.split()) <= {event.value for event in AuditEvent}


def test_no_other_module_spells_the_name_of_an_event() -> None:
    names = "|".join(re.escape(event.value) for event in AuditEvent)
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    spells = re.compile(rf"^(?:{names})\Z|'(?:{names})'")
    spelt = [
        (str(path.relative_to(ROOT)), node.lineno, node.value)
        for path, text in texts.items()
        if re.search(names, text)  # to parse them all takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if spells.search(node.value)
    ]
    assert spelt == []
