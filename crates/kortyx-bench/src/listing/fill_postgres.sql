-- {count}: how many, {page}: questions of a quiet session, {question}: the question. Ten questions in each millisecond of the past,
-- open for a day. The busy session is the one before the first quiet one, -1.
CREATE FUNCTION bench.digest(key text, value text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(encode(sha256(int8send(octet_length(key)) || convert_to(key, 'UTF8')
        || int8send(octet_length(value)) || convert_to(value, 'UTF8')), 'hex'), 1, 32)::uuid
$$;
CREATE TEMP TABLE asking AS
SELECT
    quiet, CASE WHEN quiet < 0 THEN 'session-busy' ELSE 'session-quiet-' || quiet END AS session_id,
    jsonb_build_object('tenant', tenant, 'user', person) AS context,
    ARRAY[bench.digest('tenant', tenant), bench.digest('user', person)] AS pairs
FROM (
    SELECT quiet, CASE WHEN quiet < 0 THEN 't:acme' ELSE 't:other' END AS tenant,
        't:user-' || CASE WHEN quiet < 0 THEN 'busy' ELSE quiet::text END AS person
    FROM generate_series(-1, {count}::bigint / 2 / {page}) AS quiet
) AS people;
CREATE TEMP TABLE asked AS
SELECT
    n + 1 AS id, CASE WHEN n % 2 = 0 THEN -1 ELSE n / 2 / {page} END AS quiet,
    floor(extract(epoch FROM now()) * 1000)::bigint - ({count} - n) / 10 - 1 AS at
FROM generate_series(0, {count}::bigint - 1) AS n;
ANALYZE asking, asked;
INSERT INTO bench.runs (
    run_id, session_id, pin, workflow_id, workflow_version, fingerprint, context, pairs, status, created_at, updated_at, fence,
    lease_until, answers, absorbed, has_entries, cancel_requested, snapshot
)
SELECT
    'run-' || lpad(to_hex(a.id), 8, '0') || '-0000-4000-8000-000000000000', s.session_id, md5('review')::uuid, 'review', '1',
    repeat('5e', 32), s.context, s.pairs, 'suspended', a.at, a.at, 0, 0, 0, 0, FALSE, FALSE, '\x7b7d'
FROM asked AS a JOIN asking AS s ON s.quiet = a.quiet
ORDER BY a.id;
INSERT INTO bench.interrupts (
    request_id, run, session_id, token, ask, workflow, node, question, created_at, expires_at, status, optional_cancel,
    after_response
)
SELECT
    replace(run_id, 'run-', 'human-'), id, session_id, md5(run_id) || md5(session_id), '1/approval', 'review', 'approve',
    convert_to('{question}', 'UTF8'), created_at, created_at + 86400000, 'pending', FALSE, FALSE
FROM bench.runs ORDER BY id;
INSERT INTO bench.pending_context (pair, created_at, interrupt)
SELECT pair, i.created_at, i.id FROM bench.interrupts AS i JOIN bench.runs AS r ON r.id = i.run, unnest(r.pairs) AS pair;
VACUUM ANALYZE bench.runs, bench.interrupts, bench.pending_context;
CHECKPOINT;
