-- What transitions have in common. Each takes its request as JSON and its payloads as an array; the request names a payload
-- by its place. A refusal is an exception with a state of class KX, so that nothing of the transition remains.
--
-- KX001 lease lost, KX002 already exists, KX003 invalid request, KX004 corrupt.

-- The store's time in milliseconds. `shift` is 0 but in tests.
CREATE FUNCTION kortyx.now_v1(shift bigint) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + shift
$$;

-- A time in milliseconds that is not later than the end of the year 9999.
CREATE FUNCTION kortyx.later_v1(now bigint, ttl bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT least(now + least(ttl, 253402300799999), 253402300799999)
$$;

-- Locks a session that exists: before its runs, always.
CREATE FUNCTION kortyx.lock_session_v1(p_session text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM kortyx.sessions AS s WHERE s.session_id = p_session FOR UPDATE;
END
$$;

-- Locks the run of a lease and, before it, its session where a checkpoint will be appended.
CREATE FUNCTION kortyx.held_v1(p_lease jsonb, p_with_session boolean) RETURNS kortyx.runs
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
BEGIN
    IF p_with_session THEN
        PERFORM kortyx.lock_session_v1(
            (SELECT o.session_id FROM kortyx.runs AS o WHERE o.run_id = p_lease ->> 'run_id'));
    END IF;
    SELECT * INTO r FROM kortyx.runs AS o WHERE o.run_id = p_lease ->> 'run_id' FOR UPDATE;
    IF r.fence = (p_lease ->> 'fence')::bigint AND r.lease_until <> 0
        AND r.status NOT IN ('completed', 'failed', 'cancelled', 'expired') THEN
        RETURN r;
    END IF;
    IF r.id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'KX001', MESSAGE = 'no such run';
    ELSIF r.status IN ('completed', 'failed', 'cancelled', 'expired') THEN
        RAISE EXCEPTION USING ERRCODE = 'KX001', MESSAGE = 'the run has ended';
    ELSIF r.fence <> (p_lease ->> 'fence')::bigint THEN
        RAISE EXCEPTION USING ERRCODE = 'KX001', MESSAGE = 'another lease was granted since';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'KX001', MESSAGE = 'the lease was given up';
END
$$;

-- Stores a new run; with its first lease where a driver is given.
CREATE FUNCTION kortyx.add_run_v1(
    p_run jsonb, p_pin jsonb, p_status text, p_now bigint, p_answers bigint, p_snapshot bytea, p_revision text,
    p_driver jsonb
) RETURNS kortyx.runs
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
BEGIN
    INSERT INTO kortyx.runs (
        run_id, session_id, pin, workflow_id, workflow_version, fingerprint, context, pairs, status, created_at,
        updated_at, fence, lease_until, driver, answers, absorbed, has_entries, cancel_requested, snapshot, revision
    ) VALUES (
        p_run ->> 'run_id', p_run ->> 'session_id', (p_pin ->> 'digest')::uuid, p_pin ->> 'id', p_pin ->> 'version',
        p_pin ->> 'fingerprint', p_run -> 'context',
        (p_run ->> 'pairs')::uuid[], p_status, p_now, p_now, CASE WHEN p_driver IS NULL THEN 0 ELSE 1 END,
        CASE WHEN p_driver IS NULL THEN 0 ELSE kortyx.later_v1(p_now, (p_driver ->> 'ttl')::bigint) END,
        p_driver ->> 'id', p_answers, p_answers, FALSE, FALSE, p_snapshot, decode(p_revision, 'hex')
    )
    RETURNING * INTO r;
    RETURN r;
END
$$;

-- Publishes questions of a run; gives their keys, in order. A new run has asked nothing before.
CREATE FUNCTION kortyx.publish_v1(
    r kortyx.runs, p_publish jsonb, b bytea[], p_now bigint, p_is_new boolean
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    q jsonb;
    key bigint;
    keys bigint[] := '{}';
BEGIN
    FOR place IN 0 .. jsonb_array_length(p_publish) - 1 LOOP
        q := p_publish -> place;
        INSERT INTO kortyx.interrupts (
            request_id, run, session_id, token, ask, workflow, node, question, created_at, expires_at, status,
            default_answer, optional_cancel, after_response
        ) VALUES (
            q ->> 'request_id', r.id, r.session_id, q ->> 'token', q ->> 'ask', q ->> 'workflow', q ->> 'node',
            b[(q ->> 'question')::integer], p_now, kortyx.later_v1(p_now, (q ->> 'ttl')::bigint), 'pending',
            b[(q ->> 'default')::integer], (q ->> 'optional_cancel')::boolean, (q ->> 'after_response')::boolean
        )
        RETURNING id INTO key;
        -- Here and elsewhere the order leads to the index by run, also before the tables have statistics.
        IF (place > 0 OR NOT p_is_new) AND q ->> 'ask' = ANY (ARRAY(
            SELECT i.ask FROM kortyx.interrupts AS i WHERE i.run = r.id AND i.status = 'pending' AND i.id <> key
            ORDER BY i.created_at, i.id)) THEN
            RAISE EXCEPTION USING ERRCODE = 'KX003', MESSAGE = 'a question is open at this place already';
        END IF;
        keys := keys || key;
    END LOOP;
    IF cardinality(r.pairs) > 0 THEN
        INSERT INTO kortyx.pending_context (pair, created_at, interrupt)
        SELECT pair, p_now, new FROM unnest(r.pairs) AS pair, unnest(keys) AS new;
    END IF;
    RETURN keys;
END
$$;

-- Closes pending questions of a run, all of them or those with these asks; gives their keys. What is past its time has
-- expired, whatever else closes it.
CREATE FUNCTION kortyx.close_v1(r kortyx.runs, p_asks text[], p_status text, p_now bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    keys bigint[] := ARRAY(
        SELECT o.id FROM kortyx.interrupts AS o
        WHERE o.run = r.id AND o.status = 'pending' AND (p_asks IS NULL OR o.ask = ANY (p_asks))
        ORDER BY o.created_at, o.id);
BEGIN
    IF cardinality(keys) > 0 THEN
        UPDATE kortyx.interrupts AS i
        SET status = CASE WHEN i.expires_at <= p_now THEN 'expired' ELSE p_status END WHERE i.id = ANY (keys);
        PERFORM kortyx.forget_v1(r, keys);
    END IF;
    RETURN keys;
END
$$;

-- Takes questions of a run out of the index by context.
CREATE FUNCTION kortyx.forget_v1(r kortyx.runs, p_keys bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(r.pairs) > 0 AND p_keys IS NOT NULL THEN
        DELETE FROM kortyx.pending_context AS c
        USING kortyx.interrupts AS i
        WHERE i.id = ANY (p_keys) AND c.pair = ANY (r.pairs) AND c.created_at = i.created_at AND c.interrupt = i.id;
    END IF;
END
$$;

-- Ends a run: the lease is given up, pending questions are closed, snapshot and entries go.
CREATE FUNCTION kortyx.end_v1(
    r kortyx.runs, p_status text, p_questions text, p_now bigint, p_reason text, p_outcome bytea
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM kortyx.close_v1(r, NULL, p_questions, p_now);
    IF r.has_entries THEN
        DELETE FROM kortyx.entries AS e WHERE e.run = r.id;
    END IF;
    UPDATE kortyx.runs AS o
    SET status = p_status, lease_until = 0, driver = NULL, snapshot = NULL, revision = NULL, has_entries = FALSE,
        updated_at = p_now, reason = coalesce(p_reason, o.reason), outcome = p_outcome
    WHERE o.id = r.id;
END
$$;

-- Grants the lease on a run to a driver; gives the reference by which a reply hands it out.
CREATE FUNCTION kortyx.grant_v1(r kortyx.runs, p_driver jsonb, p_now bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    until bigint := kortyx.later_v1(p_now, (p_driver ->> 'ttl')::bigint);
BEGIN
    UPDATE kortyx.runs AS o
    SET status = 'running', reason = CASE WHEN r.status = 'parked' THEN NULL ELSE o.reason END, fence = r.fence + 1,
        lease_until = until, driver = p_driver ->> 'id', answers = r.answers, updated_at = p_now
    WHERE o.id = r.id;
    RETURN jsonb_build_array('claim', r.id, jsonb_build_object('fence', r.fence + 1, 'until', until));
END
$$;

-- Makes a run that nobody drives one that should be driven.
CREATE FUNCTION kortyx.wake_v1(r kortyx.runs, p_now bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE kortyx.runs AS o
    SET status = 'running', reason = CASE WHEN r.status = 'parked' THEN NULL ELSE o.reason END, answers = r.answers,
        updated_at = p_now
    WHERE o.id = r.id;
END
$$;

-- References to the questions with these keys, in order.
CREATE FUNCTION kortyx.refs_v1(p_tag text, p_keys bigint[]) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    refs jsonb := '[]';
BEGIN
    IF cardinality(p_keys) = 1 THEN
        RETURN jsonb_build_array(jsonb_build_array(p_tag, p_keys[1]));
    ELSIF p_keys IS NOT NULL THEN
        refs := coalesce((SELECT jsonb_agg(jsonb_build_array(p_tag, one) ORDER BY place)
            FROM unnest(p_keys) WITH ORDINALITY AS keys (one, place)), '[]');
    END IF;
    RETURN refs;
END
$$;

-- The questions of a run that may still bring an answer, in time or by their default, oldest first.
CREATE FUNCTION kortyx.open_questions_v1(p_run bigint, p_now bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT i.id FROM kortyx.interrupts AS i
        WHERE i.run = p_run AND i.status = 'pending' AND (i.default_answer IS NOT NULL OR i.expires_at > p_now)
        ORDER BY i.created_at, i.id);
END
$$;

-- Appends a checkpoint to a session, which is created when new; gives its key. `origin` says what it comes from: the run with
-- its open questions, or another session.
CREATE FUNCTION kortyx.append_v1(
    p_session text, p_checkpoint jsonb, p_state bytea, p_now bigint, r kortyx.runs, p_open bigint[], p_origin jsonb
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    s kortyx.sessions;
    head kortyx.checkpoints;
    key bigint;
    has_open boolean := coalesce(cardinality(p_open), 0) > 0;
BEGIN
    INSERT INTO kortyx.sessions (session_id, checkpoints, updated_at) VALUES (p_session, 0, p_now)
    ON CONFLICT (session_id) DO NOTHING;
    SELECT * INTO s FROM kortyx.sessions AS o WHERE o.session_id = p_session FOR UPDATE;
    SELECT c.id, c.checkpoint_id, c.turn_index INTO head.id, head.checkpoint_id, head.turn_index
    FROM kortyx.checkpoints AS c WHERE c.id = s.head;
    INSERT INTO kortyx.checkpoints (
        checkpoint_id, session, session_id, turn_index, created_at, parent, parent_session, forked_from, label, nodes,
        workflow, workflow_version, streams, run_id, pin, context, pairs, answers, is_head, state, snapshot
    ) VALUES (
        p_checkpoint ->> 'id', s.id, p_session, coalesce(head.turn_index + 1, 0), p_now, head.checkpoint_id,
        p_origin ->> 'session', p_origin ->> 'checkpoint', p_checkpoint ->> 'label', p_checkpoint -> 'nodes',
        p_checkpoint ->> 'workflow', p_checkpoint ->> 'version', p_checkpoint -> 'streams', r.run_id,
        CASE WHEN has_open THEN jsonb_build_object(
            'digest', r.pin, 'id', r.workflow_id, 'version', r.workflow_version, 'fingerprint', r.fingerprint) END,
        CASE WHEN has_open THEN r.context END, CASE WHEN has_open THEN r.pairs END,
        CASE WHEN has_open THEN r.absorbed ELSE 0 END, TRUE, p_state, CASE WHEN has_open THEN r.snapshot END
    )
    ON CONFLICT (checkpoint_id) WHERE abandoned_at IS NULL DO NOTHING RETURNING id INTO key;
    IF key IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'KX002', MESSAGE = format('checkpoint %s exists', p_checkpoint ->> 'id');
    END IF;
    UPDATE kortyx.checkpoints AS c SET is_head = FALSE WHERE c.id = head.id;
    UPDATE kortyx.sessions AS o SET head = key, checkpoints = o.checkpoints + 1, updated_at = p_now WHERE o.id = s.id;
    IF has_open THEN
        INSERT INTO kortyx.checkpoint_questions (
            checkpoint, position, request_id, token, ask, workflow, node, question, created_at, expires_at,
            default_answer, optional_cancel, after_response, run_id
        )
        SELECT key, place, i.request_id, i.token, i.ask, i.workflow, i.node, i.question, i.created_at, i.expires_at,
            i.default_answer, i.optional_cancel, i.after_response, r.run_id
        FROM unnest(p_open) WITH ORDINALITY AS open (id, place) JOIN kortyx.interrupts AS i ON i.id = open.id;
    END IF;
    RETURN key;
END
$$;
