"""`python -m bench [--check] [NAME ...]`: run the measurements, all of them without a name.

With `--check` each only runs to its end, in seconds, with few rounds and without the peers of `gateway` and `augment`.
"""

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
    releases,
    review_page,
    spinning,
    standing,
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
    "releases": releases.main,
    "review_page": review_page.main,
    "spinning": spinning.main,
    "standing": standing.main,
    "holding": holding.main,
    "console": console.main,
    "gateway": gateway.main,
    "augment": augment.main,
    "tools": tools.main,
}

if __name__ == "__main__":
    names = [each for each in sys.argv[1:] if each != "--check"]
    if not {*names} <= {*ALL}:
        sys.exit(f"python -m bench [--check] [NAME ...]; the names are {', '.join(ALL)}")
    for name in names or ALL:
        ALL[name]()
        print()
