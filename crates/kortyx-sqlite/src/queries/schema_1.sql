-- Runs. A row holds what transitions decide by; payloads live in tables of their own, so that a change of status does
-- not copy them. `lease_until` is 0 when nobody drives. `answers` counts accepted answers, `absorbed` says how many of
-- them the snapshot holds.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    workflow_version TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    context TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    driver TEXT,
    answers INTEGER NOT NULL,
    absorbed INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    outcome BLOB,
    reason TEXT
) STRICT;

CREATE INDEX runs_session ON runs (session_id, status);
CREATE INDEX runs_running ON runs (workflow_id, workflow_version, fingerprint, lease_until, updated_at)
    WHERE status = 'running';
CREATE INDEX runs_parked ON runs (workflow_id, workflow_version, fingerprint, updated_at) WHERE status = 'parked';
CREATE INDEX runs_stopping ON runs (lease_until) WHERE status = 'running' AND cancel_requested = 1;
CREATE INDEX runs_ended ON runs (updated_at) WHERE status IN ('completed', 'failed', 'cancelled', 'expired');

CREATE TABLE snapshots (
    run INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

-- Journal entries recorded after the snapshot, in the order of their ids.
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE INDEX entries_run ON entries (run);

-- A run that has ended goes nowhere from its snapshot.
CREATE TRIGGER runs_end AFTER UPDATE OF status ON runs
WHEN new.status IN ('completed', 'failed', 'cancelled', 'expired')
BEGIN
    DELETE FROM snapshots WHERE run = new.id;
    DELETE FROM entries WHERE run = new.id;
END;

-- Questions. `seq` is the answer's place among the run's answers; an expired question has one when its default applied.
CREATE TABLE interrupts (
    id INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL UNIQUE,
    run INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    token TEXT NOT NULL,
    ask TEXT NOT NULL,
    workflow TEXT NOT NULL,
    node TEXT NOT NULL,
    question BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    default_answer BLOB,
    optional_cancel INTEGER NOT NULL,
    after_response INTEGER NOT NULL,
    answer BLOB,
    seq INTEGER,
    answered_at INTEGER,
    actor TEXT
) STRICT;

CREATE INDEX interrupts_session ON interrupts (session_id, created_at, id, after_response, expires_at)
    WHERE status = 'pending';
CREATE INDEX interrupts_run ON interrupts (run, status, seq, created_at, id);
CREATE INDEX interrupts_due ON interrupts (expires_at, id) WHERE status = 'pending';

-- Pending questions by each value of their run's context.
CREATE TABLE pending_context (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    interrupt INTEGER NOT NULL,
    after_response INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (key, value, created_at, interrupt)
) STRICT, WITHOUT ROWID;

-- Sessions. `head` is its last checkpoint, `checkpoints` their number.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    head INTEGER,
    checkpoints INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_idle ON sessions (updated_at);
CREATE INDEX sessions_long ON sessions (checkpoints);

-- Checkpoints; a rollback removes those that it abandons. The pin, the context and the number of answers that the
-- snapshot holds are those of the run whose questions were open, so that another run can take them over.
CREATE TABLE checkpoints (
    id INTEGER PRIMARY KEY,
    checkpoint_id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL,
    turn_index INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    parent TEXT,
    parent_session TEXT,
    forked_from TEXT,
    label TEXT,
    nodes TEXT NOT NULL,
    workflow TEXT NOT NULL,
    workflow_version TEXT,
    structured_stream_ids TEXT NOT NULL,
    run_id TEXT,
    pin_id TEXT,
    pin_version TEXT,
    pin_fingerprint TEXT,
    context TEXT,
    answers INTEGER NOT NULL,
    is_head INTEGER NOT NULL
) STRICT;

CREATE INDEX checkpoints_session ON checkpoints (session, turn_index);
CREATE INDEX checkpoints_age ON checkpoints (created_at) WHERE is_head = 0;

CREATE TABLE checkpoint_payloads (
    checkpoint INTEGER PRIMARY KEY,
    state BLOB NOT NULL,
    snapshot BLOB
) STRICT;

-- Questions as they were open at a checkpoint.
CREATE TABLE checkpoint_questions (
    checkpoint INTEGER NOT NULL,
    position INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    token TEXT NOT NULL,
    ask TEXT NOT NULL,
    workflow TEXT NOT NULL,
    node TEXT NOT NULL,
    question BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    default_answer BLOB,
    optional_cancel INTEGER NOT NULL,
    after_response INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    PRIMARY KEY (checkpoint, position)
) STRICT;
