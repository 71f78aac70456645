-- $1: a session, $3: where the page starts, $4: look at no more.
SELECT count(*) AS found FROM (
    SELECT 1 FROM interrupts WHERE session_id = $1 AND status = 'pending' AND created_at >= $3 LIMIT $4
);
