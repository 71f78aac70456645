-- $1: a run's id, $2: a number, $3: a count. The run's status, its last number, whether its response is complete, and its chunks above the number: a row each, or one
-- row without.
SELECT r.status, (SELECT max(number) FROM chunks WHERE run = r.id) AS last,
    EXISTS (SELECT 1 FROM responses AS p WHERE p.run = r.id) AS response_completed, page.body
FROM runs AS r LEFT JOIN (
    SELECT number, body FROM chunks
    WHERE run = (SELECT id FROM runs WHERE run_id = $1) AND number > $2 ORDER BY number LIMIT $3
) AS page
WHERE r.run_id = $1 ORDER BY page.number;
