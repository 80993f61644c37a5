"""`aileron update`: adds newer releases of what a person accepted, or the versions before, and accepts nothing."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from aileron_core.actions.model import Action
from aileron_core.errors import AileronError, FileProblems, NotFound, Problem
from aileron_core.home.layout import Home
from aileron_core.library.acceptance import load_earlier
from aileron_core.library.accepted_contents import AcceptedContents
from aileron_core.library.publishers import publisher_name
from aileron_core.releases.github import SCHEME
from aileron_core.storage.open import open_reader
from aileron_core.text import escape
from aileron_tui.cli.accepted import accepted_actions, accepted_version, load_acceptances
from aileron_tui.cli.adding import Added, add, add_again, report
from aileron_tui.cli.output import EXIT, CliError, CommandContext, did_you_mean
from aileron_tui.cli.published import newest_version


def update(
    context: CommandContext, name: str, routes: Sequence[str], *, back: bool, unsigned: bool
) -> int:
    """Add the newest release of each accepted suite that has a newer one; a person accepts it in the console.

    Args:
        name: an action, or the repository of a suite, which alone is meant; empty for all.
        back: add the version that was accepted before, from this machine, instead.

    Raises:
        NotFound: nothing accepted has that name, or nothing was accepted before.
    """
    home = Home(context.home)
    actions = accepted_actions(home)
    connectors = [each.name for each in load_acceptances(home) if each.kind == "connector"]
    owners = {publisher_name(each.rpartition("@")[0]) for each in connectors}
    found = [each for each in actions if name in ("", each.name, *_spellings(_owner(each)))]
    owners = {each for each in owners if name in ("", *_spellings(each))} | {
        _owner(each) for each in found
    }
    if name and not found and not owners:
        known = [*(each.name for each in actions), *owners]
        raise NotFound(f"Nothing called {name} is accepted.{did_you_mean(name, known)}")
    if back:
        if not name:
            raise CliError(EXIT.USAGE, "--back needs the NAME of an action or a repository.")
        added = _take_back(home, name, found)
        report(context, added)
        return EXIT.FAILED if added.problems else EXIT.DONE
    looked: list[dict[str, Any]] = []
    added = Added()
    for owner in sorted(each for each in owners if each.startswith(SCHEME)):
        now = accepted_version(home, owner)
        looked.append({"name": owner, "accepted": now or None, "newest": None, "gone": []})
        try:
            looked[-1]["newest"] = newest = newest_version(context, owner, now, routes)
            if newest == now:
                context.say(f"{escape(owner)}: {now} is the newest release")
                continue
            more = add(context, [f"{owner}@{newest}"], routes, unsigned=unsigned)
        except FileProblems as error:
            more = Added(problems=error.problems)
        except AileronError as error:  # of one repository: the others are looked up
            problem = Problem(file=owner, message=error.message, class_=error.class_)
            more = Added(problems=[problem])
        for each in more.suites:
            looked[-1]["gone"] += each.gone
        added = added.with_more(more)
    if not looked:
        context.say(
            "Nothing to look up: no accepted connector or action has a name that begins with github://."
        )
    report(context, added, looked)
    return EXIT.FAILED if added.problems else EXIT.DONE


def _owner(action: Action) -> str:
    return publisher_name(action.source.rpartition("@")[0])


def _spellings(owner: str) -> tuple[str, ...]:
    """Return what a person may call a repository."""
    return owner, owner.removeprefix(SCHEME)


def _take_back(home: Home, name: str, actions: Sequence[Action]) -> Added:
    """Put the versions into the home that were accepted before those of *actions*.

    Raises:
        NotFound: there are none.
    """
    with closing(open_reader(home.database)) as connection:
        earlier = load_earlier(connection)
    copies = AcceptedContents(home.path)
    found = {each.file: copies.read(earlier.get(("action", each.file), "")) for each in actions}
    if not any(found.values()):
        raise NotFound(f"No version of {name} was accepted before the one that counts now.")
    files = {file: data for file, data in found.items() if data is not None}
    return add_again(home, files, f"the version of {name} that was accepted before")
