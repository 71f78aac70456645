-- $1: keys of runs.
SELECT 'snapshot' AS tag, run, body FROM snapshots WHERE run IN (SELECT value FROM json_each($1));
SELECT 'entry' AS tag, run, body FROM entries WHERE run IN (SELECT value FROM json_each($1)) ORDER BY id;
SELECT 'answer' AS tag, i.run, i.request_id, i.ask, i.status, i.answer, i.seq, i.answered_at, i.actor
FROM runs AS r CROSS JOIN interrupts AS i ON i.run = r.id AND i.status IN ('answered', 'expired') AND i.seq > r.absorbed
WHERE r.id IN (SELECT value FROM json_each($1));
