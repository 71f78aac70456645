-- Transitions of sessions: appending, going back, starting another from a checkpoint.

CREATE FUNCTION kortyx.append_checkpoint_v1(p jsonb, b bytea[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    c jsonb := p -> 'checkpoint';
    now bigint;
    key bigint;
BEGIN
    PERFORM kortyx.lock_session_v1(p ->> 'session_id');
    now := kortyx.now_v1((p ->> 'shift')::bigint);
    key := kortyx.append_v1(p ->> 'session_id', c, b[(c ->> 'state')::integer], now, NULL, NULL, NULL);
    RETURN jsonb_build_array(
        jsonb_build_array('head', NULL, jsonb_build_object('w', TRUE)), jsonb_build_array('checkpoint', key));
END
$$;

-- Why a checkpoint's open questions cannot be opened again under these ids, as the head of a reply; nothing when they can.
CREATE FUNCTION kortyx.obstacle_v1(p_checkpoint bigint, p_reissue jsonb, p_now bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    expired text;
    asked bigint;
    matched bigint;
BEGIN
    SELECT q.request_id INTO expired FROM kortyx.checkpoint_questions AS q
    WHERE q.checkpoint = p_checkpoint AND q.expires_at <= p_now ORDER BY q.position LIMIT 1;
    IF FOUND THEN
        RETURN jsonb_build_object('w', FALSE, 'kind', 'expired', 'request_id', expired);
    END IF;
    SELECT count(*), count(*) FILTER (WHERE EXISTS (
        SELECT 1 FROM jsonb_array_elements(p_reissue) AS n (value) WHERE n.value ->> 'from' = q.request_id))
    INTO asked, matched
    FROM kortyx.checkpoint_questions AS q WHERE q.checkpoint = p_checkpoint;
    IF asked <> matched OR asked <> jsonb_array_length(p_reissue) THEN
        RETURN jsonb_build_object('w', FALSE, 'kind', 'mismatched');
    END IF;
    RETURN NULL;
END
$$;

-- Opens a checkpoint's questions again, in a new run that waits for them; gives that run, or nothing when there are none.
CREATE FUNCTION kortyx.reopen_v1(
    c kortyx.checkpoints, p_run_id text, p_session text, p_reissue jsonb, p_now bigint
) RETURNS kortyx.runs
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    added bigint;
BEGIN
    IF jsonb_array_length(p_reissue) = 0 THEN
        RETURN NULL;
    END IF;
    IF c.snapshot IS NULL OR c.pin IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'KX004', MESSAGE = 'a checkpoint with open questions has no snapshot';
    END IF;
    r := kortyx.add_run_v1(
        jsonb_build_object('run_id', p_run_id, 'session_id', p_session, 'context', c.context, 'pairs', c.pairs::text),
        c.pin, 'suspended', p_now, c.answers, c.snapshot, NULL, NULL);
    INSERT INTO kortyx.interrupts (
        request_id, run, session_id, token, ask, workflow, node, question, created_at, expires_at, status, default_answer,
        optional_cancel, after_response
    )
    SELECT n.value ->> 'request_id', r.id, p_session, n.value ->> 'token', q.ask, q.workflow, q.node, q.question, p_now,
        q.expires_at, 'pending', q.default_answer, q.optional_cancel, q.after_response
    FROM kortyx.checkpoint_questions AS q
        JOIN jsonb_array_elements(p_reissue) AS n (value) ON n.value ->> 'from' = q.request_id
    WHERE q.checkpoint = c.id
    ORDER BY q.position
    ON CONFLICT (request_id) DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    IF added < jsonb_array_length(p_reissue) THEN
        RAISE EXCEPTION USING ERRCODE = 'KX002', MESSAGE = 'a question with the id of a new one exists';
    END IF;
    INSERT INTO kortyx.pending_context (pair, created_at, interrupt)
    SELECT pair, i.created_at, i.id FROM kortyx.interrupts AS i, unnest(r.pairs) AS pair WHERE i.run = r.id;
    RETURN r;
END
$$;

CREATE FUNCTION kortyx.pending_v1(p_run bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT i.id FROM kortyx.interrupts AS i
        WHERE i.run = p_run AND i.status = 'pending' ORDER BY i.created_at, i.id);
END
$$;

CREATE FUNCTION kortyx.rollback_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    c kortyx.checkpoints;
    r kortyx.runs;
    now bigint;
    active bigint[];
    head jsonb;
    keys bigint[];
    refs jsonb := '[]';
    gone jsonb;
BEGIN
    PERFORM kortyx.lock_session_v1((
        SELECT o.session_id FROM kortyx.checkpoints AS o
        WHERE o.checkpoint_id = p ->> 'checkpoint_id' AND o.abandoned_at IS NULL));
    SELECT * INTO c FROM kortyx.checkpoints AS o WHERE o.checkpoint_id = p ->> 'checkpoint_id' AND o.abandoned_at IS NULL;
    IF NOT FOUND THEN
        RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object('w', FALSE, 'kind', 'unknown')));
    END IF;
    SELECT array_agg(id) INTO active FROM (
        SELECT o.id FROM kortyx.runs AS o
        WHERE o.session_id = c.session_id AND o.status IN ('running', 'suspended', 'parked')
        ORDER BY o.id FOR UPDATE) AS held;
    now := kortyx.now_v1((p ->> 'shift')::bigint);
    IF c.is_head THEN
        FOR r IN SELECT * FROM kortyx.runs AS o WHERE o.id = ANY (active) ORDER BY o.id LOOP
            refs := refs || kortyx.refs_v1('open', kortyx.open_questions_v1(r.id, now));
        END LOOP;
        RETURN jsonb_build_array(
            jsonb_build_array('head', NULL, jsonb_build_object('w', FALSE, 'kind', 'done')),
            jsonb_build_array('checkpoint', c.id)) || refs;
    END IF;
    SELECT * INTO r FROM kortyx.runs AS o
    WHERE o.id = ANY (active) AND o.status = 'running' AND o.lease_until > now ORDER BY o.id LIMIT 1;
    IF FOUND THEN
        RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
            'w', FALSE, 'kind', 'driven', 'run_id', r.run_id)));
    END IF;
    head := kortyx.obstacle_v1(c.id, p -> 'reissue', now);
    IF head IS NOT NULL THEN
        RETURN jsonb_build_array(jsonb_build_array('head', NULL, head));
    END IF;
    FOR r IN SELECT * FROM kortyx.runs AS o WHERE o.id = ANY (active) ORDER BY o.id LOOP
        keys := kortyx.pending_v1(r.id);
        PERFORM kortyx.end_v1(r, 'cancelled', 'superseded', now, 'its session was rolled back', NULL);
        keys := ARRAY(SELECT i.id FROM kortyx.interrupts AS i
            WHERE i.id = ANY (keys) AND i.status = 'superseded' ORDER BY i.created_at, i.id);
        refs := refs || kortyx.refs_v1('question', keys);
    END LOOP;
    WITH abandoned AS (
        UPDATE kortyx.checkpoints AS o SET abandoned_at = now, is_head = FALSE
        WHERE o.session = c.session AND o.turn_index > c.turn_index AND o.abandoned_at IS NULL
        RETURNING o.id, o.turn_index
    )
    SELECT coalesce(jsonb_agg(jsonb_build_array('checkpoint', id) ORDER BY turn_index DESC), '[]') INTO gone FROM abandoned;
    UPDATE kortyx.checkpoints AS o SET is_head = TRUE WHERE o.id = c.id;
    UPDATE kortyx.sessions AS s SET head = c.id, checkpoints = s.checkpoints - jsonb_array_length(gone), updated_at = now
    WHERE s.id = c.session;
    r := kortyx.reopen_v1(c, p ->> 'new_run_id', c.session_id, p -> 'reissue', now);
    RETURN jsonb_build_array(
        jsonb_build_array('head', NULL, jsonb_build_object('w', TRUE, 'kind', 'done')),
        jsonb_build_array('checkpoint', c.id)) || gone || refs || kortyx.refs_v1('open', kortyx.pending_v1(r.id));
