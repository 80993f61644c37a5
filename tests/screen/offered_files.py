"""Files that wait to be accepted, with their contents, as the library would offer them; suites of them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from aileron_core.actions.load import load_action
from aileron_core.console_port import file_views
from aileron_core.console_port.view_models import NotAcceptedView, SuiteView
from aileron_core.library.comparison import compare_actions
from tests.support.screens.states import NOW

SEND = (Path(__file__).parents[2] / "examples" / "actions" / "send-draft.md").read_text("utf-8")


def widened(text: str = SEND) -> str:
    """Return an action file that asks nobody, has one op more and shows one field less."""
    for old, new in (
        ("required = true", "required = false"),
        ('capabilities = ["send_draft"]', 'capabilities = ["send_draft", "delete_draft"]'),
        ('Bcc = "message.payload.headers.Bcc"\n', ""),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


def offered(
    text: str = SEND, before: str | None = None, *, kept: bool = True, name: str = "send-draft"
) -> NotAcceptedView:
    """Return an action file of *text*; *before*: what was accepted in its place, and whether it was *kept*."""
    action = load_action(text.encode(), f"{name}.md")
    content = file_views.FileContentView(text=text)
    if before is not None:
        old = load_action(before.encode(), f"{name}.md")
        hosts = ("gmail.googleapis.com:443",)
        accepted = file_views.AcceptedBeforeView(
            name=f"{name}.md",
            digest=old.sha256,
            accepted_at=NOW - 86_400,
            text=before if kept else None,
            changes=compare_actions(old, action, old_hosts=hosts, new_hosts=hosts) if kept else (),
        )
        content = file_views.FileContentView(text=text, before=accepted)
    return NotAcceptedView(
        kind="action",
        name=name,
        file=f"{name}.md",
        digest=action.sha256,
        change="new" if before is None else "changed",
        gated=action.gated,
        connector="local://aileron/mail-drafts",
        hosts=("gmail.googleapis.com:443",),
        steps=tuple(f"{step.connector}.{step.op}" for step in action.steps),
        content=content,
    )


def changed() -> NotAcceptedView:
    return offered(widened(), SEND)


def connector() -> NotAcceptedView:
    name, kept, more = "local://aileron/notes", "notes.example:443", "collect.example:443"
    old = f'[connector]\nname = "{name}"\nversion = "1.0.0"\n\n'
    old += f'[capabilities.network]\nhosts = ["{kept}"]\n'
    was, now = "131,072 bytes, sha256:" + "a1" * 32, "132,096 bytes, sha256:" + "b2" * 32
    changes = (
        file_views.AcceptanceChangeView(kind="hosts", direction="wider", after=more),
        file_views.AcceptanceChangeView(kind="module", direction="other", before=was, after=now),
    )
    before = file_views.AcceptedBeforeView(
        name=f"{name}@1.0.0",
        digest="sha256:" + "ef" * 32,
        accepted_at=NOW - 86_400,
        text=old,
        changes=changes,
    )
    text = old.replace(f'["{kept}"]', f'["{kept}", "{more}"]')
    return NotAcceptedView(
        kind="connector",
        name=f"{name}@1.0.0",
        file="store/connectors/sha256/" + "cd" * 32,
        digest="sha256:" + "cd" * 32,
        change="changed",
        gated=None,
        connector=name,
        hosts=(more, kept),
        content=file_views.FileContentView(text=text, module=now, before=before),
    )


SUITE = SuiteView(
    suite_id="1791467000-0123abcd", source="/home/ana/suites/tracker", added_at=1_791_467_000
)
NAMES = ("issue", "comment", "project", "cycle", "label", "team", "document", "webhook")
"""Things that the actions of the made-up tracker are about."""


def held_file(
    name: str,
    *,
    gated: bool = True,
    is_read_only: bool = False,
    change: str = "new",
    suite: SuiteView | None = SUITE,
    text: str = "1",
) -> NotAcceptedView:
    return NotAcceptedView(
        kind="action",
        name=name,
        file=f"{name}.md",
        digest=hashlib.sha256(f"{name} {text}".encode()).hexdigest(),
        change="changed" if change == "changed" else "new",
        gated=gated,
        connector="github://example/connector-tracker",
        hosts=("api.tracker.example:443",),
        steps=(f"github://example/connector-tracker.{name.replace('-', '_')}",),
        is_read_only=is_read_only,
        suite=suite,
    )


def suite(*files: NotAcceptedView, count: int = 0) -> tuple[NotAcceptedView, ...]:
    more = (held_file(f"{NAMES[n % len(NAMES)]}-update-{n:03}") for n in range(count))
    return (*files, *more)


def suite_of_515() -> tuple[NotAcceptedView, ...]:
    """Return 360 gated actions, 151 reads, and 4 that run unasked and are not declared read-only."""
    first = (
        held_file(name, gated=False)
        for name in ("draft-create", "file-upload", "page-create", "page-update")
    )
    reads: Sequence[NotAcceptedView] = [
        held_file(f"{NAMES[n % len(NAMES)]}-get-{n:03}", gated=False, is_read_only=True)
        for n in range(151)
    ]
    return suite(*first, *reads, count=360)
