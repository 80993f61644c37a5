"""A program of the same user that rewrites a whole home's record: whatever can be made to fit, fits.

    python -I rewriting_program.py HOME [stated]

It shares no code with Aileron: table, chain and head are as docs/wire.md#audit-records has them. With
`stated` it writes its own head as the signed one, with the HMAC that it finds; else it removes both.
"""

import hashlib
import json
import sqlite3
import sys
from pathlib import Path


def main(home: Path, *, stated: bool) -> None:
    database = sqlite3.connect(home / "aileron.db", timeout=20)
    database.execute("BEGIN IMMEDIATE")
    before = bytes(32)
    rows = database.execute("SELECT seq, at, event, body FROM audit ORDER BY seq").fetchall()
    for seq, _, event, text in rows:
        body = json.loads(text)
        if event == "session.opened":
            body["summary"] = "Nothing happened"
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(before + text.encode()).digest()
        values = (before, digest, text, seq)
        database.execute("UPDATE audit SET prev = ?, hash = ?, body = ? WHERE seq = ?", values)
        before = digest
    seq, at = rows[-1][:2]
    head = {"seq": seq, "hash": before.hex(), "count": seq, "at": at}
    found = database.execute("SELECT value FROM meta WHERE key = 'signed head'").fetchone()
    if found and stated:
        head["signed"] = json.dumps({**json.loads(found[0]), "seq": seq, "hash": before.hex()})
        database.execute("UPDATE meta SET value = ? WHERE key = 'signed head'", (head["signed"],))
    else:
        database.execute("DELETE FROM meta WHERE key = 'signed head'")
    database.commit()
    database.close()
    (home / "audit.head").write_text(json.dumps(head, separators=(",", ":")).ljust(511) + "\n")


main(Path(sys.argv[1]), stated="stated" in sys.argv)
