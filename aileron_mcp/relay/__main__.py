"""`python -I -m aileron_mcp.relay`, and what a copy of the relay in one file or folder runs."""

import os
import sys

if not sys.flags.isolated:
    # The very command that was given, before anything is imported that the environment could replace.
    again = [sys.executable, "-I", *sys.orig_argv[1:]]
    os.execv(sys.executable, again)  # noqa: S606 - itself again

from aileron_mcp.relay.relay import main

sys.exit(main())
