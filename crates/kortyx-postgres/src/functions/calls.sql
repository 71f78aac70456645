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

-- The status of a question as a reader sees it: what is past its time has expired, also before somebody says so.
CREATE FUNCTION kortyx.seen_v1(i kortyx.interrupts, p_now bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN i.status = 'pending' AND i.expires_at <= p_now THEN 'expired' ELSE i.status END
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

-- An answer as its driver is told.
CREATE FUNCTION kortyx.told_v1(i kortyx.interrupts) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT json_build_object(
        'seq', i.seq, 'request_id', i.request_id, 'ask', i.ask, 'at', i.answered_at, 'actor', i.actor,
        'by_default', i.status = 'expired')::text
$$;

CREATE FUNCTION kortyx.answers_v1(p_run bigint, p_above bigint, p_upto bigint)
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE sql STABLE AS $$
    SELECT 'answer', kortyx.told_v1(i), i.answer, NULL::bytea, NULL::bytea
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
    key bigint;
    extra jsonb;
    r kortyx.runs;
BEGIN
    tag := 'head';
    data := p_reply -> 0 ->> 2;
    RETURN NEXT;
    FOR place IN 1 .. jsonb_array_length(p_reply) - 1 LOOP
        key := (p_reply -> place ->> 1)::bigint;
        extra := p_reply -> place -> 2;
        CASE p_reply -> place ->> 0
        WHEN 'claim' THEN
            SELECT * INTO r FROM kortyx.runs AS o WHERE o.id = key;
            -- Told again after another driver took over: there is nothing to hand out.
            CONTINUE WHEN NOT FOUND OR r.fence <> (extra ->> 'fence')::bigint OR r.snapshot IS NULL;
            tag := 'claim';
            data := kortyx.run_v1(r, extra);
            IF p_detached AND r.revision IS NOT NULL THEN
                p3 := r.revision;
            ELSE
                p2 := r.snapshot;
            END IF;
            RETURN NEXT;
            p2 := NULL;
            p3 := NULL;
            IF r.has_entries THEN
                RETURN QUERY SELECT 'entry', NULL::text, e.body, NULL::bytea, NULL::bytea
                FROM kortyx.entries AS e WHERE e.run = key ORDER BY e.id;
            END IF;
            RETURN QUERY SELECT * FROM kortyx.answers_v1(key, r.absorbed, r.answers);
        WHEN 'open' THEN
            RETURN QUERY
            SELECT 'open', kortyx.question_v1(i, o, 'pending'), i.question, i.default_answer, NULL::bytea
            FROM kortyx.interrupts AS i JOIN kortyx.runs AS o ON o.id = i.run WHERE i.id = key;
        WHEN 'question' THEN
            RETURN QUERY
            SELECT 'question', kortyx.question_v1(i, o, i.status), i.question, i.default_answer, i.answer
            FROM kortyx.interrupts AS i JOIN kortyx.runs AS o ON o.id = i.run WHERE i.id = key;
        WHEN 'run' THEN
            RETURN QUERY SELECT 'run', kortyx.run_v1(o, NULL), o.outcome, NULL::bytea, NULL::bytea
            FROM kortyx.runs AS o WHERE o.id = key;
        WHEN 'answers' THEN
            RETURN QUERY SELECT * FROM kortyx.answers_v1(key, (extra ->> 'above')::bigint, (extra ->> 'upto')::bigint);
        WHEN 'checkpoint' THEN
            RETURN QUERY SELECT * FROM kortyx.checkpoint_v1(key);
        END CASE;
    END LOOP;
END
$$;

-- Tells listening processes what a head says of work and of driven runs.
CREATE FUNCTION kortyx.notify_v1(p_channel text, p_head jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF (p_head ->> 'work')::boolean THEN
        PERFORM pg_notify(p_channel, 'work');
    END IF;
    IF p_head ? 'attention' THEN
        PERFORM pg_notify(p_channel, 'run ' || value) FROM jsonb_array_elements_text(p_head -> 'attention');
    END IF;
END
$$;

-- Decides over a transition once: whoever brings the same id again is told what was said first. A first attempt that comes
-- after a later one fails, because it cannot keep its reply. Plans that were made when the
-- tables were empty stay good when they are not: every statement has its index.
CREATE FUNCTION kortyx.transit_v1(p_operation text, p_id uuid, p_again boolean, p jsonb, b bytea[])
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    reply jsonb;
BEGIN
    -- The first attempt may still be on its way.
    PERFORM pg_advisory_xact_lock(uuid_hash_extended(p_id, 0));
    IF p_again THEN
        SELECT t.reply INTO reply FROM kortyx.transitions AS t WHERE t.id = p_id;
    END IF;
    IF reply IS NULL THEN
        -- What is asked most comes first, and what is not reached costs nothing.
        IF p_operation = 'suspend' THEN
            reply := kortyx.suspend_v1(p, b);
        ELSIF p_operation = 'answer' THEN
            reply := kortyx.answer_v1(p, b);
        ELSIF p_operation = 'finish' THEN
            reply := kortyx.finish_v1(p, b);
        ELSIF p_operation = 'record' THEN
            reply := kortyx.record_v1(p, b);
        ELSIF p_operation = 'renew' THEN
            reply := kortyx.renew_v1(p);
        ELSE
            reply := CASE p_operation
                WHEN 'open' THEN kortyx.open_v1(p, b)
                WHEN 'park' THEN kortyx.park_v1(p)
                WHEN 'release' THEN kortyx.release_v1(p)
                WHEN 'claim' THEN kortyx.claim_v1(p)
                WHEN 'expire' THEN kortyx.expire_v1(p)
                WHEN 'cancel' THEN kortyx.cancel_v1(p)
                WHEN 'append' THEN kortyx.append_checkpoint_v1(p, b)
                WHEN 'rollback' THEN kortyx.rollback_v1(p)
                WHEN 'fork' THEN kortyx.fork_v1(p)
                WHEN 'prune' THEN kortyx.prune_v1(p)
            END;
        END IF;
        IF (reply -> 0 -> 2 ->> 'w')::boolean THEN
            INSERT INTO kortyx.transitions (id, at, reply) VALUES (p_id, kortyx.now_v1((p ->> 'shift')::bigint), reply);
        END IF;
        IF reply -> 0 -> 2 ?| '{work,attention}' AND p -> 'channel' <> 'null' THEN
            PERFORM kortyx.notify_v1(p ->> 'channel', reply -> 0 -> 2);
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM kortyx.expand_v1(reply, (p ->> 'detached')::boolean);
END
$$;

-- The same where statements carry their values in their text, as they do through a pooler: an error is told as a row, so
-- that the server does not write the statement to its log.
CREATE FUNCTION kortyx.quiet_v1(p_operation text, p_id uuid, p_again boolean, p jsonb, b bytea[])
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM kortyx.transit_v1(p_operation, p_id, p_again, p, b);
EXCEPTION WHEN OTHERS OR query_canceled THEN
    RETURN QUERY SELECT 'error', json_build_object('state', SQLSTATE, 'message', SQLERRM)::text,
        NULL::bytea, NULL::bytea, NULL::bytea;
END
$$;
