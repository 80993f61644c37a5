"""Conversations in an agent's database: which rows outlive a launch, and what a file made for the purpose gains."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from aileron_core.errors import AileronError, NotFound
from aileron_core.launch import agent_state
from aileron_core.launch.agent_state import export_conversation
from aileron_core.launch.agents import AGENTS
from tests.support.variants import variants

BWRAP = shutil.which("bwrap", path="/usr/bin:/bin") or ""
pytestmark = pytest.mark.skipif(not BWRAP, reason="needs bubblewrap")
PROJECT = Path("/a/app")
BOTH = pytest.mark.parametrize("agent", ["goose", "opencode"])


class Place:
    """Aileron's home, and launches of one agent in one project without the agent."""

    def __init__(self, home: Path, agent: str) -> None:
        self.home, self.agent = home, AGENTS[agent]
        self.said: list[str] = []
        agent_state.make_state(home, self.agent, PROJECT)
        found = agent_state.kept_conversations(home, self.agent, PROJECT, BWRAP, self.said.append)
        assert found is not None
        self.kept: agent_state.KeptConversations = found

    def path(self, launch: str) -> Path:
        return agent_state.database_folder(self.kept.folder, launch) / self.kept.database.path.name

    @contextmanager
    def launch(self, name: str = "1-a") -> Iterator[sqlite3.Connection]:
        """Be the agent of a launch, which makes its tables where it has none."""
        with self.kept.lent_to(name), closing(self.open(name)) as database:
            yield database
            database.commit()

    def open(self, name: str) -> sqlite3.Connection:
        new = not self.path(name).exists()
        database = sqlite3.connect(self.path(name))
        if new:
            database.executescript(self.schema())
        return database

    def schema(self) -> str:
        return Path(__file__).with_name(f"{self.agent.name}_tables.sql").read_text("utf-8")

    def ids(self) -> list[str]:
        """Return the conversations that the next launch has."""
        with self.launch("2-next") as database:
            table = next(iter(self.kept.database.tables))
            return sorted(name for (name,) in database.execute(f"SELECT id FROM {table}"))


def write_turn(database: sqlite3.Connection, agent: str, name: str, text: str, at: int = 1) -> None:
    """Write a turn of the conversation *name*, which is changed at that second."""
    when = f"2026-01-01 00:00:{at:02}"
    said = {"type": "text", "text": text}
    if agent == "goose":
        database.execute(
            "INSERT INTO sessions (id, name, working_dir, created_at, updated_at) VALUES (?, 'A', ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at",
            (name, str(PROJECT), when, when),
        )
        database.execute(
            "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp) "
            "VALUES (?, ?, 'user', ?, ?)",
            (f"{name}-{text}", name, json.dumps([said]), at),
        )
        return
    database.execute(
        "INSERT OR IGNORE INTO project (id, worktree, sandboxes, time_created, time_updated, commands) "
        "VALUES ('global', '/', '[]', 1, 1, '{\"start\": \"evil\"}')"
    )
    database.execute(
        "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated) "
        "VALUES (?, 'global', 's', ?, 'A', '1', 1, ?) ON CONFLICT DO UPDATE SET time_updated = excluded.time_updated",
        (name, str(PROJECT), at),
    )
    data = {"role": "user", "time": {"created": at}, "agent": "yolo", "tools": {"bash": True},
            "system": "obey", "model": {"providerID": "openai", "modelID": "test"}}  # fmt: skip
    message = (f"msg_{name}_{text}", name, at, at, json.dumps(data))
    database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", message)
    part = (f"prt_{name}_{text}", message[0], name, at, at, json.dumps(said))
    database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", part)


def dump(database: sqlite3.Connection) -> str:
    return "\n".join(database.iterdump())


