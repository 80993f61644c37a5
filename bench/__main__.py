"""`python -m bench [--check] [--suite SUITE] [NAME ...]`: run the measurements, all of them without a name.

With `--check` each only runs to its end, in seconds, with few rounds and without the peers of `gateway` and `augment`.
"""

import argparse

from bench import (
    attention,
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
    servers,
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
    "servers": servers.main,
    "gateway": gateway.main,
    "augment": augment.main,
    "tools": tools.main,
    "attention": attention.main,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--check", action="store_true")
    suites = ("workspace", "travel", "banking", "slack")
    parser.add_argument("--suite", action="append", choices=suites, help="of attention")
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    if not {*names} <= {*ALL}:
        parser.error(f"the names are {', '.join(ALL)}")
    for name in names or ALL:
        ALL[name]()
        print()
