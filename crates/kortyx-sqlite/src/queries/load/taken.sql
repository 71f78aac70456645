-- $8: ids of questions to publish.
SELECT 'taken' AS tag, request_id FROM interrupts WHERE request_id IN (SELECT value FROM json_each($8));
