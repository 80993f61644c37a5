"""`python -m bench [NAME ...]`: run the measurements, all of them without a name."""

import sys

from bench import calls, decisions, relay_start

ALL = {"relay_start": relay_start.main, "calls": calls.main, "decisions": decisions.main}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
        print()
