-- Transitions of many runs. Rows that somebody else holds are passed over where somebody else will see to them.

CREATE FUNCTION kortyx.claim_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    now bigint := kortyx.now_v1((p ->> 'shift')::bigint);
    room integer := least((p ->> 'limit')::bigint, 1000);
    pins uuid[] := ARRAY(SELECT value::uuid FROM jsonb_array_elements_text(p -> 'pins'));
    wrote boolean := FALSE;
    claims jsonb := '[]';
BEGIN
    -- Runs that were asked to stop and whose driver died before it did.
    FOR r IN
        SELECT * FROM kortyx.runs AS o WHERE o.status = 'running' AND o.cancel_requested AND o.lease_until <= now
        ORDER BY o.lease_until LIMIT 100 FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM kortyx.end_v1(r, 'cancelled', 'cancelled', now, NULL, NULL);
        wrote := TRUE;
    END LOOP;
    IF room > 0 THEN
        -- For each definition the oldest orphans, and of all these the oldest.
        FOR r IN
            SELECT found.* FROM unnest(pins) AS wanted (pin) CROSS JOIN LATERAL (
                SELECT * FROM kortyx.runs AS o
                WHERE o.pin = wanted.pin AND o.status = 'running' AND o.lease_until <= now AND NOT o.cancel_requested
                ORDER BY o.lease_until, o.updated_at LIMIT room FOR UPDATE SKIP LOCKED
            ) AS found
            ORDER BY found.lease_until, found.updated_at, found.id LIMIT room
        LOOP
            claims := claims || jsonb_build_array(kortyx.grant_v1(r, p -> 'driver', now));
        END LOOP;
        room := room - jsonb_array_length(claims);
    END IF;
    IF room > 0 AND p -> 'parked_before' <> 'null' THEN
        FOR r IN
            SELECT found.* FROM unnest(pins) AS wanted (pin) CROSS JOIN LATERAL (
                SELECT * FROM kortyx.runs AS o
                WHERE o.pin = wanted.pin AND o.status = 'parked' AND o.updated_at < (p ->> 'parked_before')::bigint
                ORDER BY o.updated_at LIMIT room FOR UPDATE SKIP LOCKED
            ) AS found
            ORDER BY found.updated_at, found.id LIMIT room
        LOOP
            claims := claims || jsonb_build_array(kortyx.grant_v1(r, p -> 'driver', now));
        END LOOP;
    END IF;
    RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
        'w', wrote OR jsonb_array_length(claims) > 0))) || claims;
END
$$;