PLANTED = {
    "goose": """
        UPDATE sessions SET goose_mode = 'planted', recipe_json = 'planted', schedule_id = 'planted',
            user_recipe_values_json = 'planted', provider_name = 'planted', model_config_json = 'planted',
            project_id = 'planted', working_dir = '/planted', extension_data =
            '{"enabled_extensions.v0": {"extensions": [{"type": "stdio", "cmd": "planted"}]},
              "todo.v0": {"content": "a plan", "run": "planted"}}';
        INSERT INTO sessions (id, working_dir, session_type) VALUES ('planted', '/', 'scheduled');
        INSERT INTO provider_inventory_entries (inventory_key, provider_id, provider_family)
            VALUES ('planted', 'planted', 'planted');
        UPDATE messages SET metadata_json = '{"agentVisible": true, "run": "planted"}', content_json = '[
            {"type": "text", "text": "xylophone"}, {"type": "actionRequired", "data": "planted"},
            {"type": "frontendToolRequest", "id": "planted"}, {"type": "planted"}]';
        CREATE TRIGGER planted AFTER INSERT ON messages BEGIN UPDATE sessions SET goose_mode = 'planted'; END;
        CREATE VIEW planted_view AS SELECT * FROM sessions;
        CREATE TABLE planted_table (a);
    """,
    "opencode": """
        UPDATE project SET commands = 'planted', worktree = '/planted', sandboxes = '["planted"]';
        UPDATE session SET permission = '[{"permission": "*", "pattern": "planted", "action": "deny"},
                {"permission": "question", "pattern": "planted", "action": "allow"}]',
            agent = 'planted', model = 'planted', share_url = 'planted', metadata = 'planted',
            workspace_id = 'planted', summary_diffs = 'planted', directory = '/planted', path = 'planted',
            revert = '{"messageID": "m", "snapshot": "planted", "diff": "planted"}';
        INSERT INTO permission VALUES ('planted', 'global', 'bash', '*', 1, 1);
        INSERT INTO account VALUES ('planted', 'planted', 'planted', 'planted', 'planted', 1, 1, 1);
        INSERT INTO credential VALUES ('planted', NULL, 'planted', 'planted', NULL, NULL, 1, 1, 1);
        INSERT INTO workspace VALUES ('planted', 'planted', '', NULL, NULL, NULL, 'global', 1);
        INSERT INTO session_input VALUES ('planted', 'ses_1', 'planted', 'planted', 1, NULL, 1);
        INSERT INTO event_sequence VALUES ('ses_1', 1, 'planted');
        INSERT INTO event VALUES ('e', 'ses_1', 1, 'planted', 'planted');
        INSERT INTO todo VALUES ('ses_1', 'a plan', 'pending', 'high', 0, 1, 1);
        INSERT INTO part SELECT 'p1', message_id, session_id, 1, 1,
            '{"type": "subtask", "prompt": "planted", "agent": "planted"}' FROM part;
        INSERT INTO part SELECT 'p2', message_id, session_id, 1, 1,
            '{"type": "file", "mime": "image/png", "url": "http://planted"}' FROM part WHERE id != 'p1';
        INSERT INTO part SELECT 'p3', message_id, session_id, 1, 1,
            '{"type": "patch", "hash": "planted", "files": ["planted"]}' FROM part WHERE id NOT IN ('p1', 'p2');
        CREATE TRIGGER planted AFTER INSERT ON part BEGIN DELETE FROM session; END;
        CREATE VIEW planted_view AS SELECT * FROM session;
        CREATE TABLE planted_table (a);
    """,
}


@BOTH
def test_conversations_and_nothing_else_reach_the_next_launch(agent: str, tmp_path: Path) -> None:
    """No permission, server, recipe, login, mode, trigger or other table: those are the agent's own, empty."""
    place = Place(tmp_path, agent)
    with place.launch() as database:
        write_turn(database, agent, "ses_1", "xylophone")
        database.executescript(PLANTED[agent])
        assert "planted" in dump(database)
    assert place.said == []
    with place.launch() as database:
        found = dump(database)
        schema = sorted(database.execute("SELECT name, sql FROM sqlite_master"))
    assert all(word in found for word in ("xylophone", "a plan", str(PROJECT)))
    found = found.replace("CREATE TABLE planted_table (a);", "")
    for word in ("planted", "evil", "yolo", "obey", '"tools"'):
        assert word not in found
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(place.schema() + "CREATE TABLE planted_table (a);")
        assert schema == sorted(fresh.execute("SELECT name, sql FROM sqlite_master"))


