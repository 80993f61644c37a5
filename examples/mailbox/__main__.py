"""Run a mail service with the drafts part of Gmail's API until interrupted. Its address is the first line printed."""

import argparse
import json
import signal
import sys
import threading

from examples.mailbox.server import Mailbox


def main() -> int:
    """Serve, print `{"url", "port"}` as one line of JSON, wait for SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="examples.mailbox", description=__doc__)
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        help="the port on 127.0.0.1; 0, the default, picks a free one",
    )
    port = parser.parse_args().port
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with Mailbox(port=port) as mailbox:
        print(json.dumps({"url": mailbox.url, "port": mailbox.port}), flush=True)
        while not stop.wait(0.2):  # a signal may wake another thread than this one
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
