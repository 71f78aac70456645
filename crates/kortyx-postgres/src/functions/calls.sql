-- How a store calls: one function for transitions, one for reading. Both give rows: the head, then what it refers to.

CREATE FUNCTION kortyx.question_v1(i kortyx.interrupts, r kortyx.runs, p_status text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT json_build_object(
        'request_id', i.request_id, 'run_id', r.run_id, 'session_id', i.session_id, 'context', r.context,
        'token', i.token, 'ask', i.ask, 'workflow', i.workflow, 'node', i.node, 'created_at', i.created_at,
        'expires_at', i.expires_at, 'status', p_status, 'optional_cancel', i.optional_cancel,
        'after_response', i.after_response, 'seq', CASE WHEN p_status <> 'pending' THEN i.seq END,
        'answered_at', i.answered_at, 'actor', i.actor)::text
$$;

-- A run; as it was when its lease was granted, where `lease` says so.
CREATE FUNCTION kortyx.run_v1(r kortyx.runs, lease jsonb) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT json_build_object(
        'run_id', r.run_id, 'session_id', r.session_id, 'workflow_id', r.workflow_id,
        'workflow_version', r.workflow_version, 'fingerprint', r.fingerprint, 'context', r.context, 'status', r.status,
        'created_at', r.created_at, 'updated_at', r.updated_at, 'fence', r.fence,
        'lease_until', coalesce((lease ->> 'until')::bigint, r.lease_until), 'answers', r.answers,
        'cancel_requested', r.cancel_requested, 'reason', r.reason)::text
$$;

CREATE FUNCTION kortyx.answers_v1(p_run bigint, p_above bigint, p_upto bigint)
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE sql STABLE AS $$
    SELECT 'answer', json_build_object(
            'seq', i.seq, 'request_id', i.request_id, 'ask', i.ask, 'at', i.answered_at, 'actor', i.actor,
            'by_default', i.status = 'expired')::text, i.answer, NULL::bytea, NULL::bytea
    FROM kortyx.interrupts AS i
    WHERE i.run = p_run AND i.seq > p_above AND i.seq <= p_upto AND i.status IN ('answered', 'expired')
    ORDER BY i.seq
$$;

CREATE FUNCTION kortyx.checkpoint_v1(p_key bigint)
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT 'checkpoint', json_build_object(
            'id', c.checkpoint_id, 'session_id', c.session_id, 'turn_index', c.turn_index, 'created_at', c.created_at,
            'abandoned', c.abandoned_at IS NOT NULL, 'parent', c.parent, 'parent_session', c.parent_session,
            'forked_from', c.forked_from, 'label', c.label, 'nodes', c.nodes, 'workflow', c.workflow,
            'version', c.workflow_version, 'streams', c.streams, 'run_id', c.run_id)::text, c.state, c.snapshot, NULL::bytea
    FROM kortyx.checkpoints AS c WHERE c.id = p_key;
    RETURN QUERY SELECT 'asked', json_build_object(
            'request_id', q.request_id, 'run_id', q.run_id, 'session_id', c.session_id, 'context', c.context,
            'token', q.token, 'ask', q.ask, 'workflow', q.workflow, 'node', q.node, 'created_at', q.created_at,
            'expires_at', q.expires_at, 'status', 'pending', 'optional_cancel', q.optional_cancel,
            'after_response', q.after_response)::text, q.question, q.default_answer, NULL::bytea
    FROM kortyx.checkpoint_questions AS q JOIN kortyx.checkpoints AS c ON c.id = q.checkpoint
    WHERE q.checkpoint = p_key ORDER BY q.position;
END
$$;

-- The rows that a reply refers to. A snapshot with a revision stays behind where that is wanted: its row has the revision then.
CREATE FUNCTION kortyx.expand_v1(p_reply jsonb, p_detached boolean)
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    ref jsonb;
    key bigint;
    extra jsonb;
    r kortyx.runs;
BEGIN
    FOR ref IN SELECT value FROM jsonb_array_elements(p_reply) LOOP
        key := (ref ->> 1)::bigint;
        extra := ref -> 2;
        CASE ref ->> 0
        WHEN 'head' THEN
            RETURN QUERY SELECT 'head', extra::text, NULL::bytea, NULL::bytea, NULL::bytea;
        WHEN 'open' THEN
            RETURN QUERY
            SELECT 'open', kortyx.question_v1(i, o, 'pending'), i.question, i.default_answer, NULL::bytea
            FROM kortyx.interrupts AS i JOIN kortyx.runs AS o ON o.id = i.run WHERE i.id = key;
        WHEN 'question' THEN
            RETURN QUERY
            SELECT 'question', kortyx.question_v1(i, o, CASE
                    WHEN i.status = 'pending' AND i.expires_at <= (extra ->> 'now')::bigint THEN 'expired' ELSE i.status
                END), i.question, i.default_answer, i.answer
            FROM kortyx.interrupts AS i JOIN kortyx.runs AS o ON o.id = i.run WHERE i.id = key;
        WHEN 'run' THEN
            RETURN QUERY SELECT 'run', kortyx.run_v1(o, NULL), o.outcome, NULL::bytea, NULL::bytea
            FROM kortyx.runs AS o WHERE o.id = key;
        WHEN 'answers' THEN
            RETURN QUERY SELECT * FROM kortyx.answers_v1(key, (extra ->> 'above')::bigint, (extra ->> 'upto')::bigint);
        WHEN 'checkpoint' THEN
            RETURN QUERY SELECT * FROM kortyx.checkpoint_v1(key);
        WHEN 'claim' THEN
            SELECT * INTO r FROM kortyx.runs AS o WHERE o.id = key;
            -- Told again after another driver took over: there is nothing to hand out.
            CONTINUE WHEN NOT FOUND OR r.fence <> (extra ->> 'fence')::bigint OR r.snapshot IS NULL;
            IF p_detached AND r.revision IS NOT NULL THEN
                RETURN QUERY SELECT 'claim', kortyx.run_v1(r, extra), r.outcome, NULL::bytea, r.revision;
            ELSE
                RETURN QUERY SELECT 'claim', kortyx.run_v1(r, extra), r.outcome, r.snapshot, NULL::bytea;
            END IF;
            IF r.has_entries THEN
                RETURN QUERY SELECT 'entry', NULL::text, e.body, NULL::bytea, NULL::bytea
                FROM kortyx.entries AS e WHERE e.run = key ORDER BY e.id;
            END IF;
            RETURN QUERY SELECT * FROM kortyx.answers_v1(key, r.absorbed, r.answers);
        END CASE;
    END LOOP;
END
$$;

-- Decides over a transition once: whoever brings the same id again is told what was said first. Plans that were made when the
-- tables were empty stay good when they are not: every statement has its index.
CREATE FUNCTION kortyx.transit_v1(p_operation text, p_id uuid, p jsonb, b bytea[])
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    reply jsonb;
    head jsonb;
BEGIN
    -- The first attempt may still be on its way.
    PERFORM pg_advisory_xact_lock(hashtextextended(p_id::text, 0));
    SELECT t.reply INTO reply FROM kortyx.transitions AS t WHERE t.id = p_id;
    IF NOT FOUND THEN
        reply := CASE p_operation
            WHEN 'open' THEN kortyx.open_v1(p, b)
            WHEN 'record' THEN kortyx.record_v1(p, b)
            WHEN 'suspend' THEN kortyx.suspend_v1(p, b)
            WHEN 'answer' THEN kortyx.answer_v1(p, b)
            WHEN 'finish' THEN kortyx.finish_v1(p, b)
            WHEN 'park' THEN kortyx.park_v1(p)
            WHEN 'renew' THEN kortyx.renew_v1(p)
            WHEN 'release' THEN kortyx.release_v1(p)
            WHEN 'claim' THEN kortyx.claim_v1(p)
            WHEN 'expire' THEN kortyx.expire_v1(p)
            WHEN 'cancel' THEN kortyx.cancel_v1(p)
            WHEN 'append' THEN kortyx.append_checkpoint_v1(p, b)
            WHEN 'rollback' THEN kortyx.rollback_v1(p)
            WHEN 'fork' THEN kortyx.fork_v1(p)
            WHEN 'prune' THEN kortyx.prune_v1(p)
        END;
        head := reply -> 0 -> 2;
        IF (head ->> 'w')::boolean THEN
            INSERT INTO kortyx.transitions (id, at, reply) VALUES (p_id, kortyx.now_v1((p ->> 'shift')::bigint), reply);
        END IF;
        IF p -> 'channel' <> 'null' THEN
            IF (head ->> 'work')::boolean THEN
                PERFORM pg_notify(p ->> 'channel', 'work');
            END IF;
            IF head ? 'attention' THEN
                PERFORM pg_notify(p ->> 'channel', 'run ' || value) FROM jsonb_array_elements_text(head -> 'attention');
            END IF;
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM kortyx.expand_v1(reply, (p ->> 'detached')::boolean);
END
$$;

-- The same where statements carry their values in their text, as they do through a pooler: an error is told as a row, so
-- that the server does not write the statement to its log.
CREATE FUNCTION kortyx.quiet_v1(p_operation text, p_id uuid, p jsonb, b bytea[])
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM kortyx.transit_v1(p_operation, p_id, p, b);
EXCEPTION WHEN OTHERS OR query_canceled THEN
    RETURN QUERY SELECT 'error', json_build_object('state', SQLSTATE, 'message', SQLERRM)::text,
        NULL::bytea, NULL::bytea, NULL::bytea;
END
$$;
