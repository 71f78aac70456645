-- What a new driver needs, unless the run has one until after $7. $6: ids of questions that are answered.
SELECT 'snapshot' AS tag, run, body FROM snapshots
WHERE run IN (
    SELECT id FROM runs
    WHERE id IN (SELECT run FROM interrupts WHERE request_id IN (SELECT value FROM json_each($6)))
        AND (status <> 'running' OR lease_until <= $7)
);
SELECT 'entry' AS tag, run, body FROM entries
WHERE run IN (
    SELECT id FROM runs
    WHERE id IN (SELECT run FROM interrupts WHERE request_id IN (SELECT value FROM json_each($6)))
        AND (status <> 'running' OR lease_until <= $7)
)
ORDER BY id;
SELECT 'answer' AS tag, i.run, i.request_id, i.ask, i.status, i.answer, i.seq, i.answered_at, i.actor
FROM runs AS r CROSS JOIN interrupts AS i ON i.run = r.id AND i.status IN ('answered', 'expired') AND i.seq > r.absorbed
WHERE r.id IN (SELECT run FROM interrupts WHERE request_id IN (SELECT value FROM json_each($6)))
    AND (r.status <> 'running' OR r.lease_until <= $7);
