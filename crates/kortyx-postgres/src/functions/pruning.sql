-- Removing what retention allows to go, at most as many things as asked for.

-- Removes checkpoints of locked sessions, unless one is a head that must stay; gives how many.
CREATE FUNCTION kortyx.drop_checkpoints_v1(p_keys bigint[], p_with_head boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    WITH dropped AS (
        DELETE FROM kortyx.checkpoints AS c
        WHERE c.id = ANY (p_keys) AND c.abandoned_at IS NULL AND (p_with_head OR NOT c.is_head)
        RETURNING c.id, c.session
    ), questions AS (
        DELETE FROM kortyx.checkpoint_questions AS q USING dropped WHERE q.checkpoint = dropped.id
    ), counted AS (
        UPDATE kortyx.sessions AS s SET checkpoints = s.checkpoints - sum.number
        FROM (SELECT session, count(*) AS number FROM dropped GROUP BY session) AS sum
        WHERE s.id = sum.session
    )
    SELECT count(*) INTO gone FROM dropped;
    RETURN gone;
END
$$;

-- Forgets replies that nobody asks for any more, and what rollbacks abandoned; whether more may be left.
CREATE FUNCTION kortyx.forget_replies_v1(p_now bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
    old bigint[];
BEGIN
    DELETE FROM kortyx.transitions AS t WHERE t.id = ANY (ARRAY(
        SELECT o.id FROM kortyx.transitions AS o WHERE o.at <= p_now - 3600000 ORDER BY o.at LIMIT 10000
        FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS gone = ROW_COUNT;
    old := ARRAY(SELECT c.id FROM kortyx.checkpoints AS c WHERE c.abandoned_at <= p_now - 3600000
        ORDER BY c.abandoned_at LIMIT 1000 FOR UPDATE SKIP LOCKED);
    DELETE FROM kortyx.checkpoint_questions AS q WHERE q.checkpoint = ANY (old);
    DELETE FROM kortyx.checkpoints AS c WHERE c.id = ANY (old);
    RETURN gone = 10000 OR cardinality(old) = 1000;
END
$$;

CREATE FUNCTION kortyx.prune_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    now bigint := kortyx.now_v1((p ->> 'shift')::bigint);
    room bigint := least((p ->> 'limit')::bigint, 1000);
    keep bigint := (p ->> 'keep')::bigint;
    more boolean;
    s kortyx.sessions;
    found_keys bigint[];
    gone bigint;
    runs bigint;
    checkpoints bigint := 0;
    sessions bigint := 0;
BEGIN
    more := kortyx.forget_replies_v1(now);

    found_keys := ARRAY(SELECT o.id FROM kortyx.runs AS o
        WHERE o.status IN ('completed', 'failed', 'cancelled', 'expired')
            AND o.updated_at <= now - (p ->> 'finished_runs')::bigint
        ORDER BY o.updated_at LIMIT room + 1 FOR UPDATE SKIP LOCKED);
    more := more OR cardinality(found_keys) > room;
    found_keys := found_keys[:room];
    DELETE FROM kortyx.interrupts AS i WHERE i.run = ANY (found_keys);
    DELETE FROM kortyx.entries AS e WHERE e.run = ANY (found_keys);
    DELETE FROM kortyx.runs AS o WHERE o.id = ANY (found_keys);
    runs := cardinality(found_keys);
    room := room - runs;

    -- Sessions without a change and without a run that is not terminal: first their checkpoints, then themselves.
    FOR s IN
        SELECT * FROM kortyx.sessions AS o
        WHERE o.updated_at <= now - (p ->> 'idle_sessions')::bigint AND NOT EXISTS (
            SELECT 1 FROM kortyx.runs AS r
            WHERE r.session_id = o.session_id AND r.status IN ('running', 'suspended', 'parked'))
        ORDER BY o.updated_at LIMIT room + 1 FOR UPDATE OF o SKIP LOCKED
    LOOP
        IF room = 0 THEN
            more := TRUE;
            EXIT;
        END IF;
        found_keys := ARRAY(SELECT c.id FROM kortyx.checkpoints AS c
            WHERE c.session = s.id AND c.abandoned_at IS NULL ORDER BY c.turn_index LIMIT room);
        gone := kortyx.drop_checkpoints_v1(found_keys, TRUE);
        room := room - gone;
        checkpoints := checkpoints + gone;
        IF room > 0 AND gone = s.checkpoints THEN
            DELETE FROM kortyx.sessions AS o WHERE o.id = s.id;
            sessions := sessions + 1;
            room := room - 1;
        ELSE
            more := TRUE;
        END IF;
    END LOOP;

    -- The oldest checkpoints of sessions with too many.
    FOR s IN
        SELECT * FROM kortyx.sessions AS o WHERE o.checkpoints > keep LIMIT room + 1 FOR UPDATE SKIP LOCKED
    LOOP
        IF room = 0 THEN
            more := TRUE;
            EXIT;
        END IF;
        found_keys := ARRAY(SELECT c.id FROM kortyx.checkpoints AS c
            WHERE c.session = s.id AND c.abandoned_at IS NULL
            ORDER BY c.turn_index LIMIT least(room, s.checkpoints - keep));
        gone := kortyx.drop_checkpoints_v1(found_keys, FALSE);
        more := more OR gone < s.checkpoints - keep;
        room := room - gone;
        checkpoints := checkpoints + gone;
    END LOOP;

    found_keys := ARRAY(SELECT c.id FROM kortyx.checkpoints AS c JOIN kortyx.sessions AS o ON o.id = c.session
        WHERE NOT c.is_head AND c.abandoned_at IS NULL AND c.created_at <= now - (p ->> 'checkpoint_age')::bigint
        ORDER BY c.created_at LIMIT room + 1 FOR UPDATE OF o SKIP LOCKED);
    more := more OR cardinality(found_keys) > room;
    checkpoints := checkpoints + kortyx.drop_checkpoints_v1(found_keys[:room], FALSE);
    RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
        'w', FALSE, 'runs', runs, 'checkpoints', checkpoints, 'sessions', sessions, 'more', more)));
END
$$;
