-- ?1: how many, ?2: now, ?3: the question, ?4: questions of a quiet session. Ten questions in each millisecond of the past,
-- open for a day.
CREATE TEMP TABLE asked AS
WITH RECURSIVE counted (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < ?1)
SELECT
    n + 1 AS id,
    n % 2 = 0 AS is_busy,
    n / 2 / ?4 AS quiet,
    ?2 - (?1 - n) / 10 - 1 AS at
FROM counted;
INSERT INTO runs (
    id, run_id, session_id, workflow_id, workflow_version, fingerprint, context, status, created_at, updated_at, fence,
    lease_until, driver, answers, absorbed, cancel_requested, outcome, reason
)
SELECT
    id, printf('run-%08x-0000-4000-8000-000000000000', id),
    iif(is_busy, 'session-busy', 'session-quiet-' || quiet), 'review', '1',
    '5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e',
    json_object(
        'tenant', iif(is_busy, 't:acme', 't:other'), 'user', iif(is_busy, 't:user-busy', 't:user-' || quiet)
    ),
    'suspended', at, at, 0, 0, NULL, 0, 0, 0, NULL, NULL
FROM asked;
INSERT INTO snapshots (run, body) SELECT id, CAST('{}' AS BLOB) FROM asked;
INSERT INTO interrupts (
    id, request_id, run, session_id, token, ask, workflow, node, question, created_at, expires_at, status,
    default_answer, optional_cancel, after_response
)
SELECT
    id, printf('human-%08x-0000-4000-8000-000000000000', id), id,
    iif(is_busy, 'session-busy', 'session-quiet-' || quiet), printf('%064x', id), '1/approval', 'review', 'approve',
    ?3, at, at + 86400000, 'pending', NULL, 0, 0
FROM asked;
INSERT INTO pending_context (key, value, created_at, interrupt, after_response, expires_at)
SELECT 'tenant', iif(is_busy, 't:acme', 't:other'), at, id, 0, at + 86400000 FROM asked ORDER BY 1, 2, 3, 4;
INSERT INTO pending_context (key, value, created_at, interrupt, after_response, expires_at)
SELECT 'user', iif(is_busy, 't:user-busy', 't:user-' || quiet), at, id, 0, at + 86400000 FROM asked ORDER BY 1, 2, 3, 4;
DROP TABLE asked;
