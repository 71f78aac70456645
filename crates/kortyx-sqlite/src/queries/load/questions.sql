-- $4: ids of questions that are answered. Their runs come with what a new driver needs where $5 asks for it, unless
-- they have a driver until after $6.
SELECT 'run' AS tag, r.*, s.body AS snapshot,
    EXISTS (SELECT 1 FROM interrupts AS i WHERE i.run = r.id AND i.status = 'pending') AS has_pending,
    EXISTS (SELECT 1 FROM entries AS e WHERE e.run = r.id) AS has_entries,
    EXISTS (SELECT 1 FROM responses AS p WHERE p.run = r.id) AS has_response
FROM runs AS r
    LEFT JOIN snapshots AS s ON s.run = r.id AND $5 AND (r.status <> 'running' OR r.lease_until <= $6)
WHERE r.id IN (SELECT run FROM interrupts WHERE request_id IN (SELECT value FROM json_each($4)));
SELECT 'question' AS tag, * FROM interrupts WHERE request_id IN (SELECT value FROM json_each($4));