END
$$;

CREATE FUNCTION kortyx.fork_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    c kortyx.checkpoints;
    r kortyx.runs;
    s kortyx.sessions;
    now bigint;
    head jsonb;
    keys bigint[];
    key bigint;
    exists_already jsonb := jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object('w', FALSE, 'kind', 'exists')));
BEGIN
    SELECT * INTO c FROM kortyx.checkpoints AS o
    WHERE o.checkpoint_id = p ->> 'checkpoint_id' AND o.abandoned_at IS NULL FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object('w', FALSE, 'kind', 'unknown')));
    END IF;
    -- A session exists while it has checkpoints or runs.
    IF EXISTS (SELECT 1 FROM kortyx.runs AS o WHERE o.session_id = p ->> 'new_session_id')
        OR EXISTS (SELECT 1 FROM kortyx.sessions AS o WHERE o.session_id = p ->> 'new_session_id' AND o.checkpoints > 0)
    THEN
        RETURN exists_already;
    END IF;
    now := kortyx.now_v1((p ->> 'shift')::bigint);
    head := kortyx.obstacle_v1(c.id, p -> 'reissue', now);
    IF head IS NOT NULL THEN
        RETURN jsonb_build_array(jsonb_build_array('head', NULL, head));
    END IF;
    INSERT INTO kortyx.sessions (session_id, checkpoints, updated_at) VALUES (p ->> 'new_session_id', 0, now)
    ON CONFLICT (session_id) DO NOTHING;
    SELECT * INTO s FROM kortyx.sessions AS o WHERE o.session_id = p ->> 'new_session_id' FOR UPDATE;
    IF s.checkpoints > 0 THEN
        RETURN exists_already;
    END IF;
    r := kortyx.reopen_v1(c, p ->> 'new_run_id', p ->> 'new_session_id', p -> 'reissue', now);
    keys := kortyx.pending_v1(r.id);
    key := kortyx.append_v1(
        p ->> 'new_session_id',
        jsonb_build_object('id', p ->> 'new_checkpoint_id', 'label', c.label, 'nodes', c.nodes, 'workflow', c.workflow,
            'version', c.workflow_version, 'streams', c.streams),
        c.state, now, r, keys, jsonb_build_object('session', c.session_id, 'checkpoint', c.checkpoint_id));
    RETURN jsonb_build_array(
        jsonb_build_array('head', NULL, jsonb_build_object('w', TRUE, 'kind', 'done')),
        jsonb_build_array('checkpoint', key)) || kortyx.refs_v1('open', keys);
END
$$;
