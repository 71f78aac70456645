-- $3: ids of runs whose pending questions decide.
SELECT 'pending' AS tag, * FROM interrupts
WHERE run IN (SELECT id FROM runs WHERE run_id IN (SELECT value FROM json_each($3))) AND status = 'pending'
ORDER BY created_at, id;
