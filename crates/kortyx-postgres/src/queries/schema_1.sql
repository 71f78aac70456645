-- Names that begin with `kortyx.` become those of the configured schema and prefix.

-- Runs. `pin` is a digest of the definition, `pairs` are digests of the context's entries; both have a fixed size, whatever
-- the texts. `lease_until` is 0 when nobody drives. `answers` counts accepted answers, `absorbed` says how many of them the
-- snapshot holds. `revision` is the snapshot's digest when its writer also put it into a cache. Whoever holds a row's lock may write
-- its run's questions and entries.
CREATE TABLE kortyx.runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text COLLATE "C" NOT NULL UNIQUE,
    session_id text COLLATE "C" NOT NULL,
    pin uuid NOT NULL,
    workflow_id text NOT NULL,
    workflow_version text NOT NULL,
    fingerprint text NOT NULL,
    context jsonb NOT NULL,
    pairs uuid[] NOT NULL,
    status text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    fence bigint NOT NULL,
    lease_until bigint NOT NULL,
    driver text,
    answers bigint NOT NULL,
    absorbed bigint NOT NULL,
    has_entries boolean NOT NULL,
    cancel_requested boolean NOT NULL,
    reason text,
    outcome bytea,
    snapshot bytea,
    revision bytea
);

-- Opaque bytes may be compressed or encrypted already: they are stored as they come, and beside the row when they are large.
ALTER TABLE kortyx.runs ALTER COLUMN outcome SET STORAGE EXTERNAL, ALTER COLUMN snapshot SET STORAGE EXTERNAL;

CREATE INDEX ON kortyx.runs (session_id, status);
CREATE INDEX ON kortyx.runs (pin, lease_until, updated_at) WHERE status = 'running';
CREATE INDEX ON kortyx.runs (pin, updated_at) WHERE status = 'parked';
CREATE INDEX ON kortyx.runs (lease_until) WHERE status = 'running' AND cancel_requested;
CREATE INDEX ON kortyx.runs (updated_at) WHERE status IN ('completed', 'failed', 'cancelled', 'expired');

-- Journal entries recorded after the snapshot, in the order of their ids.
CREATE TABLE kortyx.entries (
    id bigint GENERATED ALWAYS AS IDENTITY,
    run bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, id)
);

ALTER TABLE kortyx.entries ALTER COLUMN body SET STORAGE EXTERNAL;

-- Questions. `seq` is the answer's place among the run's answers; an expired question has one when its default applied.
CREATE TABLE kortyx.interrupts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request_id text COLLATE "C" NOT NULL UNIQUE,
    run bigint NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    token text NOT NULL,
    ask text NOT NULL,
    workflow text NOT NULL,
    node text NOT NULL,
    question bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    default_answer bytea,
    optional_cancel boolean NOT NULL,
    after_response boolean NOT NULL,
    answer bytea,
    seq bigint,
    answered_at bigint,
    actor text
);

CREATE INDEX ON kortyx.interrupts (session_id, created_at, id) WHERE status = 'pending';
CREATE INDEX ON kortyx.interrupts (run, created_at, id) WHERE status = 'pending';
CREATE INDEX ON kortyx.interrupts (run, seq);
CREATE INDEX ON kortyx.interrupts (expires_at, id) WHERE status = 'pending';

-- Pending questions by each entry of their run's context.
CREATE TABLE kortyx.pending_context (
    pair uuid NOT NULL,
    created_at bigint NOT NULL,
    interrupt bigint NOT NULL,
    PRIMARY KEY (pair, created_at, interrupt)
);

-- Sessions. `head` is its last checkpoint, `checkpoints` their number. Whoever holds a row's lock may write its checkpoints.
CREATE TABLE kortyx.sessions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL UNIQUE,
    head bigint,
    checkpoints bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE INDEX ON kortyx.sessions (updated_at);
CREATE INDEX ON kortyx.sessions (checkpoints);

-- Checkpoints. The pin, the context and the number of answers that the snapshot holds are those of the run whose questions
-- were open, so that another run can take them over. What a rollback abandoned is kept for a while, to tell it again.
CREATE TABLE kortyx.checkpoints (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    checkpoint_id text COLLATE "C" NOT NULL,
    session bigint NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    turn_index bigint NOT NULL,
    created_at bigint NOT NULL,
    abandoned_at bigint,
    parent text,
    parent_session text,
    forked_from text,
    label text,
    nodes jsonb NOT NULL,
    workflow text NOT NULL,
    workflow_version text,
    streams jsonb NOT NULL,
    run_id text,
    pin jsonb,
    context jsonb,
    pairs uuid[],
    answers bigint NOT NULL,
    is_head boolean NOT NULL,
    state bytea NOT NULL,
    snapshot bytea
);

ALTER TABLE kortyx.checkpoints ALTER COLUMN state SET STORAGE EXTERNAL, ALTER COLUMN snapshot SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX ON kortyx.checkpoints (checkpoint_id) WHERE abandoned_at IS NULL;
CREATE INDEX ON kortyx.checkpoints (session, turn_index);
CREATE INDEX ON kortyx.checkpoints (created_at) WHERE NOT is_head AND abandoned_at IS NULL;
CREATE INDEX ON kortyx.checkpoints (abandoned_at) WHERE abandoned_at IS NOT NULL;

-- Questions as they were open at a checkpoint.
CREATE TABLE kortyx.checkpoint_questions (
    checkpoint bigint NOT NULL,
    position bigint NOT NULL,
    request_id text NOT NULL,
    token text NOT NULL,
    ask text NOT NULL,
    workflow text NOT NULL,
    node text NOT NULL,
    question bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    default_answer bytea,
    optional_cancel boolean NOT NULL,
    after_response boolean NOT NULL,
    run_id text NOT NULL,
    PRIMARY KEY (checkpoint, position)
);

-- What transitions said, by their own ids, so that one whose reply was lost can be asked for it.
CREATE TABLE kortyx.transitions (
    id uuid PRIMARY KEY,
    at bigint NOT NULL,
    reply jsonb NOT NULL
);

CREATE INDEX ON kortyx.transitions (at);
