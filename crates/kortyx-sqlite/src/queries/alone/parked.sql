-- The same among runs set aside before $2.
SELECT r.id
FROM json_each($1) AS pin
    CROSS JOIN runs AS r
WHERE r.id IN (
    SELECT o.id FROM runs AS o
    WHERE o.status = 'parked' AND o.workflow_id = pin.value ->> 0 AND o.workflow_version = pin.value ->> 1
        AND o.fingerprint = pin.value ->> 2 AND o.updated_at < $2
    ORDER BY o.updated_at LIMIT $3
)
ORDER BY r.updated_at, r.id LIMIT $3;
