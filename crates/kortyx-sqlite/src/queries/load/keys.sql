-- The highest keys, and which ids are taken. $1: ids of new runs, $2: ids of questions to publish.
SELECT 'keys' AS tag,
    (SELECT coalesce(max(id), 0) FROM runs) AS run,
    (SELECT coalesce(max(id), 0) FROM interrupts) AS question,
    (SELECT json_group_array(run_id) FROM runs WHERE run_id IN (SELECT value FROM json_each($1))) AS runs,
    (
        SELECT json_group_array(request_id) FROM interrupts WHERE request_id IN (SELECT value FROM json_each($2))
    ) AS requests;
