-- Transitions of a run that a driver makes. A reply is an array of references, the first of which is its head; `w` in the
-- head says that something was written, so that the reply is kept. Questions that a transition publishes are not told again:
-- the head has the time and what the caller may not know of the run.

CREATE FUNCTION kortyx.open_v1(p jsonb, b bytea[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    now bigint := kortyx.now_v1((p ->> 'shift')::bigint);
BEGIN
    r := kortyx.add_run_v1(p -> 'run', p -> 'pin', 'running', now, 0, b[(p ->> 'snapshot')::integer], p ->> 'revision',
        p -> 'driver');
    RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
        'w', TRUE, 'fence', r.fence, 'until', r.lease_until)));
END
$$;

CREATE FUNCTION kortyx.record_v1(p jsonb, b bytea[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    now bigint;
    changes boolean := jsonb_array_length(p -> 'entries') + jsonb_array_length(p -> 'publish')
        + jsonb_array_length(p -> 'withdraw') > 0;
    reply jsonb;
BEGIN
    r := kortyx.held_v1(p -> 'lease', FALSE);
    now := kortyx.now_v1((p ->> 'shift')::bigint);
    IF jsonb_array_length(p -> 'withdraw') > 0 THEN
        PERFORM kortyx.close_v1(r, ARRAY(SELECT jsonb_array_elements_text(p -> 'withdraw')), 'superseded', now);
    END IF;
    PERFORM kortyx.publish_v1(r, p -> 'publish', b, now, FALSE);
    IF jsonb_array_length(p -> 'entries') > 0 THEN
        INSERT INTO kortyx.entries (run, body)
        SELECT r.id, b[entry::integer]
        FROM jsonb_array_elements_text(p -> 'entries') WITH ORDINALITY AS new (entry, place) ORDER BY place;
    END IF;
    IF changes THEN
        UPDATE kortyx.runs AS o
        SET updated_at = now, has_entries = o.has_entries OR jsonb_array_length(p -> 'entries') > 0
        WHERE o.id = r.id;
    END IF;
    reply := jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
        'w', changes, 'cancel_requested', r.cancel_requested, 'at', now, 'session_id', r.session_id, 'context', r.context)));
    IF r.answers > (p ->> 'answers_seen')::bigint THEN
        reply := reply || jsonb_build_array(jsonb_build_array('answers', r.id, jsonb_build_object(
            'above', (p ->> 'answers_seen')::bigint, 'upto', r.answers)));
    END IF;
    RETURN reply;
END
$$;

CREATE FUNCTION kortyx.answered_v1(r kortyx.runs, p_seen bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_array(
        jsonb_build_array('head', NULL, jsonb_build_object('w', FALSE, 'kind', 'answered')),
        jsonb_build_array('answers', r.id, jsonb_build_object('above', p_seen, 'upto', r.answers)))
$$;

CREATE FUNCTION kortyx.suspend_v1(p jsonb, b bytea[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    now bigint;
    before bigint[];
    opened bigint[];
    body bytea := b[(p ->> 'snapshot')::integer];
    c jsonb := nullif(p -> 'checkpoint', 'null');
    is_new boolean := p -> 'run' <> 'null';
BEGIN
    IF is_new THEN
        IF c IS NOT NULL THEN
            PERFORM kortyx.lock_session_v1(p -> 'run' ->> 'session_id');
        END IF;
        now := kortyx.now_v1((p ->> 'shift')::bigint);
        r := kortyx.add_run_v1(p -> 'run', p -> 'pin', 'suspended', now, 0, body, p ->> 'revision', NULL);
    ELSE
        r := kortyx.held_v1(p -> 'lease', c IS NOT NULL);
        now := kortyx.now_v1((p ->> 'shift')::bigint);
        IF r.cancel_requested THEN
            PERFORM kortyx.end_v1(r, 'cancelled', 'cancelled', now, NULL, NULL);
            RETURN '[["head", null, {"w": true, "kind": "cancelled"}]]';
        END IF;
        IF r.answers > (p ->> 'answers_seen')::bigint THEN
            RETURN kortyx.answered_v1(r, (p ->> 'answers_seen')::bigint);
        END IF;
        IF r.has_entries THEN
            DELETE FROM kortyx.entries AS e WHERE e.run = r.id;
        END IF;
        UPDATE kortyx.runs AS o
        SET status = 'suspended', pin = (p -> 'pin' ->> 'digest')::uuid, workflow_id = p -> 'pin' ->> 'id',
            workflow_version = p -> 'pin' ->> 'version', fingerprint = p -> 'pin' ->> 'fingerprint', lease_until = 0,
            driver = NULL, absorbed = o.answers, has_entries = FALSE, updated_at = now, snapshot = body,
            revision = decode(p ->> 'revision', 'hex')
        WHERE o.id = r.id RETURNING * INTO r;
        IF jsonb_array_length(p -> 'withdraw') > 0 THEN
            PERFORM kortyx.close_v1(r, ARRAY(SELECT jsonb_array_elements_text(p -> 'withdraw')), 'superseded', now);
        END IF;
    END IF;
    IF NOT is_new THEN
        before := kortyx.open_questions_v1(r.id, now);
    END IF;
    opened := before || kortyx.publish_v1(r, p -> 'publish', b, now, is_new);
    IF p -> 'publish' @> '[{"ttl": 0}]' THEN
        opened := kortyx.open_questions_v1(r.id, now);
    END IF;
    IF cardinality(opened) = 0 THEN
        PERFORM kortyx.end_v1(r, 'expired', 'expired', now, NULL, NULL);
        RETURN '[["head", null, {"w": true, "kind": "expired"}]]';
    END IF;
    IF c IS NOT NULL THEN
        PERFORM kortyx.append_v1(r.session_id, c, b[(c ->> 'state')::integer], now, r, opened, NULL);
    END IF;
    RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
        'w', TRUE, 'kind', 'saved', 'at', now, 'session_id', r.session_id, 'context', r.context)))
        || kortyx.refs_v1('open', before);
