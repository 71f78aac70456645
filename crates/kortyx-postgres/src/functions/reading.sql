-- Reading, each from one moment.

-- A page of open questions, through the index with the fewest: by run, by session or by an entry of the context.
CREATE FUNCTION kortyx.page_v1(p jsonb, p_now bigint, p_limit integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    session text := p ->> 'session_id';
    scope jsonb := p -> 'context';
    flag boolean := (p ->> 'after_response')::boolean;
    after_at bigint := (p ->> 'after_at')::bigint;
    after_key bigint := (p ->> 'after_key')::bigint;
    pairs uuid[] := p ->> 'pairs';
    chosen uuid;
    other uuid;
    fewest bigint := 1000;
    number bigint;
    owner bigint;
BEGIN
    IF p -> 'run_id' <> 'null' THEN
        SELECT o.id INTO owner FROM kortyx.runs AS o
        WHERE o.run_id = p ->> 'run_id' AND coalesce(o.session_id = session, TRUE) AND o.context @> scope;
        RETURN ARRAY(SELECT i.id FROM kortyx.interrupts AS i
            WHERE i.run = owner AND i.status = 'pending' AND (i.created_at, i.id) > (after_at, after_key)
                AND i.expires_at > p_now AND coalesce(i.after_response = flag, TRUE)
            ORDER BY i.created_at, i.id LIMIT p_limit);
    END IF;
    IF session IS NOT NULL AND cardinality(pairs) > 0 THEN
        SELECT count(*) INTO fewest FROM (
            SELECT 1 FROM kortyx.interrupts AS i
            WHERE i.session_id = session AND i.status = 'pending' AND i.created_at >= after_at LIMIT 1000) AS probe;
    ELSIF cardinality(pairs) > 0 THEN
        chosen := pairs[1];
    END IF;
    IF session IS NOT NULL OR cardinality(pairs) > 1 THEN
        FOREACH other IN ARRAY pairs LOOP
            SELECT count(*) INTO number FROM (
                SELECT 1 FROM kortyx.pending_context AS c
                WHERE c.pair = other AND c.created_at >= after_at LIMIT fewest) AS probe;
            IF number < fewest THEN
                fewest := number;
                chosen := other;
            END IF;
        END LOOP;
    END IF;
    IF chosen IS NULL THEN
        RETURN ARRAY(SELECT i.id FROM kortyx.interrupts AS i
            WHERE i.session_id = session AND i.status = 'pending' AND (i.created_at, i.id) > (after_at, after_key)
                AND i.expires_at > p_now AND coalesce(i.after_response = flag, TRUE)
                AND (scope = '{}' OR EXISTS (SELECT 1 FROM kortyx.runs AS o WHERE o.id = i.run AND o.context @> scope))
            ORDER BY i.created_at, i.id LIMIT p_limit);
    END IF;
    RETURN ARRAY(SELECT c.interrupt FROM kortyx.pending_context AS c
            JOIN kortyx.interrupts AS i ON i.id = c.interrupt
            JOIN kortyx.runs AS o ON o.id = i.run
        WHERE c.pair = chosen AND (c.created_at, c.interrupt) > (after_at, after_key)
            AND i.status = 'pending' AND i.expires_at > p_now AND coalesce(i.after_response = flag, TRUE)
            AND coalesce(i.session_id = session, TRUE) AND o.context @> scope
        ORDER BY c.created_at, c.interrupt LIMIT p_limit);
END
$$;

CREATE FUNCTION kortyx.read_v1(p_operation text, p jsonb)
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET jit = off AS $$
DECLARE
    now bigint := kortyx.now_v1((p ->> 'shift')::bigint);
    reply jsonb := '[]';
    keys bigint[];
    room integer;
    next jsonb;
BEGIN
    CASE p_operation
    WHEN 'now' THEN
        NULL;
    WHEN 'run' THEN
        keys := ARRAY(SELECT o.id FROM kortyx.runs AS o WHERE o.run_id = p ->> 'id');
        reply := kortyx.refs_v1('run', keys);
    WHEN 'snapshots' THEN
        RETURN QUERY
        SELECT 'snapshot', json_build_object('run_id', o.run_id)::text, o.snapshot, NULL::bytea, NULL::bytea
        FROM jsonb_array_elements(p -> 'leases') AS held (lease)
            JOIN kortyx.runs AS o ON o.run_id = held.lease ->> 'run_id' AND o.fence = (held.lease ->> 'fence')::bigint
        WHERE o.snapshot IS NOT NULL;
        RETURN;
    WHEN 'interrupt' THEN
        tag := 'head';
        data := json_build_object('now', now)::text;
        RETURN NEXT;
        RETURN QUERY
        SELECT 'question', kortyx.question_v1(i, o, kortyx.seen_v1(i, now)), i.question, i.default_answer, i.answer
        FROM kortyx.interrupts AS i JOIN kortyx.runs AS o ON o.id = i.run WHERE i.request_id = p ->> 'id';
        RETURN;
    WHEN 'list' THEN
        room := (p ->> 'limit')::integer;
        keys := kortyx.page_v1(p, now, room + 1);
        IF cardinality(keys) > room THEN
            SELECT jsonb_build_array(i.created_at, i.id) INTO next FROM kortyx.interrupts AS i WHERE i.id = keys[room];
        END IF;
        reply := kortyx.refs_v1('open', keys[:room]);
    WHEN 'head' THEN
        keys := ARRAY(SELECT s.head FROM kortyx.sessions AS s WHERE s.session_id = p ->> 'id' AND s.head IS NOT NULL);
        reply := kortyx.refs_v1('checkpoint', keys);
    WHEN 'checkpoints' THEN
        keys := ARRAY(SELECT c.id FROM kortyx.sessions AS s JOIN kortyx.checkpoints AS c ON c.session = s.id
            WHERE s.session_id = p ->> 'id' AND c.abandoned_at IS NULL ORDER BY c.turn_index);
        reply := kortyx.refs_v1('checkpoint', keys);
    WHEN 'checkpoint' THEN
        keys := ARRAY(SELECT c.id FROM kortyx.checkpoints AS c
            WHERE c.checkpoint_id = p ->> 'id' AND c.abandoned_at IS NULL);
        reply := kortyx.refs_v1('checkpoint', keys);
    END CASE;
    reply := jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object('now', now, 'next', next))) || reply;
    RETURN QUERY SELECT * FROM kortyx.expand_v1(reply, FALSE);
END
$$;
