-- 100,000 rows in every table that grows: runs that wait, run, are set aside or have ended, with their questions, sessions with
-- their checkpoints, replies that are kept.
INSERT INTO kortyx.runs (
    run_id, session_id, pin, workflow_id, workflow_version, fingerprint, context, pairs, status, created_at, updated_at, fence,
    lease_until, answers, absorbed, has_entries, cancel_requested, snapshot
)
SELECT 'old-' || n, 'old-session-' || n / 4, md5((n % 5)::text)::uuid, 'w', '1', 'f', '{}',
    ARRAY['ffffffff-ffff-ffff-ffff-ffffffffffff', md5(n::text)]::uuid[],
    (ARRAY['suspended', 'suspended', 'running', 'parked', 'completed'])[n % 5 + 1], 1000 + n, 4000000000000 + n, 1,
    CASE WHEN n % 5 = 2 THEN 4000000000000 ELSE 0 END, 0, 0, FALSE, FALSE, '\x00'
FROM generate_series(1, 100000) AS n;

INSERT INTO kortyx.interrupts (
    request_id, run, session_id, token, ask, workflow, node, question, created_at, expires_at, status, optional_cancel,
    after_response
)
SELECT 'old-' || r.id, r.id, r.session_id, 't-' || r.id, 'a', 'w', 'n', '\x00', r.created_at, 4000000000000 + r.id,
    CASE WHEN r.status = 'completed' THEN 'answered' ELSE 'pending' END, FALSE, FALSE
FROM kortyx.runs AS r;

INSERT INTO kortyx.pending_context (pair, created_at, interrupt)
SELECT pair, i.created_at, i.id
FROM kortyx.interrupts AS i JOIN kortyx.runs AS r ON r.id = i.run, unnest(r.pairs) AS pair WHERE i.status = 'pending';

INSERT INTO kortyx.entries (run, body) SELECT r.id, '\x00' FROM kortyx.runs AS r;

INSERT INTO kortyx.chunks (run, number, body) SELECT r.id, 1, '\x00' FROM kortyx.runs AS r;

INSERT INTO kortyx.sessions (session_id, head, checkpoints, updated_at)
SELECT 'old-session-' || n, 2 * n, 2, 4000000000000 + n FROM generate_series(1, 50000) AS n;

INSERT INTO kortyx.checkpoints (
    checkpoint_id, session, session_id, turn_index, created_at, nodes, workflow, streams, answers, is_head, state
)
SELECT 'old-' || n, (n + 1) / 2, 'old-session-' || (n + 1) / 2, (n + 1) % 2, 4000000000000 + n, '[]', 'w', '[]', 0, n % 2 = 0, '\x00'
FROM generate_series(1, 100000) AS n;

INSERT INTO kortyx.checkpoint_questions (
    checkpoint, position, request_id, token, ask, workflow, node, question, created_at, expires_at, optional_cancel,
    after_response, run_id
)
SELECT -n, 1, 'asked-' || n, 't', 'a', 'w', 'n', '\x00', 1, 1, FALSE, FALSE, 'old-' || n FROM generate_series(1, 100000) AS n;

INSERT INTO kortyx.transitions (id, at, reply) SELECT md5(n::text)::uuid, 4000000000000 + n, '[]' FROM generate_series(1, 100000) AS n;

ANALYZE kortyx.runs, kortyx.interrupts, kortyx.pending_context, kortyx.entries, kortyx.chunks, kortyx.sessions,
    kortyx.checkpoints, kortyx.checkpoint_questions, kortyx.transitions;
