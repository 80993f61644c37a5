"""`daemon.json`: where a console of this home listens. No secret in it."""

import json
import os

from aileron_core.clock import rfc3339
from aileron_core.home.layout import Home


def write_daemon_file(home: Home, url: str, now: float) -> None:
    """Write it for this process, mode 0600, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    content = {
        "version": 1,
        "url": url,
        "socket": str(home.socket),
        "pid": os.getpid(),
        "started_at": rfc3339(now),
    }
    temporary = home.daemon.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(json.dumps(content))
    temporary.replace(home.daemon)
