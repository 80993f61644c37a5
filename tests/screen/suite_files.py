"""Suites of held-back action files, as one `aileron action add` would bring them."""

import hashlib
from collections.abc import Sequence

from aileron_core.console_port.view_models import NotAcceptedView, SuiteView

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
    """Return *files* and *count* gated ones more."""
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
