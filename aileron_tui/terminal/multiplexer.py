"""Sequences for the terminal itself, through a multiplexer."""

from collections.abc import Mapping


def wrap_for_multiplexer(sequence: str, environment: Mapping[str, str]) -> str:
    """Return *sequence* wrapped for tmux or screen where *environment* says that one is there.

    tmux hands it on where `allow-passthrough` is on, and drops it otherwise.
    """
    if environment.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if environment.get("STY"):
        return f"\x1bP{sequence}\x1b\\"
    return sequence
