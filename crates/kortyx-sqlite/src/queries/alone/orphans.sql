-- For each definition the oldest orphans, and of all these the oldest. $1: pins.
SELECT r.id
FROM json_each($1) AS pin
    CROSS JOIN runs AS r
WHERE r.id IN (
    SELECT o.id FROM runs AS o
    WHERE o.status = 'running' AND o.workflow_id = pin.value ->> 0 AND o.workflow_version = pin.value ->> 1
        AND o.fingerprint = pin.value ->> 2 AND o.lease_until <= $2 AND o.cancel_requested = 0
    ORDER BY o.lease_until, o.updated_at LIMIT $3
)
ORDER BY r.lease_until, r.updated_at, r.id LIMIT $3;
