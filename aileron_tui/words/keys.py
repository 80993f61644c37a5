"""The words of the help and of the list of commands."""

from typing import Final

PALETTE: Final = "every command by name"
PALETTE_NONE: Final = "No command matches here."
HELP: Final = "KEYS"
HELP_STANDING: Final = "WARNINGS"
HELP_VIEWS: Final = "waiting, activity, audit, actions, sessions"
HELP_SIGNS: Final = "SIGNS"
HELP_GLYPHS: Final = (
    ("●", "waiting, preview fetched"),
    ("◌", "preview being fetched"),
    ("○", "waiting without a preview; not connected"),
    ("▲", "changed, or needs attention"),
    ("◇", "waiting for the vault or an account"),
    ("▶", "running"),
    ("✓", "approved, or done"),
    ("✗", "denied, failed or refused"),
    ("–", "expired"),
    ("←", "withdrawn by its agent"),
    ("?", "unknown outcome; unverified agent"),
    ("!", "a file with a problem"),
    ("┃", "fetched or computed by Aileron"),
    ("│", "from the audit"),
    ("┊", "claimed by the agent"),
)


def help_rest(seconds: float) -> tuple[str, str]:
    """Return when a key counts."""
    return (
        "A filled key acts at once; one with … asks first.",
        f"A key counts once the item and the keyboard have been still for {seconds:g} s.",
    )
