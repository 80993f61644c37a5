"""The connector of `scripted_guest`, whose op `do` sends what it is given and then sleeps; `see` answers at once."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.guests import requesting
from tests.support.scripted_guest import install_module


def install_sleeper(
    home: Path, *, seconds: int, requests: Sequence[dict[str, Any]] = (), more: str = ""
) -> str:
    """Install it in *home*; return its hash.

    It makes *requests* in their order, then sleeps for *seconds*, two at a time, as connectors that poll do.
    """
    # The input begins with {"op": " and the op; only that of `do` begins with a d (100).
    first = """(local $left i32)
      (i32.store (i32.const 0) (i32.const 600)) (i32.store (i32.const 4) (i32.const 64))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (if (i32.eq (i32.load8_u (i32.const 608)) (i32.const 100)) (then"""
    then = f"""
        (local.set $left (i32.const {seconds // 2}))
        (loop $again
          (i32.store (i32.const 80) (i32.const 1))
          (i64.store (i32.const 88) (i64.const 2000000000))
          (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512)))
          (br_if $again (i32.gt_s (local.tee $left (i32.sub (local.get $left) (i32.const 1))) (i32.const 0))))))"""
    text = requesting(*map(json.dumps, requests), first=first, then=then)
    return install_module(home, text, ["sleeper.test:443"], more)
