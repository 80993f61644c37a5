"""The settings of `config.toml` that could mislead: not in force before they are known to be the person's.

Where there is a vault, another program may have changed the file as long as nobody has unlocked it. Until
then the keys are the usual ones, an item rests for no less than the usual time, and no command is run.
"""

from typing import Final

from aileron_tui.input.commands import AnyCommand, CommandRegistry
from aileron_tui.pages.registry import COMMANDS

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
