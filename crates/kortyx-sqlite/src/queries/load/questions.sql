-- $4: ids of questions that are answered.
SELECT 'run' AS tag, * FROM runs
WHERE id IN (SELECT run FROM interrupts WHERE request_id IN (SELECT value FROM json_each($4)));
SELECT 'question' AS tag, * FROM interrupts WHERE request_id IN (SELECT value FROM json_each($4));
