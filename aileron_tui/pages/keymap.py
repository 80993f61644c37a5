"""All commands, in the order of the help; and the keys that a person gives them: `[console.keys]` of `config.toml`, checked at the start.

    [console.keys]
    approve = "y"
    page_down = "ctrl+f"

A key is one character, or a name of Textual's (`space`, `home`, `f5`) after any of `ctrl+`, `alt+`
and `shift+`. It takes the place of the key that footer and help name; the arrows, `ctrl+c` and other
second keys stay. An action that neither decides nor asks makes way for it, and gets the key that
became free: above, `copy` moves from `y` to `a`. A key that decides is one character alone: none that a burst of escape sequences,
a held modifier or leaving can make.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import combinations
from typing import Final

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from aileron_core.errors import FileProblems, Problem
from aileron_core.text import escape
from aileron_tui.input.commands import AnyCommand, CommandRegistry
from aileron_tui.pages.commands.accounts import ACCOUNTS, RULES
from aileron_tui.pages.commands.deciding import DECIDING
from aileron_tui.pages.commands.everywhere import EVERYWHERE, OVER_PAGES
from aileron_tui.pages.commands.rows import ITEM, READING, ROWS
from aileron_tui.pages.questions import ALL

COMMANDS: tuple[AnyCommand, ...] = (
    *READING,
    *DECIDING,
    *ACCOUNTS,
    *ROWS,
    *ITEM,
    *RULES,
    *EVERYWHERE,
    *(each for question in ALL for each in question.commands),
    *OVER_PAGES,
)
DEFAULT_REGISTRY = CommandRegistry(COMMANDS)


KEYMAP_FILE = "config.toml"
_NAMES = frozenset(key.value for key in Keys) | {f"f{number}" for number in range(1, 25)}
_CHORD = re.compile(r"(?P<with>(?:(?:ctrl|alt|shift)\+)*)(?P<key>.+)", re.DOTALL)
_FOLLOWS = {"pause": "go_on"}
"""An action whose key another one always has as well."""
_FORMER = {
    "take_in": "accept",
    "take_in_rest": "accept_rest",
    "hold_back": "withdraw_acceptance",
}
"""Names that actions had before: a settings file may still hold them."""


def remap_keys(assignments: Iterable[tuple[str, str]]) -> CommandRegistry:
    """Return the registry with the keys that *assignments*, pairs of action and key, says.

    Raises:
        FileProblems: an action or a key does not exist, or two actions would share one.
    """
    problems: list[Problem] = []
    chosen: dict[str, str] = {}
    for written, text in assignments:
        name = _FORMER.get(written, written)
        textual_name = _key_for(name, text)
        if isinstance(textual_name, Problem):
            problems.append(textual_name)
            continue
        chosen[name] = textual_name
        if name in _FOLLOWS:
            chosen[_FOLLOWS[name]] = textual_name
    keys = {**_exchanged(chosen), **chosen}
    actions = tuple(_with_key(each, keys.get(each.id)) for each in COMMANDS)
    problems += _shared(actions, chosen)
    if problems:
        raise FileProblems(problems)
    return CommandRegistry(actions)


def _exchanged(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of the actions that make way: each gets what the action in its place had."""
    exchanged: dict[str, str] = {}
    for new in COMMANDS:
        key, free = chosen.get(new.id), new.keys[0]
        if key is None or free in chosen.values():
            continue
        for old in COMMANDS:
            stays = old.id in chosen or old.fixed or old.decides or old.asks or old.id in _FOLLOWS
            if not stays and old.keys[0] == key and set(old.contexts) & set(new.contexts):
                exchanged[old.id] = free
    return exchanged


def _problem(name: str, message: str) -> Problem:
    return Problem(
        file=KEYMAP_FILE, key=f"console.keys.{name}", message=message, class_="validation_error"
    )


