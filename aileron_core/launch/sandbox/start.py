"""The first program in the sandbox: gives the terminal to the agent alone, then becomes the agent.

bubblewrap is in the foreground too, and a Ctrl-C meant for the agent would end the whole sandbox
(THREATS E6). Runs as a script, from a copy; standard library only, nothing of Aileron's.
"""

import os
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Become the leader of a process group of its own, in the foreground, and exec the arguments."""
    terminal = next((number for number in (0, 1, 2) if os.isatty(number)), None)
    if terminal is not None:
        os.setpgid(0, 0)
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(terminal, os.getpgrp())
        signal.signal(signal.SIGTTOU, before)
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - the point: no shell


if __name__ == "__main__":
    main()
