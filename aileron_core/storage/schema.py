"""The exact schema of the database.

What stands here is compared with `sqlite_schema` at every open: a trigger, view or index that
somebody else added is a reason to stop, not something to live with.
"""

SCHEMA_VERSION = 8
"""A change of what stands below is a new version, and a step in `migrations.MIGRATIONS`."""

_AUDIT = (
    "CREATE TABLE audit(seq INTEGER PRIMARY KEY, at TEXT, event TEXT, run TEXT, "
    "prev BLOB, hash BLOB, body TEXT)"
)
_SESSIONS = (
    "CREATE TABLE sessions ("
    "session_id TEXT PRIMARY KEY, agent TEXT NOT NULL, label TEXT NOT NULL, cwd TEXT NOT NULL, "
    "pid INTEGER, executable TEXT NOT NULL, opened_by TEXT NOT NULL, "
    "token_hash TEXT NOT NULL UNIQUE, gateway_hash TEXT NOT NULL UNIQUE, "
    "opened_at REAL NOT NULL, expires_at REAL NOT NULL, ended_at REAL, "
    "held INTEGER NOT NULL, last_record INTEGER NOT NULL) STRICT"
)
_RUNS = (
    "CREATE TABLE runs ("
    "run_id TEXT PRIMARY KEY, approval_id TEXT UNIQUE, session_id TEXT NOT NULL, "
    "action TEXT NOT NULL, action_sha256 TEXT NOT NULL, args TEXT, args_sha256 TEXT NOT NULL, "
    "idempotency_key TEXT, gated INTEGER NOT NULL, state TEXT NOT NULL, "
    "requested_at REAL NOT NULL, expires_at REAL, times_asked INTEGER NOT NULL, "
    "digest TEXT, words TEXT, decided_at REAL, decided_by TEXT, reason TEXT, "
    "note TEXT NOT NULL, ended_at REAL, output TEXT, failure TEXT, delivered INTEGER NOT NULL, "
    "last_record INTEGER NOT NULL, progress TEXT, content_key TEXT, sealed_day TEXT, asked_args TEXT) STRICT"
)
_RUNS_KEY = (
    "CREATE UNIQUE INDEX runs_key ON runs(session_id, idempotency_key) "
    "WHERE idempotency_key IS NOT NULL"
)
_PINS = (
    "CREATE TABLE pins ("
    "kind TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, taken_at REAL NOT NULL, "
    "taken_by TEXT NOT NULL, last_record INTEGER NOT NULL, PRIMARY KEY (kind, name)) STRICT"
)
READABLE = "args IS NOT NULL OR output IS NOT NULL OR failure IS NOT NULL OR reason IS NOT NULL OR note != ''"
"""Whether a row of `runs` has content in plain text."""
_RUNS_READABLE = f"CREATE INDEX runs_readable ON runs(ended_at) WHERE {READABLE}"
_SEALED = (
    "CREATE TABLE sealed ("
    "run_id TEXT NOT NULL, part TEXT NOT NULL, at REAL NOT NULL, day TEXT NOT NULL, "
    "bytes INTEGER NOT NULL, sealed BLOB NOT NULL, last_record INTEGER, "
    "PRIMARY KEY (run_id, part, at)) STRICT"
)

SCHEMA: tuple[str, ...] = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    _AUDIT,
    "CREATE INDEX audit_run ON audit(run)",
    _SESSIONS,
    _RUNS,
    "CREATE INDEX runs_state ON runs(state)",
    _RUNS_KEY,
    _PINS,
    _RUNS_READABLE,
    _SEALED,
    "CREATE INDEX sealed_day ON sealed(day)",
)

OF_SCREENS = "part IN ('approved', 'denied')"
"""Which rows of `sealed` are of what was shown; all others are of what a call contained."""
