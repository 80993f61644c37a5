-- The tables of Goose 1.34.0, as it makes them in an empty folder; a later version changes them itself.
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id TEXT,
  session_id TEXT NOT NULL REFERENCES sessions(id),
  role TEXT NOT NULL,
  content_json TEXT NOT NULL,
  created_timestamp INTEGER NOT NULL,
  timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  tokens INTEGER,
  metadata_json TEXT
);
CREATE TABLE provider_inventory_entries (
  inventory_key TEXT PRIMARY KEY,
  provider_id TEXT NOT NULL,
  provider_family TEXT NOT NULL,
  last_updated_at TEXT,
  last_refresh_attempt_at TEXT,
  last_refresh_error TEXT,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE provider_inventory_models (
  inventory_key TEXT NOT NULL REFERENCES provider_inventory_entries(inventory_key) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  model_id TEXT NOT NULL,
  name TEXT NOT NULL,
  family TEXT,
  context_limit INTEGER,
  reasoning BOOLEAN,
  recommended BOOLEAN,
  PRIMARY KEY (inventory_key, ordinal)
);
CREATE TABLE schema_version (
  version INTEGER PRIMARY KEY,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '',
  user_set_name BOOLEAN DEFAULT FALSE,
  session_type TEXT NOT NULL DEFAULT 'user',
  working_dir TEXT NOT NULL,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  extension_data TEXT DEFAULT '{}',
  total_tokens INTEGER,
  input_tokens INTEGER,
  output_tokens INTEGER,
  accumulated_total_tokens INTEGER,
  accumulated_input_tokens INTEGER,
  accumulated_output_tokens INTEGER,
  accumulated_cost REAL,
  schedule_id TEXT,
  recipe_json TEXT,
  user_recipe_values_json TEXT,
  provider_name TEXT,
  model_config_json TEXT,
  goose_mode TEXT NOT NULL DEFAULT 'auto',
  archived_at TIMESTAMP,
  project_id TEXT
);
CREATE INDEX idx_messages_message_id ON messages(message_id);
CREATE INDEX idx_messages_session ON messages(session_id);
CREATE INDEX idx_messages_timestamp ON messages(timestamp);
CREATE INDEX idx_provider_inventory_provider_id ON provider_inventory_entries(provider_id);
CREATE INDEX idx_sessions_type ON sessions(session_type);
CREATE INDEX idx_sessions_updated ON sessions(updated_at DESC);
INSERT INTO schema_version (version) VALUES (13);
