"""`python -m bench [NAME ...]`: run the measurements, all of them without a name."""

import sys

from bench import (
    augment,
    calls,
    connectors,
    console,
    decisions,
    gateway,
    holding,
    languages,
    load_manifests,
    relay_start,
    spinning,
    tools,
    unlock,
)

ALL = {
    "relay_start": relay_start.main,
    "calls": calls.main,
    "decisions": decisions.main,
    "load_manifests": load_manifests.main,
    "connectors": connectors.main,
    "languages": languages.main,
    "unlock": unlock.main,
    "spinning": spinning.main,
    "holding": holding.main,
    "console": console.main,
    "gateway": gateway.main,
    "augment": augment.main,
    "tools": tools.main,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
        print()