def _key_for(name: str, text: str) -> str | Problem:
    """Return Textual's name of the key *text* for the action *name*, or what is wrong with it."""
    action = next((each for each in COMMANDS if each.id == name), None)
    if action is None or (action.fixed and name in _FOLLOWS.values()):
        free = [each.id for each in COMMANDS if not each.fixed]
        close = get_close_matches(name, free, n=1)
        hint = f"did you mean {close[0]}?" if close else "? lists the keys"
        return _problem(name, f"is not a command; {hint}")
    if action.fixed:
        return _problem(name, f"always has the key {action.keys[0]}, which cannot be changed")
    key = _named(text)
    if key is None:
        return _problem(
            name,
            f"{escape(text)} is not a key; use one character, or a name such as space, home, f5 or ctrl+f",
        )
    if (action.decides or name in _FOLLOWS) and not _is_plain(text):
        return _problem(
            name,
            f"{escape(text)} cannot be a key that decides; use one character, without ctrl or alt, and not esc or enter",
        )
    return key


def _is_plain(text: str) -> bool:
    """Return whether *text* is one character that a person types and sees."""
    return len(text) == 1 and text.isprintable() and text != " "


def _named(text: str) -> str | None:
    match = _CHORD.fullmatch(text)
    if match is None:
        return None
    key = match["key"]
    name = _character_name(key) if len(key) == 1 else key
    if name is None or (len(key) > 1 and key not in _NAMES):
        return None
    return match["with"] + name


def _character_name(character: str) -> str | None:
    """Return Textual's name of the key of *character*; None if it is not a printable character."""
    if not character.isprintable() or character == " ":
        return "space" if character == " " else None
    if character.isalnum():
        return character
    spelled = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(spelled, spelled) or None


def _with_key(action: AnyCommand, key: str | None) -> AnyCommand:
    return action if key is None else replace(action, keys=(key, *action.keys[1:]))


def _shared(actions: Sequence[AnyCommand], chosen: dict[str, str]) -> list[Problem]:
    """Return a problem for each two actions of one place that would share a key."""
    problems: list[Problem] = []
    for one, other in combinations(actions, 2):
        common = set(one.keys) & set(other.keys)
        if not common or not set(one.contexts) & set(other.contexts):
            continue
        if other.id == one.never_with or one.id == other.never_with:
            continue
        new, old = (one, other) if one.id in chosen else (other, one)
        if new.id in _FOLLOWS.values():
            continue  # reported for the action that it follows
        then = f"give {old.id} another key too"
        if one.decides and other.decides:
            then = "two actions that decide cannot share a key"
        problems.append(_problem(new.id, f"{min(common)} is already the key of {old.id}; {then}"))
    return problems


_USUAL_REST: Final = 0.4


class SettingsInForce:
    """What holds now of `[console.keys]`, `arm_ms` and `notify.command`.

    Args:
        registry: with the person's keys; kept as it is.
        arm_seconds: the person's rest before a key decides.
        has_command: a command is run when a call arrives.
    """

    def __init__(
        self, registry: CommandRegistry, arm_seconds: float, *, has_command: bool = False
    ) -> None:
        self._own = registry.commands, arm_seconds, has_command
        self.registry = CommandRegistry(registry.commands)
        """One object, whose commands are replaced."""
        self.arm_seconds = arm_seconds
        self.runs_command = has_command

    def follow(self, *, accepted: bool) -> bool:
        """Put the person's own settings in force if they are *accepted*, else the usual ones.

        Returns:
            Whether anything is different now.
        """
        commands, arm_seconds, has_command = self._own
        if not accepted:
            commands = tuple(map(_with_usual_keys, commands))
            arm_seconds, has_command = max(arm_seconds, _USUAL_REST), False
        before = self.registry.commands, self.arm_seconds, self.runs_command
        after = commands, arm_seconds, has_command
        if before != after:
            self.registry.commands, self.arm_seconds, self.runs_command = after
        return before != after

    @property
    def withheld(self) -> tuple[str, ...]:
        """The names of the settings that the file has and that are not in force."""
        named = ("keys", "arm_ms", "notify.command")
        now = self.registry.commands, self.arm_seconds, self.runs_command
        return tuple(
            name for name, own, used in zip(named, self._own, now, strict=True) if own != used
        )


def _with_usual_keys(command: AnyCommand) -> AnyCommand:
    return next((each for each in COMMANDS if each.id == command.id), command)
