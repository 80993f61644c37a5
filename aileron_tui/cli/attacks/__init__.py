"""`aileron doctor --attack`: tries named attacks on a throw-away home, and says of each what stopped it."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from aileron_core.errors import NotFound
from aileron_core.text import escape
from aileron_tui.cli.attacks import (
    asking,
    attached,
    contained,
    files,
    impostors,
    keyboard,
    reading,
    web_pages,
)
from aileron_tui.cli.attacks.arena import Arena, Attack, BrokeError, SkippedError
from aileron_tui.cli.output import EXIT, CommandContext, did_you_mean
from aileron_tui.cli.process import close_memory

_GROUPS: Final = (
    asking,
    web_pages,
    reading,
    files,
    impostors,
    attached,
    keyboard,
    contained,
)
ATTACKS: Final = {attack.name: attack for group in _GROUPS for attack in group.ATTACKS}
_SHOWN: Final = {
    "held": ("✓ held", "green"),
    "broke": ("✗ BROKE", "red"),
    "skipped": ("· skipped", "yellow"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one attack."""

    name: str
    tries: str
    outcome: Literal["held", "broke", "skipped"]
    detail: str
    """What stopped it, what it reached, or why it was not tried; may have text from outside."""


def try_attacks(names: Iterable[str]) -> Iterator[Outcome]:
    """Try the attacks of these names one after the other; after one that changed its home, the next gets a new one."""
    with ExitStack() as stack:
        arena: Arena | None = None
        for name in names:
            if arena is None or arena.spoiled or arena.is_lost:
                stack.close()
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="aileron-"))
                arena = stack.enter_context(Arena(Path(folder).resolve()))
            arena.heard = ""
            yield _tried(ATTACKS[name], arena)


def _tried(attack: Attack, arena: Arena) -> Outcome:
    outcome: Literal["held", "broke", "skipped"] = "broke"
    try:
        detail = attack.run(arena)
        arena.check()
        outcome = "held"
    except SkippedError as skipped:
        outcome, detail = "skipped", str(skipped)
    except BrokeError as broke:
        detail = str(broke)
    except Exception as error:  # noqa: BLE001 - what could not be tried to its end was not held
        detail = f"it could not be tried to its end ({type(error).__name__})"
    arena.spoiled |= outcome == "broke"
    return Outcome(name=attack.name, tries=attack.tries, outcome=outcome, detail=detail)


def show_attacks(context: CommandContext, names: tuple[str, ...]) -> int:
    """Try all attacks, or those of *names*, and print what came of each; return 1 if one broke through.

    Raises:
        NotFound: there is no attack of such a name.
    """
    for name in names:
        if name not in ATTACKS:
            raise NotFound(f"There is no attack {name[:80]!r}.{did_you_mean(name, ATTACKS)}")
    close_memory()
    done: list[Outcome] = []
    for each in try_attacks(names or ATTACKS):
        done.append(each)
        sign, color = _SHOWN[each.outcome]
        detail = escape(f"{each.detail[0].upper()}{each.detail[1:]}")
        context.say(f"{sign:10}{each.name}: {each.tries} {detail}.", fg=color)
    counts = {outcome: sum(each.outcome == outcome for each in done) for outcome in _SHOWN}
    context.show({"ok": not counts["broke"], **counts, "attacks": [asdict(each) for each in done]})
    context.say(f"{len(done)} attacks: {', '.join(f'{n} {what}' for what, n in counts.items())}.")
    return EXIT.FAILED if counts["broke"] else EXIT.DONE
