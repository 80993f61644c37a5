"""The `aileron` command, whose console reaches one service of another process, behind TLS, whatever the host.

python -I oauth_console.py PORT CERTIFICATE [ARGUMENTS OF aileron]

SIGUSR2 makes it read at address 0: a SIGSEGV that is sent would be taken by the sandbox's engine for its own.
"""

import ctypes
import functools
import signal
import ssl
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from aileron_tui.cli import runtime
from aileron_tui.cli.commands import aileron
from tests.support.tls_service import TlsService


def main() -> None:
    signal.signal(signal.SIGUSR2, lambda *_: ctypes.string_at(0))
    port, certificate = int(sys.argv.pop(1)), sys.argv.pop(1)
    service = TlsService(port=port, trust=ssl.create_default_context(cafile=certificate))
    runtime.core_thread = functools.partial(runtime.core_thread, make_outgoing=service.client)
    aileron(prog_name="aileron")


if __name__ == "__main__":
    main()
