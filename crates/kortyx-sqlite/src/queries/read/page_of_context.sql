-- A page in two parts, what is as old as the cursor and what is younger, each in the order of an index.
-- $1 and $2: a context value, $3 and $4: where the page starts, $5: now, $6: only these, or all when NULL, $7: at most this many.
SELECT i.*, r.run_id, r.context
FROM (
    SELECT p.created_at, p.interrupt AS id FROM pending_context AS p
    WHERE p.key = $1 AND p.value = $2 AND p.created_at = $3 AND p.interrupt > $4
        AND p.expires_at > $5 AND p.after_response IS coalesce($6, p.after_response) /* filters */
    UNION ALL
    SELECT p.created_at, p.interrupt AS id FROM pending_context AS p
    WHERE p.key = $1 AND p.value = $2 AND p.created_at > $3
        AND p.expires_at > $5 AND p.after_response IS coalesce($6, p.after_response) /* filters */
    ORDER BY created_at, id LIMIT $7
) AS page
    CROSS JOIN interrupts AS i ON i.id = page.id
    CROSS JOIN runs AS r ON r.id = i.run
ORDER BY i.created_at, i.id;
