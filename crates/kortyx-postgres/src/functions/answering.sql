-- Deciding over answers: all or none.

CREATE FUNCTION kortyx.receipt_v1(q kortyx.interrupts, p_run_id text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN q.seq IS NOT NULL THEN jsonb_build_object(
        'request_id', q.request_id, 'run_id', p_run_id, 'seq', q.seq, 'at', q.answered_at, 'actor', q.actor) END
$$;

-- What is to be done about one answer to a question that its caller may know: accept, repeat, or why it is refused.
CREATE FUNCTION kortyx.judge_v1(a jsonb, p_answer bytea, q kortyx.interrupts, r kortyx.runs, p_now bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN a ->> 'session_id' <> r.session_id THEN 'wrong_session'
        WHEN q.status = 'pending' THEN CASE
            WHEN r.status IN ('completed', 'failed', 'cancelled', 'expired') THEN 'superseded'
            WHEN q.expires_at <= p_now THEN 'expired'
            WHEN r.cancel_requested THEN 'cancelled'
            ELSE 'accept'
        END
        WHEN q.status IN ('answered', 'cancelled') AND q.seq IS NOT NULL AND q.answer = p_answer THEN 'repeat'
        WHEN q.status = 'answered' THEN 'conflict'
        ELSE q.status
    END
$$;

CREATE FUNCTION kortyx.answer_v1(p jsonb, b bytea[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r kortyx.runs;
    q kortyx.interrupts;
    a jsonb;
    now bigint;
    verdict text;
    verdicts text[];
    keys bigint[];
    ends boolean := FALSE;
    refusals jsonb[];
    receipts jsonb[];
    asked integer := jsonb_array_length(p -> 'answers');
BEGIN
    IF asked = 1 THEN
        SELECT * INTO r FROM kortyx.runs AS o
        WHERE o.id = (SELECT i.run FROM kortyx.interrupts AS i WHERE i.request_id = p -> 'answers' -> 0 ->> 'request_id')
        FOR UPDATE;
    ELSE
        PERFORM 1 FROM kortyx.runs AS o
        WHERE o.id IN (
            SELECT i.run FROM kortyx.interrupts AS i
            WHERE i.request_id = ANY (ARRAY(SELECT value ->> 'request_id' FROM jsonb_array_elements(p -> 'answers')))
        )
        ORDER BY o.id FOR UPDATE;
    END IF;
    now := kortyx.now_v1((p ->> 'shift')::bigint);
    FOR place IN 0 .. asked - 1 LOOP
        a := p -> 'answers' -> place;
        verdict := 'unknown';
        SELECT * INTO q FROM kortyx.interrupts AS i WHERE i.request_id = a ->> 'request_id';
        IF FOUND THEN
            IF r.id IS DISTINCT FROM q.run THEN
                SELECT * INTO STRICT r FROM kortyx.runs AS o WHERE o.id = q.run;
            END IF;
            -- Digests are compared, so that the time it takes tells nothing about the token.
            IF (CASE WHEN a -> 'token' <> 'null' THEN sha256(convert_to(q.token, 'UTF8')) = decode(a ->> 'token', 'hex')
                ELSE coalesce(a -> 'scope' ->> 'session_id' = r.session_id, TRUE)
                    AND r.context @> (a -> 'scope' -> 'context') END)
                AND coalesce(a ->> 'run_id' = r.run_id, TRUE)
            THEN
                verdict := kortyx.judge_v1(a, b[(a ->> 'answer')::integer], q, r, now);
                keys := keys || q.id;
                ends := ends OR (a ->> 'cancel')::boolean AND NOT q.optional_cancel;
            END IF;
        END IF;
        verdicts := verdicts || verdict;
        IF verdict = 'repeat' THEN
            receipts := receipts || kortyx.receipt_v1(q, r.run_id);
        ELSIF verdict <> 'accept' THEN
            refusals := refusals || jsonb_build_object(
                'request_id', a ->> 'request_id', 'refusal', verdict,
                'receipt', CASE WHEN verdict = 'conflict' THEN kortyx.receipt_v1(q, r.run_id) END);
        END IF;
    END LOOP;
    IF asked > 1 AND cardinality(keys) = asked THEN
        PERFORM kortyx.check_answers_v1(keys, ends);
    END IF;
    IF refusals IS NOT NULL THEN
        RETURN jsonb_build_array(jsonb_build_array('head', NULL, jsonb_build_object(
            'w', FALSE, 'kind', 'refused', 'refusals', refusals)));
    END IF;
    IF NOT 'accept' = ANY (verdicts) THEN
        RETURN jsonb_build_array(
            jsonb_build_array('head', NULL, jsonb_build_object('w', FALSE, 'kind', 'duplicate', 'receipts', receipts)),
            jsonb_build_array('run', r.id));
    END IF;
    RETURN kortyx.accept_v1(p, b, r, keys, verdicts, ends, now);
END
$$;

-- Refuses answers that contradict each other.
CREATE FUNCTION kortyx.check_answers_v1(p_keys bigint[], p_ends boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(DISTINCT key) FROM unnest(p_keys) AS key) < cardinality(p_keys) THEN
        RAISE EXCEPTION USING ERRCODE = 'KX003', MESSAGE = 'a question is answered twice';
    ELSIF (SELECT count(DISTINCT i.run) FROM kortyx.interrupts AS i WHERE i.id = ANY (p_keys)) > 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'KX003', MESSAGE = 'the questions belong to different runs';
    ELSIF p_ends THEN
        RAISE EXCEPTION USING ERRCODE = 'KX003', MESSAGE = 'a cancellation that ends the run must be the only answer';
    END IF;
END
$$;

-- Applies answers of which none is refused.
CREATE FUNCTION kortyx.accept_v1(
    p jsonb, b bytea[], r kortyx.runs, p_keys bigint[], p_verdicts text[], p_ends boolean, p_now bigint
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    a jsonb;
    receipts jsonb[];
    q kortyx.interrupts;
    head jsonb;
    claim jsonb;
BEGIN
    FOR place IN 1 .. cardinality(p_keys) LOOP
        IF p_verdicts[place] = 'accept' THEN
            -- A cancellation that ends the run is no answer that a driver gets: it has a receipt and is not counted.
            r.answers := r.answers + 1;
            a := p -> 'answers' -> (place - 1);
            UPDATE kortyx.interrupts AS i
            SET status = CASE WHEN p_ends THEN 'cancelled' ELSE 'answered' END, answer = b[(a ->> 'answer')::integer],
                seq = r.answers, answered_at = p_now, actor = a ->> 'actor'
            WHERE i.id = p_keys[place] RETURNING * INTO q;
            IF cardinality(r.pairs) > 0 THEN
                PERFORM kortyx.forget_v1(r, ARRAY[q.id]);
            END IF;
        ELSE
            SELECT * INTO q FROM kortyx.interrupts AS i WHERE i.id = p_keys[place];
        END IF;
        receipts := receipts || kortyx.receipt_v1(q, r.run_id);
    END LOOP;
    IF r.status = 'running' AND r.lease_until > p_now THEN
        UPDATE kortyx.runs AS o
        SET answers = CASE WHEN p_ends THEN o.answers ELSE r.answers END, cancel_requested = o.cancel_requested OR p_ends,
            updated_at = p_now
        WHERE o.id = r.id;
        head := jsonb_build_object('drive', 'driven', 'attention', jsonb_build_array(r.run_id));
    ELSIF p_ends THEN
        PERFORM kortyx.end_v1(r, 'cancelled', 'cancelled', p_now, NULL, NULL);
        head := '{"drive": "ended"}';
    ELSIF p -> 'driver' <> 'null' THEN
        claim := kortyx.grant_v1(r, p -> 'driver', p_now);
        head := '{"drive": "granted"}';
    ELSE
        PERFORM kortyx.wake_v1(r, p_now);
        head := '{"drive": "left", "work": true}';
    END IF;
    head := head || jsonb_build_object('w', TRUE, 'kind', 'accepted', 'receipts', receipts);
    RETURN jsonb_build_array(jsonb_build_array('head', NULL, head))
        || CASE WHEN claim IS NULL THEN '[]' ELSE jsonb_build_array(claim) END;
END
$$;
