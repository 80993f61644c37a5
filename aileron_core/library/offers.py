"""What a person's yes to something that waits is a yes to. Pure."""

from collections.abc import Container, Iterable, Sequence

from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.library import run_time
from aileron_core.library.publishers import KIND


def keys_of(views: Sequence[NotAcceptedView]) -> list[tuple[str, str, str]]:
    """Return the keys of the acceptance of *views*: an action's is its file's name, a connector's its reference.

    And a publisher's first key, with what it signed.
    """
    keys: dict[tuple[str, str, str], None] = {}
    for view in views:
        whose = view.publisher
        if whose is not None and whose.is_new:
            keys[KIND, whose.name, whose.key] = None
        name = view.file if view.kind == "action" else view.name
        keys[view.kind, name, view.digest] = None
        if view.run_time is not None:
            keys[run_time.KIND, name, run_time.digest(view.digest, view.run_time)] = None
    return [*keys]


def signed_alike(views: Iterable[NotAcceptedView]) -> list[NotAcceptedView]:
    """Return *views* without what could not be accepted once the first key among them is its publisher's."""
    found = [*views]
    first: dict[str, str] = {}
    for each in found:
        if (whose := each.publisher) is not None and whose.is_new:
            first.setdefault(whose.name, whose.key)
    return [
        each
        for each in found
        if each.publisher is None
        or each.publisher.key == first.get(each.publisher.name)
        or not needs_key(each, first)
    ]


def needs_key(view: NotAcceptedView, names: Container[str]) -> bool:
    """Return whether *view* is of one of the publishers *names* and has no accepted key, though it is to have one."""
    whose = view.publisher
    if whose is None or whose.accepted or whose.name not in names:
        return False
    return whose.is_new or view.kind == "connector"


def left_out(files: Sequence[str], why: str) -> str:
    """Return a sentence on *files* that were not accepted, after a blank; empty without any."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f" Left out: {files[0]}{more}, {why}." if files else ""


def shows(view: NotAcceptedView, run_seconds: int, signed_with: str) -> bool:
    """Return whether *view* names exactly the time, the publisher and the key that were shown."""
    seconds = view.run_time.seconds if view.run_time is not None else 0
    return (seconds, view.signed_with) == (run_seconds, signed_with)


def not_signed(view: NotAcceptedView) -> str:
    assert view.publisher is not None
    how = (
        "is signed with another key than the one"
        if view.signed_with
        else "is not signed with the key"
    )
    return (
        f"{view.name} {how} that you accepted for {view.publisher.name}. Nothing was accepted. Add a release that is "
        "signed with the accepted key, or withdraw that key in the console."
    )
