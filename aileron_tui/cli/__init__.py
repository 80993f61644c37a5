"""The `aileron` command, its Python isolated (`-I`). Heavy imports are deferred into each command."""

import gc
import os
import sys


def main() -> None:
    """Run the command line, isolated from what the environment could add to Python."""
    if not sys.flags.isolated:
        # -I: no PYTHONPATH, no user site, no current folder on the path, before anything is imported.
        os.execv(  # noqa: S606 - this very program again
            sys.executable, [sys.executable, "-I", "-m", "aileron_tui.cli", *sys.argv[1:]]
        )
    if "AILERON_VAULT_PASSPHRASE" in os.environ:
        # Before any child could inherit it, whatever the command.
        from aileron_tui.cli.process import take_passphrase_variable

        take_passphrase_variable()
    gc.set_threshold(
        50_000
    )  # imports make no garbage, and looking for it takes a sixth of their time
    try:
        from aileron_tui.cli.commands import aileron

        aileron(prog_name="aileron")
    except KeyboardInterrupt:  # before a command had begun, or after it had ended
        sys.exit(130)
