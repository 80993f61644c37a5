"""A suite of action files over the example connector, as large as published ones."""

import json
from pathlib import Path

GATED, READS, FIRST = 360, 151, 4
"""How many ask a person, how many run unasked and are marked as reads, and how many are not."""

_ACTION = """+++
name = "{name}"
version = "0.1.0"
source = "local://suite/actions/{name}@0.1.0"

[[requires.connectors]]
name = "local://aileron/mail-drafts"
version = "0.1.0"
# filled in at release
hash = "sha256:bound-at-release"
capabilities = ["get_draft"]

[match]
intent = "does {name}"

[[execute]]
id = "do"
connector = "local://aileron/mail-drafts"
op = "get_draft"
idempotent = {idempotent}

[approval]
required = {gated}
{inputs}
+++

# {name}

Does {name}, in one of many ways.
"""
_INPUT = """
[[inputs]]
name = "field{number}"
type = "string"
required = false
description = "The identifier of what this is about. If none is provided, the service makes one."
"""


def write_actions(
    folder: Path, *, gated: int = GATED, reads: int = READS, first: int = FIRST
) -> Path:
    """Write a suite into `folder/actions`, a folder for each action; return *folder*."""
    kinds = [("gated", True, False)] * gated
    kinds += [("read", False, True)] * reads + [("first", False, False)] * first
    for number, (kind, asks, idempotent) in enumerate(kinds):
        name = f"{kind}-{number:03}"
        file = folder / "actions" / name / "action.md"
        file.parent.mkdir(parents=True)
        gates = {"gated": json.dumps(asks), "idempotent": json.dumps(idempotent)}
        inputs = "".join(_INPUT.format(number=each) for each in range(number % 12))
        file.write_text(_ACTION.format(name=name, inputs=inputs, **gates), encoding="utf-8")
    return folder