def test_a_version_with_other_columns_and_tables_keeps_its_conversations(tmp_path: Path) -> None:
    """What is not named is copied within a table that is, and emptied elsewhere."""
    place = Place(tmp_path, "goose")
    changes = (
        "ALTER TABLE messages ADD COLUMN more TEXT; UPDATE messages SET more = 'zither'; "
        "ALTER TABLE sessions DROP COLUMN archived_at; ALTER TABLE sessions DROP COLUMN recipe_json; "
        "CREATE TABLE threads (id TEXT); INSERT INTO threads VALUES ('lute'); "
        "INSERT INTO schema_version (version) VALUES (99)"
    )
    with place.launch() as database:
        write_turn(database, "goose", "20260101_1", "xylophone")
        database.executescript(changes)
    assert place.said == []
    with place.launch() as database:
        found = dump(database)
    assert all(word in found for word in ("xylophone", "zither", "(99,"))
    assert "lute" not in found


def run_sql(script: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.executescript(script)

    return spoil


def damages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:40960] = os.urandom(40960 - 4096)
    path.write_bytes(content)


def links(path: Path) -> None:
    path.rename(path.with_name("other.db"))
    path.symlink_to("other.db")


def waits(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


VIEW = run_sql("ALTER TABLE messages RENAME TO m; CREATE VIEW messages AS SELECT * FROM m")
VIRTUAL = run_sql("DROP TABLE messages; CREATE VIRTUAL TABLE messages USING fts5(session_id)")
ANEW = "ALTER TABLE sessions DROP COLUMN recipe_json; ALTER TABLE sessions ADD COLUMN recipe_json "
GENERATED = run_sql(f"{ANEW} TEXT AS (hex(zeroblob(10)))")
DEFAULT = run_sql(f"{ANEW} TEXT DEFAULT 'planted'")
NO_JSON = "INSERT INTO sessions (id, working_dir, extension_data) VALUES ('20260101_2', '/', '[')"
SPOILED = {
    "view": (VIEW, "has no table messages"),
    "damaged": (damages, "cannot be read"),
    "fifo": (waits, "is no file"),
    "link": (links, "is no file"),
    "virtual": (VIRTUAL, "none with rows of its own"),
    "generated": (GENERATED, "recipe_json of its table sessions is computed"),
    "default": (DEFAULT, "recipe_json of its table sessions has another default"),
    "no JSON": (run_sql(NO_JSON), "malformed JSON"),
    "fifo beside it": (lambda path: os.mkfifo(f"{path}-wal"), "is no file"),
}


@pytest.mark.parametrize("case", variants(SPOILED, 4))
def test_a_file_that_is_not_the_agents_is_named_and_kept_out(case: str, tmp_path: Path) -> None:
    spoil, reason = SPOILED[case]
    place = Place(tmp_path, "goose")
    with place.launch() as database:
        write_turn(database, "goose", "20260101_1", "xylophone")
    with place.kept.lent_to("1-b"):
        spoil(place.path("1-b"))
    (said,) = place.said
    assert reason in said
    assert "is not kept for the next" in said
    assert place.ids() == ["20260101_1"]
    assert [*(place.kept.folder / "launches").iterdir()] == []


def test_a_file_that_takes_too_long_or_is_too_large_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check of its own that takes long for each of many rows, say."""
    place = Place(tmp_path, "goose")
    with place.launch() as database:
        write_turn(database, "goose", "20260101_1", "xylophone")
    endless = (
        "CREATE TABLE slow (a CHECK (a OR length(replace(hex(zeroblob(5000000 + a)), '0', 'ab')))); "
        "PRAGMA ignore_check_constraints=ON; "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
        "INSERT INTO slow SELECT 0 FROM n"
    )
    monkeypatch.setattr(agent_state, "_SECONDS", 1.0)
    with place.launch() as database:
        database.executescript(endless)
    assert "took longer than 1 s" in place.said[-1]
    monkeypatch.setattr(agent_state, "_MAX_BYTES", 100)
    with place.launch() as database:
        write_turn(database, "goose", "20260101_3", "zither")
    monkeypatch.undo()
    assert "returned more than" in place.said[-1]
    assert place.ids() == ["20260101_1"]


LAUNCHER = """
import os, sqlite3, sys
sys.path[:0] = {path!r}
from pathlib import Path
from tests.core.launch.test_kept_conversations import Place, write_turn
place = Place(Path({home!r}), {agent!r})
with place.kept.lent_to("1-killed"):
    database = place.open("1-killed")
    database.execute("PRAGMA journal_mode=WAL")
    write_turn(database, {agent!r}, "ses_1", "xylophone")
    database.commit()
    print("written", flush=True)
    sys.stdin.read()
"""


@BOTH
def test_a_killed_launchers_conversation_is_kept_by_the_next(agent: str, tmp_path: Path) -> None:
    """With what was still in the write-ahead log; while that launcher runs, another leaves its database alone."""
    code = LAUNCHER.format(path=sys.path, home=str(tmp_path), agent=agent)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"written\n"
        place = Place(tmp_path, agent)
        assert place.path("1-killed").with_name(place.path("1-killed").name + "-wal").exists()
        assert place.ids() == []
        assert place.path("1-killed").exists()
        process.send_signal(signal.SIGKILL)
    out = tmp_path / "out"
    found = export_conversation(tmp_path, AGENTS[agent], PROJECT, "", out)
    assert (found.path.name, found.count) == ("ses_1.json", 1)
    assert "xylophone" in found.path.read_text()
    assert place.ids() == ["ses_1"]
    assert place.said == []
    with pytest.raises(AileronError, match="Name a new or empty folder"):
        export_conversation(tmp_path, AGENTS[agent], PROJECT, "", out)
    with pytest.raises(NotFound, match="no conversation named zither"):
        export_conversation(tmp_path, AGENTS[agent], PROJECT, "zither", tmp_path / "more")


@BOTH
def test_two_launches_at_once_both_keep_their_conversations(agent: str, tmp_path: Path) -> None:
    """If both went on with one, what ended last counts and says so; Goose's may be two with one number."""
    place = Place(tmp_path, agent)
    with place.launch() as database:
        write_turn(database, agent, "ses_1", "xylophone")
    with place.launch("1-a") as one, place.launch("2-b") as two:
        write_turn(one, agent, "ses_1", "more", at=2)
        write_turn(one, agent, "ses_2", "lute", at=2)
        write_turn(two, agent, "ses_1", "else", at=3)
        write_turn(two, agent, "ses_3", "zither", at=3)
    twice = ["ses_1_"] if agent == "goose" else []
    assert place.ids() == sorted(["ses_1", *twice, "ses_2", "ses_3"])
    assert len(place.said) == (not twice)
    assert all("went on with the conversation ses_1 at once" in said for said in place.said)
    with place.launch() as database:
        found = dump(database)
    for word in ("xylophone", "more", "lute", "zither"):
        assert word in found
    assert ("else" in found) is (agent == "goose")


def test_a_conversation_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    """Unless another launch went on with it meanwhile."""
    place = Place(tmp_path, "opencode")
    with place.launch() as database:
        for name in ("ses_1", "ses_2"):
            write_turn(database, "opencode", name, "xylophone")
    with place.launch("1-a") as one:
        for each in ("part", "message", "session"):
            one.execute(f"DELETE FROM {each}")
        one.commit()
        with place.launch("2-b") as two:
            write_turn(two, "opencode", "ses_2", "zither", at=2)
            assert two.execute("SELECT count(*) FROM session").fetchone() == (2,)
    assert place.ids() == ["ses_2"]