END
$$;

CREATE FUNCTION kortyx.finish_v1(p jsonb, b bytea[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    now bigint;
    c jsonb := nullif(p -> 'checkpoint', 'null');
BEGIN
    IF p -> 'run' <> 'null' THEN
        IF c IS NOT NULL THEN
            PERFORM kortyx.lock_session_v1(p -> 'run' ->> 'session_id');
        END IF;
        now := kortyx.now_v1((p ->> 'shift')::bigint);
        r := kortyx.add_run_v1(p -> 'run', p -> 'pin', p ->> 'status', now, 0, NULL, NULL, NULL);
    ELSE
        r := kortyx.held_v1(p -> 'lease', c IS NOT NULL);
        now := kortyx.now_v1((p ->> 'shift')::bigint);
        IF r.answers > (p ->> 'answers_seen')::bigint THEN
            RETURN kortyx.answered_v1(r, (p ->> 'answers_seen')::bigint);
        END IF;
        PERFORM kortyx.close_v1(r, NULL, CASE WHEN p ->> 'status' = 'cancelled' THEN 'cancelled' ELSE 'superseded' END, now);
        IF r.has_entries THEN
            DELETE FROM kortyx.entries AS e WHERE e.run = r.id;
        END IF;
    END IF;
    UPDATE kortyx.runs AS o
    SET status = p ->> 'status', pin = (p -> 'pin' ->> 'digest')::uuid, workflow_id = p -> 'pin' ->> 'id',
        workflow_version = p -> 'pin' ->> 'version', fingerprint = p -> 'pin' ->> 'fingerprint', lease_until = 0,
        driver = NULL, has_entries = FALSE, updated_at = now, snapshot = NULL, revision = NULL,
        outcome = b[(p ->> 'outcome')::integer], reason = coalesce(p ->> 'reason', o.reason)
    WHERE o.id = r.id;
    IF c IS NOT NULL THEN
        PERFORM kortyx.append_v1(r.session_id, c, b[(c ->> 'state')::integer], now, r, NULL, NULL);
    END IF;
    RETURN '[["head", null, {"w": true, "kind": "done"}]]';
END
$$;

CREATE FUNCTION kortyx.park_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs := kortyx.held_v1(p -> 'lease', FALSE);
    now bigint := kortyx.now_v1((p ->> 'shift')::bigint);
BEGIN
    -- Nobody would close it any more: a parked run has no driver to ask.
    IF r.cancel_requested THEN
        PERFORM kortyx.end_v1(r, 'cancelled', 'cancelled', now, NULL, NULL);
    ELSE
        UPDATE kortyx.runs AS o
        SET status = 'parked', reason = p ->> 'reason', lease_until = 0, driver = NULL, updated_at = now
        WHERE o.id = r.id;
    END IF;
    RETURN '[["head", null, {"w": true}]]';
END
$$;

CREATE FUNCTION kortyx.renew_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs := kortyx.held_v1(p -> 'lease', FALSE);
    until bigint := kortyx.later_v1(kortyx.now_v1((p ->> 'shift')::bigint), (p ->> 'ttl')::bigint);
BEGIN
    UPDATE kortyx.runs AS o SET lease_until = until WHERE o.id = r.id;
    RETURN jsonb_build_array(
        jsonb_build_array('head', NULL, jsonb_build_object(
            'w', FALSE, 'until', until, 'cancel_requested', r.cancel_requested)),
        jsonb_build_array('answers', r.id, jsonb_build_object(
            'above', (p ->> 'answers_seen')::bigint, 'upto', r.answers)));
END
$$;

CREATE FUNCTION kortyx.release_v1(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs := kortyx.held_v1(p -> 'lease', FALSE);
    now bigint := kortyx.now_v1((p ->> 'shift')::bigint);
BEGIN
    UPDATE kortyx.runs AS o SET lease_until = 0, driver = NULL, updated_at = now WHERE o.id = r.id;
    RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object('w', TRUE, 'work', TRUE)));
END
$$;
