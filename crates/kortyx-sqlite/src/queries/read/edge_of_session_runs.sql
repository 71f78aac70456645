-- The same as `edge_of_runs.sql` for the session $6.
SELECT count(*) AS seen, min(id) AS edge
FROM (SELECT id FROM runs WHERE session_id = $6 AND +id < $1 ORDER BY +id DESC LIMIT $2) AS page;
