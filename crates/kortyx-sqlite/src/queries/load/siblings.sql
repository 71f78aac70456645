-- $5: ids of questions whose cancellation may end their run.
SELECT 'pending' AS tag, * FROM interrupts
WHERE run IN (SELECT run FROM interrupts WHERE request_id IN (SELECT value FROM json_each($5))) AND status = 'pending'
ORDER BY created_at, id;