-- Closes questions of a locked run that are due; defaults become answers. Gives the run with its answers counted.
CREATE FUNCTION kortyx.expire_run_v1(r kortyx.runs, p_keys bigint[], p_now bigint, OUT run kortyx.runs, OUT closed bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    WITH due AS (
        SELECT i.id, CASE WHEN i.default_answer IS NOT NULL THEN
            r.answers + count(i.default_answer) OVER (ORDER BY i.expires_at, i.id) END AS place
        FROM kortyx.interrupts AS i
        WHERE i.id = ANY (p_keys) AND i.run = r.id AND i.status = 'pending' AND i.expires_at <= p_now
    ), done AS (
        UPDATE kortyx.interrupts AS i
        SET status = 'expired', answer = i.default_answer, seq = due.place,
            answered_at = CASE WHEN due.place IS NOT NULL THEN p_now END
        FROM due WHERE i.id = due.id
        RETURNING i.id, i.seq
    )
    SELECT array_agg(id), greatest(max(seq), r.answers) INTO closed, r.answers FROM done;
    PERFORM kortyx.forget_v1(r, closed);
    run := r;
END
$$;

CREATE FUNCTION kortyx.expire_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    now bigint := kortyx.now_v1((p ->> 'shift')::bigint);
    room integer := least((p ->> 'limit')::bigint, 1000);
    pins uuid[] := ARRAY(SELECT value::uuid FROM jsonb_array_elements_text(p -> 'pins'));
    due bigint[];
    owners bigint[];
    locked bigint[];
    here bigint[];
    closed bigint[] := '{}';
    counted bigint;
    done record;
    ended jsonb := '[]';
    attention jsonb := '[]';
    claims jsonb := '[]';
    more boolean;
    work boolean := FALSE;
BEGIN
    SELECT array_agg(id), array_agg(run) INTO due, owners FROM (
        SELECT i.id, i.run FROM kortyx.interrupts AS i WHERE i.status = 'pending' AND i.expires_at <= now
        ORDER BY i.expires_at, i.id LIMIT room + 1
    ) AS found;
    more := coalesce(cardinality(due), 0) > room;
    due := due[:room];
    owners := owners[:room];
    SELECT array_agg(id) INTO locked FROM (
        SELECT o.id FROM kortyx.runs AS o WHERE o.id = ANY (owners) ORDER BY o.id FOR UPDATE SKIP LOCKED) AS free;
    IF locked IS NULL AND cardinality(due) > 0 THEN
        -- Somebody is at work on every one of them; what they leave is still due.
        SELECT array_agg(id) INTO locked FROM (
            SELECT o.id FROM kortyx.runs AS o WHERE o.id = ANY (owners) ORDER BY o.id FOR UPDATE) AS waited;
    END IF;
    FOR r IN SELECT * FROM kortyx.runs AS o WHERE o.id = ANY (locked) ORDER BY o.id LOOP
        counted := r.answers;
        SELECT e.run, e.closed INTO done FROM kortyx.expire_run_v1(r, due, now) AS e;
        here := done.closed;
        CONTINUE WHEN here IS NULL;
        r := done.run;
        closed := closed || here;
        -- Its row changes with its questions in any case: who has read both can tell.
        UPDATE kortyx.runs AS o
        SET answers = r.answers, updated_at = CASE WHEN r.answers > counted THEN now ELSE o.updated_at END
        WHERE o.id = r.id;
        IF r.status = 'running' AND r.lease_until > now THEN
            IF r.answers > counted THEN
                attention := attention || jsonb_build_array(r.run_id);
            END IF;
        ELSIF r.answers > r.absorbed THEN
            IF r.answers > counted AND r.status <> 'parked' AND NOT r.cancel_requested THEN
                IF r.pin = ANY (pins) THEN
                    claims := claims || jsonb_build_array(kortyx.grant_v1(r, p -> 'driver', now));
                ELSE
                    PERFORM kortyx.wake_v1(r, now);
                    work := TRUE;
                END IF;
            END IF;
        ELSIF cardinality(kortyx.pending_v1(r.id)) = 0 THEN
            IF r.cancel_requested THEN
                PERFORM kortyx.end_v1(r, 'cancelled', 'cancelled', now, NULL, NULL);
            ELSE
                PERFORM kortyx.end_v1(r, 'expired', 'expired', now, NULL, NULL);
                ended := ended || jsonb_build_array(r.run_id);
            END IF;
        END IF;
    END LOOP;
    SELECT array_agg(i.id ORDER BY i.expires_at, i.id) INTO here FROM kortyx.interrupts AS i WHERE i.id = ANY (closed);
    RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
        'w', here IS NOT NULL, 'more', more AND here IS NOT NULL, 'ended', ended, 'attention', attention,
        'work', work))) || kortyx.refs_v1('question', here) || claims;
END
$$;

CREATE FUNCTION kortyx.cancel_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    now bigint;
    ids bigint[];
    outcomes jsonb := '[]';
    attention jsonb := '[]';
    wrote boolean := FALSE;
BEGIN
    IF p -> 'run_id' <> 'null' THEN
        ids := ARRAY(SELECT o.id FROM kortyx.runs AS o WHERE o.run_id = p ->> 'run_id');
    ELSE
        ids := ARRAY(SELECT o.id FROM kortyx.runs AS o
            WHERE o.session_id = p ->> 'session_id' AND o.status IN ('running', 'suspended', 'parked'));
    END IF;
    PERFORM 1 FROM kortyx.runs AS o WHERE o.id = ANY (ids) ORDER BY o.id FOR UPDATE;
    now := kortyx.now_v1((p ->> 'shift')::bigint);
    FOR r IN SELECT * FROM kortyx.runs AS o WHERE o.id = ANY (ids) ORDER BY o.id LOOP
        CONTINUE WHEN p -> 'scope' <> 'null' AND NOT (
            coalesce(p -> 'scope' ->> 'session_id' = r.session_id, TRUE) AND r.context @> (p -> 'scope' -> 'context'));
        IF r.status IN ('completed', 'failed', 'cancelled', 'expired') THEN
            outcomes := outcomes || jsonb_build_array(jsonb_build_object('kind', 'ended', 'run_id', r.run_id, 'status', r.status));
        ELSIF r.status = 'running' AND r.lease_until > now THEN
            IF NOT r.cancel_requested THEN
                UPDATE kortyx.runs AS o
                SET cancel_requested = TRUE, reason = coalesce(p ->> 'reason', o.reason), updated_at = now
                WHERE o.id = r.id;
                wrote := TRUE;
            END IF;
            attention := attention || jsonb_build_array(r.run_id);
            outcomes := outcomes || jsonb_build_array(jsonb_build_object('kind', 'requested', 'run_id', r.run_id));
        ELSE
            PERFORM kortyx.end_v1(r, 'cancelled', 'cancelled', now, p ->> 'reason', NULL);
            wrote := TRUE;
            outcomes := outcomes || jsonb_build_array(jsonb_build_object('kind', 'cancelled', 'run_id', r.run_id));
        END IF;
    END LOOP;
    RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
        'w', wrote, 'outcomes', outcomes, 'attention', attention)));
END
$$;
