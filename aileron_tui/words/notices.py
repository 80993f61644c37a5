"""What is told outside the screen: a count, our name, and the name of an accepted action."""


def waiting(count: int, action: str) -> str:
    """Return the notification. It begins with a letter: `OSC 9 ; 4 ;` means something else."""
    verb = "call waits" if count == 1 else "calls wait"
    named = f": {action}" if action else ""
    return f"Aileron: {count} {verb}{named}"


def command_failed(program: str, why: str) -> str:
    """Return what became of the command of `[notify]`, once."""
    return f"The command of [notify] in config.toml failed: {program}: {why}."


def ended_with(code: int) -> str:
    """Return how a program ended that did not end well."""
    return f"exit code {code}"


def took_too_long(seconds: float) -> str:
    """Return that a program was ended."""
    return f"it took more than {seconds:g} s"
