-- A page in two parts, what is as old as the cursor and what is younger, each in the order of an index.
-- $1: a run, $3 and $4: where the page starts, $5: now, $6: only these, or all when NULL, $7: at most this many.
SELECT i.*, r.run_id, r.context
FROM (
    SELECT p.created_at, p.id AS id FROM interrupts AS p
    WHERE p.run = (SELECT id FROM runs WHERE run_id = $1) AND p.status = 'pending' AND p.seq IS NULL AND p.created_at = $3 AND p.id > $4
        AND p.expires_at > $5 AND p.after_response IS coalesce($6, p.after_response) /* filters */
    UNION ALL
    SELECT p.created_at, p.id AS id FROM interrupts AS p
    WHERE p.run = (SELECT id FROM runs WHERE run_id = $1) AND p.status = 'pending' AND p.seq IS NULL AND p.created_at > $3
        AND p.expires_at > $5 AND p.after_response IS coalesce($6, p.after_response) /* filters */
    ORDER BY created_at, id LIMIT $7
) AS page
    CROSS JOIN interrupts AS i ON i.id = page.id
    CROSS JOIN runs AS r ON r.id = i.run
ORDER BY i.created_at, i.id;
