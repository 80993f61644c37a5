"""The time that an action names and its file does not limit: shown before it is accepted, and given with that alone."""

import shutil
from pathlib import Path

import pytest

from aileron_core.console_port.intents import Accept
from aileron_core.console_port.view_models import NotAcceptedView
from aileron_core.errors import Conflict
from aileron_core.library.run_time import TIMEOUT_ARGUMENT
from tests.support.core_harness import Core, change_rows
from tests.support.scripted_guest import install_sleeper, write_action

NAMES_120 = "[capabilities.runtime.wall_seconds]\ndo = 120\n"
TIMEOUT = f"""[[inputs]]
name = "{TIMEOUT_ARGUMENT}"
type = "integer"
description = "Optional overall budget, in seconds. Defaults to 180."
required = false
"""


async def proposed(core: Core, name: str = "long-work") -> NotAcceptedView:
    offered = core.app.library.not_accepted
    return (await core.until(lambda: [each for each in offered() if each.name == name]))[0]


async def accept_shown(core: Core, name: str = "long-work") -> None:
    """Accept what is offered under *name*, with the time that is shown."""
    view = await proposed(core, name)
    seconds = view.run_time.seconds if view.run_time is not None else 0
    await core.do(Accept(kind=view.kind, name=view.name, digest=view.digest, run_seconds=seconds))


def seconds_allowed(core: Core, name: str = "long-work") -> int:
    return core.app.library.find(name).action.limits.wall_seconds


CONNECTOR = "local://tests/scripted@1.0.0"


@pytest.mark.parametrize(
    ("more", "inputs", "limits", "named"),
    [
        (NAMES_120, "", "", (120, "connector")),
        ("", TIMEOUT, "", (300, TIMEOUT_ARGUMENT)),
        (NAMES_120, TIMEOUT, "", (120, "connector")),
        (NAMES_120, TIMEOUT, "[limits]\nwall_seconds = 10\n", None),
        (NAMES_120, "", "[limits]\nmemory_mib = 8\n", (120, "connector")),
        (NAMES_120.replace("120", "20"), "", "", None),
        ("", TIMEOUT.replace('"integer"', '"string"'), "", None),
    ],
)
async def test_a_longer_time_is_shown_and_given_with_the_acceptance(
    home: Path, more: str, inputs: str, limits: str, named: tuple[int, str] | None
) -> None:
    """Named by the connector, or left to each call; a limit of the file's own is never raised."""
    write_action(home, "long-work", install_sleeper(home, seconds=0, more=more), inputs + limits)
    async with Core.open(home, accept=False) as core:
        view = (await proposed(core)).run_time
        assert (None if view is None else (view.seconds, view.named_by)) == named
        await accept_shown(core, CONNECTOR)
        await accept_shown(core)
        usual = 10 if "wall_seconds" in limits else 30
        assert seconds_allowed(core) == (usual if named is None else named[0])
        records = await core.records("library.accepted")
        given = [each for each in records if each["kind"] == "run_time"]
        assert [each["digest"].split()[1] for each in given] == ([str(named[0])] if named else [])


async def test_what_was_not_shown_is_not_accepted(home: Path) -> None:
    """A yes to the file as it was shown is no yes to a time that was not."""
    write_action(home, "long-work", install_sleeper(home, seconds=0, more=NAMES_120))
    async with Core.open(home, accept=False) as core:
        view = await proposed(core)
        for seconds in (0, 119):
            yes = Accept(kind="action", name=view.name, digest=view.digest, run_seconds=seconds)
            with pytest.raises(Conflict, match="changed while you were reviewing"):
                await core.do(yes)
        assert await core.records("library.accepted") == []


async def test_a_time_named_after_the_acceptance_is_not_given(home: Path, tmp_path: Path) -> None:
    """The connector came later: the file was accepted with the usual time, and has that.

    A row of another program's in the database gives it no more.
    """
    hash_ = install_sleeper(home, seconds=0, more=NAMES_120)
    write_action(home, "long-work", hash_)
    connectors = home / "store" / "connectors"
    shutil.move(connectors, tmp_path / "away")
    async with Core.open(home, accept=False) as core:
        assert (await proposed(core)).run_time is None
        await accept_shown(core)
    shutil.rmtree(connectors, ignore_errors=True)
    shutil.move(tmp_path / "away", connectors)
    async with Core.open(home, accept=False) as core:
        await accept_shown(core, CONNECTOR)
        item = next(each for each in core.app.library.items() if each.name == "long-work")
        assert (item.run_time.seconds, item.run_time.accepted) == (120, False)
        assert seconds_allowed(core) == 30
    change_rows(
        home,
        "INSERT INTO pins(kind, name, digest, taken_at, taken_by, last_record) "
        "SELECT 'run_time', name, digest || ' 120', taken_at, taken_by, last_record "
        "FROM pins WHERE kind = 'action'",
    )
    async with Core.open(home, accept=False) as core:
        await core.until(lambda: core.app.library.ready() or None)
        assert seconds_allowed(core) == 30
        await core.app.library.withdraw_acceptance("action", "long-work", item.digest)
        await accept_shown(core)
        assert seconds_allowed(core) == 120


async def test_the_time_goes_with_the_acceptance(home: Path) -> None:
    """Withdrawn with it, kept over a restart, and not carried over to other bytes."""
    hash_ = install_sleeper(home, seconds=0, more=NAMES_120)
    path = write_action(home, "long-work", hash_)
    async with Core.open(home, accept=False) as core:
        await accept_shown(core, CONNECTOR)
        await accept_shown(core)
    async with Core.open(home, accept=False) as core:
        await core.until(lambda: core.app.library.ready() or None)
        assert seconds_allowed(core) == 120
        digest = next(e.digest for e in core.app.library.items() if e.name == "long-work")
        await core.app.library.withdraw_acceptance("action", "long-work", digest)
        withdrawn = await core.records("library.withdrawn")
        assert [each["kind"] for each in withdrawn] == ["action", "run_time"]
        await accept_shown(core)
        write_action(home, "long-work", hash_, "[limits]\nwall_seconds = 40\n")
        await core.until(lambda: (path.read_text() and core.app.library.not_accepted()) or None)
        await accept_shown(core)
        assert seconds_allowed(core) == 40
        write_action(home, "long-work", hash_)
        view = await proposed(core)
        changes = view.before.changes if view.before is not None else ()
        wider = [each for each in changes if each.direction == "wider"]
        widened = [(each.kind, each.before, each.after) for each in wider]
        assert widened == [("wall_seconds", "40", "120")]
