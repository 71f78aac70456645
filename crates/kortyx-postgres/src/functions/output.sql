-- What runs say, responses that are complete, and runs that follow a turn. Transitions that bring none of these do not come here.

-- Chunks go with their runs, whoever removes these: programs of the version before know no chunks, and may have no right to
-- them.
CREATE FUNCTION kortyx.forget_chunks_v2() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    DELETE FROM kortyx.chunks AS c WHERE c.run = ANY (ARRAY(SELECT gone.id FROM gone));
    RETURN NULL;
END
$$;

CREATE TRIGGER forget_chunks AFTER DELETE ON kortyx.runs
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION kortyx.forget_chunks_v2();

-- Appends a request's chunks, which are payloads one behind another, to the output of its run: the transition has locked it.
CREATE FUNCTION kortyx.say_v2(p jsonb, b bytea[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    key bigint;
    last bigint;
BEGIN
    SELECT o.id INTO key FROM kortyx.runs AS o
    WHERE o.run_id = coalesce(p -> 'lease' ->> 'run_id', p -> 'run' ->> 'run_id');
    last := coalesce((SELECT c.number FROM kortyx.chunks AS c WHERE c.run = key ORDER BY c.number DESC LIMIT 1), 0);
    INSERT INTO kortyx.chunks (run, number, body)
    SELECT key, last + place, chunk
    FROM unnest(b[(p -> 'chunks' ->> 0)::integer:(p -> 'chunks' ->> 1)::integer]) WITH ORDINALITY AS said (chunk, place);
END
$$;

-- Completes the response of a run that the transition has locked, which goes on beside its session: the checkpoint has none
-- of its questions. Where there is a checkpoint, the session was locked before the run.
CREATE FUNCTION kortyx.respond_v2(p jsonb, b bytea[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    now bigint := kortyx.now_v1((p ->> 'shift')::bigint);
    c jsonb := nullif(p -> 'response' -> 'checkpoint', 'null');
BEGIN
    UPDATE kortyx.runs AS o SET response = b[(p -> 'response' ->> 'outcome')::integer], updated_at = now
    WHERE o.run_id = p -> 'lease' ->> 'run_id' AND o.response IS NULL
    RETURNING * INTO r;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'KX003', MESSAGE = 'the run''s response is complete';
    END IF;
    IF c IS NOT NULL THEN
        PERFORM kortyx.append_v1(r.session_id, c, b[(c ->> 'state')::integer], now, r, NULL, NULL);
    END IF;
END
$$;

-- Refuses a new run that follows a turn which was taken back: its session has one as early, and not this one. The session stays
-- locked, as for whoever takes it back.
CREATE FUNCTION kortyx.check_follows_v2(p_run jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM kortyx.lock_session_v1(p_run ->> 'session_id');
    PERFORM 1 FROM kortyx.checkpoints AS c
    WHERE c.checkpoint_id = p_run #>> '{follows,id}' AND c.session_id = p_run ->> 'session_id' AND c.abandoned_at IS NULL;
    IF FOUND THEN
        RETURN;
    END IF;
    PERFORM 1 FROM kortyx.sessions AS s JOIN kortyx.checkpoints AS c ON c.session = s.id
    WHERE s.session_id = p_run ->> 'session_id' AND c.turn_index <= (p_run #>> '{follows,turn}')::bigint
        AND c.abandoned_at IS NULL;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'KX005', MESSAGE = 'the turn that the run follows was taken back';
    END IF;
END
$$;

-- The transitions that bring chunks, a response or a run that follows a turn, decided over once as by `transit_v1`. None of them
-- tells listening processes anything.
CREATE FUNCTION kortyx.transit_v2(p_operation text, p_id uuid, p_again boolean, p jsonb, b bytea[])
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    reply jsonb;
BEGIN
    PERFORM pg_advisory_xact_lock(uuid_hash_extended(p_id, 0));
    IF p_again THEN
        SELECT t.reply INTO reply FROM kortyx.transitions AS t WHERE t.id = p_id;
    END IF;
    IF reply IS NULL THEN
        IF p #> '{run,follows}' IS NOT NULL THEN
            PERFORM kortyx.check_follows_v2(p -> 'run');
        END IF;
        CASE p_operation
        WHEN 'open' THEN
            reply := kortyx.open_v1(p, b);
        WHEN 'record' THEN
            IF p #>> '{response,checkpoint}' IS NOT NULL THEN
                PERFORM kortyx.held_v1(p -> 'lease', TRUE);
            END IF;
            reply := kortyx.record_v1(p, b);
            IF p ? 'response' THEN
                PERFORM kortyx.respond_v2(p, b);
            END IF;
        WHEN 'suspend' THEN
            reply := kortyx.suspend_v1(p, b);
        WHEN 'finish' THEN
            reply := kortyx.finish_v1(p, b);
        END CASE;
        IF reply #>> '{0,2,kind}' IS DISTINCT FROM 'answered' THEN
            IF p ? 'chunks' THEN
                PERFORM kortyx.say_v2(p, b);
            END IF;
            INSERT INTO kortyx.transitions (id, at, reply) VALUES (p_id, kortyx.now_v1((p ->> 'shift')::bigint), reply);
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM kortyx.expand_v1(reply, FALSE);
END
$$;

-- The same through a pooler, as `quiet_v1`.
CREATE FUNCTION kortyx.quiet_v2(p_operation text, p_id uuid, p_again boolean, p jsonb, b bytea[])
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM kortyx.transit_v2(p_operation, p_id, p_again, p, b);
EXCEPTION WHEN OTHERS OR query_canceled THEN
    RETURN QUERY SELECT 'error', json_build_object('state', SQLSTATE, 'message', SQLERRM)::text,
        NULL::bytea, NULL::bytea, NULL::bytea;
END
$$;

-- Reads a run, or a piece of its output, from one moment; no row where there is no such run.
CREATE FUNCTION kortyx.read_v2(p_operation text, p jsonb)
RETURNS TABLE (tag text, data text, p1 bytea, p2 bytea, p3 bytea)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET jit = off AS $$
DECLARE
    key bigint;
    status text;
    is_responded boolean;
    last bigint;
BEGIN
    CASE p_operation
    WHEN 'run' THEN
        RETURN QUERY SELECT 'run', kortyx.run_v1(o, NULL), o.outcome, o.response, NULL::bytea
        FROM kortyx.runs AS o WHERE o.run_id = p ->> 'id';
    WHEN 'chunks' THEN
        SELECT o.id, o.status, o.response IS NOT NULL INTO key, status, is_responded FROM kortyx.runs AS o WHERE o.run_id = p ->> 'id';
        IF NOT FOUND THEN
            RETURN;
        END IF;
        last := coalesce((SELECT c.number FROM kortyx.chunks AS c WHERE c.run = key ORDER BY c.number DESC LIMIT 1), 0);
        tag := 'head';
        data := json_build_object('status', status, 'last', last, 'responded', is_responded)::text;
        RETURN NEXT;
        RETURN QUERY SELECT 'chunk', NULL::text, c.body, NULL::bytea, NULL::bytea
        FROM kortyx.chunks AS c WHERE c.run = key AND c.number > (p ->> 'after')::bigint
        ORDER BY c.number LIMIT (p ->> 'limit')::bigint;
    END CASE;
END
$$;
