-- $1 and $2: a context value, $3: where the page starts, $4: look at no more.
SELECT count(*) AS found FROM (
    SELECT 1 FROM pending_context WHERE key = $1 AND value = $2 AND created_at >= $3 LIMIT $4
);
